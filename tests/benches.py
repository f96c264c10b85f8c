"""Modules of `bench/`, which its scripts import from their own folder."""

import sys
from importlib import import_module
from pathlib import Path

BENCH = Path(__file__).parents[1] / "bench"


def bench(name):
    """A module of the benchmarks, by name."""
    sys.path.insert(0, str(BENCH))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(BENCH))
