"""A detector as mlflow's `pyfunc`: scored by whatever speaks mlflow, and nothing pickled."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from eqsep import __version__
from eqsep.detector import Detector
from eqsep.errors import MissingExtraError

_ANSWERING = """import mlflow
from eqsep import load_model
from eqsep.export.pyfunc import answering

mlflow.models.set_model(answering(load_model))
"""


def save_pyfunc(detector: Detector, path: str | os.PathLike[str], **options: Any) -> None:
    """Save a fitted detector as an mlflow model in a new folder; needs mlflow-skinny or mlflow.

    `mlflow.pyfunc.load_model(path).predict(frame)` returns a frame with the columns score,
    p_value, alarm and kind, and so does `mlflow models serve -m path`, with the eqsep that is
    installed there. The `options` are those of `mlflow.pyfunc.save_model`.
    """
    pyfunc = _pyfunc()
    with _written(detector) as files:
        pyfunc.save_model(os.fspath(path), **files | options)


def log_pyfunc(detector: Detector, name: str, **options: Any) -> Any:
    """Log a fitted detector as a model of the current mlflow run, and return mlflow's record of it.

    The `options` are those of `mlflow.pyfunc.log_model`: registered_model_name, signature.
    """
    pyfunc = _pyfunc()
    with _written(detector) as files:
        return pyfunc.log_model(name=name, **files | options)


def answering(load: Callable[[str], Detector]) -> Any:
    """The mlflow model that loads a detector and answers with its verdicts."""
    pyfunc: Any = _pyfunc()
    pd: Any = import_module("pandas")

    class Answering(pyfunc.PythonModel):
        """Scores the rows of a frame."""

        def load_context(self, context: Any) -> None:
            self.detector = load(context.artifacts["detector"])

        def predict(
            self,
            context: Any,  # noqa: ARG002
            model_input: pd.DataFrame,  # mlflow reads this
            params: Any = None,  # noqa: ARG002
        ) -> Any:
            verdicts = self.detector.model_.verdicts(model_input)
            return pd.DataFrame(verdicts.columns(), index=model_input.index)

    return Answering()


@contextmanager
def _written(detector: Detector) -> Iterator[dict[str, Any]]:
    """The files of a model in a folder of their own, as mlflow takes them."""
    check_is_fitted(detector)
    with tempfile.TemporaryDirectory() as folder:
        file, code = Path(folder) / "detector.eqsep", Path(folder) / "answering.py"
        detector.save(file)
        code.write_text(_ANSWERING)
        needs = [f"eqsep=={__version__}"]
        artifacts = {"detector": str(file)}
        yield {"python_model": str(code), "artifacts": artifacts, "pip_requirements": needs}


def _pyfunc() -> Any:
    try:
        import_module("pandas")
        return import_module("mlflow.pyfunc")
    except ImportError as error:
        install = "pip install mlflow-skinny pandas"
        raise MissingExtraError(f"A pyfunc needs mlflow and pandas: {install}.") from error
