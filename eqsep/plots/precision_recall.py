"""Precision against recall, a curve for each kind, seen and unseen ones apart."""

from collections.abc import Collection, Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from eqsep.evaluation import anomaly_score
from eqsep.evaluation.kinds import OVERALL, Curve, precision_recall_by_kind
from eqsep.plots.look import INK, as_text, frame, looks, new_axes


class PrecisionRecallByKindDisplay:
    """Precision against recall of each kind of anomaly, against all normal rows.

    A solid line is a seen kind, a dashed one an unseen kind. The number is the average precision.
    It is recommended to use :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    curves : dict of str to Curve
        As `eqsep.evaluation.precision_recall_by_kind` gives them; "overall" is not drawn.
    seen : collection of str or None
        The kinds that were seen in training; None says nothing of it, and all lines are solid.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict of str to matplotlib Line2D
        The curve of each kind.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> display = PrecisionRecallByKindDisplay.from_predictions(
    ...     [0.1, 0.5, 0.9, 0.3], ["normal", "normal", "scan", "flood"], seen=["scan"],
    ...     ax=Figure().subplots(),
    ... )
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['flood, unseen: 0.500', 'scan, seen: 1.000']
    """

    def __init__(self, *, curves: Mapping[str, Curve], seen: Collection[str] | None = None) -> None:
        self.curves = curves
        self.seen = seen

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        kind: Any,
        *,
        normal: str = "normal",
        seen: Collection[str] | None = None,
        ax: Axes | None = None,
    ) -> "PrecisionRecallByKindDisplay":
        """Draw how a fitted estimator finds each kind among the rows `X`.

        Parameters
        ----------
        estimator : fitted scikit-learn estimator
            Scored by `eqsep.evaluation.anomaly_score`.
        X : table
            Rows that the estimator has not learnt.
        kind : array-like of str of shape (n_rows,)
            The kind of each row.
        normal : str, default="normal"
            The name of the normal kind.
        seen : collection of str, default=None
            The kinds that were seen in training; a detector's own `kinds_` by default.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        """
        known = getattr(estimator, "kinds_", None) if seen is None else seen
        return cls.from_predictions(
            anomaly_score(estimator, X), kind, normal=normal, seen=known, ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        score: Any,
        kind: Any,
        *,
        normal: str = "normal",
        seen: Collection[str] | None = None,
        ax: Axes | None = None,
    ) -> "PrecisionRecallByKindDisplay":
        """Draw how scores, larger for the more anomalous, find each kind."""
        curves = precision_recall_by_kind(score, kind, normal=normal)
        return cls(curves=curves, seen=seen).plot(ax=ax)

    def plot(
        self, *, ax: Axes | None = None, title: str | None = None
    ) -> "PrecisionRecallByKindDisplay":
        """Draw on `ax`, or on a new figure."""
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        self.lines_: dict[str, Line2D] = {}
        curves = {name: curve for name, curve in self.curves.items() if name != OVERALL}
        for name, look in looks(curves, normal=OVERALL).items():
            curve = curves[name]
            (self.lines_[name],) = self.ax_.plot(
                curve.recall,
                curve.precision,
                color=look.colour,
                marker=look.marker,
                markevery=0.25,
                markersize=4,
                linestyle="-" if self._is_seen(name) else (0, (4, 2)),
                linewidth=1.6,
                drawstyle="steps-pre",
                label=f"{as_text(name)}{self._word(name)}: {curve.average_precision:.3f}",
                clip_on=False,
            )
        self.ax_.set(xlim=(0, 1), ylim=(0, 1.02))
        frame(self.ax_, title=title, x_label="recall", y_label="precision")
        self.ax_.legend(
            loc="upper left",
            bbox_to_anchor=(0, -0.2),
            borderaxespad=0,
            fontsize="small",
            frameon=False,
            labelcolor=INK,
            handlelength=2.6,
        )
        return self

    def _is_seen(self, name: str) -> bool:
        return self.seen is None or name in self.seen

    def _word(self, name: str) -> str:
        return "" if self.seen is None else ", seen" if name in self.seen else ", unseen"
