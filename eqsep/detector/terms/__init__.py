"""What a row may score by, a term in a file of its own, in the order in which they are chosen."""

from eqsep.detector.terms.ellipsoid import EllipsoidTerm
from eqsep.detector.terms.kernel import KernelTerm
from eqsep.detector.terms.later import LaterKindsTerm
from eqsep.detector.terms.likeness import LikenessTerm
from eqsep.detector.terms.nearest import NearestTerm
from eqsep.detector.terms.normality import NormalityTerm
from eqsep.detector.terms.surprise import SurpriseTerm
from eqsep.detector.terms.term import Term
from eqsep.detector.terms.votes import VotesTerm

TERMS: list[type[Term]] = [
    KernelTerm,
    EllipsoidTerm,
    VotesTerm,
    LikenessTerm,
    LaterKindsTerm,
    NormalityTerm,
    NearestTerm,
    SurpriseTerm,
]
