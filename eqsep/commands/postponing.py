"""Modules that are imported when something of them is asked for, not when others name them.

scikit-learn imports SciPy's statistics and pandas whether they are needed or not: more than a
second, which a command that scores a row would wait for.
"""

import importlib
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _Postponed(ModuleType):
    """Stands for a module until something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__path__", "__version__"):
            raise AttributeError(name)  # what is asked of every module, in search of something
        return getattr(self._module(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module(), name, value)  # a module below it, which was imported since

    def _module(self) -> ModuleType:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return importlib.import_module(self.__name__)


def postpone(*names: str) -> None:
    """Let these modules be imported later, where they are installed and not there already.

    Examples
    --------
    >>> postpone("wave")
    >>> import wave
    >>> type(wave).__name__, wave.Error.__name__, type(sys.modules["wave"]).__name__
    ('_Postponed', 'Error', 'module')
    """
    for name in names:
        if name not in sys.modules and find_spec(name.split(".")[0]) is not None:
            sys.modules[name] = _Postponed(name)
