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

__all__ = ["OVERALL", "AssessedKind", "Assessment", "Backtest", "CaughtKind", "Contender", "Cost"]
__all__ += ["Curve", "DetectionDelay", "Difference", "Fixed", "GroupRates", "Interval", "KindDelay"]
__all__ += ["Learning", "LeaveOneKindOut", "MeasuredPromise", "NamedKind", "Names", "NamesTried"]
__all__ += ["Period", "PromiseVerdict", "Reliability", "Retrained", "Review", "Schedule"]
__all__ += ["ScoreHistogram", "SeenKind", "SetsFound", "Share", "Tested", "TopScores"]
__all__ += ["anomaly_average_precision", "anomaly_score", "assess", "average_precision_by_kind"]
__all__ += ["average_precision_difference", "average_precision_interval", "backtest"]
__all__ += ["cross_validate_kind", "detection_delay", "kept_promise", "kept_promises"]
__all__ += ["leave_one_kind_out", "precision_recall_by_kind", "prevalence_by_kind"]
__all__ += ["roc_auc_interval", "score_histogram"]
