"""Mixed tables (numbers, categories, dates, missing values) as matrices of floats."""

from typing import TYPE_CHECKING, Any

from eqsep.tables.encoder import ColumnMatchWarning, DroppedColumnWarning

if TYPE_CHECKING:
    from eqsep.tables.transformer import TableEncoder

__all__ = ["ColumnMatchWarning", "DroppedColumnWarning", "TableEncoder"]


def __getattr__(name: str) -> Any:
    """Import the transformer on first use: scikit-learn takes long."""
    if name != "TableEncoder":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from eqsep.tables.transformer import TableEncoder

    return TableEncoder
