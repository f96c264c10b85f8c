"""Keys of rows, the same for equal ones: two numbers of 64 bits, and a table of such keys."""

from typing import Any

import numpy as np

from eqsep.engine.loops import compiled, shared

_30 = np.uint64(30)


def mixed_texts(ends: np.ndarray, data: np.ndarray, factors: np.ndarray, out: np.ndarray) -> None:
    """Mix a text of each row, bytes from end to end, into its keys `out`, (n, 2)."""
    data = data.view()
    data.setflags(write=False)  # as that of Arrow is: a loop is compiled for arrays of one type
    words = data[: len(data) // 8 * 8].view(np.uint64)
    _mix_texts(ends.astype(np.int64), data, words, factors, out)


def mixed_numbers(x: np.ndarray, factors: np.ndarray, out: np.ndarray) -> None:
    """Mix a number of each row, of eight bytes, into its keys, as `mixed_texts` does."""
    _mix_words(np.ascontiguousarray(x).view(np.uint64), factors, out)


class KeyTable:
    """The places of keys in a list that grows up to `most` of them."""

    def __init__(self, *, most: int) -> None:
        slots = 2 ** (2 * most - 1).bit_length()  # at most half of them are taken
        self._keys = np.zeros((slots, 2), dtype=np.uint64)
        self._places = np.zeros(slots, dtype=np.int32)  # one more than the place; 0 where none is
        self._counts = np.array([0, most])

    def __len__(self) -> int:
        return int(self._counts[0])

    def places(self, keys: np.ndarray) -> np.ndarray:
        """The place of each key; -1 for one that is not there.  (n, 2) -> (n,)"""
        out = np.empty(len(keys), dtype=np.int32)
        _find(keys, self._keys, self._places, out)
        return out

    def add(self, keys: np.ndarray) -> np.ndarray:
        """Add new keys while there is room, and return which ones, in the order of places."""
        added = np.empty(len(keys), dtype=np.int64)
        n = len(self)
        _add(keys, self._keys, self._places, self._counts, added)
        return added[: len(self) - n]


_BYTE, _HALF_WORD, _LAST_BYTE, _WORD_BUT_ONE, _WHOLE_WORD = (
    np.uint64(n) for n in (8, 32, 56, 63, 64)
)  # bits
_NEXT, _EIGHTH, _WITHIN_WORD = np.uint64(1), np.uint64(3), np.uint64(7)


@compiled
def _mix_texts(offsets: Any, data: Any, words: Any, factors: Any, out: Any) -> None:
    # Eight bytes at a time; the last word has what is left, seven bytes or less, and the length.
    for i in range(out.shape[0]):
        first, n = np.uint64(offsets[i]), np.uint64(offsets[i + 1] - offsets[i])
        a, b, word, shift = out[i, 0], out[i, 1], np.uint64(0), np.uint64(0)
        at = first >> _EIGHTH
        if n < _BYTE and at + _NEXT < np.uint64(words.shape[0]):  # most texts: out of two words
            shift = (first & _WITHIN_WORD) << _EIGHTH
            word = (words[at] >> shift) | ((words[at + _NEXT] << _NEXT) << (_WORD_BUT_ONE - shift))
            word &= (_NEXT << (n << _EIGHTH)) - _NEXT
        else:
            for j in range(offsets[i], offsets[i + 1]):
                word |= np.uint64(data[j]) << shift
                shift += _BYTE
                if shift == _WHOLE_WORD:
                    a, b = _left(a, word, factors[0]), _right(b, word, factors[1])
                    word, shift = np.uint64(0), np.uint64(0)
        word |= n << _LAST_BYTE
        out[i, 0], out[i, 1] = _left(a, word, factors[0]), _right(b, word, factors[1])


@compiled
def _mix_words(words: Any, factors: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        out[i, 0] = _left(out[i, 0], words[i], factors[0])
        out[i, 1] = _right(out[i, 1], words[i], factors[1])


# No two words take a number to the same one, and no word takes two numbers to the same.
@shared
def _left(a: Any, word: Any, factor: Any) -> Any:
    a = (a ^ word) * factor
    return a ^ (a >> _HALF_WORD)


@shared
def _right(b: Any, word: Any, factor: Any) -> Any:
    b = (b + word) * factor
    return b ^ (b >> _30)


@shared
def _slot(a: Any, b: Any, held: Any, places: Any) -> Any:
    """Where a key is in a table, or would be."""
    mask = np.uint64(places.shape[0] - 1)
    at = a & mask
    while places[at] and (held[at, 0] != a or held[at, 1] != b):
        at = (at + np.uint64(1)) & mask
    return at


@compiled
def _find(keys: Any, held: Any, places: Any, out: Any) -> None:
    for i in range(keys.shape[0]):
        out[i] = places[_slot(keys[i, 0], keys[i, 1], held, places)] - 1


@compiled
def _add(keys: Any, held: Any, places: Any, counts: Any, added: Any) -> None:
    n = 0
    for i in range(keys.shape[0]):
        at = _slot(keys[i, 0], keys[i, 1], held, places)
        if not places[at] and counts[0] < counts[1]:
            counts[0] += 1
            held[at, 0], held[at, 1], places[at] = keys[i, 0], keys[i, 1], counts[0]
            added[n] = i
            n += 1
