"""`eqsep info`: what is in a model file, beyond what a fit says of it."""

from pathlib import Path

from rich.console import Console

from eqsep.commands.console import counted
from eqsep.commands.fitting import tell_fitted
from eqsep.commands.reading import load_detector
from eqsep.commands.wording import in_command
from eqsep.detector import Detector
from eqsep.detector.model import Model
from eqsep.detector.namer import rows_for
from eqsep.labels import NORMAL
from eqsep.persistence.container import origin

_SHOWN_ELSEWHERE = (
    *("normal", "false_alarm_rate", "confidence", "unseen_rate"),
    *("plan", "feature_map", "device", "config"),
)


def tell_info(console: Console, path: Path) -> None:
    """The summary of a model, the rows it has learnt, its settings, and where its file is from."""
    detector = load_detector(path)
    tell_fitted(console, detector, {}, path)
    made_by, version, digest = origin(path.read_bytes())
    model, caution = detector.model_, detector.caution_
    lines = {} if caution is None else {"caution": in_command(caution.warning())}
    lines |= {
        **_groups(model),
        "learnt": _rows(model),
        **_names(model),
        "landmarks": f"{len(model.plan.terms.landmarks):,}",
        "settings": _settings(detector),
        "written by": f"eqsep {made_by}, format {version}",
        "content": f"sha256 {digest}",
    }
    for name, text in lines.items():
        console.print(f"{name:11} {text}", markup=False, soft_wrap=True)


def _groups(model: Model) -> dict[str, str]:
    """Which columns say what rows belong together, and when they were taken."""
    grouping = model.plan.holdout.grouping
    if grouping is None:
        return {}
    words = zip(("groups", "times"), grouping.columns, strict=True)
    told = [
        f"{word} by column {name!r}" if name else f"{word} that are no column"
        for word, name in words
        if name is not None
    ]
    return {"held out by": f"{grouping.unit}; {' and '.join(told)}, not learnt"}


def _rows(model: Model) -> str:
    """How many rows of each kind the sums are over, by their weight, and how many are held out."""
    weights = model.n_learnt.tolist()
    kinds = zip((NORMAL, *model.kinds), weights, strict=True)
    told = ", ".join(f"{round(weight, 2):,.12g} {kind}" for kind, weight in kinds)
    held_out = model.evidence.held_out
    held = len(held_out.normal), len(held_out.anomalies)
    words = (f"{held[0]:,} {NORMAL}", f"{held[1]:,} anomalous")
    return f"{told}; held out {', '.join(w for w, n in zip(words, held, strict=True) if n) or 0}"


def _settings(detector: Detector) -> str:
    """The parameters of the fit that are not shown elsewhere, those that were set first."""
    config, params = detector.model_.config, detector.get_params(deep=False)
    given = {k: v for k, v in params.items() if k not in _SHOWN_ELSEWHERE}
    defaults = Detector().get_params(deep=False)
    order = sorted(given, key=lambda name: (given[name] == defaults[name], name))
    values = {k: getattr(config, k, None) if given[k] is None else given[k] for k in order}
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _names(model: Model) -> dict[str, str]:
    """How often a row of a seen kind may be called unseen, and the kinds too rare for that."""
    if not model.kinds:
        return {}
    if not model.namer.has_promise:
        return {"names": "without a promise: the model is of an older file. Fit again to have one"}
    rate, grouping = model.promise.unseen_rate, model.plan.holdout.grouping
    promise = f"{100 * rate:.4g}% of the rows of a seen kind may be called unseen"
    unit = "row" if grouping is None else grouping.unit
    rare = (
        f"kind {kind} has {counted(n, unit)}, {rows_for(rate):,} are needed for that"
        for kind, n in sorted(model.namer.short_kinds(rate).items())
    )
    return {"names": "; ".join([promise, *rare])}
