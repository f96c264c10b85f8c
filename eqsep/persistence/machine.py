"""scikit-learn's support vector machine, by its support vectors and coefficients."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.svm import SVC

from eqsep.persistence.container import ModelFileError, damaged
from eqsep.persistence.expected import CLASSES, NUMBER, Expected, Sizes, array, either, word
from eqsep.persistence.known import Known, check, check_names, learnt

_KERNELS = ("linear", "rbf", "poly", "sigmoid")
_DEGREE = Expected(
    "a whole number from 0 to 1000",
    lambda value, sizes: type(value) is int and 0 <= value <= 1000,  # noqa: ARG005
)
_PARAMETERS = {
    "kernel": word(*_KERNELS),
    "degree": _DEGREE,
    "coef0": NUMBER,
    "gamma": either(word("scale", "auto"), NUMBER),
    "decision_function_shape": word("ovr", "ovo"),
    "break_ties": word(False, True),
    "cache_size": NUMBER,
}
_LEARNT = {
    "support_vectors_": array("n", "d"),
    "support_": array("n", kinds="i"),
    "n_support_": array(2, kinds="i"),
    "dual_coef_": array(1, "n"),
    "intercept_": array(1),
    "classes_": CLASSES,
    "gamma_": NUMBER,
}


@dataclass(frozen=True)
class Machine(Known):
    """A machine of two classes, fitted to dense rows, without probabilities.

    A new machine is fitted to two rows, which prepares all that the installed scikit-learn keeps
    in one; then it is given what the saved one had learnt.
    """

    def parts(self, value: Any) -> dict[str, Any]:
        params = value.get_params(deep=False)
        if params.pop("probability", False) is True:
            raise ModelFileError("SVC cannot be saved with probability=True.")
        if not hasattr(value, "support_vectors_"):
            return params
        if isinstance(value.support_vectors_, np.ndarray) and len(value.classes_) == 2:
            state = {k: getattr(value, k) for k in _LEARNT if k != "gamma_"}
            return params | state | {"gamma_": float(value._gamma)}
        raise ModelFileError("SVC can be saved with two classes and dense rows only.")

    def built(self, parts: dict[str, Any], name: str) -> Any:
        state = learnt(parts)
        params = {part: parts[part] for part in parts if part not in state}
        known = SVC().get_params(deep=False)
        known.pop("probability", None)
        check_names(params, name, required=_PARAMETERS, optional=known)
        if not state:
            return SVC(**params)
        check(params, _PARAMETERS, name, sizes={})
        check_names(state, name, required=_LEARNT)
        sizes: Sizes = {}
        check(state, _LEARNT, name, sizes=sizes)
        counts = state["n_support_"].tolist()
        if min(counts) < 0 or sum(counts) != sizes["n"] or not math.isfinite(state["gamma_"]):
            damaged("the support vectors of a machine are not as many as it says")
        rows = np.repeat([[0.0], [1.0]], sizes["d"], axis=1)
        return _given(SVC().fit(rows, [0, 1]).set_params(**params), state)


def _given(svm: Any, state: dict[str, Any]) -> Any:
    """The machine with what was learnt, in the types and signs that its own code relies on."""
    dual_coef, intercept = (
        np.ascontiguousarray(state[k], dtype=np.float64) for k in ("dual_coef_", "intercept_")
    )
    given = {
        "support_vectors_": np.ascontiguousarray(state["support_vectors_"], dtype=np.float64),
        "support_": np.ascontiguousarray(state["support_"], dtype=np.int32),
        "_n_support": np.ascontiguousarray(state["n_support_"], dtype=np.int32),
        "dual_coef_": dual_coef,
        "intercept_": intercept,
        "_dual_coef_": -dual_coef,
        "_intercept_": -intercept,
        "_gamma": float(state["gamma_"]),
        "classes_": state["classes_"],
    }
    if not set(given) <= set(vars(svm)):
        raise ModelFileError(
            "A support vector machine cannot be built again with the scikit-learn installed."
        )
    vars(svm).update(given)
    return svm
