"""Pictures as displays in scikit-learn's style: the only package that imports matplotlib.

A display holds what is drawn; `from_estimator` or `from_predictions` computes it, `plot` draws it
on axes, and `ax_` and `figure_` are where it was drawn.

| module | what it draws |
|---|---|
| `regions` | the score over the plane, and where it decides |
| `precision_recall` | precision against recall, a curve for each kind |
| `score_histogram` | the scores of each kind beside the threshold |
| `promise` | promised against measured false alarms |
| `closedness` | the score as one column goes far out |
| `backtest` | what methods had caught, over time |
| `drift` | a watch, over time |
| `history` | a training, epoch by epoch |
| `look` | the colours and axes of all of them |
| `saving`, `svg` | figures as files, and as a part of an HTML page |
"""

from eqsep.plots.backtest import BacktestDisplay
from eqsep.plots.closedness import ClosednessDisplay
from eqsep.plots.drift import DriftDisplay
from eqsep.plots.history import HistoryDisplay
from eqsep.plots.look import ANOMALY_COLOUR, NORMAL_COLOUR, SCORE_COLOURS
from eqsep.plots.precision_recall import PrecisionRecallByKindDisplay
from eqsep.plots.promise import PromiseDisplay
from eqsep.plots.regions import Panel, RegionDisplay, region_figure
from eqsep.plots.saving import check_figure_path, save_figure
from eqsep.plots.score_histogram import ScoreHistogramDisplay

__all__ = [
    "ANOMALY_COLOUR",
    "NORMAL_COLOUR",
    "SCORE_COLOURS",
    "BacktestDisplay",
    "ClosednessDisplay",
    "DriftDisplay",
    "HistoryDisplay",
    "Panel",
    "PrecisionRecallByKindDisplay",
    "PromiseDisplay",
    "RegionDisplay",
    "ScoreHistogramDisplay",
    "check_figure_path",
    "region_figure",
    "save_figure",
]
