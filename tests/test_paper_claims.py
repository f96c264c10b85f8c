"""Claims of the paper that compare figures: what each comes to, and the tests behind a verdict."""

from dataclasses import replace

import numpy as np
import pytest

from paper.cells import Results, write_result
from paper.claims import CLAIMS, NAME
from paper.claims.claim import Claim, Contrast, Value, judged, of, tell
from paper.console import chosen
from paper.page import html, markdown, report
from paper.plan import PROTOCOLS, Measurement, Plan
from paper.published import Ours
from paper.runner import STUDIES
from paper.tables import TABLES
from paper.tables.mvtec import STAND_IN

BY_NAME = {claim.name: claim for claim in CLAIMS.claims}
PLAN = Plan(seeds=4)
MADE = {"date": "2026-01-01", "commit": "c", "versions": "v", "machine": "m", "seconds": 1.0}


def values(label, method):
    return Value(label, "gaussians", Measurement("clouds", method, "{metric}, normal"))


def keep(value, numbers, folder, **more):
    result = {"values": {"trapezoid, normal": numbers}, "more": more, "made": MADE}
    write_result(value.cell(PLAN), folder, result)


@pytest.mark.parametrize(
    ("relation", "apart", "std", "word"),
    [
        ("above", 0.05, 0.01, "agrees"),
        ("above", 0.05, 0.2, "cannot tell"),
        ("above", -0.05, 0.01, "differs"),
        ("below", -0.05, 0.01, "agrees"),
        ("below", 0.05, 0.01, "differs"),
        ("same", 0.005, 0.01, "agrees"),
        ("same", 0.05, 0.01, "differs"),
        ("same", -0.05, 0.01, "differs"),
        ("same", 0.022, 0.005, "cannot tell"),  # above 0, and not surely above the margin
        ("same", 0.005, 0.2, "cannot tell"),
        ("chosen", 1e-6, 0.01, "agrees"),  # by however little
        ("chosen", -0.001, 0.01, "cannot tell"),
        ("chosen", -0.05, 0.01, "differs"),
        ("chosen", 0.0, 0.0, "agrees"),
        ("chosen", -1e-6, 0.0, "differs"),
        ("no worse", -0.005, 0.01, "agrees"),
        ("no worse", -0.05, 0.01, "differs"),
        ("no worse", 0.3, 0.01, "agrees"),
        ("above", 0.0004, 0.0, "differs"),  # without chance, and the same as printed
        ("above", 0.001, 0.0, "agrees"),
        ("below", 0.0, 0.0, "differs"),
        ("same", 0.019, 0.0, "agrees"),
        ("no worse", -0.03, 0.0, "differs"),
    ],
)
def test_a_contrast_is_judged_by_tests_that_could_fail(relation, apart, std, word):
    assert judged(relation, Ours(0.8 + apart, std, 10), Ours(0.8, std, 10)) == word
    assert judged(relation, Ours(0.8 + apart, std, 10), 0.8) == word


def test_rounding_counts_against_both_words():
    near = Ours(0.80, 0.0, 1)
    assert judged("above", Ours(0.81, 0.0, 1), near, rounding=0.01) == "cannot tell"
    assert judged("above", Ours(0.81, 0.0, 1), near, rounding=0.004) == "agrees"
    assert judged("above", Ours(0.795, 0.0, 1), near, rounding=0.01) == "cannot tell"
    assert judged("same", Ours(0.80, 0.0, 1), near, rounding=0.03) == "cannot tell"
    noisy = Ours(0.805, 0.002, 10)
    assert judged("above", noisy, 0.8) == "agrees"
    assert judged("above", noisy, 0.8, rounding=0.005) == "cannot tell"


def test_of_many_contrasts_a_contrary_one_must_be_clearer():
    low = Ours(0.79, 0.012, 8)
    assert judged("above", low, 0.8) == "differs"
    assert judged("above", low, 0.8, n=20) == "cannot tell"


def test_a_claim_that_may_spare_contrasts_does_not_hold_by_luck():
    """Of ten true differences of nothing, five of which are needed, some agree at 5 % each."""
    high = Ours(0.81, 0.012, 8)
    assert judged("above", high, 0.8) == "agrees"
    assert judged("above", high, 0.8, spare=4) == "cannot tell"
    rng, n, needed = np.random.default_rng(0), 10, 6
    rows = (
        rng.normal(0.8, 0.1, (200, n, 20)) + np.where(np.arange(n) < needed - 1, 1.0, 0.0)[:, None]
    )
    shares = [
        np.mean([
            sum(judged("above", Ours.of(x), 0.8, spare=spare) == "agrees" for x in draw) >= needed
            for draw in rows
        ])
        for spare in (0, n - needed)
    ]  # fmt: skip
    assert shares[0] > 0.15, "five are so, and one of the others agrees by chance"
    assert shares[1] < 0.07


