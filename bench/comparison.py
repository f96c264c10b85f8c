"""Detectors compared over several data sets: by their ranks, or in pairs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from eqsep.errors import UserError
from eqsep.evaluation.kinds import check_share
from eqsep.evaluation.left_out import aligned


@dataclass(frozen=True)
class Statistic:
    """The value of a test's statistic and its p-value."""

    value: float
    p_value: float

    def __str__(self) -> str:
        return f"{self.value:.2f} (p = {self.p_value:.2g})"


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`; `str()` gives a table, the best mean rank first."""

    mean: dict[str, float]  #: Of each detector, over the data sets.
    mean_rank: dict[str, float]  #: Rank 1 is the best.
    n_datasets: int
    chance: float | None  #: The mean prevalence: what a random score gets. None if not known.
    friedman: Statistic  #: Friedman's chi-squared of the ranks, corrected for ties.
    iman_davenport: Statistic  #: The F statistic made of it, which is less conservative.
    critical_difference: float  #: Nemenyi's: mean ranks that differ by less show no difference.
    confidence: float  #: Of the critical difference.

    def differ(self, *detectors: str) -> bool:
        """Whether the mean ranks of these detectors differ by more than the critical difference."""
        ranks = [self.mean_rank[name] for name in detectors]
        return max(ranks) - min(ranks) > self.critical_difference

    def __str__(self) -> str:
        best = min(self.mean_rank, key=self.mean_rank.__getitem__)
        cells = [("detector", "mean", "mean rank", "behind the best ")]
        for name in sorted(self.mean_rank, key=self.mean_rank.__getitem__):
            behind = self.mean_rank[name] - self.mean_rank[best]
            mark = "*" if self.differ(name, best) else " "
            row = (name, f"{self.mean[name]:.3f}", f"{self.mean_rank[name]:.3f}")
            cells.append((*row, f"{behind:.3f}{mark}"))
        if self.chance is not None:
            cells.append(("(chance)", f"({self.chance:.3f})", "", ""))
        return "\n".join(
            [
                *(line.rstrip() for line in aligned(cells).splitlines()),
                f"{self.n_datasets} data sets; Friedman {self.friedman}, "
                f"Iman-Davenport {self.iman_davenport}",
                f"* by more than the critical difference {self.critical_difference:.3f} "
                f"(Nemenyi, {self.confidence:.0%})",
            ]
        )


@dataclass(frozen=True)
class PairedComparison:
    """The result of `compare_pair`: two detectors on the same data sets."""

    first: str
    second: str
    wins: int  #: The data sets on which the first is better.
    ties: int
    losses: int
    mean_gain: float  #: The first less the second.
    wilcoxon: Statistic  #: The signed-rank test, two-sided: the smaller sum of ranks.

    def __str__(self) -> str:
        return (
            f"{self.first} against {self.second}: wins {self.wins}, ties {self.ties}, "
            f"losses {self.losses}; mean gain {self.mean_gain:+.3f}; "
            f"Wilcoxon {self.wilcoxon}"
        )


def mean_ranks(table: Mapping[str, Any]) -> dict[str, float]:
    """The mean rank of each detector in a `table` as in `compare`; 1 is the best, ties share ranks.

    >>> mean_ranks({"kernel": [0.9, 0.8], "linear": [0.5, 0.8], "forest": [0.7, 0.6]})
    {'kernel': 1.25, 'linear': 2.25, 'forest': 2.5}
    """
    return _mean_ranks(*_values(table, at_least=2))


def compare(
    table: Mapping[str, Any], *, prevalence: Any = None, confidence: float = 0.95
) -> Comparison:
    """Compare three or more detectors over several data sets, by their mean ranks.

    If Friedman's test finds any difference, two detectors differ if their mean ranks are more than
    Nemenyi's critical difference apart, q sqrt(k (k + 1) / 6 N) for k detectors and N data sets
    (J. Demšar, *Statistical comparisons of classifiers over multiple data sets*, JMLR 7, 2006).

    Parameters
    ----------
    table : mapping of str to array-like of shape (n_datasets,), or frame
        The values of each detector on the same data sets; larger is better. The tests assume that
        data sets are independent: average over the kinds of one data set, or over seeds, first.
    prevalence : array-like of shape (n_datasets,) or None, default=None
        The share of anomalies in each data set; the table shows its mean.
    confidence : float, default=0.95
        Of the critical difference.

    Examples
    --------
    >>> table = {
    ...     "kernel": [0.91, 0.83, 0.72, 0.95, 0.66, 0.88],
    ...     "forest": [0.90, 0.80, 0.74, 0.91, 0.61, 0.85],
    ...     "linear": [0.41, 0.52, 0.33, 0.64, 0.45, 0.52],
    ... }
    >>> print(compare(table, prevalence=[0.1, 0.3, 0.1, 0.2, 0.3, 0.2]))
    detector    mean mean rank behind the best
    kernel     0.825     1.167           0.000
    forest     0.802     1.833           0.667
    linear     0.478     3.000           1.833*
    (chance) (0.200)
    6 data sets; Friedman 10.33 (p = 0.0057), Iman-Davenport 31.00 (p = 5.2e-05)
    * by more than the critical difference 1.353 (Nemenyi, 95%)
    """
    names, values = _values(table, at_least=3)
    check_share("confidence", confidence)
    n_datasets, n_detectors = values.shape
    chance = None
    if prevalence is not None:
        shares = np.asarray(prevalence, dtype=float)
        if shares.shape != (n_datasets,) or not ((shares >= 0) & (shares <= 1)).all():
            raise UserError(
                f"Expected the prevalence of each of the {n_datasets} data sets, shares between 0 "
                f"and 1, got {shares.tolist()}. prevalence_by_kind gives them."
            )
        chance = float(shares.mean())
    friedman = Statistic(0.0, 1.0)
    if np.ptp(values, axis=1).max() > 0:  # not all tied everywhere: SciPy would divide by zero
        friedman = Statistic(*map(float, stats.friedmanchisquare(*values.T)))
    quantile = stats.studentized_range.ppf(confidence, n_detectors, np.inf) / np.sqrt(2)
    spread = np.sqrt(n_detectors * (n_detectors + 1) / (6 * n_datasets))
    return Comparison(
        mean=dict(zip(names, values.mean(axis=0).tolist(), strict=True)),
        mean_rank=_mean_ranks(names, values),
        n_datasets=n_datasets,
        chance=chance,
        friedman=friedman,
        iman_davenport=_iman_davenport(friedman.value, values.shape),
        critical_difference=float(quantile * spread),
        confidence=confidence,
    )


def compare_pair(table: Mapping[str, Any]) -> PairedComparison:
    """Compare two detectors in a `table` as in `compare`, by Wilcoxon's signed-rank test.

    >>> table = {"kernel": [0.91, 0.83, 0.72, 0.95, 0.66], "linear": [0.41, 0.52, 0.73, 0.64, 0.45]}
    >>> print(compare_pair(table))
    kernel against linear: wins 4, ties 0, losses 1; mean gain +0.264; Wilcoxon 1.00 (p = 0.12)
    """
    names, values = _values(table, at_least=2)
    if len(names) != 2:
        raise UserError(
            f"compare_pair takes two detectors, got {len(names)} ({names}). Use compare for more."
        )
    # 0.3 - 0.2 and 0.2 - 0.1 are ties that binary fractions would break.
    difference = np.round(values[:, 0] - values[:, 1], 12)
    wilcoxon = Statistic(len(difference) * (len(difference) + 1) / 4, 1.0)
    if difference.any():  # the ranks of zero differences are divided between both sides
        wilcoxon = Statistic(*map(float, stats.wilcoxon(difference, zero_method="zsplit")))
    signs, gain = {"wins": 1, "ties": 0, "losses": -1}, float(difference.mean())
    counts = {name: int(np.sum(np.sign(difference) == sign)) for name, sign in signs.items()}
    return PairedComparison(names[0], names[1], **counts, mean_gain=gain, wilcoxon=wilcoxon)


def _values(table: Mapping[str, Any], *, at_least: int) -> tuple[list[str], np.ndarray]:
    """The detectors' names and their values.  -> (n_datasets, n_detectors)"""
    names = [str(name) for name in table]
    if len(names) < at_least:
        raise UserError(
            f"Expected at least {at_least} detectors, got {len(names)} ({names}). "
            f"Use compare_pair for two."
        )
    columns = [np.asarray(table[name], dtype=float) for name in table]
    lengths = {name: column.shape for name, column in zip(names, columns, strict=True)}
    if len(set(lengths.values())) > 1 or columns[0].ndim != 1 or len(columns[0]) < 2:
        raise UserError(
            f"Expected one value for each detector and data set, and at least 2 data sets, got "
            f"values of shape {lengths}. Leave out data sets that some detector was not run on."
        )
    values = np.column_stack(columns)
    if not np.isfinite(values).all():
        raise UserError(
            f"Values must be finite: {np.sum(~np.isfinite(values))} of {values.size} are NaN or "
            f"infinite. Leave out the data sets on which a detector failed, or rank it last there."
        )
    return names, values


def _mean_ranks(names: list[str], values: np.ndarray) -> dict[str, float]:
    return dict(zip(names, stats.rankdata(-values, axis=1).mean(axis=0).tolist(), strict=True))


def _iman_davenport(chi2: float, shape: tuple[int, ...]) -> Statistic:
    """F = (N - 1) chi² / (N (k - 1) - chi²)."""
    n_datasets, freedom = shape[0], shape[1] - 1
    most = n_datasets * freedom
    if np.isclose(chi2, most, rtol=1e-12):  # every data set ranks the detectors the same
        return Statistic(np.inf, 0.0)
    value = (n_datasets - 1) * chi2 / (most - chi2)
    return Statistic(value, float(stats.f.sf(value, freedom, freedom * (n_datasets - 1))))
