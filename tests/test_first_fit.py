"""Rows in batches teach a detector what they teach it all at once."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import csv, feather, parquet

from eqsep import Detector, load_model
from eqsep.batches import sampling
from eqsep.datasets import make_mixed_demo
from eqsep.detector import fitting, holdout
from eqsep.detector.bandwidth import Choice
from eqsep.detector.detector import recorded
from eqsep.detector.fitting import accumulate, context_of
from eqsep.detector.streams import StreamSummary, agree, finished
from eqsep.tables.fitted import aligned
from eqsep.tables.reading import read_table

# A few rows are no ground for a promise, nor for a name; here scores are compared.
pytestmark = [
    pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning"),
    pytest.mark.filterwarnings("ignore::eqsep.detector.NewKindWarning"),
]
FAST = {"n_landmarks": 40, "bandwidth": 0.5, "random_state": 0}
EMPTY_IS_MISSING = pa.dataset.CsvFragmentScanOptions(csv.ConvertOptions(strings_can_be_null=True))
FORMATS = {
    "parquet": "parquet",
    "feather": "feather",
    "csv": pa.dataset.CsvFileFormat(default_fragment_scan_options=EMPTY_IS_MISSING),
}
WRITERS = {"parquet": parquet.write_table, "feather": feather.write_feather, "csv": csv.write_csv}


@pytest.fixture(scope="module")
def frame():
    """Payments and the kind of each; the labels of every seventh are lost."""
    table = make_mixed_demo(n_samples=1600, as_frame=True, random_state=0)
    lost = np.arange(len(table.kind)) % 7 == 0
    return table.X.assign(kind=np.where(lost, None, table.kind))


@pytest.fixture(scope="module")
def X(frame):
    return frame.drop(columns="kind")


def folder_of(frame, folder, form):
    """A dataset of four files."""
    for i in range(4):
        rows = pa.Table.from_pandas(frame[400 * i : 400 * (i + 1)], preserve_index=False)
        WRITERS[form](rows, folder / f"{i}.{form}")
    return pa.dataset.dataset(folder, format=FORMATS[form])


@pytest.fixture(scope="module")
def dataset(frame, tmp_path_factory):
    return folder_of(frame, tmp_path_factory.mktemp("parquet"), "parquet")


@pytest.fixture
def small_sample(monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLE", 500)
    monkeypatch.setattr(sampling, "ANOMALIES", 100)


def batches(frame, size=150):
    return [frame[start : start + size] for start in range(0, len(frame), size)]


def assert_same(detector, other, X):
    assert_allclose(detector.score_samples(X), other.score_samples(X), rtol=1e-6, atol=1e-6)
    assert_allclose(detector.model_.evidence.sums.gram, other.model_.evidence.sums.gram, rtol=1e-6, atol=1e-6)
    assert_allclose(detector.threshold_, other.threshold_, rtol=1e-6, atol=1e-6)
    assert_array_equal(detector.model_.evidence.held_out.normal, other.model_.evidence.held_out.normal)
    assert detector.model_.plan.labels.unlabelled_is_normal == other.model_.plan.labels.unlabelled_is_normal
    assert set(detector.kinds_) == set(other.kinds_)
    assert_array_equal(detector.predict_kind(X), other.predict_kind(X))


def test_a_dataset_of_few_rows_gives_what_they_give_in_memory(dataset, frame, X):
    detector = Detector(**FAST).fit(dataset, "kind")
    memory = Detector(**FAST).fit(X, frame["kind"])
    assert detector.plan_.is_same(memory.plan_)
    assert detector.kinds_ == memory.kinds_
    assert_same(detector, memory, X)


@pytest.mark.parametrize("form", list(FORMATS))
@pytest.mark.usefixtures("small_sample")
def test_a_dataset_of_many_rows_gives_what_they_give_in_memory(form, frame, X, tmp_path):
    dataset = folder_of(frame, tmp_path, form)
    detector = Detector(**FAST).fit(dataset, "kind")
    assert_same(detector, Detector(plan=detector.plan_).fit(X, frame["kind"]), X)
    n = frame["kind"].notna().sum()
    rare = detector.model_.evidence.sums.weight[1:].sum()
    assert detector.model_.evidence.sums.weight[0] < n - rare  # and some calibrate
    assert len(detector.model_.evidence.held_out.normal) <= holdout.held_out(n - int(rare))


@pytest.mark.usefixtures("small_sample")
def test_the_division_into_batches_changes_nothing(dataset, frame, X):
    detector = Detector(**FAST).fit(dataset, "kind")
    pairs = [(part.drop(columns="kind"), part["kind"]) for part in batches(frame)]
    for again in (batches(frame, 70), lambda: iter(batches(frame, 900))):
        assert_same(Detector(**FAST).fit(again, "kind"), detector, X)
    assert_same(Detector(**FAST).fit(pairs), detector, X)


@pytest.mark.usefixtures("small_sample")
def test_a_map_that_is_given_is_kept(dataset, frame, X):
    first = Detector(**FAST).fit(X[:300], frame["kind"][:300])
    given = Detector(plan=first.plan_)
    detector = given.fit(dataset, "kind")
    assert detector.plan_ is first.plan_
    whole = Detector(plan=first.plan_).fit(X, frame["kind"])
    assert_same(detector, whole, X)
    assert_same(
        Detector(plan=first.plan_).fit(iter(batches(frame)), "kind"), whole, X
    )


@pytest.mark.usefixtures("small_sample")
def test_of_rows_that_come_once_the_first_give_the_context(frame, X):
    detector = Detector(**FAST).fit(iter(batches(frame, 100)), "kind")
    first = Detector(**FAST).fit(X[:500], frame["kind"][:500])
    assert_array_equal(detector.plan_.terms.landmarks, first.plan_.terms.landmarks)
    assert detector.plan_.holdout.bound <= first.plan_.holdout.bound
    assert_same(detector, Detector(plan=detector.plan_).fit(X, frame["kind"]), X)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.usefixtures("small_sample")
def test_few_rows_calibrate_however_many_there_are(frame, X, monkeypatch, once):
    for module in (holdout, fitting):
        monkeypatch.setattr(module, "MOST_HELD", 30)
    seen = []
    bounded = fitting.bounded
    monkeypatch.setattr(
        "eqsep.detector.streams.bounded",
        lambda context, piece: seen.append(len(piece.held_out.hashes)) or bounded(context, piece),
    )
    parts = batches(frame, 100)
    detector = Detector(**FAST).fit(iter(parts) if once else parts, "kind")
    assert len(detector.model_.evidence.held_out.normal) == 30
    assert max(seen) < 100
    assert_same(detector, Detector(plan=detector.plan_).fit(X, frame["kind"]), X)


@pytest.mark.parametrize("once", [False, True])
def test_some_rows_calibrate_where_all_batches_are_alike(monkeypatch, once):
    monkeypatch.setattr(sampling, "SAMPLE", 200)
    for module in (holdout, fitting):
        monkeypatch.setattr(module, "MOST_HELD", 20)
    parts = [np.arange(100.0)[:, None]] * 30
    detector = Detector(**FAST).fit(iter(parts) if once else parts)
    held = detector.model_.evidence.held_out.normal
    assert 10 <= len(held) <= 100
    assert len(held) + detector.model_.evidence.sums.weight[0] == 3000


def test_steps_that_other_machines_can_take_give_a_fit(frame, X, small_sample):  # noqa: ARG001
    detector = Detector(**FAST)
    parts = [(part.drop(columns="kind"), part["kind"]) for part in batches(frame, 400)]
    found = []
    for (rows, y), rng in zip(parts, np.random.default_rng(0).spawn(4), strict=True):
        found.append(StreamSummary(normal=None, rng=rng))
        found[-1].add(read_table(rows, name="me"), y)
    first, *others = (pickle.loads(pickle.dumps(summary)) for summary in found)
    for other in others:
        first.merge(other)
    context = agree(detector, np.random.RandomState(0), first)
    piece, *more = (accumulate(context, rows, y) for rows, y in parts)
    for other in more:
        piece = piece + other
    recorded(detector, *finished(context, piece))
    assert_same(detector, Detector(plan=detector.plan_).fit(X, frame["kind"]), X)


@pytest.mark.usefixtures("small_sample")
def test_learning_and_forgetting_go_on_after_a_stream(dataset, frame, X):
    detector = Detector(**FAST).fit(dataset, "kind")
    more = make_mixed_demo(n_samples=300, as_frame=True, random_state=1)
    before = detector.score_samples(X)
    detector.partial_fit(batches(more.X.assign(kind=more.kind), 100), "kind")
    whole = Detector(plan=detector.plan_).fit(
        pd.concat([X, more.X]), [*frame["kind"], *more.kind]
    )
    assert_same(detector, whole, X)
    detector.forget(more.X, more.kind)
    assert_allclose(detector.score_samples(X), before, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("small_sample")
def test_kinds_may_come_in_any_order_and_batches_hold_one_of_them(frame, X):
    kinds = frame["kind"].to_numpy()
    named = frame[frame["kind"].notna()].sort_values("kind", kind="stable")
    parts = [named[named["kind"] == kind] for kind in pd.unique(named["kind"])]
    parts = [*parts[::-1], frame[frame["kind"].isna()]]
    assert set(parts[0]["kind"]) != {"normal"}
    empty = frame[:0]
    detector = Detector(**FAST).fit([empty, parts[0], empty, *parts[1:]], "kind")
    assert detector.kinds_[0] == parts[0]["kind"].iloc[0]
    assert_same(detector, Detector(plan=detector.plan_).fit(X, kinds), X)


@pytest.mark.usefixtures("small_sample")
@pytest.mark.parametrize(
    ("labels", "normal"),
    [
        (lambda kind: (kind != "normal").astype(int), None),
        (lambda kind: kind != "normal", None),
        (lambda kind: np.where(kind == "normal", "fine", kind), "fine"),
        (lambda kind: np.where(kind == "normal", 5, 3), 5),
        (lambda kind: np.where(kind == "normal", None, kind), None),
        (None, None),
    ],
    ids=["numbers", "truths", "names", "other numbers", "kinds and unlabelled", "none"],
)
def test_labels_are_read_as_in_memory(X, labels, normal):
    kind = make_mixed_demo(n_samples=1600, as_frame=True, random_state=0).kind
    y = None if labels is None else labels(kind)
    parts = [
        (part, None if y is None else y[part.index.to_numpy()])
        for part in batches(X.reset_index(drop=True))
    ]
    detector = Detector(**FAST, normal=normal).fit(parts)
    memory = Detector(plan=detector.plan_, normal=normal).fit(X, y)
    assert_same(detector, memory, X)
    assert_array_equal(detector.predict(X), memory.predict(X))
    assert detector.classes_.dtype == memory.classes_.dtype


def test_rare_names_that_the_sample_does_not_have_are_not_new(monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLE", 600)
    rng = np.random.default_rng(0)
    names = np.where(rng.random(4000) < 0.9, "often", [f"n{i // 2}" for i in range(4000)])
    frame = pd.DataFrame({"a": rng.normal(size=4000), "shop": names})
    detector = Detector(**FAST).fit(batches(frame, 500))
    plan = detector.plan_
    shop = plan.encoder.columns[1]
    held = plan.calibrates(plan.align(frame))
    assert set(shop.frequent + shop.rare) == set(frame["shop"][~held])
    assert set(frame["shop"][held]) - set(frame["shop"][~held])  # such names are new
    assert_same(detector, Detector(plan=plan).fit(frame), frame)


@pytest.mark.usefixtures("small_sample")
def test_the_first_rare_name_of_a_column_may_be_outside_the_sample(X):
    shops = np.where(np.arange(len(X)) < 4, "seldom", "often")
    rows = X.assign(shop=shops)
    detectors = [Detector(**FAST | {"random_state": s}).fit(batches(rows)) for s in range(4)]
    learnt = [detector.plan_.encoder.columns[-1] for detector in detectors]
    assert ["seldom"] in [column.rare for column in learnt]
    for detector in detectors:
        assert_same(detector, Detector(plan=detector.plan_).fit(rows), rows)


@pytest.mark.usefixtures("small_sample")
def test_the_bandwidth_is_scaled_to_all_rows(X):
    free = {name: value for name, value in FAST.items() if name != "bandwidth"}
    detector = Detector(**free).fit(batches(X))
    sample = Detector(**FAST).fit(batches(X))
    assert detector.plan_.terms.kernel.gamma != sample.plan_.terms.kernel.gamma
    assert_array_equal(detector.plan_.terms.landmarks, sample.plan_.terms.landmarks)


@pytest.mark.usefixtures("small_sample")
def test_it_is_finer_by_the_eighth_root_of_how_many_more_rows_there_are(X, monkeypatch):
    """All rows are normal, and 500 of them are the sample; what is chosen for these is given."""
    chosen = 1 / FAST["bandwidth"]
    monkeypatch.setattr(Choice, "inverse_bandwidth", lambda _: chosen)
    free = {name: value for name, value in FAST.items() if name != "bandwidth"}
    scaled, sample = (Detector(**told).fit(batches(X)) for told in (free, FAST))
    ratio = scaled.plan_.terms.kernel.gamma / sample.plan_.terms.kernel.gamma
    assert ratio == pytest.approx((len(X) / 500) ** (1 / 8))


def test_summaries_of_pieces_merge_into_one(frame, X, small_sample):  # noqa: ARG001
    def summarised(rows, seed):
        found = StreamSummary(normal=None, rng=np.random.default_rng(seed))
        for part in batches(rows):
            found.add(read_table(part.drop(columns="kind"), name="me"), part["kind"])
        return found

    whole, first, second = (
        summarised(frame, 0),
        summarised(frame[:700], 1),
        summarised(frame[700:], 2),
    )
    first.merge(second)
    assert first.n_rows == whole.n_rows == len(frame)
    for mine, others in zip(first.row_labels(), whole.row_labels(), strict=True):
        assert str(mine) == str(others)
    assert first.names.keys() == whole.names.keys()
    for column in whole.names:
        assert first.names[column] == whole.names[column]
    sample = first.sample()
    assert len(sample.y) == len(set(sample.positions.tolist())) == 500
    assert_array_equal(sample.y, frame["kind"].to_numpy(object, na_value=None)[sample.positions])
    assert_array_equal(
        sample.rows.columns[1].values, read_table(X, name="me").columns[1].values[sample.positions]
    )


def test_up_to_a_third_of_the_sample_are_anomalies(monkeypatch, X):
    def anomalies(share, most):
        monkeypatch.setattr(sampling, "SAMPLE", 300)
        monkeypatch.setattr(sampling, "ANOMALIES", most)
        found = StreamSummary(normal=None, rng=np.random.default_rng(0))
        found.add(read_table(X, name="me"), np.arange(len(X)) < share * len(X))
        return int(found.sample().y.sum())

    assert anomalies(0.5, 10) == 100
    assert anomalies(0.1, 10) == 30
    assert anomalies(0.1, 60) == 60
    assert anomalies(0.01, 60) == 16


def test_contexts_and_partial_statistics_can_be_sent(frame, X):
    detector = Detector(**FAST).fit(X[:400], frame["kind"][:400])
    context = pickle.loads(pickle.dumps(context_of(detector)))
    here = accumulate(context_of(detector), X, frame["kind"])
    there = pickle.loads(pickle.dumps(accumulate(context, X, frame["kind"])))
    assert_array_equal(here.statistics.gram, there.statistics.gram)
    assert_array_equal(here.held_out.hashes, there.held_out.hashes)


def test_pieces_add_up_in_any_order(frame, X):
    context = context_of(Detector(**FAST).fit(X[:400], frame["kind"][:400]))
    context = replace(context, known=replace(context.known, kinds=()))
    parts = [
        accumulate(context, part.drop(columns="kind"), part["kind"]) for part in batches(frame)
    ]
    forth, back = parts[0], parts[-1]
    for part in parts[1:]:
        forth = forth + part
    for part in parts[-2::-1]:
        back = back + part
    assert forth.known.kinds != back.known.kinds
    weights = [
        dict(zip(p.known.kinds, p.statistics.weight[1:], strict=True)) for p in (forth, back)
    ]
    assert weights[0] == weights[1]
    assert sorted(forth.held_out.hashes) == sorted(back.held_out.hashes)
    assert forth.n_normal == back.n_normal == (frame["kind"] == "normal").sum()


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize(
    ("X", "y", "told"),
    [
        ([], None, "There are no rows"),
        ([pd.DataFrame({"a": []})], None, "There are no rows"),
        ([pd.DataFrame({"a": [1.0] * 9})] * 2, "b", "no column 'b' of labels"),
        ([np.zeros((9, 2)), np.zeros((9, 3))], None, "Batch 2 has not the columns"),
        ([pd.DataFrame({"a": [1.0] * 9}), pd.DataFrame({"a": ["x"] * 9})], None, "not of one kind"),
        ([(np.zeros((9, 2)), [0] * 8)], None, "X has 9 rows, y has 8 labels"),
        ([(np.zeros((9, 2)), [None] * 9)], None, "y holds no label"),
        ([(np.zeros((9, 2)), ["bad"] * 9)], None, "none is 0, False or 'normal'"),
    ],
)
def test_bad_batches_are_refused_in_a_sentence(X, y, told, once):
    with pytest.raises(ValueError, match=told):
        Detector(**FAST).fit(iter(X) if once else lambda: iter(X), y)


def test_too_many_labels_are_refused():
    X = np.arange(1200.0)[:, None]
    with pytest.raises(ValueError, match="more than 1,000 different labels"):
        Detector(**FAST).fit([(X, [f"k{i}" for i in range(1200)])])


@pytest.mark.usefixtures("small_sample")
def test_a_column_that_turns_into_text_is_refused_where_rows_come_once(X):
    later = X[600:].assign(amount="much")
    with pytest.raises(ValueError, match="Column 'amount' held numbers in training, and 'much'"):
        Detector(**FAST).fit(iter([X[:600], later]))


@pytest.mark.usefixtures("small_sample")
def test_a_detector_fitted_to_a_stream_can_be_kept(frame, X, tmp_path):
    detector = Detector(**FAST).fit(batches(frame), "kind")
    detector.save(tmp_path / "m.eqsep")
    assert_array_equal(load_model(tmp_path / "m.eqsep").score_samples(X), detector.score_samples(X))
