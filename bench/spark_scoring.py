"""Spark with a saved detector: rows scored by `mapInArrow`, and what they teach summed up.

    pip install pyspark          needs Java 17
    python bench/spark_scoring.py

On made-up payments: a detector is fitted and saved; Spark scores the rows, each executor with the
model it has loaded; then Spark sums up what all rows teach in the detector's context, and the
coefficients are compared with those of the fit.
"""

import argparse
import pickle
import tempfile
from collections.abc import Iterator
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyspark
from eqsep.detector.fitting import FitContext, accumulate, context_of
from eqsep.detector.scoring import verdicts
from pyspark.sql import SparkSession

import eqsep
from eqsep import Detector
from eqsep.datasets import make_mixed_demo
from eqsep.detector.detector import recorded

SCORED = "amount double, score double, p_value double, alarm boolean, kind string"


def scored(path: str):
    """From batches of rows to batches of scores, by the model in a file that executors reach."""

    def score(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        model = eqsep.load_model(path)  # once for each partition
        for batch in batches:
            rows = pa.Table.from_batches([batch]).drop_columns(["true_kind"])
            if rows.num_rows:
                answers = {"amount": rows.column("amount"), **verdicts(model, rows)}
                yield from pa.table(answers).to_batches()

    return score


def summed(context: FitContext):
    """From batches of rows to one row: what they teach, pickled."""

    def teach(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = (pa.Table.from_batches([batch]) for batch in batches if batch.num_rows)
        pieces = [
            accumulate(context, t.drop_columns(["true_kind"]), t["true_kind"]) for t in tables
        ]
        if pieces:
            packed = pa.array([pickle.dumps(reduce(add, pieces))], pa.binary())
            yield pa.RecordBatch.from_arrays([packed], ["piece"])

    return teach


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    args = parser.parse_args()
    payments = make_mixed_demo(n_samples=args.rows, as_frame=True, random_state=0)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
        .getOrCreate()
    )
    with tempfile.TemporaryDirectory() as folder:
        payments.X.assign(true_kind=payments.kind).to_parquet(Path(folder, "payments.parquet"))
        model = Path(folder, "model.eqsep")
        detector = Detector(n_landmarks=200, random_state=0).fit(payments.X, payments.kind)
        detector.save(model)
        rows = spark.read.parquet(str(Path(folder, "payments.parquet"))).repartition(4)

        result = rows.mapInArrow(scored(str(model)), SCORED)
        result.orderBy("p_value", "amount").show(3)
        found = np.sort(result.toPandas()["score"])
        expected = np.sort(detector.score_samples(payments.X))
        print(f"Spark {pyspark.__version__}: {len(found):,} rows scored in ", end="")
        print(f"{rows.rdd.getNumPartitions()} partitions, the most that a score differs ", end="")
        print(f"from one process: {np.abs(found - expected).max()}")

        context = context_of(detector)
        pieces = rows.mapInArrow(summed(context), "piece binary").rdd
        piece = pieces.map(lambda row: pickle.loads(row.piece)).treeReduce(add)
        again = recorded(Detector(feature_map=detector.feature_map_), context, piece)
        apart = np.abs(again.coef_ - detector.coef_).max() / np.abs(detector.coef_).max()
        print(f"coefficients from sums by Spark, apart from those of the fit: {apart:.1e}")
    spark.stop()


if __name__ == "__main__":
    main()
