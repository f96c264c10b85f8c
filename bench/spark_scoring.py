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
from pyspark.sql import SparkSession

import eqsep
from eqsep import Detector
from eqsep.datasets import make_mixed_demo
from eqsep.detector import Model
from eqsep.detector.evidence import gather

SCORED = "amount double, score double, p_value double, alarm boolean, kind string"


def scored(path: str):
    """From batches of rows to batches of scores, by the model in a file that executors reach."""

    def score(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        model = eqsep.load_model(path).model_  # once for each partition
        for batch in batches:
            rows = pa.Table.from_batches([batch]).drop_columns(["true_kind"])
            if rows.num_rows:
                answers = {"amount": rows.column("amount"), **model.verdicts(rows).columns()}
                yield from pa.table(answers).to_batches()

    return score


def summed(model: Model):
    """From batches of rows to one row: the evidence that they give under a plan, pickled."""
    plan, known = model.plan, model.evidence.labels

    def teach(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = []
        for batch in filter(len, batches):
            rows = pa.Table.from_batches([batch])
            labels = plan.labels.read(rows["true_kind"], n_rows=rows.num_rows, known=known)
            pieces.append(gather(plan, plan.align(rows.drop_columns(["true_kind"])), labels))
        if pieces:
            packed = pa.array([pickle.dumps(reduce(add, pieces))], pa.binary())
            yield pa.RecordBatch.from_arrays([packed], ["evidence"])

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

        pieces = rows.mapInArrow(summed(detector.model_), "evidence binary").rdd
        evidence = pieces.map(lambda row: pickle.loads(row.evidence)).treeReduce(add)
        coef, again = detector.coef_, detector.model_.taught(evidence).score.kernel.coef
        apart = np.abs(again - coef).max() / np.abs(coef).max()
        print(f"coefficients from sums by Spark, apart from those of the fit: {apart:.1e}")
    spark.stop()


if __name__ == "__main__":
    main()