@pytest.mark.parametrize(
    ("right", "needed", "word"),
    [
        ((0.5, 0.5, 0.5), None, "agrees"),
        ((0.5, 0.5, 0.95), None, "differs"),
        ((0.5, 0.5, 0.95), 2, "agrees"),
        ((0.5, 0.95, 0.95), 2, "differs"),
        ((0.5, 0.9, 0.95), 2, "cannot tell"),
    ],
)
def test_a_claim_needs_so_many_contrasts(right, needed, word, tmp_path):
    left = values("left", "a")
    keep(left, [0.89, 0.91, 0.9, 0.9], tmp_path)
    claim = Claim("c", "s", tuple(Contrast(left, "above", x) for x in right), needed)
    assert tell(claim, PLAN, Results(tmp_path)).verdict.word == word


def test_pairs_are_told_apart_where_means_are_not(tmp_path):
    low, high = values("low", "a"), values("high", "b")
    numbers = [0.5, 0.6, 0.7, 0.8]
    keep(low, numbers, tmp_path)
    keep(high, [x + 0.01 + 0.001 * i for i, x in enumerate(numbers)], tmp_path)
    contrasts = [Contrast(high, "above", low, paired=paired) for paired in (True, False)]
    told = tell(Claim("c", "s", tuple(contrasts)), PLAN, Results(tmp_path))
    assert [line.verdict for line in told.lines] == ["agrees", "cannot tell"]
    assert "apart by 0.012±0.001" in told.lines[0].ours


def test_what_is_not_there_is_no_verdict(tmp_path):
    left, right = values("left", "a"), values("right", "b")
    claim = Claim("c", "s", (Contrast(left, "above", right),))
    keep(left, [0.9] * 4, tmp_path)
    assert tell(claim, PLAN, Results(tmp_path)).verdict.word == "not run"
    keep(right, [0.8] * 4, tmp_path, source=STAND_IN)
    assert tell(claim, PLAN, Results(tmp_path)).verdict.word == "other data"
    write_result(right.cell(PLAN), tmp_path, {"skipped": "no data"})
    told = tell(claim, PLAN, Results(tmp_path))
    assert told.verdict.word == "skipped"
    assert told.published.word == "none"


def test_a_margin_may_be_wider_or_narrower(tmp_path):
    left = values("left", "a")
    keep(left, [0.91, 0.911, 0.91, 0.909], tmp_path)
    for relation in ("same", "no worse"):
        claim = Claim("c", "s", (Contrast(left, relation, 0.925),))
        words = [
            tell(claim, PLAN, Results(tmp_path), margins=margins).verdict.word
            for margins in (0.5, 1.0, 2.0)
        ]
        assert words == ["differs", "agrees", "agrees"]


def test_the_interval_of_an_open_contrast_may_exclude_the_published_difference(tmp_path):
    contrast = BY_NAME["RQ1, thyroid"].contrasts[0]  # published: 0.934 and 0.907
    claim = Claim("c", "s", (contrast,))
    for runs, spread in ((12, 0.01), (12, 0.1), (4, 0.01)):
        for i, value in enumerate(contrast.values):
            key = value.measurement.key.format(metric="trapezoid")
            areas = [0.9 + spread * (-1) ** (i + j) for j in range(runs)]
            write_result(
                value.cell(PLAN), tmp_path, {"values": {key: areas}, "more": {}, "made": MADE}
            )
        (line,) = tell(claim, PLAN, Results(tmp_path)).lines
        assert (line.verdict, line.apart) == ("cannot tell", pytest.approx(0, abs=1e-9))
        assert (", 95 % interval [-" in line.ours) == (runs >= 10)
        assert ("which excludes the published +0.027" in line.ours) == (runs >= 10 and spread < 0.1)


def test_every_claim_stands_on_cells_of_a_study():
    assert len(BY_NAME) == len(CLAIMS.claims) >= 39
    for claim in CLAIMS.claims:
        assert claim.contrasts, claim.name
        assert (claim.needed or 1) <= len(claim.contrasts)
        assert {cell.study for cell in claim.cells(Plan())} <= set(STUDIES)
    assert NAME in chosen(["all"])
    assert {cell.protocol for cell in CLAIMS.cells(Plan())} == {PROTOCOLS[0]}


def test_what_the_published_figures_bear_by_themselves(tmp_path):
    """Five of six objects is a count of means: three runs tell one of the six apart."""
    told = {name: tell(BY_NAME[name], PLAN, Results(tmp_path)).published for name in BY_NAME}
    assert told["RQ1, MVTec"].word == "cannot tell"
    assert told["RQ1, MVTec"].reason.startswith("1 of 6 agree, 0 differ")
    assert told["RQ1, thyroid"].reason == "8 of 9 agree, 0 differ"
    assert told["losses of the networks"].word == "cannot tell"  # HS: 0.877 and 0.846, of 5 runs
    assert told["three layers in training"].word == "none"


