"""How well anomalies are found among normal rows, for each kind, seen and unseen separately.

Larger scores are always more anomalous, and each kind is compared with *all* normal rows.
"""

from eqsep.evaluation.assessment import (
    AssessedKind,
    Assessment,
    Cost,
    DetectionDelay,
    KindDelay,
    Review,
    TopScores,
    assess,
    detection_delay,
)
from eqsep.evaluation.backtests import (
    Backtest,
    CaughtKind,
    Contender,
    Fixed,
    Learning,
    Period,
    Retrained,
    Schedule,
    backtest,
)
from eqsep.evaluation.comparison import (
    Comparison,
    PairedComparison,
    Statistic,
    compare,
    compare_pair,
    mean_ranks,
)
from eqsep.evaluation.kinds import (
    OVERALL,
    Curve,
    Difference,
    Interval,
    ScoreHistogram,
    average_precision_by_kind,
    average_precision_difference,
    average_precision_interval,
    precision_recall_by_kind,
    prevalence_by_kind,
    roc_auc_interval,
    score_histogram,
)
from eqsep.evaluation.left_out import (
    LeaveOneKindOut,
    SeenKind,
    Tested,
    cross_validate_kind,
    leave_one_kind_out,
)
from eqsep.evaluation.names import NamedKind, Names, NamesTried, Reliability, SetsFound
from eqsep.evaluation.promises import (
    GroupRates,
    MeasuredPromise,
    PromiseVerdict,
    Share,
    kept_promise,
    kept_promises,
)
from eqsep.separators.scores import anomaly_average_precision, anomaly_score

__all__ = ["OVERALL", "AssessedKind", "Assessment", "Backtest", "CaughtKind", "Comparison"]
__all__ += ["Contender", "Cost", "Curve", "DetectionDelay", "Difference", "Fixed", "GroupRates"]
__all__ += ["Interval", "KindDelay", "Learning", "LeaveOneKindOut", "MeasuredPromise", "NamedKind"]
__all__ += ["Names", "NamesTried", "PairedComparison", "Period", "PromiseVerdict", "Reliability"]
__all__ += ["Retrained", "Review", "Schedule", "ScoreHistogram", "SeenKind", "SetsFound", "Share"]
__all__ += ["Statistic", "Tested", "TopScores", "anomaly_average_precision", "anomaly_score"]
__all__ += ["assess", "average_precision_by_kind", "average_precision_difference"]
__all__ += ["average_precision_interval", "backtest", "compare", "compare_pair"]
__all__ += ["cross_validate_kind", "detection_delay", "kept_promise", "kept_promises"]
__all__ += ["leave_one_kind_out", "mean_ranks", "precision_recall_by_kind", "prevalence_by_kind"]
__all__ += ["roc_auc_interval", "score_histogram"]
