"""The monitor: the promise checked as rows arrive, and rows selected as they arrive."""

from eqsep.monitor.monitor import ColumnShift, History, Monitor, Recent, Watched
from eqsep.monitor.online import OnlineSelector

__all__ = ["ColumnShift", "History", "Monitor", "OnlineSelector", "Recent", "Watched"]
