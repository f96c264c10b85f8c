"""Selection: of a batch of rows those to call anomalies, few of them falsely."""

import math
from typing import Any

import numpy as np
from scipy.stats import false_discovery_control

from eqsep.detector.promise import checked_share
from eqsep.detector.scoring import CalibrationWarning
from eqsep.errors import UserError, warn

MANY = 10  # alarms that must be there at once: with more it is worth a warning


def selected(p: np.ndarray, *, fdr: float, n_calibrating: int) -> np.ndarray:
    """Which rows of a batch to select, by Benjamini and Hochberg: a mask.

    On average at most a share of `fdr` of them is normal: conformal p-values of rows that share
    their held-out rows depend on one another in a way that the method allows.

    Examples
    --------
    >>> selected(np.array([0.001, 0.2, 0.002, 0.9]), fdr=0.1, n_calibrating=999)
    array([ True, False,  True, False])
    """
    fdr = checked_fdr(fdr)
    if not len(p):
        return np.zeros(0, dtype=bool)
    mask: np.ndarray = false_discovery_control(p) <= fdr + 1e-12
    needed = alarms_needed(len(p), fdr=fdr, n_calibrating=n_calibrating)
    if not mask.any() and needed > MANY:
        least, enough = 1 / (n_calibrating + 1), math.ceil(len(p) / (fdr * MANY)) - 1
        message = (
            f"No row is selected, and fewer than {needed:,} could not have been: a p-value by "
            f"{n_calibrating:,} held-out normal rows is at least {least:.2g}, and among "
            f"{len(p):,} rows that says little of one. By {enough:,} held-out rows {MANY} alarms "
            f"would do."
        )
        hint = "Add normal rows, pass fewer rows at a time, or allow a higher fdr."
        warn(CalibrationWarning(message, hint=hint, topic="none_selected"))
    return mask


def calibrating(detector: Any) -> int:
    """How many held-out rows are behind the p-values; refused where these are of whole groups.

    Warns of what the fit has found that breaks every promise.
    """
    if detector.feature_map_.grouping:
        raise UserError(
            "A share of false discoveries cannot be promised where whole groups are held out: rows "
            "of one group raise alarms together.",
            hint="Use predict, or fit without groups= and time=.",
            topic="no_fdr",
        )
    if detector.caution_ is not None:
        warn(detector.caution_.warning())
    return len(detector.calibration_.counting)


def alarms_needed(n_rows: int, *, fdr: float, n_calibrating: int) -> int:
    """How many rows of a batch must score above all held-out ones for any to be selected.

    Examples
    --------
    >>> [alarms_needed(10_000, fdr=0.1, n_calibrating=n) for n in (499, 4_999)]
    [200, 20]
    """
    return max(math.ceil(n_rows / (fdr * (n_calibrating + 1)) - 1e-9), 1)


def checked_fdr(fdr: float) -> float:
    """A rate of false discoveries as a number between 0 and 1."""
    return checked_share(fdr, name="fdr", means="With 0.1 one alarm in ten is false.")
