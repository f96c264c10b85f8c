"""Views of what the benchmarks that compare methods have measured.

python bench/standings.py docs/benchmarks.md    ranks over the tables that a page prints
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
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
Columns = dict[str, np.ndarray]  # a method's figure at each table, by column of the view


@dataclass(frozen=True)
class View:
    """How methods are shown beside each other: in which columns, under which title."""

    title: str
    columns: Sequence[str]
    layout: Layout
    n_seeds: Mapping[str, int] | None = None  #: Of each method, where that is one number.


def standings(results: Sequence[Result], *, markdown: bool) -> str:
    """All tables as text. Methods that lack a task are named and left out of the ranks."""
    tasks = list(dict.fromkeys((r["data"], r["seen"]) for r in results))
    methods = list(dict.fromkeys(r["method"] for r in results))
    found = {(r["method"], r["data"], r["seen"]): r for r in results}
    whole = [m for m in methods if all((m, *task) in found for task in tasks)]
    partly = [m for m in methods if m not in whole]
    layout = piped if markdown else _aligned
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

    A method counts with the seeds that it has on all tables and at all shares. Some have no share
    0, where nothing is labelled; means over the shares are without it. A table counts by its mean
    over the seeds. With a method as reference, means have intervals, and the others' distance from
    it and the tables won are shown.
    """
    found = {(r["method"], r["data"], r["share"], r["seed"]): r for r in results}
    methods, names, shares, seeds = (list(dict.fromkeys(part)) for part in zip(*found, strict=True))
    shares = sorted(shares)
    labelled = [share for share in shares if share] or shares
    tried = {(method, share) for method, _, share, _ in found}
    shares_of = {m: [s for s in shares if s in labelled or (m, s) in tried] for m in methods}
    tasks = {m: [(name, share) for share in shares_of[m] for name in names] for m in methods}
    has = {m: [s for s in seeds if all((m, *t, s) in found for t in tasks[m])] for m in methods}
    whole = [method for method in methods if has[method]]
    partly = [method for method in methods if not has[method]]
    layout = piped if markdown else _aligned
    if not whole:
        n_tasks = len(names) * len(shares)
        return f"No method has all of the {n_tasks} tasks of a division yet."

    def columns(method: str, what: str) -> Columns:
        at_share = {
            share: np.mean(
                [[found[(method, name, share, s)][what] for name in names] for s in has[method]],
                axis=0,
            )
            for share in shares_of[method]
        }
        over_shares = np.mean([at_share[share] for share in labelled], axis=0)
        return {f"{share} %": at for share, at in at_share.items()} | {"mean": over_shares}

    of_method = {m: [found[(m, *t, s)] for t in tasks[m] for s in has[m]] for m in whole}
    chance: Columns = {}
    for method in whole:
        chance |= columns(method, "prevalence")
    areas = {method: columns(method, "average_precision") for method in whole}
    shares = [share for share in shares if f"{share} %" in chance]
    view = View(
        "Average precision where a share of the anomalies is labelled",
        [*(f"{share} %" for share in shares), "mean"],
        layout,
        n_seeds={method: len(has[method]) for method in whole},
    )
    parts = _comparisons(areas, chance=chance, reference=reference, view=view)
    if by_table:
        parts += [
            _by_table(areas, f"{share} %", names, title=f"{share} % labelled", layout=layout)
            for share in shares
        ]
    title = "Seconds of a task, mean"
    parts.append(_seconds(of_method, np.mean, title=title, layout=layout))
    searched = {m: r for m, r in of_method.items() if "n_candidates" in r[0]}
    if searched:
        parts.append(_candidates(searched, layout=layout))
    return "\n\n".join([*parts, *_notes(of_method, partly)])


