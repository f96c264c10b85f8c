"""Reports: one self-contained HTML page on a detector, test, backtest, watch or evaluation.

Plain records are computed first; the templates only read them.
"""

from eqsep.report.assessments import AssessmentReport, assessment_report
from eqsep.report.detectors import DetectorReport, HeldOut, Usage, detector_report
from eqsep.report.evaluations import EvaluationReport, evaluation_report
from eqsep.report.page import html, write_report
from eqsep.report.timelines import BacktestReport, WatchReport, watch_report

__all__ = ["AssessmentReport", "BacktestReport", "DetectorReport", "EvaluationReport", "HeldOut"]
__all__ += ["Usage", "WatchReport", "assessment_report", "detector_report", "evaluation_report"]
__all__ += ["html", "watch_report", "write_report"]
