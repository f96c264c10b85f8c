"""The report of a backtest: what would have happened, period by period."""

from dataclasses import dataclass

from eqsep.evaluation import Backtest


@dataclass(frozen=True)
class BacktestReport:
    """All that the page of a backtest shows.

    Attributes
    ----------
    title : str
    found : Backtest
    counts : dict of str to int
        The rows of each label, "normal" first.
    notes : tuple of str
        What to know of the rows.
    command : str
        What makes the report anew.

    Examples
    --------
    >>> BacktestReport.template
    'backtest.html.jinja'
    """

    title: str
    found: Backtest
    counts: dict[str, int]
    notes: tuple[str, ...] = ()
    command: str = ""

    template = "backtest.html.jinja"

    @property
    def setting(self) -> str:
        """How often models learn, when labels come and how many alarms are looked at."""
        plan = self.found.schedule
        sooner = ""
        if plan.verdict is not None:
            sooner = f", verdicts on alarms {_span(plan.verdict)} after the end of their period"
        return (
            f"The {plan.alarms:,} highest scores of each period of {_span(plan.every)} are looked "
            f"at. Labels come {_span(plan.delay)} after the row{sooner}; models learn before each "
            f"period what is known then."
        )


def _span(span: str | float) -> str:
    return span if isinstance(span, str) and not span.isdigit() else f"{float(span):,g} rows"
