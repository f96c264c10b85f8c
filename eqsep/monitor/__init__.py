"""The monitor: the promise watched as rows come.

| module | what it knows |
|---|---|
| `monitor` | rows in their order, the state that is kept, columns that move, the rate of alarms |
| `recent` | the last rows: columns that have moved, and alarms, beyond what chance does |
| `online` | rows selected as they come, few of the alarms false |
| `martingale` | ranks among all scores before, and a bet against their being uniform |
"""

from eqsep.monitor.monitor import History, Monitor, Watched
from eqsep.monitor.online import OnlineSelector
from eqsep.monitor.recent import ColumnShift, Recent

__all__ = ["ColumnShift", "History", "Monitor", "OnlineSelector", "Recent", "Watched"]
