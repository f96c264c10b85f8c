"""How many subsets slabs can cut from m points of R^n: the counting bounds on shattering.

The proofs are in the documentation's note on the VC dimension. A slab low <= w.x <= high sends
each point below, inside or above. In units of its own width, the 2m conditions on (w, low) are m
pairs of parallel hyperplanes of R^(n+1), and the ways to place the points are their cells.
"""

from collections.abc import Callable

# The most points of R^n that a family can shatter, by n: `paper.theory.levels.refute` proves each.
LIMITS: dict[str, dict[int, int]] = {
    "hyper-ridge": {n: 4 * n - 2 for n in range(5, 17)},
    "epsilon-equality": dict(enumerate((25, 29, 33, 37, 41, 46, 49, 54, 57, 62, 66), start=6)),
}


def count_placements(m: int, n: int) -> int:
    """The ways slabs place m points of R^n in general position below, inside and above."""
    *few, corner = _binomials(m, n + 1)
    simple = sum(c << k for k, c in enumerate(few)) + (2 ** (n + 1) - 2) * corner
    return simple + 2 * _binomials(m - 1, n)[n]


def count_halfspace_labellings(m: int, n: int) -> int:
    """The labellings of m points of R^n in general position by halfspaces (Cover's count)."""
    return 2 * sum(_binomials(m - 1, n))


def max_large_subsets(m: int, n: int) -> int:
    """A bound on the subsets of size n + 1 to m - 1 that slabs cut from m points of R^n.

    All placements, less those with nothing or everything inside and those of thin slabs around
    k <= n points; halved for mirror images.
    """
    left = count_placements(m, n) - count_halfspace_labellings(m, n) - 1
    subsets, splits, more = _binomials(m, n), 1, 1
    for k in range(n, 0, -1):
        # Planes through k points split the m - k others in 2 sum_{j <= n-k} C(m-k-1, j) ways.
        left -= subsets[k] * 2 * splits
        more = more * (m - k - 1) // (n - k + 1)  # C(m-k-1, n-k+1)
        splits = 2 * splits + more
    return left // 2


def max_slab_subsets(m: int, n: int) -> int:
    """A bound on the subsets, of any size, that slabs cut from m > n points of R^n."""
    return 1 + sum(_binomials(m, n)) + max_large_subsets(m, n)


def ridge_limit(n: int) -> int:
    """The most points of R^n that slabs around class 1 can shatter, by counting."""
    return _last(lambda m: 2**m <= max_slab_subsets(m, n), start=n + 1)


def epsilon_limit(n: int) -> int:
    """The most points of R^n that slabs around either class can shatter, by counting."""

    def enough(m: int) -> bool:
        return 2 ** (m - 1) <= sum(_binomials(m, n)) + max_large_subsets(m, n)

    return _last(enough, start=2 * n + 1)


def _last(enough: Callable[[int], bool], *, start: int) -> int:
    """A number m with enough(m) and not enough(m + 1): any such m is a bound."""
    good, step = start, 1
    while enough(good + step):
        good, step = good + step, 2 * step
    bad = good + step
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if enough(middle) else (good, middle)
    return good


def _binomials(m: int, n: int) -> list[int]:
    """C(m, 0) to C(m, n), each from the one before."""
    row = [1]
    for k in range(n):
        row.append(row[-1] * (m - k) // (k + 1))
    return row
