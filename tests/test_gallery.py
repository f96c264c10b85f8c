"""The examples of the gallery: each script runs, and what its page says of the result holds."""

import runpy
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
EXAMPLES = sorted(GALLERY.rglob("plot_*.py"))


def name_of(example):
    return example.relative_to(GALLERY).with_suffix("").as_posix()


def all_functions_and_the_unseen_side(names):
    for name, neuron in names["neurons"].items():
        X, y = names["make_logic"](name)
        assert neuron.score(X, y) == 1.0, name
    assert names["found"]["halfspace"] < 0.05
    assert names["found"]["margin"] > 0.95


def one_method_flags_the_inner_circle(names):
    svc, separator = names["models"].values()
    inner = names["X"][names["unseen"]]
    assert svc.predict(inner).mean() < 0.05
    assert separator.predict(inner).mean() > 0.8


def parts_add_up_and_a_kind_is_missed(names):
    assert names["explanation"].score == pytest.approx(names["parts"].sum())
    assert names["detector"].predict_kind(names["rows"])[0] == "unseen"
    assert np.mean(names["new"].kind[names["first"]] != "normal") > 0.9
    kind, alarm = names["new"].kind, names["alarm"]
    assert alarm[kind == "sleeper"].mean() > 0.9
    assert alarm[kind == "card testing"].mean() < 0.1


def the_forest_pays_with_unseen_kinds(names):
    detector, forest, isolation = (table.mean for table in names["tables"].values())
    assert forest.seen > 0.9
    assert detector.seen > 0.9
    assert detector.unseen > forest.unseen + 0.3
    assert isolation.seen < 0.5


def promises_are_kept_on_average(names):
    for measured in names["rates"].values():
        assert np.mean(measured) == pytest.approx(0.05, abs=0.015)
    assert np.std(names["rates"][2_000]) < np.std(names["rates"][500])


def closed_models_end(names):
    far = {name: share[-1] for name, share in names["share"].items()}
    assert far["Detector"] == far["kernel separator, gamma 8"] == 0
    assert far["SVC, gamma 8"] == 1
    assert far["random forest"] > 0.9


def pieces_give_the_whole(names):
    assert np.abs(names["one"] - names["other"]).max() < 1e-6
    assert names["left"] < 1e-6
    mules = names["history"]["money mule"]
    assert mules[-1] > mules[2] + 0.05
    assert min(names["history"]["skimming"]) > 0.95


def bumps_flag_the_outer_circle(names):
    assert names["found"]["leaky ReLU"] < 0.05
    assert names["found"]["bumps"] > 0.9


def windows_see_the_oscillation(names):
    oscillating = names["new_runs"][names["run"]]
    detectors = names["detectors"].values()
    plain, looking_back = (detector.predict(oscillating)[45:] for detector in detectors)
    assert plain.mean() < 0.1
    assert looking_back.mean() > 0.5
    delays = names["delays"]
    for name in names["detectors"]:
        single, persistent = (delays[name, rule] for rule in ((1, 1), (3, 5)))
        assert persistent.false_episodes < single.false_episodes / 2
        assert (
            persistent.kinds[-1].found.count >= 15
        )  # of 20; 18 with the newest NumPy, 16 with the oldest


def an_illness_without_a_label_is_noticed(names):
    called = names["called"]
    assert called["underactive"] > 0.85
    assert called["overactive"] > 0.8
    assert called["normal"] < 0.04
    assert names["lacking"] < 0.03


def attacks_without_a_label_are_caught(names):
    kinds = ["flood", "leak", "normal", "scan"]
    detector, forest = (
        dict(zip(kinds, shares, strict=True)) for shares in names["caught"].values()
    )
    assert min(detector[kind] for kind in ("flood", "leak", "scan")) > 0.9
    assert detector["normal"] < 0.04
    assert max(forest[kind] for kind in ("leak", "scan")) < 0.5


def labels_hold_the_line_at_any_angle(names):
    areas, turned = names["areas"], names["turned"]
    assert areas["regression on all rows"] < 0.8
    assert areas["separator, with labels"] > 0.99
    assert turned["regression on normal rows"][0] > 0.99
    assert turned["regression on normal rows"][-1] < 0.6
    assert min(turned["separator, with labels"]) > 0.99
    assert max(names["on_line"]) < 0
    assert np.ptp(names["responses"]) > 2


FACTS = {
    "theory/plot_5_regression": labels_hold_the_line_at_any_angle,
    "jobs/plot_3_patients": an_illness_without_a_label_is_noticed,
    "jobs/plot_4_intrusion": attacks_without_a_label_are_caught,
    "theory/plot_1_neuron": all_functions_and_the_unseen_side,
    "theory/plot_2_circles": one_method_flags_the_inner_circle,
    "jobs/plot_1_payments": parts_add_up_and_a_kind_is_missed,
    "jobs/plot_5_precision_recall": the_forest_pays_with_unseen_kinds,
    "jobs/plot_6_threshold": promises_are_kept_on_average,
    "theory/plot_3_closed": closed_models_end,
    "jobs/plot_7_learning_on": pieces_give_the_whole,
    "theory/plot_4_networks": bumps_flag_the_outer_circle,
    "jobs/plot_2_sensors": windows_see_the_oscillation,
}


@pytest.fixture
def figures():
    """A function that gives all figures drawn so far; they are closed in the end."""
    plt.switch_backend("agg")  # no windows
    with mpl.rc_context(), plt.ioff():
        yield lambda: [plt.figure(number) for number in plt.get_fignums()]
    plt.close("all")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run_and_show_what_they_say(example, figures):
    names = runpy.run_path(str(example))
    assert len(figures()) >= 2
    for ax in (ax for figure in figures() for ax in figure.axes):
        assert ax.has_data()
        assert ax.get_title() or ax.get_title("left")
    FACTS[name_of(example)](names)


def test_every_fact_has_its_example():
    assert set(FACTS) == set(map(name_of, EXAMPLES))


def test_jobs_come_before_theory():
    jobs = [path.stem for path in EXAMPLES if path.parent.name == "jobs"]
    assert [path.parent.name for path in EXAMPLES] == ["jobs"] * len(jobs) + ["theory"] * 5
    wanted = ["plot_1_payments", "plot_2_sensors", "plot_3_patients", "plot_4_intrusion"]
    assert jobs[:4] == wanted
