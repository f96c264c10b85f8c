"""Pictures as displays in scikit-learn's style: the only package that imports matplotlib.

A display holds what is drawn; `from_estimator` or `from_predictions` computes it, `plot` draws it
on axes, and `ax_` and `figure_` are where it was drawn.

| module | what it draws |
|---|---|
| `regions` | where a score is normal: over the plane, and along one column that goes far out |
| `measures` | precision and scores by kind, promised against measured false alarms |
| `history` | a training, a watch and a backtest, over time |
| `look` | what they share: the class `Display`, colours and axes |
| `figures` | figures as files, and as a part of an HTML page |
"""

from eqsep.plots.figures import check_figure_path, save_figure
from eqsep.plots.history import BacktestDisplay, DriftDisplay, HistoryDisplay
from eqsep.plots.look import ANOMALY_COLOUR, NORMAL_COLOUR, SCORE_COLOURS
from eqsep.plots.measures import (
    PrecisionRecallByKindDisplay,
    PromiseDisplay,
    ScoreHistogramDisplay,
)
from eqsep.plots.regions import ClosednessDisplay, Panel, RegionDisplay, region_figure

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
