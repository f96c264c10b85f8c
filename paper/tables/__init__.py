"""Every table of the paper, one of ours, and the studies behind them: a module a family."""

from paper.cells import Study
from paper.plan import Table
from paper.published import published_tables
from paper.tables import (
    circle_ensembles,
    circle_networks,
    circles,
    gaussians,
    hyperplane,
    magnetic_tile,
    mvtec,
    nsl_kdd,
    thyroid,
)

_FAMILIES = (
    circles,
    circle_networks,
    circle_ensembles,
    nsl_kdd,
    thyroid,
    mvtec,
    magnetic_tile,
    hyperplane,
    gaussians,
)
_FOUND = {table.name: table for family in _FAMILIES for table in family.TABLES}
TABLES: dict[str, Table] = {name: _FOUND[name] for name in published_tables()}
STUDIES: dict[str, Study] = {family.STUDY.name: family.STUDY for family in _FAMILIES}
