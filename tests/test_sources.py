"""Fits to rows in memory, in batches and from several machines, and with weights."""

import pickle
import warnings
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import csv, feather, parquet
from summed import gram_of, leaves_of, sums_of, term_of

from eqsep import Detector, load_model
from eqsep.checks import CopiedRowsWarning
from eqsep.datasets import make_mixed_demo
from eqsep.detector import Config, learning
from eqsep.detector.evidence import gather
from eqsep.detector.holdout import n_held_out
from eqsep.detector.sources import RowsInMemory, Tally, summed
from eqsep.detector.terms import EllipsoidTerm
from eqsep.detector.terms.term import Sums
from eqsep.engine.ellipsoid import Ellipsoid
from eqsep.errors import UserError
from eqsep.labels import read_row_labels
from eqsep.tables.reading import read_table

# A few rows are no ground for a promise, nor for a name; here scores are compared.
pytestmark = [
    pytest.mark.filterwarnings("ignore::eqsep.detector.CalibrationWarning"),
    pytest.mark.filterwarnings("ignore::eqsep.detector.NewKindWarning"),
]
FAST = {"n_landmarks": 40, "bandwidth": 0.5, "random_state": 0, "config": Config.fast()}
SMALL = FAST | {"config": replace(Config.fast(), max_sample=500, max_sample_anomalies=100)}
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


def like(plan, **more):
    """What can be merged with a fit that has this plan."""
    return Detector(plan=plan, config=Config.fast(), **more)


def batches(frame, size=150):
    return [frame[start : start + size] for start in range(0, len(frame), size)]


def assert_same(detector, other, X):
    assert_allclose(detector.score_samples(X), other.score_samples(X), rtol=1e-6, atol=1e-6)
    mine, theirs = detector.model_.evidence, other.model_.evidence
    assert_allclose(gram_of(mine), gram_of(theirs), rtol=1e-6, atol=1e-6)
    assert_allclose(detector.threshold_, other.threshold_, rtol=1e-6, atol=1e-6)
    assert_array_equal(mine.held_out.normal, theirs.held_out.normal)
    assert detector.plan_.labels == other.plan_.labels
    assert set(detector.kinds_) == set(other.kinds_)
    assert_array_equal(detector.predict_kind(X), other.predict_kind(X))


def test_a_dataset_of_few_rows_gives_what_they_give_in_memory(dataset, frame, X):
    detector = Detector(**FAST).fit(dataset, "kind")
    memory = Detector(**FAST).fit(X, frame["kind"])
    assert detector.plan_.is_same(memory.plan_)
    assert detector.kinds_ == memory.kinds_
    assert_same(detector, memory, X)


@pytest.mark.parametrize("form", list(FORMATS))
def test_a_dataset_of_many_rows_gives_what_they_give_in_memory(form, frame, X, tmp_path):
    dataset = folder_of(frame, tmp_path, form)
    detector = Detector(**SMALL).fit(dataset, "kind")
    assert_same(detector, like(detector.plan_).fit(X, frame["kind"]), X)
    n, learnt = frame["kind"].notna().sum(), detector.model_.n_learnt
    rare = learnt[1:].sum()
    assert learnt[0] < n - rare  # and some calibrate
    held = len(detector.model_.evidence.held_out.normal)
    most = n_held_out(n - int(rare), config=Config())
    assert held <= most + 6 * most**0.5


def test_the_division_into_batches_changes_nothing(dataset, frame, X):
    detector = Detector(**SMALL).fit(dataset, "kind")
    pairs = [(part.drop(columns="kind"), part["kind"]) for part in batches(frame)]
    for again in (batches(frame, 70), lambda: iter(batches(frame, 900))):
        assert_same(Detector(**SMALL).fit(again, "kind"), detector, X)
    assert_same(Detector(**SMALL).fit(pairs), detector, X)


def test_a_plan_that_is_given_is_kept(dataset, frame, X):
    first = Detector(**SMALL).fit(X[:300], frame["kind"][:300])
    given = like(first.plan_)
    detector = given.fit(dataset, "kind")
    assert detector.plan_.is_same(first.plan_)
    whole = like(first.plan_).fit(X, frame["kind"])
    assert_same(detector, whole, X)
    assert_same(like(first.plan_).fit(iter(batches(frame)), "kind"), whole, X)


