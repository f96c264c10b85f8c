"""Export to ONNX: a detector's encoding, score and threshold as one graph.

| module | what it knows |
|---|---|
| `graph` | nodes and constants, written down as expressions; some rows at a time |
| `table` | what comes in, a value a column, and the encoded rows |
| `columns` | the outputs of learnt columns |
| `score` | the kernel's sum, the threshold and the p-value |
| `file` | the whole model, its description, and the file |
"""

from eqsep.export.file import to_onnx

__all__ = ["to_onnx"]
