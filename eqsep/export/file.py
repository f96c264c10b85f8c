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
from eqsep.export.graph import Graph, Value, in_blocks, rows_at_once
from eqsep.export.score import ScoreGraph
from eqsep.export.table import TableGraph
from eqsep.files import written_whole
from eqsep.tables.encodings import KNOTS

OUTPUTS = ("score", "decision", "label", "p_value")
OPSETS = {"": 18, "ai.onnx.ml": 3}
IR_VERSION = 8  # the one of opset 18: older runtimes refuse newer ones


def to_onnx(detector: Fitted | Model, path: str | os.PathLike[str]) -> None:
    """Write a fitted detector as one ONNX graph, from the table's columns to alarms.

    The file is first written next to `path` under another name and then renamed.

    Parameters
    ----------
    detector : Detector or Model
        A fitted detector, or its `model_`. The threshold is that of its present promise.
    path : str or path-like

    Raises
    ------
    ImportError
        The package onnx is not installed.
    ValueError
        A column cannot be an input: it has an output's name or none, or the empty string, which
        says that a name is missing, is one of its names.

    Notes
    -----
    **Inputs**: one of shape (n,) for each column that was not dropped, under its name. Numbers,
    truth values (0 and 1), durations (in seconds) and dates (in seconds since 1970, UTC) are
    doubles, NaN where missing, and so is a column that had no value in training; names are
    strings, empty where missing. Where the detector was fitted to an array of numbers: "X", doubles
    of shape (n, d). **Outputs** of shape (n,): "score", "decision" (the score less the threshold),
    "label" (1 where the decision is above 0, else 0) and "p_value".

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
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
    from onnx import helper

    table, scores = TableGraph(model.plan.encoder), ScoreGraph(model)
    table.check(reserved=OUTPUTS)
    inputs = table.inputs()
    graph = Graph(taken=[*OUTPUTS, *(i.name for i in inputs)])
    _outputs(graph, table, scores)
    whole = helper.make_graph(
        graph.nodes, "detector", inputs, _declared_outputs(), initializer=graph.constants
    )
    made = helper.make_model(
        whole,
        producer_name="eqsep",
        producer_version=__version__,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid(*opset) for opset in OPSETS.items()],
    )
    helper.set_model_props(made, _description(model, table, scores) | {"eqsep": __version__})
    return made


def _outputs(graph: Graph, table: TableGraph, scores: ScoreGraph) -> None:
    read = table.read(graph)

    def body(inner: Graph, rows: Value) -> list[Value]:
        score = scores.score(inner, table.encode(inner, read.take(inner, rows)))
        return [score, scores.p_value(inner, score)]

    model = scores.model
    n_differences = table.n_differences * len(model.plan.terms.landmarks)
    n_compared = max(KNOTS * len(table.numbers), len(model.calibration.scores))
    most = rows_at_once(max(n_differences, n_compared))
    first: Any = read.numbers or read.codes
    n = graph("Slice", graph("Shape", first), np.array([0]), np.array([1]))
    score, p_value = in_blocks(graph, n, body, most=most)
    graph("Identity", score, result="score")
    graph("Identity", p_value, result="p_value")
    graph("Sub", score, scores.limit, result="decision")
    alarm = graph("Greater", "decision", 0.0)
    graph.cast(alarm, np.int64, result="label")


def _declared_outputs() -> list[Any]:
    from onnx import TensorProto, helper

    whole = {"label": TensorProto.INT64}
    return [
        helper.make_tensor_value_info(name, whole.get(name, TensorProto.DOUBLE), ["n"])
        for name in OUTPUTS
    ]


def _description(model: Model, table: TableGraph, scores: ScoreGraph) -> dict[str, str]:
    return {
        "kinds": json.dumps(model.kinds),
        "columns": json.dumps(table.kinds()),
        "false_alarm_rate": repr(float(model.promise.false_alarm_rate)),
        "threshold": repr(scores.limit),
    }
