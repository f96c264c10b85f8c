"""Verdicts that could fail: equivalence, difference, chance; reasons that are called guesses."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from paper.cells import Results, write_result
from paper.comparison import compare, terms_of
from paper.page import html, markdown, report
from paper.plan import Plan
from paper.published import Ours, Published, constant_area, published_tables
from paper.reasons import CONSTANT_ROWS, is_constant, reason_for
from paper.tables import TABLES, mvtec
from paper.verdicts import MARGIN, WORDS, Terms, chance_passes, judge, margin_of, standard_error

TINY = Plan(seeds=2, quick=True)
MADE = {"date": "2026-01-01", "commit": "c", "versions": "v", "machine": "m", "seconds": 1.0}


def word(published, ours, **terms):
    return judge(published, ours, Terms(**{"runs": 20} | terms)).word


@pytest.mark.parametrize(
    ("apart", "expected"),
    [(0.0, "agrees"), (0.0005, "agrees"), (0.0006, "differs"), (-0.001, "differs")],
)
def test_without_chance_figures_are_equal_when_rounded_or_they_differ(apart, expected):
    assert word(Published(0.5, 0.0), Ours(0.5 + apart, 0.0, 1), runs=1) == expected
    assert word(Published(0.5, 0.0), Ours(0.5 + 10 * apart, 0.0, 1), runs=1, rounding=0.005) == (
        expected
    )


@pytest.mark.parametrize(
    ("apart", "std", "expected"),
    [
        (0.0, 0.01, "agrees"),
        (0.0, 0.1, "cannot tell"),
        (0.01, 0.01, "agrees"),
        (0.01, 0.02, "cannot tell"),
        (0.03, 0.01, "differs"),
        (-0.03, 0.01, "differs"),
        (-0.03, 0.1, "cannot tell"),
        (0.0, 0.0, "agrees"),
        (0.019, 0.0, "agrees"),
        (0.021, 0.0, "differs"),
    ],
)
def test_means_of_twenty_runs(apart, std, expected):
    assert word(Published(0.5, std), Ours(0.5 + apart, std, 20)) == expected


def test_the_margin_can_be_halved_and_doubled():
    published, ours = Published(0.5, 0.01), Ours(0.51, 0.01, 20)
    words = [word(published, ours, margins=times) for times in (0.5, 1.0, 2.0)]
    assert words == ["differs", "agrees", "agrees"]


@pytest.mark.parametrize(
    ("published", "ours", "expected"),
    [(0.022, 0.010, "differs"), (0.022, 0.019, "agrees"), (0.08, 0.095, "agrees")],
)
def test_a_rare_kind_has_a_margin_of_its_own_size(published, ours, expected):
    """0.022 and 0.010 are within 0.02 of each other, and nobody would call them the same."""
    assert word(Published(published, 0.0), Ours(ours, 0.0, 20), rounding=0.0005) == expected
    assert margin_of(0.1) == margin_of(0.9) == MARGIN


def test_what_the_published_spread_hides_no_number_of_runs_can_tell():
    wide, narrow = Published(0.5, 0.1), Published(0.5, 0.01)
    ours = Ours(0.51, 0.1, 20)
    for published, final in ((wide, True), (narrow, False)):
        told = judge(published, ours, Terms(runs=20))
        assert (told.word, told.is_final) == ("cannot tell", final)
        many = judge(published, Ours(0.51, 0.1, 10**7), Terms(runs=20))
        assert (many.word == "cannot tell") == final
    assert "no number of our runs can decide it" in judge(wide, ours, Terms(runs=20)).reason
    draws = Terms(runs=1, by_draw=Ours(0.5, 0.02, 20))
    assert judge(Published(0.5, 0.0), Ours(0.505, 0.0, 1), draws).is_final


def test_few_runs_tell_less_than_many():
    published, ours = Published(0.5, 0.01), Ours(0.505, 0.01, 3)
    assert word(published, ours, runs=3) == "cannot tell"
    assert word(published, Ours(0.505, 0.01, 20), runs=20) == "agrees"


def test_rounding_counts_against_agreement_and_against_a_difference():
    steady = Ours(0.516, 0.0, 20)
    assert word(Published(0.5, 0.0), steady) == "agrees"
    assert word(Published(0.5, 0.0), steady, rounding=0.005) == "differs"
    assert word(Published(0.5, 0.02), Ours(0.514, 0.02, 20)) == "differs"
    assert word(Published(0.5, 0.02), Ours(0.514, 0.02, 20), rounding=0.005) == "cannot tell"


def test_a_printed_deviation_may_be_off_as_a_mean_may():
    """0.03 may be 0.035: with 0.03 itself the two would agree."""
    published, ours = Published(0.97, 0.03), Ours(0.9691, 0.015, 20)
    assert word(published, ours, rounding=0.005) == "cannot tell"
    assert word(Published(0.97, 0.025), ours, rounding=0.005) == "agrees"


def test_where_no_deviation_is_printed_ours_stands_for_it():
    ours = Ours(0.458, 0.108, 20)
    assert word(Published(0.4), ours, rounding=0.005) == "cannot tell"
    assert word(Published(0.4, 0.0), ours, rounding=0.005) == "differs"
    distances = [
        row["Distance of anomalies"] for row in published_tables()["separation"].rows.values()
    ]
    assert distances[:2] == [Published(0.4), Published(0.3)]  # as the text has them


def test_the_standard_error_is_that_of_welch():
    rng = np.random.default_rng(0)
    one, two = rng.normal(0.5, 0.1, 12), rng.normal(0.55, 0.2, 7)
    error, freedom = standard_error(Published(one.mean(), one.std()), Ours.of(two), Terms(runs=12))
    welch = stats.ttest_ind(two, one, equal_var=False)
    assert (two.mean() - one.mean()) / error == pytest.approx(welch.statistic)
    assert freedom == pytest.approx(welch.df)


def test_wrong_verdicts_are_as_rare_as_they_promise():
    """Equal means rarely differ; means a margin apart rarely agree."""
    rng, words = np.random.default_rng(0), []
    for apart in (0.0, MARGIN):
        theirs, ours = rng.normal(0.5, 0.01, (400, 5)), rng.normal(0.5 + apart, 0.01, (400, 5))
        words.append(
            [
                word(Published(t.mean(), t.std()), Ours.of(o), runs=5, rounding=0.0)
                for t, o in zip(theirs, ours, strict=True)
            ]
        )
    assert 0 < words[0].count("differs") <= 0.05 * 400 + 12
    assert 0 < words[1].count("agrees") <= 0.05 * 400 + 12
    assert words[0].count("agrees") > 100


def test_a_data_set_that_was_drawn_counts_with_how_far_draws_are_apart():
    published, ours = Published(0.83, 0.0), Ours(0.81, 0.0, 1)
    assert word(published, ours, runs=1) == "differs"
    assert word(published, ours, runs=1, by_draw=Ours(0.8, 0.05, 20)) == "cannot tell"
    assert word(published, ours, runs=1, by_draw=Ours(0.8, 0.001, 20)) == "differs"
    same = Ours(0.83, 0.0, 1)
    assert word(published, same, runs=1, by_draw=Ours(0.83, 0.001, 20)) == "agrees"


@pytest.mark.parametrize(
    ("published", "ours", "expected"),
    [
        (Published(0.83, 0.18), Ours(0.95, 0.139, 20), "differs"),
        (Published(1.0, 0.0), Ours(0.999, 0.001, 20), "agrees"),
    ],
)
def test_of_one_draw_it_is_said_what_would_undo_the_verdict(published, ours, expected):
    terms = Terms(20, 0.005, one_draw=True)
    told = judge(published, ours, terms)
    assert told.word == expected
    least = float(told.reason.split("a deviation of ")[1].split()[0])
    for times, word_then in ((0.8, expected), (1.3, "cannot tell")):
        between = np.sqrt((times * least) ** 2 + ours.std**2)
        draws = Ours(0.9, between, 10**6)
        assert judge(published, ours, Terms(20, 0.005, draws)).word == word_then
    wide = judge(published, Ours(ours.mean, 0.5, 20), terms)
    assert (wide.word, "one draw" in wide.reason) == ("cannot tell", False)


def test_networks_on_the_circles_are_of_one_draw_and_shallow_methods_are_not():
    network, forest = (
        terms_of(TABLES[name], entry_of(name, row, column), {"values": values}, "paper")
        for name, row, column, values in (
            ("toy_networks", "HS", "RBF", {}),
            ("toy_shallow", "RF", "AUPR", {"trapezoid, normal, by draw": [0.8, 0.9]}),
        )
    )
    assert (network.one_draw, forest.one_draw) == (True, False)
    thyroid = entry_of("thyroid", "Hyper.", "RS")
    assert not terms_of(TABLES["thyroid"], thyroid, {"values": {}}, "paper").one_draw


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (Ours(0.654, 0.126, 20), "agrees"),  # not thirteen of twenty
        (Ours(0.51, 0.1, 20), "cannot tell"),
        (Ours(0.45, 0.05, 20), "differs"),
        (Ours(0.654, 0.0, 1), "cannot tell"),
    ],
)
def test_a_claim_of_a_mean_is_judged_as_one(ours, expected):
    assert word(Published(least=0.5), ours) == expected


@pytest.mark.parametrize(
    ("successes", "expected"), [(20, "agrees"), (15, "agrees"), (10, "cannot tell"), (5, "differs")]
)
def test_a_claim_of_a_share_is_judged_by_its_exact_interval(successes, expected):
    values = [1.0] * successes + [0.0] * (20 - successes)
    assert word(Published(least=0.5), Ours.of(values)) == expected


def test_a_figure_that_the_paper_does_not_have_is_not_judged():
    assert {word(Published(), Ours(mean, 0.0, 3)) for mean in (0.0, 0.5, 1.0)} == {"ours alone"}


def test_chance_is_a_constant_score_or_one_drawn_at_random():
    terms = Terms(runs=1)
    for area in (constant_area(0.2), 0.2):
        assert chance_passes(Published(area, 0.0), terms, 0.2)
    assert not chance_passes(Published(0.4, 0.0), terms, 0.2)
    assert not chance_passes(Published(0.2, 0.0), terms, None)


def test_published_rows_of_constant_scores_are_those_of_constant_scores():
    """(1 + prevalence) / 2 to three digits, in every figure of them and of no other row."""
    for name, rows in CONSTANT_ROWS.items():
        table, n_found = TABLES[name], 0
        for entry in table.entries():
            area = constant_area(table.prevalence(entry.row, entry.column))
            if is_constant(entry):
                n_found += 1
                assert entry.published.mean == pytest.approx(area, abs=0.00051)
        assert n_found == len(rows) * {"mvtec_objects": 6, "nsl_kdd_training": 1}.get(name, 5)


def test_every_area_has_a_prevalence_and_no_other_figure_has():
    for table in TABLES.values():
        shares = {table.prevalence(e.row, e.column) for e in table.entries()}
        if table.name in ("separation", "margin_by_layer", "magnetic_tile"):
            assert shares == {None}
        else:
            assert all(0 < share < 1 for share in shares)
    assert TABLES["nsl_kdd"].prevalence("SVM", "DoS") == pytest.approx(0.434, abs=5e-4)
    assert sum(mvtec._PILLS.values()) == mvtec.TESTED["Pill"][1]


def test_digits_are_those_that_a_table_prints():
    tables = published_tables()
    assert tables["toy_shallow"].rounding == pytest.approx(0.005)
    assert tables["nsl_kdd"].rounding == pytest.approx(0.0005)


def filled(out, table, area_of):
    """Results of a table on disk, with the same area from each seed."""
    for entry in table.entries():
        for protocol in TINY.protocols:
            cell, more = entry.cell(TINY, protocol), {"distinct scores": [2]}
            path, at = cell.path(out), entry.key(protocol)
            known = Results(out).of(cell) if path.exists() else None
            values = dict(known["values"]) if known else {"trapezoid, train": [0.9]}
            values[at] = [area_of(entry, protocol)] * cell.seeds
            write_result(cell, out, {"values": values, "more": more, "made": MADE})
    return compare(table, TINY, Results(out))


def test_each_protocol_has_verdicts_of_its_own(tmp_path):
    table = TABLES["nsl_kdd"]
    found = filled(
        tmp_path, table, lambda e, protocol: e.published.mean + 0.3 * (protocol == "corrected")
    )
    assert (found.count("agrees"), found.count("cannot tell")) == (61, 19)
    assert found.count("differs", protocol="corrected") == 80
    assert found.passed_by_chance == 13
    assert found.agreeing_as_chance() == 13
    assert found.agreeing_as_chance(protocol="corrected") == 0
    whole = report(["nsl_kdd", "thyroid"], TINY, tmp_path)
    assert "80 figures, 61 agree, 0 differ, 19 cannot be judged</summary>" in html(whole)
    for render in (html, markdown):
        page = render(whole)
        repeats = "89 published figures: 0 appear in a second table as well and 9 have no figure"
        assert repeats in page
        assert (
            "Under the paper protocol 61 agree with ours, 0 differ and 19 cannot be judged. The "
            "two means are within the margin in 0 of those that differ and 19 of those that cannot "
            "be judged; 19 of the latter would stay open with any number of our runs, if our means "
            "stay where they are. Of 50 figures that are judged by a test 0 differ; if all were "
            "equal, at most 2 would on average. With half the margin 52 agree, 0 differ and 28 "
            "cannot be judged, with twice the margin 70 agree, 0 differ and 10 cannot be judged. "
            "Counting each figure once: 61 agree, 0 differ, 19 cannot be judged. "
            "Judging each method as a whole, once, by the mean of its areas (10 means of runs): 7 "
            "agree, 0 differ, 3 cannot be judged. Of 6 deterministic methods 6 have all areas as "
            "printed." in page
        )
        assert "Under the corrected protocol 0 agree with ours, 80 differ and 0 cannot be" in page
        assert (
            "A constant or random score would agree with 13; 13 of these are among those that "
            "agree with ours under the paper protocol." in page
        )


def shifted(out, noise_of):
    """The Gaussians, all areas 0.022 below the published ones, give or take noise by run."""
    table, plan = TABLES["gaussians_sigma_mse"], Plan(("paper",), seeds=20)
    for entry in table.entries():
        values = {entry.key("paper"): (entry.published.mean - 0.022 + noise_of(entry)).tolist()}
        write_result(entry.cell(plan, "paper"), out, {"values": values, "more": {}, "made": MADE})
    return compare(table, plan, Results(out))


def test_figures_that_shift_together_differ_though_each_alone_cannot_be_told(tmp_path):
    rng = np.random.default_rng(0)
    found = shifted(tmp_path / "apart", lambda entry: rng.normal(0, 0.05, 20))  # noqa: ARG005
    alone = [line.verdict.word for line in found.lines if line.column == "ES (sigma=0.1)"]
    assert alone.count("cannot tell") > alone.count("differs")
    shift = next(s for s in found.shifts["paper"] if s.method == "ES, MSE, sigma=0.1")
    assert (shift.figures, shift.verdict.word) == (39, "differs")
    assert shift.below > 5 * shift.above
    assert shift.difference == pytest.approx(-0.022, abs=0.005)
    noise = rng.normal(0, 0.05, 20)
    noise -= noise.mean()
    together = shifted(tmp_path / "together", lambda entry: noise)  # noqa: ARG005
    shift = next(s for s in together.shifts["paper"] if s.method == "ES, MSE, sigma=0.1")
    assert shift.verdict.word == "cannot tell", "one draw for all of them is one figure, not 39"


def test_a_method_without_chance_agrees_where_all_its_figures_do(tmp_path):
    one_off = {"Probe": 0.001, "Access": -0.001}  # 0 on average
    found = filled(
        tmp_path,
        TABLES["nsl_kdd"],
        lambda e, _: e.published.mean + one_off.get(e.column, 0.0) * (e.row == "SVM"),
    )
    words = {shift.method: shift.verdict for shift in found.shifts["paper"]}
    assert words["LOF-A"].word == "agrees"
    assert words["SVM-RBF"].word == "differs"
    assert words["SVM-RBF"].reason == "3 of 5 equal when rounded"


def test_means_may_be_near_where_nothing_can_be_told(tmp_path):
    """Thyroid's networks: three runs with deviations of 0.002 to 0.040."""
    areas = {"paper": 0.015, "corrected": 0.025}
    found = filled(tmp_path, TABLES["thyroid"], lambda e, p: e.published.mean + areas[p])
    counts = [
        (found.count("cannot tell", protocol=p), found.count_near("cannot tell", protocol=p))
        for p in areas
    ]
    assert counts[0][0] == counts[0][1] > 0
    assert counts[1][0] > counts[1][1] == 0


