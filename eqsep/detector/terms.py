"""How the terms of a fit are agreed on: from all rows, or from a sample of them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eqsep.detector.answers import Answers, check_answers, read_answers
from eqsep.detector.calibration import held_out
from eqsep.detector.feature_map import FeatureMap, Plan, make_feature_map
from eqsep.detector.naming import rare_names, unknown_names, with_rare_names
from eqsep.detector.pieces import Piece, Terms, settled, summed
from eqsep.detector.survey import Survey
from eqsep.detector.width import RATE
from eqsep.tables.reading import Table

_SLACK = 1.2  # more rows are held out than counted on, so that enough are there in the end


@dataclass(frozen=True)
class Setup:
    """What a detector's parameters say of its terms."""

    plan: Plan
    feature_map: FeatureMap | None
    normal: Any
    unlabelled_weight: float
    device: str = "cpu"

    def terms(self, feature_map: FeatureMap, known: Answers, *, one_class: bool) -> Terms:
        """The terms with this feature map."""
        known = known.of_no_row()
        return Terms(
            feature_map, known, one_class, self.normal, self.unlabelled_weight, self.device
        )

    def opened(self, answers: Answers, counts: np.ndarray, *, given: bool) -> tuple[Answers, bool]:
        """The first labels, and whether rows without one are normal; refused where none can be.

        Each of the answers is that of so many rows.
        """
        check_answers(answers, counts, normal=self.normal, given=given)
        one_class = not (answers.code == 0).any()
        return answers.trusting_unlabelled() if one_class else answers, one_class


def start(setup: Setup, table: Table, answers: Answers, *, given: bool) -> tuple[Terms, Piece]:
    """The terms that all rows, or the first ones, give, and what these rows teach.

    Parameters
    ----------
    given : bool
        Whether labels were passed at all.
    """
    answers, one_class = setup.opened(answers, np.ones(len(answers.code)), given=given)
    feature_map = setup.feature_map
    if feature_map is None:
        feature_map, Z = make_feature_map(table, answers, setup.plan)
    else:
        table = feature_map.encoder.align(table)
        Z = feature_map.rows(table)
    terms = setup.terms(feature_map, answers, one_class=one_class)
    return terms, summed(terms, table, answers, Z)


def agree(setup: Setup, survey: Survey) -> Terms:
    """The terms that a survey of all rows gives, of which it holds a sample.

    Encoding, landmarks and width come from the sample, and the width is scaled to the number of
    all rows, as in memory. Names that are not in the sample and were counted are rare, not new.
    About as many rows calibrate as of all rows in memory.
    """
    answers, counts = survey.answers(normal=setup.normal)
    answers, one_class = setup.opened(answers, counts, given=survey.labelled)
    if setup.feature_map is not None:
        return setup.terms(setup.feature_map, answers, one_class=one_class)
    sample = survey.sample()
    read = read_answers(sample.y, n_rows=len(sample.y), normal=setup.normal, known=answers)
    read = read.trusting_unlabelled() if one_class else read
    feature_map, _ = make_feature_map(sample.table, read, setup.plan)
    if setup.plan.width is None:
        more = counts[answers.code <= 0].sum() / (read.code <= 0).sum()
        kernel = replace(feature_map.kernel, gamma=feature_map.kernel.gamma * more**RATE)
        feature_map = replace(feature_map, kernel=kernel)
    n_normal = int(counts[answers.code == 0].sum())
    share = min(_SLACK * held_out(n_normal) / n_normal, 1.0)
    feature_map = replace(feature_map, cut=min(feature_map.cut, int(share * (2**64 - 1))))
    doubt = unknown_names(feature_map, survey.names)
    rare = rare_names(feature_map)
    more_rare = {name: [*rare[name], *sorted(names)] for name, names in doubt.items()}
    feature_map = with_rare_names(feature_map, more_rare)
    return replace(setup.terms(feature_map, answers, one_class=one_class), in_doubt=doubt)


def finished(terms: Terms, piece: Piece) -> tuple[Terms, Piece]:
    """The terms of `agree` when all rows have been summed up: with the cut that these ask for.

    Names that none but held-out rows have are new ones to all others: so held-out rows are read as
    new rows will be. No row that was learnt has such a name, and the sums stay what they are.
    """
    terms, piece = settled(terms, piece)
    rare = rare_names(terms.feature_map)
    new = {c: names - piece.met.get(c, frozenset()) for c, names in terms.in_doubt.items()}
    kept = {c: [name for name in rare[c] if name not in names] for c, names in new.items()}
    feature_map = with_rare_names(terms.feature_map, kept) if kept else terms.feature_map
    return replace(terms, feature_map=feature_map, in_doubt={}), piece
