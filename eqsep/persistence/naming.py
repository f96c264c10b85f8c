"""The rows by which alarms are named, with the trees that were grown on them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.detector.naming import N_FOLDS, KindRows, Naming
from eqsep.detector.scoring import NO_GROUPS
from eqsep.persistence.codecs import RecordCodec, Schema, array, bounded, either, instance, word
from eqsep.persistence.container import damaged

_KEPT = ("rows", "kind", "groups", "key")
_GROWN = ("fold", "trees", "shares", "lacking", "distance")
KEY = Schema(
    "a whole number of 32 bits",
    lambda value, sizes: type(value) is int and 0 <= value < 2**32,  # noqa: ARG005
)
_NONE = word(None)
_DOUBLES = array(None, finite=False)  # distances may be infinite
KIND_ROWS: dict[str, Schema] = {
    "rows": bounded(None, None, dtype="float32"),
    "kind": array(None, kinds="U"),
    "groups": array(None, kinds="u"),
    "key": KEY,
    "fold": either(_NONE, array(None, kinds="i")),
    "trees": either(_NONE, instance("trees.Trees")),
    "shares": either(_NONE, bounded(None, None, dtype="float64")),
    **dict.fromkeys(("lacking", "distance"), either(_NONE, _DOUBLES)),
}


@dataclass(frozen=True)
class KindRowsCodec(RecordCodec):
    """Learnt rows of the seen kinds; where there are any, trees are grown before they are kept."""

    def encode(self, value: Any) -> dict[str, Any]:
        naming = value.naming if len(value.rows) else None
        kept = {part: getattr(value if naming is None else naming.kept, part) for part in _KEPT}
        return kept | {part: None if naming is None else getattr(naming, part) for part in _GROWN}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        made = self.checked(parts, name)
        kept = KindRows(*(made[part] for part in _KEPT))
        n, groups = len(kept.rows), kept.groups
        if len(kept.kind) != n or len(groups) not in (0, n) or groups.dtype != np.uint64:
            damaged("the rows that it names alarms by have not a kind each, or not a group")
        if (np.array([made.get(part) is None for part in _GROWN]) == (n > 0)).any():
            damaged("it lacks trees to name alarms by, or rows that they were grown on")
        if n:
            _check(naming := Naming(kept, *(made[part] for part in _GROWN)))
            vars(kept)["naming"] = naming
        return kept


def _check(naming: Naming) -> None:
    """Refuse parts of different sizes, and rows that are not in order."""
    n, kind = len(naming.kept.rows), naming.kept.kind
    if {len(naming.fold), len(naming.lacking), len(naming.distance)} != {n}:
        damaged("the rows that it names alarms by have not a fold and a rank each")
    if naming.fold.min() < 0 or naming.fold.max() >= N_FOLDS or (kind[1:] < kind[:-1]).any():
        damaged("the rows that it names alarms by are not in order")
    trees = naming.trees
    if len(trees.root) % N_FOLDS or naming.shares.shape != (trees.n_leaves, len(naming.kinds)):
        damaged("the trees that it names alarms by are not those of its folds and kinds")
    if trees.column.max(initial=0) >= naming.kept.rows.shape[1]:
        damaged("the trees that it names alarms by look at columns that its rows have not")
    if np.isnan(naming.lacking).any() or np.isnan(naming.distance).any():
        damaged("how unlike its kind a row is, is no number")


def check_kind_rows(detector: Any, *, there: bool) -> None:
    """None in older files, else of the packed columns and of seen kinds, in groups or not."""
    feature_map = detector.feature_map_
    width = len(feature_map.packing.first)
    if not there and feature_map.kind_bounds is not None:
        damaged("the rows that it names alarms by are not there")
    if not there:
        none, key = np.empty((0, width), dtype=np.float32), feature_map.holdout_key
        detector.kind_rows_ = KindRows(none, np.empty(0, dtype=str), NO_GROUPS, key)
    kept = detector.kind_rows_
    if feature_map.kind_bounds is None and len(kept.rows):
        damaged("the rows that it names alarms by have no bounds")
    if kept.rows.shape[1] != width or not set(kept.kind.tolist()) <= set(detector.kinds_):
        damaged("the rows that it names alarms by are not of its columns and kinds")
    if len(kept.rows) and (feature_map.grouping is None) != (len(kept.groups) == 0):
        damaged("the rows that it names alarms by have groups, or lack them")
    if kept.key != feature_map.holdout_key:
        damaged("the rows that it names alarms by are hashed by another key")
