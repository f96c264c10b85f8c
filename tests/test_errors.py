"""Errors and warnings: their words, their fields, and that processes can send them."""

import copy
import pickle
import warnings

import pytest

from eqsep.checks import CountingColumnWarning
from eqsep.client import ServiceError
from eqsep.datasets.home import MissingDataError
from eqsep.errors import (
    EqsepWarning,
    Message,
    MissingExtraError,
    ParameterError,
    UserError,
    counted,
    did_you_mean,
    quoted,
    visible,
)
from eqsep.tables.reading import UnreadableError

SHARE = "false_alarm_rate must be a number between 0 and 1, got 2. 0.01 allows one in a hundred."


def wrong_share():
    expected, hint = "a number between 0 and 1", "0.01 allows one in a hundred."
    return ParameterError("false_alarm_rate", expected=expected, got=2, hint=hint)


MESSAGES = [
    UserError("There are no rows.", hint="Pass some.", topic="no_rows", n=0),
    MissingExtraError("Install it.", hint="pip install it"),
    MissingDataError("There is no file.", hint="Name another.", variable="HOME"),
    CountingColumnWarning("It counts.", hint="Leave it out.", column="id"),
    ServiceError("Not now.", status=503),
    UnreadableError("No number.", hint="Correct it.", row=7),
    wrong_share(),
]


def test_the_text_is_message_and_hint():
    error = UserError("There is no column 'id'.", hint="Pass y=None.", column="id")
    assert str(error) == "There is no column 'id'. Pass y=None."
    assert (error.message, error.hint) == ("There is no column 'id'.", "Pass y=None.")
    assert (error.topic, error.fields) == ("UserError", {"column": "id"})
    assert str(UserError("There are no rows.")) == "There are no rows."
    assert str(UserError()) == ""


def test_a_topic_may_be_given():
    assert UserError("There are no rows.", topic="no_rows").topic == "no_rows"


def test_a_parameter_is_named_with_what_was_expected_and_what_came():
    error = wrong_share()
    assert isinstance(error, ValueError)
    assert str(error) == SHARE
    expected = {"parameter": "false_alarm_rate", "expected": "a number between 0 and 1", "got": 2}
    assert error.fields == expected
    assert str(ParameterError("how", expected="'a' or 'b'", got="c")) == (
        "how must be 'a' or 'b', got 'c'."
    )


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_copies_and_pickles_say_the_same(message, again):
    for error in (message, message.at("rows.csv").at("row 3")):
        made = again(error)
        assert type(made) is type(error)
        assert (str(made), made.args, vars(made)) == (str(error), error.args, vars(error))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_place_comes_first_and_leaves_the_message_as_it_was(message):
    text = str(message)
    placed = message.at("rows.csv")
    assert type(placed) is type(message)
    assert str(placed) == f"rows.csv: {text}"
    assert str(placed.at("row 3")) == f"row 3: rows.csv: {text}"
    assert placed.fields == message.fields
    assert placed.topic == message.topic
    assert str(message) == text


def test_a_warning_is_shown_with_its_hint():
    with pytest.warns(EqsepWarning, match=r"^Rows are few\. Add some\.$") as caught:
        warnings.warn(EqsepWarning("Rows are few.", hint="Add some."), stacklevel=1)
    assert isinstance(caught[0].message, Message)


def test_names_numbers_and_foreign_text_in_messages():
    assert quoted("abc", most=2) == "'a', 'b' and 1 more"
    assert (counted(1, "row"), counted(1200, "row")) == ("1 row", "1,200 rows")
    assert visible("\x1b[31mred\x07\n") == "\\x1b[31mred\\x07\n"
    there = ["Temperature", "shape"]
    assert did_you_mean(["temperature", "weight"], there) == " Did you mean 'Temperature'?"
    assert did_you_mean(["qualty"], ["shape", "quality"]) == " Did you mean 'quality'?"
