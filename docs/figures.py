"""The pictures of the README and of these pages: `python docs/figures.py` writes them anew."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.svm import SVC

from eqsep import Detector, EqualitySeparator, KernelEqualitySeparator
from eqsep.activations import GaussianBump, Head, LeakyReLU, RadialBasis, Sigmoid, TanhBump
from eqsep.datasets import make_circles, make_logic
from eqsep.plots import (
    ANOMALY_COLOUR,
    NORMAL_COLOUR,
    RegionDisplay,
    save_figure,
)

INK = "#333333"


BALL = RadialBasis(gamma=0.7)
SLAB = GaussianBump(0.8)
SIDE = Sigmoid()


def plane(model: Any, X: np.ndarray, y: np.ndarray, *, title: str) -> Figure:
    """The score of a fitted model over the plane, with the rows."""
    figure = Figure(figsize=(4.6, 4.4), layout="constrained")
    ax = figure.subplots()
    RegionDisplay.from_estimator(model, X, y=y, ax=ax, title=title)
    ax.set_aspect("equal")
    return figure


def logic(name: str, title: str) -> Figure:
    """A Boolean function by one neuron."""
    X, y = make_logic(name)
    model = EqualitySeparator(random_state=0).fit(X, y)
    return plane(model, X, y, title=title)


def curve(title: str, x_label: str, heads: dict[str, Head], *, low: float = -4.0) -> Figure:
    """Membership as a function of the distance, a line for each head."""
    z = np.linspace(low, 4, 400)
    figure = Figure(figsize=(4.2, 3.4), layout="constrained")
    ax = figure.subplots()
    for (label, head), style in zip(heads.items(), ("-", "--"), strict=False):
        colour = NORMAL_COLOUR if style == "-" else ANOMALY_COLOUR
        ax.plot(z, head(z), color=colour, linestyle=style, linewidth=2, label=label)
    if len(heads) > 1:
        ax.axvspan(-1, 1, color="#D3E6F3", zorder=0, label="|z| ≤ sigma")
        ax.legend(frameon=False, fontsize="small", loc="upper right", labelcolor=INK)
    ax.set_ylim(0, 1.1)
    ax.set_yticks([0, 0.5, 1])
    ax.set_xlabel(x_label, color=INK)
    ax.set_ylabel("membership", color=INK)
    ax.set_title(title, loc="left", fontsize="medium", color=INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(color=INK, labelcolor=INK, labelsize="small")
    return figure


def region(title: str, head: Head, *, normals: list[list[float]], bias: float = 0.0) -> Figure:
    """Where several separators all say normal: each membership passes 1/2."""
    xx0, xx1 = np.meshgrid(*[np.linspace(-2.5, 2.5, 200)] * 2)
    grid = np.column_stack([xx0.ravel(), xx1.ravel()])
    z = grid @ np.transpose(normals) + bias if normals else np.hypot(*grid.T)[:, None]
    score = (0.5 - head(z).min(axis=1)).reshape(xx0.shape)
    figure = Figure(figsize=(4.6, 4.2), layout="constrained")
    ax = figure.subplots()
    RegionDisplay(xx0=xx0, xx1=xx1, score=score).plot(ax=ax, title=title)
    ax.set_aspect("equal")
    return figure


def hidden_xor() -> Figure:
    """XOR in the space of two ReLU units, and the line that decides it there."""
    X, y = make_logic("xor")
    hidden = LeakyReLU(leak=0.0)(X @ np.ones((2, 2)) + [0.0, -1.0])
    figure = Figure(figsize=(4.6, 4.2), layout="constrained")
    ax = figure.subplots()
    ax.plot([0, 2.5], [-0.25, 1.0], color=INK, linewidth=1.5)
    for at in np.unique(hidden, axis=0):
        here = (hidden == at).all(axis=1)
        names = " and ".join(f"({a:.0f}, {b:.0f})" for a, b in X[here])
        colour = ANOMALY_COLOUR if y[here][0] else NORMAL_COLOUR
        ax.plot(*at, "o", color=colour, markersize=9)
        ax.annotate(names, at, xytext=(6, 8), textcoords="offset points", color=INK)
    ax.set(xlim=(-0.3, 2.8), ylim=(-0.5, 1.5), xlabel="h1 = max(0, x1 + x2)")
    ax.set_ylabel("h2 = max(0, x1 + x2 - 1)")
    ax.set_title("XOR in the space of two ReLUs", loc="left", fontsize="medium", color=INK)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


PROOF = (  # place, text, and for each way out: to which step, on what answer
    ((0, 4), "2n + 2 points in two halves.\nIs one of them cut?", {1: "one, A", 5: "none"}),
    (
        (0, 3),
        "n + 1 points A on a plane: some a lies\nin the hull of the others. B: the rest.",
        {2: ""},
    ),
    (
        (0, 2),
        "Exchange a with a point b of B.\nA - a + b is not cut, as a is in its hull.\n"
        "Is B - b + a?",
        {3: "yes, for every b", 5: "no, for some b"},
    ),
    ((0, 1), "Then B is independent, and a lies\nin the hull of B - b for every b.", {4: ""}),
    ((0, 0), "All barycentric coordinates of a are 0,\nbut their sum is 1: this cannot be.", {}),
    ((1, 3), "A labelling that\nno strict equality\nseparator realises", {}),
)


def strict_proof() -> Figure:
    """Why no 2n + 2 points are shattered by strict equality: the proof as a flow chart."""
    figure = Figure(figsize=(8.2, 6.2), layout="constrained")
    ax = figure.subplots()
    box = {"boxstyle": "round,pad=0.5", "facecolor": "#EEF4F9", "edgecolor": INK}
    for (x, y), text, ways in PROOF:
        ax.text(x, y, text, ha="center", va="center", fontsize="small", color=INK, bbox=box)
        for to, answer in ways.items():
            end = PROOF[to][0]
            sideways = end[0] != x
            start = (x + 0.27, y) if sideways else (x, y - 0.24)
            stop = (end[0] - 0.16, end[1]) if sideways else (x, end[1] + 0.24)
            ax.annotate("", stop, start, arrowprops={"arrowstyle": "-|>", "color": INK})
            middle = ((start[0] + stop[0]) / 2 + 0.03, (start[1] + stop[1]) / 2)
            above = "bottom" if end[1] < y else "top"
            ax.text(*middle, answer, fontsize="small", color=ANOMALY_COLOUR, va=above)
    ax.set(xlim=(-0.5, 1.3), ylim=(-0.5, 4.5))
    ax.axis("off")
    return figure


def circles(model: Any) -> Figure:
    """What a model that saw the outer circle only makes of the plane."""
    split = make_circles(random_state=0)
    X = np.concatenate([split.X_train, split.X_test])
    names = {"normal": "normal", "outer": "seen (outer)", "inner": "unseen (inner)"}
    kind = [names[name] for name in (*split.kind_train, *split.kind_test)]
    model.fit(split.X_train, split.y_train)
    title = f"{type(model).__name__}, gamma = {model.gamma:g}"
    return plane(model, X, np.array(kind), title=title)


def purpose() -> Figure:
    """One labelled kind and two others: what a classifier and the detector make of the plane.

    Of 3,000 normal rows the last 300 are drawn.
    """
    rng = np.random.default_rng(0)
    rows = {
        "normal": rng.normal([0, 0], [1.0, 0.7], size=(3_000, 2)),
        "seen kind": rng.normal([4.5, 0], 0.5, size=(25, 2)),
        "unseen kind": rng.normal([-5, -1], 0.5, size=(25, 2)),
        "unseen kind, too": rng.normal([-1, 4.5], 0.5, size=(25, 2)),
    }
    X, kind = np.concatenate(list(rows.values())), np.repeat(list(rows), [3_000, 25, 25, 25])
    known = np.isin(kind, ["normal", "seen kind"])
    boosted, detector = HistGradientBoostingClassifier(random_state=0), Detector(random_state=0)
    figure = Figure(figsize=(9.2, 4.2), layout="constrained")
    models = {"Boosted trees": boosted, "eqsep.Detector": detector}
    for ax, (name, model) in zip(figure.subplots(1, 2), models.items(), strict=True):
        model.fit(X[known], (kind != "normal")[known])
        title = f"{name}: {np.mean(model.predict(X[~known])):.0%} of the unseen kinds flagged"
        RegionDisplay.from_estimator(model, X[2_700:], y=kind[2_700:], ax=ax, title=title)
        ax.get_legend().remove()
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "purpose": purpose,
    "xor": lambda: logic("xor", "XOR by one neuron"),
    "xor_hidden": hidden_xor,
    "strict_proof": strict_proof,
    "or": lambda: logic("or", "OR: the normal class is in the margin"),
    "and": lambda: logic("and", "AND: the anomaly is in the margin"),
    "sigmoid": lambda: curve("Sigmoid: on which side?", "signed distance z", {"": Sigmoid()}),
    "bump": lambda: curve(
        "Bump: on the plane?", "signed distance z", {"Gaussian": GaussianBump(), "tanh": TanhBump()}
    ),
    "rbf": lambda: curve(
        "RBF: near the point?", "distance from the centre", {"": RadialBasis()}, low=0.0
    ),
    "ball": lambda: region("1 ball: a disc", BALL, normals=[]),
    "slabs": lambda: region("2 slabs: a parallelogram", SLAB, normals=[[1, 0], [0.3, 1]]),
    "triangle": lambda: region(
        "3 halfspaces: a triangle", SIDE, normals=[[1, 0], [0, 1], [-0.8, -0.8]], bias=1
    ),
    "corner": lambda: region("2 halfspaces: open", SIDE, normals=[[1, 0], [0, 1]], bias=1),
    "circles_kernel": lambda: circles(KernelEqualitySeparator(gamma=8.0)),
    "circles_svc": lambda: circles(SVC(gamma=8.0)),
}


def write(folder: Path) -> list[Path]:
    """Draw every figure into `folder`, one PNG each."""
    paths = [save_figure(draw(), folder / f"{name}.png", dpi=120) for name, draw in FIGURES.items()]
    for path in paths:  # 256 colours, spread so that the rare ones of the rows stay
        with Image.open(path) as picture:
            small = picture.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
        small.save(path, optimize=True)
    return paths


if __name__ == "__main__":
    write(Path(__file__).parent / "_static")
