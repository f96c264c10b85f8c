"""Learning as functions of values: each returns a model, and what was found on the way.

One path leads into a model: a source's summary decides the plan, what its rows teach under that
plan adds up, and the model is solved from the sum. Learning more adds to it, forgetting subtracts.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from eqsep import checks
from eqsep.checks import CAUTIONS, Finding
from eqsep.detector.audit import (
    check_common_rows,
    check_new_threshold,
    check_repeats,
    check_rows,
    rows_to_learn,
)
from eqsep.detector.calibration import Promise
from eqsep.detector.config import Config
from eqsep.detector.drift import check_time
from eqsep.detector.evidence import Evidence, Gather, gather
from eqsep.detector.model import Model
from eqsep.detector.plan import LabelScheme, Plan
from eqsep.detector.runs import Windows
from eqsep.detector.sources import Source, Summary, SummaryRequest, seed_of
from eqsep.engine.backends import NUMPY, Backend
from eqsep.errors import UserError
from eqsep.labels import RowLabels
from eqsep.progress import phase
from eqsep.tables.reading import Table


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """What a user asks of a fit."""

    config: Config
    promise: Promise
    normal: Any = None
    unlabelled: str = "auto"
    window: int | None = None  # the length of windows
    plan: Plan | None = None  # of another fit, so that the models can be merged
    backend: Backend = NUMPY  # where kernel values are summed


@dataclass(frozen=True, eq=False)
class Learned:
    """A model, and findings that a person should know."""

    model: Model
    check: Callable[[], Iterable[Finding]] = tuple  # a preview of scores does not wait for it

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, looked for when it is first asked for."""
        return tuple(self.check())


def fit(source: Source, settings: FitSettings, rng: np.random.RandomState) -> Learned:
    """The model that the rows of a source teach, under a plan that they decide or a given one."""
    plan = settings.plan
    summary = source.summary(
        SummaryRequest(
            normal=settings.normal,
            config=settings.config,
            seed=seed_of(rng),
            labels_alone=plan is not None,
        )
    )
    phase("planning")
    scheme, times = _scheme(summary, settings), list[str]()
    found = checks.check_row_labels(summary.labels, summary.counts)
    labels, table, own = scheme.apply(summary.labels), summary.sample, scheme.apply(summary.sampled)
    if table is not None:
        if summary.is_whole and plan is None and settings.window is None:
            places, copies = checks.distinct_rows(table, own.code)
            table, own, found = table.take(places), own.take(places), found + copies
        found += checks.check_columns(table, own.code, own.kinds)
        times = checks.times_in_order(table)
    if plan is not None:
        plan = replace(plan, labels=scheme)
    elif table is not None:
        if settings.window is not None:
            table = Windows.of(table, settings.window).transform(table)
        plan = Plan.choose(
            table,
            own,
            settings.config,
            rng,
            scheme=scheme,
            rate=settings.promise.false_alarm_rate,
            window=settings.window,
            population=summary.population(labels, own),
        )
        if (dropped := plan.encoder.dropped_warning()) is not None:
            found = [Finding.of(dropped), *found]
    assert plan is not None  # a sample was asked for where none was given
    if table is not None:
        table = plan.align(table)
        found += _check_order(table, own, plan, settings)
    if table is not None and summary.is_whole:
        phase("learning", table.n_rows, "rows")
        evidence = gather(plan, table, own, backend=settings.backend)
    else:
        phase("learning")
        known = labels.of_no_row()
        evidence = source.total(Gather(plan=plan, known=known, backend=settings.backend))
    return _solved(plan, evidence, settings, found=found, times=times)


