"""A first fit to rows that come in batches: once, or twice where they can be read again."""

from collections.abc import Iterator
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
    survey = _surveyed(setup, source, name=name)
    if setup.feature_map is None and survey.is_whole:
        return _start(setup, survey.sample().table, survey.sample().y, given=survey.labelled)
    batches = read(source, name=name)
    terms = agree(setup, survey)
    table, y = next(batches)
    piece = piece_of(terms, table, y)
    return _learnt(setup, terms, piece, batches)


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
        raise ValueError("There are no rows: expected at least one batch with some.")
    table = joined([table for table, _ in first])
    y = np.concatenate([labels_of(y, table.n_rows) for table, y in first])
    terms, piece = _start(setup, table, y, given=any(y is not None for _, y in first))
    return _learnt(setup, terms, piece, batches)


def _learnt(setup: Setup, terms: Terms, piece: Piece, batches: _Batches) -> tuple[Terms, Piece]:
    """All other batches learnt too; where the terms are this fit's own, the cut is settled."""
    for table, y in batches:
        terms = replace(terms, known=piece.known)
        piece = piece + piece_of(terms, table, y)
        if setup.feature_map is None:
            terms, piece = bounded(terms, piece)
    return finished(terms, piece) if setup.feature_map is None else (terms, piece)


def _start(setup: Setup, table: Table, y: np.ndarray, *, given: bool) -> tuple[Terms, Piece]:
    answers = read_answers(y if given else None, n_rows=table.n_rows, normal=setup.normal)
    return start(setup, table, answers, given=given)


def _surveyed(setup: Setup, source: Source, *, name: str) -> Survey:
    """One pass over all rows; over their labels alone where a feature map is given."""
    seed = int(deepcopy(setup.plan.rng).randint(2**31 - 1))  # rows in memory are to draw the same
    survey = Survey(normal=setup.normal, rng=np.random.default_rng(seed))
    if setup.feature_map is None:
        for table, y in read(source, name=name):
            survey.add(table, y)
    else:
        for n_rows, y in source.labels():
            survey.add_labels(y, n_rows=n_rows)
    if not survey.n_rows:
        raise ValueError("There are no rows: expected at least one batch with some.")
    return survey
