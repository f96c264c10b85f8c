"""Pictures as displays in scikit-learn's style: the only package that imports matplotlib.

A display holds what is drawn; `from_estimator` or `from_predictions` computes it, `plot` draws it
on axes, and `ax_` and `figure_` are where it was drawn.
"""

from eqsep.plots.figures import check_figure_path, save_figure
from eqsep.plots.history import BacktestDisplay, DriftDisplay, HistoryDisplay
from eqsep.plots.look import ANOMALY_COLOUR, NORMAL_COLOUR, SCORE_COLOURS
from eqsep.plots.measures import (
    PrecisionRecallByKindDisplay,
    PromiseDisplay,
    ReliabilityDisplay,
    ScoreHistogramDisplay,
)
from eqsep.plots.regions import ClosednessDisplay, RegionDisplay

__all__ = ["ANOMALY_COLOUR", "NORMAL_COLOUR", "SCORE_COLOURS", "BacktestDisplay"]
__all__ += ["ClosednessDisplay", "DriftDisplay", "HistoryDisplay", "PrecisionRecallByKindDisplay"]
__all__ += ["PromiseDisplay", "RegionDisplay", "ReliabilityDisplay", "ScoreHistogramDisplay"]
__all__ += ["check_figure_path", "save_figure"]
