"""What the text says of the three circles."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from paper.cells import Result
from paper.claims.claim import Claim, Contrast, Value, of
from paper.measures import METRICS
from paper.plan import Measurement
from paper.tables.circle_networks import APART
from paper.tables.circles import BY_DRAW, ON_NORMAL, UNLABELLED, shallow

CHANCE = 0.75
PERFECT = 0.995  # 1.00, as it is printed
_HIDDEN = {"2": "toy_networks_2layers", "3": "toy_networks_3layers"}
_EVERYWHERE = ("HS", "RS", "ES (LL)", "ES (MSE)")
_BUMPS = (*_EVERYWHERE, "ES-s (LL)", "ES-s (MSE)")
_LAYOUTS = [
    *((row, column) for row in _EVERYWHERE for column in ("Leaky ReLU", "Bump", "RBF")),
    *((row, "Bump") for row in ("ES-s (LL)", "ES-s (MSE)")),
]


def _on_draws(value: Value) -> Value:
    """The same from one start on each of several draws of the circles."""
    at = replace(value.measurement, key=f"{value.measurement.key}{BY_DRAW}")
    return replace(value, label=f"{value.label}, by draw", measurement=at)


def _shallow(row: str) -> Value:
    return _on_draws(replace(of("toy_shallow", row, "AUPR"), label=row))


def _by_precision(value: Value) -> Value:
    """The same by average precision, of which the paper has no figures."""
    key = value.measurement.key.format(metric=METRICS["corrected"])
    at, label = replace(value.measurement, key=key), f"{value.label}, average precision"
    return replace(value, label=label, measurement=at, published=None)


def _network(row: str, column: str, layers: str = "2") -> Value:
    return replace(of(_HIDDEN[layers], row, column), label=f"{row}, {column}, {layers} layers")


def _in_training(value: Value) -> Value:
    """The same by the training rows, of which no table has figures."""
    at = replace(value.measurement, key="{metric}, train")
    return replace(value, label=f"{value.label}, training rows", measurement=at, published=None)


def _of_far_members(name: str) -> Callable[[Result], Sequence[float]]:
    """A number of the members that put the classes' mean outputs 0.30 apart."""

    def read(result: Result) -> Sequence[float]:
        values = result["values"]
        apart = values["difference of mean outputs"]
        return [x for x, far in zip(values[name], apart, strict=True) if far >= APART]

    return read


def _far(name: str) -> Value:
    measurement = Measurement("circles", "ES (LL), RBF, 2 layers", name)
    label = f"{name} of the members with outputs 0.30 apart"
    return Value(label, "circle_networks", measurement, read=_of_far_members(name))


def _kernel(loss: str, sigma: str, *, training: bool = False) -> Value:
    value = replace(of("toy_kernel_es", loss, sigma), label=f"{loss}, sigma {sigma}")
    return _on_draws(_in_training(value) if training else value)


def _by_draw(method: str) -> Value:
    """The area on each of several draws of the circles."""
    return _on_draws(Value(method, "circles", shallow(method, "normal")))


