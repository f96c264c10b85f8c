"""A detector as mlflow's pyfunc: the same answers, by mlflow's own ways."""

import sys
import warnings
from types import ModuleType

import numpy as np
import pytest

from eqsep import Detector
from eqsep.detector import Config
from eqsep.detector.model import Verdicts
from eqsep.errors import MissingExtraError
from eqsep.export.pyfunc import log_pyfunc, save_pyfunc

WHY_NOT = "mlflow is not installed: pip install mlflow-skinny"


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    speed, shape = rng.normal(size=400), rng.choice(["pump", "fan"], size=400)
    return [{"speed": s, "shape": k} for s, k in zip(speed.tolist(), shape.tolist(), strict=True)]


@pytest.fixture(scope="module")
def detector(rows):
    leaks = [{"speed": 9.0 + i / 50, "shape": "fan"} for i in range(40)]
    fitted = Detector(bandwidth=1.0, n_landmarks=60, random_state=0, config=Config.fast())
    return fitted.fit([*rows, *leaks], ["normal"] * len(rows) + ["leak"] * len(leaks))


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    for name in ("MLFLOW_DISABLE_TELEMETRY", "MLFLOW_ALLOW_FILE_STORE"):
        monkeypatch.setenv(name, "true")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mlflow's own
        mlflow = pytest.importorskip("mlflow", reason=WHY_NOT)
        monkeypatch.chdir(tmp_path)
        mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
        yield mlflow


def asked(rows):
    pandas = pytest.importorskip("pandas")
    fresh = [*rows[:20], {"speed": 9.3, "shape": "fan"}, {"speed": None, "shape": "other"}]
    return pandas.DataFrame(fresh, index=range(100, 122))


def assert_same(answer, detector, frame):
    assert tuple(answer.columns) == Verdicts._fields
    assert answer.index.equals(frame.index)
    for name, column in detector.model_.verdicts(frame).columns().items():
        assert answer[name].tolist() == column.tolist()
    assert answer["kind"].iloc[20] == "leak"


def test_a_saved_model_answers_as_the_detector_does(mlflow, detector, rows, tmp_path):
    save_pyfunc(detector, tmp_path / "saved")
    frame = asked(rows)
    assert_same(mlflow.pyfunc.load_model(str(tmp_path / "saved")).predict(frame), detector, frame)
    names = [path.name for path in (tmp_path / "saved").rglob("*") if path.is_file()]
    assert not [name for name in names if name.endswith((".pkl", ".pickle"))]
    assert "detector.eqsep" in names


def test_a_logged_model_answers_as_the_detector_does(mlflow, detector, rows):
    with mlflow.start_run():
        logged = log_pyfunc(detector, "pumps")
    frame = asked(rows)
    assert_same(mlflow.pyfunc.load_model(logged.model_uri).predict(frame), detector, frame)


@pytest.mark.parametrize("hand_on", [save_pyfunc, log_pyfunc])
def test_without_mlflow_it_says_what_to_install(monkeypatch, detector, hand_on, tmp_path):
    monkeypatch.setitem(sys.modules, "mlflow.pyfunc", None)
    with pytest.raises(MissingExtraError, match="pip install mlflow-skinny pandas"):
        hand_on(detector, str(tmp_path / "saved"))
    assert not (tmp_path / "saved").exists()


def test_an_unfitted_detector_is_refused(monkeypatch, tmp_path):
    for name in ("mlflow", "mlflow.pyfunc"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    with pytest.raises(ValueError, match="not fitted"):
        save_pyfunc(Detector(), tmp_path / "saved")
