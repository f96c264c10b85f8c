"""The kernel term: how far a row is off the surface that normal rows lie on."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from eqsep import schemas
from eqsep.arrays import WithoutCaches
from eqsep.detector.config import Config
from eqsep.detector.terms.term import (
    EncodedRows,
    FirstRows,
    LearntSums,
    RowsToSum,
    Sums,
    Term,
    TermFunction,
)
from eqsep.engine.backends import NUMPY, Backend, LandmarkMap
from eqsep.engine.kernels import Laplacian
from eqsep.engine.nystroem import KernelMap, Report, Statistics, choose_landmarks, solve_ridge
from eqsep.progress import reporter
from eqsep.tables.encoder import Encoder, Packing

_MIDDLE_POWER = 4  # the power of the kernel that has the bandwidth of the config


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelTerm(Term, WithoutCaches):
    """|1 - f|, f(x) = Σ_j a_j k(x, c_j): 0 like normal rows, 1 far away and at labelled anomalies.

    f is 1 at normal rows and 0 at anomalous ones, by ridge regression. The kernel vanishes far from
    every landmark c_j, so f does: the normal region is closed.
    """

    landmarks: np.ndarray  # float32, encoded rows
    is_normal: np.ndarray  # whether each landmark is
    kernel: Laplacian
    max_landmarks: int  # how many were asked for
    leaves_out: bool  # whether isolated rows that nobody has looked at are not learnt
    pack: Packing  # from encoded rows to what the kernel sees

    name: ClassVar = "residual"
    NOT_COMPARED: ClassVar = ("max_landmarks",)
    SCHEMAS: ClassVar = {
        "landmarks": schemas.bounded("m", "k", dtype="float32"),
        "is_normal": schemas.array_of("m", kinds="b"),
        "kernel": schemas.kept(Laplacian),
        "max_landmarks": schemas.WHOLE,
        "leaves_out": schemas.FLAG,
    }

    @classmethod
    def choose(cls, first: FirstRows) -> Self:
        """Landmarks from the first rows, up to a third of them anomalous."""
        config = first.config
        landmarks = choose_landmarks(
            first.rows, first.is_anomaly, n=config.n_landmarks, rng=first.rng
        )
        return cls(
            landmarks=landmarks,
            is_normal=~are_among(landmarks, first.rows[first.is_anomaly > 0]),
            kernel=kernel_over(landmarks, config=config),
            max_landmarks=int(config.n_landmarks),
            leaves_out=first.isolation == "left out",
            pack=first.encoder.pack,
        )

    def accumulate(self, rows: RowsToSum) -> Sums:
        """G = Σ w k kᵀ and r = Σ w t k, a column per class."""
        if self.leaves_out and (left_out := int(rows.isolated.sum())):
            reporter("rows")(left_out)
            rows = rows.take(np.flatnonzero(~rows.isolated))
        sums = self.statistics(rows)
        return Sums(symmetric={"gram": sums.gram}, by_class={"moment": sums.moment})

    def statistics(self, rows: RowsToSum, *, report: Report | None = None) -> Statistics:
        """The same as the engine has them."""
        total = rows.weight @ rows.target
        own = self.map_on(rows.backend)
        return own.statistics(rows.rows, rows.target, rows.weight, total=total, report=report)

    def solve(self, learnt: LearntSums) -> "KernelFunction":
        """(G + alpha I) a = r."""
        own, alpha = learnt.of_terms[self.name], learnt.config.alpha
        return KernelFunction(solve_ridge(own.symmetric["gram"], own.by_class["moment"], alpha))

    def solved(self, learnt: LearntSums, state: dict[str, Any]) -> "KernelFunction":
        """The function with the coefficients of a model file."""
        n = len(self.landmarks), len(learnt.weight)
        schemas.check_parts(state, {"coef": schemas.bounded(*n, dtype="float64")}, "KernelTerm")
        return KernelFunction(state["coef"])

    @cached_property
    def numpy_map(self) -> KernelMap:
        """Encoded rows as kernel values, in main memory."""
        return NUMPY.map_of(self.kernel, self.landmarks, self.pack)

    def map_on(self, backend: Backend) -> LandmarkMap:
        """Encoded rows as kernel values, computed by a backend."""
        if backend is NUMPY:
            return self.numpy_map
        if backend.device not in self._maps:
            made = backend.map_of(self.kernel, self.landmarks, self.pack)
            self._maps[backend.device] = made
        return self._maps[backend.device]

    @cached_property
    def _maps(self) -> dict[str, LandmarkMap]:
        return {}

    @classmethod
    def load(cls, state: dict[str, Any], *, encoder: Encoder, before: Mapping[str, Term]) -> Self:
        del before
        term, pack = cls.from_state(state, pack=encoder.pack), encoder.pack
        if len(pack.first) + len(pack.second) != term.landmarks.shape[1]:
            schemas.damaged("its landmarks do not have the columns of its table")
        if not isinstance(term.kernel.gamma, float) or not 0 < term.kernel.gamma < np.inf:
            schemas.damaged("the gamma of its kernel is not a number above 0")
        return term


@dataclass(frozen=True, eq=False)
class KernelFunction(TermFunction):
    """|1 - f| of rows, and one more function for each kind: 1 at its rows, 0 elsewhere."""

    coef: np.ndarray  # (n_landmarks, 1 + n_kinds)

    @property
    def landmark_coef(self) -> np.ndarray:
        return self.coef[:, :1]

    def __call__(self, rows: EncodedRows, at_landmarks: Any) -> Any:
        del rows
        return abs(1 - at_landmarks[:, 0])

    def state(self) -> dict[str, Any]:
        return {"coef": self.coef}


@dataclass(frozen=True, eq=False)
class LandmarkFunction(TermFunction):
    """A function over the landmarks of the kernel, kept by its coefficients."""

    coef: np.ndarray  # (n_landmarks,)

    @property
    def landmark_coef(self) -> np.ndarray | None:
        return self.coef[:, None]

    def state(self) -> dict[str, Any]:
        return {"coef": self.coef}


@dataclass(frozen=True, eq=False, kw_only=True)
class LandmarkTerm(Term):
    """A term that solves one more function over the landmarks of the kernel."""

    kernel: KernelTerm
    weight: float

    FUNCTION: ClassVar[type[LandmarkFunction]]

    def solved(self, learnt: LearntSums, state: dict[str, Any]) -> LandmarkFunction:
        """The function with the coefficients of a model file."""
        del learnt
        shape = schemas.bounded(len(self.kernel.landmarks), dtype="float64")
        schemas.check_parts(state, {"coef": shape}, type(self))
        return self.FUNCTION(state["coef"])

    @classmethod
    def load(cls, state: dict[str, Any], *, encoder: Encoder, before: Mapping[str, Term]) -> Self:
        del encoder
        kernel = before[KernelTerm.name]
        assert isinstance(kernel, KernelTerm)
        return cls.from_state(state, kernel=kernel)


def kernel_over(landmarks: np.ndarray, *, config: Config) -> Laplacian:
    """The kernel with the bandwidth of the config, in units of the landmarks' median distance."""
    median = Laplacian().resolved(landmarks)
    bandwidth = config.bandwidth * _MIDDLE_POWER
    return Laplacian(gamma=float(median.gamma) / bandwidth, powers=config.powers)


def are_among(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which rows are equal, bit for bit, to one of the others."""
    known = set(map(bytes, np.ascontiguousarray(others)))
    return np.array([bytes(row) in known for row in np.ascontiguousarray(rows)], dtype=bool)


def not_reported(n_rows: int) -> None:
    """Progress of rows that the kernel term has reported."""
