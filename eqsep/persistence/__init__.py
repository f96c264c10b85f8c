"""Model files: a fitted estimator as one file, without pickle.

| module | what it knows |
|---|---|
| `files` | a model as one file: its tree of plain values, written whole or not at all |
| `container` | the bytes: prefix, header, arrays, checksum |
| `registry` | which classes a file may hold, and what each is made of |
| `codecs` | how an object becomes its parts and is built from them |
| `migrations` | how files of older versions are read |
| `foreign` | networks (torch), layer by layer, and scikit-learn's support vector machine |
"""

from eqsep.persistence.files import load_model, read_model, save_model
from eqsep.schemas import ModelFileError

__all__ = ["ModelFileError", "load_model", "read_model", "save_model"]
