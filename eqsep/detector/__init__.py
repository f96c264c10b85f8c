"""The detector: mixed tables in, alarms with a promised rate of false ones out.

| module | what it knows |
|---|---|
| `detector` | the estimator |
| `answers` | labels: normal, a kind, or missing |
| `parameters` | what no detector can be fitted with |
| `terms` | what is agreed on before rows are learnt, from all of them or from a survey |
| `survey` | what one pass over many rows tells: labels, names, a sample |
| `naming` | names that the sample does not have |
| `pieces` | what some rows teach: sums that add up, and the rows held out of them |
| `streaming` | a fit to batches of rows |
| `feature_map` | what is fixed at the first fit: encoding, landmarks, width, who calibrates |
| `width` | the choice of the kernel's width, without an unseen kind to look at |
| `calibration` | the promise: a threshold for a rate of false alarms |
| `learning` | what cannot be merged or forgotten, and what was not learnt well |
| `verdicts` | score, p-value, alarm and kind of each row |
| `explanation` | which columns drive a score, and towards which normal value |
| `closedness` | what the score does as one column goes far out |
"""

from eqsep.detector.calibration import PromiseWarning
from eqsep.detector.closedness import ColumnClosedness, End, closedness_by_column
from eqsep.detector.detector import Detector
from eqsep.detector.feature_map import FeatureMap
from eqsep.detector.learning import NewKindWarning

__all__ = [
    "ColumnClosedness",
    "Detector",
    "End",
    "FeatureMap",
    "NewKindWarning",
    "PromiseWarning",
    "closedness_by_column",
]
