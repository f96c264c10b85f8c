"""Every sentence of the paper that says which of two figures is larger, or that they are alike."""

from dataclasses import dataclass

from paper.cells import Cell, Results, Study
from paper.claims import circles, cross_validation, linear, real, variants, wide_gaussians
from paper.claims.claim import Claim, Told, tell
from paper.plan import Plan


@dataclass(frozen=True)
class Claims:
    """Claims that are run and shown together, by one name."""

    claims: tuple[Claim, ...]

    def cells(self, plan: Plan) -> list[Cell]:
        """The cells behind all of them, each once."""
        return list(dict.fromkeys(cell for claim in self.claims for cell in claim.cells(plan)))

    def told(self, plan: Plan, results: Results) -> tuple[Told, ...]:
        """What the results on disk say of each."""
        return tuple(tell(claim, plan, results) for claim in self.claims)


NAME = "claims"
_FAMILIES = (circles, cross_validation, linear, wide_gaussians, real, variants)
CLAIMS = Claims(tuple(claim for family in _FAMILIES for claim in family.CLAIMS))
STUDIES: dict[str, Study] = {
    family.STUDY.name: family.STUDY for family in (cross_validation, wide_gaussians, variants)
}
