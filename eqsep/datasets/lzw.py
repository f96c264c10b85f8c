"""Files of the old Unix program `compress` (.Z), which the standard library cannot read."""

from eqsep.errors import UserError

_MAGIC, _CLEAR = b"\x1f\x9d", 256


def decompress(data: bytes) -> bytes:
    """The content of a .Z file.

    Codes have 9 bits at first, and at most 16. They come in groups of eight, and where their width
    changes or the dictionary is cleared, the rest of the group is padding.

    Examples
    --------
    >>> decompress(bytes.fromhex("1f9d9061c40404"))
    b'abab'
    """
    if data[:2] != _MAGIC or len(data) < 3 or not 10 <= data[2] & 31 <= 16:
        raise UserError(f"Expected a .Z file, which starts with {_MAGIC!r}, got {data[:3]!r}.")
    max_width, clears = data[2] & 31, bool(data[2] & 128)
    known = [bytes([i]) for i in range(256)] + [b""] * clears
    width, start, at, last, out = 9, 24, 24, b"", []
    while at + width <= 8 * len(data):
        code = int.from_bytes(data[at // 8 : at // 8 + 4], "little") >> at % 8 & (1 << width) - 1
        at += width
        if clears and code == _CLEAR:
            del known[_CLEAR + 1 :]
            start = at = _group_end(at, start, width)
            width, last = 9, b""
            continue
        if code > len(known) or (code == len(known) and not last):
            raise UserError(
                f"The .Z file is damaged: code {code} came when only {len(known)} were known. "
                "Fetch it again."
            )
        word = known[code] if code < len(known) else last + last[:1]
        if last and len(known) < 1 << max_width:
            known.append(last + word[:1])
        out.append(word)
        last = word
        if len(known) == 1 << width and width < max_width:
            start = at = _group_end(at, start, width)
            width += 1
    return b"".join(out)


def _group_end(at: int, start: int, width: int) -> int:
    """The first bit after the group of eight codes that ends at or after bit `at`."""
    group = 8 * width
    return start + -(-(at - start) // group) * group