def test_of_rows_that_come_once_the_first_give_the_plan(frame, X):
    detector = Detector(**SMALL).fit(iter(batches(frame, 100)), "kind")
    first = Detector(**SMALL).fit(X[:500], frame["kind"][:500])
    assert_array_equal(detector.plan_.kernel.landmarks, first.plan_.kernel.landmarks)
    assert_same(detector, like(detector.plan_).fit(X, frame["kind"]), X)


def test_few_rows_calibrate_however_many_there_are(frame, X):
    parts, config = batches(frame, 100), replace(SMALL["config"], max_held_out=30)
    detector = Detector(**SMALL | {"config": config}).fit(parts, "kind")
    assert 30 <= len(detector.model_.evidence.held_out.normal) <= 30 + 6 * 30**0.5
    assert_same(detector, like(detector.plan_).fit(X, frame["kind"]), X)


def test_of_rows_that_come_once_those_held_out_beyond_what_calibrates_are_dropped(frame, X):
    parts, config = batches(frame, 100), replace(SMALL["config"], max_held_out=30)
    detector = Detector(**SMALL | {"config": config}).fit(iter(parts), "kind")
    whole = like(detector.plan_).fit(X, frame["kind"])
    held, more = (d.model_.evidence.held_out for d in (detector, whole))
    normal = np.sort(more.hashes[more.is_normal])
    assert len(normal) > 30
    assert_array_equal(np.sort(held.hashes[held.is_normal]), normal[:30])
    same_sums(detector, whole)


def test_memory_does_not_grow_with_rows_that_come_once(frame):
    """While batches are gathered, at most twice as many rows are kept as calibrate."""
    config = replace(Config.fast(), max_held_out=20, max_kind_rows=5)
    plan = Detector(**FAST).fit(frame.drop(columns="kind"), frame["kind"]).plan_
    rows, y = frame.drop(columns="kind"), frame["kind"]
    evidence = gather(plan, plan.align(rows), plan.labels.read(y, n_rows=len(rows)))
    some, half = evidence.trimmed(config), evidence.trimmed(config, slack=1e9)
    assert len(evidence.held_out.normal) > 40
    assert len(some.held_out.normal) == 20
    assert set(np.unique(some.kinds.kind, return_counts=True)[1]) <= {1, 2, 3, 4, 5}
    assert len(half.held_out.normal) == len(evidence.held_out.normal)
    twice = evidence.trimmed(config).trimmed(config)
    assert_array_equal(twice.held_out.hashes, some.held_out.hashes)


@pytest.mark.parametrize("once", [False, True])
def test_some_rows_calibrate_where_all_batches_are_alike(once):
    parts = [np.arange(100.0)[:, None]] * 30
    config = replace(Config.fast(), max_sample=200, max_held_out=20)
    detector = Detector(**FAST | {"config": config}).fit(iter(parts) if once else parts)
    held = detector.model_.evidence.held_out.normal
    assert 10 <= len(held) <= 300  # each of the 100 rows 30 times, or not at all
    if not once:
        assert len(held) + detector.model_.n_learnt[0] == 3000


class Elsewhere:
    """Rows whose parts are tallied, and gathered from, by processes of their own."""

    def __init__(self, parts):
        self.parts = parts

    def summary(self, wanted):
        wanted, tallies = pickle.loads(pickle.dumps(wanted)), []
        for number, (rows, y) in enumerate(self.parts):
            tally = Tally(normal=wanted.normal, config=wanted.config, seed=[wanted.seed, number])
            tally.add(read_table(rows, name="me"), y)
            tallies.append(pickle.loads(pickle.dumps(tally)))
        first, *others = tallies
        for other in others:
            first.merge(other)
        return first.summary()

    def total(self, gather):
        there = pickle.loads(pickle.dumps(gather))
        parts = (there(read_table(rows, name="me"), y) for rows, y in self.parts)
        return summed(pickle.loads(pickle.dumps(part)) for part in parts)


