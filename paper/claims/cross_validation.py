"""Ten-fold cross-validation of the shallow models on the circles, by which the paper chose them."""

from collections.abc import Callable
from typing import Any

from sklearn.model_selection import StratifiedKFold, cross_val_score

from paper.cells import Cell, Measured, Study
from paper.claims.claim import Claim, Contrast, Value
from paper.methods import CIRCLE_METHODS
from paper.plan import Measurement
from paper.tables.circles import circles

FOLDS = 10
_PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
# By method: the parameter, the value that is printed, and those that it is compared with.
GRIDS: dict[str, tuple[str, Any, tuple[Any, ...]]] = {
    "LR": ("logisticregression__C", 0.01, _PENALTIES),
    "SVM": ("C", 0.1, _PENALTIES),
    "DT": ("max_depth", 8, (2, 4, 8, 16)),
    "RF": ("n_estimators", 50, (10, 50, 100)),
}
_MORE: dict[str, dict[str, Any]] = {"SVM": {"probability": True, "random_state": 0}}


def measure(cell: Cell) -> Measured:
    """Minus the logistic loss in each fold, by the value of the parameter."""
    split = circles(cell.protocol)
    name, _, grid = GRIDS[cell.method]
    return {
        _key(name, value): _scores(
            CIRCLE_METHODS[cell.method], _MORE.get(cell.method, {}) | {name: value}, split
        )
        for value in grid
    }, {}


def _scores(make: Callable[[int], Any], settings: dict[str, Any], split: Any) -> list[float]:
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    model = make(0).set_params(**settings)
    X, y = split.X_train, split.y_train
    return cross_val_score(model, X, y, scoring="neg_log_loss", cv=folds).tolist()


def _key(name: str, value: Any) -> str:
    return f"{name.rpartition('__')[2]} = {value:g}"


def seconds(cell: Cell) -> float:
    """Roughly, on one core."""
    return 20.0 if cell.method == "RF" else 2.0


STUDY = Study("cross_validation", measure, seconds)


def _value(method: str, name: str, value: Any) -> Value:
    at = Measurement("circles", method, _key(name, value), seeds=1)
    return Value(f"{method}, {_key(name, value)}", STUDY.name, at)


CLAIMS = [
    Claim(
        f"cross-validation, {method}",
        f"{_key(name, printed)} of {method} is chosen by ten-fold cross-validation under logistic "
        "loss.",
        tuple(
            Contrast(_value(method, name, printed), "chosen", _value(method, name, x), paired=True)
            for x in grid
            if x != printed
        ),
        note="Of minus the loss, fold by fold: the setting with the highest mean is chosen, by "
        "however little. The paper does not print the grid: this is ours.",
    )
    for method, (name, printed, grid) in GRIDS.items()
]
