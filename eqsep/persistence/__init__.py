"""Model files: a fitted estimator as one file, without pickle.

| module | what it knows |
|---|---|
| `files` | a model as one file: its tree of plain values, written whole or not at all |
| `container` | the bytes: prefix, header, arrays, checksum |
| `registry` | which classes a file may hold, what each is made of, and was in older formats |
| `codecs` | how an object becomes its parts and is built from them, and what each part may be |
| `detectors` | the detector, and the encoder of its table |
| `foreign` | networks (torch), layer by layer, and scikit-learn's support vector machine |
"""

from eqsep.persistence.container import ModelFileError
from eqsep.persistence.files import load_model, save_model

__all__ = ["ModelFileError", "load_model", "save_model"]
