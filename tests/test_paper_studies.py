"""The studies behind the tables: every method measures what its table asks for."""

import sys
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from PIL import Image

from eqsep.datasets import TrainTestSplit
from eqsep.datasets.records import LabelledTable as DataTable
from paper import methods, networks, runner
from paper.cells import Cell, Results, Skipped
from paper.comparison import compare
from paper.figures import FIGURES, drawing
from paper.page import report
from paper.plan import Plan
from paper.published import constant_area
from paper.runner import run
from paper.tables import (
    TABLES,
    circle_networks,
    circles,
    gaussians,
    magnetic_tile,
    mvtec,
    nsl_kdd,
    nsl_kdd_networks,
    thyroid,
)
from paper.verdicts import JUDGED

PLAN = Plan(seeds=2, quick=True)


def cells_of(*names, plan=PLAN):
    return list(dict.fromkeys(cell for name in names for cell in TABLES[name].cells(plan)))


def check_values(names, values_of):
    """Every figure of the tables finds its key, with a number for each seed."""
    for name in names:
        for entry in TABLES[name].entries():
            for protocol in PLAN.protocols:
                cell = entry.cell(PLAN, protocol)
                values = values_of[cell][entry.key(protocol)]
                assert len(values) == cell.seeds
                assert np.isfinite(values).all()


@pytest.fixture
def unrecorded(monkeypatch):
    """Without what each cell ran through, which test_paper_dependencies.py asks for: it takes
    longer than most cells."""
    monkeypatch.setattr(runner, "recorded", lambda: nullcontext({}))


def test_every_method_of_nsl_kdd_measures_every_kind(small_split, monkeypatch):
    monkeypatch.setattr(nsl_kdd, "data", lambda protocol: small_split)  # noqa: ARG005
    monkeypatch.setattr(nsl_kdd_networks, "QUICK_EPOCHS", 2)
    names = ("nsl_kdd", "nsl_kdd_full")
    results = {cell: nsl_kdd.measure(cell) for cell in cells_of(*names)}
    check_values(names, {cell: values for cell, (values, _) in results.items()})
    share = 20 / 50
    for protocol in PLAN.protocols:
        values, more = results[Cell("nsl_kdd", "NSL-KDD", "OVS-RBF", protocol, 1, True)]
        assert values["average precision, dos"][0] > share + 0.2  # the machine itself
        assert more["distinct scores"] == [2]
        assert values["trapezoid, train"][0] > constant_area(share)


@pytest.mark.parametrize(("quick", "n"), [(False, 100), (True, 50)])
def test_only_a_quick_run_takes_fewer_rows(quick, n, small_split, monkeypatch):
    monkeypatch.setattr(nsl_kdd, "data", lambda protocol: small_split)  # noqa: ARG005
    monkeypatch.setattr(nsl_kdd, "QUICK_ROWS", 50)
    cell = Cell("nsl_kdd", "NSL-KDD", "OVS-Lin-ES", "corrected", quick=quick)
    assert nsl_kdd.measure(cell)[1]["training rows"] == n


def test_the_share_of_silent_rows_is_told_of_rbf_networks(small_split, monkeypatch):
    monkeypatch.setattr(nsl_kdd_networks, "QUICK_EPOCHS", 1)
    cell = Cell("nsl_kdd", "NSL-KDD", "RS", seeds=1, quick=True)
    near = nsl_kdd_networks.measure_networks(cell, small_split)
    far = TrainTestSplit(
        X_train=small_split.X_train,
        kind_train=small_split.kind_train,
        X_test=small_split.X_test + 50,
        kind_test=small_split.kind_test,
        feature_names=small_split.feature_names,
    )
    away = nsl_kdd_networks.measure_networks(cell, far)
    assert near[1]["silent"] < 1 == away[1]["silent"]


def test_thyroid_measures_both_kinds(write_classes, monkeypatch):
    for part, classes in (
        ("train", [3] * 40 + [1] * 10 + [2] * 5),
        ("test", [3] * 20 + [1, 2] * 5),
    ):
        home = write_classes("ann-thyroid", f"ann-{part}.data", width=21, classes=classes)
    monkeypatch.setenv("EQSEP_DATA", str(home))
    monkeypatch.setattr(thyroid, "QUICK_EPOCHS", 2)
    thyroid.data.cache_clear()
    names = ("thyroid", "thyroid_full")
    check_values(names, {cell: thyroid.measure(cell)[0] for cell in cells_of(*names)})
    thyroid.data.cache_clear()


