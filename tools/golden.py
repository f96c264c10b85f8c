"""Write golden model files of the present version: `python tools/golden.py`.

They go to `tests/golden/VERSION/`, one for each make of model, with `answers.json` beside them.
Run it once, when a version is about to be released, and never change what it wrote:
`tests/test_golden.py` then sees to it that all later versions load these files and give the same
answers.
"""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import saved_detectors
import saved_separators
from golden_files import (
    FOLDER,
    answers,
    learn_on,
    surroundings,
    written,
    written_rows,
)

import eqsep
from eqsep.persistence.container import VERSION

LABELS = {
    "mixed": saved_detectors.FRESH.kind,
    "0/1": saved_detectors.NEW_IS_ANOMALY.astype(int),
    "truths": saved_detectors.NEW_IS_ANOMALY,
    "names": np.where(saved_detectors.NEW_IS_ANOMALY, "leak", "works"),
    "given plan": np.where(saved_detectors.NEW_IS_ANOMALY, "pump", "normal"),
    "learnt on": np.where(saved_detectors.NEW_IS_ANOMALY, "pump", "normal"),
}


def models():
    """Each model by name, the rows to ask it about, and labels if it can learn on from them."""
    for name in saved_detectors.DETECTORS:
        yield f"detector, {name}", *saved_detectors.fitted(name), LABELS.get(name)
    X, y = saved_separators.SPLIT.X_train, saved_separators.SPLIT.y_train
    named = pd.DataFrame(X, columns=["volts", "température"])
    kinds = np.where(y == 1, "leak", "works")
    linear = eqsep.EqualitySeparator(random_state=0, normal="works").fit(named, kinds)
    yield "linear, names", linear, named[:20], None
    sampled = eqsep.NegativeSampling(eqsep.Detector(**saved_detectors.FEW), random_state=0)
    yield "negative sampling, detector", sampled.fit(X[y == 0]), saved_separators.ROWS, None
    for name, estimator in {**saved_separators.ESTIMATORS, **saved_separators.KERNELS}.items():
        model = saved_separators.fitted(estimator)
        learns = name.startswith("closed")
        yield name, model, saved_separators.ROWS, saved_separators.SPLIT.y_test if learns else None


def entry(model, rows, labels):
    """What `answers.json` says of a model."""
    said = {"answers": {k: written(v) for k, v in answers(model, rows).items()}}
    in_groups = isinstance(model, eqsep.Detector) and model.plan_.holdout.grouping is not None
    if in_groups or (labels is None and not isinstance(model, eqsep.Detector)):
        return said
    learnt = answers(learn_on(model, rows, labels), rows)
    return said | {
        "labels": None if labels is None else written(labels),
        "learnt_on": {k: written(v) for k, v in learnt.items()},
    }


def main() -> None:
    """Write the folder of the present version."""
    folder = FOLDER / eqsep.__version__
    folder.mkdir(parents=True)
    entries, tables = {}, []
    for name, model, rows, labels in models():
        file = re.sub(r"\W+", "-", name) + ".eqsep"
        model.save(folder / file)
        asked = written_rows(rows)
        if asked not in tables:
            tables.append(asked)
        entries[name] = {"file": file, "rows": tables.index(asked)} | entry(model, rows, labels)
    document = {
        "eqsep": eqsep.__version__,
        "format": VERSION,
        "made_with": surroundings(),
        "rows": tables,
        "models": entries,
    }
    text = json.dumps(document, ensure_ascii=False, indent=1)
    (folder / "answers.json").write_text(text + "\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{len(entries)} model files and their answers in {folder}: {size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
