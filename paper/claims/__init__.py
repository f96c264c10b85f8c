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

    def told(self, plan: Plan, results: Results, *, margins: float = 1.0) -> tuple[Told, ...]:
        """What the results on disk say of each, with so many times the usual margin."""
        return tuple(tell(claim, plan, results, margins=margins) for claim in self.claims)


NAME = "claims"
_FAMILIES = (theory, circles, cross_validation, linear, wide_gaussians, real, variants)
CLAIMS = Claims(tuple(claim for family in _FAMILIES for claim in family.CLAIMS))
STUDIES: dict[str, Study] = {
    family.STUDY.name: family.STUDY
    for family in (theory, cross_validation, wide_gaussians, variants)
}
# What the paper claims above all: the claim by its name, with what to call it in one sentence.
# They are chosen by what they are about, whatever their verdict: XOR, VC dimensions and closing
# numbers; the comparisons with the SVM on data that a halfspace separates; and on each other data
# set the answers to the research questions, and the sentences on unseen attacks.
HEADLINES = {
    "XOR": "One neuron without hidden layers learns XOR",
    "VC dimension": "The VC dimension of strict equality separators in R^n is 2n + 1 (that it is "
    "no more is proved, not measured)",
    "VC dimension with a margin": "With a margin it is at most 2n + 3",
    "VC dimension without flipping": "If the normal class has to lie within the margin, the VC "
    "dimension is that of halfspaces, n + 1",
    "closing numbers": "n equality separators enclose a region of R^n, halfspaces need n + 1",
    "competitive with the SVM": "On two Gaussians in the plane equality separation is competitive "
    "with an SVM (sigma = 10, squared loss)",
    "small sigma and the SVM": "There sigma = 0.1 is competitive, too, from a noise multiplier of "
    "2 on",
    "wide and competitive": "On two Gaussians in 5 to 30 dimensions equality separation is not "
    "significantly worse than an SVM",
    "RQ1, shallow": "On the circles a kernel equality separator finds unseen anomalies better "
    "than halfspaces and trees",
    "RQ1, networks": "Of the networks on the circles, equality separation over RBFs is best",
    "RQ1, NSL-KDD, overall": "On NSL-KDD, over all attacks, most of them of the seen kind, "
    "equality separation beats halfspaces and RBFs, however the network is trained",
    "supervised on unseen kinds": "On the unseen attacks of NSL-KDD it beats the other supervised "
    "methods as a whole",
    "one-class SVM and networks": "On them a one-class SVM beats networks with equality separation",
    "RQ2, NSL-KDD": "On NSL-KDD, over all attacks, plain training with equality separation is "
    "competitive with Deep SAD and the SVM (at most 0.02 below)",
    "RQ1, thyroid": "On thyroid equality separation finds seen and unseen kinds best",
    "RQ1, MVTec": "On MVTec it is best in five of six objects",
    "RQ1, pills": "It is best for every defect of MVTec's pills",
}
