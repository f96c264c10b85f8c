"""The paper's tables as data: cells, results on disk, verdicts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paper import provenance
from paper.cells import Cell, Results, seeds_of, write_result
from paper.comparison import compare, with_reason
from paper.figures import FIGURES
from paper.page import html, markdown, report
from paper.plan import PROTOCOLS, Plan
from paper.published import WORDS, Ours, Published, constant_area, in_stds, judge, published_tables
from paper.runner import STUDIES, run
from paper.tables import TABLES, gaussians, hyperplane

TINY = Plan(seeds=2, quick=True)


def test_every_published_table_has_cells():
    paper_tables = 18
    studies_of_the_text = 2
    ours = 1
    assert len(published_tables()) == paper_tables + studies_of_the_text + ours
    for name, published in published_tables().items():
        figures = list(published.figures())
        entries = list(TABLES[name].entries())
        assert figures, name
        assert [(e.row, e.column, e.published) for e in entries] == figures
        for plan in (Plan(), TINY):
            cells = TABLES[name].cells(plan)
            assert {cell.protocol for cell in cells} == set(PROTOCOLS)
            assert {cell.study for cell in cells} <= set(STUDIES)


def test_cells_have_places_of_their_own():
    cells = {
        cell
        for plan in (Plan(), Plan(quick=True), Plan(seeds=2))
        for one in (*TABLES.values(), *FIGURES.values())
        for cell in one.cells(plan)
    }
    paths = {cell.path(Path("out")).as_posix().lower() for cell in cells}
    assert len(paths) == len(cells)
    assert all(path.startswith("out/") and ".." not in path for path in paths)


def test_tables_share_what_they_have_in_common():
    small, large = (set(TABLES[name].cells(Plan())) for name in ("nsl_kdd", "nsl_kdd_full"))
    assert small < large
    assert set(TABLES["toy_networks"].cells(Plan())) < set(
        TABLES["toy_networks_2layers"].cells(Plan())
    )


def test_the_plan_asks_for_seeds_only_where_there_is_chance():
    methods = {e.row: e.cell(TINY, "paper").seeds for e in TABLES["toy_shallow"].entries()}
    assert methods["RF"] == TINY.seeds
    assert methods["SVM"] == 1
    assert {c.seeds for c in TABLES["hyperplane_mse_100"].cells(Plan())} == {20}
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Plan(seeds=0)
    with pytest.raises(ValueError, match="Unknown protocol fair: expected paper or corrected"):
        Plan(protocols=("fair",))


@pytest.mark.parametrize("apart", [-0.2, -0.051, -0.05, 0.0, 0.05, 0.051, 0.2])
def test_a_figure_holds_within_three_deviations_and_a_little(apart):
    published, ours = Published(0.5, 0.01), Ours(0.5 + apart, 0.0, 5)
    word = judge(published, ours).word
    assert word == ("holds" if abs(apart) <= 0.05 else "above" if apart > 0 else "below")
    assert word in WORDS


def test_verdicts_do_not_depend_on_our_own_spread_and_widen_with_theirs():
    ours = Ours(0.6, 0.0, 1)
    assert judge(Published(0.5, 0.01), ours) == judge(Published(0.5, 0.01), replace(ours, std=9.0))
    words = [judge(Published(0.5, std), ours).word for std in (None, 0.0, 0.01, 0.03, 0.5)]
    assert words == ["above", "above", "above", "holds", "holds"]


def test_a_claim_without_a_number_is_a_lower_bound():
    claim = Published(least=0.5)
    assert judge(claim, Ours(0.5, 0.0, 9)).word == "holds"
    assert judge(claim, Ours(0.49, 0.0, 9)).word == "below"
    assert in_stds(claim, Ours(0.49, 0.0, 9)) is None


def test_a_figure_that_the_paper_does_not_have_is_not_judged():
    told = [judge(Published(), Ours(mean, 0.0, 3)) for mean in (0.0, 0.5, 1.0)]
    assert {verdict.word for verdict in told} == {"ours alone"}
    assert in_stds(Published(), Ours(0.5, 0.0, 3)) is None


def test_differences_are_told_in_published_deviations():
    assert in_stds(Published(0.5, 0.1), Ours(0.25, 7.0, 3)) == -2.5
    assert in_stds(Published(0.5, 0.0), Ours(0.25, 7.0, 3)) is None


def test_one_vs_set_is_published_as_a_constant_score():
    """KDDTest+ has 9,711 normal rows; the attacks beside them say what a constant gets."""
    attacks = {"DoS": 7460, "Probe": 2421, "Privilege": 65, "Access": 2743, "Overall": 12833}
    constant = {kind: round(constant_area(n / (n + 9711)), 3) for kind, n in attacks.items()}
    rows = published_tables()["nsl_kdd_full"].rows
    named = ["OVS-RBF", "OVS-Lin", "OVS-Lin-ES (ours)"]
    for name in named:
        assert {kind: value.mean for kind, value in rows[name].items()} == constant
    others = [row for name, row in rows.items() if name not in named]
    assert all({k: v.mean for k, v in row.items()} != constant for row in others)


def test_a_model_does_not_start_from_the_numbers_of_its_data():
    pairs = [seeds_of(i) for i in range(50)]
    assert len({seed for pair in pairs for seed in pair}) == 100
    cell = Cell("hyperplane", hyperplane.dataset("100", 5, "0.0"), "ES, LL", seeds=5)
    areas = hyperplane.measure(cell)[0]["trapezoid, normal"]
    assert np.mean(areas) < 0.99  # a start from the hyperplane itself would give 1


def test_the_machine_names_the_gpu_that_torch_sees(monkeypatch):
    torch = pytest.importorskip("torch")
    name = "Some GPU with 8 GiB"
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: name)
    machines = []
    for there in (False, True):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        provenance.here.cache_clear()
        machines.append(provenance.here()["machine"])
    provenance.here.cache_clear()
    assert machines[1] == f"{machines[0]}, {name}"


def test_a_table_says_where_it_was_measured_when_machines_differ(tmp_path):
    tables = [TABLES["gaussians_summary"], TABLES["hyperplane_mse_100"]]
    for table, machine in zip(tables, ("the first machine", "the second one"), strict=True):
        for cell in table.cells(TINY):
            made = {"date": "2026-01-01", "commit": "c", "versions": "v", "machine": machine}
            made |= {"seconds": 60.0, "processor_seconds": 36.0}
            write_result(cell, tmp_path, {"values": {}, "more": {}, "made": made})
    names = [table.name for table in tables]
    both, one = (report(which, TINY, tmp_path) for which in (names, names[:1]))
    assert [c.provenance.machines for c in both.comparisons] == [
        ("the first machine",),
        ("the second one",),
    ]
    hours = sum(len(table.cells(TINY)) for table in tables) / 100
    assert both.provenance.processor_hours == pytest.approx(hours, abs=0.005)
    for render in (html, markdown):
        assert f"{both.provenance.processor_hours} hours of processor time" in render(both)
        assert render(both).count("Measured on the second one.") == 1
        assert "Measured on" not in render(one)


def test_compare_reads_the_results_of_both_protocols(tmp_path):
    table = TABLES["gaussians_summary"]
    run([c for c in table.cells(TINY) if c.method == "SVM"], tmp_path, workers=1)
    lines = compare(table, TINY, Results(tmp_path)).lines
    svm = [line for line in lines if line.row == "SVM"]
    other = [line for line in lines if line.row != "SVM"]
    assert len(svm) == len(other) == 7
    assert {line.verdict.word for line in other} == {"not run"}
    for line in svm:
        assert line.verdict.word == "holds"
        mean = float(line.paper.split("±")[0])
        assert line.difference == pytest.approx(mean - float(line.published[:5]), abs=6e-4)
        assert line.corrected != ""


@pytest.mark.parametrize(
    ("areas", "word", "reason"),
    [
        ([0.99, 1.0, 0.7, 1.0], "below", "1 of 4 single starts end in a poor minimum"),
        ([0.9, 0.9, 0.91, 0.9], "below", "apart by -0.098, 0.020 allowed"),
        ([0.99, 1.0, 1.0, 1.0], "holds", "apart by -0.002, 0.020 allowed"),
    ],
)
def test_single_starts_that_fail_are_the_reason_where_the_others_hold(areas, word, reason):
    entry = next(e for e in TABLES["gaussians_sigma_mse"].entries() if e.row == "2.0")
    assert entry.published == Published(1.0, 0.0)
    result = {"values": {entry.key("paper"): areas}, "more": {}}
    told = with_reason(entry, judge(entry.published, Ours.of(areas)), result)
    assert told.word == word
    assert reason in told.reason
    assert ("poor minimum" in told.reason) == ("poor minimum" in reason)


@pytest.mark.parametrize(
    ("tied", "reason"),
    [
        ([0.0, 0.29, 0.0], "1 of 3 starts give their highest score to up to 29% of the rows"),
        ([0.29, 0.0, 0.0], "within 3 standard deviations"),  # the others are as far off
    ],
)
def test_starts_tied_at_the_top_are_the_reason_where_the_others_hold(tied, reason):
    entry = next(e for e in TABLES["thyroid"].entries() if (e.row, e.column) == ("Hyper.", "RS"))
    assert entry.published == Published(0.03, 0.002)
    areas = [0.029, 0.427, 0.031]
    result = {"values": {entry.key("paper"): areas}, "more": {"tied at the top": tied}}
    told = with_reason(entry, judge(entry.published, Ours.of(areas)), result)
    assert told.word == "above"
    assert reason in told.reason


@pytest.mark.parametrize(
    ("areas", "more", "reason"),
    [
        ([0.80, 0.95, 0.99], {}, "within 3 standard deviations of our own 3 starts"),
        ([0.929, 0.929, 0.929], {}, "apart by +0.083, 0.020 allowed"),
        ([0.929, 0.929, 0.929], {"silent": 0.65}, "65% of the test rows"),
        ([0.929, 0.929, 0.929], {"silent": 0.4}, "apart by +0.083, 0.020 allowed"),
        ([0.839, 0.849, 0.849], {"silent": 0.65}, "apart by -0.000, 0.020 allowed"),
    ],
)
def test_spread_and_ties_are_reasons_of_figures_that_are_off(areas, more, reason):
    at = ("RS-SAD", "Overall")
    entry = next(e for e in TABLES["nsl_kdd"].entries() if (e.row, e.column) == at)
    assert entry.published == Published(0.846, 0.0)
    result = {"values": {entry.key("paper"): areas}, "more": more}
    told = with_reason(entry, judge(entry.published, Ours.of(areas)), result).reason
    assert reason in told
    assert told.endswith("allowed") == reason.endswith("allowed")


def test_the_paper_protocol_of_a_clean_hyperplane_is_the_published_one():
    """Without noise the training rows are the test rows, and BFGS finds the hyperplane."""
    cell = Cell("hyperplane", hyperplane.dataset("100", 10, "0.0"), "ES, MSE", seeds=3)
    values, _ = hyperplane.measure(cell)
    assert np.mean(values["trapezoid, normal"]) == pytest.approx(1.0, abs=0.02)


def test_several_starts_free_the_logistic_loss():
    """The published loss of area with the logistic loss is that of a single start."""
    cell = Cell("gaussians", gaussians.dataset("10.0"), "ES, LL, sigma=10.0", seeds=6)
    one, several = (
        np.mean(gaussians.measure(replace(cell, protocol=protocol))[0]["trapezoid, normal"])
        for protocol in ("paper", "corrected")
    )
    assert several > one + 0.01
