"""Drift: whether rows change over time, so that the promise fails on later rows.

Held-out blocks have learnt rows on both sides, so they cannot show it. Small fits to the rows up to
some time therefore score their own held-out blocks and the blocks that follow. A season that such a
fit has not seen looks like drift; by the last blocks it may have come round, so these decide.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from eqsep.checks import DriftWarning, Finding, TimeOrderWarning
from eqsep.detector.config import Config
from eqsep.detector.evidence import gather
from eqsep.detector.holdout import Grouping
from eqsep.detector.plan import Plan
from eqsep.detector.score import Score
from eqsep.errors import quoted
from eqsep.labels import RowLabels
from eqsep.tables.reading import RowGroups, Table

_CUT_SHARES, _FOLLOWING_SHARE = (0.4, 0.6, 0.8), 0.2  # of all rows: before each cut, and after it
_LAST_BLOCKS = 0.1  # of all blocks: these show whether rows keep changing
_MAX_ROWS, _LANDMARKS = 3000, 200  # of a small fit: normal rows, and as many anomalies
_N_PERMUTATIONS, _ALERT_CHANCE = 499, 0.01  # of the test, and the chance of a false alert
_BROKEN_RATE = 1.5  # times the promised rate: more is worth an alert
_ERRORS = 3.0  # standard ones between the blocks before and after: more means that it moves
_BLOCKS_ASIDE = 5  # blocks on either side of a cut
_MAX_COLUMNS = 3
_RESTART_SHARE = 0.1  # of the steps from row to row: if more go back, rows are not in order


def check_time(
    table: Table, labels: RowLabels, plan: Plan, config: Config, *, rate: float
) -> list[Finding]:
    """Findings on times: that clocks restart, and that normal rows change."""
    grouping = plan.holdout.grouping
    assert grouping is not None  # rows in time
    assert table.groups is not None
    found, time = _restarts(table.groups), table.groups.time
    normal, anomalous = (
        np.sort(np.random.RandomState(0).permutation(np.flatnonzero(chosen))[:_MAX_ROWS])
        for chosen in (labels.code == 0, labels.code > 0)
    )
    small = replace(config, n_landmarks=min(_LANDMARKS, config.n_landmarks))
    block, n_blocks = _blocks(table.groups, grouping, normal)
    timed = table
    if not grouping.edges:  # whole groups are held out: their times order them
        timed = replace(table, groups=replace(table.groups, columns=(grouping.columns[0], None)))
    chance = np.random.RandomState(0)

    def rates_between(first: int, last: int) -> np.ndarray:
        known = anomalous[time[anomalous] < np.median(time[normal[block == first]])]
        places = np.concatenate([normal[block < first], known])
        before, own = timed.take(places), labels.take(places)
        after = timed.take(normal[(block >= first) & (block < last)])
        return _rates_after(before, own, after, small, chance, rate=rate, like=plan)

    rates = [
        rates_between(first, last)
        for first, last in _cuts(n_blocks)
        if first >= 2 * _BLOCKS_ASIDE and last - first >= _BLOCKS_ASIDE  # blocks on either side
    ]
    mean = np.mean(rates, axis=0) if rates else np.zeros(1 + _N_PERMUTATIONS)
    if not _is_broken(mean, rate=rate):
        return found
    latest = rates_between(n_blocks - max(_BLOCKS_ASIDE, int(_LAST_BLOCKS * n_blocks)), n_blocks)
    columns = _moved(plan.encode(table.take(normal)), block, n_blocks, plan)
    which = f", most of all in column{'s' * (len(columns) != 1)} {quoted(columns)}"
    goes_on = _is_broken(latest, rate=rate)
    meaning = "does not hold while rows keep changing."
    if not goes_on:
        meaning = "may hold if new rows are like learnt ones, as when a season comes round."
    hint = "Fit again as rows arrive, or leave out columns that do not matter."
    fields: dict[str, Any] = {"goes_on": int(goes_on)}
    for column in (one for one in table.columns if one.name in columns):
        if how := _only_moves(column.values[normal], time[normal]):
            name = column.name
            meaning = f"{'does' if goes_on else 'may'} not hold as long as column {name!r} is "
            meaning += f"learnt: it only {how} with time, so values of later rows are all new."
            hint = f"Leave column {name!r} out of X, and fit again."
            fields |= {"column": name, "topic": "growing_column"}
            break
    drift = Finding(
        DriftWarning,
        f"Rows change over time{which * bool(columns)}: fits to earlier rows, calibrated to "
        f"{100 * rate:.3g}% false alarms, had {100 * mean[0]:.2g}% on the rows that came next and "
        f"{100 * latest[0]:.2g}% on the last rows{' (within chance)' * (not goes_on)}, compared "
        f"with {100 * mean[1:].mean():.2g}% if rows did not change. The promise {meaning}",
        hint,
        fields,
    )
    return [*found, drift]


def _is_broken(rates: np.ndarray, *, rate: float) -> bool:
    """Whether the first rate far exceeds the promised one and the others, which are chance."""
    broken, by_chance = float(rates[0]), rates[1:]
    is_chance = (1 + np.sum(by_chance >= broken - 1e-12)) / (1 + _N_PERMUTATIONS) > _ALERT_CHANCE
    return not is_chance and broken > _BROKEN_RATE * max(rate, float(by_chance.mean()))


def _rates_after(
    before: Table,
    labels: RowLabels,
    after: Table,
    config: Config,
    chance: np.random.RandomState,
    *,
    rate: float,
    like: Plan,
) -> np.ndarray:
    """The share of rows after above the threshold of those before; then with blocks permuted."""
    window, rng = None if like.windows is None else like.windows.length, np.random.RandomState(0)
    plan = Plan.choose(before, labels, config, rng, scheme=like.labels, rate=rate, window=window)
    evidence = gather(plan, plan.align(before), labels)
    score, held = Score.solve(plan, evidence.learnt_sums(plan, config)), evidence.held_out
    grouping = plan.holdout.grouping
    assert grouping is not None
    assert after.groups is not None
    later = grouping.units(after.groups, key=plan.holdout.key)
    scores = [score(held.rows), score(plan.encode(after))]
    between, following = (np.unique(u, return_inverse=True)[1] for u in (held.hashes, later))
    n_between, n_after = int(between.max()) + 1, int(following.max()) + 1
    unit = np.concatenate([between, n_between + following])
    unit = unit[np.argsort(-np.concatenate(scores), kind="stable")]  # the highest score first
    weight, n = 1 / np.bincount(unit)[unit], n_between + n_after
    orders = [np.arange(n), *(chance.permutation(n) for _ in range(_N_PERMUTATIONS))]
    follows = np.array(orders)[:, unit] >= n_between
    above = np.cumsum(np.where(follows, 0.0, weight), axis=1) <= rate * n_between + 1e-9
    return np.asarray((weight * (follows & above)).sum(axis=1) / n_after)


def _blocks(groups: RowGroups, grouping: Grouping, rows: np.ndarray) -> tuple[np.ndarray, int]:
    """The block or group of some rows, numbered by their median times, and how many there are."""
    time = groups.time[rows]
    names, unit = np.unique(grouping.units(groups, key=0)[rows], return_inverse=True)
    by_time = np.lexsort((time, unit))
    starts = np.searchsorted(unit[by_time], np.arange(len(names) + 1))
    middle = time[by_time][(starts[:-1] + starts[1:] - 1) // 2]
    return np.argsort(np.argsort(middle, kind="stable"))[unit], len(names)


def _cuts(n_blocks: int) -> list[tuple[int, int]]:
    """The first block after each cut, and the first one beyond those that follow it."""
    return [(int(cut * n_blocks), int((cut + _FOLLOWING_SHARE) * n_blocks)) for cut in _CUT_SHARES]


def _moved(Z: np.ndarray, block: np.ndarray, n_blocks: int, plan: Plan) -> list[str]:
    """The columns that differ most before and after a cut, at most three."""
    means = np.zeros((n_blocks, Z.shape[1]))
    np.add.at(means, block, Z)
    means /= np.bincount(block)[:, None]
    away = np.zeros(Z.shape[1])
    for first, last in _cuts(n_blocks):
        parts = means[:first], means[first:last]
        spread = sum(part.var(axis=0) / len(part) for part in parts)
        gap = np.abs(parts[0].mean(axis=0) - parts[1].mean(axis=0))
        away += gap / np.sqrt(np.maximum(spread, 1e-12)) / len(_CUT_SHARES)
    names = plan.encoder.column_names
    farthest = np.zeros(len(names))
    np.maximum.at(farthest, plan.encoder.source, away)
    order = np.argsort(-farthest, kind="stable")[:_MAX_COLUMNS].tolist()
    return [names[j] for j in order if farthest[j] > _ERRORS]


def _only_moves(values: np.ndarray, time: np.ndarray) -> str:
    """Whether numbers only rise with time, or fall, and do so between all cuts, as dates do."""
    if values.dtype.kind == "f" and not np.isnan(values).any():
        for how, one in (("rises", values), ("falls", -values)):
            ordered = one[np.lexsort((one, time))]
            ends = ordered[[int(cut * (len(ordered) - 1)) for cut in (0, *_CUT_SHARES, 1)]]
            if (np.diff(ordered) >= 0).all() and (np.diff(ends) > 0).all():
                return how
    return ""


def _restarts(groups: RowGroups) -> list[Finding]:
    """A finding if times go back, as when runs with their own clocks are stacked."""
    order = np.argsort(groups.group, kind="stable")
    time, same = groups.time[order], np.diff(groups.group[order].astype(float)) == 0
    back = np.flatnonzero(same & (np.diff(time) < 0))
    if not 0 < len(back) <= _RESTART_SHARE * len(time):
        return []
    ends = np.flatnonzero(~same | (np.diff(time) < 0))
    first, last = time[np.append(0, ends + 1)], time[np.append(ends, len(time) - 1)]
    of_group = groups.group[order][np.append(0, ends + 1)]
    by_start = np.lexsort((first, of_group))
    same_group = of_group[by_start][1:] == of_group[by_start][:-1]
    if not (same_group & (first[by_start][1:] < last[by_start][:-1])).any():
        return []
    within = " within a group" if groups.columns[0] is not None else ""
    return [
        Finding(
            TimeOrderWarning,
            f"Time goes back{within} {len(back):,} time{'s' * (len(back) != 1)} from one row to "
            f"the next, to times that occur earlier, as when runs or machines with their own "
            f"clocks are stacked: a block of time then mixes rows of several.",
            "Pass the column that names the run or machine of each row as groups=.",
        )
    ]
