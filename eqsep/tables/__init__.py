"""Mixed tables (numbers, categories, dates, missing values) as matrices of floats.

| module | what it knows |
|---|---|
| `reading` | any frame, array or list as named columns, with the group, time and weight of rows |
| `encodings` | learnt columns as a matrix, and back to words and units |
| `tensors` | the same on a device |
| `encoder` | all columns of a table: matched, encoded, decoded, kept |
| `transformer` | the same as an estimator of scikit-learn |
| `batches` | rows that come in pieces, and samples of them |
"""

from typing import TYPE_CHECKING, Any

from eqsep.tables.encoder import ColumnMatchWarning, DroppedColumnWarning

if TYPE_CHECKING:
    from eqsep.tables.transformer import TableEncoder

__all__ = ["ColumnMatchWarning", "DroppedColumnWarning", "TableEncoder"]


def __getattr__(name: str) -> Any:
    """The transformer when it is first asked for: scikit-learn takes long to import."""
    if name != "TableEncoder":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from eqsep.tables.transformer import TableEncoder

    return TableEncoder
