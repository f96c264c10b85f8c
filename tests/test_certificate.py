"""The check that a certificate rests on: `eqsep.theory.certificate`."""

from dataclasses import replace
from fractions import Fraction

import pytest

from eqsep.theory import Hyperplane, shatters
from eqsep.theory.certificate import realises
from paper.theory import WITNESSES


@pytest.mark.parametrize(
    ("family", "plane", "labels"),
    [
        ("halfspace", (1, 0, 0, 1), (0, 1, 1)),
        ("strict-equality", (1, 0, 0, 1), (0, 1, 0)),
        ("strict-equality", (1, 0, 0, 0), (1, 0, 1)),
        ("epsilon-equality", (1, 0, 1, 1), (1, 1, 0)),
        ("epsilon-equality", (1, 0, 1, 0), (0, 0, 1)),
        ("hyper-ridge", (1, 0, 1, 1), (1, 1, 0)),
    ],
)
def test_a_plane_gives_these_labels_and_no_others(family, plane, labels):
    """The points -1, 0 and 2 of the line; -1 is on the edge of the slab of half-width 1."""
    points = ((Fraction(-1),), (Fraction(0),), (Fraction(2),))
    w, b, epsilon, margin_class = plane
    exact = Hyperplane((Fraction(w),), Fraction(b), Fraction(epsilon), margin_class)
    assert realises(exact, points, labels, family=family)
    for i in range(3):
        other = tuple(1 - y if i == j else y for j, y in enumerate(labels))
        assert not realises(exact, points, other, family=family)


def test_a_certificate_that_was_touched_is_refused():
    proof = shatters(WITNESSES["hyper-ridge", 2], "hyper-ridge", certificates=True)
    assert proof.verify()
    first, second, *rest = proof.planes
    assert not replace(proof, planes=(second, first, *rest)).verify()
    assert not replace(proof, planes=proof.planes[:-1]).verify()
    assert not replace(proof, family="strict-equality").verify()
    assert not replace(proof, family="halfspace").verify()
    flipped = second._replace(margin_class=0)
    assert not replace(proof, planes=(first, flipped, *rest)).verify()
    assert replace(proof, family="epsilon-equality").verify()  # the larger family has these planes
