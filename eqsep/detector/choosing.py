"""What a first fit chooses: encoding, landmarks, ellipsoid and trees."""

import zlib
from dataclasses import replace
from typing import Any

import numpy as np

from eqsep.arrays import beside
from eqsep.detector.feature_map import FeatureMap, Packing, deviations
from eqsep.detector.grouping import choose_groups, divided_by_group
from eqsep.detector.holdout import contents, holdout_bounds, is_held_out, row_hashes
from eqsep.detector.windows import Windows
from eqsep.engine.ellipsoid import Ellipsoid
from eqsep.engine.kernels import Laplacian
from eqsep.engine.nystroem import choose_landmarks
from eqsep.engine.trees import Trees
from eqsep.labels import RowLabels
from eqsep.renames import DEPRECATED, parameter
from eqsep.tables.fitted import encoded
from eqsep.tables.reading import Table

LIKENESS_WEIGHTS = {False: 0.0, True: 0.3}  # by whether normal rows are doubted
BANDWIDTHS = {False: 0.15, True: 2.0}  # by doubt: a wide kernel follows no few rows
VOTE_WEIGHTS = {False: 0.5, True: 1.0}  # what the vote of trees counts, by doubt
POWERS, MIDDLE = (1, 2, 4, 8, 16), 4  # of the kernel, and that of the bandwidth
FEWEST_IN_A_LEAF = {False: 1, True: 3}  # rows; by whether normal rows are doubted


def make_feature_map(
    table: Table,
    labels: RowLabels,
    detector: Any,
    rng: np.random.RandomState,
    *,
    doubted: bool = False,
) -> tuple[FeatureMap, np.ndarray]:
    """The feature map of a table's first rows that are not held out; and all of these, encoded.

    Parameters
    ----------
    doubted : bool, default=False
        Whether rows that stand for normal ones may be anomalies.
    """
    from eqsep.tables.encoder import TableEncoder  # learns, by scikit-learn

    ids = TableEncoder(numeric_encoding="both").reasons_to_drop(table)
    columns = np.array([j for j, c in enumerate(table.columns) if c.name not in ids], dtype=int)
    kinds = ["text" if c.is_empty else c.kind for c in (table.columns[j] for j in columns)]
    values = contents(table, columns, kinds)
    key = int(rng.randint(2**31 - 1)) ^ zlib.crc32(values.tobytes())
    hashes = row_hashes(values, key=key)
    if table.groups is None:
        grouping, bounds = None, holdout_bounds(hashes, labels, doubted=doubted)
        trains = ~is_held_out(hashes, labels, bounds)
    else:
        told = {"rate": detector.false_alarm_rate, "window": detector.window}
        grouping, bound = choose_groups(table.groups, labels, key=key, **told)
        trains, _, hashes = divided_by_group(grouping, table.groups, labels, key=key, bound=bound)
        bounds = (bound, 0, ())
    encoder = TableEncoder(numeric_encoding="both").fit(table.take(np.flatnonzero(trains)))
    Z = encoded(encoder, table)
    is_anomaly = labels.is_anomaly[trains]
    learnt, normal, packing = Z[trains], trains & (labels.code <= 0), Packing.of(encoder)
    landmarks = choose_landmarks(learnt, is_anomaly, n=detector.n_landmarks, rng=rng)
    at = deviations(encoder)
    weight, drawn = table.weights(normal), np.random.RandomState(key)
    ellipsoid = _ellipsoid(Z[normal][:, at], weight, drawn, doubted=doubted)
    seen = packing(learnt)
    if ellipsoid is not None and not ellipsoid.is_heavy:
        seen = beside(seen, ellipsoid.along(learnt, at))
    fewest, narrow = FEWEST_IN_A_LEAF[doubted], len(packing.first)
    return FeatureMap(
        encoder,
        landmarks,
        ~_among(landmarks, learnt[is_anomaly == 1]),
        kernel_of(given_bandwidth(detector) or BANDWIDTHS[doubted], landmarks),
        columns,
        key,
        *bounds,
        doubted,
        LIKENESS_WEIGHTS[doubted],
        ellipsoid,
        Trees.grown(seen, is_anomaly, rng, least=fewest, narrow=narrow),
        VOTE_WEIGHTS[doubted],
        grouping,
        None if detector.window is None else Windows.of(table, detector.window),
        {},
    ), Z


def kernel_of(bandwidth: float, landmarks: np.ndarray) -> Laplacian:
    """The kernel over landmarks of a bandwidth in units of their median distance.

    The mean of exp(-p ||x - c||_1 / (4 h m)) over the powers p, m the median distance and h the
    bandwidth: that of p = 4, beside two narrower and two wider ones.
    """
    median = Laplacian().resolved(landmarks)
    return Laplacian(gamma=float(median.gamma) / (bandwidth * MIDDLE), powers=POWERS)


def _ellipsoid(rows: np.ndarray, weight: Any, rng: Any, *, doubted: bool) -> Ellipsoid | None:
    """The ellipsoid of normal rows; anomalies among them stretch it, so that it counts less."""
    found = Ellipsoid.of(rows, rng, weight)
    return replace(found, weight=found.weight / 3) if found is not None and doubted else found


def given_bandwidth(detector: Any) -> float | None:
    """The bandwidth that a detector was given, by its old name too; None where it chooses it."""
    renamed = detector.width != DEPRECATED
    given: float | None = (
        parameter(detector, "bandwidth", warn=False) if renamed else detector.bandwidth
    )
    return given


def _among(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which of the rows occur among the others."""
    found = set(map(bytes, np.ascontiguousarray(others)))
    return np.array([bytes(row) in found for row in np.ascontiguousarray(rows)], dtype=bool)
