"""A conformal test martingale: a bet that rows are not exchangeable, which cannot win for long.

While rows are exchangeable, p-values are uniform and no bet on them gains on average: the capital,
1 at the start, ever exceeds 1 / delta with probability at most delta (Ville's inequality).
"""

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable

JUMP = 0.01  # the share of the capital that is moved between bets at each row
BETS = (-1.0, 0.0, 1.0)  # on low p, that is on high scores; on nothing; on high p
_MAX_CAPITAL = 1e100  # the most capital


class SequentialRanks:
    """Ordered scores; each new one gets its rank among those before it, as a p-value."""

    def __init__(self, scores: Iterable[float]) -> None:
        self.ordered = sorted(map(float, scores))

    def p_value(self, score: float, *, tie: float) -> float:
        """The share of scores above, plus `tie`, drawn uniformly, of equal ones and itself."""
        low, high = bisect_left(self.ordered, score), bisect_right(self.ordered, score)
        above, equal = len(self.ordered) - high, high - low
        insort(self.ordered, score)
        return (above + tie * (equal + 1)) / len(self.ordered)


class SimpleJumper:
    """Capital in three `accounts`, which bet 1 + e (p - 1/2) with e = -1, 0 and 1; `n` bets so far.

    A hundredth of the capital is redistributed before each bet. Half of all capital bets from the
    first row on. The other half is a reserve; 1 / ln(e + k) of it is left after k rows, so quiet
    rows do not use up the capital before a late change. The whole is a mean of martingales.
    """

    def __init__(self) -> None:
        self.accounts = (1 / 6, 1 / 6, 1 / 6)
        self.n = 0

    @property
    def reserve(self) -> float:
        """The capital that does not bet yet."""
        return 0.5 / math.log(math.e + self.n)

    @property
    def capital(self) -> float:
        """All capital: 1 at the start."""
        return sum(self.accounts) + self.reserve

    def bet(self, p: float) -> None:
        """Gain or lose by one more p-value."""
        before = self.reserve
        self.n += 1
        shared = (JUMP * sum(self.accounts) + before - self.reserve) / 3
        low, none, high = (
            ((1 - JUMP) * account + shared) * (1 + bet * (p - 0.5))
            for account, bet in zip(self.accounts, BETS, strict=True)
        )
        share = min(1.0, _MAX_CAPITAL / (low + none + high))
        self.accounts = (share * low, share * none, share * high)
