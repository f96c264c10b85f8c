"""`eqsep info`: what is in a model file, beyond what a fit says of it."""

from pathlib import Path

from rich.console import Console

from eqsep.commands.console import counted
from eqsep.commands.fitting import tell_fitted
from eqsep.commands.reading import load_detector
from eqsep.commands.wording import in_command
from eqsep.detector import Detector
from eqsep.detector.naming import has_promise, short_kinds
from eqsep.detector.sets import rows_for
from eqsep.labels import NORMAL
from eqsep.persistence.container import origin

_TOLD = (
    *("normal", "false_alarm_rate", "confidence", "unseen_rate", "feature_map", "device", "width"),
)


def tell_info(console: Console, path: Path) -> None:
    """The summary of a model, the rows it has learnt, its settings, and where its file is from."""
    detector = load_detector(path)
    tell_fitted(console, detector, {}, path)
    made_by, version, digest = origin(path.read_bytes())
    caution = detector.caution_
    lines = {} if caution is None else {"caution": in_command(caution.warning())}
    lines |= {
        **_groups(detector),
        "learnt": _rows(detector),
        **_names(detector),
        "landmarks": f"{len(detector.feature_map_.landmarks):,}",
        "settings": _settings(detector),
        "written by": f"eqsep {made_by}, format {version}",
        "content": f"sha256 {digest}",
    }
    for name, text in lines.items():
        console.print(f"{name:11} {text}", markup=False, soft_wrap=True)


def _groups(detector: Detector) -> dict[str, str]:
    """Which columns say what rows belong together, and when they were taken."""
    grouping = detector.feature_map_.grouping
    if grouping is None:
        return {}
    words = zip(("groups", "times"), grouping.columns, strict=True)
    told = [
        f"{word} by column {name!r}" if name else f"{word} that are no column"
        for word, name in words
        if name is not None
    ]
    return {"held out by": f"{grouping.unit}; {' and '.join(told)}, not learnt"}


def _rows(detector: Detector) -> str:
    """How many rows of each kind the sums are over, by their weight, and how many are held out."""
    weights = detector.statistics_.weight.tolist()
    kinds = zip((NORMAL, *detector.kinds_), weights, strict=True)
    told = ", ".join(f"{round(weight, 2):,.12g} {kind}" for kind, weight in kinds)
    held = len(detector.calibration_.rows), len(detector.calibration_.anomaly_rows)
    words = (f"{held[0]:,} {NORMAL}", f"{held[1]:,} anomalous")
    return f"{told}; held out {', '.join(w for w, n in zip(words, held, strict=True) if n) or 0}"


def _settings(detector: Detector) -> str:
    """The parameters that are not told elsewhere, those that were set by hand first."""
    defaults = Detector().get_params(deep=False)
    given = {k: v for k, v in detector.get_params(deep=False).items() if k not in _TOLD}
    order = sorted(given, key=lambda name: (given[name] == defaults[name], name))
    return ", ".join(f"{name}={given[name]!r}" for name in order)


def _names(detector: Detector) -> dict[str, str]:
    """How often a row of a seen kind may be called unseen, and the kinds too rare for that."""
    if not detector.kinds_:
        return {}
    if not has_promise(detector):
        return {"names": "without a promise: the model is of an older file. Fit anew to have one"}
    rate, short = detector.unseen_rate, short_kinds(detector)
    told = f"{100 * rate:.4g}% of the rows of a seen kind may be called unseen"
    unit = "row" if detector.feature_map_.grouping is None else detector.feature_map_.grouping.unit
    rare = (
        f"kind {kind} has {counted(n, unit)}, {rows_for(rate):,} are needed for that"
        for kind, n in sorted(short.items())
    )
    return {"names": "; ".join([told, *rare])}
