"""The paper's tables as data: cells, results on disk, verdicts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paper import provenance
from paper.cells import Cell, Results, seeds_of, write_result
from paper.comparison import compare
from paper.figures import FIGURES
from paper.page import html, markdown, report
from paper.plan import PROTOCOLS, Plan
from paper.published import constant_area, published_tables
from paper.runner import STUDIES, run
from paper.tables import TABLES, gaussians, hyperplane
from paper.verdicts import JUDGED

TINY = Plan(seeds=2, quick=True)


def test_every_published_table_has_cells():
    paper_tables = 18
    studies_of_the_text = 5
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
    seeds = {name: {c.seeds for c in TABLES[name].cells(Plan())} for name in TABLES}
    assert seeds["hyperplane_mse_100"] == seeds["gaussians_summary"] == {200}
    assert seeds["toy_shallow"] == {1, 200}
    assert (seeds["thyroid"], seeds["toy_networks"]) == ({30}, {20})
    assert seeds["nsl_kdd_full"] == {1, 3, 5, 200}, "isolation forests are cheap, networks are not"
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Plan(seeds=0)
    with pytest.raises(ValueError, match="Unknown protocol fair: expected paper or corrected"):
        Plan(protocols=("fair",))


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
    run([c for c in table.cells(TINY) if c.method == "SVM"], tmp_path, processes=1)
    lines = compare(table, TINY, Results(tmp_path)).lines
    svm = [line for line in lines if line.row == "SVM"]
    other = [line for line in lines if line.row != "SVM"]
    assert len(svm) == len(other) == 7
    assert {line.verdict.word for line in other} == {"not run"}
    for line in svm:
        assert line.verdict.word in JUDGED
        mean = float(line.paper.split("±")[0])
        assert line.difference == pytest.approx(mean - float(line.published[:5]), abs=6e-4)
        assert line.corrected != ""
        assert line.corrected_verdict.word in JUDGED


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
