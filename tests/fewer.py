"""Fewer draws and trees, plainer pictures, templates and types read once: these take much time."""

from contextlib import contextmanager
from dataclasses import replace
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
    """Few trees in detectors without a config of their own, and in the forests of peers.

    scikit-learn looks at the labels of each tree, for a quarter of the time of a small one; where
    there are more trees, it still does.
    """
    from sklearn.tree import _classes

    from eqsep import Detector
    from eqsep.evaluation.peers import Peer

    resolved, build = Detector._resolved_config, Peer.build

    def with_few(detector):
        config = resolved(detector)
        return config if detector.config else replace(config, n_trees=10, n_trees_per_fold=8)

    def build_few(peer, **settings):
        is_forest = "Forest" in getattr(peer.make, "__name__", "")
        return build(peer, **({"n_estimators": 20} if is_forest else {}) | settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Detector, "_resolved_config", with_few)
        patch.setattr(Peer, "build", build_few)
        patch.setattr(_classes, "check_classification_targets", lambda _: None)
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


_TYPES = {}


@contextmanager
def types_read_once():
    """Types of requests and responses are read once for all applications, which each read them."""
    from fastapi._compat import v2

    read = v2.TypeAdapter

    def read_once(annotated, *, config=None):
        key = annotated.__origin__, repr(annotated.__metadata__), repr(config)
        if key not in _TYPES:
            _TYPES[key] = read(annotated, config=config)
        return _TYPES[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(v2, "TypeAdapter", read_once)
        yield
