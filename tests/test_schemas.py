"""Schemas: what a part of a kept object may be, and what is said of one that is not that."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from eqsep.schemas import (
    BOUND,
    CLASSES,
    FLAG,
    KEY,
    LABEL,
    NONE,
    NOT_NEGATIVE,
    NUMBER,
    POSITIVE,
    RATE,
    TEXT,
    TEXTS,
    WHOLE,
    Kept,
    ModelFileError,
    array_of,
    bounded,
    check,
    check_names,
    check_parts,
    counted,
    damaged,
    either,
    entries,
    fits,
    instance,
    items,
    kept,
    summary,
    word,
)
from eqsep.separators.planes import Frame

NAN, INF = float("nan"), float("inf")
FRAME = Frame(np.zeros(3), np.ones(3))


@pytest.mark.parametrize(
    ("schema", "accepted", "refused"),
    [
        (NUMBER, [0, -1.5, np.float32(2), np.int8(3)], [NAN, INF, True, "1", None, 1j]),
        (POSITIVE, [1, 1e-300, np.float64(2)], [0, 0.0, -1, INF, NAN, False]),
        (WHOLE, [1, 10**18, np.int64(4)], [0, -1, 1.0, True, "1"]),
        (FLAG, [True, False, np.True_], [0, 1, None, "True"]),
        (LABEL, ["a", "", np.str_("a"), True, 0, 1.5], [None, NAN, [], b"a"]),
        (TEXT, ["", "a"], [None, 3, ["a"]]),
        (TEXTS, [[], ["a", "b"]], [["a", "a"], ["a", 1], ("a",), "ab", None]),
        (RATE, [0.5, np.float64(0.01)], [0, 1, 1.0, -0.1, NAN, None, True]),
        (NOT_NEGATIVE, [0, 0.0, -0.0, 5, 2.5, np.float64(0)], [-1, NAN, INF, "0", None, False]),
        (BOUND, [np.uint64(0), np.uint64(2**64 - 1)], [0, np.int64(1), 1.0, None]),
        (KEY, [0, 2**32 - 1], [-1, 2**32, 1.0, True, None]),
        (NONE, [None], [0, False, ""]),
        (CLASSES, [np.arange(2), np.array(["a", "b"])], [np.arange(3), [0, 1], np.array([0, NAN])]),
        (word("a", None, 1), ["a", None, 1], ["b", True, 1.0, [], np.ones(2)]),
        (either(NONE, RATE), [None, 0.5], [1, 0, "a"]),
        (items(WHOLE), [[], [1, 2]], [[0], (1,), None]),
        (items(WHOLE, least=1), [[1]], [[]]),
        (entries(NUMBER), [{}, {"a": 1}], [{"a": "1"}, [], None]),
        (entries(NUMBER, among=("a",)), [{}, {"a": 1}], [{"b": 1}]),
        (kept(Frame), [FRAME], [None, object(), Frame]),
        (kept(Frame, optional=True), [FRAME, None], [0]),
        (instance("planes.Frame"), [FRAME], [None, Frame, "planes.Frame"]),
        (instance("Frame"), [FRAME], [None]),
        (
            array_of(2),
            [np.ones(2)],
            [np.ones(2, np.float16), np.array([1, INF]), np.ones(3), [1, 1]],
        ),
        (array_of(2, finite=False), [np.ones(2), np.array([1, INF])], [np.ones(2, np.float16)]),
        (array_of(None, kinds="U"), [np.array(["a"])], [np.array([1]), np.array(["a"], object)]),
        (
            bounded(None, dtype="float32"),
            [np.ones(2, np.float32), np.empty(0, np.float32)],
            [np.ones(2), np.full(1, 1e31, np.float32), np.full(1, NAN, np.float32)],
        ),
    ],
    ids=lambda value: getattr(value, "description", ""),
)
def test_what_a_schema_accepts(schema, accepted, refused):
    for value in accepted:
        assert schema.accepts(value, {}) is True, value
    for value in refused:
        assert schema.accepts(value, {}) is False, value


def test_axes_of_one_name_are_of_one_length():
    sizes = {}
    assert fits((4, 3), ("m", "d"), sizes)
    assert sizes == {"m": 4, "d": 3}
    assert fits((3, 7), ("d", None), sizes)
    assert not fits((3,), ("m",), sizes)
    assert not fits((4, 3), ("m",), sizes)
    assert not fits((0,), ("empty",), {})
    assert fits((0,), (0,), {})


def test_an_object_is_of_the_size_of_an_axis():
    length = instance("planes.Frame", length=lambda frame: len(frame.centre), axis="d")
    assert length.accepts(FRAME, {"d": 3})
    assert not length.accepts(FRAME, {"d": 4})
    assert counted("d").accepts(3, {"d": 3})
    assert not counted("d").accepts(2, {"d": 3})


def test_a_part_that_does_not_fit_is_named_with_what_it_is():
    parts = {"coef": np.zeros((2, 3)), "rate": 2}
    with pytest.raises(
        ModelFileError,
        match=r"Model.coef should be an array of shape \(m\) of finite numbers, but is an array of "
        r"float64 with shape \(2, 3\)",
    ):
        check(parts, {"coef": array_of("m")}, "detector.Model", sizes={})
    with pytest.raises(ModelFileError, match="rate should be a number between 0 and 1, but is 2"):
        check(parts, {"rate": RATE}, "Model", sizes={})


def test_parts_are_all_there_and_all_known():
    with pytest.raises(ModelFileError, match="of Model it lacks 'a' and has the unknown nothing"):
        check_names({}, "detector.Model", required=["a"])
    with pytest.raises(ModelFileError, match="it lacks nothing and has the unknown 'b'"):
        check_names({"a": 1, "b": 1}, "Model", required=["a"])
    check_names({"a": 1, "b": 1}, "Model", required=["a"], optional=["b", "c"])
    check_parts({"a": 1}, {"a": NUMBER, "b": NUMBER}, "Model", optional=("b",))
    with pytest.raises(ModelFileError, match=r"Model.b should be a finite number, but is 'x'"):
        check_parts({"a": 1, "b": "x"}, {"a": NUMBER, "b": NUMBER}, "Model", optional=("b",))


def test_long_values_are_told_in_short():
    assert len(summary("x" * 10_000)) < 100
    assert summary([1] * 1000) == "a list"
    assert summary(None) == "None"
    with pytest.raises(
        ModelFileError, match=r"^The model file is damaged: a node leads nowhere\.$"
    ):
        damaged("a node leads nowhere")


def test_every_field_with_a_schema_is_kept_and_required():
    @dataclass(frozen=True)
    class Line(Kept):
        slope: float
        shift: float = 0.0

        SCHEMAS: ClassVar = {"slope": NUMBER, "shift": NUMBER}

    assert Line.from_state(Line(2.0, 1.0).state()) == Line(2.0, 1.0)
    with pytest.raises(ModelFileError, match="of Line it lacks 'shift'"):
        Line.from_state({"slope": 2.0})
    with pytest.raises(ModelFileError, match=r"unknown 'bend'\. A newer eqsep may have"):
        Line.from_state({"slope": 2.0, "shift": 1.0, "bend": 1.0})
    with pytest.raises(ModelFileError, match=r"Line\.shift should be a finite number"):
        Line.from_state({"slope": 2.0, "shift": "x"})
