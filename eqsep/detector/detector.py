"""The detector: what a practitioner starts with."""

import os
from dataclasses import replace
from importlib import import_module
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from eqsep.batches.sources import is_stream, source_of
from eqsep.detector.answers import UNLABELLED, Answers, read_answers
from eqsep.detector.calibration import Calibration
from eqsep.detector.explanation import Explanation, explain_rows
from eqsep.detector.feature_map import FeatureMap, Plan, row_hashes
from eqsep.detector.learning import check_learnt, check_mergeable, warn_of_far_rows
from eqsep.detector.parameters import check_parameters, checked_rate
from eqsep.detector.pieces import Piece, Terms, piece_of, summed
from eqsep.detector.streaming import read, start_stream
from eqsep.detector.terms import Setup, start
from eqsep.engine.statistics import Statistics, widened
from eqsep.tables.reading import read_table


class Detector(ClassifierMixin, BaseEstimator):
    """Alarms for the kinds of anomaly that were seen, and for those that were not.

    A table's rows are encoded, and f(x) = Σ_j a_j k(x, c_j) is learnt over landmarks c_j with the
    local kernel k(x, c) = exp(-gamma ||x - c||_1): 1 at normal rows, 0 at anomalous ones. The score
    is |1 - f(x)|; far from everything it is 1, so the normal region is closed. The kernel's width
    is chosen from the data (`eqsep.detector.width`), the threshold from normal rows that are held
    out of the fit, so that a new normal row raises an alarm at the promised rate.

    Parameters
    ----------
    normal : label, default=None
        Which label is normal; by default 0, False or "normal", whichever occurs.
    false_alarm_rate : float, default=0.01
        The share of new normal rows that may be called anomalous. It may be set to another value
        after fitting: `predict` and `decision_function` follow.
    n_landmarks : int, default=1400
        How many rows become landmarks, up to a third of them anomalous. Time to score grows with
        it, time to fit with its square.
    width : float, default=None
        Gamma in units of 1 / the median distance between landmarks; None chooses it.
    alpha : float, default=0.1
        The ridge penalty, in units of the loss of one row.
    unlabelled_weight : float, default=0.01
        What a row without a label counts, as a normal one, where some rows are labelled normal.
    feature_map : FeatureMap, default=None
        The `feature_map_` of another detector, to learn what can be merged with it.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Where kernel values are computed and summed up, to fit and to score: "cuda" is a GPU, "auto"
        one where there is one; needs PyTorch. It may be set after fitting, and is not in a model's
        file.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    feature_map_ : FeatureMap
        What is fixed at the first fit: encoding, landmarks, width, and which rows calibrate.
    kinds_ : tuple of str
        The kinds of anomaly seen so far.
    threshold_ : float
        The score above which a row is called anomalous.
    statistics_ : Statistics
        The sums from which the coefficients are solved.
    coef_ : ndarray of shape (n_landmarks, 1 + n_kinds)
        The a_j, and those of one more function for each seen kind, 1 at its rows and 0 elsewhere.
    calibration_ : Calibration
        The held-out normal rows and their scores.
    one_class_ : bool
        Whether no row of the first fit was labelled normal: then, and in all that is learnt later,
        rows without a label are normal ones.
    classes_ : ndarray of shape (2,)

    Notes
    -----
    **Tables**, columns and missing values are taken as by `eqsep.tables.TableEncoder`. **Labels**
    are 0 / 1, truth values, or names of kinds; a missing one (None, NaN) says that nothing is
    known. Without any label all rows count as normal: a one-class detector.

    **Learning on.** `partial_fit`, `merge` and `forget` change sums, so they are exact: the order
    and the division of the rows do not matter, as long as the feature map is the same.

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

    feature_map_: FeatureMap
    statistics_: Statistics
    calibration_: Calibration
    answers_: Answers
    coef_: np.ndarray
    classes_: np.ndarray

    def __init__(
        self,
        *,
        normal: Any = None,
        false_alarm_rate: float = 0.01,
        n_landmarks: int = 1400,
        width: float | None = None,
        alpha: float = 0.1,
        unlabelled_weight: float = 0.01,
        feature_map: FeatureMap | None = None,
        device: str = "cpu",
        random_state: Any = None,
    ) -> None:
        self.normal = normal
        self.false_alarm_rate = false_alarm_rate
        self.n_landmarks = n_landmarks
        self.width = width
        self.alpha = alpha
        self.unlabelled_weight = unlabelled_weight
        self.feature_map = feature_map
        self.device = device
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.classifier_tags.multi_class = False
        # Where normal and anomalous rows overlap, few false alarms cost accuracy.
        tags.classifier_tags.poor_score = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what is normal, and the kinds of anomaly that are labelled.

        Parameters
        ----------
        X : frame of pandas or polars, table of pyarrow, array, list of rows or of dicts, or batches
            Batches are a `pyarrow.dataset.Dataset`, a function that returns an iterator, or an
            iterable, of tables or pairs (table, labels): they may be more than memory holds, and
            are read twice; an iterator, which comes once, is read once.
        y : array-like of shape (n_rows,), default=None
            0 / 1, or names of kinds beside the normal one; None or NaN where nothing is known. Of
            batches that are no pairs, the name of the column of labels.

        Notes
        -----
        Of batches that are read twice, the first pass counts labels and names and draws a sample
        of up to 100,000 rows. Where that is all of them, the fit is that in memory. Else encoding,
        landmarks and width come from the sample (of an iterator, from the first rows), and all
        else from all rows: the sums, the kinds, and which normal rows calibrate.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(3000, 2))
        >>> detector = Detector(n_landmarks=50, random_state=0)
        >>> detector.fit(np.array_split(X, 10)).predict([[0.0, 0.0], [9.0, 0.0]])
        array([0, 1])
        """
        check_parameters(self)
        name = type(self).__name__
        if is_stream(X):
            return self.begin(*start_stream(self.setup(), source_of(X, y, name=name), name=name))
        table = read_table(X, name=name)
        answers = read_answers(y, n_rows=table.n_rows, normal=self.normal)
        return self.begin(*start(self.setup(), table, answers, given=y is not None))

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:  # noqa: ARG002
        """Learn more rows: what all pieces together teach is what one fit teaches.

        The feature map is that of the first piece, or the one given. A name that was not seen
        before becomes a seen kind.

        Parameters
        ----------
        X : table
            As in `fit`.
        y : array-like of shape (n_rows,), default=None
            As in `fit`; a piece may hold anomalies alone.
        classes : array-like, default=None
            Not needed; for tools that pass it.
        """
        if not hasattr(self, "feature_map_"):
            return self.fit(X, y)
        if is_stream(X):
            name = type(self).__name__
            for table, labels in read(source_of(X, y, name=name), name=name):
                self.partial_fit(table, labels)
            return self
        known, terms = self.kinds_, self.terms()
        table = self.feature_map_.encoder.align(read_table(X, name=type(self).__name__))
        answers = terms.answers(y, n_rows=table.n_rows)
        Z = self.feature_map_.rows(table)
        piece = summed(terms, table, answers, Z)
        self.answers_ = piece.known
        sums = widened(self.statistics_, 1 + len(self.kinds_)) + piece.statistics
        self._record(sums, np.concatenate([self.calibration_.rows, self._held_rows(piece)]))
        warn_of_far_rows(self, Z, answers, known=known)
        return self

    def merge(self, other: "Detector") -> Self:
        """Take in what `other` has learnt from other rows, as if this had learnt them itself.

        Both must have the same feature map: fit one, and give the others its `feature_map_`.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(3000, 2))
        >>> here = Detector(random_state=0).fit(X[:1500])
        >>> there = Detector(feature_map=here.feature_map_).fit(X[1500:])
        >>> len(here.merge(there).calibration_.rows) > len(there.calibration_.rows)
        True
        """
        check_is_fitted(self)
        check_is_fitted(other)
        check_mergeable(self, other)
        kinds = tuple(dict.fromkeys((*self.kinds_, *other.kinds_)))
        labels = self.answers_.labels or other.answers_.labels
        places = [0, *(1 + kinds.index(kind) for kind in other.kinds_)]
        self.answers_ = replace(self.answers_, kinds=kinds, labels=labels)
        theirs = widened(other.statistics_, 1 + len(kinds), places=places)
        rows = np.concatenate([self.calibration_.rows, other.calibration_.rows])
        return self._record(widened(self.statistics_, 1 + len(kinds)) + theirs, rows)

    def forget(self, X: Any, y: Any = None) -> Self:
        """Unlearn rows that were learnt, with the labels they had.

        Landmarks taken from such rows, and the encoding of the columns, stay. A kind of which no
        row is left is not a seen one any more.
        """
        check_is_fitted(self)
        piece = piece_of(self.terms(), X, y)
        check_learnt(self, piece)
        rows = self.calibration_.without(self._held_rows(piece))
        left = self.statistics_ - piece.statistics
        kept = [0, *(1 + i for i, weight in enumerate(left.weight[1:]) if weight > 1e-9)]
        kinds = tuple(self.kinds_[i - 1] for i in kept[1:])
        self.answers_ = replace(self.answers_, kinds=kinds)
        return self._record(Statistics(left.gram, left.moment[:, kept], left.weight[kept]), rows)

    def score_samples(self, X: Any) -> np.ndarray:
        """|1 - f(x)|: 0 where a row is normal, near 1 or above where it is not."""
        check_is_fitted(self)
        return self.scores(self.feature_map_.rows(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """How far the score of each row is above the threshold; above 0 it is an alarm."""
        return self.score_samples(X) - self.threshold_

    def predict(self, X: Any) -> np.ndarray:
        """1 for an alarm, 0 for a row that passes; or the labels, where these are numbers."""
        alarm = self.decision_function(X) > 0
        return self.classes_[alarm.astype(int)]

    def predict_kind(self, X: Any) -> np.ndarray:
        """ "normal" for a row that passes; for an alarm the seen kind it resembles, or "unseen"."""
        check_is_fitted(self)
        Z = self.feature_map_.rows(X)
        kind = np.where(self.scores(Z) > self.threshold_, "unseen", "normal").astype(object)
        if self.kinds_:
            likeness = self.likeness(Z)
            named = (kind == "unseen") & (likeness.max(axis=1) > 0.5)
            kind[named] = np.array(self.kinds_, dtype=object)[likeness.argmax(axis=1)[named]]
        return kind.astype(str)

    def p_value(self, X: Any) -> np.ndarray:
        """The chance that a new normal row scores as high as each row does."""
        score = self.score_samples(X)
        return self.calibration_.p_value(score)

    def explain(self, X: Any, *, top: int = 5) -> list[Explanation]:
        """Why each row has its score: the columns that drive it, and the nearest normal row.

        Parameters
        ----------
        X : table
            As in `fit`.
        top : int, default=5
            How many columns are named; the others are summed up.
        """
        check_is_fitted(self)
        return explain_rows(
            self, self.feature_map_.encoder.align(read_table(X, name=type(self).__name__)), top=top
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of labelled rows told right, normal from anomalous."""
        check_is_fitted(self)
        alarm = self.decision_function(X) > 0
        answers = read_answers(y, n_rows=len(alarm), normal=self.normal, known=self.answers_)
        known = answers.code != UNLABELLED
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(accuracy_score(answers.code[known] > 0, alarm[known], sample_weight=weight))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted detector to one file, without pickle; `eqsep.load_model` reads it."""
        # Model files know the detector, not the other way round: looked up when asked for.
        import_module("eqsep.persistence").save_model(self, path)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write encoding, score and threshold as one ONNX graph; needs the extra `eqsep[onnx]`."""
        import_module("eqsep.export").to_onnx(self, path)

    @property
    def kinds_(self) -> tuple[str, ...]:
        """The kinds of anomaly seen so far."""
        return self.answers_.kinds

    @property
    def threshold_(self) -> float:
        """The score above which a row is called anomalous, for the present `false_alarm_rate`."""
        rate = checked_rate(self.false_alarm_rate)
        if rate != self.promised_rate_:  # was set after the fit, which warns of its own
            self.calibration_.warn_if_short(rate)
        return self.calibration_.threshold(rate)

    def terms(self) -> Terms:
        """What must be agreed on for more rows to be learnt by `eqsep.detector.pieces`."""
        check_is_fitted(self)
        return self.setup().terms(self.feature_map_, self.answers_, one_class=self.one_class_)

    def setup(self) -> Setup:
        """What the parameters say of the terms of a first fit; see `eqsep.detector.terms`."""
        rng = check_random_state(self.random_state)
        plan = Plan(self.n_landmarks, self.alpha, self.width, rng)
        return Setup(plan, self.feature_map, self.normal, self.unlabelled_weight, self.device)

    def begin(self, terms: Terms, piece: Piece) -> Self:
        """Record a first fit: its terms, and what all rows teach under them."""
        self.feature_map_, self.answers_ = terms.feature_map, piece.known
        self.one_class_ = terms.one_class
        self._name_columns()
        self._record(piece.statistics, self._held_rows(piece))
        self.promised_rate_ = checked_rate(self.false_alarm_rate)
        self.calibration_.warn_if_short(self.promised_rate_)
        return self

    def _held_rows(self, piece: Piece) -> np.ndarray:
        return self.feature_map_.rows(piece.held.table)

    def _record(self, statistics: Statistics, rows: np.ndarray) -> Self:
        labels = self.answers_.labels
        self.classes_ = np.arange(2) if labels is None or labels.by_name else labels.classes
        if self.classes_.dtype.kind == "f" and not (self.classes_ % 1).any():
            self.classes_ = self.classes_.astype(int)  # floats only because a label was missing
        self.statistics_ = statistics
        self.coef_ = statistics.solve(self.alpha)
        rows = rows[np.argsort(row_hashes(rows, key=self.feature_map_.key), kind="stable")]
        self.calibration_ = Calibration(rows, self.scores(rows))
        return self

    def scores(self, Z: np.ndarray) -> np.ndarray:
        """|1 - f| of rows that the feature map has encoded."""
        if not len(Z):
            return np.zeros(0)
        return np.abs(1 - self._values.combine(Z, self.coef_[:, 0]).astype(float))

    def likeness(self, Z: np.ndarray) -> np.ndarray:
        """How much each row is like each seen kind: 1 at the rows of that kind."""
        return self._values.combine(Z, self.coef_[:, 1:], dtype=float)

    @property
    def _values(self) -> Any:
        return self.feature_map_.on(self.device)

    def _name_columns(self) -> None:
        encoder = self.feature_map_.encoder
        self.n_features_in_ = encoder.n_features_in_
        if hasattr(encoder, "feature_names_in_"):
            self.feature_names_in_ = encoder.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
