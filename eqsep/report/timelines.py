"""Reports of rows over time: a backtest, period by period, and an episode of a monitor."""

from dataclasses import dataclass

from eqsep.evaluation import Backtest
from eqsep.monitor import ColumnShift, History, Monitor, Recent, Watched
from eqsep.report.advice import Words


@dataclass(frozen=True)
class BacktestReport:
    """All that the page of a backtest shows."""

    title: str
    found: Backtest
    counts: dict[str, int]  #: The rows of each label, "normal" first.
    notes: tuple[str, ...] = ()  #: What to know about the rows.
    command: str = ""  #: The command that makes this report again.

    template = "backtest.html.jinja"

    @property
    def setting(self) -> str:
        """How often models learn, when labels come and how many alarms are looked at."""
        plan = self.found.schedule
        wait = "" if plan.verdict is None else _span(plan.verdict)
        sooner = f", verdicts on alarms {wait} after the end of their period" if wait else ""
        return (
            f"In each period of {_span(plan.every)}, the {plan.alarms:,} highest scores are looked "
            f"at. Labels come {_span(plan.delay)} after the row{sooner}. Models learn before each "
            f"period what is known by then."
        )


def _span(span: str | float) -> str:
    return span if isinstance(span, str) and not span.isdigit() else f"{float(span):,g} rows"


@dataclass(frozen=True, eq=False)
class WatchReport:
    """All that the page of a watch shows."""

    title: str
    delta: float  #: Rows have changed if the martingale exceeds 1 / delta.
    chance: str  #: The probability of a false alert, in words.
    caution: str  #: What the fit found that may break its promise; else empty.
    rate: float  #: The requested false-alarm rate.
    promised: bool  #: Whether enough rows calibrate to promise it.
    watched: Watched
    recent: Recent  #: What to check in the last rows.
    before: Watched | None  #: The previous episode, if a change of the model has just ended it.
    history: History
    shifts: tuple[ColumnShift, ...]  #: The farthest first.

    template = "watch.html.jinja"


def watch_report(
    monitor: Monitor, *, title: str = "Watched rows", words: Words = str
) -> WatchReport:
    """The present episode of a monitor; `words` turns a warning into text.

    >>> import numpy as np
    >>> from eqsep import Detector, Monitor
    >>> X = np.random.default_rng(0).normal(size=(1500, 2))
    >>> detector = Detector(n_landmarks=50, bandwidth=1.0, random_state=0).fit(X[:900])
    >>> monitor = Monitor(detector)
    >>> monitor.update(X[900:]).rows, len(watch_report(monitor).history.rows)
    (600, 12)
    """
    model = monitor.detector.model_
    return WatchReport(
        title=title,
        delta=monitor.delta,
        chance=monitor.chance,
        caution="" if model.caution is None else words(model.caution.warning()),
        rate=float(model.promise.false_alarm_rate),
        promised=model.rank > 0,
        watched=monitor.watched,
        recent=monitor.recent(),
        before=monitor.before,
        history=monitor.history,
        shifts=tuple(monitor.shifts()),
    )
