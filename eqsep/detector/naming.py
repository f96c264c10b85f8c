"""Names of columns that a sample does not have, and a feature map that knows them."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from eqsep.detector.feature_map import FeatureMap
from eqsep.tables import TableEncoder
from eqsep.tables.category import Category


def rare_names(feature_map: FeatureMap) -> dict[str, list[str]]:
    """The rare names of each column of names."""
    return {name: learnt.rare for name, learnt in _categories(feature_map.encoder).items()}


def unknown_names(
    feature_map: FeatureMap, counted: Mapping[str, Mapping[str, int]]
) -> dict[str, frozenset[str]]:
    """Those of the names counted in each column that the encoder takes for new ones."""
    found = {
        name: frozenset(counted.get(name, ())) - {*learnt.frequent, *learnt.rare}
        for name, learnt in _categories(feature_map.encoder).items()
    }
    return {name: names for name, names in found.items() if names}


def with_rare_names(feature_map: FeatureMap, rare: Mapping[str, list[str]]) -> FeatureMap:
    """The same map with other rare names, none of which a landmark has or loses.

    Where a column has its first rare name, or none any more, it has one output more or less, which
    is 0 at all landmarks.
    """
    state = feature_map.encoder.state()
    for name, column in zip(_names(feature_map.encoder), state["columns"], strict=True):
        if name in rare:
            column["rare"] = list(rare[name])
    encoder = TableEncoder.from_state(state)
    old, new = _outputs(feature_map.encoder), _outputs(encoder)
    landmarks = np.zeros((len(feature_map.landmarks), len(new)), dtype=np.float32)
    there = [i for i, output in enumerate(old) if output in new]
    landmarks[:, [new.index(old[i]) for i in there]] = feature_map.landmarks[:, there]
    return replace(feature_map, encoder=encoder, landmarks=landmarks)


def _categories(encoder: TableEncoder) -> dict[str, Category]:
    columns = zip(_names(encoder), encoder.columns_, strict=True)
    return {n: c for n, c in columns if isinstance(c, Category) and not c.boolean}


def _names(encoder: TableEncoder) -> list[str]:
    n = encoder.n_features_in_
    return list(getattr(encoder, "feature_names_in_", [f"x{i}" for i in range(n)]))


def _outputs(encoder: TableEncoder) -> list[tuple[int, str]]:
    """The outputs that count, each by its column and what it says."""
    return [
        (j, output)
        for j, learnt in enumerate(encoder.columns_)
        if learnt is not None
        for output, weight in zip(learnt.outputs, learnt.weights, strict=True)
        if weight > 0
    ]
