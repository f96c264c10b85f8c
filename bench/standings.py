"""The view of what `leave_one_kind_out.py` measured: means by table, mean ranks, seconds."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eqsep.evaluation import Comparison, compare

MEASURES = {
    "unseen": "Kinds that were not seen: mean over them",
    "seen": "The kind that was seen",
    "overall": "All anomalies together",
}
PREVALENCE = "(prevalence)"
Result = dict[str, Any]


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
    parts += [_seconds(found, tasks, whole, layout=layout), _settings(found, whole)]
    if partly:
        parts.append(f"Not on all tasks, so left out: {', '.join(partly)}.")
    return "\n\n".join(parts)


def _one_measure(
    found: dict[tuple[str, str, str], Result],
    tasks: list[tuple[str, str]],
    methods: list[str],
    *,
    measure: str,
    title: str,
    layout: Callable[[list[list[str]]], str],
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
        marked = [
            f"{value:.3f}{'*' if value == top else ' '}"
            for value, top in zip(tables[method], best, strict=True)
        ]
        ranks = [_rank_of(method, ranked) for ranked in (over_tables, over_tasks)]
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
        f"{', '.join(words)}; tasks of one table are not independent."
    )


def _seconds(
    found: dict[tuple[str, str, str], Result],
    tasks: list[tuple[str, str]],
    methods: list[str],
    *,
    layout: Callable[[list[list[str]]], str],
) -> str:
    """Of all tasks together, one thread."""

    def total(method: str, what: str) -> float:
        return sum(found[(method, *task)][what] for task in tasks)

    lines = [[f"Seconds, {len(tasks)} tasks together", "fit", "score"]]
    lines += [
        [method, f"{total(method, 'fit_seconds'):.1f}", f"{total(method, 'score_seconds'):.1f}"]
        for method in methods
    ]
    return layout(lines)


def _settings(found: dict[tuple[str, str, str], Result], methods: list[str]) -> str:
    """What each method was given, from the first of its results."""
    first = {method: r for (method, *_), r in reversed(found.items())}
    words = [f"{m} ({first[m]['package']}): {first[m]['settings']}" for m in methods]
    return "Settings, else defaults. " + "; ".join(words) + "."


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