def test_a_run_of_the_corrected_protocol_alone_counts_its_verdicts(tmp_path):
    filled(tmp_path, TABLES["nsl_kdd"], lambda e, protocol: e.published.mean)  # noqa: ARG005
    plan = Plan(("corrected",), seeds=2, quick=True)
    found = report(["nsl_kdd"], plan, tmp_path)
    (told,) = found.summary[1:-1]
    assert told.startswith(
        "Under the corrected protocol 61 agree with ours, 0 differ and 19 cannot be judged. The "
    )
    for cell in TABLES["nsl_kdd"].cells(Plan(("paper",), seeds=2, quick=True)):
        cell.path(tmp_path).unlink()
    assert report(["nsl_kdd"], plan, tmp_path).summary == found.summary
    assert "| NSL-KDD | 80 | 61 |" in markdown(found)


def test_one_vs_set_that_ranks_as_its_machine_is_said_to(tmp_path):
    found = filled(tmp_path, TABLES["nsl_kdd"], lambda e, protocol: 0.123)  # noqa: ARG005
    reasons = {line.row: line.verdict.reason for line in found.lines}
    assert "our SVM alone has 0.123 here, no less" in reasons["OVS-ES (ours)"]
    assert reasons["OVS-ES (ours)"].endswith("OVS-ES does not raise the area")
    assert "that of a constant score" in reasons["OVS"]
    assert "2 distinct scores get 0.900 on the training rows" in reasons["OVS"]
    assert reasons["OCSVM"].endswith(
        "within 0.005 of it (python -m paper.settings OCSVM-A --rows 0)"
    )
    assert reasons["IsoF"].endswith(": open: no reason is known")
    for row in ("OVS-ES (ours)", "SVM", "OCSVM"):
        assert ": open; tried: " in reasons[row]
    assert ": guess: " in reasons["Random"]


