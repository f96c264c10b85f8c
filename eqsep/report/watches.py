"""The report of a watch: an episode of a monitor over time."""

from dataclasses import dataclass

from eqsep.monitor import ColumnShift, History, Monitor, Recent, Watched
from eqsep.report.advice import Words


@dataclass(frozen=True, eq=False)
class WatchReport:
    """All that the page of a watch shows.

    Attributes
    ----------
    title : str
    delta : float
        1 / delta is what the martingale must exceed.
    chance : str
        How often it is wrongly said that rows have changed, in words.
    caution : str
        What the fit has found that breaks its promise; else empty.
    rate : float
        The promised rate of false alarms.
    watched : Watched
    recent : Recent
        What is to be looked at in the last rows.
    before : Watched or None
        The episode before, where a change of the model has just ended it.
    history : History
    shifts : tuple of ColumnShift
        The farthest first.
    """

    title: str
    delta: float
    chance: str
    caution: str
    rate: float
    watched: Watched
    recent: Recent
    before: Watched | None
    history: History
    shifts: tuple[ColumnShift, ...]

    template = "watch.html.jinja"


def watch_report(
    monitor: Monitor, *, title: str = "Rows, watched", words: Words = str
) -> WatchReport:
    """What there is to tell of the present episode of a monitor; `words` are those of warnings.

    Examples
    --------
    >>> import numpy as np
    >>> from eqsep import Detector, Monitor
    >>> X = np.random.default_rng(0).normal(size=(1500, 2))
    >>> detector = Detector(n_landmarks=50, bandwidth=1.0, random_state=0).fit(X[:900])
    >>> monitor = Monitor(detector)
    >>> monitor.update(X[900:]).rows
    600
    >>> len(watch_report(monitor).history.rows)
    12
    """
    model = monitor.detector.model_
    return WatchReport(
        title=title,
        delta=monitor.delta,
        chance=monitor.chance,
        caution="" if model.caution is None else words(model.caution.warning()),
        rate=float(model.promise.false_alarm_rate),
        watched=monitor.watched,
        recent=monitor.recent(),
        before=monitor.before,
        history=monitor.history,
        shifts=tuple(monitor.shifts()),
    )
