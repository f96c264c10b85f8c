"""Fewer draws and plainer pictures: these take much of the time of tests."""

from contextlib import contextmanager

import pytest


@contextmanager
def few_draws():
    """Few draws for an interval: its ends are then rough, and all else as it is."""
    from eqsep.evaluation import assessment
    from eqsep.report import evaluations, measured

    with pytest.MonkeyPatch.context() as patch:
        for module in (assessment, evaluations, measured):
            patch.setattr(module, "_RESAMPLES", 40)
        yield


@contextmanager
def plain_pictures():
    """All is drawn, where it would be without a search for room: that is half of a picture."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConstrainedLayoutEngine, "execute", lambda *_: None)
        yield