@pytest.mark.parametrize(("area", "is_raised"), [(0.5, False), (0.4, False), (0.501, True)])
def test_one_vs_set_raises_an_area_or_does_not(area, is_raised):
    entry = entry_of("nsl_kdd_full", "OVS-RBF-ES (ours)", "Access")
    own, machine = ({"values": {entry.key("paper"): [x]}, "more": {}} for x in (area, 0.5))
    results = {"paper": own, "corrected": None, "machine": machine}
    told = reason_for(entry, results, Terms(runs=1))
    assert told.startswith("open; tried: our SVM alone has 0.500 here")
    assert ("does not raise" in told) != is_raised


@pytest.mark.parametrize(("column", "is_tested_alike"), [("Probe", True), ("Access", False)])
def test_an_svm_without_the_misspelt_attacks_may_have_the_published_area(column, is_tested_alike):
    entry = entry_of("nsl_kdd_full", "SVM-RBF", column)
    mean = entry.published.mean
    own, corrected = ({"values": {entry.key("paper"): [x]}, "more": {}} for x in (0.5, mean))
    told = reason_for(entry, {"paper": own, "corrected": corrected}, Terms(runs=1))
    assert (f"it is {mean:.3f}, which agrees, if the nine rows" in told) == is_tested_alike
    for lacking in (own, {"skipped": "no data"}, None):
        told = reason_for(entry, {"paper": own, "corrected": lacking}, Terms(runs=1))
        assert told.startswith("open; tried: cross-validation takes C = 100")


