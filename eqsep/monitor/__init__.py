"""The monitor: the promise watched as rows come.

| module | what it knows |
|---|---|
| `monitor` | rows in their order, the state that is kept, columns that move, the rate of alarms |
| `martingale` | ranks among all scores before, and a bet against their being uniform |
"""

from eqsep.monitor.monitor import ColumnShift, Monitor, Watched

__all__ = ["ColumnShift", "Monitor", "Watched"]
