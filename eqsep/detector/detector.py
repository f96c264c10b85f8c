"""The detector: what a practitioner starts with."""

import os
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state

from eqsep.arrays import check_is_fitted
from eqsep.checks import warn_of
from eqsep.detector.answers import FittedDetector
from eqsep.detector.fitting import (
    FitContext,
    PartialStatistics,
    check_fitted,
    classes_of,
    first_fit,
    record_context,
)
from eqsep.detector.holdout import row_hashes, with_groups
from eqsep.detector.learning import accumulated, learnt_with, left_without, merged, warn_of_rows
from eqsep.detector.naming import KindRows
from eqsep.detector.parameters import check_parameters
from eqsep.detector.promise import checked_promise
from eqsep.detector.scoring import Calibration, Held, scorer_of
from eqsep.detector.solving import solved
from eqsep.detector.streams import fit_stream, read
from eqsep.detector.windows import grouped
from eqsep.engine.nystroem import Statistics
from eqsep.labels import RowLabels, read_row_labels
from eqsep.renames import DEPRECATED, parameter
from eqsep.tables.reading import is_stream, large_in_batches, read_table


class Detector(FittedDetector, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # of scikit-learn
    """Alarms for the kinds of anomaly that were seen, and for those that were not.

    A table's rows are encoded, and f(x) = Σ_j a_j k(x, c_j) is learnt over landmarks c_j with a
    local kernel k, the mean of exp(-gamma p ||x - c||_1) over p = 1, 2, 4, 8, 16: 1 at normal rows,
    0 at anomalous ones. The score is max(|1 - f(x)|, t(x)) + e(x) + v t(x): far from everything it
    is at least 1, so the normal region is closed. Where normal rows are doubted it is
    |1 - f(x)| + w g(x) + e(x) + v t(x), with g the likeness to labelled anomalies. e is above 0
    where columns do not move together as in normal rows (`eqsep.engine.ellipsoid`), t is what trees
    vote (`eqsep.engine.trees`). Bandwidth and v are
    chosen from the data (`eqsep.detector.bandwidth`), the threshold by split conformal prediction
    from held-out normal rows, so that a new normal row raises an alarm at the promised rate.

    Parameters
    ----------
    normal : label, default=None
        Which label is normal; by default 0, False or "normal", whichever occurs.
    false_alarm_rate : float, default=0.01
        The share of new normal rows that may be called anomalous. It may be set to another value
        after fitting: `predict` and `decision_function` follow.
    confidence : float, default=None
        With 0.95 the threshold is so high that 95 of 100 models keep the rate, not all of them on
        average. It may be set after fitting too.
    unseen_rate : float, default=0.05
        The share of rows of a seen kind that may be called "unseen": the lower, the more names an
        alarm has. It may be set after fitting too.
    n_landmarks : int, default=1400
        How many rows become landmarks, up to a third of them anomalous. Time to score grows with
        it, time to fit with its square.
    bandwidth : float, default=None
        1 / (4 gamma) in units of the median distance between landmarks: larger is wider. None
        chooses it.
    alpha : float, default=0.1
        The ridge penalty, in units of the loss of one row.
    unlabelled : {"auto", "trusted", "doubted"}, default="auto"
        Whether rows that nobody has called anomalous may be anomalies. "auto" trusts rows labelled
        normal; where there are none, it doubts rows without a label beside labelled anomalies.
        "trusted" takes rows without a label for normal ones. "doubted" doubts them, and rows
        labelled normal too, unless these are enough to set the threshold alone.
    unlabelled_weight : float, default=0.01
        What a row without a label counts, as a normal one, beside rows labelled normal, where it is
        neither trusted nor doubted.
    feature_map : FeatureMap, default=None
        The `feature_map_` of another detector, to learn what can be merged with it.
    window : int, default=None
        The last rows of a run by which columns of numbers get others (`eqsep.detector.Windows`).
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Where tables are encoded and scored, and kernel values summed up: "cuda" is a GPU, "auto"
        one where there is one; needs PyTorch. Set after fitting too, and not in a model's file.
    random_state : int, RandomState or None, default=None
    width : float, the old name of 1 / `bandwidth`

    Attributes
    ----------
    feature_map_ : FeatureMap
        What is fixed at the first fit: encoding, landmarks, bandwidth, and which rows calibrate.
    kinds_ : tuple of str
        The kinds of anomaly seen so far.
    threshold_ : float
        The score above which a row is called anomalous.
    statistics_ : Statistics
        The sums from which the coefficients are solved.
    coef_ : ndarray of shape (n_landmarks, 1 + n_kinds)
        The a_j, and those of one more function for each seen kind, 1 at its rows and 0 elsewhere.
    anomaly_coef_ : ndarray of shape (n_landmarks,)
        Those of g; 0 where normal rows are trusted or no anomaly is labelled.
    leaf_votes_ : ndarray of shape (n_leaves,)
        What leaves of trees vote; none where no anomaly was labelled at the first fit.
    calibration_ : Calibration
        The held-out normal rows and their scores.
    kind_rows_ : KindRows
        Learnt rows of the seen kinds, by which alarms are named.
    one_class_ : bool
        Whether rows without a label are normal ones, of which some calibrate, in the first fit and
        in all that is learnt later: by default where no row of the first fit was labelled normal.
    caution_ : Finding or None
        What the first fit has found that breaks the promise: rows in runs, or that change in time.
    classes_ : ndarray of shape (2,)

    Notes
    -----
    **Tables** are taken as by `eqsep.tables.TableEncoder`. **Labels** are 0 / 1, truth values, or
    names of kinds; a missing one (None, NaN) says that nothing is known. Without any label all
    rows count as normal: a one-class detector.

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.classifier_tags.multi_class = False
        # Where normal and anomalous rows overlap, few false alarms cost accuracy.
        tags.classifier_tags.poor_score = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags

    def fit(
        self, X: Any, y: Any = None, groups: Any = None, time: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn what is normal, and the kinds of anomaly that are labelled.

        Parameters
        ----------
        X : frame of pandas or polars, table of pyarrow, array, sparse matrix, list of rows or dicts
            Or batches of them: a `pyarrow.dataset.Dataset`, a function that returns an iterator, or
            an iterable, of tables or pairs (table, labels): they may be more than memory holds, and
            are read twice; an iterator, which comes once, is read once. A sparse matrix of more
            than 40 million values, zeros too, is learnt in batches.
        y : array-like of shape (n_rows,), default=None
            0 / 1, or names of kinds beside the normal one; None or NaN where nothing is known. Of
            batches that are no pairs, the name of the column of labels.
        groups, time : array-like of shape (n_rows,) or str, default=None
            The recording, machine or card of each row, and when it was taken (numbers, dates), or
            the names of such columns of `X`. Then whole groups, or blocks of time, calibrate.
        sample_weight : array-like of shape (n_rows,) or str, default=None
            What each row counts, or the name of such a column of `X`. A weight of 2 is the row
            twice in all sums over learnt rows; 0 leaves it out. A row that calibrates does so once,
            whatever its weight: the promise is for rows as they come.

        Notes
        -----
        Of batches that are read twice, the first pass counts labels and names and draws a sample
        of up to 100,000 rows. Where that is all of them, the fit is that in memory. Else encoding,
        landmarks and bandwidth come from the sample (of an iterator, from the first rows), and all
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
        if self.width != DEPRECATED:
            parameter(self, "bandwidth")  # warns
        name, rng = type(self).__name__, check_random_state(self.random_state)
        X, y = large_in_batches(X, y) if sample_weight is None else (X, y)
        if is_stream(X):
            source = grouped(self, X, y, groups, time, sample_weight)
            return self._begin(*fit_stream(self, rng, source))
        table = with_groups(read_table(X, name=name), groups, time)
        if sample_weight is not None:
            from eqsep.detector.weighting import weighted  # few rows have weights

            table, y = weighted(table, y, sample_weight)
        labels = read_row_labels(y, n_rows=table.n_rows, normal=self.normal)
        return self._begin(*first_fit(self, rng, table, labels, given=y is not None))

    def fit_predict(self, X: Any, y: Any = None, **told: Any) -> np.ndarray:
        """Fit, and say of the same rows what `predict` does; `told` are other arguments of `fit`.

        Rows that were learnt raise fewer alarms than new ones: the promise is for these.
        """
        return self.fit(X, y, **told).predict(X)

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
        """Learn more rows: what all pieces together teach is what one fit teaches.

        The feature map is that of the first piece, or the one given. A name that was not seen
        before becomes a seen kind.

        Parameters
        ----------
        X, y, groups, time, sample_weight
            As in `fit`; a piece may hold anomalies alone.
        classes : array-like, default=None
            Not needed; for tools that pass it.
        judged : bool, default=False
            Whether rows were judged because they raised an alarm: then none of them calibrates.
        """
        if not hasattr(self, "feature_map_") and not judged:
            return self.fit(X, y, groups, time, sample_weight)
        X, y = large_in_batches(X, y) if sample_weight is None else (X, y)
        if is_stream(X):
            source = grouped(self, X, y, groups, time, sample_weight)
            for table, labels in read(source, name=type(self).__name__):
                self.partial_fit(table, labels, judged=judged)
            return self
        told = {"judged": judged, "sample_weight": sample_weight}
        Z, labels, partial = accumulated(self, X, y, groups, time, **told)
        known = self.labels_
        self._record(*learnt_with(self, partial, Z[labels.code > 0]))
        warn_of_rows(self, Z, labels, known=known, judged=judged)
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
        check_is_fitted(self, "feature_map_")
        check_is_fitted(other, "feature_map_")
        self.caution_ = self.caution_ or other.caution_
        return self._record(*merged(self, other))

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

        Landmarks taken from such rows, and the encoding of the columns, stay. A kind of which no
        row is left is not a seen one any more. What is kept of learnt rows are sums: that a row was
        never learnt, or with another label, is noticed where it would be held out, or where more is
        to go than is there, and not else.
        """
        told = {"judged": judged, "sample_weight": sample_weight}
        *_, partial = accumulated(self, X, y, groups, time, **told)
        return self._record(*left_without(self, partial))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted detector to one file, without pickle; `eqsep.load_model` reads it."""
        from eqsep.persistence import save_model  # model files know the detector

        save_model(self, path)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write encoding, score and threshold as one ONNX graph; needs the extra `eqsep[onnx]`."""
        from eqsep.export import to_onnx  # graphs know the detector

        to_onnx(self, path)

    def _begin(self, context: FitContext, partial: PartialStatistics) -> Self:
        """Record a first fit: its context, and what all rows teach in it."""
        record_context(self, context)
        held = partial.held_out.encoded(self.feature_map_)
        self._record(partial.known, partial.statistics, held, partial.kind_rows)
        self.promised_rate_, self.promised_confidence_ = checked_promise(self)
        promise = self.promised_rate_, self.promised_confidence_
        self.calibration_.warn_if_short(*promise, grouping=self.feature_map_.grouping)
        warn_of([*context.findings, *check_fitted(self)])
        return self

    def _record(
        self, labels: RowLabels, statistics: Statistics, held: Held, kind_rows: KindRows
    ) -> Self:
        self.labels_, self.classes_ = labels, classes_of(labels)
        self.statistics_, self.kind_rows_ = statistics, kind_rows
        self.coef_, self.anomaly_coef_, self.leaf_votes_ = solved(self, statistics)
        key = self.feature_map_.holdout_key
        held = held.sorted(lambda rows: row_hashes(rows, key=key))
        self.calibration_ = Calibration.of(scorer_of(self), held)
        return self


def recorded(detector: Detector, context: FitContext, partial: PartialStatistics) -> Detector:
    """The detector once a first fit is over that others have done, on a cluster say."""
    return detector._begin(context, partial)
