"""Model files: a fitted estimator as one file, without pickle.

| module | what it knows |
|---|---|
| `container` | the bytes: prefix, header, arrays, checksum |
| `values` | plain values and known objects as a tree that JSON can hold |
| `registry` | which classes a file may hold, what each is made of, and was in older formats |
| `codecs` | how an object becomes its parts and is built from them |
| `schema` | what a part of an object may be |
| `layers` | networks (torch), layer by layer |
| `detectors` | the detector, and the encoder of its table |
| `files` | the file itself: written whole or not at all |
"""

from eqsep.persistence.container import ModelFileError
from eqsep.persistence.files import load_model, save_model

__all__ = ["ModelFileError", "load_model", "save_model"]
