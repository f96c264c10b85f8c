"""The detector: what a practitioner starts with, as an estimator of scikit-learn."""

import math
import os
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from eqsep.checks import Finding, warn_of
from eqsep.detector import learning
from eqsep.detector.calibration import Calibration, Promise
from eqsep.detector.config import UNLABELLED_ROWS, Config
from eqsep.detector.explainer import Explanation
from eqsep.detector.learning import FitSettings, Learned
from eqsep.detector.model import Model
from eqsep.detector.namer import COVERAGE, KindSets
from eqsep.detector.plan import Plan
from eqsep.detector.runs import check_length
from eqsep.detector.sources import (
    RowsInMemory,
    Source,
    batches_of,
    read,
    source_of,
    with_weight,
)
from eqsep.detector.terms.kernel import kernel_over
from eqsep.engine.backends import DEVICES, backend_for
from eqsep.errors import ParameterError, UserError, UserTypeError
from eqsep.labels import UNLABELLED
from eqsep.tables.reading import (
    check_no_labels,
    is_stream,
    large_in_batches,
    read_table,
    with_groups,
)

_FROM_CONFIG = ("n_landmarks", "bandwidth", "alpha", "unlabelled_weight")


class ForgottenError(UserError, NotFittedError):  # type: ignore[misc]  # of scikit-learn
    """A detector has forgotten all rows that it had learnt, so it is not fitted any more."""


_P = ParamSpec("_P")
_Init = Callable[Concatenate["Detector", _P], None]


