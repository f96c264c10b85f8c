"""Points that slabs shatter, by simulated annealing of many sets at once on a GPU or a CPU.

    python tools/search_witness.py epsilon-equality 4 14 --device cuda --seconds 480 --out found
    python tools/search_witness.py hyper-ridge 3 8 --chains 4 --seconds 30

Every chain tries several moves of a point at once and takes the first that annealing accepts, as
if it had tried them in turn. What it lowers is the number of labellings that no slab realises, in
single precision. The best set of points goes to FAMILY_N_SIZE.csv in the folder --out, and when
none is missing it is decided in exact arithmetic, by `eqsep.theory.shatters`.

The run ends with 0 when a set was confirmed, and with 1 when the time is up.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import torch
from torch import Tensor

ROOM = 1e-5  # a point closer to a face than this, in widths of the slab, counts as on neither side


class SubsetTable:
    """The subsets that slabs cut from each of many sets of m points of R^n, as in `SlabTable`.

    A slab pushed as far as it goes touches n + 1 points, `simplices`, some on its upper face; a
    small tilt lets any part of them in.
    """

    def __init__(self, n: int, m: int, *, flips: bool, device: str) -> None:
        self.m, self.flips = m, flips
        self.simplices = torch.tensor(list(combinations(range(m), n + 1)), device=device)
        self.bits = 2 ** torch.arange(m - 1, -1, -1, device=device)
        faces = torch.arange(2 ** (n + 1), device=device)[:, None]
        self.faces = (faces >> torch.arange(n, -1, -1, device=device) & 1).float()
        bits = self.bits[self.simplices].double()  # a GPU multiplies no matrices of whole numbers
        self.parts = (bits @ self.faces.double().T).long()
        self.others = torch.ones(len(self.simplices), m, dtype=torch.bool, device=device)
        self.others.scatter_(1, self.simplices, False)

    def missing(self, X: Tensor) -> Tensor:
        """How many labellings no slab was seen to realise.  (sets, m, n) -> (sets,)"""
        lifted = torch.cat([X, torch.ones_like(X[..., :1])], dim=2)
        forms = torch.linalg.inv_ex(lifted[:, self.simplices])[0]
        coordinates = torch.einsum("smi,stij->stmj", lifted, forms)
        seen = torch.zeros(len(X), 2**self.m, dtype=torch.bool, device=X.device)
        seen[:, [0, -1]] = True
        for face in self.faces[1 : len(self.faces) // 2]:  # the mirror image is the same slab
            value = coordinates @ face
            near = torch.minimum(value.abs(), (value - 1).abs()) > ROOM
            sound = (near | ~self.others).all(dim=2)  # NaN of a flat simplex is not
            between = (value > 0) & (value < 1) & self.others
            subsets = (between * self.bits).sum(dim=2)[..., None] + self.parts
            subsets = torch.where(sound[..., None], subsets, 0)
            seen.scatter_(1, subsets.flatten(1), True)
        if self.flips:
            return (~(seen | seen.flip(1))).sum(dim=1) // 2
        return (~seen).sum(dim=1)


class Annealing:
    """Chains side by side, each with its points, from hot to cold in a given time."""

    def __init__(self, table: SubsetTable, X: Tensor, *, tries: int, on_sphere: bool) -> None:
        self.table, self.tries, self.on_sphere = table, tries, on_sphere
        self.X = self.settled(X)
        self.cost = table.missing(self.X)

    def settled(self, X: Tensor) -> Tensor:
        """Slabs alone need an ellipsoid, so without flips the points stay on the unit sphere."""
        return X / X.norm(dim=2, keepdim=True) if self.on_sphere else X

    def step(self, heat: float, size: float) -> None:
        """Try moves of one point in every chain; take the first that is accepted."""
        chains, m, n = self.X.shape
        X = self.X.repeat_interleave(self.tries, dim=0)
        row = torch.arange(len(X), device=X.device)
        length = size * torch.exp(torch.randn(len(X), 1, device=X.device))
        X[row, torch.randint(m, row.shape, device=X.device)] += length * torch.randn(
            len(X), n, device=X.device
        )
        X = self.settled(X)
        cost = self.table.missing(X)
        worse = (cost - self.cost.repeat_interleave(self.tries)).clamp(min=0)
        taken = torch.rand(len(X), device=X.device) < torch.exp(-worse / heat)
        taken = taken.view(chains, self.tries)
        first = taken.int().argmax(dim=1) + torch.arange(chains, device=X.device) * self.tries
        any_taken = taken.any(dim=1)
        self.X = torch.where(any_taken[:, None, None], X[first], self.X)
        self.cost = torch.where(any_taken, cost[first], self.cost)


def anneal(options: argparse.Namespace) -> Iterator[tuple[int, Tensor]]:
    """Sets of points with ever fewer labellings missing, until the time is up."""
    flips = options.family == "epsilon-equality"
    n, m = options.n_features, options.size
    table = SubsetTable(n, m, flips=flips, device=options.device)
    torch.manual_seed(options.seed)
    begin, best = time.monotonic(), 2**m
    while (left := options.seconds - (time.monotonic() - begin)) > 0:
        start = torch.randn(options.chains, m, n, device=options.device)
        run = Annealing(table, start, tries=options.tries, on_sphere=not flips)
        length = min(left, options.run_seconds)
        run_begin, steps = time.monotonic(), 0
        while (part := (time.monotonic() - run_begin) / length) < 1:
            heat = options.heat * (0.3 / options.heat) ** part
            run.step(heat, size=0.6 * 0.02**part)
            steps += 1
            least = int(run.cost.min())
            if least < best:
                best = least
                yield best, run.X[int(run.cost.argmin())]
        print(f"{steps} steps, missing: {sorted(run.cost.tolist())}, fewest so far {best}")


def confirmed(points: list[list[str]], family: str) -> bool:
    """Whether the family shatters the points, exactly decided."""
    from eqsep.theory import shatters

    return shatters(points, family, certificates=True).verify()


def read_options(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("family", choices=("epsilon-equality", "hyper-ridge"))
    parser.add_argument("n_features", type=int)
    parser.add_argument("size", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=60, help="for all runs together")
    parser.add_argument("--run-seconds", type=float, default=240, help="from hot to cold")
    parser.add_argument("--chains", type=int, default=16)
    parser.add_argument("--tries", type=int, default=8)
    parser.add_argument("--heat", type=float, default=8, help="labellings, at the start of a run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path())
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    options = read_options(words)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{options.family}_{options.n_features}_{options.size}.csv"
    for missing, X in anneal(options):
        points = [[f"{value:.5f}" for value in row] for row in X.tolist()]
        path.write_text("".join(",".join(row) + "\n" for row in points))
        if missing == 0:
            print(f"none missing: {path}; deciding exactly", flush=True)
            if confirmed(points, options.family):
                print(f"{options.family} shatters these {options.size} points")
                return 0
            print("not confirmed: rounding lost a labelling")
    return 1


if __name__ == "__main__":
    sys.exit(main())
