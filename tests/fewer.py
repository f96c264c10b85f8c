"""Fewer draws and trees, plainer pictures, templates read once: these take much time of tests."""

from contextlib import contextmanager
from html import escape

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
def few_trees():
    """Few trees in detectors without a config of their own, and in the forests of peers."""
    from eqsep.detector.config import Config
    from eqsep.evaluation.peers import Peer

    build = Peer.build

    def build_few(peer, **settings):
        is_forest = "Forest" in getattr(peer.make, "__name__", "")
        return build(peer, **({"n_estimators": 20} if is_forest else {}) | settings)

    few = Config(n_trees=10, n_trees_per_fold=8, n_references=500, n_surprise_trees=20)
    with pytest.MonkeyPatch.context() as patch, few.as_default():
        patch.setattr(Peer, "build", build_few)
        yield


@contextmanager
def plain_pictures():
    """All is drawn once, where it would be without a search for room: a third of a picture."""
    from matplotlib.figure import Figure

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "get_layout_engine", lambda _: None)
        yield


@contextmanager
def unwritten_pictures():
    """Pictures of reports are drawn and not written, which takes most of the time of a page."""
    from eqsep.report import pictures

    def unwritten(_figure, *, name, text):
        return f'<svg id="{name}" role="img" aria-label="{escape(text)}"></svg>'

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "inline_svg", unwritten)
        yield


@contextmanager
def templates_compiled_once():
    """Templates are compiled once for all applications and reports, which each have their own."""
    from jinja2 import Environment

    compiled, kept = Environment.compile, {}

    def compile_once(environment, source, name=None, filename=None, **options):
        key = source, name, filename, *options.items()
        if key not in kept:
            kept[key] = compiled(environment, source, name, filename, **options)
        return kept[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Environment, "compile", compile_once)
        yield