def test_steps_that_other_machines_can_take_give_a_fit(frame, X):
    parts = [(part.drop(columns="kind"), part["kind"]) for part in batches(frame, 400)]
    detector = Detector(**SMALL).fit_from(Elsewhere(parts))
    assert_same(detector, like(detector.plan_).fit(X, frame["kind"]), X)


def test_a_function_of_values_gives_the_model_of_a_detector(frame, X):
    rows, y = read_table(X, name="me"), frame["kind"]
    detector = Detector(**FAST).fit(X, y)
    settings = learning.FitSettings(config=detector.model_.config, promise=detector.model_.promise)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it warns of nothing: what it finds is a value
        learned = learning.fit(RowsInMemory(rows, y), settings, np.random.RandomState(0))
        again = learning.learn(learned.model, X[:200], y[:200])
    assert_array_equal(learned.model.scores(X), detector.score_samples(X))
    assert [finding.category.__name__ for finding in again.findings] == [
        "RepeatedRowsWarning"
    ] * len(again.findings)
    assert again.findings
    assert learned.model.n_learnt.sum() == detector.model_.n_learnt.sum()


def test_learning_and_forgetting_go_on_after_a_stream(dataset, frame, X):
    detector = Detector(**SMALL).fit(dataset, "kind")
    more = make_mixed_demo(n_samples=300, as_frame=True, random_state=1)
    before = detector.score_samples(X)
    detector.partial_fit(batches(more.X.assign(kind=more.kind), 100), "kind")
    whole = like(detector.plan_).fit(pd.concat([X, more.X]), [*frame["kind"], *more.kind])
    assert_same(detector, whole, X)
    detector.forget(more.X, more.kind)
    assert_allclose(detector.score_samples(X), before, rtol=1e-6, atol=1e-6)


def test_kinds_may_come_in_any_order_and_batches_hold_one_of_them(frame, X):
    kinds = frame["kind"].to_numpy()
    named = frame[frame["kind"].notna()].sort_values("kind", kind="stable")
    parts = [named[named["kind"] == kind] for kind in pd.unique(named["kind"])]
    parts = [*parts[::-1], frame[frame["kind"].isna()]]
    assert set(parts[0]["kind"]) != {"normal"}
    empty = frame[:0]
    detector = Detector(**SMALL).fit([empty, parts[0], empty, *parts[1:]], "kind")
    assert detector.kinds_[0] == parts[0]["kind"].iloc[0]
    assert_same(detector, like(detector.plan_).fit(X, kinds), X)


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
    detector = Detector(**SMALL, normal=normal).fit(parts)
    memory = like(detector.plan_, normal=normal).fit(X, y)
    assert_same(detector, memory, X)
    assert_array_equal(detector.predict(X), memory.predict(X))
    assert detector.classes_.dtype == memory.classes_.dtype


def test_names_beyond_the_sample_are_new_names():
    """Of learnt rows and of those held out alike: the plan has fixed which names there are."""
    rng = np.random.default_rng(0)
    names = np.where(rng.random(4000) < 0.9, "often", [f"n{i // 2}" for i in range(4000)])
    frame = pd.DataFrame({"a": rng.normal(size=4000), "shop": names})
    config = replace(Config.fast(), max_sample=600)
    detector = Detector(**FAST | {"config": config}).fit(batches(frame, 500))
    plan = detector.plan_
    shop = plan.encoder.columns[1]
    assert len({*shop.frequent, *shop.rare}) < len(set(names)) / 2
    assert_same(detector, like(plan).fit(frame), frame)


def tallied(rows, kind, seed, **most):
    tally = Tally(normal=None, config=replace(Config(), **most), seed=seed)
    for start in range(0, len(rows), 150):
        tally.add(read_table(rows[start : start + 150], name="me"), kind[start : start + 150])
    return tally


def test_tallies_of_pieces_merge_into_one(frame, X):
    kind, few = frame["kind"], {"max_sample": 500, "max_sample_anomalies": 100}
    whole, first, second = (
        tallied(X[part], kind[part], seed, **few)
        for seed, part in enumerate((slice(None), slice(700), slice(700, None)))
    )
    first.merge(second)
    assert first.n_rows == whole.n_rows == len(frame)
    mine, others = first.summary(), whole.summary()
    assert str(mine.labels) == str(others.labels)
    assert mine.counts.tolist() == others.counts.tolist()
    assert mine.sample.n_rows == 500
    assert not mine.is_whole
    table, sample = read_table(X, name="me"), mine.sample
    rows, all_rows = (
        set(map(str, zip(*(column.values.tolist() for column in one.columns), strict=True)))
        for one in (sample, table)
    )
    assert rows <= all_rows


