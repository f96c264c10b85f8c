"""A first fit to rows that come in batches: once, or twice where they can be read again."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from eqsep.batches.joining import joined, tables, width
from eqsep.batches.sampling import sample_size
from eqsep.batches.sources import Source, prefetched
from eqsep.detector.answers import labels_of, read_answers
from eqsep.detector.pieces import Piece, Terms, bounded, piece_of
from eqsep.detector.survey import Survey
from eqsep.detector.terms import Setup, agree, finished, start
from eqsep.errors import UserError
from eqsep.tables.reading import Table

_Batches = Iterator[tuple[Table, Any]]


def read(source: Source, *, name: str) -> _Batches:
    """The batches as tables of the same columns, with their labels, read and converted ahead."""
    return prefetched(tables(source, name=name))


def start_stream(setup: Setup, source: Source, *, name: str) -> tuple[Terms, Piece]:
    """The terms and what all rows teach under them; memory does not grow with their number.

    Rows that can be read again are first surveyed (labels and names are counted, a sample is
    drawn) and then learnt. Where they are few enough for the sample to be all of them, all is as
    in memory. Of rows that come once, the first ones set the terms.
    """
    if not source.again:
        return _once(setup, read(source, name=name))
    survey = Survey(normal=setup.normal, rng=np.random.default_rng(seed_of(setup)))
    add_all(survey, source, labels_alone=setup.feature_map is not None, name=name)

    def sums(terms: Terms) -> tuple[Terms, Piece]:
        batches = read(source, name=name)
        piece = piece_of(terms, *next(batches))
        return _learnt(setup, terms, piece, batches)

    return start_surveyed(setup, survey, sums)


def start_surveyed(
    setup: Setup, survey: Survey, sums: Callable[[Terms], tuple[Terms, Piece]]
) -> tuple[Terms, Piece]:
    """The terms that a survey of all rows gives, and what these teach, by `sums`, under them."""
    if not survey.n_rows:
        raise UserError("There are no rows: expected at least one batch with some.")
    if setup.feature_map is None and survey.is_whole:
        return _start(setup, survey.sample().table, survey.sample().y, given=survey.labelled)
    terms, piece = sums(agree(setup, survey))
    return _ended(setup, terms, piece)


def add_all(survey: Survey, source: Source, *, labels_alone: bool, name: str) -> None:
    """Survey all rows, or their labels alone: with a feature map no more is asked for."""
    if labels_alone:
        for n_rows, y in source.labels():
            survey.add_labels(y, n_rows=n_rows)
    else:
        for table, y in read(source, name=name):
            survey.add(table, y)


def seed_of(setup: Setup) -> int:
    """The seed of a survey; drawn so that rows in memory draw the same landmarks after it."""
    return int(deepcopy(setup.plan.rng).randint(2**31 - 1))


def _once(setup: Setup, batches: _Batches) -> tuple[Terms, Piece]:
    """The first rows set the terms; the cut falls as more come, so that few of them calibrate."""
    first: list[tuple[Table, Any]] = []
    n_rows = 0
    for table, y in batches:
        first.append((table, y))
        n_rows += table.n_rows
        if n_rows >= sample_size(width(table)):
            break
    if not first:
        raise UserError("There are no rows: expected at least one batch with some.")
    table = joined([table for table, _ in first])
    y = np.concatenate([labels_of(y, table.n_rows) for table, y in first])
    terms, piece = _start(setup, table, y, given=any(y is not None for _, y in first))
    return _ended(setup, *_learnt(setup, terms, piece, batches))


def _learnt(setup: Setup, terms: Terms, piece: Piece, batches: _Batches) -> tuple[Terms, Piece]:
    """All other batches learnt too, with a lower cut where more rows calibrate than are needed."""
    for table, y in batches:
        terms = replace(terms, known=piece.known)
        piece = piece + piece_of(terms, table, y)
        if setup.feature_map is None:
            terms, piece = bounded(terms, piece)
    return terms, piece


def _ended(setup: Setup, terms: Terms, piece: Piece) -> tuple[Terms, Piece]:
    """The cut settled, where the terms are this fit's own."""
    return finished(terms, piece) if setup.feature_map is None else (terms, piece)


def _start(setup: Setup, table: Table, y: np.ndarray, *, given: bool) -> tuple[Terms, Piece]:
    answers = read_answers(y if given else None, n_rows=table.n_rows, normal=setup.normal)
    return start(setup, table, answers, given=given)
