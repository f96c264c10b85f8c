"""Mixed tables (numbers, categories, dates, missing values) as matrices of floats."""

from eqsep.tables.encoder import ColumnMatchWarning, DroppedColumnWarning, TableEncoder

__all__ = ["ColumnMatchWarning", "DroppedColumnWarning", "TableEncoder"]
