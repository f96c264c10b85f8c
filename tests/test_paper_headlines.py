"""The first screen of the page: the paper's main claims, and what theory says of four of them."""

import pytest

from paper.cells import Results, write_result
from paper.claims import CLAIMS, HEADLINES, theory
from paper.page import html, markdown, report
from paper.plan import Plan

PLAN = Plan(quick=True)
THEORY = {claim.name: claim for claim in theory.CLAIMS}
MADE = {"date": "2026-01-01", "commit": "c", "versions": "v", "machine": "m", "seconds": 1.0}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """The results of theory alone."""
    folder = tmp_path_factory.mktemp("results")
    for cell in {cell for claim in theory.CLAIMS for cell in claim.cells(PLAN)}:
        values, more = theory.measure(cell)
        write_result(cell, folder, {"values": values, "more": more} | MADE)
    return folder


def headlines(out):
    return {main.link: main for main in report(["claims"], PLAN, out).headlines}


def test_every_headline_is_a_claim():
    assert set(HEADLINES) <= {claim.name for claim in CLAIMS.claims}


def test_what_is_proved_holds_and_the_refuted_bound_does_not(out):
    found = headlines(out)
    words = {name: found[f"claim-{link}"].word for name, link in [
        ("XOR", "xor"),
        ("VC dimension", "vc-dimension"),
        ("VC dimension with a margin", "vc-dimension-with-a-margin"),
        ("VC dimension without flipping", "vc-dimension-without-flipping"),
        ("closing numbers", "closing-numbers"),
    ]}  # fmt: skip
    assert words == {
        "XOR": "holds",
        "VC dimension": "holds",
        "VC dimension with a margin": "does not hold",
        "VC dimension without flipping": "does not hold",
        "closing numbers": "holds",
    }
    assert "shattered in R^3" in found["claim-vc-dimension-with-a-margin"].figure


def test_a_headline_shows_the_contrast_with_the_least_evidence(tmp_path):
    claim = next(c for c in CLAIMS.claims if c.name == "RQ2, NSL-KDD")
    for value in {v for contrast in claim.contrasts for v in contrast.values}:
        area = {"ES, MSE (ours), Overall": 0.9, "RS-SAD, Overall": 0.905}.get(value.label, 0.8)
        key = value.measurement.key.format(metric="trapezoid")
        areas = [area, area + 0.001, area - 0.001]
        cell = value.cell(PLAN)
        write_result(cell, tmp_path, {"values": {key: areas[: cell.seeds]}, "more": {}} | MADE)
    figure = headlines(tmp_path)["claim-rq2-nsl-kdd"].figure
    assert figure.startswith("4 of 4 agree, 0 differ; ours is lower in 1; least evidence: ES, MSE")
    assert "is no more than 0.02 below RS-SAD, Overall: 0.900" in figure


def test_a_claim_without_results_is_open(out):
    assert headlines(out)["claim-rq1-thyroid"].word == "open"


def test_a_headline_follows_its_results(out, tmp_path):
    for cell in THEORY["XOR"].cells(PLAN):
        learnt = Results(out).of(cell)["values"]["learnt"][0] - 1
        write_result(cell, tmp_path, {"values": {"learnt": [learnt]}, "more": {}} | MADE)
    assert headlines(tmp_path)["claim-xor"].word == "does not hold"


def test_pages_begin_with_the_headlines_and_link_to_the_claims(out):
    found = report(["claims"], PLAN, out)
    page = html(found)
    assert page.index("Does the paper hold?") < page.index("Claims that compare figures")
    for main in found.headlines:
        assert f'href="#{main.link}"' in page
        assert f'id="{main.link}"' in page
    assert "| One neuron without hidden layers learns XOR | holds | – |" in markdown(found)


def test_a_claim_is_judged_by_the_corrected_protocol_as_well(tmp_path):
    """Equality raises the areas of one-vs-set with one protocol and not with the other."""
    names = ["nsl_kdd_full", "claims"]
    claim = next(c for c in CLAIMS.claims if c.name == "one-vs-set by equality")
    for protocol in PLAN.protocols:
        plan = Plan((protocol,), quick=True)
        for cell in claim.cells(plan):
            area = 0.5 + 0.1 * (cell.method == "OVS-RBF-ES" and protocol == "corrected")
            keys = {v.measurement.key for c in claim.contrasts for v in c.values}
            metric = {"paper": "trapezoid", "corrected": "average precision"}[protocol]
            values = {
                key.format(metric=metric): [area if "dos" not in key else 0.9] for key in keys
            }
            write_result(cell, tmp_path, {"values": values, "more": {}} | MADE)
    found = report(names, PLAN, tmp_path, draw=False)
    word = {told.claim.name: told.verdict.word for told in found.claims}
    assert (word[claim.name], found.again[claim.name]) == ("differs", "agrees")
    assert "XOR" not in found.again, "theory has one protocol"
    assert claim.name not in report(["claims"], PLAN, tmp_path, draw=False).again
