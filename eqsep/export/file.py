"""The whole model: inputs, outputs, its description, and the file."""

import json
import os
from importlib.util import find_spec
from typing import Any

import numpy as np

from eqsep import __version__
from eqsep.detector.audit import Fitted
from eqsep.detector.model import Model
from eqsep.errors import MissingExtraError, UserError
from eqsep.export.graph import AT_ONCE, Graph, Value, in_blocks
from eqsep.export.score import ScoreGraph
from eqsep.export.table import TableGraph
from eqsep.files import written_whole
from eqsep.tables.encodings import KNOTS

OUTPUTS = ("score", "decision", "label", "p_value")
OPSETS = {"": 18, "ai.onnx.ml": 3}
IR_VERSION = 8  # the one of opset 18: older runtimes refuse newer ones


def to_onnx(detector: Fitted | Model, path: str | os.PathLike[str]) -> None:
    """Write a fitted detector as one ONNX graph, from the table's columns to alarms.

    Parameters
    ----------
    detector : Detector or Model
        A fitted detector, or its `model_`. The threshold is that of its current promise.
    path : str or path-like

    Notes
    -----
    **Inputs**: one of shape (n,) for each column that was not dropped, under its name. Numbers,
    truth values (0 and 1), durations (in seconds), dates (in seconds since 1970, UTC) and columns
    without a value in training are doubles, NaN if missing; names are strings, empty if missing.
    After a fit to an array of numbers the only input is "X", doubles of shape (n, d). **Outputs**
    of shape (n,): "score", "decision" (the score less the threshold), "label" (1 if the decision
    is above 0, else 0) and "p_value". A column must have a name, other than that of an output, and
    the empty string must not be among its values.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from onnxruntime import InferenceSession
    >>> from eqsep import Detector
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> detector = Detector(n_landmarks=50, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     detector.to_onnx(Path(folder) / "detector.onnx")
    ...     session = InferenceSession(Path(folder) / "detector.onnx")
    >>> session.run(["label"], {"X": np.array([[0.0, 0.0], [0.0, 9.0]])})[0].tolist()
    [0, 1]
    """
    if find_spec("onnx") is None:
        raise MissingExtraError("to_onnx needs ONNX. Install it with: pip install 'eqsep[onnx]'")
    model = detector if isinstance(detector, Model) else detector.model_
    if model.plan.windows is not None:
        raise UserError(
            "A graph answers row by row and cannot take windows of the rows before: score with "
            "eqsep, or fit without windows."
        )
    data = _graph_of(model).SerializeToString()
    with written_whole(path) as file:
        file.write(data)


def _graph_of(model: Model) -> Any:
    """The whole graph, as onnx has it."""
    from onnx import TensorProto, helper

    table, scores = TableGraph(model.plan.encoder), ScoreGraph(model)
    table.check(reserved=OUTPUTS)
    inputs = table.inputs()
    graph = Graph(taken=frozenset([*OUTPUTS, *(i.name for i in inputs)]))
    _add_outputs(graph, table, scores)
    types = dict.fromkeys(OUTPUTS, TensorProto.DOUBLE) | {"label": TensorProto.INT64}
    outputs = [helper.make_tensor_value_info(name, of, ["n"]) for name, of in types.items()]
    made = helper.make_model(
        helper.make_graph(graph.nodes, "detector", inputs, outputs, initializer=graph.constants),
        producer_name="eqsep",
        producer_version=__version__,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid(*opset) for opset in OPSETS.items()],
    )
    description = {
        "kinds": json.dumps(model.kinds),
        "columns": json.dumps({column.name: column.kind for column in table.columns}),
        "false_alarm_rate": repr(float(model.promise.false_alarm_rate)),
        "threshold": repr(scores.limit),
        "eqsep": __version__,
    }
    helper.set_model_props(made, description)
    return made


def _add_outputs(graph: Graph, table: TableGraph, scores: ScoreGraph) -> None:
    numbers, codes = table.read(graph)

    def body(inner: Graph, rows: Value) -> list[Value]:
        taken = (value and inner("Gather", value, rows, axis=0) for value in (numbers, codes))
        score = scores.score(inner, table.encode(inner, *taken))
        return [score, scores.p_value(inner, score)]

    model = scores.model
    n_differences = table.n_differences * scores.n_points
    n_compared = max(KNOTS * len(table.numbers), len(model.calibration.scores))
    most = int(np.clip(AT_ONCE // max(n_differences, n_compared), 1, 256))
    first: Any = numbers or codes
    n = graph("Slice", graph("Shape", first), np.array([0]), np.array([1]))
    score, p_value = in_blocks(graph, n, body, most=most)
    graph("Identity", score, result="score")
    graph("Identity", p_value, result="p_value")
    graph("Sub", score, scores.limit, result="decision")
    graph.cast(graph("Greater", "decision", 0.0), np.int64, result="label")
