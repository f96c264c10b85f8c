"""`python -m paper.settings`: what was tried where the paper names no settings."""

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from eqsep.evaluation import anomaly_score
from paper import settings
from paper.methods import CROSS_VALIDATED, NSL_KDD_METHODS
from paper.reasons import reason_for
from paper.tables import TABLES, nsl_kdd, nsl_kdd_networks, thyroid
from paper.verdicts import Terms


@pytest.fixture
def _small(small_split, monkeypatch):
    """Few rows, and networks that are hardly trained."""
    for module in (nsl_kdd, thyroid):
        monkeypatch.setattr(module, "data", lambda protocol: small_split)  # noqa: ARG005
    monkeypatch.setattr(nsl_kdd_networks, "EPOCHS", 2)
    monkeypatch.setattr(thyroid, "EPOCHS", 2)
    whole = settings.training
    monkeypatch.setattr(settings, "training", lambda **told: whole(**told | {"epochs": 2}))


def starred(row):
    (scores,) = (make for name, make in settings.TRIED["nsl_kdd_full", row].items() if "*" in name)
    return scores


NETWORKS = ("RS", "ES-NS (ours)", "RS-SAD")  # RS on both tables
SHALLOW = [
    row
    for table, row in settings.TRIED
    if table == "nsl_kdd_full" and row.startswith(("SVM", "OVS", "LOF", "OCSVM"))
]


@pytest.mark.parametrize("row", SHALLOW)
def test_the_setting_with_a_star_is_the_one_that_is_reproduced(row, small_split):
    (score,) = starred(row)(small_split)
    model = NSL_KDD_METHODS[row.removesuffix(" (ours)")](0).fit(
        small_split.X_train, small_split.y_train
    )
    assert_array_equal(score, anomaly_score(model, small_split.X_test))


@pytest.mark.usefixtures("_small")
def test_networks_of_each_make_score_every_row_from_each_start(small_split):
    last = [(*at, list(settings.TRIED[at])[-1]) for at in settings.TRIED if at[1] in NETWORKS]
    assert len(last) == 4
    for table, row, setting in last:
        scores = settings.TRIED[table, row][setting](small_split)
        assert scores.shape == (settings.SEEDS, len(small_split.X_test))
        assert np.isfinite(scores).all()


@pytest.mark.usefixtures("_small")
def test_it_prints_how_far_each_setting_is_and_measures_once(tmp_path, capsys, monkeypatch):
    words = ["OCSVM-N", "--rows", "50", "--out", str(tmp_path)]
    settings.main(words)
    first = capsys.readouterr().out
    lines = [line.split(" | ") for line in first.splitlines() if line.startswith("| OCSVM-N")]
    assert [line[1] for line in lines] == ["published", *settings.TRIED["nsl_kdd_full", "OCSVM-N"]]
    assert {line[2] for line in lines[1:]} == {"50"}
    published, ours = ([float(word) for word in line[3:8]] for line in lines[:2])
    apart = float(re.sub(r"[ |]", "", lines[1][8]))
    assert apart == pytest.approx(np.max(np.abs(np.subtract(ours, published))), abs=0.001)
    monkeypatch.setattr(settings, "measured", None)
    settings.main(words)
    assert capsys.readouterr().out == first
    assert len(list(tmp_path.rglob("*.json"))) == 4


def test_the_circles_are_drawn_anew_for_each_repetition(tmp_path, capsys):
    settings.main(["OCSVM", "--out", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert "| OCSVM | nu = 0.0001, as printed* | 100 | 0.796±0.047 | 0.034 |" in lines


def test_more_starts_raise_the_logistic_areas_of_the_gaussians(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(settings, "CLOUDS", 20)
    monkeypatch.setattr(settings.gaussians, "MULTIPLIERS", ("2.0", "7.0"))
    monkeypatch.setattr(settings, "MULTIPLIERS", ("2.0", "7.0"))
    monkeypatch.setitem(settings.KINDS, "gaussians_sigma_ll", {"2.0": "2.0", "7.0": "7.0"})
    settings.main(["ES (sigma=10.0)", "--out", str(tmp_path)])
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[3:7]]
    areas = {line[1]: float(line[4].split("±")[0]) for line in lines}
    assert areas["one start*"] < areas["the best of 2 by training loss"]
    assert areas["the best of 2 by training loss"] <= areas["the best of 5 by training loss"]


@pytest.mark.parametrize(
    ("row", "kernel"), [("SVM-RBF", "rbf"), ("SVM-Lin", "linear"), ("SVM", "rbf")]
)
def test_a_reason_names_the_penalty_that_is_taken_and_tried(row, kernel):
    taken = CROSS_VALIDATED[kernel]
    name = "SVM-RBF" if row == "SVM" else row
    tried = settings.TRIED["nsl_kdd_full", name]
    assert f"C = {taken:g}*" in tried
    table = "nsl_kdd" if row == "SVM" else "nsl_kdd_full"
    entry = next(e for e in TABLES[table].entries() if e.row == row)
    result = {"values": {entry.key("paper"): [0.1]}, "more": {}}
    told = reason_for(entry, {"paper": result, "corrected": None}, Terms(runs=1))
    assert f"cross-validation takes C = {taken:g}, which" in told


@pytest.mark.usefixtures("_small")
def test_the_machines_are_cross_validated_by_penalty(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(settings, "FOLDS", 2)
    monkeypatch.setattr(settings, "PENALTIES", (1e-5, 1.0))
    settings.main(["--cross-validate", "--rows", "0", "--out", str(tmp_path)])
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    for name in settings.KERNELS:
        (marked,), losses = (
            [line[4] for line in lines if line[0] == f"| {name}" and "least" in line[5]],
            [line[4] for line in lines if line[0] == f"| {name}"],
        )
        assert len(losses) == 2
        assert marked == min(losses, key=float) != max(losses, key=float)
    kept = sorted(path.stem for path in tmp_path.rglob("*.json"))
    assert len(kept) == 2 * 2 * 2, "one a kernel, C and fold: a run that is ended goes on there"
    assert "SVM-Lin, C=1, fold 2, 1 seeds" in kept


@pytest.mark.parametrize(
    ("words", "message"),
    [(["LOF"], "expected some of .*LOF-A.*, got LOF"), (["LOF-N"], "EQSEP_DATA")],
)
def test_what_cannot_be_measured_is_said(words, message, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("EQSEP_DATA", raising=False)
    nsl_kdd.data.cache_clear()
    with pytest.raises(SystemExit) as ended:
        settings.main([*words, "--out", str(tmp_path)])
    assert ended.value.code == 2
    assert re.search(message, capsys.readouterr().err)
