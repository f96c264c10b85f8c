"""Model files changed by accident and on purpose, from a seed: read, or refused in a sentence.

    python tools/fuzz_files.py                     5,000 files
    python tools/fuzz_files.py --files 200 --seed 7

Some are cut, replaced or removed while they are read, may not be read, are no files at all, or say
that they are of a terabyte. Anything but a model, a `ModelFileError` or, where a file cannot be
read, an `OSError` is printed with its seed, and ends the run with 1.
"""

import argparse
import os
import random
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from eqsep import Detector, EqualitySeparator, KernelEqualitySeparator, load_model
from eqsep.persistence import ModelFileError

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from forged_files import damaged_copy, forged_copy
from hostile_places import PLACES

ODD_PLACES = 0.1  # of all files, that are no sound ones where they are
BOMBS = 0.05


def sound_files(folder: Path) -> list[bytes]:
    """The files of small models of several classes."""
    rng = np.random.default_rng(0)
    X, y = np.vstack([rng.normal(size=(60, 3)), rng.normal(5, size=(20, 3))]), [0] * 60 + [1] * 20
    models = [
        Detector(bandwidth=1.0, n_landmarks=12, random_state=0),
        KernelEqualitySeparator(n_landmarks=8, random_state=0),
        EqualitySeparator(random_state=0),
    ]
    path, found = folder / "sound.eqsep", []
    for model in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y).save(path)
        found.append(path.read_bytes())
    return found


def fuzz(seeds: range, folder: Path) -> tuple[Counter[str], list[str]]:
    """How many files were read and refused, and what went wrong."""
    sound, path = sound_files(folder), folder / "changed.eqsep"
    ended: Counter[str] = Counter()
    wrong = []
    for seed in seeds:
        rng = random.Random(seed)
        change = rng.choice([damaged_copy, forged_copy, forged_copy])
        place = rng.choice(PLACES) if rng.random() < ODD_PLACES else None
        data = rng.choice(sound)
        path.write_bytes(data if place else change(data, rng.choice(sound), rng))
        if place is None and rng.random() < BOMBS:
            os.truncate(path, 2**40)  # which takes no room on the disk
        try:
            with place(path, np.random.default_rng(seed)) if place else nullcontext():
                load_model(path)
            ended["read"] += 1
        except ModelFileError:
            ended["refused"] += 1
        except OSError as fault:
            ended["refused" if place else "wrong"] += 1
            wrong += [] if place else [f"seed {seed}: {type(fault).__name__}: {fault}"]
        except Exception as fault:  # whatever it is: that is what is looked for
            ended["wrong"] += 1
            wrong.append(f"seed {seed}: {type(fault).__name__}: {fault}")
        if path.is_dir():
            path.rmdir()
        path.unlink(missing_ok=True)
    return ended, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0, help="of the first file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ended, wrong = fuzz(range(args.seed, args.seed + args.files), Path(folder))
    print(*wrong, sep="\n")
    print(f"{args.files:,} files: " + ", ".join(f"{n:,} {how}" for how, n in sorted(ended.items())))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