def _without_contamination(init: _Init[_P]) -> _Init[_P]:
    """Say what to pass in place of a parameter that other outlier detectors have."""

    @wraps(init)
    def checked(self: "Detector", /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        if "contamination" in kwargs:
            raise UserTypeError(
                "Detector has no parameter 'contamination'.",
                hint="Pass false_alarm_rate, the share of normal rows that may raise an alarm. How "
                "many anomalies there are need not be known: rows that may be some have no label.",
            )
        init(self, *args, **kwargs)

    return checked


class Detector(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # of scikit-learn
    """Alarms for the kinds of anomaly that were seen, and for those that were not.

    f(x) = Σ_j a_j k(x, c_j) is learnt over landmarks c_j with a local kernel k: 1 at normal rows, 0
    at anomalous ones; h is the same of the rows that look normal alone. The score is
    (1 - a) √|1 - f| + a √|1 - h| plus weighted terms: the vote of trees that know the labelled
    anomalies, likeness to these, and the tails of three measures of how unlike normal rows a row
    is. None of them is below 0, so the normal region is closed. The threshold comes from held-out
    normal rows by split conformal prediction: a new normal row raises an alarm at the promised
    rate.

    Parameters
    ----------
    normal : label, default=None
        Which label is normal; by default 0, False, or "normal", "benign", "ok" or "regular" in any
        case.
    false_alarm_rate : float, default=0.01
        The share of new normal rows that may raise an alarm. It may be changed after fitting, as
        may `confidence`, `unseen_rate` and `device`.
    confidence : float, default=None
        With 0.95, 95 of 100 models keep the rate; None: models keep it on average.
    unseen_rate : float, default=0.05
        The share of rows of seen kinds that may be called "unseen".
    n_landmarks : int, default=None
        How many rows become landmarks. Time to score grows with it, time to fit with its square.
    bandwidth : float, default=None
        Of the kernel, in units of the median distance between landmarks: larger is wider.
    alpha : float, default=None
        The ridge penalty, in units of the loss of one row.
    unlabelled : {"auto", "trusted", "doubted"}, default="auto"
        Whether rows that nobody has called anomalous may be anomalies. "auto" trusts rows labelled
        normal; where there are none, it doubts rows without a label if anomalies are labelled, and
        lets the most isolated ones count less if nothing is. "trusted" takes rows without a label
        as normal. "doubted" doubts them, and rows labelled normal too, unless these are enough to
        set the threshold alone: the most isolated of them do not describe normal rows.
    unlabelled_weight : float, default=None
        The weight of a row without a label, as a normal one, where others are labelled normal and
        it is neither trusted nor doubted.
    plan : Plan, default=None
        The `plan_` of another detector, with its landmarks, bandwidth, trees and windows, to learn
        what can be merged with it.
    window : int, default=None
        The number of last rows of a run over which columns of numbers get further columns
        (`eqsep.detector.Windows`).
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Where rows are scored: "cuda" is a GPU, "auto" a GPU if there is one; needs PyTorch. It is
        not in a model's file.
    random_state : int, RandomState or None, default=None
    config : Config, default=None
        All other numbers that a fit depends on, and the defaults of `n_landmarks`, `bandwidth`,
        `alpha` and `unlabelled_weight`; None: `Config()`.

    Attributes
    ----------
    model_ : Model
        All that was learnt, under the present promise.
    plan_ : Plan
        What is fixed at the first fit: encoding, landmarks, trees, and which rows calibrate.
    kinds_ : tuple of str
        The kinds of anomaly seen so far.
    threshold_ : float
        The score above which a row raises an alarm.
    calibration_ : Calibration
        The scores of held-out normal rows.
    coef_ : ndarray of shape (n_landmarks, 1 + n_kinds)
        The a_j, and those of one more function for each seen kind, 1 at its rows and 0 elsewhere.
    caution_ : Finding or None
        What the first fit has found that breaks the promise: rows in runs, or that change in time.
    classes_ : ndarray of shape (2,)
    normal_ : label or None
        The label that was read as normal; None before the first label.

    Notes
    -----
    **Tables** are taken as by `eqsep.tables.TableEncoder`. **Labels** are 0 / 1, booleans, or
    names of kinds, also whole numbers such as 0, 1, 2; None or NaN where nothing is known. Without
    `y` nobody has looked at the rows: they are taken as normal, the most isolated ones with less
    weight. If they are known to be normal, pass `unlabelled="trusted"` or label them so.

    **Learning on.** `partial_fit`, `merge` and `forget` add and subtract evidence, so they are
    exact up to rounding: under one plan, the order and the division of the rows do not matter. Of
    rows that occur several times, copies in one piece are told apart, those in others are not, so
    how many of them calibrate depends on the division.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> normal, seen = rng.normal(size=(600, 2)), rng.normal((6, 0), 0.5, size=(20, 2))
    >>> X, y = np.vstack([normal, seen]), np.repeat(["normal", "pump"], [600, 20])
    >>> detector = Detector(random_state=0).fit(X, y)
    >>> detector.predict([[0.0, 0.0], [6.0, 0.0], [0.0, -9.0]])
    array([0, 1, 1])
    >>> detector.predict_kind([[0.0, 0.0], [6.0, 0.0], [0.0, -9.0]]).tolist()
    ['normal', 'pump', 'unseen']
    """

    _model: Model | None  # None once all rows are forgotten

    @_without_contamination
    def __init__(
        self,
        *,
        normal: Any = None,
        false_alarm_rate: float = 0.01,
        confidence: float | None = None,
        unseen_rate: float = 0.05,
        n_landmarks: int | None = None,
        bandwidth: float | None = None,
        alpha: float | None = None,
        unlabelled: str = "auto",
        unlabelled_weight: float | None = None,
        plan: Plan | None = None,
        window: int | None = None,
        device: str = "cpu",
        random_state: Any = None,
        config: Config | None = None,
    ) -> None:
        self.normal = normal
        self.false_alarm_rate = false_alarm_rate
        self.confidence = confidence
        self.unseen_rate = unseen_rate
        self.n_landmarks = n_landmarks
        self.bandwidth = bandwidth
        self.alpha = alpha
        self.unlabelled = unlabelled
        self.unlabelled_weight = unlabelled_weight
        self.plan = plan
        self.window = window
        self.device = device
        self.random_state = random_state
        self.config = config

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.classifier_tags.multi_class = False
        # Where normal and anomalous rows overlap, few false alarms cost accuracy.
        tags.classifier_tags.poor_score = True
        takes = tags.input_tags
        takes.allow_nan = takes.categorical = takes.string = takes.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_model", None) is not None

    def fit(
        self, X: Any, y: Any = None, groups: Any = None, time: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn what is normal, and the kinds of anomaly that are labelled.

        Parameters
        ----------
        X : frame of pandas or polars, table of pyarrow, array, sparse matrix, list of rows or dicts
            Or batches of them: a `pyarrow.dataset.Dataset`, a function that returns an iterator, or
            an iterable, of tables or pairs (table, labels). They may exceed memory and are read
            twice; an iterator is read once.
        y : array-like of shape (n_rows,), default=None
            0 / 1, or names of kinds and of the normal one; None or NaN where nothing is known. For
            batches that are not pairs, the name of the column of labels.
        groups, time : array-like of shape (n_rows,) or str, default=None
            The recording, machine or card of each row, and when it was taken (numbers, dates), or
            the names of such columns of `X`. Then whole groups, or blocks of time, calibrate.
        sample_weight : array-like of shape (n_rows,) or str, default=None
            The weight of each row, or the name of such a column of `X`: 2 is the row twice, 0
            leaves it out. A row that calibrates does so once, whatever its weight.

        Notes
        -----
        Of more than 100,000 rows in batches, encoding, landmarks and trees come from a sample (of
        an iterator, from the first rows), all else from all rows.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(3000, 2))
        >>> detector = Detector(n_landmarks=50, random_state=0)
        >>> detector.fit(np.array_split(X, 10)).predict([[0.0, 0.0], [9.0, 0.0]])
        array([0, 1])
        """
        warn_of(self.fit_quietly(X, y, groups, time, sample_weight).findings)
        return self

    def fit_quietly(
        self, X: Any, y: Any = None, groups: Any = None, time: Any = None, sample_weight: Any = None
    ) -> Learned:
        """`fit`, which returns what was found and does not warn of it.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> [finding.category.__name__ for finding in Detector().fit_quietly(X).findings]
        ['CalibrationWarning']
        """
        self._settings()  # refuses parameters before it reads rows
        X, y = large_in_batches(X, y) if sample_weight is None else (X, y)
        if is_stream(X):
            windows = self.window if self.plan is None else self.plan.windows
            batches = batches_of(X, y, groups, time, sample_weight, window=windows)
            return self._learn_from(source_of(batches))
        check_no_labels(X)
        table = with_groups(read_table(X, name=type(self).__name__), groups, time)
        if sample_weight is not None:
            table, y = with_weight(table, y, sample_weight)
        return self._learn_from(RowsInMemory(table, y))

    def fit_from(self, source: Source) -> Self:
        """`fit` to the rows of a source, which may be read on other machines."""
        warn_of(self._learn_from(source).findings)
        return self

    def _learn_from(self, source: Source) -> Learned:
        learned = learning.fit(source, self._settings(), check_random_state(self.random_state))
        self.with_model(learned.model)  # also where warnings are errors
        return learned

    def fit_predict(self, X: Any, y: Any = None, **arguments: Any) -> np.ndarray:
        """`fit`, then `predict` on the same rows: they raise fewer alarms than new ones."""
        return self.fit(X, y, **arguments).predict(X)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,  # noqa: ARG002
        groups: Any = None,
        time: Any = None,
        judged: bool = False,
        sample_weight: Any = None,
    ) -> Self:
        """Learn more rows: all pieces together teach what one fit teaches.

        The plan is that of the first piece, or the one given. A name not seen before becomes a seen
        kind.

        Parameters
        ----------
        X, y, groups, time, sample_weight
            As in `fit`; a piece may hold anomalies alone.
        classes : array-like, default=None
            Ignored; for tools that pass it.
        judged : bool, default=False
            Whether rows were judged because they raised an alarm: then none of them calibrates.
        """
        if not self.__sklearn_is_fitted__() and not judged:
            return self.fit(X, y, groups, time, sample_weight)
        X, y = large_in_batches(X, y) if sample_weight is None else (X, y)
        if is_stream(X):
            window = self.plan_.windows
            for table, labels in read(batches_of(X, y, groups, time, sample_weight, window=window)):
                self.partial_fit(table, labels, judged=judged)
            return self
        if sample_weight is not None:
            X, y = with_weight(read_table(X, name=type(self).__name__), y, sample_weight)
        where: dict[str, Any] = {"groups": groups, "time": time, "judged": judged}
        return self._keep(
            learning.learn(self.model_, X, y, **where, backend=backend_for(self.device))
        )

    def merge(self, other: "Detector") -> Self:
        """Take in what `other` has learnt from other rows, as if this had learnt them itself.

        Both must have the same plan: fit one, and give the others its `plan_`.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(3000, 2))
        >>> here = Detector(random_state=0).fit(X[:1500])
        >>> there = Detector(plan=here.plan_).fit(X[1500:])
        >>> len(here.merge(there).calibration_.scores) > len(there.calibration_.scores)
        True
        """
        if not isinstance(other, Detector):
            raise UserTypeError(f"merge expects a fitted Detector, got {type(other).__name__}.")
        mine, theirs = self.model_, other.model_
        if self is other:
            raise UserError(
                "A detector cannot be merged with itself: its rows would count twice. Pass one "
                "that has learnt other rows."
            )
        return self._keep(learning.merge(mine, theirs))

    def forget(
        self,
        X: Any,
        y: Any = None,
        groups: Any = None,
        time: Any = None,
        judged: bool = False,
        sample_weight: Any = None,
    ) -> Self:
        """Unlearn rows that were learnt, with the labels, groups, times and weights that they had.

        Landmarks taken from such rows, and the encoding of the columns, stay. A kind without rows
        is no longer a seen one. A row that was never learnt, or with another label, is refused only
        where it would be held out, or where more rows are to go than are there: of learnt rows
        sums are kept. A detector that has forgotten all rows is not fitted.
        """
        if sample_weight is not None:
            X, y = with_weight(read_table(X, name=type(self).__name__), y, sample_weight)
        where: dict[str, Any] = {"groups": groups, "time": time, "judged": judged}
        left = learning.forget(self.model_, X, y, **where, backend=backend_for(self.device))
        if left is None:
            self._model = None
            return self
        return self._keep(left)

    def rename_kind(self, old: str, new: str) -> Self:
        """Give a seen kind another name; if that is the name of another kind, both become one.

        No score changes; names of alarms between kinds may. Rows that are forgotten later are
        passed with the new name.
        """
        return self._keep(learning.rename(self.model_, old, new))

    def check_parameters(self) -> Self:
        """Refuse parameters that no detector can be fitted with, as `fit` does."""
        self._settings()
        return self

    @classmethod
    def of(cls, model: Model) -> Self:
        """A detector for this model, with its promise and its config."""
        return cls(**asdict(model.promise), config=model.config).with_model(model)

    def with_model(self, model: Model) -> Self:
        """This detector, fitted with what was learnt elsewhere: on a cluster, or from a file."""
        self._model, self._checked_promise = model, model.promise
        return self

    def _keep(self, learned: Learned) -> Self:
        """Keep what was learnt, and warn of what was found."""
        self.with_model(learned.model)  # also where warnings are errors
        warn_of(learned.findings)
        return self

    def _settings(self) -> FitSettings:
        """What is asked of a fit; refuses parameters that none can have."""
        config, promise, plan = self._resolved_config(), self._promise(), self.plan
        if not isinstance(plan, Plan | None):
            raise UserError(
                f"plan must be the plan_ of a fitted detector, got a {type(plan).__name__}."
            )
        for name, known in (("unlabelled", UNLABELLED_ROWS), ("device", DEVICES)):
            if (value := getattr(self, name)) not in known:
                raise ParameterError(name, expected=f"one of {list(known)}", got=value)
        if self.window is not None:
            check_length(self.window)
        if plan is not None:
            self._check_plan(plan, config)
        return FitSettings(
            config=config,
            promise=promise,
            normal=self.normal,
            unlabelled=self.unlabelled,
            window=None if self.window is None else int(self.window),
            plan=plan,
            backend=backend_for(self.device),
        )

    def _resolved_config(self) -> Config:
        """The config, with the values that are given as parameters."""
        if not isinstance(self.config, Config | None):
            raise UserError(f"config must be a Config, got a {type(self.config).__name__}.")
        given = {name: v for name in _FROM_CONFIG if (v := getattr(self, name)) is not None}
        known = {field.name for field in fields(Config)}
        given |= {f"doubted_{n}": v for n, v in given.items() if f"doubted_{n}" in known}
        return replace(self.config or Config.default(), **given)

    def _promise(self) -> Promise:
        return Promise(self.false_alarm_rate, self.confidence, self.unseen_rate)

    def _check_plan(self, plan: Plan, config: Config) -> None:
        """Refuse parameters that a given plan contradicts."""
        kernel, windows = plan.kernel, plan.windows
        if self.window is not None and (windows is None or windows.length != self.window):
            raise UserError(
                f"Windows of {self.window} rows contradict the plan, which has others or none: "
                f"that is settled at the first fit.",
                hint="Leave out window=.",
                topic="no_windows",
            )
        if self.n_landmarks is not None and self.n_landmarks != kernel.max_landmarks:
            expected = f"{kernel.max_landmarks}, as in the plan, or left out"
            raise ParameterError("n_landmarks", expected=expected, got=self.n_landmarks)
        if self.bandwidth is not None:
            config = config.for_rows(doubted=plan.labels.doubted)
            asked = kernel_over(kernel.landmarks, config=config)
            planned = self.bandwidth * float(asked.gamma) / float(kernel.kernel.gamma)
            if not math.isclose(self.bandwidth, planned, rel_tol=1e-3):
                expected = f"{planned:.4g}, as in the plan, or left out"
                raise ParameterError("bandwidth", expected=expected, got=self.bandwidth)
        if self.unlabelled not in ("auto", plan.labels.trust):
            taken = "nobody has looked at them"
            if plan.labels.trust != "auto":
                taken = f"they are {plan.labels.trust}"
            raise UserError(
                f"Rows are to be {self.unlabelled}, and {taken} in the plan: that is settled at "
                f"the first fit.",
                hint=f"Leave out unlabelled=, or fit the detector that plan is from again, with "
                f"unlabelled={self.unlabelled!r}.",
                topic="contrary_trust",
            )

    @property
    def model_(self) -> Model:
        """All that was learnt, under the present promise and on the present device."""
        return self._checked_model().promising(self._promise()).on(self.device)

    @property
    def plan_(self) -> Plan:
        """What is fixed at the first fit."""
        return self.model_.plan

    @property
    def kinds_(self) -> tuple[str, ...]:
        """The kinds of anomaly seen so far."""
        return self.model_.kinds

    @property
    def threshold_(self) -> float:
        """The score above which a row raises an alarm, for the present promise."""
        return self.model_.threshold

    @property
    def calibration_(self) -> Calibration:
        """The scores of held-out normal rows."""
        return self.model_.calibration

    @property
    def coef_(self) -> np.ndarray:
        """The coefficients of f, and of a function for each seen kind."""
        return self._fitted("coef_").score.kernel.coef

    @property
    def caution_(self) -> Finding | None:
        """What the first fit has found that breaks the promise."""
        return self.model_.caution

    @property
    def classes_(self) -> np.ndarray:
        """The two labels that `predict` returns."""
        return self._fitted("classes_").classes

    @property
    def normal_(self) -> Any:
        """The label that was read as normal; None before the first label."""
        labels = self._fitted("normal_").evidence.labels.reader
        return None if labels is None else labels.normal

    @property
    def n_features_in_(self) -> int:
        """How many columns a table has."""
        return len(self._fitted("n_features_in_").plan.table_columns)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The names of the columns, where they have some."""
        plan = self._fitted("feature_names_in_").plan
        if not plan.is_named:
            raise AttributeError("The detector was fitted to a table without column names.")
        return np.array(list(plan.table_columns), dtype=object)

    def _judging(self) -> Model:
        """The model, to judge rows by; warns once where rows are too few for a new promise."""
        model = self.model_
        if model.promise != getattr(self, "_checked_promise", None):
            self._checked_promise = model.promise
            warn_of(model.check_promise())
        return model

    def _checked_model(self) -> Model:
        """The model; an error if there is none, or all that it had learnt is forgotten."""
        model: Model | None = getattr(self, "_model", None)
        if model is None and hasattr(self, "_model"):
            raise ForgottenError(
                "The detector has forgotten all rows that it had learnt, and is not fitted.",
                hint="Fit it again.",
            )
        check_is_fitted(self)
        assert model is not None
        return model

    def _fitted(self, attribute: str) -> Model:
        """The model, for an attribute that does not exist before a fit, as in scikit-learn."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__} has no {attribute!r} before it is fitted.")
        return self._checked_model()

    def score_samples(self, X: Any) -> np.ndarray:
        """0 where a row is normal, near 1 or above where it is not; far away at least 1."""
        return self.model_.scores(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """How far the score of each row is above the threshold; above 0 it is an alarm."""
        model = self._judging()
        return np.asarray(model.scores(X) - model.threshold)

    def predict(self, X: Any) -> np.ndarray:
        """1 for an alarm, 0 for a row that passes; or the two labels, if these are numbers."""
        alarm = self.decision_function(X) > 0
        label: np.ndarray = self.classes_[alarm.astype(int)]
        return label

    def predict_kind(self, X: Any) -> np.ndarray:
        """ "normal" for a row that passes; for an alarm its likeliest seen kind, or "unseen"."""
        return self._judging().kind_of(X)

    def kind_probability(self, X: Any) -> np.ndarray:
        """The probability that the name of each alarm is right; NaN for a row that passes.

        Of a seen kind: given that the alarm is of a seen kind, as common as in the learnt rows; so
        it is 1 if only one kind was seen, and high too for a false alarm, or for an unseen kind
        that resembles a seen one. Of "unseen", not calibrated: r / (p + r), with p the
        probability that a row of a seen kind is as unlike all of them, and r the `unseen_rate`. It
        is the share of unseen kinds among such rows only if they are as common as alarms of seen
        kinds that are called "unseen".
        """
        return self._judging().verdicts(X).kind_probability

    def predict_kinds(
        self, X: Any, *, coverage: float = COVERAGE, by_kind: bool = False
    ) -> KindSets:
        """The kinds that each row may be of, the likeliest first; none for a row that passes.

        Parameters
        ----------
        coverage : float, default=0.95
            The share of alarms of seen kinds with their kind in the set.
        by_kind : bool, default=False
            Whether that holds for the rows of each kind, and not only for all together, with kinds
            as common as in the learnt rows. Sets are then larger.

        Returns
        -------
        sets : KindSets
            A sequence of tuples of names, the first that of `predict_kind`. Kinds with too few
            rows for a promise, `sets.without_promise`, are in it if as probable as 1 - coverage.

        Examples
        --------
        >>> import numpy as np
        >>> from eqsep import Detector
        >>> rng = np.random.default_rng(0)
        >>> normal, seen = rng.normal(size=(600, 2)), rng.normal((6, 0), 0.5, size=(60, 2))
        >>> X, y = np.vstack([normal, seen]), np.repeat(["normal", "pump", "fan"], [600, 30, 30])
        >>> detector = Detector(random_state=0).fit(X, y)
        >>> sorted(detector.predict_kinds([[6.0, 0.0], [0.0, 0.0]])[0])
        ['fan', 'pump']
        """
        return self._judging().kind_sets(X, coverage=coverage, by_kind=by_kind)

    def kind_p_values(self, X: Any) -> np.ndarray:
        """The p-value of "it is of this kind" for each row and each of `kinds_`."""
        model = self.model_
        return model.kind_p_values(model.plan.encode(X))

    def p_value(self, X: Any, *, groups: Any = None) -> np.ndarray:
        """The probability that a new normal row scores as high as each row does.

        Parameters
        ----------
        groups : array-like of shape (n_rows,) or str, default=None
            The group of each row, or the name of such a column, if the detector was fitted with
            groups and `X` has all rows of new ones: a group then counts by its own rows.
        """
        return self.model_.p_value(X, groups=groups)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probabilities that each row is normal, and anomalous: a column per class.

        An anomaly has c / (q + c), with q the probability that a new normal row scores higher
        (`p_value` without its steps) and c that of a row at the threshold, the false-alarm rate:
        1/2 at the threshold. That is the share of anomalies among rows that score as high, if they
        are as common as false alarms and all of them score so high.

        Examples
        --------
        >>> from eqsep import Detector
        >>> X = np.random.default_rng(0).normal(size=(900, 2))
        >>> detector = Detector(bandwidth=1.0, n_landmarks=50, random_state=0).fit(X)
        >>> detector.predict_proba([[0.0, 0.0], [0.0, 9.0]]).round(2)
        array([[0.98, 0.02],
               [0.24, 0.76]])
        """
        model = self.model_
        return model.calibration.probabilities(model.scores(X), threshold=model.threshold)

    def select(self, X: Any, *, fdr: float = 0.1) -> np.ndarray:
        """Which rows of the batch `X` are anomalies, at most a share of `fdr` of them falsely."""
        model = self.model_
        chosen = model.select(X, fdr=fdr)
        warn_of(model.check_selection(chosen, fdr=fdr))
        return chosen

    def explain(self, X: Any, *, top: int = 5) -> list[Explanation]:
        """Why each row has its score: the `top` columns that drive it; others are summed up."""
        return self.model_.explain(X, top=top)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of labelled rows that are classified correctly, normal or anomalous."""
        model, alarm = self.model_, self.decision_function(X) > 0
        reading = replace(model.plan.labels, unlabelled_is_normal=False, normal=self.normal)
        labels = reading.read(y, n_rows=len(alarm), known=model.evidence.labels)
        known = labels.code != UNLABELLED
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(accuracy_score(labels.code[known] > 0, alarm[known], sample_weight=weight))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted detector to one file, without pickle; `eqsep.load_model` reads it."""
        from eqsep.persistence import save_model  # model files know the detector

        self._checked_model()
        save_model(self, path)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write encoding, score and threshold as one ONNX graph; needs the extra `eqsep[onnx]`."""
        from eqsep.export import to_onnx  # graphs know the detector

        to_onnx(self.model_, path)
