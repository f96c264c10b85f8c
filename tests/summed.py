"""What a model's evidence sums, by the names that terms give it."""

from eqsep.detector.terms import VotesTerm


def sums_of(model):
    """The sums of each term, by its name."""
    pairs = zip(model.plan.terms, model.evidence.sums, strict=True)
    return {term.name: sums for term, sums in pairs}


def gram_of(evidence):
    """Σ w k kᵀ; the kernel term is the first of every plan."""
    return evidence.sums[0].symmetric["gram"]


def moment_of(evidence):
    """Σ w t k, a column per class."""
    return evidence.sums[0].by_class["moment"]


def leaves_of(model):
    """The weight of the rows of each class in each leaf."""
    return sums_of(model)[VotesTerm.name].by_class["leaves"]


def term_of(plan, kind):
    """The term of this class, or None."""
    return next((term for term in plan.terms if isinstance(term, kind)), None)
