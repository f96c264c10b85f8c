"""What a detector is handed on as: one ONNX graph, or an mlflow model."""

from eqsep.export.file import to_onnx

__all__ = ["to_onnx"]