def entry_of(table, row, column):
    return next(e for e in TABLES[table].entries() if (e.row, e.column) == (row, column))


def test_several_starts_are_an_experiment():
    entry = entry_of("gaussians_sigma_ll", "10.0", "ES (sigma=10.0)")
    key, mean = entry.key("paper"), entry.published.mean
    results = {
        "paper": {"values": {key: [0.5, 0.5]}, "more": {}},
        "corrected": {"values": {key: [mean, mean]}, "more": {}},
    }
    told = reason_for(entry, results, Terms(runs=20, rounding=0.005))
    assert told == f"experiment: from several starts it is {mean:.3f}±0.000, which agrees"
    results["corrected"] = {"values": {key: [0.5, 0.5]}, "more": {}}
    told = reason_for(entry, results, Terms(runs=20, rounding=0.005))
    assert told == "open; tried: several starts do not account for it, 0.500±0.000, differs"
    results["corrected"] = {"values": {key: [mean - 0.1, mean + 0.1]}, "more": {}}
    told = reason_for(entry, results, Terms(runs=20, rounding=0.005))
    assert told.startswith("open; tried: from several starts")
    assert told.endswith("±0.100, which cannot be judged")


def test_starts_that_fail_are_no_reason_where_ours_is_above():
    entry = entry_of("hyperplane_mse_100", "1.5", "5")
    areas = [1.0] * 19 + [0.9]  # 0.970 is published
    results = {"paper": {"values": {entry.key("paper"): areas}, "more": {}}, "corrected": None}
    assert reason_for(entry, results, Terms(runs=20, rounding=0.005)) == ""


