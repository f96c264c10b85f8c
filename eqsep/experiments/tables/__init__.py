"""Every table of the paper, and the studies behind them: one module a family of problems."""

from eqsep.experiments.cell import Study
from eqsep.experiments.published import published_tables
from eqsep.experiments.table import Table
from eqsep.experiments.tables import (
    circle_networks,
    circles,
    gaussians,
    hyperplane,
    mvtec,
    nsl_kdd,
    thyroid,
)

_FAMILIES = (circles, circle_networks, nsl_kdd, thyroid, mvtec, hyperplane, gaussians)
_FOUND = {table.name: table for family in _FAMILIES for table in family.TABLES}
TABLES: dict[str, Table] = {name: _FOUND[name] for name in published_tables()}
STUDIES: dict[str, Study] = {family.STUDY.name: family.STUDY for family in _FAMILIES}
