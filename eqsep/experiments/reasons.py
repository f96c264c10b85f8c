"""Why some figures do not hold, or cannot: what experiments have shown."""

from eqsep.experiments.table import Entry
from eqsep.experiments.verdict import Verdict

_CONSTANT = (
    "a constant score gets this, (1 + share of attacks) / 2 by trapezoid: no detector is measured"
)
_OTHER_DATA = "other embeddings and another division: the published ones are not public"
_CONSTANT_ROWS = {
    "nsl_kdd": ("OVS",),
    "nsl_kdd_full": ("OVS-RBF", "OVS-Lin", "OVS-Lin-ES (ours)"),
}
# By table and row, of figures that are off: what the difference comes from.
_FOUND: dict[tuple[str, str], str] = {
    ("toy_shallow", "OCSVM"): (
        "it depends on the draw of the 100 rows: over 20 draws it is 0.795±0.047"
    ),
}


def reason_of(entry: Entry, told: Verdict) -> tuple[str, str]:
    """The word and the reason of a verdict, with what is known beyond the difference."""
    if entry.row in _CONSTANT_ROWS.get(entry.table, ()):
        return "constant", _CONSTANT
    if entry.table.startswith("mvtec"):
        return "other data", _OTHER_DATA
    found = _FOUND.get((entry.table, entry.row))
    if told.word == "holds" or found is None:
        return told.word, told.reason
    return told.word, f"{told.reason}: {found}"