def test_one_start_is_not_judged():
    entry = entry_of("thyroid", "Hyper.", "RS")
    more = {"tied at the top": [0.3, 0.29, 0]}
    result = {"values": {entry.key("paper"): [0.4, 0.4, 0.031]}, "more": more}
    told = reason_for(entry, {"paper": result, "corrected": None}, Terms(runs=3))
    assert told.endswith("and the other gives 0.031")


@pytest.mark.parametrize(
    ("table", "row", "column", "areas", "more", "told"),
    [
        (
            "thyroid",
            "Hyper.",
            "RS",
            [0.029, 0.427, 0.031],
            {"tied at the top": [0, 0.29, 0]},
            "1 of",
        ),
        ("nsl_kdd", "RS-SAD", "Overall", [0.9] * 3, {"silent": 0.65}, "65% of the test rows"),
        (
            "hyperplane_mse_100",
            "0.0",
            "5",
            [0.99, 0.5, 0.99],
            {},
            "1 of 3 are more than 0.02 below",
        ),
    ],
)
def test_what_is_not_shown_is_called_a_guess(table, row, column, areas, more, told):
    entry = entry_of(table, row, column)
    result = {"values": {entry.key("paper"): areas}, "more": more}
    reason = reason_for(entry, {"paper": result, "corrected": None}, Terms(runs=3))
    assert reason.startswith("guess: ")
    assert told in reason


