"""Results as text in columns."""

from collections.abc import Sequence


def aligned(cells: Sequence[tuple[str, ...]]) -> str:
    """Rows of text in columns, the first one flush left and the others flush right.

    Examples
    --------
    >>> print(aligned([("kind", "area"), ("scan", "1.0")]))
    kind area
    scan  1.0
    """
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        " ".join(
            [row[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        )
        for row in cells
    )
