"""Views of what `leave_one_kind_out.py`, `adbench.py` and `oddbench.py` measured.

python bench/standings.py docs/benchmarks.md    ranks over the tables that a page prints
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from comparison import Comparison, compare

MEASURES = {
    "unseen": "Kinds that were not seen: mean over them",
    "seen": "The kind that was seen",
    "overall": "All anomalies together",
}
PREVALENCE = "(prevalence)"
RESAMPLES = 10_000
Result = dict[str, Any]
Layout = Callable[[list[list[str]]], str]


def standings(results: Sequence[Result], *, markdown: bool) -> str:
    """All tables as text. Methods that lack a task are named and left out of the ranks."""
    tasks = list(dict.fromkeys((r["data"], r["seen"]) for r in results))
    methods = list(dict.fromkeys(r["method"] for r in results))
    found = {(r["method"], r["data"], r["seen"]): r for r in results}
    whole = [m for m in methods if all((m, *task) in found for task in tasks)]
    partly = [m for m in methods if m not in whole]
    layout = _piped if markdown else _aligned
    parts = [
        _one_measure(found, tasks, whole, measure=measure, title=title, layout=layout)
        for measure, title in MEASURES.items()
    ]
    of_method = {method: [found[(method, *task)] for task in tasks] for method in whole}
    title = f"Seconds, {len(tasks)} tasks together"
    parts += [_seconds(of_method, sum, title=title, layout=layout), *_notes(of_method, partly)]
    return "\n\n".join(parts)


def standings_by_share(
    results: Sequence[Result], *, markdown: bool, by_table: bool, reference: str | None = None
) -> str:
    """All tables as text, where a share of the anomalies is labelled.

    A method counts with the seeds that it has on all tables and at all shares. A table counts by
    its mean over the seeds. With a method as reference, means have intervals, and the others'
    distance from it and the tables won are shown.
    """
    found = {(r["method"], r["data"], r["share"], r["seed"]): r for r in results}
    methods, names, shares, seeds = (list(dict.fromkeys(part)) for part in zip(*found, strict=True))
    tasks = [(name, share) for share in shares for name in names]
    has = {m: [s for s in seeds if all((m, *task, s) in found for task in tasks)] for m in methods}
    whole = [method for method in methods if has[method]]
    partly = [method for method in methods if not has[method]]
    layout = _piped if markdown else _aligned
    if not whole:
        return f"No method has all of the {len(tasks)} tasks of a division yet."

    def means(method: str, what: str) -> np.ndarray:
        """-> (n_shares, n_tables)"""
        return np.mean(
            [
                [[found[(method, name, share, seed)][what] for name in names] for share in shares]
                for seed in has[method]
            ],
            axis=0,
        )

    areas = {method: means(method, "average_precision") for method in whole}
    n_seeds = {method: len(has[method]) for method in whole}
    chance = means(whole[0], "prevalence")
    means_of = _means_by_share if reference is None else _intervals_by_share
    parts = [means_of(areas, shares, chance=chance, n_seeds=n_seeds, layout=layout)]
    if reference in whole:
        parts.append(_distances_by_share(areas, shares, reference=reference, layout=layout))
    if reference is not None:
        parts.append(_wins_by_share(areas, shares, layout=layout))
    parts.append(_ranks_by_share(areas, shares, layout=layout))
    if by_table:
        parts += [
            _tables_at_share({m: a[i] for m, a in areas.items()}, names, share=share, layout=layout)
            for i, share in enumerate(shares)
        ]
    of_method = {m: [found[(m, *task, seed)] for task in tasks for seed in has[m]] for m in whole}
    title = "Seconds of a task, mean"
    parts.append(_seconds(of_method, np.mean, title=title, layout=layout))
    searched = {m: r for m, r in of_method.items() if "n_candidates" in r[0]}
    if searched:
        parts.append(_candidates(searched, layout=layout))
    return "\n\n".join([*parts, *_notes(of_method, partly)])


def _means_by_share(
    areas: dict[str, np.ndarray],
    shares: list[int],
    *,
    chance: np.ndarray,
    n_seeds: dict[str, int],
    layout: Layout,
) -> str:
    """Means over the tables, and over these and the shares."""
    means = {method: [*values.mean(axis=1), values.mean()] for method, values in areas.items()}
    best = np.max(list(means.values()), axis=0)
    title = "Average precision where a share of the anomalies is labelled"
    lines = [[title, *(f"{share} %" for share in shares), "mean", "seeds"]]
    for method in sorted(means, key=lambda m: -means[m][-1]):
        lines.append([method, *_marked(means[method], best), str(n_seeds[method])])
    by_chance = [*chance.mean(axis=1), chance.mean()]
    lines.append([PREVALENCE, *(f"{value:.3f} " for value in by_chance), ""])
    return layout(lines)


def _intervals_by_share(
    areas: dict[str, np.ndarray],
    shares: list[int],
    *,
    chance: np.ndarray,
    n_seeds: dict[str, int],
    layout: Layout,
) -> str:
    """Means as `_means_by_share` has them, each with its interval."""
    columns = {method: [*values, values.mean(axis=0)] for method, values in areas.items()}
    means = {method: [np.mean(column) for column in some] for method, some in columns.items()}
    best = np.max(list(means.values()), axis=0)
    title = "Average precision where a share of the anomalies is labelled, 95 % interval"
    lines = [[title, *(f"{share} %" for share in shares), "mean", "seeds"]]
    for method in sorted(means, key=lambda m: -means[m][-1]):
        cells = [
            f"{mean:.3f} [{low:.3f}, {high:.3f}]{'*' if mean == top else ' '}"
            for mean, top, (low, high) in zip(
                means[method], best, map(_interval, columns[method]), strict=True
            )
        ]
        lines.append([method, *cells, str(n_seeds[method])])
    by_chance = [*chance.mean(axis=1), chance.mean()]
    lines.append([PREVALENCE, *(f"{value:.3f} " for value in by_chance), ""])
    words = "Intervals are by bootstrap over the tables, each by its mean over the seeds."
    return "\n\n".join([layout(lines), words])


def _distances_by_share(
    areas: dict[str, np.ndarray], shares: list[int], *, reference: str, layout: Layout
) -> str:
    """The mean distance of the reference from each other method, table by table."""
    title = f"{reference} minus the other, mean over tables, 95 % interval"
    lines = [[title, *(f"{share} %" for share in shares), "mean", "tables ahead", "behind"]]
    others = (method for method in areas if method != reference)
    for method in sorted(others, key=lambda m: -areas[m].mean()):
        ahead = areas[reference] - areas[method]
        columns = [*ahead, ahead.mean(axis=0)]
        cells = [
            f"{np.mean(c):+.3f} [{low:+.3f}, {high:+.3f}]"
            for c in columns
            for low, high in [_interval(c)]
        ]
        lines.append([method, *cells, *(str(np.sum(s * columns[-1] > 0)) for s in (1, -1))])
    return layout(lines)


def _wins_by_share(areas: dict[str, np.ndarray], shares: list[int], *, layout: Layout) -> str:
    """On how many tables each method is the best; equals all are."""
    stacked = np.array([[*a, a.mean(axis=0)] for a in areas.values()])  # (methods, shares, tables)
    wins = (stacked == stacked.max(axis=0)).sum(axis=2)
    title = f"Tables won, of {stacked.shape[2]} (equals all win)"
    lines = [[title, *(f"{share} %" for share in shares), "mean"]]
    for method, counts in sorted(zip(areas, wins, strict=True), key=lambda one: -one[1][-1]):
        lines.append([method, *map(str, counts)])
    return layout(lines)


def _interval(values: np.ndarray) -> tuple[float, float]:
    """Where the mean of tables like these lies, by bootstrap, 95 %."""
    picks = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    low, high = np.quantile(values[picks].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def _candidates(of_method: Mapping[str, list[Result]], *, layout: Layout) -> str:
    """How many settings searches have compared, the default among them."""
    title = "Settings compared by a search"
    lines = [[title, "median", "most", "tasks with several", "tasks not left at the default"]]
    for method, results in of_method.items():
        counts = np.array([r["n_candidates"] for r in results])
        changed = np.mean([bool(r["chosen"]) for r in results])
        shares = (f"{share:.0%}" for share in (np.mean(counts > 1), changed))
        lines.append([method, f"{np.median(counts):g}", str(counts.max()), *shares])
    return layout(lines)


def _ranks_by_share(areas: dict[str, np.ndarray], shares: list[int], *, layout: Layout) -> str:
    """Mean ranks over the tables at each share, and of the means over the shares."""
    columns = {f"{share} %": [a[i] for a in areas.values()] for i, share in enumerate(shares)}
    columns["mean"] = [a.mean(axis=0) for a in areas.values()]
    ranked = {
        name: _ranked(dict(zip(areas, map(list, values), strict=True)))
        for name, values in columns.items()
    }
    known = {name: comparison for name, comparison in ranked.items() if comparison is not None}
    if not known:
        return "Too few methods or tables for ranks."
    n_tables, difference = known["mean"].n_datasets, known["mean"].critical_difference
    p_values = ", ".join(f"{c.friedman.p_value:.1g} ({name})" for name, c in known.items())
    lines = [[f"Mean rank over {n_tables} tables", *known]]
    for method in sorted(areas, key=known["mean"].mean_rank.__getitem__):
        lines.append([method, *(_rank_of(method, comparison) for comparison in known.values())])
    words = f"Critical difference of mean ranks (Nemenyi, 95 %): {difference:.2f}; Friedman p"
    return "\n\n".join([layout(lines), f"{words} = {p_values}."])


def _tables_at_share(
    areas: dict[str, np.ndarray], names: list[str], *, share: int, layout: Layout
) -> str:
    """A line for each table, a column for each method."""
    lines = [[f"{share} % labelled", *areas]]
    for i, name in enumerate(names):
        values = [a[i] for a in areas.values()]
        lines.append([name, *_marked(values, [max(values)] * len(values))])
    return layout(lines)


def _marked(values: Sequence[float], best: Sequence[float]) -> list[str]:
    return [
        f"{value:.3f}{'*' if value == top else ' '}"
        for value, top in zip(values, best, strict=True)
    ]


def _one_measure(
    found: dict[tuple[str, str, str], Result],
    tasks: list[tuple[str, str]],
    methods: list[str],
    *,
    measure: str,
    title: str,
    layout: Layout,
) -> str:
    """Means over the tasks of each table, over the tables, and mean ranks over both."""
    names = list(dict.fromkeys(data for data, _ in tasks))

    def by_task(method: str, what: str) -> dict[tuple[str, str], float]:
        return {task: found[(method, *task)][what][measure] for task in tasks}

    def by_table(values: dict[tuple[str, str], float]) -> list[float]:
        return [float(np.mean([v for (d, _), v in values.items() if d == name])) for name in names]

    areas = {method: by_task(method, "average_precision") for method in methods}
    tables = {method: by_table(values) for method, values in areas.items()}
    chance = by_table(by_task(methods[0], "prevalence"))
    over_tables = _ranked(tables)
    over_tasks = _ranked({method: list(values.values()) for method, values in areas.items()})
    best = np.max(list(tables.values()), axis=0)
    head = [title, *names, "mean", "rank, tables", "rank, tasks"]
    lines = [head]
    for method in sorted(methods, key=lambda m: -float(np.mean(tables[m]))):
        ranks = [_rank_of(method, ranked) for ranked in (over_tables, over_tasks)]
        marked = _marked(tables[method], best)
        lines.append([method, *marked, f"{np.mean(tables[method]):.3f}", *ranks])
    lines.append([PREVALENCE, *(f"{c:.3f} " for c in chance), f"{np.mean(chance):.3f}", "", ""])
    return "\n\n".join([layout(lines), _difference(over_tables, over_tasks)])


def _ranked(values: dict[str, list[float]]) -> Comparison | None:
    """The comparison, where there is enough to compare."""
    enough = len(values) > 2 and min(map(len, values.values())) > 1
    return compare(values) if enough else None


def _rank_of(method: str, ranked: Comparison | None) -> str:
    return "" if ranked is None else f"{ranked.mean_rank[method]:.2f}"


def _difference(over_tables: Comparison | None, over_tasks: Comparison | None) -> str:
    """By how much mean ranks must differ to be told apart."""
    words = [
        f"{ranked.critical_difference:.2f} over {ranked.n_datasets} {what} "
        f"(Friedman p = {ranked.friedman.p_value:.1g})"
        for what, ranked in (("tables", over_tables), ("tasks", over_tasks))
        if ranked is not None
    ]
    if not words:
        return "The best of each table is marked. Too few methods or tables for ranks."
    return (
        f"The best of each table is marked. Critical difference of mean ranks (Nemenyi, 95 %): "
        f"{', '.join(words)}; tasks of one table are not independent. "
        + " ".join(
            _told_apart(ranked, what)
            for what, ranked in (("tables", over_tables), ("tasks", over_tasks))
            if ranked is not None
        )
    )


def _told_apart(ranked: Comparison, what: str) -> str:
    """The best by mean rank, and those of which it cannot be told apart."""
    best = min(ranked.mean_rank, key=ranked.mean_rank.__getitem__)
    others = sorted((m for m in ranked.mean_rank if m != best), key=ranked.mean_rank.__getitem__)
    alike = [method for method in others if not ranked.differ(best, method)]
    return f"By {what}, {best} is not told apart from: {', '.join(alike) or 'none'}."


def printed_tables(page: str) -> Iterator[tuple[str, dict[str, dict[str, float]]]]:
    """The title and the areas by method and table, of each measure that a page prints."""
    for title in MEASURES.values():
        start = page.find(f"| {title} |")
        if start < 0:
            continue
        head, _, *rows = (
            [cell.strip(" *") for cell in line.strip("|").split("|")]
            for line in page[start:].split("\n\n")[0].splitlines()
        )
        names = head[1 : head.index("mean")]
        yield (
            title,
            {
                method: dict(zip(names, map(float, cells), strict=False))
                for method, *cells in rows
                if method != PREVALENCE
            },
        )


def ranks_of_page(page: str) -> Iterator[str]:
    """Of each measure, who leads over the tables and by how much; then with satimage once."""
    for title, areas in printed_tables(page):
        once = {method: _satimage_once(values) for method, values in areas.items()}
        for what, some in (("tables", areas), ("tables, satimage as one", once)):
            ranked = compare({method: list(values.values()) for method, values in some.items()})
            ranks = sorted(ranked.mean_rank.items(), key=lambda one: one[1])
            yield (
                f"{title}, {ranked.n_datasets} {what}: critical difference "
                f"{ranked.critical_difference:.2f} (Friedman p = {ranked.friedman.p_value:.1g}); "
                + ", ".join(f"{method} {rank:.2f}" for method, rank in ranks)
                + f". {_told_apart(ranked, 'tables')}"
            )


def _satimage_once(values: Mapping[str, float]) -> dict[str, float]:
    """The two tables of satimage, which have one or another soil as normal, as their mean."""
    both = [value for name, value in values.items() if name.startswith("satimage")]
    rest = {name: value for name, value in values.items() if not name.startswith("satimage")}
    return rest | ({"satimage": float(np.mean(both))} if both else {})


def _seconds(
    of_method: Mapping[str, list[Result]],
    gather: Callable[[list[float]], float],
    *,
    title: str,
    layout: Layout,
) -> str:
    """Of all results of a method, one thread."""

    def gathered(results: list[Result], what: str) -> str:
        return f"{gather([r[what] for r in results]):.1f}"

    lines = [[title, "fit", "score"]]
    lines += [
        [method, gathered(results, "fit_seconds"), gathered(results, "score_seconds")]
        for method, results in of_method.items()
    ]
    return layout(lines)


def _notes(of_method: Mapping[str, list[Result]], left_out: list[str]) -> list[str]:
    """What each method was given, from the first of its results, and who lacks some task."""
    words = [f"{m} ({r['package']}): {r['settings']}" for m, (r, *_) in of_method.items()]
    notes = ["Settings, else defaults. " + "; ".join(words) + "."]
    if left_out:
        notes.append(f"Not on all tasks, so left out: {', '.join(left_out)}.")
    return notes


def _aligned(cells: list[list[str]]) -> str:
    """The title on a line of its own, then columns."""
    (title, *head), *rows = cells
    lines = [["", *head], *rows]
    widths = [max(len(row[i]) for row in lines) for i in range(len(lines[0]))]
    text = [
        row[0].ljust(widths[0])
        + "".join(f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in lines
    ]
    return "\n".join([title, *(line.rstrip() for line in text)])


def _piped(cells: list[list[str]]) -> str:
    """A Markdown table; the best of a column in bold."""
    head, *rows = cells
    bold = [[_bold(cell) for cell in row] for row in rows]
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *bold])


def _bold(cell: str) -> str:
    return f"**{cell[:-1]}**" if cell.endswith("*") else cell.strip()


if __name__ == "__main__":
    print(*ranks_of_page(Path(sys.argv[1]).read_text("utf-8")), sep="\n\n")
