"""Every sentence of the paper that says which of two figures is larger, or that they are alike."""

from dataclasses import dataclass

from paper.cells import Cell, Results, Study
from paper.claims import (
    circles,
    cross_validation,
    linear,
    real,
    theory,
    variants,
    wide_gaussians,
)
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
_FAMILIES = (theory, circles, cross_validation, linear, wide_gaussians, real, variants)
CLAIMS = Claims(tuple(claim for family in _FAMILIES for claim in family.CLAIMS))
STUDIES: dict[str, Study] = {
    family.STUDY.name: family.STUDY
    for family in (theory, cross_validation, wide_gaussians, variants)
}
# What the paper claims above all: the claim by its name, with what to call it in one sentence.
HEADLINES = {
    "XOR": "One neuron without hidden layers learns XOR",
    "VC dimension": "The VC dimension of strict equality separators in R^n is 2n + 1",
    "VC dimension with a margin": "With a margin it is at most 2n + 3",
    "VC dimension without flipping": "If the normal class has to lie within the margin, the VC "
    "dimension is that of halfspaces, n + 1",
    "closing numbers": "n equality separators enclose a region of R^n, halfspaces need n + 1",
    "competitive with the SVM": "On two Gaussians in the plane, which a halfspace separates, "
    "equality separators with the squared loss are as good as an SVM",
    "RQ1, shallow": "On the circles a kernel equality separator finds unseen anomalies better "
    "than halfspaces and trees",
    "RQ1, networks": "So do networks with equality separation and RBF activations",
    "RQ1, NSL-KDD, overall": "On NSL-KDD equality separation beats halfspaces and RBFs, however "
    "the network is trained",
    "RQ2, NSL-KDD": "Plain training with equality separation is as good as Deep SAD and the SVM",
    "RQ1, thyroid": "On thyroid equality separation finds seen and unseen kinds best",
    "RQ1, MVTec": "On MVTec it is best in five of six objects",
}
