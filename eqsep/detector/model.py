"""Model: what follows from a plan and evidence. It scores, and needs NumPy alone."""

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from eqsep import checks, schemas
from eqsep.arrays import WithoutCaches
from eqsep.checks import Beyond, Finding
from eqsep.detector.calibration import (
    Calibration,
    Promise,
    anomalies_among,
    check_selection,
    checked_share,
    select,
)
from eqsep.detector.config import Config
from eqsep.detector.evidence import Evidence, HeldOutRows
from eqsep.detector.explainer import Explainer, Explanation
from eqsep.detector.namer import COVERAGE, Judges, KindSets, Namer
from eqsep.detector.plan import Plan
from eqsep.detector.score import Score
from eqsep.engine.backends import NUMPY, backend_for
from eqsep.errors import UserError
from eqsep.labels import NORMAL
from eqsep.tables.encodings import Category
from eqsep.tables.reading import Column, read_table, with_groups


class Verdicts(NamedTuple):
    """What a model says about rows, an array each."""

    score: np.ndarray
    p_value: np.ndarray
    alarm: np.ndarray
    kind: np.ndarray  # "normal" for a row that passes; for an alarm a seen kind, or "unseen"
    kind_probability: np.ndarray  # of the kind among the seen ones; NaN: not known

    def columns(self) -> dict[str, np.ndarray]:
        """The arrays by their names."""
        return self._asdict()

    def each(self) -> Iterator[dict[str, Any]]:
        """The verdict on each row, by names; a probability that is not known is None."""
        for values in zip(*(column.tolist() for column in self), strict=True):
            one = dict(zip(self._fields, values, strict=True))
            is_known = not math.isnan(one["kind_probability"])
            yield one | {"kind_probability": one["kind_probability"] if is_known else None}


VERDICTS = Verdicts._fields
_ANOMALIES_TO_MEASURE = 10  # anomalies: fewer measure nothing
_MAX_VARIED_ROWS = 500  # held-out rows with other dates
_SHARE_OF_RATE = 0.9  # of the promised rate
NEW_NAME = "(new name)"
_RANGES_AWAY, _N_MADE_UP = 100.0, 50  # ranges of each column, and rows that are made up


