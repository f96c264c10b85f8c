"""Render records as one self-contained HTML page, and write it to a file."""

import os
import re
import shlex
from functools import cache, partial
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from eqsep import __version__
from eqsep.detector.namer import kind_text
from eqsep.files import written_whole
from eqsep.report.assessments import AssessmentReport
from eqsep.report.detectors import DetectorReport
from eqsep.report.evaluations import EvaluationReport
from eqsep.report.timelines import BacktestReport, WatchReport

Report = DetectorReport | AssessmentReport | EvaluationReport | BacktestReport | WatchReport

# Splits into text, a date or an option that must not be broken, text, …
_UNBROKEN_WORD = re.compile(r"(\b\d{4}-\d\d-\d\d(?:T(?=\d)|\b)|(?<!\S)--[a-z][a-z-]*)")


def html(report: Report, *, label: str | None = None) -> str:
    """The page as text, with styles and pictures inside: it fetches nothing."""
    from eqsep.report import pictures  # matplotlib is slow to import, and only needed here

    page = _environment(label).get_template(report.template)
    return page.render(report=report, draw=pictures, version=__version__)


@cache
def _environment(label: str | None = None) -> Environment:
    """Templates, each compiled once, for labels of that column."""
    loader = PackageLoader("eqsep.report", ".")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.filters |= {
        "share": lambda value, digits=1: f"{value:.{digits}%}",
        "number": number,
        "signed": partial(number, sign="+"),
        "kind": partial(kind_text, column=label),
        "word": shlex.quote,
        "literal": repr,
        "split_whole": _UNBROKEN_WORD.split,
    }
    return environment


def write_report(report: Report, path: str | os.PathLike[str], *, label: str | None = None) -> Path:
    """Write the page to `path`, completely or not at all, and return the path.

    Kinds that say nothing by themselves, such as "no", are shown with the column `label`.

    >>> import tempfile
    >>> import numpy as np
    >>> from eqsep import Detector
    >>> from eqsep.report import HeldOut, detector_report
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> report = detector_report(Detector().fit(X[:400]), HeldOut(X[400:], ["normal"] * 200))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(report, Path(folder) / "report.html").read_text()[:15]
    '<!DOCTYPE html>'
    """
    page = html(report, label=label).encode()
    with written_whole(path) as file:
        file.write(page)
    return Path(path)


def number(value: float, digits: int = 3, sign: str = "") -> str:
    """A number with this many decimals, without a minus sign if it rounds to 0."""
    return f"{round(value, digits) + 0.0:{sign}.{digits}f}"
