"""Why a figure differs: what an experiment has shown, or a guess that is called one.

What was tried and does not give the published figure explains nothing: that is open.
"""

from collections.abc import Mapping

from paper.cells import Result
from paper.measures import key
from paper.methods import CROSS_VALIDATED
from paper.plan import Entry
from paper.published import Ours
from paper.tables import gaussians, hyperplane
from paper.verdicts import MARGIN, Terms, judge

# Published rows that are those of a constant score in every column.
CONSTANT_ROWS = {
    "nsl_kdd": ("OVS",),
    "nsl_kdd_full": ("OVS-RBF", "OVS-Lin", "OVS-Lin-ES (ours)"),
    "nsl_kdd_training": ("OVS-RBF", "OVS-Lin", "OVS-Lin-ES (ours)"),
    "mvtec_objects": ("RS (SAD)",),
}
_MACHINES = ("SVM", "SVM-RBF", "SVM-Lin", "OVS-ES (ours)", "OVS-RBF-ES (ours)")
_SAME_ROWS = ("DoS", "Probe", "Overall")  # tested on the same rows by both protocols
_FEW = 0.1  # of the rows may have the highest score in common
# Rows of NSL-KDD.
_KNOWN = {
    "ES-NS (ours)": "guess: the rows held out to stop on (python -m paper.settings 'ES-NS (ours)')",
    **{
        row: f"open; tried: cross-validation takes C = {CROSS_VALIDATED[kernel]:g}, which of those "
        f"tried is the nearest to the row, too (python -m paper.settings {name} --rows 0)"
        for row, name, kernel in (
            ("SVM", "SVM-RBF", "rbf"),
            ("SVM-RBF", "SVM-RBF", "rbf"),
            ("SVM-Lin", "SVM-Lin", "linear"),
        )
    },
    **dict.fromkeys(
        ("OCSVM", "OCSVM-A"),
        "open; tried: no nu gives the row, and the share of attacks on all rows is within 0.005 of "
        "it (python -m paper.settings OCSVM-A --rows 0)",
    ),
    "OCSVM-N": "open; tried: no nu gives the row, on 20,000 rows or on all "
    "(python -m paper.settings OCSVM-N --rows 0)",
    "Random": "guess: 0.43445, rounded twice",
}


def is_constant(entry: Entry) -> bool:
    """Whether the published figure is that of a constant score; MVTec has methods in columns."""
    return bool({entry.row, entry.column} & set(CONSTANT_ROWS.get(entry.table, ())))


def reason_for(entry: Entry, results: Mapping[str, Result | None], terms: Terms) -> str:
    """In words; nothing where nothing is known, which `compare` calls open.

    The results are the cell's by protocol, and under "machine" that of the SVM beside it.
    """
    result = results["paper"]
    if result is None or "values" not in result:
        return ""
    if is_constant(entry):
        return _constant(result)
    return (
        _without_misspelt(entry, results, terms)
        or _as_its_machine(entry, results)
        or _several_starts(entry, results, terms)
        or _failed_starts(entry, result)
        or _tied_starts(entry, result, terms)
        or _silent(result)
        or (_KNOWN.get(entry.row, "") if entry.table.startswith("nsl_kdd") else "")
    )


def _constant(result: Result) -> str:
    """In words, that the published figure measures no detector."""
    told = "the published figure is that of a constant score, (1 + prevalence) / 2"
    distinct = result["more"].get("distinct scores")
    if not distinct:
        return told
    train = Ours.of(result["values"][key("paper", "train")])
    return (
        f"{told}; ours is the machine's, whose {distinct[0]:,} distinct scores get {train} on the "
        f"training rows, where the paper's get 0.703 = (1 + 0.4055) / 2"
    )


def _without_misspelt(entry: Entry, results: Mapping[str, Result | None], terms: Terms) -> str:
    """Whether an SVM that is not trained on misspelt attacks has the published area."""
    values = (results.get("corrected") or {}).get("values", {}).get(entry.key("paper"))
    is_machine = entry.table.startswith("nsl_kdd") and entry.row in _MACHINES
    if not is_machine or entry.column not in _SAME_ROWS or not values:
        return ""
    ours = Ours.of(values)
    if judge(entry.published, ours, terms).word != "agrees":
        return ""
    return (
        f"experiment: it is {ours}, which agrees, if the nine rows of misspelt attacks are not "
        "trained on (python -m paper nsl_kdd_full --protocol corrected)"
    )


def _as_its_machine(entry: Entry, results: Mapping[str, Result | None]) -> str:
    """The area of the SVM on which one-vs-set stands, and whether it is raised."""
    own, machine = results["paper"], results.get("machine")
    if not own or not machine or "values" not in machine:
        return ""
    at = entry.key("paper")
    own_area, area = (Ours.of(result["values"][at]).mean for result in (own, machine))
    told = f"open; tried: our SVM alone has {area:.3f} here"
    if own_area >= area + 0.0005:
        return told
    return f"{told}, no less: with the paper's protocol OVS-ES does not raise the area"


def _several_starts(entry: Entry, results: Mapping[str, Result | None], terms: Terms) -> str:
    """What the same area of the same rows is from several starts: the corrected search."""
    corrected = results.get("corrected")
    if entry.study != gaussians.STUDY.name or not corrected or "values" not in corrected:
        return ""
    if entry.measurement.method == "SVM":
        return ""
    ours = Ours.of(corrected["values"][entry.key("paper")])
    word = judge(entry.published, ours, terms).word
    if word == "agrees":
        return f"experiment: from several starts it is {ours}, which agrees"
    if word == "cannot tell":
        return f"open; tried: from several starts it is {ours}, which cannot be judged"
    return f"open; tried: several starts do not account for it, {ours}, {word}"


def _failed_starts(entry: Entry, result: Result) -> str:
    """How many single starts of a linear problem end far below the published mean, if ours does."""
    if entry.study != hyperplane.STUDY.name or entry.published.mean is None:
        return ""
    values = result["values"][entry.key("paper")]
    if Ours.of(values).mean >= entry.published.mean:
        return ""
    good = [v for v in values if v >= entry.published.mean - MARGIN]
    if not good or len(good) == len(values):
        return ""
    return (
        f"guess: starts that fail; {len(values) - len(good)} of {len(values)} are more than "
        f"{MARGIN:g} below the published mean, the others give {Ours.of(good)}"
    )


def _tied_starts(entry: Entry, result: Result, terms: Terms) -> str:
    """How many starts give their highest score to many rows."""
    shares = result["more"].get("tied at the top", [])
    values = result["values"].get(entry.key("paper"), [])
    untied = [v for v, share in zip(values, shares, strict=False) if share <= _FEW]
    if not untied or len(untied) == len(values):
        return ""
    others = Ours.of(untied)
    told = f"the other gives {others}"  # one start says nothing of its own spread
    if others.n > 1:
        word = judge(entry.published, others, Terms(terms.runs, terms.rounding)).word
        told = f"the others give {others} ({word})"
    return (
        f"guess: ties; {len(values) - len(untied)} of {len(values)} starts give their highest "
        f"score to up to {max(shares):.0%} of the rows, which the trapezoid flatters, and {told}"
    )


def _silent(result: Result) -> str:
    """How many rows a network cannot tell apart, where they are the most."""
    silent = result["more"].get("silent", 0.0)
    if silent <= 0.5:
        return ""
    return (
        f"guess: {silent:.0%} of the test rows leave the first layer of RBFs silent, so little or "
        "nothing tells them apart"
    )
