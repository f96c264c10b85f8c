"""Rows scored on a cluster."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eqsep.detector.detector import Detector
from eqsep.detector.model import VERDICTS, Model
from eqsep.distributed.cluster import check_no_windows, join, load_ray
from eqsep.distributed.units import Opened, as_threads, units_of
from eqsep.errors import UserError
from eqsep.labels import listed
from eqsep.persistence import load_model


def score(
    model: Detector | str | os.PathLike[str],
    dataset: Any,
    *,
    address: str | None = None,
    keep: Sequence[str] | None = None,
    cpus_per_task: float = 1,
) -> Any:
    """A `ray.data.Dataset` of each row's score, p_value, alarm and kind.

    Parameters
    ----------
    model : Detector or path
        A fitted detector, or the file of one. It is sent to each machine once.
    dataset, cpus_per_task
        As in `fit`.
    address : str, default=None
        As in `fit`. Rows are scored when you read or write the result, so a cluster started here
        runs until `ray.shutdown()` or the end of the process.
    keep : sequence of str, default=None
        The columns to copy to the result next to the four; None means all.
    """
    detector = model if isinstance(model, Detector) else load_model(model)
    check_no_windows(detector.plan_.windows)
    join(address)
    units = units_of(dataset)
    if units.names is not None:
        _check_kept(keep, units.names)
    sent = [load_ray().put(detector.model_)]
    return units.data.map_batches(
        _scored,
        batch_size=units.at_once,
        batch_format="pyarrow",
        fn_kwargs={"model": sent, "opened": units.opened, "keep": keep},
        num_cpus=cpus_per_task,
    )


def _scored(
    batch: pa.Table, *, model: list[Any], opened: Opened, keep: Sequence[str] | None
) -> Iterator[pa.Table]:
    ready: Model = load_ray().get(model)[0]
    for source, _ in opened(batch):
        for table, _ in source:
            names = table.schema.names
            known = ready.plan.table_columns if ready.plan.is_named else names
            with as_threads():
                verdicts = ready.verdicts(table.select([name for name in known if name in names]))
            kept = names if keep is None else keep
            yield pa.table({name: table.column(name) for name in kept} | verdicts.columns())


def _check_kept(keep: Sequence[str] | None, names: list[str]) -> None:
    """Refuse columns that are not there, or that have the name of an answer."""
    for name in names if keep is None else keep:
        if name not in names:
            raise UserError(
                f"Cannot keep the column {name!r}: the columns are {listed(np.array(names))}."
            )
        if name in VERDICTS:
            raise UserError(
                f"Column {name!r} has the name of an answer: every result has "
                f"{list(VERDICTS)}. Rename it, or pass the columns to keep."
            )
