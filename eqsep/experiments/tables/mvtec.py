"""MVTec: linear probes on embedded images of six objects. Two tables.

The published figures come from DINOv2 embeddings of the images, by kind of defect. Public ViT
embeddings stand in for them: they do not say which defect an image shows, so defects are drawn at
random for training, and the table of the pills' defects cannot be measured on them.
"""

from functools import lru_cache

import numpy as np

from eqsep.datasets import Split, load_mvtec_embeddings
from eqsep.experiments.areas import areas_by_kind, by_seed
from eqsep.experiments.cell import Cell, Measured, Skipped, Study
from eqsep.experiments.networks import HEADS, member_scores, network, training
from eqsep.experiments.scaled import loaded
from eqsep.experiments.table import Place, Table

SEEN_DEFECTS = 0.2  # the share of defects in training: about one kind of five
TEST_NORMAL = 0.1  # the share of good images in the test, as in MVTec's own division
EPOCHS, QUICK_EPOCHS = 500, 50
PILL_DEFECTS = "pill by defect"


@lru_cache(maxsize=6)
def data(name: str) -> Split:
    """One object's embeddings, divided once at random."""
    table = loaded(load_mvtec_embeddings, name)
    rng = np.random.default_rng(0)
    kinds = (table.kind == "normal", table.kind != "normal")
    good, bad = (rng.permutation(np.flatnonzero(rows)) for rows in kinds)
    n_good, n_bad = round(TEST_NORMAL * len(good)), round(SEEN_DEFECTS * len(bad))
    train = rng.permutation(np.concatenate([good[n_good:], bad[:n_bad]]))
    test = np.concatenate([good[:n_good], bad[n_bad:]])
    return Split(
        X_train=table.X[train],
        kind_train=table.kind[train],
        X_test=table.X[test],
        kind_test=table.kind[test],
        feature_names=table.feature_names,
    )


def measure(cell: Cell) -> Measured:
    """Both areas of the defects that were not trained on, by a network without hidden layers."""
    if cell.dataset == PILL_DEFECTS:
        raise Skipped("The public embeddings do not say which defect an image shows.")
    split = data(cell.dataset)
    model = network(
        head=HEADS[cell.method],
        hidden=(),
        sigma=3.0,
        loss="logistic",
        n_members=cell.seeds,
        training=training(
            epochs=QUICK_EPOCHS if cell.quick else EPOCHS, learning_rate=3e-4, validation_fraction=0
        ),
        random_state=0,
    ).fit(split.X_train, split.y_train)
    scores = member_scores(model, split.X_test, protocol=cell.protocol).T
    return by_seed(areas_by_kind(score, split.kind_test) for score in scores), {}


def seconds(cell: Cell) -> float:
    """Roughly, on one core."""
    return 2.0 if cell.quick else 10.0


STUDY = Study("mvtec", measure, seconds)
_METHODS = {"HS": "HS", "RS (SAD)": "RS", "ES (ours)": "ES"}


def _objects(row: str, column: str) -> Place:
    return Place(row.lower(), _METHODS[column], "{metric}, overall", seeds=3)


def _pill(row: str, column: str) -> Place:
    return Place(PILL_DEFECTS, _METHODS[column], f"{{metric}}, {row}", seeds=3)


_NOTE = (
    "Ours are other embeddings (a public ViT's 1,000 outputs, not DINOv2's 1,024) and a random "
    "division, since these do not name the defects: a run end to end, not a comparison."
)
_CHANGES = "The protocols differ in the area alone: trapezoid, and average precision."
TABLES = [
    Table("mvtec_objects", STUDY, _objects, _NOTE, _CHANGES),
    Table("mvtec_pill", STUDY, _pill, _NOTE, _CHANGES),
]