def test_without_its_files_a_cell_says_where_to_put_them(tmp_path, monkeypatch):
    monkeypatch.setenv("EQSEP_DATA", str(tmp_path))
    for study in (nsl_kdd, thyroid):
        study.data.cache_clear()
        (cell, *_) = cells_of(study.STUDY.name)
        with pytest.raises(Skipped, match=r"Put .* there"):
            study.measure(cell)


@pytest.mark.usefixtures("unrecorded")
def test_mvtec_probes_run_on_public_embeddings_which_do_not_name_the_defects(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    kind = np.repeat(["normal", "defect"], [60, 20])
    X = rng.normal(size=(80, 6)) + 3 * (kind == "defect")[:, None]
    table = DataTable(X=X, kind=kind, feature_names=tuple("abcdef"))
    monkeypatch.setenv("EQSEP_DATA", str(tmp_path))
    monkeypatch.setattr(mvtec, "load_mvtec_embeddings", lambda name: table)  # noqa: ARG005
    monkeypatch.setattr(mvtec, "QUICK_EPOCHS", 3)
    mvtec.data.cache_clear()
    out = tmp_path / "out"
    assert run(cells_of("mvtec_objects"), out, processes=1).failed == ()
    split = mvtec.data("pill").split
    mvtec.data.cache_clear()
    assert (split.y_train.sum(), split.y_test.sum()) == (4, 16)
    objects, pill = (
        compare(TABLES[name], PLAN, Results(out)) for name in ("mvtec_objects", "mvtec_pill")
    )
    assert objects.count("other data") == len(objects.lines) == 18
    assert {line.verdict.reason for line in pill.lines} == {mvtec.LACKS}
    assert pill.count("skipped") == len(pill.lines) == 12


def test_mvtec_probes_run_on_images_in_its_layout(tmp_path, monkeypatch):
    """From small images to a verdict on every defect of the pills."""
    rng = np.random.default_rng(0)
    defects = {"color": 90, "combined": 100, "contamination": 110, "crack": 120}
    defects |= {"faulty_imprint": 130, "pill_type": 140, "scratch": 150}
    folders = {"train/good": 200, "test/good": 200} | {f"test/{k}": v for k, v in defects.items()}
    for folder, grey in folders.items():
        place = tmp_path / "mvtec" / "pill" / folder
        place.mkdir(parents=True)
        for i in range(8):
            pixels = rng.normal(grey, 5, size=(6, 6)).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(place / f"{i}.png")
    whole = mvtec.load_mvtec
    monkeypatch.setenv("EQSEP_DATA", str(tmp_path))
    monkeypatch.setattr(
        mvtec, "load_mvtec", lambda root, **told: whole(root, **told | {"embed": MeanColour()})
    )
    monkeypatch.setattr(mvtec, "QUICK_EPOCHS", 40)
    mvtec.data.cache_clear()
    out = tmp_path / "out"
    assert run(cells_of("mvtec_pill"), out, processes=1).failed == ()
    split, source = mvtec.data("pill")
    mvtec.data.cache_clear()
    assert source == mvtec.IMAGES
    assert set(split.kind_train) == {"normal", "color"}
    lines = compare(TABLES["mvtec_pill"], PLAN, Results(out)).lines
    assert {line.verdict.word for line in lines} <= set(JUDGED)
    assert all(line.paper for line in lines)
    assert (tmp_path / "mvtec-rows").is_dir()


def test_probes_run_on_magnetic_tiles_in_the_layout_of_mvtec(tmp_path, monkeypatch):
    """From small images of all kinds and settings to areas of seen and unseen defects."""
    home, out = tmp_path / "data", tmp_path / "out"
    write_tiles(home / "magnetic-tile")
    monkeypatch.setenv("EQSEP_DATA", str(home))
    monkeypatch.setattr(magnetic_tile, "EfficientNetEmbedding", MeanColour)
    monkeypatch.setattr(magnetic_tile, "QUICK_STEP", 1)
    whole = mvtec.training
    monkeypatch.setattr(mvtec, "training", lambda **told: whole(**told | {"learning_rate": 0.05}))
    magnetic_tile.data.cache_clear()
    assert run(cells_of("magnetic_tile"), out, processes=1).failed == ()
    split = magnetic_tile.data(out / "kept")
    magnetic_tile.data.cache_clear()
    assert set(split.kind_train) == {"normal", "blowhole"}
    counts = dict(zip(*np.unique(split.kind_test, return_counts=True), strict=True))
    assert len(split.kind_train) == 2 * (6 + 6)
    assert counts == {"normal": 6, "blowhole_held_out": 6, "fray": 6} | dict.fromkeys(
        ("break", "crack", "uneven"), 18
    )
    comparison = compare(TABLES["magnetic_tile"], PLAN, Results(out))
    assert comparison.count("ours alone") == len(comparison.lines) == 21
    assert all(line.paper and line.corrected for line in comparison.lines)
    area = {(line.row, line.column): float(line.corrected[:5]) for line in comparison.lines}
    assert area["Blowhole (seen)", "ES (ours)"] > 0.9
    assert area["All unseen", "HS"] < area["Blowhole (seen)", "HS"]  # they lie on the other side
    assert not {p.name for p in home.iterdir()} - {"magnetic-tile"}  # nothing is left among data


def write_tiles(root):
    """Grey squares: defects that are seen are darker than good tiles, unseen ones brighter.

    Nine tiles of a kind, two photographs of each; a fray is on a tile that is good elsewhere.
    """
    rng = np.random.default_rng(0)
    greys = {"Free": 150, "Blowhole": 90, "Break": 200, "Crack": 205, "Fray": 210, "Uneven": 215}
    for place, (kind, grey) in enumerate(greys.items()):
        (root / f"MT_{kind}").mkdir(parents=True)
        first = 0 if kind == "Fray" else place * 9
        for tile in range(first, first + 9):
            for setting in (1, 2):
                pixels = rng.normal(grey, 5, size=(6, 6)).clip(0, 255).astype(np.uint8)
                number = 1000 * tile + 20 * setting + place
                Image.fromarray(pixels).save(root / f"MT_{kind}" / f"exp{setting}_num_{number}.jpg")


def test_the_layout_of_mvtec_is_made_once_and_anew_for_other_images(tmp_path):
    tiles, kept = tmp_path / "tiles", tmp_path / "kept"
    write_tiles(tiles)
    root = magnetic_tile.in_mvtec_layout(tiles, kept)
    paths = sorted(root.rglob("*.jpg"))
    assert len(paths) == 24 + 18 + 3 * 18
    trained, tested = (
        {int(path.stem.split("_")[-1]) // 1000 for path in paths if is_trained(path) == side}
        for side in (True, False)
    )
    assert not trained & tested
    (root / "mark").touch()
    assert magnetic_tile.in_mvtec_layout(tiles, kept) == root
    assert (root / "mark").exists()
    few = magnetic_tile.in_mvtec_layout(tiles, kept, step=2)
    assert len(list(few.rglob("*.jpg"))) == len(paths) / 2
    next((tiles / "MT_Free").iterdir()).unlink()
    other = magnetic_tile.in_mvtec_layout(tiles, kept)
    assert len(list(other.rglob("*.jpg"))) == len(paths) - 1
    assert not list(kept.glob("*.part"))


def is_trained(path):
    return "train" in path.parts or path.parent.name == "blowhole"


@pytest.mark.parametrize("lacking", ["images", "packages"])
def test_tiles_without_images_or_packages_are_skipped_with_a_reason(lacking, tmp_path, monkeypatch):
    monkeypatch.setenv("EQSEP_DATA", str(tmp_path))
    magnetic_tile.data.cache_clear()
    if lacking == "packages":
        write_tiles(tmp_path / "magnetic-tile")
        monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    (cell, *_) = cells_of("magnetic_tile")
    reason = {"images": "no folder magnetic-tile", "packages": r'pip install "eqsep\[images\]"'}
    with pytest.raises(Skipped, match=reason[lacking]):
        magnetic_tile.measure(cell, kept=tmp_path / "kept")


class MeanColour:
    """An embedding: the mean of each channel, around zero."""

    name = "mean colour"

    def __call__(self, images):
        return [np.asarray(image).mean(axis=(0, 1)) / 100 - 1.5 for image in images]


def test_shallow_models_on_the_circles_measure_every_figure(monkeypatch):
    monkeypatch.setattr(circles, "QUICK_DRAWS", 1)
    names = ("toy_shallow", "toy_kernel_es")
    results = {cell: _or_skipped(circles.measure, cell) for cell in cells_of(*names)}
    missing = {cell.method for cell, result in results.items() if result is None}
    assert missing <= {"XGB"}
    for cell, result in results.items():
        if result is not None:
            values = result[0]
            assert len(values["trapezoid, normal"]) == len(values["trapezoid, train"]) == cell.seeds
            assert len(values["trapezoid, normal, by draw"]) == circles.QUICK_DRAWS
            assert ("heat_map" in result[1]) == (cell.method in circles.DRAWN)


def _or_skipped(measure, cell):
    try:
        return measure(cell)
    except Skipped:
        return None


def test_boosted_trees_without_xgboost_are_skipped_with_a_reason(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xgboost", None)
    with pytest.raises(Skipped, match="pip install xgboost"):
        methods.boosted_trees(0)


@pytest.fixture
def short_training(monkeypatch):
    whole = circle_networks.training
    monkeypatch.setattr(circle_networks, "training", lambda **told: whole(**told | {"epochs": 3}))
    monkeypatch.setattr(circle_networks, "WELL", 0.0)
    monkeypatch.setattr(circles, "QUICK_DRAWS", 2)


@pytest.mark.usefixtures("short_training")
def test_networks_on_the_circles_measure_every_figure():
    names = ("toy_networks_2layers", "toy_networks_3layers", "separation", "margin_by_layer")
    values_of = {cell: circle_networks.measure(cell)[0] for cell in cells_of(*names)}
    check_values(names, values_of)


def test_separation_is_that_of_outputs_and_distances():
    output = np.array([[1.0], [0.8], [0.4], [0.2]])
    distance = np.array([[0.1], [0.1], [0.8], [1.0]])
    is_anomaly = np.array([False, False, True, True])
    told = circle_networks.separation_of(output, distance, is_anomaly)
    assert told["difference of mean outputs"] == [pytest.approx(0.6)]
    assert told["distance of anomalies"] == [pytest.approx(0.9)]
    assert told["anomalies 8 times further"] == told["outputs 0.30 apart"] == [1.0]
    assert circle_networks.separation_of(output, distance + 1, is_anomaly)[
        "anomalies 8 times further"
    ] == [0.0]


@pytest.mark.usefixtures("short_training", "unrecorded")
def test_every_figure_is_drawn_from_results_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "png", partial(drawing.png, dpi=50))
    quick = gaussians.linear_svm  # of 300 cells: test_paper_runner.py has equality separators
    monkeypatch.setattr(gaussians, "equality", lambda *_, **__: quick)
    plan = Plan(protocols=("paper",), seeds=1, quick=True)
    for figure in FIGURES.values():
        outcome = run(figure.cells(plan), tmp_path, processes=1)
        assert not outcome.failed
        assert not outcome.skipped
    pictures = report(FIGURES, plan, tmp_path).pictures
    assert [picture.name for picture in pictures] == list(FIGURES)
    assert all(picture.png.startswith(b"\x89PNG") for picture in pictures)


def test_single_precision_ties_the_rows_that_leave_a_layer_of_rbfs_silent():
    """The published figures of RBF networks: far rows differ by less than a float32 can tell."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.repeat([0, 1], 30)
    model = networks.network(
        head="rbf",
        activation="rbf",
        hidden=(8,),
        n_members=2,
        training=networks.training(epochs=2),
        random_state=0,
    ).fit(X, y)
    rows = np.array([[5.4, 0, 0], [5.5, 0, 0], [5.6, 0, 0], [0, 0, 0]])
    single, double = (
        networks.member_scores(model, rows, protocol=protocol)
        for protocol in ("paper", "corrected")
    )
    assert single.dtype == np.float32
    assert (np.diff(single[:3], axis=0) == 0).all()
    assert (np.diff(double[:3], axis=0) != 0).all()
    np.testing.assert_allclose(single, double - 0.5, atol=1e-6)
