"""The score: how anomalous a row is, one formula of four terms (`Score.combine`)."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from eqsep import schemas
from eqsep.arrays import WithoutCaches, beside, clipped, row_zeros, same_parts
from eqsep.detector.config import Config
from eqsep.engine.ellipsoid import Ellipsoid
from eqsep.engine.kernels import Laplacian, SparseLaplacian
from eqsep.engine.loops import weighted_sums
from eqsep.engine.nystroem import DeviceMap, KernelMap, Statistics, choose_landmarks
from eqsep.engine.trees import Trees, anomalous_shares
from eqsep.tables.encoder import Encoder, Packing

MOST_ALIKE = 1.5  # beyond, likeness counts no more
_MIDDLE = 4  # the power of the kernel that has the bandwidth of the config
_AT_ONCE = 4096  # rows held as kernel values


@dataclass(frozen=True, kw_only=True)
class TermValues:
    """The terms of rows: arrays or tensors of one number for each row."""

    vote: Any  # what trees say: 1 among labelled anomalies
    excess: Any  # above 0 where columns do not move together as in normal rows
    residual: Any = None  # |1 - f|, near 1 far from every normal row; None: not known yet
    likeness: Any = None  # 1 at labelled anomalies; None: it does not count

    def __getitem__(self, part: slice) -> "TermValues":
        """The values of a subset of the rows."""
        return TermValues(**{k: None if v is None else v[part] for k, v in vars(self).items()})


@dataclass(frozen=True, eq=False, kw_only=True)
class Terms(schemas.Kept, WithoutCaches):
    """What a row is scored by, fixed at the first fit."""

    landmarks: np.ndarray  # float32, encoded rows
    is_normal: np.ndarray  # whether each landmark is
    kernel: Laplacian
    ellipsoid: Ellipsoid | None  # how the columns of numbers move together in normal rows
    # Every second one also sees the axes of the ellipsoid; None without labelled anomalies.
    trees: Trees | None
    vote_weight: float
    likeness_weight: float
    doubted: bool  # whether rows that stand for normal ones may be anomalies
    deviations: np.ndarray  # the encoded columns that the ellipsoid is of
    pack: Packing  # from encoded rows to what kernel and trees see
    max_landmarks: int | None = None  # how many were asked for; None in files that do not say

    SCHEMAS: ClassVar = {
        "landmarks": schemas.bounded("m", "k", dtype="float32"),
        "is_normal": schemas.array_of("m", kinds="b"),
        "kernel": schemas.kept(Laplacian),
        "ellipsoid": schemas.kept(Ellipsoid, optional=True),
        "trees": schemas.kept(Trees, optional=True),
        "vote_weight": schemas.NOT_NEGATIVE,
        "likeness_weight": schemas.NOT_NEGATIVE,
        "doubted": schemas.FLAG,
        "max_landmarks": schemas.either(schemas.NONE, schemas.WHOLE),
    }

    @classmethod
    def choose(
        cls,
        rows: np.ndarray,
        is_anomaly: np.ndarray,
        *,
        encoder: Encoder,
        weight: np.ndarray | None,
        config: Config,
        doubted: bool,
        rng: np.random.RandomState,
        key: int,
    ) -> Self:
        """The terms for learnt, encoded rows; `key` decides which of many the ellipsoid is of."""
        config = config.for_rows(doubted=doubted)
        landmarks = choose_landmarks(rows, is_anomaly, n=config.n_landmarks, rng=rng)
        normal, at = is_anomaly == 0, encoder.deviations
        ellipsoid = Ellipsoid.of(
            rows[normal][:, at],
            np.random.RandomState(key),
            None if weight is None else weight[normal],
            step=config.ellipsoid_step,
        )
        packed = encoder.pack(rows)
        seen = packed
        if ellipsoid is not None and not ellipsoid.is_heavy:
            seen = beside(packed, ellipsoid.along(rows, at))
        return cls(
            landmarks=landmarks,
            is_normal=~are_among(landmarks, rows[~normal]),
            kernel=kernel_over(landmarks, config=config),
            ellipsoid=ellipsoid,
            trees=Trees.grown(
                seen,
                is_anomaly,
                rng,
                n=config.n_trees,
                most=(config.max_tree_normal, config.max_tree_anomalous),
                least=config.min_leaf,
                columns=min(config.tree_columns, config.max_tree_columns / packed.shape[1]),
                narrow=packed.shape[1],
            ),
            vote_weight=config.vote_weight,
            likeness_weight=config.likeness_weight if doubted else 0.0,
            doubted=doubted,
            deviations=at,
            pack=encoder.pack,
            max_landmarks=int(config.n_landmarks),
        )

    def are_of(self, n_landmarks: int) -> bool:
        """Whether so many landmarks may have been asked for; of few rows, fewer are found."""
        if self.max_landmarks is None:
            return len(self.landmarks) <= n_landmarks
        return n_landmarks == self.max_landmarks

    def sums(
        self, rows: np.ndarray, target: np.ndarray, weight: np.ndarray, *, device: str = "cpu"
    ) -> Statistics:
        """What encoded rows add to the sums; `target` is 1 at the row's class.  (n, 1 + n_kinds)"""
        kernel_map = self.map_on(device)

        def of(some: np.ndarray) -> Statistics:
            total = weight[some] @ target[some]
            return kernel_map.statistics(rows[some], target[some], weight[some], total=total)

        if self.likeness_weight:
            anomalous = target[:, 0] == 0
            own = of(np.flatnonzero(anomalous))
            sums = replace(of(np.flatnonzero(~anomalous)) + own, anomalous=own.gram)
        else:
            sums = of(np.arange(len(rows)))
        if self.trees is None:
            return sums
        seen = self.seen(rows, self.along(rows))
        return replace(sums, leaves=self.trees.sums(seen, weight[:, None] * target))

    def map_on(self, device: str) -> KernelMap | DeviceMap:
        """Encoded rows as kernel values, computed on a device: "cpu", "cuda" or "auto"."""
        if device not in self._maps:
            self._maps[device] = DeviceMap.of(self.kernel, self.landmarks, self.pack, device=device)
        return self._maps[device]

    @cached_property
    def kernel_map(self) -> KernelMap:
        """The same, computed by NumPy."""
        kernel = SparseLaplacian(self.kernel.gamma, self.kernel.powers)
        return KernelMap(kernel, self.pack(self.landmarks), _AT_ONCE, self.pack)

    @cached_property
    def _maps(self) -> dict[str, KernelMap | DeviceMap]:
        return {"cpu": self.kernel_map}

    def values(self, rows: Any, leaf_votes: np.ndarray) -> TermValues:
        """The terms of encoded rows that need no kernel values."""
        axes = self.along(rows)
        return TermValues(vote=self.votes(rows, axes, leaf_votes), excess=self.excess(axes))

    def along(self, rows: Any) -> Any:
        """Encoded rows along the axes of the ellipsoid.  (n, n_encoded) -> (n, n_axes)"""
        if self.ellipsoid is None:
            return row_zeros(rows)[:, None][:, :0]
        return self.ellipsoid.along(rows, self.deviations)

    def excess(self, axes: Any) -> Any:
        """The score of rows, along the axes, for columns that do not move as in normal rows."""
        return row_zeros(axes) if self.ellipsoid is None else self.ellipsoid.excess(axes)

    def votes(self, rows: Any, axes: Any, leaf_votes: np.ndarray) -> Any:
        """The mean vote of the trees on encoded rows, from 0 to 1; `axes` are those of the rows."""
        if self.trees is None:
            return row_zeros(rows)
        return self.trees.mean(self.seen(rows, axes), leaf_votes)

    def seen(self, rows: Any, axes: Any) -> Any:
        """What trees see of encoded rows.  -> (n, n_packed + n_axes)"""
        packed = self.pack(rows)
        return beside(packed, axes) if self.sees_axes else packed

    @cached_property
    def sees_axes(self) -> bool:
        """Whether a tree looks at an axis."""
        return self.trees is not None and self.trees.n_columns > len(self.pack.first)

    def is_same(self, other: "Terms") -> bool:
        """Whether rows with the same sums get the same score."""
        names = [name for name in self.SCHEMAS if name != "max_landmarks"]
        return all(same_parts(getattr(self, name), getattr(other, name)) for name in names)

    @classmethod
    def from_state(cls, state: dict[str, Any], **of_encoder: Any) -> Self:
        terms = super().from_state(state, **of_encoder)
        ellipsoid, trees, pack = terms.ellipsoid, terms.trees, terms.pack
        n_axes = 0 if ellipsoid is None else ellipsoid.axes.shape[1]
        if (
            len(pack.first) + len(pack.second) != terms.landmarks.shape[1]
            or (ellipsoid is not None and len(ellipsoid.centre) != len(terms.deviations))
            or (trees is not None and trees.n_columns > len(pack.first) + n_axes)
        ):
            schemas.damaged("its landmarks, ellipsoid or trees do not match those of its table")
        if not isinstance(terms.kernel.gamma, float) or not 0 < terms.kernel.gamma < np.inf:
            schemas.damaged("the gamma of its kernel is not a number above 0")
        return terms


