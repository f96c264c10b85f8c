"""Export to ONNX: a detector's encoding, score and threshold as one graph.

| module | what it knows |
|---|---|
| `graph` | nodes and constants, written down as expressions |
| `table` | what comes in, a value a column, and the encoded rows |
| `numbers`, `dates`, `names` | the outputs of learnt columns |
| `score` | the kernel's sum, the threshold and the p-value |
| `blocks` | some rows at a time, so that memory is bounded |
| `file` | the whole model, its description, and the file |
"""

from eqsep.export.file import to_onnx

__all__ = ["to_onnx"]
