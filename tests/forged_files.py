"""Model files taken apart, changed and sealed again."""

import hashlib
import json

from eqsep.persistence.container import MAGIC, PREFIX, VERSION


def sealed(body):
    return bytes(body) + hashlib.sha256(body).digest()


def taken_apart(data):
    """The header as a document, and the bytes of the arrays."""
    _, _, length = PREFIX.unpack_from(data)
    start = PREFIX.size + length
    return json.loads(data[PREFIX.size : start]), data[start:-32]


def put_together(header, arrays, *, version=VERSION, length=None):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    length = len(header) if length is None else length
    return sealed(PREFIX.pack(MAGIC, version, length) + header + arrays)


HOSTILE = [
    None, True, -1, 0, 2**63, 10**18, 1e308, -0.0, "", "x" * 50, [], {}, [[[]]], {"array": 0},
    {"array": 10**9}, {"scalar": 0}, {"names": 1}, {"tuple": [1]}, {"dict": {"a": 1}},
    {"float": "7ff0000000000000"}, {"class": ["activations.Ridge", {}]},
    {"class": ["builtins.eval", {"source": "1"}]}, [10**9, 10**9],
    "<U7", "<f4", "|O", "F", "precomputed", "median", {"dict": {}}, {"names": 0},
]  # fmt: skip


def nodes(tree, found=None):
    """Every (container, key) of a document."""
    found = [] if found is None else found
    for key, value in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        found.append((tree, key))
        if isinstance(value, dict | list):
            nodes(value, found)
    return found


def flipped(data, rng, low, high):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 3])):
        data[rng.randrange(low, high)] ^= 1 << rng.randrange(8)
    return bytes(data)


def damaged_copy(data, other, rng):
    """A copy that was damaged by accident: its checksum tells."""
    at = rng.randrange(len(data))
    return rng.choice(
        [
            flipped(data, rng, 0, len(data)),
            data[:at],
            data[:at] + rng.randbytes(rng.randrange(1, 20)) + data[at:],
            data[:at] + other[at:],
            other[: len(other) - 32] + data[-32:] if other != data else data[1:],
        ]
    )


def forged_copy(data, other, rng):
    """A copy that was changed on purpose, its checksum made right again."""
    document, arrays = taken_apart(data)
    way = rng.randrange(7)
    if way == 0:
        return sealed(flipped(data[:-32], rng, PREFIX.size, len(data) - 32 - len(arrays)))
    if way == 1:
        return sealed(flipped(data[:-32], rng, len(data) - 32 - len(arrays), len(data) - 32))
    if way == 2:
        return put_together(taken_apart(other)[0], arrays)
    container, key = rng.choice(nodes(document))
    if way == 3:
        del container[key]
    elif way == 4:
        container[key] = rng.choice(HOSTILE)
    elif way == 5:
        theirs, name = rng.choice(nodes(taken_apart(other)[0]))
        container[key] = theirs[name]
    else:
        pair = rng.choice(nodes(document))
        container[key] = json.loads(json.dumps(pair[0][pair[1]]))
    return put_together(document, arrays)
