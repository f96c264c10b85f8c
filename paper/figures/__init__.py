"""Every figure of the paper that shows something measured or computed."""

from paper.cells import Study
from paper.figures import curves, regions
from paper.plan import Figure

_FOUND = [*regions.FIGURES, *curves.FIGURES]
FIGURES: dict[str, Figure] = {figure.name: figure for figure in _FOUND}
STUDIES: dict[str, Study] = {study.name: study for study in (regions.STUDY, curves.STUDY)}
