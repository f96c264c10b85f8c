"""`eqsep info`: rows, settings, version, and a hash of what a model holds."""

import re

import numpy as np
import pytest
from invoking import CliRunner

from eqsep import Detector, __version__
from eqsep.cli import app

SMALL = {"n_landmarks": 60, "bandwidth": 1.0, "false_alarm_rate": 0.05, "random_state": 3}


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(600, 2))


def told(detector, path):
    detector.save(path)
    result = CliRunner().invoke(app, ["info", str(path)], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return {line[:11].strip(): line[12:] for line in result.stdout.splitlines()}


def test_rows_settings_and_version_are_told(rows, tmp_path):
    detector = Detector(**SMALL).fit(rows, np.repeat(["normal", "leak"], [560, 40]))
    lines = told(detector, tmp_path / "m.eqsep")
    held = len(detector.calibration_.scores)
    assert lines["learnt"] == f"{560 - held} normal, 40 leak; held out {held} normal"
    assert lines["landmarks"] == str(len(detector.plan_.kernel.landmarks))
    assert lines["settings"].startswith("bandwidth=1.0, n_landmarks=60, random_state=3, alpha=0.1")
    assert lines["written by"].startswith(f"eqsep {__version__}, format ")


def test_the_hash_is_that_of_the_model_and_not_of_who_wrote_it(rows, tmp_path, monkeypatch):
    detector = Detector(**SMALL).fit(rows[:500])
    once = told(detector, tmp_path / "m.eqsep")
    monkeypatch.setattr("eqsep.persistence.files.__version__", "9.9")
    again = told(detector, tmp_path / "n.eqsep")
    assert again["written by"].startswith("eqsep 9.9,")
    assert once["content"] == again["content"]
    assert re.fullmatch("sha256 [0-9a-f]{64}", once["content"])
    assert (
        told(detector.partial_fit(rows[500:]), tmp_path / "m.eqsep")["content"] != once["content"]
    )


@pytest.mark.filterwarnings("ignore::eqsep.detector.audit.NewKindWarning")  # they are alike
def test_the_hash_is_of_what_a_model_knows(rows, tmp_path):
    kind = np.repeat(["normal", "leak"], [560, 40])
    detector = Detector(**SMALL).fit(rows[:580] + 6 * (kind[:580, None] == "leak"), kind[:580])
    before = told(detector, tmp_path / "m.eqsep")["content"]
    more, new = rows[580:] + 0.1, np.repeat(["normal", "leaking badly"], 10)
    more[10:] += 6
    after = told(detector.partial_fit(more, new), tmp_path / "m.eqsep")["content"]
    other = np.repeat(["normal", "leak"], 10)
    renamed = told(detector.forget(more, new).partial_fit(more, other), tmp_path / "m.eqsep")
    assert len({before, after, renamed["content"]}) == 3
    detector.forget(more, other)
    assert told(detector, tmp_path / "m.eqsep")["content"] == before
    for part in (slice(10, None), slice(10)):  # in two parts, and in another order
        detector.partial_fit(more[part], new[part])
    assert told(detector, tmp_path / "m.eqsep")["content"] == after
