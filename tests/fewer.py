"""Fewer draws and plainer pictures: these take much of the time of tests."""

from contextlib import contextmanager

import pytest

INTERVALS = {"average_precision_interval", "average_precision_difference", "roc_auc_interval"}


@contextmanager
def few_draws():
    """Few draws for an interval: its ends are then rough, and all else as it is."""
    from eqsep.evaluation import assessment
    from eqsep.report import evaluations, measured

    def with_few(interval):
        return lambda *data, **options: interval(*data, **options | {"n_resamples": 40})

    with pytest.MonkeyPatch.context() as patch:
        for module in (assessment, evaluations, measured):
            for name in INTERVALS & vars(module).keys():
                patch.setattr(module, name, with_few(getattr(module, name)))
        yield


@contextmanager
def plain_pictures():
    """All is drawn, where it would be without a search for room: that is half of a picture."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConstrainedLayoutEngine, "execute", lambda *_: None)
        yield