def kernel_over(landmarks: np.ndarray, *, config: Config) -> Laplacian:
    """The kernel with the bandwidth of the config, in units of the landmarks' median distance."""
    median = Laplacian().resolved(landmarks)
    return Laplacian(gamma=float(median.gamma) / (config.bandwidth * _MIDDLE), powers=config.powers)


def are_among(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which rows are equal, bit for bit, to one of the others."""
    found = set(map(bytes, np.ascontiguousarray(others)))
    return np.array([bytes(row) in found for row in np.ascontiguousarray(rows)], dtype=bool)


@dataclass(frozen=True, eq=False, kw_only=True)
class Score(WithoutCaches):
    """The terms with what was learnt for them: from encoded rows to scores."""

    terms: Terms
    # (n_landmarks, 1 + n_kinds): of f, 1 at normal rows, and of one function per kind.
    coef: np.ndarray
    # Of g, 1 at labelled anomalies of any kind; 0 where it does not count.
    likeness_coef: np.ndarray
    leaf_votes: np.ndarray  # the share of anomalies among the rows of each leaf
    device: str = "cpu"  # "cpu", "cuda" or "auto": where rows are scored

    @classmethod
    def solve(cls, terms: Terms, sums: Statistics, config: Config) -> Self:
        """The score that the sums over all learnt rows give, by two ridge regressions."""
        n_anomalies = float(sums.weight[1:].sum())
        doubt = min(max(config.few_anomalies / max(n_anomalies, 1.0), 1.0), 10.0)
        coef: np.ndarray = sums.solve(config.alpha * (doubt if terms.doubted else 1.0))
        likeness = np.zeros(len(coef))
        if sums.anomalous is not None and n_anomalies:
            balanced = sums.balanced
            anomalous = replace(balanced, moment=balanced.moment[:, 1:].sum(axis=1))
            likeness = anomalous.solve(max(config.likeness_ridge / n_anomalies, 1.0))
        votes = leaf_votes(sums, doubted=terms.doubted)
        return cls(terms=terms, coef=coef, likeness_coef=likeness, leaf_votes=votes)

    def combine(self, values: TermValues) -> Any:
        """The formula: max(residual, vote) + v vote + excess, with v the weight of the vote.

        Where rows are doubted, trees know only some of the anomalies and must not decide alone:
        residual + v vote + excess + w likeness.
        """
        terms, vote = self.terms, values.vote
        base = values.residual if terms.doubted else clipped(values.residual, vote)
        score = values.excess + (base + terms.vote_weight * vote)
        if values.likeness is not None:
            score = score + terms.likeness_weight * clipped(values.likeness, 0, MOST_ALIKE)
        return score

    def __call__(self, rows: Any) -> np.ndarray:
        """The scores of encoded rows, an array or a tensor of the device.  -> (n,)"""
        found = []
        for piece in self._map.pieces(rows):
            sums: Any = self._map.evaluate(piece, self._functions)
            sums = sums.astype(float) if isinstance(piece, np.ndarray) else sums.double()
            found.append(fetched(self._combined(sums, self.terms.values(piece, self.leaf_votes))))
        return np.concatenate(found)

    def with_kind_likeness(
        self, rows: np.ndarray, threshold: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The scores, and the likeness to kinds of rows above the threshold.  -> (n,), (m, k)"""
        functions, kinds = self._functions.T, self._kinds.T
        score, likeness = np.empty(len(rows)), np.empty((len(rows), len(kinds)))
        values = self.terms.values(rows, self.leaf_votes)

        def fill(part: slice, k: np.ndarray) -> None:
            sums = weighted_sums(k, functions).astype(k.dtype)  # rounded as in `__call__`
            own = score[part] = self._combined(sums.astype(float), values[part])
            above = own > threshold
            likeness[part][above] = weighted_sums(k[above], kinds)

        self.terms.kernel_map.each(rows, fill)
        return score, likeness[score > threshold]

    def residual(self, rows: np.ndarray) -> np.ndarray:
        """|1 - f| alone: near 1 for a row near no landmark.  (n, n_encoded) -> (n,)"""
        f = self._map.evaluate(rows, self.coef[:, 0]).astype(float)  # rounded as the score is
        return np.asarray(np.abs(1 - f))

    def kind_likeness(self, rows: np.ndarray) -> np.ndarray:
        """How much each row is like each kind: 1 at rows of that kind.  -> (n, n_kinds)"""
        likeness: np.ndarray = self._map.evaluate(rows, self._kinds, dtype=float)
        return likeness

    @property
    def counts_likeness(self) -> bool:
        """Whether likeness to labelled anomalies is part of the score."""
        return bool(self.terms.likeness_weight and self.likeness_coef.any())

    def _combined(self, sums: Any, values: TermValues) -> Any:
        """The score, from sums of kernel values (f, and g where it counts) and the other terms."""
        f, *g = sums.T
        return self.combine(replace(values, residual=abs(1 - f), likeness=next(iter(g), None)))

    @property
    def _map(self) -> KernelMap | DeviceMap:
        return self.terms.map_on(self.device)

    @cached_property
    def _functions(self) -> np.ndarray:
        """The coefficients of f, and of g where it counts."""
        functions = self.coef[:, :1]
        if self.counts_likeness:
            functions = np.column_stack([functions, self.likeness_coef])
        return np.asfortranarray(functions)

    @cached_property
    def _kinds(self) -> np.ndarray:
        return np.asfortranarray(self.coef[:, 1:])


def leaf_votes(sums: Statistics, *, doubted: bool) -> np.ndarray:
    """The share of anomalies in each leaf; of doubted rows, its mean with a balanced share."""
    if sums.leaves is None:
        return np.empty(0)
    votes = anomalous_shares(sums.leaves)
    return (votes + anomalous_shares(sums.leaves, balanced=True)) / 2 if doubted else votes


def fetched(values: Any) -> np.ndarray:
    """An array, or a tensor of any device, in main memory."""
    return values if isinstance(values, np.ndarray) else values.cpu().numpy()
