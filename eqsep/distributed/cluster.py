"""A cluster of Ray: joined where there is one, else started on this machine and ended."""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from eqsep.errors import MissingExtraError, UserError

LOCAL = "local"  # in place of an address: processes of this machine
PATIENCE = 10  # seconds within which a cluster must answer
RETRIES = 3  # of a task after its process has died
_RUNNING = "auto"  # Ray's word for the cluster that runs on this machine


def load_ray() -> Any:
    """Ray with its data sets; says how to install it if it is missing."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray starts
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise MissingExtraError(
            'Ray is not installed: pip install "eqsep[ray]" brings what it takes to fit and score '
            "on a cluster."
        ) from error
    return ray


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """Ray, joined to a cluster while the block runs; addresses are those of `distributed.fit`."""
    ray = load_ray()
    joined = join(address)
    try:
        yield ray
    finally:
        if joined:
            ray.shutdown()


def join(address: str | None) -> bool:
    """Join a cluster, or start one here; false where this process is in that cluster already."""
    ray = load_ray()
    if ray.is_initialized():
        here = ray.get_runtime_context().gcs_address
        if address not in (None, LOCAL, _RUNNING, here):
            raise UserError(
                f"This process has joined the cluster at {here}, so it cannot join the one at "
                f"{address}. Call ray.shutdown() first."
            )
        return False
    address = address or os.environ.get("RAY_ADDRESS") or LOCAL
    if address not in (LOCAL, _RUNNING):
        _check_answers(address)
    here = {"include_dashboard": False} if address == LOCAL else {}
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        ray.init(address=address, **here, **quiet)
    except (ConnectionError, RuntimeError, TimeoutError) as error:
        raise _none_at(address, str(error).partition(".")[0]) from error
    ray.data.DataContext.get_current().enable_progress_bars = False
    return True


def _check_answers(address: str) -> None:
    """Refuse at once, not after Ray's minutes, an address at which nothing listens."""
    host, _, port = address.rpartition("//")[-1].rpartition(":")
    if not host or not port.isdigit():
        raise UserError(
            f"{address!r} is not the address of a cluster: expected a host and a port as in "
            f'"10.0.0.1:6379", "auto" or "local".'
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except OSError as error:
        raise _none_at(address, error.strerror or str(error)) from error


def _none_at(address: str, reason: str) -> ConnectionError:
    return ConnectionError(
        f"No cluster of Ray answers at {address} ({reason}). Start one with "
        f"`ray start`, or pass {LOCAL!r} for the processes of this machine."
    )


def check_no_windows(windows: object) -> None:
    """Refuse windows, which the processes of a cluster cannot take."""
    if windows is not None:
        message = "Windows go on from row to row, and the processes of a cluster read pieces."
        raise UserError(message, hint="Work on one machine.", topic="windows_on_cluster")
