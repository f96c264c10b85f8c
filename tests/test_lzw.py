"""Files of `compress`: what is packed comes back, as from the program itself."""

import shutil
import subprocess

import numpy as np
import pytest

from eqsep.datasets.lzw import decompress


def compress(data, *, max_width=16, clear_every=None):
    """A .Z file, by the textbook: a plain packer to check the unpacker against."""
    bits, width, n_codes, n_known, run = [], 9, 0, 257, 0
    book = {bytes([i]): i for i in range(256)}

    def emit(code):
        nonlocal run
        bits.extend(code >> i & 1 for i in range(width))
        run += width

    def pad():
        nonlocal run
        bits.extend([0] * (-run % (8 * width)))
        run = 0

    word = b""
    for i in range(len(data)):
        if word + data[i : i + 1] in book:
            word += data[i : i + 1]
            continue
        emit(book[word])
        n_codes += 1
        if n_known < 1 << max_width:
            book[word + data[i : i + 1]] = n_known
            n_known += 1
        # The reader knows one word less than the writer does.
        if n_known - 1 == 1 << width and width < max_width:
            pad()
            width += 1
        word = data[i : i + 1]
        if clear_every and n_codes % clear_every == 0:
            emit(256)
            pad()
            book, n_known, width = {bytes([j]): j for j in range(256)}, 257, 9
    if word:
        emit(book[word])
    packed = np.packbits(np.array(bits, dtype=np.uint8), bitorder="little").tobytes()
    return b"\x1f\x9d" + bytes([0x80 | max_width]) + packed


def sample(n, *, seed=0):
    rng = np.random.default_rng(seed)
    return " ".join(map(str, rng.integers(0, 120, n))).encode()


CASES = {
    "nothing": (b"", {}),
    "a letter": (b"a", {}),
    "a word that is known only now": (b"aaaaaaaaaaaaaaaa", {}),
    "all bytes": (bytes(range(256)) * 3, {}),
    "wider and wider": (sample(30_000), {}),
    "a full dictionary": (sample(20_000), {"max_width": 10}),
    "cleared": (sample(20_000), {"clear_every": 700}),
    "cleared at odd places": (sample(5_000), {"clear_every": 13}),
}
every_case = pytest.mark.parametrize(("data", "options"), CASES.values(), ids=CASES)


@every_case
def test_what_was_packed_comes_back(data, options):
    assert decompress(compress(data, **options)) == data


@pytest.mark.skipif(not shutil.which("gzip"), reason="no gzip to compare with")
@every_case
def test_gzip_reads_the_same(data, options):
    packed = compress(data, **options)
    done = subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True)
    assert done.stdout == decompress(packed)


@pytest.mark.parametrize("data", [b"", b"PK\3\4", b"\x1f\x8b\x08", b"\x1f\x9d", b"\x1f\x9d\x89"])
def test_another_kind_of_file_is_refused(data):
    with pytest.raises(ValueError, match=r"Expected a \.Z file"):
        decompress(data)


def test_a_damaged_file_is_refused():
    packed = bytearray(compress(sample(2_000)))
    packed[60::7] = b"\xff" * len(packed[60::7])
    with pytest.raises(ValueError, match=r"damaged: code \d+ came"):
        decompress(bytes(packed))