CLAIMS = [
    Claim(
        "halfspaces below chance",
        "XGB, LR and SVM perform worse than random.",
        tuple(Contrast(_shallow(row), "below", CHANCE) for row in ("XGB", "LR", "SVM")),
    ),
    Claim(
        "trees and LOF above chance",
        "DT, RF and LOF perform better than random.",
        tuple(Contrast(_shallow(row), "above", CHANCE) for row in ("DT", "RF", "LOF")),
        note="By the trapezoid a constant score has 0.875, and most trees give every row of the "
        "test the same score.",
    ),
    Claim(
        "trees and LOF above chance, by average precision",
        "DT, RF and LOF perform better than random.",
        tuple(
            Contrast(_by_precision(_shallow(row)), "above", CHANCE) for row in ("DT", "RF", "LOF")
        ),
        note="The same sentence on the same scores, by the area that does not flatter ties. It is "
        "counted once, as the claim above.",
        is_counted=False,
    ),
    Claim(
        "RQ1, shallow",
        "The equality separator is better than halfspaces, and than trees.",
        tuple(
            Contrast(_shallow("ES (ours)"), "above", _shallow(row), paired=True)
            for row in ("DT", "RF", "XGB", "LR", "SVM", "OCSVM", "IsoF")
        ),
        note="LOF is perfect too, in the paper and here, and is not among these.",
    ),
    Claim(
        "all rows or normal ones",
        "Unsupervised methods do better when they are fed all rows than normal ones alone.",
        tuple(
            Contrast(_by_draw(name), "above", _by_draw(f"{name}{ON_NORMAL}"), paired=True)
            for name in UNLABELLED
        ),
    ),
    Claim(
        "small sigma underfits",
        "With sigma = 0.1 the area of the training rows is lower than that of the test.",
        tuple(
            Contrast(
                _kernel(loss, "0.1", training=True), "below", _kernel(loss, "0.1"), paired=True
            )
            for loss in ("MSE", "LL")
        ),
    ),
    Claim(
        "losses and sigma",
        "The squared loss did better with a larger sigma, the logistic one with a smaller.",
        (
            Contrast(_kernel("MSE", "10"), "above", _kernel("MSE", "0.1"), paired=True),
            Contrast(_kernel("LL", "0.5"), "above", _kernel("LL", "10"), paired=True),
        ),
    ),
    Claim(
        "RQ1, networks",
        "Equality separators with RBF activations do best, whatever the activation of the others.",
        tuple(
            Contrast(_network("ES (LL)", "RBF"), "above", _network(row, column))
            for row, column in _LAYOUTS
            if not (row.startswith("ES") and column == "RBF")
        ),
    ),
    Claim(
        "perfect with RBFs",
        "Equality separators and RBF separators with RBF activations consistently obtain perfect "
        "areas.",
        tuple(Contrast(_network(row, "RBF"), "above", PERFECT) for row in ("ES (LL)", "RS")),
        note="Perfect as printed is 0.995 or more. The table has 0.97 for RBF separators.",
    ),
    Claim(
        "perfect by both losses",
        "Equality separators with RBF activations are perfect in training and in the test, by both "
        "losses.",
        tuple(
            Contrast(value, "above", PERFECT)
            for loss in ("LL", "MSE")
            for value in (
                _in_training(_network(f"ES ({loss})", "RBF")),
                _network(f"ES ({loss})", "RBF"),
            )
        ),
        note="Perfect as printed is 0.995 or more.",
    ),
    Claim(
        "bumps by output",
        "Of networks with bump activations, equality separators have the highest mean areas, with "
        "two hidden layers and with three.",
        tuple(
            Contrast(_network("ES (LL)", "Bump", layers), "above", _network(row, "Bump", layers))
            for layers in _HIDDEN
            for row in ("HS", "RS")
        ),
    ),
    Claim(
        "bumps above 0.90",
        "Networks with bump activations consistently have mean areas above 0.90.",
        tuple(Contrast(_network(row, "Bump"), "above", 0.90) for row in _BUMPS),
    ),
    Claim(
        "bumps of three layers",
        "With three hidden layers of bumps the mean area is at least 0.89.",
        tuple(Contrast(_network(row, "Bump", "3"), "above", 0.885) for row in _BUMPS),
        note="0.89 as printed is 0.885 or more.",
    ),
    Claim(
        "locality of the output",
        "With leaky ReLU, a more local output is better.",
        (
            Contrast(_network("ES (LL)", "Leaky ReLU"), "above", _network("HS", "Leaky ReLU")),
            Contrast(_network("RS", "Leaky ReLU"), "above", _network("ES (LL)", "Leaky ReLU")),
        ),
    ),
    Claim(
        "locality of the layers",
        "Bump and RBF activations raise the area of halfspace separators.",
        tuple(
            Contrast(_network("HS", column), "above", _network("HS", "Leaky ReLU"))
            for column in ("Bump", "RBF")
        ),
    ),
    Claim(
        "depth",
        "In general three hidden layers do worse than two.",
        tuple(
            Contrast(_network(row, column, "2"), "above", _network(row, column, "3"))
            for row, column in _LAYOUTS
        ),
        needed=len(_LAYOUTS) // 2 + 1,
        note="In general is taken for more than half of the layouts.",
    ),
    Claim(
        "depth of RBFs",
        "With three layers of RBFs equality separators by the logistic loss stay perfect.",
        (Contrast(_network("ES (LL)", "RBF", "3"), "above", PERFECT),),
        note="Perfect as printed is 0.995 or more.",
    ),
    Claim(
        "three layers in training",
        "Networks with three hidden layers have areas above 0.97 in training.",
        tuple(
            Contrast(_in_training(_network(row, column, "3")), "above", 0.97)
            for row, column in _LAYOUTS
        ),
    ),
    Claim(
        "learnable sigma",
        "A learnable sigma generally does not affect the area significantly.",
        tuple(
            Contrast(
                _network(f"ES-s ({loss})", "Bump", layers),
                "same",
                _network(f"ES ({loss})", "Bump", layers),
            )
            for loss in ("LL", "MSE")
            for layers in ("2", "3")
        ),
    ),
    Claim(
        "separation by loss",
        "The logistic loss puts the classes further apart than the squared one.",
        (
            Contrast(
                of("separation", "ES (LL), 2 layers", "Difference of mean outputs"),
                "above",
                of("separation", "ES (MSE), 2 layers", "Difference of mean outputs"),
            ),
        ),
    ),
    Claim(
        "distances of a high separation",
        "Where outputs are 0.30 apart, normal rows lie within about 0.05 of the plane, anomalies "
        "0.42 to 0.60 away.",
        (
            Contrast(_far("distance of normal rows"), "below", 0.05),
            Contrast(_far("distance of anomalies"), "above", 0.42),
            Contrast(_far("distance of anomalies"), "below", 0.60),
        ),
        note="Of the means of the members' mean distances.",
    ),
]