@dataclass(frozen=True, kw_only=True, eq=False)
class Model(WithoutCaches):
    """What follows from a plan and evidence: the score, its calibration, and names for alarms.

    Examples
    --------
    >>> from eqsep import Detector
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> model = Detector(n_landmarks=50, random_state=0).fit(X).model_
    >>> verdicts = model.verdicts([[0.0, 9.0]])
    >>> verdicts.alarm.tolist(), verdicts.kind.tolist(), verdicts.p_value.tolist()
    ([True], ['unseen'], [0.01])
    """

    plan: Plan  #: what the first rows decided
    evidence: Evidence  #: what all rows have taught
    config: Config
    promise: Promise  #: the promised rates; `promising` returns the model with others
    score: Score
    calibration: Calibration
    namer: Namer
    caution: Finding | None = None  #: what breaks the promise: rows in runs or that change
    left_out: tuple[str, ...] = ()  #: columns that were left out before the fit
    label_column: str = ""  #: the column of labels in the files of the fit; "" if not known
    other_normal: tuple[str, ...] = ()  #: more labels of normal rows in that column

    @classmethod
    def solve(cls, plan: Plan, evidence: Evidence, config: Config, *, promise: Promise) -> Self:
        """The model that a plan and evidence give."""
        evidence = replace(evidence, held_out=evidence.held_out.sorted(key=plan.holdout.key))
        score = Score.solve(plan, evidence.learnt_sums(plan, config))
        return cls(
            plan=plan,
            evidence=evidence,
            config=config,
            promise=promise,
            score=score,
            calibration=calibrate(score, evidence.held_out),
            namer=_namer(evidence, config),
        )

    def taught(self, evidence: Evidence) -> "Model":
        """The model once learning has changed the evidence."""
        solved = Model.solve(self.plan, evidence, self.config, promise=self.promise)
        return replace(
            solved,
            namer=self.namer if self.namer.is_same(solved.namer) else solved.namer,
            caution=self.caution,
            left_out=self.left_out,
            label_column=self.label_column,
            other_normal=self.other_normal,
        )

    def promising(self, promise: Promise) -> "Model":
        """The same model with another promise."""
        if promise == self.promise:
            return self
        if promise not in self._variants:
            self._variants[promise] = replace(self, promise=promise)
        return self._variants[promise]

    def on(self, device: str) -> "Model":
        """The same model, scoring on another device: "cpu", "cuda" or "auto"."""
        if device == self.score.backend.device:
            return self
        if device not in self._variants:
            score = replace(self.score, backend=backend_for(device))
            self._variants[device] = replace(self, score=score)
        return self._variants[device]

    @cached_property
    def _variants(self) -> dict[Promise | str, "Model"]:
        return {}

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of anomaly seen so far."""
        return self.evidence.labels.kinds

    @cached_property
    def classes(self) -> np.ndarray:
        """The two labels that `predict` returns, normal first."""
        labels = self.evidence.labels.reader
        classes = np.arange(2) if labels is None or labels.by_name else labels.classes
        if classes.dtype.kind == "f" and not (classes % 1).any():
            classes = classes.astype(int)  # floats only because a label was missing
        return classes

    @cached_property
    def threshold(self) -> float:
        """The score above which a row raises an alarm."""
        return self.calibration.threshold(self.promise.false_alarm_rate, self.promise.confidence)

    @property
    def rank(self) -> int:
        """Which of the largest held-out scores is the threshold; 0 if nothing is promised."""
        return self.calibration.rank(self.promise.false_alarm_rate, self.promise.confidence)

    @property
    def promises_at_most(self) -> bool:
        """Whether the promised rate is a bound, so that the rate on average may be well below."""
        mean = self.rank / (self.calibration.n_units + 1)  # with few rows, in large steps
        is_bound = self.plan.labels.doubts_calibration or self.promise.confidence is not None
        is_bound |= self.plan.holdout.grouping is not None
        return is_bound or mean < _SHARE_OF_RATE * self.promise.false_alarm_rate

    @property
    def n_learnt(self) -> np.ndarray:
        """The weight of the learnt rows: of normal ones, then of each kind."""
        return self.evidence.weight

    def check_dates(self, times: Collection[str] | None = None) -> list[Finding]:
        """A finding for each column of dates, or of `times`, by which later rows raise an alarm."""
        encoder, rows = self.plan.encoder, self.evidence.held_out.normal[:_MAX_VARIED_ROWS]

        def alarms(index: int, column: Column) -> float:
            moved, outputs = rows.copy(), encoder.source == index
            missing = encoder.encode_column(index, replace(column, values=np.array([np.nan])))
            dated = ~np.isclose(rows[:, outputs], missing).all(axis=1)  # others have no date
            values = np.resize(column.values, int(dated.sum()))
            moved[np.ix_(dated, outputs)] = encoder.encode_column(
                index, replace(column, values=values)
            )
            return float(np.mean(self._scores_of(moved) > self.threshold)) if len(rows) else 0.0

        return checks.check_dates(encoder, alarms, rate=self.promise.false_alarm_rate, times=times)

    def check_beyond(self, beyond: Beyond, *, n_rows: int) -> list[Finding]:
        """Findings on dates beyond those learnt, in columns by which later rows raise an alarm."""
        found = checks.check_beyond(beyond, n_rows=n_rows)
        columns = {date.fields["column"] for date in (self.check_dates() if found else ())}
        return [finding for finding in found if finding.fields["column"] in columns]

    def check_threshold(self) -> list[Finding]:
        """A finding if few anomalies, held out or learnt, or made-up rows exceed the threshold."""
        kernel, scores, of = self.plan.kernel, self.calibration.anomaly_scores, checks.HELD_OUT
        if len(scores) < _ANOMALIES_TO_MEASURE:
            scores, of = self._scores_of(kernel.landmarks[~kernel.is_normal]), checks.LEARNT
        return checks.check_threshold(
            self.threshold,
            {of: scores, checks.MADE_UP: self._scores_of(self._far_rows())},
            rate=self.promise.false_alarm_rate,
            thresholds=self.calibration.usual_thresholds(self.promise.confidence),
            n_columns=len(np.unique(self.plan.encoder.source)),
            doubted=self.plan.labels.doubts_calibration,
        )

    @cached_property
    def advised_rate(self) -> float | None:
        """The lowest usual rate that can be promised, and at which enough anomalies are caught."""
        caught = (found.fields.get("rate") for found in self.check_threshold())
        usual = self.calibration.usual_thresholds(self.promise.confidence)
        return next(filter(None, caught), next(iter(usual), None))

    def _far_rows(self) -> np.ndarray:
        """Made-up rows: each column far above or below all that was learnt, or a new name."""
        kernel, encoder, rng = self.plan.kernel, self.plan.encoder, np.random.RandomState(0)
        rows: np.ndarray = kernel.landmarks[kernel.is_normal][:_N_MADE_UP].copy()
        for index, (name, learnt) in enumerate(encoder.by_name.items()):
            if learnt is None:
                continue
            values = np.full(len(rows), None if learnt.reads == "boolean" else NEW_NAME, object)
            if not isinstance(learnt, Category):
                number, far = learnt.number, _RANGES_AWAY * learnt.number.width
                values = rng.choice([number.knots[0] - far, number.knots[-1] + far], size=len(rows))
            column = Column(name, "text" if values.dtype == object else learnt.reads, values)
            rows[:, encoder.source == index] = encoder.encode_column(index, column)
        return rows

    def check_promise(self) -> list[Finding]:
        """A finding if there are too few held-out rows for the promise."""
        rate, confidence, _ = astuple(self.promise)
        if self.rank:
            return []
        return self.calibration.check_rate(
            rate,
            confidence,
            grouping=self.plan.holdout.grouping,
            config=self.config,
            n_normal=self.evidence.n_normal,
            advised=self.advised_rate,
        )

    def scores(self, X: Any) -> np.ndarray:
        """How anomalous each row of a table is."""
        return np.concatenate([self.score(rows) for rows in self._encoded(X)])

    def verdicts(self, X: Any, *, threshold: float | None = None) -> Verdicts:
        """The verdict on each row; it is an alarm above the threshold, or the one given."""
        found = [self.judge(rows, threshold=threshold) for rows in self._encoded(X)]
        return Verdicts(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def judge(self, rows: Any, *, threshold: float | None = None) -> Verdicts:
        """The verdicts on encoded rows."""
        score, alarm, packed, likeness = self._alarms(rows, threshold)
        kind, probability = np.full(len(score), NORMAL, dtype=object), np.full(len(score), np.nan)
        named = self.namer.names(packed, likeness, rate=self.promise.unseen_rate)
        kind[alarm], probability[alarm] = named
        p_value = self.calibration.p_value(score)
        return Verdicts(
            score=score, p_value=p_value, alarm=alarm, kind=kind, kind_probability=probability
        )

    def kind_of(self, X: Any) -> np.ndarray:
        """ "normal" for a row that passes; for an alarm its likeliest seen kind, or "unseen"."""
        return self.verdicts(X).kind.astype(str)

    def kind_sets(
        self,
        X: Any,
        *,
        coverage: float = COVERAGE,
        by_kind: bool = False,
        threshold: float | None = None,
    ) -> KindSets:
        """That of `Detector.predict_kinds`, with alarms above the threshold, or the one given."""
        checked_share(coverage, name="coverage", hint="0.95 leaves out one kind in twenty.")
        found: list[tuple[str, ...]] = []
        rate = self.promise.unseen_rate
        for rows in self._encoded(X):
            _, alarm, packed, likeness = self._alarms(rows, threshold)
            sets = self.namer.sets(packed, likeness, rate=rate, coverage=coverage, by_kind=by_kind)
            names = iter(sets)
            found += [next(names) if is_alarm else () for is_alarm in alarm]
        return KindSets(tuple(found), self.namer.without_promise(coverage, by_kind=by_kind))

    def p_value(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """That of `Detector.p_value`, which says what `groups` are for."""
        score = self.scores(X)
        if groups is None:
            return self.calibration.p_value(score)
        grouping = self.plan.holdout.grouping
        if grouping is None or grouping.edges:
            held = "rows one by one" if grouping is None else "blocks of time"
            raise UserError(
                f"groups tell how rows of a new group score where whole groups were held out; this "
                f"detector has held out {held}. Fit it with groups=, or leave them out here."
            )
        found = with_groups(read_table(X, name="Detector"), groups).groups
        assert found is not None  # there are groups
        return self.calibration.p_value(score, groups=found.group)

    def kind_p_values(self, rows: np.ndarray) -> np.ndarray:
        """The p-value of each of `kinds` for encoded rows.  (n, n_encoded) -> (n, n_kinds)"""
        return self.namer.p_values(self.plan.encoder.pack(rows))

    def select(self, X: Any, *, fdr: float) -> np.ndarray:
        """Which rows of a batch are anomalies, at most a share of `fdr` of them falsely."""
        self.n_calibrating()  # says where it cannot be promised
        return select(self.p_value(X), fdr=fdr)

    def check_selection(self, chosen: np.ndarray, *, fdr: float) -> list[Finding]:
        """Findings on what `select` has chosen: what breaks its promise, or why it is nothing."""
        found = check_selection(chosen, fdr=fdr, n_calibrating=self.n_calibrating())
        return [*([] if self.caution is None else [self.caution]), *found]

    def n_calibrating(self) -> int:
        """How many held-out rows a false-discovery rate rests on; refused where it cannot be."""
        if (grouping := self.plan.holdout.grouping) is not None:
            given = zip(("groups", "time"), grouping.columns, strict=True)
            words = [word for word, name in given if name is not None]
            raise UserError(
                "A false-discovery rate cannot be promised where whole groups are held out: rows "
                "of one group raise alarms together.",
                hint=f"Use predict, or fit without {'= and '.join(words)}=.",
                topic="_".join(["no_fdr", *words]),
            )
        return len(self.calibration.counting)

    def explain(self, X: Any, *, top: int = 5) -> list[Explanation]:
        """Why each row has its score: the columns that drive it, and the nearest normal row."""
        return self.explainer.explain(self.plan.align(X), top=top)

    @cached_property
    def explainer(self) -> Explainer:
        """Explains scores; it keeps normal rows to compare with."""
        return Explainer(
            plan=self.plan,
            score=self.score,
            threshold=self.threshold,
            calibrating=self.evidence.held_out.normal,
            kinds=self.kinds,
        )

    def _encoded(self, X: Any) -> Iterable[Any]:
        return self.plan.encode_in_parts(X, device=self.score.backend.device)

    def _scores_of(self, rows: np.ndarray) -> np.ndarray:
        return self.score(rows) if len(rows) else np.empty(0)

    def _alarms(
        self, rows: Any, threshold: float | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
        """Scores, which are alarms, their packed rows, and likeness to kinds if names need it."""
        threshold = self.threshold if threshold is None else threshold
        needed = self.namer.needs_kind_likeness(self.promise.unseen_rate)
        likeness: np.ndarray | None = None
        if needed and self.score.backend is NUMPY:
            score, likeness = self.score.with_kind_likeness(rows, threshold)
        else:
            score = self.score(rows)
        alarm = score > threshold
        some = self.score.backend.fetched(rows if alarm.all() else rows[np.flatnonzero(alarm)])
        if needed and likeness is None:
            likeness = self.score.kind_likeness(some)
        return score, alarm, self.plan.encoder.pack(some), likeness

    def state(self) -> dict[str, Any]:
        """The parts of a model file; what was solved is one, so that all processes agree."""
        judges = self.namer.judges
        return self.state_without_judges() | {"judges": None if judges is None else judges.state()}

    def state_without_judges(self) -> dict[str, Any]:
        """The same without what is grown on the rows of kinds when a name is first asked for."""
        evidence = replace(self.evidence, kinds=self.evidence.kinds.sorted())
        return {
            "plan": self.plan,
            "evidence": evidence.state(),
            "config": self.config,
            "promise": self.promise,
            "solved": self.score.state(),
            "calibration": self.calibration,
            "caution": self.caution,
            "left_out": list(self.left_out),
            "label_column": self.label_column,
            "other_normal": list(self.other_normal),
        }

    def known(self) -> dict[str, Any]:
        """What the model knows, whatever the order in which it was learnt."""
        state = self.state_without_judges()
        for part in ("solved", "calibration"):
            del state[part]
        del state["evidence"]["sums"]  # the hashes of rows stand for them, without rounding
        labels = self.evidence.labels.reader
        if labels is not None and labels.by_name:  # any other name is an anomaly, seen or forgotten
            state["evidence"]["labels"] = [str(labels.classes[0]), *self.kinds]
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The model of these parts."""
        schemas.check_parts(state, _MODEL, "Model")
        plan, config, calibration = state["plan"], state["config"], state["calibration"]
        evidence = Evidence.from_state(state["evidence"], plan=plan)
        score = Score.from_state(
            state["solved"], plan=plan, learnt=evidence.learnt_sums(plan, config)
        )
        held, n = evidence.held_out, evidence.held_out.is_normal
        n_scores = len(calibration.scores), len(calibration.anomaly_scores)
        if (n[1:] & ~n[:-1]).any() or n_scores != (n.sum(), (~n).sum()):
            schemas.damaged("its held-out rows have more scores, or fewer, than there are")
        if not np.array_equal(calibration.groups, held.groups):
            schemas.damaged("its scores are of other groups than its held-out rows")
        namer = _namer(evidence, config)
        if (state["judges"] is None) == bool(len(evidence.kinds.rows)):
            schemas.damaged("it lacks trees to name alarms by, or rows that they were grown on")
        if state["judges"] is not None:
            judges = Judges.from_state(
                state["judges"],
                examples=evidence.kinds,
                n_folds=config.n_folds,
                max_near=int(config.max_near_rows),
            )
            namer = namer.with_judges(judges)
        return cls(
            plan=plan,
            evidence=evidence,
            config=config,
            promise=state["promise"],
            score=score,
            calibration=calibration,
            namer=namer,
            caution=state["caution"],
            left_out=tuple(state["left_out"]),
            label_column=state["label_column"],
            other_normal=tuple(state["other_normal"]),
        )


_MODEL = {
    "plan": schemas.kept(Plan),
    "evidence": schemas.DICT,
    "config": schemas.kept(Config),
    "promise": schemas.kept(Promise),
    "solved": schemas.entries(schemas.DICT),
    "calibration": schemas.kept(Calibration),
    "judges": schemas.either(schemas.NONE, schemas.DICT),
    "caution": schemas.kept(Finding, optional=True),
    "left_out": schemas.TEXTS,
    "label_column": schemas.TEXT,
    "other_normal": schemas.TEXTS,
}


def calibrate(score: Score, held_out: HeldOutRows) -> Calibration:
    """The calibration that held-out rows give a score."""
    n_anomalies = 0.0
    if len(held_out.anomalies):
        parts = (held_out.normal, held_out.anomalies)
        n_anomalies = anomalies_among(*(score.kind_likeness(part).sum(axis=1) for part in parts))
    return Calibration(
        score(held_out.normal), score(held_out.anomalies), n_anomalies, held_out.groups
    )


def _namer(evidence: Evidence, config: Config) -> Namer:
    return Namer(
        kinds=evidence.labels.kinds,
        learnt=tuple(evidence.weight[1:].tolist()),
        examples=evidence.kinds,
        config=config,
    )
