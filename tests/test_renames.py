"""Renamed parameters: the old name works for one version, warns, and is not kept."""

import inspect
import warnings

import pytest
from sklearn.base import BaseEstimator, clone

import eqsep
from eqsep import Detector
from eqsep.errors import UserError
from eqsep.renames import DEPRECATED, RENAMES, Renamed, parameter, parameters


class Wide(BaseEstimator):
    """An estimator of which `narrowness` is now called `width`, its inverse."""

    def __init__(self, *, width=None, narrowness=DEPRECATED):
        self.width = width
        self.narrowness = narrowness


class Wider(Wide):
    """Derived from it, with the same parameters."""

    def __init__(self, *, width=None, narrowness=DEPRECATED):
        super().__init__(width=width, narrowness=narrowness)


@pytest.fixture(autouse=True)
def _renames(monkeypatch):
    renamed = Renamed("width", removed_in="9", convert=lambda narrow: 1 / narrow)
    monkeypatch.setitem(RENAMES, "Wide", {"narrowness": renamed})


def fit(estimator):
    return parameter(estimator, "width")


@pytest.mark.parametrize("cls", [Wide, Wider])
def test_the_old_name_is_taken_and_converted(cls):
    with pytest.warns(FutureWarning, match=r"write width=0\.25 for narrowness=4") as caught:
        assert fit(cls(narrowness=4)) == 0.25
    assert f"{cls.__name__}(narrowness=) is now called width" in str(caught[0].message)
    assert "gone in eqsep 9" in str(caught[0].message)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("width", [None, 2.0])
def test_the_present_name_gives_no_warning(width):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(Wide(width=width)) is width
        assert parameter(Wide(narrowness=4), "width", warn=False) == 0.25


def test_both_names_are_refused():
    with pytest.raises(UserError, match=r"both width=2\.0 and narrowness=4.* Give width alone"):
        fit(Wide(width=2.0, narrowness=4))


def test_what_is_kept_has_the_present_names_alone():
    assert parameters(Wide(narrowness=4)) == {"width": 0.25}
    assert parameters(Wider(width=3)) == {"width": 3}


def test_copies_keep_the_name_that_was_given():
    estimator = clone(Wide(narrowness=4))
    assert estimator.get_params() == {"width": None, "narrowness": 4}
    assert repr(Wide()) == "Wide()"


def test_every_renamed_parameter_of_the_library_exists_by_both_names():
    for name in set(RENAMES) & set(dir(eqsep)):
        known = inspect.signature(getattr(eqsep, name)).parameters
        for old, renamed in RENAMES[name].items():
            assert known[old].default == DEPRECATED
            assert renamed.to in known


@pytest.mark.parametrize("width", [0, "a"])
def test_an_old_name_with_a_value_that_cannot_be_is_refused(width):
    told = rf"Detector\(width=\) is now called bandwidth, and {width!r} is no value of it"
    with pytest.raises(UserError, match=told):
        Detector(width=width).fit([[0.0], [1.0]])
