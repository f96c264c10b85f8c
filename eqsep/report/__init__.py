"""Reports: one self-contained HTML page of a fitted detector, of a test, a backtest, a watch
or an evaluation.

Computing gives plain records; rendering only reads them.

| module | what it knows |
|---|---|
| `detectors` | the report of a detector: all parts of it |
| `learnt` | what a detector has learnt and promises |
| `measured` | what it finds among rows that it has not learnt |
| `outlook` | what rows to come bring: the work of alarms, and what changes with time |
| `advice` | what is caught, and what to do next |
| `columns` | what one strange value of each column does |
| `alarms` | the highest alarms of each kind, with their reasons |
| `evaluations` | the report of an evaluation: each kind seen in turn, several methods |
| `assessments` | the report of a test: a model on labelled rows that one has |
| `backtests` | the report of a backtest: period by period |
| `watches` | the report of a watch: an episode over time |
| `pictures` | records as SVG, by the displays of `eqsep.plots` |
| `page` | records as HTML, and HTML as a file |
"""

from eqsep.report.assessments import AssessmentReport, assessment_report
from eqsep.report.backtests import BacktestReport
from eqsep.report.detectors import DetectorReport, HeldOut, Usage, detector_report
from eqsep.report.evaluations import EvaluationReport, evaluation_report
from eqsep.report.page import html, write_report
from eqsep.report.watches import WatchReport, watch_report

__all__ = [
    "AssessmentReport",
    "BacktestReport",
    "DetectorReport",
    "EvaluationReport",
    "HeldOut",
    "Usage",
    "WatchReport",
    "assessment_report",
    "detector_report",
    "evaluation_report",
    "html",
    "watch_report",
    "write_report",
]