def test_where_nothing_is_known_nothing_is_said():
    entry = entry_of("nsl_kdd", "RS-SAD", "Overall")
    result = {"values": {entry.key("paper"): [0.9] * 3}, "more": {"silent": 0.4}}
    assert reason_for(entry, {"paper": result, "corrected": None}, Terms(runs=3)) == ""
    assert reason_for(entry, {"paper": None, "corrected": None}, Terms(runs=3)) == ""


def test_figures_that_are_printed_twice_are_counted_and_tables_are_whole(tmp_path):
    names = ["toy_networks", "toy_networks_2layers", "margin_by_layer", "magnetic_tile"]
    found = report(names, TINY, tmp_path)
    assert found.printed_again == 9
    assert found.summary[0].startswith("56 published figures: 9 appear in a second table as well")
    lines = markdown(found).splitlines()
    heads = [i for i, line in enumerate(lines) if line.startswith("|---|")]
    assert len(heads) == len(names) + 1
    assert all(lines[i + 1].startswith("| ") for i in heads)


def test_the_words_of_verdicts_have_styles_on_the_page():
    style = Path(__file__).parents[1].joinpath("paper", "page.html.jinja").read_text("utf-8")
    assert all(f".{name.split()[0]} " in style or f".{name.split()[0]}," in style for name in WORDS)
