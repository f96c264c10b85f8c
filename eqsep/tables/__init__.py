"""Mixed tables (numbers, categories, dates, missing values) as matrices of floats."""

from eqsep.tables.encoder import TableEncoder

__all__ = ["TableEncoder"]
