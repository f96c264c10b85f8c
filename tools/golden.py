"""Write golden model files of the present format: `python tools/golden.py`.

They go to `tests/golden/FORMAT/`, with what each model answers in `answers.json`. Run it when the
format changes, until a version with that format is released; from then on, never change the folder:
`tests/test_golden.py` checks that all later versions load these files and give the same answers.
"""

import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import saved_detectors
import saved_separators
from golden_files import FOLDER, answers, learn_on, surroundings, written, written_rows

import eqsep
from eqsep.activations import Ridge
from eqsep.checks import DriftWarning, Finding
from eqsep.losses import SquaredLoss
from eqsep.persistence.container import VERSION

N_ROWS = 40  # that each model is asked about
FINDING = Finding(DriftWarning, "Rows change.", "Fit again.", {"column": "took", "rows": 3})
LABELS = {
    "mixed": saved_detectors.FRESH.kind[:N_ROWS],
    "doubting": np.where(saved_detectors.NEW_IS_ANOMALY, "pump", "normal")[:N_ROWS],
}
# Together, and with the detectors, these hold every class that a model file may hold.
SEPARATORS = (
    *("linear, pieces", "closed", "closed, kernel", "bump, polynomial", "twin"),
    *("negative sampling", "network", "network, closed", "network, rbf"),
    *("network, halfspace", "network, formula", "deep SAD, linear code"),
)
RIDGE = eqsep.EqualitySeparator(head=Ridge(), loss=SquaredLoss(), random_state=0)


def models():
    """Each model by name, the rows to ask it about, and whether it can learn on from labels."""
    for name in ("mixed", "doubting", "windows", "strange"):
        detector, rows = saved_detectors.fitted(name)
        if name == "strange":
            detector.with_model(replace(detector.model_, caution=FINDING))
        yield f"detector, {name}", detector, rows[:N_ROWS], LABELS.get(name)
    rows = saved_separators.ROWS[:N_ROWS]
    for name in SEPARATORS:
        model = saved_separators.fitted(saved_separators.ESTIMATORS[name])
        labels = saved_separators.SPLIT.y_test[:N_ROWS] if name.startswith("closed") else None
        yield name, model, rows, labels
    yield "linear, ridge", saved_separators.fitted(RIDGE), rows, None


def entry(model, rows, labels):
    """What `answers.json` says of a model."""
    said = {"answers": {k: written(v) for k, v in answers(model, rows).items()}}
    if labels is None:
        return said
    learnt = answers(learn_on(model, rows, labels), rows)
    return said | {
        "labels": written(labels),
        "learnt_on": {k: written(v) for k, v in learnt.items()},
    }


def main() -> None:
    """Write the folder of the present format."""
    folder = FOLDER / str(VERSION)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    entries, tables = {}, []
    for name, model, rows, labels in models():
        file = re.sub(r"\W+", "-", name) + ".eqsep"
        model.save(folder / file)
        asked = written_rows(rows)
        if asked not in tables:
            tables.append(asked)
        entries[name] = {"file": file, "rows": tables.index(asked)} | entry(model, rows, labels)
    document = {"made_with": surroundings(), "rows": tables, "models": entries}
    text = json.dumps(document, ensure_ascii=False)
    (folder / "answers.json").write_text(text + "\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{len(entries)} model files and their answers in {folder}: {size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
