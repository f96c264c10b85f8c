"""The choice of the kernel's bandwidth, and of what trees count, from the training rows alone.

The kernel is the mean of exp(-p ||x - c||_1 / (4 h m)) over the powers p = 1, 2, 4, 8, 16, m the
median distance between landmarks and h the bandwidth in units of it: that of p = 4, beside two
narrower and two wider ones. What is chosen here is 1 / h.

No unseen kind is there to look at. What stands for one are normal rows in which some columns were
exchanged for those of other normal rows: every value is usual, and the row is not.

Trees tell seen kinds apart, and no others: what looks like a seen kind to them may be a normal row
of tomorrow. So their vote counts as little as the seen kinds allow.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from threadpoolctl import threadpool_limits

from eqsep.arrays import beside
from eqsep.engine.ellipsoid import Ellipsoid
from eqsep.engine.kernels import Laplacian
from eqsep.engine.loops import exponentials, in_threads, weighted_sums
from eqsep.engine.manhattan import SparseManhattan
from eqsep.engine.nystroem import Statistics
from eqsep.engine.trees import Trees, anomalous_shares

INVERSE_BANDWIDTHS = 2.0 ** np.arange(-2, 6)  # that are compared
POWERS, MIDDLE = (1, 2, 4, 8, 16), 4  # of the kernel, and that of the bandwidth
DOUBTED = 0.5  # 1 / bandwidth where normal rows are doubted: a wide kernel follows no few of them
SWAPPED = 0.5  # the share of columns that are exchanged
AS_GOOD, STEPS = 0.01, 2  # differences in quality that are chance, and how far they may lead
SEEN = 0.75  # what the seen kinds count beside the exchanged rows
MOST_NORMAL, MOST_ANOMALOUS, LANDMARKS = 3000, 1000, 1000
RATE = 1 / 8  # n^(1 / (4 + d)), as for densities, for rows that vary in four directions or so
MOST_HELD_NORMAL, MOST_HELD_ANOMALOUS = 2000, 500
VOTE_WEIGHTS = (0.005, 0.03, 0.3, 1.0)  # that are compared
AS_FOUND = 0.0075  # differences in average precision, as a share of it, that are chance
DOUBTED_VOTE_WEIGHT = 1.0
N_TREES = 25  # that are looked at


@dataclass(frozen=True)
class Rows:
    """Encoded rows, which of them are anomalous, and the table's column of each packed one.

    Rows with the same one of `groups` are held out together. The ellipsoid, if its axes tell
    something, is that of the encoded columns at `places`.
    """

    Z: np.ndarray
    is_anomaly: np.ndarray
    pack: Callable[[np.ndarray], np.ndarray]
    source: np.ndarray
    groups: np.ndarray | None = None
    ellipsoid: Ellipsoid | None = None
    places: np.ndarray | None = None

    def packed(self, rows: np.ndarray) -> np.ndarray:
        """Some of them, packed."""
        return self.pack(self.Z[rows])

    def seen(self, rows: np.ndarray) -> np.ndarray:
        """Some of them, as trees see them."""
        packed = self.packed(rows)
        if self.ellipsoid is None:
            return packed
        return np.asarray(beside(packed, self.ellipsoid.along(self.Z[rows], self.places)))

    def excess(self, rows: np.ndarray) -> np.ndarray:
        """What some of them score for columns that do not move together."""
        if self.ellipsoid is None:
            return np.zeros(len(rows))
        y = self.ellipsoid.along(self.Z[rows], self.places)
        return np.asarray(self.ellipsoid.excess(y))


class Choice:
    """Two looks at the rows, each with others held out, by which to choose.

    Parameters
    ----------
    rows : Rows
    alpha, n_landmarks
        The ridge penalty and the number of landmarks of the detector.
    rng : RandomState
    """

    def __init__(
        self, rows: Rows, *, alpha: float, n_landmarks: int, rng: np.random.RandomState
    ) -> None:
        divisions = list(_divisions(rows, min(n_landmarks, LANDMARKS), rng))
        used = np.mean([np.sum(rows.is_anomaly[parts.train] == 0) for parts in divisions])
        self._finer = float((np.sum(rows.is_anomaly == 0) / max(used, 1)) ** RATE)
        self._looks = [_Look.at(rows, parts, rng) for parts in divisions]
        self._steps = STEPS if (rows.is_anomaly == 1).any() else 0
        self._alpha = alpha

    def inverse_bandwidth(self) -> float:
        """The 1 / bandwidth that tells held-out normal rows apart best.

        For each of `INVERSE_BANDWIDTHS`: average precision of exchanged rows against held-out
        normal ones, plus `SEEN` times that of held-out anomalies of the seen kinds. The best one,
        or where there are seen kinds a finer one nearby that is nearly as good, is scaled from the
        rows looked at to all of them: too wide a kernel costs more of the unseen kinds than too
        narrow a one of the seen.
        """

        def quality(inverses: np.ndarray) -> np.ndarray:
            return self._mean(lambda look: look.quality(inverses, alpha=self._alpha))

        found = _compared(quality, steps=self._steps)
        return _finest(found, steps=self._steps) * self._finer

    def vote_weight(self, inverse: float) -> float:
        """The least of `VOTE_WEIGHTS` with which held-out anomalies are found as well as with any.

        As well means an average precision that differs by chance. `inverse` is 1 / bandwidth.
        """
        inverse /= self._finer
        found = self._mean(lambda look: look.vote_quality(inverse, alpha=self._alpha))
        return VOTE_WEIGHTS[int(np.flatnonzero(found >= (1 - AS_FOUND) * found.max())[0])]

    def _mean(self, quality: Callable[["_Look"], np.ndarray]) -> np.ndarray:
        """Over the looks, each of which has a thread."""
        found: dict[int, np.ndarray] = {}

        def work(which: slice) -> None:
            found[which.start] = np.sum([quality(look) for look in self._looks[which]], axis=0)

        with threadpool_limits(1, user_api="blas"):  # each division in a thread, not each product
            in_threads(work, len(self._looks), steps=sum(look.steps for look in self._looks))
        of_all: np.ndarray = np.sum(list(found.values()), axis=0) / len(self._looks)
        return of_all


def _compared(quality: Callable[[np.ndarray], np.ndarray], *, steps: int) -> np.ndarray:
    """The quality of every second one of `INVERSE_BANDWIDTHS`, and of those around the best.

    So many steps beyond it, and one on either side at least; -inf for those not looked at.
    """
    n = len(INVERSE_BANDWIDTHS)
    found, wanted = np.full(n, -np.inf), range(1, n, 2)
    while new := [i for i in wanted if found[i] == -np.inf]:
        found[new] = quality(INVERSE_BANDWIDTHS[new])
        best = int(np.argmax(found))
        wanted = range(max(best - 1, 0), min(best + max(steps, 1) + 1, n))
    return found


def _finest(quality: np.ndarray, *, steps: int) -> float:
    """The top of the parabola through the best one and its neighbours, or a finer one as good.

    That is so many steps away from the best one at most.
    """
    best = int(np.argmax(quality))
    nearby = quality[: best + steps + 1]
    finest = int(np.flatnonzero(nearby >= quality[best] - AS_GOOD)[-1])
    if finest > best or best in (0, len(quality) - 1):
        return float(INVERSE_BANDWIDTHS[finest])
    left, top, right = quality[best - 1 : best + 2]
    bend = left - 2 * top + right
    shift = 0.0 if bend == 0 else (left - right) / (2 * bend)
    return float(INVERSE_BANDWIDTHS[best] * 2.0**shift)


def kernel_of(inverse: float, landmarks: np.ndarray) -> Laplacian:
    """The kernel over landmarks of 1 / bandwidth, in units of their median distance."""
    median = Laplacian().resolved(landmarks)
    return Laplacian(gamma=inverse / MIDDLE * float(median.gamma), powers=POWERS)


def inverse_of(kernel: Laplacian, landmarks: np.ndarray) -> float:
    """The 1 / bandwidth of such a kernel over landmarks."""
    return float(kernel.gamma) / float(Laplacian().resolved(landmarks).gamma) * MIDDLE


@dataclass(frozen=True)
class _Division:
    train: np.ndarray
    landmarks: np.ndarray
    held_normal: np.ndarray
    held_anomalous: np.ndarray


def _divisions(rows: Rows, n_landmarks: int, rng: np.random.RandomState) -> Iterator[_Division]:
    normal = rng.permutation(np.flatnonzero(rows.is_anomaly == 0))
    anomalous = rng.permutation(np.flatnonzero(rows.is_anomaly == 1))
    third_of = None if rows.groups is None else _thirds(rows.groups, rng)
    for part in range(2):
        held_normal, others = _parted(normal, third_of, part, most=MOST_HELD_NORMAL)
        held_anomalous, known = _parted(anomalous, third_of, part, most=MOST_HELD_ANOMALOUS)
        others, known = others[:MOST_NORMAL], known[:MOST_ANOMALOUS]
        third = known[: n_landmarks // 3]
        landmarks = np.concatenate([others[: n_landmarks - len(third)], third])
        yield _Division(np.concatenate([others, known]), landmarks, held_normal, held_anomalous)


def _thirds(groups: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """0, 1 or 2 for each row, the same for all rows of a group."""
    names, place = np.unique(groups, return_inverse=True)
    third: np.ndarray = (rng.permutation(len(names)) % 3)[place]
    return third


def _parted(
    order: np.ndarray, third_of: np.ndarray | None, part: int, *, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows in a random order as the held-out ones of a part, at most so many, and the others."""
    if third_of is not None:
        held = third_of[order] == part
        return order[held][:most], order[~held]
    n = min(len(order) // 3, most)
    return order[part * n : (part + 1) * n], np.concatenate(
        [order[: part * n], order[(part + 1) * n :]]
    )


@dataclass(frozen=True)
class _Look:
    """What is looked at in a division: packed rows to learn and held-out ones."""

    train: np.ndarray
    normal: np.ndarray  # 1 for the normal rows of `train`
    landmarks: np.ndarray
    held: np.ndarray
    exchanged: np.ndarray
    anomalous: np.ndarray
    seen: tuple[np.ndarray, ...]  # by trees: rows to learn, held-out normal and anomalous ones
    excess: tuple[np.ndarray, ...]  # of the held-out ones

    @classmethod
    def at(cls, rows: Rows, parts: _Division, rng: np.random.RandomState) -> "_Look":
        train, normal = rows.packed(parts.train), rows.is_anomaly[parts.train] == 0
        held = rows.packed(parts.held_normal)
        return cls(
            train,
            normal.astype(np.float64),
            rows.packed(parts.landmarks),
            held,
            _exchanged(held, train[normal], rows.source, rng),
            rows.packed(parts.held_anomalous),
            tuple(map(rows.seen, (parts.train, parts.held_normal, parts.held_anomalous))),
            tuple(map(rows.excess, (parts.held_normal, parts.held_anomalous))),
        )

    @property
    def steps(self) -> int:
        """About how much work it is."""
        return len(self.train) * len(self.landmarks) ** 2

    @cached_property
    def _distances(self) -> list[np.ndarray]:
        """From each group of rows to the landmarks, in units of the median between these."""
        distance = SparseManhattan(self.landmarks)
        between = distance(self.landmarks)
        median = np.median(between[between > 0]) if (between > 0).any() else np.float32(1)
        groups = (self.train, self.held, self.exchanged, self.anomalous)
        return [distance(group) / median for group in groups]

    def quality(self, inverses: np.ndarray, *, alpha: float) -> np.ndarray:
        """How well each of these 1 / bandwidths does."""
        if not len(self.held) or not len(self.exchanged):
            middling: np.ndarray = -np.abs(np.log2(inverses) - 1)
            return middling  # nothing to look at
        values, found = [np.empty_like(s) for s in self._distances], []
        for inverse in inverses.tolist():
            held, exchanged, anomalous = self._scores(inverse, alpha=alpha, values=values)
            seen = average_precision(held, anomalous)
            found.append(average_precision(held, exchanged) + SEEN * seen)
        return np.array(found)

    def _scores(
        self, inverse: float, *, alpha: float, values: list[np.ndarray]
    ) -> Iterator[np.ndarray]:
        """Those of the held-out rows by a kernel; its values are written into `values`."""
        for s, k in zip(self._distances, values, strict=True):
            k[:] = s
            exponentials(k, rate=inverse / MIDDLE, powers=POWERS)
        coef = _coefficients(values[0], self.normal, alpha=alpha)
        return (np.abs(1 - weighted_sums(k, coef[None])[:, 0]) for k in values[1:])

    def vote_quality(self, inverse: float, *, alpha: float) -> np.ndarray:
        """Average precision of held-out anomalies with each of `VOTE_WEIGHTS`."""
        train, *others = self.seen
        rng, narrow = np.random.RandomState(0), self.train.shape[1]
        trees = Trees.grown(train, self.normal == 0, rng, n=N_TREES, narrow=narrow)
        if trees is None or not len(self.held) or not len(self.anomalous):
            return np.zeros(len(VOTE_WEIGHTS))
        values = [np.empty_like(s) for s in self._distances]
        held, _, anomalous = self._scores(inverse, alpha=alpha, values=values)
        target = np.column_stack([self.normal, 1 - self.normal]).astype(float)
        share = anomalous_shares(trees.sums(train, target))
        votes = [trees.mean(rows, share) for rows in others]
        parts = list(zip((held, anomalous), votes, self.excess, strict=True))
        found = [average_precision(*(a + e + w * v for a, v, e in parts)) for w in VOTE_WEIGHTS]
        return np.array(found)


def _coefficients(k: np.ndarray, target: np.ndarray, *, alpha: float) -> np.ndarray:
    """As the separator's own, but with the sum of k kᵀ in single precision, for one target.

    That is enough to compare bandwidths; the other sum, over all rows, has to be more exact.
    """
    gram, moment = (k.T @ k).astype(np.float64), target @ k.astype(np.float64)
    coef: np.ndarray = Statistics(gram, moment, np.ones(1)).solve(alpha)
    return coef


def average_precision(normal: np.ndarray, anomalous: np.ndarray) -> float:
    """That of scores, as scikit-learn's, which checks what it is given for longer; 0 of none.

    Examples
    --------
    >>> average_precision(np.array([0.1, 0.4]), np.array([0.4, 0.8]))
    0.8333333333333333
    """
    if not len(anomalous):
        return 0.0
    score = np.concatenate([normal, anomalous])
    order = np.argsort(-score, kind="stable")
    last = np.append(np.flatnonzero(np.diff(score[order])), len(score) - 1)  # of equal ones
    found = np.cumsum(order >= len(normal))[last][::-1]
    recall = np.append(found / len(anomalous), 0.0)
    return float(-np.sum(np.diff(recall) * (found / (last[::-1] + 1))))  # to the last bit


def _exchanged(
    held: np.ndarray, others: np.ndarray, source: np.ndarray, rng: np.random.RandomState
) -> np.ndarray:
    """Held-out normal rows with some columns from other normal rows, as far as that changes them.

    All packed columns of one column of the table, by `source`, are exchanged together.
    """
    if not len(held) or not len(others):
        return held[:0]
    columns, place = np.unique(source, return_inverse=True)
    chosen = rng.uniform(size=(len(held), len(columns))) < SWAPPED
    giver = rng.randint(len(others), size=(len(held), len(columns)))
    out = held.copy()
    for j, column in enumerate(place):
        given = others[giver[:, column], j]
        out[:, j] = np.where(chosen[:, column], given, out[:, j])
    changed: np.ndarray = out[(out != held).any(axis=1)]
    return changed
