"""Tables encoded on a device by torch, in double precision, to the same single-precision values."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from eqsep.arrays import resolve_device
from eqsep.engine.loops import threads
from eqsep.tables import encodings as enc
from eqsep.tables.encoder import Encoder
from eqsep.tables.encodings import LINEAR, Encoding, beyond
from eqsep.tables.reading import LARGEST, Table, row_parts

READ_AT_ONCE = 2**17  # rows
_MOST_THREADS = 8  # more of them wait for memory


class Gathered(NamedTuple):
    """The columns of a table in main memory, ready to be sent."""

    numbers: Any  # a tensor (n_columns, n_rows)
    names: list[tuple[Any, np.ndarray, np.ndarray]]  # codes of rows; outputs and values by code


class TensorEncoding:
    """What an `Encoding` does, by tensors on a device."""

    def __init__(self, encoding: Encoding, device: Any) -> None:
        import torch

        self._encoding, self._device = encoding, device
        _, _, knots, scales, places = encoding.numbers
        self._scales = torch.as_tensor(scales.T[:, :, None].copy(), device=device)
        self._weights = self._scales[enc.WEIGHTS : enc.IF_MISSING]
        self._missing = self._scales[enc.IF_MISSING :]
        self._knots = torch.as_tensor(_side_by_side(knots, places), device=device)
        last = torch.as_tensor(places[:, enc.LAST] - places[:, enc.FIRST], device=device)[:, None]
        self._ends = self._knots[enc.KNOT, :, :1], self._knots[enc.KNOT].gather(1, last)
        self._places = places

    @classmethod
    def of(cls, encoder: Encoder, device: str) -> "TensorEncoding":
        encoding = Encoding(list(encoder.columns), encoder.weights, np.float32)
        return cls(encoding, resolve_device(device))

    def gathered(self, table: Table) -> Gathered:
        """The columns of an aligned table, in memory that is pinned for a GPU."""
        import torch

        numbers, coded = self._encoding.read(table.columns)
        shape, pinned = (len(numbers), table.n_rows), self._device.type == "cuda"
        there = torch.empty(shape, dtype=torch.float64, pin_memory=pinned)
        for row, column in zip(there.numpy(), numbers, strict=True):
            row[:] = column
        names = []
        pairs = zip(coded, self._encoding.categories, strict=True)
        for (rows, output), (_, _, (places, heights)) in pairs:
            codes = torch.as_tensor(rows)
            codes = codes.pin_memory() if pinned else codes
            names.append((codes, places[output], heights[output].astype(np.float32)))
        return Gathered(there, names)

    def __call__(self, columns: Gathered) -> Any:
        """Encoded rows on the device; columns are contiguous.  -> (n_rows, n_outputs)"""
        import torch

        there, encoding = {"device": self._device}, self._encoding
        x = columns.numbers.to(self._device, non_blocking=True)
        n = x.shape[1]
        out = torch.zeros((encoding.n_outputs, n), dtype=torch.float32, **there)
        gone = torch.isnan(x)
        for output, formula in ((enc.RANK, self._ranks), (enc.DEVIATION, self._deviations)):
            some = np.flatnonzero(self._places[:, output] >= 0)
            values = formula(x[some], some) * self._weights[output, some]
            values = torch.where(gone[some], self._missing[output, some], values)
            out[self._places[some, output]] = values.float()
        some = np.flatnonzero(self._places[:, enc.MISSING] >= 0)
        marked = gone[some] * self._weights[enc.MISSING, some]
        out[self._places[some, enc.MISSING]] = marked.float()
        at = torch.arange(n, **there)
        for codes, places, heights in columns.names:
            rows = codes.to(self._device, non_blocking=True)
            to, height = (torch.as_tensor(part, **there) for part in (places, heights))
            out[to[rows], at] = height[rows]
        for j, (date, places, weights) in encoding.dates.items():
            circles = date.circles(x[encoding.numbers.sources.index(j)])
            out[places] = (circles * torch.as_tensor(weights, **there)).T.float()
        return out.T

    def _ranks(self, x: Any, some: np.ndarray) -> Any:
        """`encodings.rank` for some columns.  (k, n) -> (k, n)"""
        import torch

        knots = self._knots[:, some]
        (lowest, highest), width = (end[some] for end in self._ends), self._scales[enc.WIDTH, some]
        below = torch.searchsorted(knots[enc.KNOT].contiguous(), x, right=True)
        below = below.sub_(1).clamp_(0, knots.shape[2] - 1)
        knot, gap, high, rise, at = (part.gather(1, below) for part in knots)
        step = x - knot
        inside = torch.where(step == 0, at, high + step / gap * rise)
        inside = torch.where(x < lowest, -beyond(lowest - x, width), inside)
        return torch.where(x > highest, 1 + beyond(x - highest, width), inside)

    def _deviations(self, x: Any, some: np.ndarray) -> Any:
        """`encodings.deviation` for some columns.  (k, n) -> (k, n)"""
        scales = self._scales[:, some]
        z = ((x - scales[enc.CENTRE]) / scales[enc.SCALE]).clamp_(-LARGEST, LARGEST)
        size = z.abs()
        size = (size + enc.JUMP * scales[enc.CONSTANT]).where(size > 0, size)
        size = (LINEAR + (size - LINEAR).log1p()).where(size > LINEAR, size)
        return size.copysign(z)


def _side_by_side(ranks: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The ranks of all columns, padded with knots at infinity.  (5, n) -> (5, k, n_knots)"""
    counts = places[:, enc.LAST] - places[:, enc.FIRST] + 1
    out = np.ones((len(ranks), len(counts), int(counts.max(initial=1))))
    out[enc.KNOT] = np.inf
    for k, (start, count) in enumerate(zip(places[:, enc.FIRST], counts, strict=True)):
        out[:, k, :count] = ranks[:, start : start + count]
        if count == 1:
            out[enc.AT, k, 0] = 0.5  # a value that never varied
    return out


def encoded_parts(
    encoding: TensorEncoding, X: Any, *, align: Callable[[Any], Table], most: int | None
) -> Iterator[Any]:
    """Encoded rows on a device, `most` at a time, or all if None; threads read the next ones."""

    def gathered(part: Any) -> Gathered:
        return encoding.gathered(align(part))

    parts = row_parts(X, most=most)
    if len(parts) == 1:
        yield encoding(gathered(parts[0]))
        return
    n_threads = min(threads(), _MOST_THREADS, len(parts))
    waiting: deque[Future[Gathered]] = deque()
    with ThreadPoolExecutor(n_threads, "eqsep") as pool:
        for part in parts:
            waiting.append(pool.submit(gathered, part))
            if len(waiting) > n_threads:
                yield encoding(waiting.popleft().result())
        while waiting:
            yield encoding(waiting.popleft().result())
