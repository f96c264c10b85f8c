"""What a detector is handed on as: one ONNX graph, or a model of mlflow's.

| module | what it knows |
|---|---|
| `graph` | nodes and constants, written down as expressions; some rows at a time |
| `table` | what comes in, a value a column, and the encoded rows: the outputs of learnt columns |
| `score` | the kernel's sum, the threshold and the p-value |
| `file` | the whole graph, its description, and the file |
| `pyfunc` | a model of mlflow's, where mlflow is installed |
"""

from eqsep.export.file import to_onnx

__all__ = ["to_onnx"]
