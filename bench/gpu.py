"""Sums and scores on a GPU, beside what the card's matrix products reach in the same run.

    python bench/gpu.py                      10^8 rows x 122 columns, 2,048 landmarks
    python bench/gpu.py --rows 1000000       fewer

Rows are drawn on the card, batch by batch. Printed are rows a second with and without the drawing;
the rate 2 n m² / seconds of the sums, as if the whole matrix were one product, beside the rates of
one product in TF32, in half precision and in whole numbers of eight bits; and how far scores lie
from those of a fit in double precision; rows a second of the parts, and how far
sums by one plain product would be off. Where NSL-KDD is found, the Detector is fitted there with
both devices.
"""

import argparse
import time

import numpy as np
import torch
from tasks import DATA_HOME

from eqsep import Detector
from eqsep.datasets import load_nsl_kdd
from eqsep.engine import gpu
from eqsep.engine.nystroem import Statistics, TensorMap
from eqsep.evaluation import average_precision_by_kind
from eqsep.kernels import RBF, Laplacian

BATCH = 2**20
SAMPLE = 2**17
ALPHA = 0.1


def seconds(work, *, repeats: int = 5) -> float:
    """Of one repeat, the first left out."""
    work()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(repeats):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / repeats


def matrix_rates() -> dict[str, float]:
    """Operations a second of one product of square matrices, by the kind of number."""
    n = 8192
    single = torch.randn((n, n), device="cuda")
    half, whole = single.half(), single.clamp(-3, 3).mul(40).to(torch.int8)
    torch.backends.cuda.matmul.allow_tf32 = True
    rates = {
        "TF32": seconds(lambda: single @ single),
        "half precision": seconds(lambda: half @ half),
        "eight bits": seconds(lambda: torch._int_mm(whole, whole.T)),
    }
    torch.backends.cuda.matmul.allow_tf32 = False
    return {name: 2 * n**3 / s for name, s in rates.items()}


def kernel_map(kernel, n_landmarks: int, n_columns: int) -> TensorMap:
    C = torch.randn((n_landmarks, n_columns), device="cuda")
    resolved = kernel.resolved(C)
    resolved.gamma *= 2
    return TensorMap(resolved, C, BATCH)


def targets(n: int) -> np.ndarray:
    """Two classes in turn: which row has which does not matter for the time."""
    return (np.arange(n) % 3 > 0).astype(float)


def sums_of(values: TensorMap, X: torch.Tensor) -> Statistics:
    n = len(X)
    return values.statistics(X, targets(n), np.ones(n), total=np.array([float(n), 0.0]))