def standings_by_measure(
    results: Sequence[Result],
    measures: Mapping[str, str],
    *,
    title: str,
    markdown: bool,
    by_table: bool,
) -> str:
    """The measures as columns: means over the tasks of each table, then over tables.

    Parameters
    ----------
    measures : mapping of str to str
        The names under which results have their figures, and those that are shown.
    """
    task_of = {id(r): tuple(r[f] for f in ("data", "seen", "seed") if f in r) for r in results}
    found = {(r["method"], task_of[id(r)]): r for r in results}
    tasks = list(dict.fromkeys(task_of.values()))
    names = list(dict.fromkeys(data for data, *_ in tasks))
    methods = list(dict.fromkeys(r["method"] for r in results))
    whole = [m for m in methods if all((m, task) in found for task in tasks)]
    layout = piped if markdown else _aligned
    if not whole:
        return f"No method has all of the {len(tasks)} tasks yet."
    of_method = {m: [found[(m, task)] for task in tasks] for m in whole}

    def of_tables(method: str, measure: str) -> np.ndarray:
        figures = [(r["data"], r["figures"][measure]) for r in of_method[method]]
        return np.array([np.mean([value for d, value in figures if d == name]) for name in names])

    areas = {m: {shown: of_tables(m, key) for key, shown in measures.items()} for m in whole}
    columns = list(measures.values())
    best = [max(area[column].mean() for area in areas.values()) for column in columns]
    lines = [[title, *columns]]
    for method in _best_first(areas):
        means = [float(areas[method][column].mean()) for column in columns]
        lines.append([method, *_marked(means, best)])
    parts = [layout(lines)]
    if by_table:
        parts += [_by_table(areas, c, names, title=c.capitalize(), layout=layout) for c in columns]
    parts.append(_seconds(of_method, np.mean, title="Seconds of a task, mean", layout=layout))
    partly = [m for m in methods if m not in whole]
    return "\n\n".join([*parts, *_notes(of_method, partly)])


def standings_without_labels(
    results: Sequence[Result], *, markdown: bool, by_table: bool, reference: str
) -> str:
    """All tables as text, where nothing is labelled: a column for each case and collection.

    A method counts in a column with the seeds that it has on all tables of it. A table counts by
    its mean over the seeds.
    """
    found = {
        (r["method"], f"{r['case']}: {r['collection']}", r["data"], r["seed"]): r for r in results
    }
    methods, columns = (list(dict.fromkeys(part)) for part in list(zip(*found, strict=True))[:2])
    names = {c: list(dict.fromkeys(d for _, of, d, _ in found if of == c)) for c in columns}
    seeds = {c: list(dict.fromkeys(s for _, of, _, s in found if of == c)) for c in columns}
    areas: dict[str, Columns] = {method: {} for method in methods}
    chance: Columns = {}
    for method, column in product(methods, columns):
        of_seeds = [
            [found.get((method, column, name, seed)) for name in names[column]]
            for seed in seeds[column]
        ]
        if whole := [of_seed for of_seed in of_seeds if None not in of_seed]:
            chance[column], areas[method][column] = (
                np.mean([[r[what] for r in of_seed] for of_seed in whole], axis=0)
                for what in ("prevalence", "average_precision")
            )
    whole_somewhere = {method: area for method, area in areas.items() if area}
    layout = piped if markdown else _aligned
    if not whole_somewhere:
        return "No method has all tables of a division yet."
    view = View("Average precision without labels", [c for c in columns if c in chance], layout)
    parts = _comparisons(whole_somewhere, chance=chance, reference=reference, view=view)
    if by_table:
        parts += [_by_table(areas, c, names[c], title=c, layout=layout) for c in chance]
    of_method = {m: [r for r in results if r["method"] == m] for m in methods}
    title = "Seconds of a task, mean"
    parts.append(_seconds(of_method, np.mean, title=title, layout=layout))
    partly = [m for m in methods if len(areas[m]) < len(columns)]
    return "\n\n".join([*parts, *_notes(of_method, partly)])


def _comparisons(
    areas: Mapping[str, Columns], *, chance: Columns, reference: str | None, view: View
) -> list[str]:
    """Means, and with a reference distances from it and tables won; then ranks."""
    parts = [_means(areas, chance=chance, with_intervals=reference is not None, view=view)]
    if reference in areas:
        parts.append(_distances(areas, reference=reference, view=view))
    if reference is not None:
        parts.append(_wins(areas, view=view))
    return [*parts, _ranks(areas, view=view)]


def _means(
    areas: Mapping[str, Columns], *, chance: Columns, with_intervals: bool, view: View
) -> str:
    """Means over the tables, the best first."""
    columns, n_seeds = view.columns, view.n_seeds
    title = view.title + (", 95 % interval" if with_intervals else "")
    lines = [[title, *columns, *([] if n_seeds is None else ["seeds"])]]
    best = {c: max(area[c].mean() for area in areas.values() if c in area) for c in columns}

    def cell(values: np.ndarray | None, top: float) -> str:
        if values is None:
            return ""
        interval = " [{:.3f}, {:.3f}]".format(*_interval(values)) if with_intervals else ""
        return f"{values.mean():.3f}{interval}{'*' if values.mean() == top else ' '}"

    for method in _best_first(areas):
        cells = [cell(areas[method].get(column), best[column]) for column in columns]
        lines.append([method, *cells, *([] if n_seeds is None else [str(n_seeds[method])])])
    by_chance = [f"{chance[column].mean():.3f} " for column in columns]
    lines.append([PREVALENCE, *by_chance, *([] if n_seeds is None else [""])])
    if not with_intervals:
        return view.layout(lines)
    words = "Intervals are by bootstrap over the tables, each by its mean over the seeds."
    return "\n\n".join([view.layout(lines), words])


