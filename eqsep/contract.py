"""scikit-learn's contract for parameters, kept without importing it: that takes a second."""

import inspect
from typing import Any, Self


class Parametrised:
    """What `__init__` takes as parameters to get, set and clone, as of scikit-learn's estimators.

    Examples
    --------
    >>> from eqsep.kernels import RBF
    >>> RBF(gamma=2.0).get_params(), RBF().set_params(gamma=0.5)
    ({'gamma': 2.0}, RBF(gamma=0.5))
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002  nothing lies deeper
        """The parameters by their names."""
        return {
            name: getattr(self, name) for name in sorted(inspect.signature(type(self)).parameters)
        }

    def set_params(self, **params: Any) -> Self:
        """Set some of the parameters."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for {self!r}: expected one of {list(known)}."
                )
            setattr(self, name, value)
        return self
