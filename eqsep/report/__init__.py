"""Reports: one self-contained HTML page of a fitted detector, of a test, a backtest, a watch
or an evaluation.

Computing gives plain records; rendering only reads them.

| module | what it knows |
|---|---|
| `detectors` | the report of a detector: all parts of it |
| `learnt` | what a detector has learnt and promises |
| `measured` | what it finds among rows that it has not learnt, and the work of rows to come |
| `reasons` | the highest alarms with their reasons; what one unusual value of a column does |
| `advice` | what is caught, and what to do next |
| `evaluations` | the report of an evaluation: each kind seen in turn, several methods |
| `assessments` | the report of a test: a model on labelled rows |
| `timelines` | the reports of a backtest and of a watch |
| `pictures` | records as SVG, by the displays of `eqsep.plots` |
| `page` | records as HTML, and HTML as a file |
"""

from eqsep.report.assessments import AssessmentReport, assessment_report
from eqsep.report.detectors import DetectorReport, HeldOut, Usage, detector_report
from eqsep.report.evaluations import EvaluationReport, evaluation_report
from eqsep.report.page import html, write_report
from eqsep.report.timelines import BacktestReport, WatchReport, watch_report

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
