"""The tool that gives random verdicts and does the log again."""

import runpy
import warnings
from pathlib import Path

from eqsep.errors import EqsepWarning

TOOL = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "replay_verdicts.py"))


def test_a_replay_of_random_verdicts_holds_the_same_bits(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EqsepWarning)
        done, replay = TOOL["run"](60, 1, f"sqlite:///{tmp_path / 'eqsep.db'}")
    assert sum(done.values()) == 60
    assert done["undo"] > 10
    assert replay.versions > 30
    assert replay.same_bits