def time_sums(values: TensorMap, n_rows: int) -> tuple[float, float]:
    """Seconds for all rows, and those of drawing them."""
    d = values.landmarks.shape[1]
    sizes = [BATCH] * (n_rows // BATCH) + [n_rows % BATCH] * bool(n_rows % BATCH)
    sums_of(values, torch.randn((BATCH, d), device="cuda"))
    torch.cuda.synchronize()
    begin, total = time.perf_counter(), None
    for n in sizes:
        piece = sums_of(values, torch.randn((n, d), device="cuda"))
        total = piece if total is None else total + piece
    torch.cuda.synchronize()
    whole = time.perf_counter() - begin
    drawing = seconds(lambda: torch.randn((BATCH, d), device="cuda")) * n_rows / BATCH
    return whole, drawing


def disagreement(values: TensorMap) -> tuple[float, float]:
    """The largest and the usual difference of scores from a fit in double precision."""
    X, fresh = (
        torch.randn((n, values.landmarks.shape[1]), device="cuda") for n in (SAMPLE, 10_000)
    )
    exact = TensorMap(values.kernel, values.landmarks.double(), 8192)
    found = [sums_of(m, x).solve(ALPHA) for m, x in ((values, X), (exact, X.double()))]
    score, wanted = (
        m.evaluate(fresh.to(m.landmarks.dtype), a).double()
        for m, a in zip((values, exact), found, strict=True)
    )
    apart = (score - wanted).abs()
    return float(apart.max()), float(apart.square().mean().sqrt())


def tell_plain_sums(values: TensorMap) -> None:
    """How far sums by one product of kernel values are off, by the kind of number."""
    X = torch.randn((SAMPLE, values.landmarks.shape[1]), device="cuda")
    k = values.kernel.at(values.landmarks)(X)
    exact, y = k.double(), torch.as_tensor(targets(len(X)), device="cuda")
    gram, moment = exact.T @ exact, exact.T @ y
    half = k.half()
    torch.backends.cuda.matmul.allow_tf32 = True
    ways = {"TF32": k.T @ k, "half precision": torch.mm(half.T, half, out_dtype=torch.float32)}
    torch.backends.cuda.matmul.allow_tf32 = False
    wanted = exact @ Statistics(gram, moment, np.ones(2)).solve(ALPHA)
    for name, found in ways.items():
        score = exact @ Statistics(found.double(), moment, np.ones(2)).solve(ALPHA)
        off = float((found.double() - gram).abs().max() / gram.abs().max())
        print(
            f"One product in {name} over {SAMPLE:,} rows: sums off by {off:.1e} of the largest, "
            f"scores by {float((score - wanted).abs().max()):.1e} at most"
        )


def tell_parts(values: TensorMap) -> None:
    """Rows a second of the two parts of the Laplacian kernel's sums."""
    X = torch.randn((gpu.SUMMED_AT_ONCE, values.landmarks.shape[1]), device="cuda")
    scale = torch.full((gpu.SUMMED_AT_ONCE,), gpu.SCALE, device="cuda")
    digits = values.kernel.digits_at(values.landmarks)
    k, m = digits(X, scale), len(values.landmarks)
    total = torch.zeros((m, m), dtype=torch.float64, device="cuda")
    for name, work in (
        ("kernel values as digits", lambda: digits(X, scale)),
        ("products of digits", lambda: gpu.add_squares(total, k)),
    ):
        print(f"{name}: {gpu.SUMMED_AT_ONCE / seconds(work) / 1e6:.1f} million rows/s")


def tell_detector() -> None:
    """The detector on NSL-KDD by both devices."""
    split = load_nsl_kdd(data_home=DATA_HOME, protocol="paper", as_frame=True)
    print(
        f"\nDetector, NSL-KDD, {len(split.y_train):,} rows: fit s, rows scored a second, precision"
    )
    for device in ("cpu", "cuda"):
        model = Detector(device=device, random_state=0)
        model.fit(split.X_train[:3000], split.y_train[:3000])  # what is compiled at a first fit
        begin = time.perf_counter()
        model.fit(split.X_train, split.y_train)
        fitted = time.perf_counter()
        Z = model.plan_.encode(split.X_test)
        encoded = time.perf_counter()
        score = model.model_.score(Z)
        done = time.perf_counter()
        area = average_precision_by_kind(score, split.kind_test)["overall"]
        print(
            f"{device:5} {fitted - begin:7.2f} {len(Z) / (done - fitted):12,.0f} "
            f"(encoded before: {len(Z) / (done - encoded):,.0f}) {area:.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**8)
    parser.add_argument("--columns", type=int, default=122)
    parser.add_argument("--landmarks", type=int, default=2048)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("torch sees no GPU here.")
    torch.manual_seed(0)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    rates = matrix_rates()
    print(", ".join(f"{name} {rate / 1e12:.0f} TFLOP/s" for name, rate in rates.items()))
    for kernel in (Laplacian(), RBF()):
        values = kernel_map(kernel, args.landmarks, args.columns)
        whole, drawing = time_sums(values, args.rows)
        rate = 2 * args.rows * args.landmarks**2 / (whole - drawing)
        most, usual = disagreement(values)
        X = torch.randn((BATCH, args.columns), device="cuda")
        coef = torch.randn(args.landmarks, device="cuda", dtype=torch.float64)
        score = seconds(lambda v=values, X=X, a=coef: v.evaluate(X, a))
        print(
            f"{type(kernel).__name__}: sums of {args.rows:,} rows in {whole:.2f} s, "
            f"{args.rows / whole / 1e6:.1f} million rows/s "
            f"({args.rows / (whole - drawing) / 1e6:.1f} without drawing them), "
            f"{rate / 1e12:.0f} TFLOP/s, {rate / rates['TF32']:.2f} of TF32; scores differ by "
            f"{most:.1e} at most, {usual:.1e} usually; {BATCH / score / 1e6:.1f} million rows/s "
            f"scored",
            flush=True,
        )
    values = kernel_map(Laplacian(), args.landmarks, args.columns)
    tell_parts(values)
    tell_plain_sums(values)
    if DATA_HOME is not None and (DATA_HOME / "nsl-kdd").is_dir():
        tell_detector()


if __name__ == "__main__":
    main()
