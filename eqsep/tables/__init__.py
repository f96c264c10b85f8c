"""Mixed tables (numbers, categories, dates, missing values) as matrices of floats."""

from typing import TYPE_CHECKING, Any

from eqsep.tables.fitted import ColumnMatchWarning

if TYPE_CHECKING:
    from eqsep.tables.encoder import DroppedColumnWarning, TableEncoder

__all__ = ["ColumnMatchWarning", "DroppedColumnWarning", "TableEncoder"]


def __getattr__(name: str) -> Any:
    """What learns, when it is first asked for: scikit-learn takes long to import."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from eqsep.tables import encoder

    return getattr(encoder, name)
