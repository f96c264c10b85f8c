"""Check the promise, and select anomalies, as rows arrive."""

from eqsep.monitor.monitor import ColumnShift, History, Monitor, Recent, Watched
from eqsep.monitor.online import OnlineSelector

__all__ = ["ColumnShift", "History", "Monitor", "OnlineSelector", "Recent", "Watched"]