def test_many_figures_that_are_each_a_little_below_are_so_together(tmp_path):
    """No contrast is contrary by itself; a claim that asks for some of them has no mean."""
    left = [values("left", str(i)) for i in range(12)]
    for i, value in enumerate(left):
        keep(value, [0.895 + 0.02 * (-1) ** (i + j) + 1e-4 * j for j in range(8)], tmp_path)
    contrasts = tuple(Contrast(value, "above", 0.9) for value in left)
    told = tell(Claim("c", "s", contrasts), PLAN, Results(tmp_path))
    assert "differs" not in {line.verdict for line in told.lines}
    assert told.verdict.word == "differs"
    assert "; their mean, apart by -0.00" in told.verdict.reason
    some = tell(Claim("c", "s", contrasts, needed=11), PLAN, Results(tmp_path))
    assert some.verdict.word == "cannot tell"
    mixed = Claim("c", "s", (*contrasts, Contrast(left[0], "below", 0.99)))
    assert (mixed.judges_mean, mixed.n_tests) == (False, 13)
    assert Claim("c", "s", contrasts).n_tests == 13
    keep(left[0], [0.88, 0.91, 0.9], tmp_path)  # of other runs than the rest
    assert tell(Claim("c", "s", contrasts), PLAN, Results(tmp_path)).verdict.word == "cannot tell"


def test_shallow_methods_are_compared_over_draws():
    for name in ("halfspaces below chance", "RQ1, shallow", "small sigma underfits"):
        for contrast in BY_NAME[name].contrasts:
            assert all(v.measurement.key.endswith(", by draw") for v in contrast.values)
            assert contrast.paired == (len(contrast.values) > 1)


def test_a_constant_score_is_above_chance_by_the_trapezoid_alone(tmp_path):
    """As most trees are on the circles: 0.875 by one area, 0.75 by the other."""
    for row in ("DT", "RF", "LOF"):
        cell = of("toy_shallow", row, "AUPR").cell(PLAN)
        areas = {"trapezoid, normal, by draw": 0.875, "average precision, normal, by draw": 0.75}
        numbers = {name: [area, area, area + 1e-6] for name, area in areas.items()}
        write_result(cell, tmp_path, {"values": numbers, "more": {}, "made": MADE})
    name = "trees and LOF above chance"
    words = [
        tell(BY_NAME[each], PLAN, Results(tmp_path)).verdict.word
        for each in (name, f"{name}, by average precision")
    ]
    assert words == ["agrees", "cannot tell"]


def test_sentences_about_published_rows_need_no_cells_of_their_own():
    known = {cell for table in TABLES.values() for cell in table.cells(Plan())}
    for name in (
        "perfect with RBFs",
        "perfect by both losses",
        "bumps by output",
        "more rows, LL",
        "small sigma and the SVM",
        "losses on Gaussians, significantly",
        "one-vs-set",
        "supervised on unseen kinds",
    ):
        assert set(BY_NAME[name].cells(Plan())) <= known


def test_members_with_a_high_separation_are_taken_alone(tmp_path):
    claim = BY_NAME["distances of a high separation"]
    numbers = {
        "difference of mean outputs": [0.31, 0.32, 0.1, 0.3],
        "distance of normal rows": [0.03, 0.04, 0.9, 0.035],
        "distance of anomalies": [0.5, 0.51, 0.0, 0.49],
    }
    (cell,) = claim.cells(PLAN)
    write_result(cell, tmp_path, {"values": numbers, "more": {}, "made": MADE})
    assert tell(claim, PLAN, Results(tmp_path)).verdict.word == "agrees"


def test_the_pages_show_claims_with_both_verdicts(tmp_path):
    claim = BY_NAME["RQ1, thyroid"]
    for value in (v for contrast in claim.contrasts for v in contrast.values):
        key = value.measurement.key.format(metric="trapezoid")
        area = 0.9 if "ES" in value.label else 0.8
        cell = value.cell(PLAN)
        before = Results(tmp_path).of(cell) or {"values": {}}
        kept = before["values"] | {key: [area, area + 0.001, area, area]}
        write_result(cell, tmp_path, {"values": kept, "more": {}, "made": MADE})
    found = report([NAME], PLAN, tmp_path)
    assert len(found.claims) == len(CLAIMS.claims)
    assert "under the paper protocol 1 agree, 0 differ, 0 cannot be judged" in found.summary[-1]
    line = "Hyperfunction (Seen), ES (ours) is above Hyperfunction (Seen), HS"
    for render in (html, markdown):
        assert line in render(found)
        assert claim.says in render(found)
    assert not report(["bumps"], PLAN, tmp_path).claims


def test_a_figure_of_a_table_has_its_runs_and_its_rounding():
    value = of("toy_shallow", "RF", "AUPR")
    assert (value.published, value.rounding) == (Ours(0.88, 0.01, 20), 0.005)
    assert replace(value, label="forest").cell(PLAN) == value.cell(PLAN)
