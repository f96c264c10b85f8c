"""The formats of tables in files, by the end of a file's name."""

from pathlib import PurePath

FORMATS = {
    "csv": "csv",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "parquet": "parquet",
    "pq": "parquet",
    "arrow": "arrow",
    "feather": "arrow",
    "ipc": "arrow",
}
READ_AS_TEXT = dict.fromkeys(("tsv", "txt", "data"), "csv")  # read alone


def ending_of(path: str | PurePath) -> str:
    """The end of a file's name in small letters, without .gz; "" where there is none.

    Examples
    --------
    >>> ending_of("scores.CSV.gz"), ending_of("-")
    ('csv', '')
    """
    return PurePath(PurePath(path).name.removesuffix(".gz")).suffix[1:].lower()
