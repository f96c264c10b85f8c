"""Pictures of separators."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib import rcParams
from matplotlib.figure import Figure
from numpy.testing import assert_allclose
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import IsolationForest
from sklearn.svm import SVC

from eqsep.datasets import make_circles
from eqsep.plots import RegionDisplay, save_figure


@pytest.fixture(scope="module")
def circles():
    return make_circles(random_state=0)


@pytest.fixture(scope="module")
def svc(circles):
    return SVC().fit(circles.X_train, circles.y_train)


@pytest.fixture
def ax():
    return Figure().subplots()


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_the_boundary_is_where_the_estimator_decides(circles, svc, ax):
    display = RegionDisplay.from_estimator(svc, circles.X_train, ax=ax, grid_resolution=100)
    vertices = np.vstack([path.vertices for path in display.boundary_.get_paths()])
    assert_allclose(svc.decision_function(vertices), 0, atol=0.01)


def test_the_heat_map_shows_the_score_on_a_grid_that_reaches_beyond_the_rows(circles, svc, ax):
    X = circles.X_train
    display = RegionDisplay.from_estimator(svc, X, ax=ax, grid_resolution=20)
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    assert_allclose(display.score.ravel(), svc.decision_function(grid))
    assert (grid.min(axis=0) < X.min(axis=0)).all()
    assert (grid.max(axis=0) > X.max(axis=0)).all()


def test_colours_change_at_zero(circles, svc, ax):
    display = RegionDisplay.from_estimator(svc, circles.X_train, ax=ax, grid_resolution=20)
    red, _, blue, _ = np.transpose(display.surface_.to_rgba([-0.5, 0.0, 0.5]))
    assert blue[0] > red[0]
    assert abs(blue[1] - red[1]) < 0.02
    assert blue[2] < red[2]


@pytest.mark.parametrize("strategy", [0, 1])
def test_a_score_of_one_sign_has_no_boundary(circles, ax, strategy):
    constant = DummyClassifier(strategy="constant", constant=strategy)
    constant.fit(circles.X_train, circles.y_train)
    assert RegionDisplay.from_estimator(constant, circles.X_train, ax=ax).boundary_ is None


def test_an_outlier_detector_is_drawn_the_same_way_round(circles, ax):
    forest = IsolationForest(n_estimators=20, random_state=0).fit(circles.X_train)
    display = RegionDisplay.from_estimator(forest, circles.X_train, ax=ax, grid_resolution=20)
    assert display.score[0, 0] > 0  # a far corner
    assert display.score.min() < 0


def test_every_class_or_kind_has_its_own_colour_and_shape_and_normal_comes_first(circles, svc):
    X = np.vstack([circles.X_train, circles.X_test])
    kind = np.concatenate([circles.kind_train, circles.kind_test])
    numbers = RegionDisplay.from_estimator(svc, X, y=kind != "normal", ax=Figure().subplots())
    kinds = RegionDisplay.from_estimator(svc, X, y=kind, ax=Figure().subplots())
    assert legend(numbers) == ["normal (0)", "anomaly (1)"]
    assert legend(kinds) == ["normal", "inner", "outer"]
    dots = kinds.ax_.collections[-3:]
    assert len({tuple(dot.get_facecolor()[0]) for dot in dots}) == 3
    assert len({dot.get_paths()[0].vertices.tobytes() for dot in dots}) == 3
    for dot, name in zip(dots, legend(kinds), strict=True):
        assert_allclose(dot.get_offsets(), X[kind == name])


def test_a_frame_names_the_axes_and_reaches_the_estimator_as_a_frame(circles, ax):
    X = pd.DataFrame(circles.X_train, columns=["load", "heat"])
    display = RegionDisplay.from_estimator(SVC().fit(X, circles.y_train), X, ax=ax)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("load", "heat")


def test_rows_on_a_line_still_have_a_plane_around_them(ax):
    X = np.array([[0.0, 1.0], [1.0, 1.0]])
    display = RegionDisplay.from_estimator(SVC().fit(X, [0, 1]), X, ax=ax)
    assert (display.xx1.min(), display.xx1.max()) == (0, 2)


def test_the_title_is_the_estimators_name_unless_given(circles, svc):
    titles = [
        RegionDisplay.from_estimator(
            svc, circles.X_train, ax=Figure().subplots(), **given
        ).ax_.get_title(loc="left")
        for given in ({}, {"title": "ours"})
    ]
    assert titles == ["SVC", "ours"]


def test_without_axes_a_new_figure_is_made_and_no_setting_changes(circles, svc):
    plt.switch_backend("agg")
    settings = rcParams.copy()
    display = RegionDisplay.from_estimator(svc, circles.X_train)
    assert plt.fignum_exists(display.figure_.number)
    assert rcParams == settings
    plt.close(display.figure_)


def test_three_features_are_refused(svc):
    with pytest.raises(ValueError, match=r"exactly 2 features, got an array of shape \(4, 3\)"):
        RegionDisplay.from_estimator(svc, np.zeros((4, 3)))


def test_a_saved_figure_is_whole_and_nothing_else_is_left_behind(tmp_path):
    path = save_figure(Figure(figsize=(1, 1)), tmp_path / "a.png", dpi=50)
    assert plt.imread(path).shape[:2] == (50, 50)
    save_figure(Figure(figsize=(2, 1)), path, dpi=50)
    assert plt.imread(path).shape[:2] == (50, 100)
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_save_leaves_the_old_picture_and_no_rubbish(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    path.write_bytes(b"old")
    figure = Figure()

    def fail(file, **_):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(figure, "savefig", fail)
    with pytest.raises(OSError, match="disk full"):
        save_figure(figure, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("missing/a.png", FileNotFoundError, "missing does not exist"),
        ("a.xyz", ValueError, r"one of \[.*'png'.*got '.xyz'"),
        ("a", ValueError, "got ''"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused(tmp_path, name, error, message):
    with pytest.raises(error, match=message):
        save_figure(Figure(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
