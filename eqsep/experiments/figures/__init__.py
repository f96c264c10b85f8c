"""Every figure of the paper that shows something measured or computed."""

from eqsep.experiments.cell import Study
from eqsep.experiments.figures import curves, formulas, heat_maps, regions
from eqsep.experiments.figures.figure import Figure

_FOUND = [*regions.FIGURES, *heat_maps.FIGURES, *formulas.FIGURES, *curves.FIGURES]
FIGURES: dict[str, Figure] = {figure.name: figure for figure in _FOUND}
STUDIES: dict[str, Study] = {study.name: study for study in (regions.STUDY, formulas.STUDY)}