def _distances(areas: Mapping[str, Columns], *, reference: str, view: View) -> str:
    """The mean distance of the reference from each other method, table by table."""
    title = f"{reference} minus the other, mean over tables, 95 % interval"
    lines = [[title, *view.columns, "tables ahead", "behind"]]
    for method in _best_first(areas):
        if method == reference:
            continue
        both = areas[reference].keys() & areas[method].keys()
        ahead = {column: areas[reference][column] - areas[method][column] for column in both}
        cells = [
            "{:+.3f} [{:+.3f}, {:+.3f}]".format(np.mean(ahead[c]), *_interval(ahead[c]))
            if c in ahead
            else ""
            for c in view.columns
        ]
        # Where tables have a mean over the columns, they count once.
        counted = [ahead["mean"]] if "mean" in ahead else list(ahead.values())
        counts = (sum(int(np.sum(sign * some > 0)) for some in counted) for sign in (1, -1))
        lines.append([method, *cells, *map(str, counts)])
    return view.layout(lines)


def _wins(areas: Mapping[str, Columns], *, view: View) -> str:
    """On how many tables each method is the best; equals all are."""
    wins: dict[str, dict[str, int]] = {method: {} for method in areas}
    sizes = {}
    for column in view.columns:
        present = [method for method in areas if column in areas[method]]
        stacked = np.array([areas[method][column] for method in present])  # (methods, tables)
        sizes[column] = stacked.shape[1]
        counts = (stacked == stacked.max(axis=0)).sum(axis=1)
        for method, count in zip(present, counts, strict=True):
            wins[method][column] = int(count)
    title = f"Tables won, of {' or '.join(map(str, dict.fromkeys(sizes.values())))}"
    lines = [[f"{title} (equals all win)", *view.columns]]
    for method in sorted(areas, key=lambda m: -wins[m].get(view.columns[-1], 0)):
        lines.append([method, *(str(wins[method].get(column, "")) for column in view.columns)])
    return view.layout(lines)


def _best_first(areas: Mapping[str, Columns]) -> list[str]:
    """The methods by their mean over the columns that all of them have."""
    common = set.intersection(*(set(area) for area in areas.values()))

    def mean(method: str) -> float:
        area = areas[method]
        return float(np.mean([area[column].mean() for column in sorted(common or area)]))

    return sorted(areas, key=mean, reverse=True)


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


def _ranks(areas: Mapping[str, Columns], *, view: View) -> str:
    """Mean ranks over the tables of each column, among the methods that have it."""
    ranked = {
        column: _ranked({m: list(area[column]) for m, area in areas.items() if column in area})
        for column in view.columns
    }
    known = {name: comparison for name, comparison in ranked.items() if comparison is not None}
    if not known:
        return "Too few methods or tables for ranks."
    last = known[list(known)[-1]]
    p_values = ", ".join(f"{c.friedman.p_value:.1g} ({name})" for name, c in known.items())
    lines = [[f"Mean rank over {last.n_datasets} tables", *known]]
    for method in sorted(areas, key=lambda m: last.mean_rank.get(m, np.inf)):
        ranks = (c.mean_rank.get(method) for c in known.values())
        lines.append([method, *("" if rank is None else f"{rank:.2f}" for rank in ranks)])
    words = f"Critical difference of mean ranks (Nemenyi, 95 %): {last.critical_difference:.2f}"
    return "\n\n".join([view.layout(lines), f"{words}; Friedman p = {p_values}."])


def _by_table(
    areas: Mapping[str, Columns], column: str, names: list[str], *, title: str, layout: Layout
) -> str:
    """A line for each table, a column for each method that has all of them."""
    present = {method: area[column] for method, area in areas.items() if column in area}
    lines = [[title, *present]]
    for i, name in enumerate(names):
        values = [of_tables[i] for of_tables in present.values()]
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


def piped(cells: list[list[str]]) -> str:
    """A Markdown table; the best of a column in bold."""
    head, *rows = cells
    bold = [[_bold(cell) for cell in row] for row in rows]
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *bold])


def _bold(cell: str) -> str:
    return f"**{cell[:-1]}**" if cell.endswith("*") else cell.strip()


if __name__ == "__main__":
    print(*ranks_of_page(Path(sys.argv[1]).read_text("utf-8")), sep="\n\n")
