"""Displays of a detector: curves by kind, scores, promises, closedness, and figures as SVG."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from numpy.testing import assert_allclose
from sklearn.metrics import average_precision_score

from eqsep import Detector
from eqsep.datasets import make_mixed_demo
from eqsep.detector import Config
from eqsep.plots import (
    ANOMALY_COLOUR,
    NORMAL_COLOUR,
    ClosednessDisplay,
    PrecisionRecallByKindDisplay,
    PromiseDisplay,
    ScoreHistogramDisplay,
)
from eqsep.plots.figures import VARIABLES, inline_svg


@pytest.fixture(scope="module")
def payments():
    return make_mixed_demo(n_samples=900, anomaly_fraction=0.2, as_frame=True, random_state=1)


@pytest.fixture(scope="module")
def detector():
    table = make_mixed_demo(n_samples=700, as_frame=True, random_state=0)
    known = np.isin(table.kind, ["normal", "takeover"])
    return Detector(
        n_landmarks=80, false_alarm_rate=0.05, random_state=0, config=Config.fast()
    ).fit(table.X[known], table.kind[known])


@pytest.fixture
def ax():
    return Figure().subplots()


def test_every_kind_has_a_curve_solid_where_it_was_seen(detector, payments, ax):
    display = PrecisionRecallByKindDisplay.from_estimator(
        detector, payments.X, payments.kind, ax=ax
    )
    assert sorted(display.lines_) == sorted(set(payments.kind) - {"normal"})
    dashed = {name for name, line in display.lines_.items() if line.get_linestyle() != "-"}
    assert dashed == set(display.lines_) - {"takeover"}
    looks = {(line.get_color(), line.get_marker()) for line in display.lines_.values()}
    assert len(looks) == len(display.lines_)
    assert len({colour for colour, _ in looks}) == 6  # as many as there are kinds


def test_the_legend_says_the_average_precision_of_each_kind(detector, payments, ax):
    display = PrecisionRecallByKindDisplay.from_estimator(
        detector, payments.X, payments.kind, ax=ax
    )
    rows = np.isin(payments.kind, ["normal", "sleeper"])
    score = detector.score_samples(payments.X[rows])
    area = average_precision_score(payments.kind[rows] == "sleeper", score)
    words = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"sleeper, unseen: {area:.3f}" in words


def test_a_step_curve_encloses_its_average_precision(ax):
    rng = np.random.default_rng(0)
    kind = np.repeat(["normal", "scan"], [300, 60])
    score = rng.normal(np.repeat([0, 1.5], [300, 60]))
    line = PrecisionRecallByKindDisplay.from_predictions(score, kind, ax=ax).lines_["scan"]
    recall, precision = line.get_data()
    area = np.sum(np.diff(np.concatenate([[0], recall])) * precision)
    assert_allclose(area, average_precision_score(kind == "scan", score), atol=1e-9)
    assert line.get_linestyle() == "-"


def test_without_axes_a_figure_is_made(detector, payments):
    plt.switch_backend("agg")
    display = ScoreHistogramDisplay.from_estimator(detector, payments.X, payments.kind)
    assert plt.fignum_exists(display.figure_.number)
    plt.close(display.figure_)


def test_bars_are_shares_and_the_threshold_is_the_detectors(detector, payments, ax):
    display = ScoreHistogramDisplay.from_estimator(detector, payments.X, payments.kind, ax=ax)
    assert next(iter(display.bars_)) == "normal"
    assert to_hex(display.bars_["normal"].get_facecolor()[0]).upper() == NORMAL_COLOUR
    for shares in display.histogram.shares.values():
        assert_allclose(shares.sum(), 1)
    assert_allclose(display.threshold_.get_xdata(), detector.threshold_)
    rows = payments.X[payments.kind == "normal"]
    share = np.mean(detector.predict(rows))
    assert f"{share:.1%}" in {text.get_text() for text in display.ax_.texts}


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.7, 1.0])
def test_the_words_above_the_scores_do_not_meet(ax, threshold):
    display = ScoreHistogramDisplay.from_predictions(
        np.linspace(0, 1, 20), ["normal"] * 20, threshold=threshold, ax=ax
    )
    display.figure_.canvas.draw()
    above, told = (
        next(text for text in display.ax_.texts if words in text.get_text()).get_window_extent()
        for words in ("above it", "threshold")
    )
    assert told.x1 <= above.x0
    assert told.x0 >= 0


def test_scores_need_no_threshold_and_no_kind_of_anomaly(ax):
    display = ScoreHistogramDisplay.from_predictions([-1.0, 2.0], ["normal"] * 2, ax=ax)
    assert display.threshold_ is None
    assert list(display.bars_) == ["normal"]
    assert display.ax_.get_xlim() == (-1, 2)


def test_measured_false_alarms_are_drawn_at_their_promise(detector, payments, ax):
    normal = payments.X[payments.kind == "normal"]
    display = PromiseDisplay.from_estimator(detector, normal, ax=ax)
    rate, measured = display.measured_.lines[0].get_data()
    at = rate.tolist().index(0.05)
    assert_allclose(measured[at], np.mean(detector.predict(normal)))
    assert display.ax_.get_yscale() == "log"


def test_the_score_rises_above_the_threshold_on_both_sides(detector, payments, ax):
    normal = payments.X[payments.kind == "normal"]
    display = ClosednessDisplay.from_estimator(detector, normal, column="amount", ax=ax)
    score = display.score_.get_ydata()
    assert score[0] > detector.threshold_ < score[-1]
    assert score.min() < detector.threshold_
    assert_allclose(display.threshold_.get_ydata(), detector.threshold_)
    assert (display.ax_.get_title(loc="left"), display.ax_.get_xlim()) == ("amount", (-1, 2))
    near, usual = (band.get_extents() for band in display.ax_.patches)
    assert near.x0 < usual.x0 < usual.x1 < near.x1
    ends = display.ax_.transData.transform([(0, 0), (1, 0)])[:, 0]
    assert_allclose((usual.x0, usual.x1), ends)


def test_a_name_never_seen_is_marked(detector, payments, ax):
    normal = payments.X[payments.kind == "normal"]
    display = ClosednessDisplay.from_estimator(detector, normal, column="channel", ax=ax)
    words = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert words == ["shop", "online", "atm", "(new name)"]
    mark = display.ax_.lines[-1]
    assert (mark.get_color(), mark.get_xdata().tolist()) == (ANOMALY_COLOUR, [3])


def test_a_column_that_was_not_learnt_is_refused(detector, payments):
    with pytest.raises(ValueError, match=r"No column 'price' was learnt: expected one of \['time'"):
        ClosednessDisplay.from_estimator(detector, payments.X, column="price")


class Elements(HTMLParser):
    """The elements of an HTML text, and the words between them."""

    def __init__(self, text):
        super().__init__()
        self.found, self.words = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data.strip())


def test_a_figure_becomes_an_element_in_the_pages_colours_with_words(detector, payments, ax):
    display = PrecisionRecallByKindDisplay.from_estimator(
        detector, payments.X, payments.kind, ax=ax
    )
    svg = inline_svg(display.figure_, name="a", text='Kinds & "curves"')
    read = Elements(svg)
    assert read.found[0] == (
        "svg",
        {"role": "img", "aria-label": 'Kinds & "curves"', "viewbox": "0 0 460.8 345.6"},
    )
    legend = {text.get_text() for text in display.ax_.get_legend().get_texts()}
    assert {"recall", "precision", *legend} <= set(read.words)  # numbers in words as they are
    assert "http" not in svg
    assert "font-family" not in svg
    assert not [colour for colour in VARIABLES if colour.lower() in svg.lower()]
    assert "var(--kind1)" in svg


def test_words_are_in_the_ink_of_the_page():
    ax = Figure().subplots()
    ax.plot([0, 1], [0, 1], label="a line")
    ax.legend()
    svg = inline_svg(ax.figure, name="a", text="A line.")
    words = [attrs for tag, attrs in Elements(svg).found if tag == "text"]
    assert len(words) > 5
    assert all("fill: var(--ink)" in attrs["style"] for attrs in words)


def test_ids_of_two_figures_differ_and_lead_somewhere():
    texts = []
    for name in "ab":
        ax = Figure().subplots()
        ax.plot([0, 1], [0, 1], marker="o")
        texts.append(inline_svg(ax.figure, name=name, text="A line."))
    ids = [set(re.findall(r'id="([^"]+)"', text)) for text in texts]
    assert not ids[0] & ids[1]
    for own, text in zip(ids, texts, strict=True):
        used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text))
        assert {"".join(pair) for pair in used} <= own


def test_words_that_no_xml_can_hold_are_shown_without_their_control_characters():
    figure = Figure()
    figure.text(0.5, 0.5, "a<b>\x00 & c\x1f")
    svg = inline_svg(figure, name="a", text="Words.")  # that no font has them is not warned of
    assert "a&lt;b&gt;\ufffd &amp; c\ufffd</text>" in svg