def test_up_to_a_third_of_the_sample_are_anomalies(X):
    def anomalies(share, most):
        y = np.arange(len(X)) < share * len(X)
        tally = tallied(X, y, 0, max_sample=300, max_sample_anomalies=most)
        return int(tally.summary().sampled.is_anomaly.sum())

    assert anomalies(0.5, 10) == 100
    assert anomalies(0.1, 10) == 30
    assert anomalies(0.1, 60) == 60
    assert anomalies(0.01, 60) == 16


def test_plans_and_evidence_can_be_sent(frame, X):
    plan = Detector(**FAST).fit(X[:400], frame["kind"][:400]).plan_
    here, there = (
        gather(p, p.align(X), p.labels.read(frame["kind"], n_rows=len(X)))
        for p in (plan, pickle.loads(pickle.dumps(plan)))
    )
    there = pickle.loads(pickle.dumps(there))
    assert_array_equal(gram_of(here), gram_of(there))
    assert_array_equal(here.held_out.hashes, there.held_out.hashes)


@pytest.mark.parametrize("batched", [lambda X: X, batches, lambda X: iter(batches(X))])
def test_of_copied_rows_one_is_learnt_where_all_are_looked_at(X, batched):
    with pytest.warns(CopiedRowsWarning):
        detector = Detector(**FAST).fit(batched(pd.concat([X, X])))
    assert detector.model_.n_learnt.sum() <= len(X)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize(
    ("X", "y", "told"),
    [
        ([], None, "Got no rows"),
        ([pd.DataFrame({"a": []})], None, "Got no rows"),
        ([pd.DataFrame({"a": [1.0] * 9})] * 2, "b", "label column 'b' is missing"),
        ([np.zeros((9, 2)), np.zeros((9, 3))], None, "Batch 2 does not have the columns"),
        ([pd.DataFrame({"a": [1.0] * 9}), pd.DataFrame({"a": ["x"] * 9})], None, "not of one kind"),
        ([(np.zeros((9, 2)), [0] * 8)], None, "X has 9 rows, y has 8 labels"),
        ([(np.zeros((9, 2)), [None] * 9)], None, "All labels are missing"),
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


def test_a_column_that_turns_into_text_is_refused_where_rows_come_once(X):
    later = X[600:].assign(amount="much")
    with pytest.raises(ValueError, match="Column 'amount' held numbers in training, and 'much'"):
        Detector(**SMALL).fit(iter([X[:600], later]))


def test_a_detector_fitted_to_a_stream_can_be_kept(frame, X, tmp_path):
    detector = Detector(**SMALL).fit(batches(frame), "kind")
    detector.save(tmp_path / "m.eqsep")
    assert_array_equal(load_model(tmp_path / "m.eqsep").score_samples(X), detector.score_samples(X))


# ----------------------------- weights: in all sums as so many rows, and not in the promise

WEIGHING = {"bandwidth": 1.0, "n_landmarks": 60, "random_state": 0, "config": Config.fast()}
RNG = np.random.default_rng(0)
PLANE = np.vstack([RNG.normal(size=(700, 3)), RNG.normal((4, 0, 0), 1, size=(40, 3))])
KIND = np.repeat(["normal", "pump"], [700, 40])
SHUFFLED = RNG.permutation(len(PLANE))
PLANE, KIND = PLANE[SHUFFLED], KIND[SHUFFLED]
WEIGHT = RNG.integers(1, 4, size=len(PLANE)).astype(float)
MORE, MORE_KIND = PLANE[:200] + 0.1, KIND[:200]
repeated = pytest.mark.filterwarnings("ignore::eqsep.detector.RepeatedRowsWarning")


def same_sums(some, others):
    mine, theirs = (sums_of(d.model_) for d in (some, others))
    assert mine.keys() == theirs.keys()
    for term in mine:
        for part in fields(Sums):
            arrays, others_arrays = (getattr(sums[term], part.name) for sums in (mine, theirs))
            assert arrays.keys() == others_arrays.keys()
            for name, array in arrays.items():
                there = others_arrays[name]
                assert_allclose(array, there, rtol=1e-9, atol=1e-9, err_msg=f"{term} {name}")
    assert_allclose(some.model_.evidence.weight, others.model_.evidence.weight, rtol=1e-9)


@pytest.mark.parametrize("doubted", [False, True])
def test_a_weight_of_2_is_the_row_twice_in_all_sums(doubted):
    told = {"unlabelled": "doubted"} if doubted else {}
    one, other = (Detector(**WEIGHING, **told).fit(PLANE, KIND) for _ in range(2))
    times = WEIGHT[:200].astype(int)
    one.partial_fit(MORE, MORE_KIND, sample_weight=times, judged=True)
    rows = np.repeat(np.arange(200), times)
    other.partial_fit(MORE[rows], MORE_KIND[rows], judged=True)
    same_sums(one, other)
    assert leaves_of(one.model_).any()
    assert ("likeness" in sums_of(one.model_)) == doubted
    assert_allclose(one.score_samples(PLANE), other.score_samples(PLANE), atol=1e-6)


def test_who_calibrates_and_counts_once_does_not_depend_on_weights():
    plain = Detector(**WEIGHING).fit(PLANE, KIND)
    heavier = like(plain.plan_).fit(PLANE, KIND, sample_weight=WEIGHT)
    assert_array_equal(
        heavier.model_.evidence.held_out.normal, plain.model_.evidence.held_out.normal
    )
    assert heavier.calibration_.n_units == plain.calibration_.n_units
    labels = read_row_labels(KIND, n_rows=len(PLANE), normal=None)
    learnt = plain.plan_.holdout.split(
        read_table(PLANE, name=""), labels, encoder=plain.plan_.encoder
    ).learnt
    by_kind = [WEIGHT[learnt & (name == KIND)].sum() for name in ("normal", "pump")]
    assert_allclose(heavier.model_.evidence.weight, by_kind)


def test_weights_of_1_change_nothing_and_rows_of_weight_0_are_not_there():
    plain = Detector(**WEIGHING).fit(PLANE, KIND)
    ones = Detector(**WEIGHING).fit(PLANE, KIND, sample_weight=np.ones(len(PLANE)))
    assert_allclose(ones.score_samples(PLANE), plain.score_samples(PLANE), atol=1e-6)
    there = np.arange(len(PLANE)) % 5 > 0
    few = Detector(**WEIGHING).fit(PLANE[there], KIND[there], sample_weight=WEIGHT[there])
    zeros = Detector(**WEIGHING).fit(PLANE, KIND.tolist(), sample_weight=WEIGHT * there)
    assert_array_equal(zeros.score_samples(PLANE), few.score_samples(PLANE))
    assert_array_equal(zeros.model_.evidence.held_out.normal, few.model_.evidence.held_out.normal)


@repeated
def test_pieces_merges_and_what_is_forgotten_are_exact():
    plan = Detector(**WEIGHING).fit(PLANE, KIND).plan_
    told = {"plan": plan, "false_alarm_rate": 0.1}
    whole, first, second = (Detector(**told) for _ in range(3))
    whole.fit(PLANE, KIND, sample_weight=WEIGHT)
    first.fit(PLANE[:400], KIND[:400], sample_weight=WEIGHT[:400])
    alone = first.score_samples(PLANE)
    second.fit(PLANE[400:], KIND[400:], sample_weight=WEIGHT[400:])
    same_sums(second.merge(first), whole)
    first.partial_fit(PLANE[400:], KIND[400:], sample_weight=WEIGHT[400:])
    same_sums(first, whole)
    assert_array_equal(first.model_.evidence.held_out.normal, whole.model_.evidence.held_out.normal)
    first.forget(PLANE[400:], KIND[400:], sample_weight=WEIGHT[400:])
    assert_allclose(first.score_samples(PLANE), alone, atol=1e-5)
    with pytest.raises(UserError, match="more than was learnt"):
        first.forget(PLANE[:400], KIND[:400], sample_weight=2 * WEIGHT[:400])


@pytest.fixture
def weighted():
    columns = {"a": PLANE[:, 0], "b": PLANE[:, 1], "c": PLANE[:, 2], "times": WEIGHT, "kind": KIND}
    return pd.DataFrame(columns)


@repeated
def test_batches_with_a_column_of_weights_are_the_rows_in_memory(weighted):
    weighted.loc[100:299, "times"] = 0.0  # two batches of which nothing counts
    rows = weighted.drop(columns="kind")
    memory = Detector(**WEIGHING).fit(rows, KIND, sample_weight="times")
    stream = Detector(**WEIGHING).fit(batches(weighted, 100), "kind", sample_weight="times")
    new = rows.drop(columns="times")
    assert_array_equal(stream.score_samples(new), memory.score_samples(new))
    assert stream.feature_names_in_.tolist() == ["a", "b", "c"]
    memory.partial_fit(rows[:100], KIND[:100], sample_weight="times", judged=True)
    stream.partial_fit(batches(weighted, 100)[:1], "kind", sample_weight="times", judged=True)
    same_sums(stream, memory)


def test_rows_beyond_a_sample_bring_their_weights(weighted):
    few = WEIGHING | {"config": replace(Config.fast(), max_sample=300)}
    stream = Detector(**few).fit(batches(weighted, 100), "kind", sample_weight="times")
    table, plan = read_table(weighted[["a", "b", "c"]], name=""), stream.plan_
    labels = read_row_labels(KIND, n_rows=len(PLANE), normal=None)
    learnt, held, _ = plan.holdout.split(table, labels, encoder=plan.encoder)
    assert 0 < held.sum() == len(stream.model_.evidence.held_out.normal)
    by_kind = [WEIGHT[learnt & (name == KIND)].sum() for name in ("normal", "pump")]
    assert_allclose(stream.model_.evidence.weight, by_kind)


def test_the_ellipsoid_of_rows_that_count_twice_is_that_of_rows_twice():
    rows = RNG.normal(size=(400, 1)) + RNG.normal(scale=0.3, size=(400, 4))
    times, rng = RNG.integers(1, 5, size=400), np.random.RandomState(0)
    weighted = Ellipsoid.of(rows, rng, times.astype(float))
    repeated, plain = (Ellipsoid.of(r, rng) for r in (np.repeat(rows, times, axis=0), rows))
    for name in ("centre", "axes", "heaviness", "trust"):
        found, expected = getattr(weighted, name), getattr(repeated, name)
        assert_allclose(np.abs(found), np.abs(expected), rtol=1e-6, err_msg=name)  # axes turn round
    assert_allclose(weighted.tail.knots, repeated.tail.knots, atol=0.2)  # of halves by chance
    assert not np.allclose(plain.centre, repeated.centre)


def test_the_ellipsoid_of_a_fit_counts_weights():
    fitted = [Detector(**WEIGHING).fit(PLANE, KIND, sample_weight=w) for w in (None, WEIGHT**3)]
    assert not np.allclose(*(term_of(d.plan_, EllipsoidTerm).ellipsoid.centre for d in fitted))


def test_what_counts_more_is_told_better():
    near = PLANE[KIND == "pump"]
    heavy = Detector(**WEIGHING).fit(PLANE, KIND, sample_weight=np.where(KIND == "pump", 20.0, 1.0))
    light = Detector(**WEIGHING).fit(PLANE, KIND)
    assert heavy.score_samples(near).mean() > light.score_samples(near).mean()


@pytest.mark.parametrize(
    ("weight", "told"),
    [
        (np.ones(3), r"expected \(740,\)"),
        (-WEIGHT, "not negative"),
        (np.zeros(len(PLANE)), "not all zero"),
        ("heft", "sample_weight must be a column"),
    ],
)
def test_weights_that_are_none_are_refused(weight, told):
    with pytest.raises(UserError, match=told):
        Detector(**WEIGHING).fit(PLANE, KIND, sample_weight=weight)


def test_weights_beside_batches_are_refused(weighted):
    with pytest.raises(UserError, match="sample_weight must be the name of a column"):
        Detector(**WEIGHING).fit(batches(weighted, 100), "kind", sample_weight=WEIGHT)