def learn(
    model: Model,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    time: Any = None,
    judged: bool = False,
    backend: Backend = NUMPY,
) -> Learned:
    """The model with more rows learnt; those `judged` because of an alarm never calibrate."""
    table, labels = rows_to_learn(model, X, y, groups=groups, time=time)
    more = gather(model.plan, table, labels, judged=judged, backend=backend)
    taught, known = model.taught(model.evidence + more), model.evidence.labels

    def check() -> Iterable[Finding]:
        yield from check_repeats(model, more)
        yield from check_rows(taught, model.plan.encode(table), labels, known=known, judged=judged)
        yield from check_new_threshold(taught, before=model)

    return Learned(taught, check)


def forget(
    model: Model,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    time: Any = None,
    judged: bool = False,
    backend: Backend = NUMPY,
) -> Learned | None:
    """The model without rows that it had learnt; None if no row is left."""
    table, labels = rows_to_learn(model, X, y, groups=groups, time=time)
    left = model.evidence - gather(model.plan, table, labels, judged=judged, backend=backend)
    return None if left.is_empty else Learned(model.taught(left))


def merge(model: Model, other: Model) -> Learned:
    """The model with all that another with the same plan has learnt from other rows."""
    if not model.plan.is_same(other.plan):
        raise UserError(
            "Only detectors with the same plan can be merged, and these have chosen each its own. "
            "Fit one, and the others with Detector(plan=one.plan_)."
        )
    for name in ("alpha", "unlabelled_weight"):
        own, others = getattr(model.config, name), getattr(other.config, name)
        if own != others:
            raise UserError(
                f"Only detectors with the same {name} can be merged: this has {own!r}, the other "
                f"{others!r}."
            )
    merged = replace(
        model.taught(model.evidence + other.evidence), caution=model.caution or other.caution
    )

    def check() -> Iterable[Finding]:
        yield from check_common_rows(model, other)
        yield from check_new_threshold(merged, before=model)

    return Learned(merged, check)


def rename(model: Model, old: str, new: str) -> Learned:
    """The model with another name for a kind; if another kind has it, both become one."""
    known = model.evidence.labels
    if old not in model.kinds:
        raise UserError(f"{old!r} is not a seen kind: expected one of {list(model.kinds)}.")
    normal = None if known.reader is None else known.reader.normal
    if not isinstance(new, str) or new in ("", normal, old):
        raise UserError(f"{new!r} cannot be the new name of the kind {old!r}.")
    return Learned(model.taught(model.evidence.renamed(old, new)))


def _scheme(summary: Summary, settings: FitSettings) -> LabelScheme:
    """How labels are read; a given plan has settled whether rows are doubted, and isolated."""
    scheme = LabelScheme.choose(
        summary.labels,
        summary.counts,
        given=summary.given,
        normal=settings.normal,
        unlabelled=settings.unlabelled,
        rate=settings.promise.false_alarm_rate,
        config=settings.config,
        doubted=None if settings.plan is None else settings.plan.labels.doubted,
    )
    if settings.plan is None:
        return scheme
    settled = settings.plan.labels
    return replace(
        scheme,
        isolation=settled.isolation,
        isolated_share=settled.isolated_share,
        isolates_labelled=settled.isolates_labelled,
    )


def _check_order(
    table: Table, labels: RowLabels, plan: Plan, settings: FitSettings
) -> list[Finding]:
    """Findings on the order of rows, by time or as they came, that break the promise."""
    if table.groups is None or table.groups.columns[1] is None:
        return checks.check_dependence(table, labels.code)
    return check_time(table, labels, plan, settings.config, rate=settings.promise.false_alarm_rate)


def _solved(
    plan: Plan,
    evidence: Evidence,
    settings: FitSettings,
    *,
    found: list[Finding],
    times: list[str],
) -> Learned:
    """The model of a first fit, and what it adds to what was found before."""
    phase("calibrating")
    caution = next((finding for finding in found if finding.category in CAUTIONS), None)
    solved = Model.solve(plan, evidence, settings.config, promise=settings.promise)
    model = replace(solved, caution=caution)

    def check() -> Iterable[Finding]:
        yield from model.check_promise()
        yield from found
        yield from model.check_dates(times)
        yield from model.check_threshold()

    return Learned(model, check)
