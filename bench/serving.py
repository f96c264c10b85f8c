"""How many requests a second the service answers, and how soon, beside onnxruntime.

    python bench/serving.py                 two minutes on two cores
    python bench/serving.py --workers 2 --connections 32 --seconds 20
    python bench/serving.py --verdicts 30   single rows while 30 verdicts a minute are given
    python bench/serving.py --minutes 10    single rows, with the memory of the service over time
    python bench/serving.py --preview 10000 the preview of a verdict with so many open alarms

The service runs in processes of its own, on loopback, with NSL-KDD's detector (1,000 landmarks, 41
columns), and keeps what it is sent: each request is a row of the test data, checked, scored, named,
watched, and written to SQLite where it raises an alarm, as one in three does. The load comes from
another process, over connections that stay open and ask again once they are answered. onnxruntime
is called in a process without any of that. Where other programs run meanwhile, the time that the
processor spent on a request says more than the clock: it is printed beside it. NSL-KDD is looked
for in $EQSEP_DATA, then in ../shared/data. Needs the extras `onnx`, `serve` and `bench`.

Verdicts are given by another thread over HTTP: false alarms and a kind in turn, each on an alarm
that is open, and every third is taken back. The preview is asked for as the console does: scores
first, and then names, while the page says that it works on them.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import numpy as np
import onnxruntime
import psutil
import uvloop

from eqsep import Detector, load_model
from eqsep.client import Client
from eqsep.datasets import load_nsl_kdd

N_ROWS = 5_000


@dataclass(frozen=True)
class Load:
    """What is asked of a service: by so many connections, for so long, so many rows a request.

    The seconds of `warm_up` come first and do not count.
    """

    url: str
    token: str
    path: str
    connections: int
    seconds: float
    n_rows: int = 1
    warm_up: float = 1.0


def requests(load: Load, rows: list[dict[str, Any]]) -> list[bytes]:
    """Requests as they are sent, ready before the clock starts."""
    host = load.url.removeprefix("http://")
    head = f"POST {load.path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {load.token}\r\n"
    out = []
    for start in range(0, len(rows) - load.n_rows, load.n_rows):
        body = json.dumps({"rows": rows[start : start + load.n_rows]}).encode()
        kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        out.append((head + kind).encode() + body)
    return out


def times(load: Load, rows: list[dict[str, Any]]) -> tuple[list[float], float]:
    """How long each request took, and all of them together."""
    sent, taken = requests(load, rows), []

    async def ask(first: int, until: float) -> None:
        host, port = load.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        place = first
        while time.perf_counter() < until:
            start = time.perf_counter()
            writer.write(sent[place % len(sent)])
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(head.decode())
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            taken.append(time.perf_counter() - start)
            place += 1
        writer.close()

    async def all_of_them(seconds: float) -> float:
        start = time.perf_counter()
        step = max(len(sent) // load.connections, 1)
        until = start + seconds
        await asyncio.gather(*(ask(i * step, until) for i in range(load.connections)))
        return time.perf_counter() - start

    if load.warm_up:
        uvloop.run(all_of_them(load.warm_up))  # the first requests read the model, and compile
        taken.clear()
    return taken, uvloop.run(all_of_them(load.seconds))


@contextmanager
def service(
    model: Path, folder: Path, *, workers: int
) -> Iterator[tuple[str, str, psutil.Process]]:
    """The service as a user starts it: its address, a token and its process."""
    words = ["serve", model, "--data", folder, "--port", "0", "--workers", workers]
    command = [sys.executable, "-m", "eqsep", *map(str, words)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        told: dict[str, str] = {}
        while "token" not in told:
            assert process.stdout is not None
            name, value = process.stdout.readline().split(maxsplit=1)
            told[name] = value.strip()
        while True:
            try:
                urlopen(f"{told['console']}/health/ready").close()
                break
            except URLError:
                time.sleep(0.2)
        yield told["console"], told["token"], psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def family(process: psutil.Process) -> list[psutil.Process]:
    """A process and those that it started."""
    return [process, *process.children(recursive=True)]


def cpu_seconds(process: psutil.Process) -> float:
    """What a process and those that it started have used."""
    return sum(sum(one.cpu_times()[:2]) for one in family(process))


@contextmanager
def judging(client: Client, model: str, *, a_minute: float) -> Iterator[list[float]]:
    """Give verdicts meanwhile; how long each took."""
    taken: list[float] = []
    is_over = threading.Event()

    def give() -> None:
        for i in count() if a_minute else ():
            if is_over.wait(60 / a_minute):
                return
            found = client.alarms(model, limit=1)["alarms"]
            if not found:
                continue
            verdict, kind = (("false alarm", None), ("true", "odd"))[i % 2]
            start = time.perf_counter()
            given = client.judge([found[0]["id"]], verdict, kind=kind)
            taken.append(time.perf_counter() - start)
            if i % 3 == 2:
                client.undo([one["id"] for one in given["verdicts"]])

    thread = threading.Thread(target=give)
    thread.start()
    try:
        yield taken
    finally:
        is_over.set()
        thread.join()


def asked_for(load: Load, rows: list[dict[str, Any]], process: psutil.Process) -> Any:
    """What `times` returns in another process; the memory of the service is printed meanwhile."""
    with get_context("spawn").Pool(1) as other:
        found, start = other.apply_async(times, (load, rows)), time.perf_counter()
        while load.seconds >= 60 and not found.ready():
            memory = sum(one.memory_info().rss for one in family(process)) / 1e6
            print(f"{time.perf_counter() - start:6.0f} s {memory:8,.0f} MB", flush=True)
            found.wait(30.0)
        return found.get()


def tell_preview(
    client: Client, model: str, rows: list[dict[str, Any]], process: psutil.Process, *, n: int
) -> None:
    """How long the console takes to preview a verdict with `n` open alarms."""
    url, token, place = client.url, client.token, 0
    while client.alarms(model, limit=1)["total"] < n:
        client.score(model, rows[place : place + 100])
        place = (place + 100) % len(rows)
    found = client.alarms(model, limit=3)
    numbers = [alarm["id"] for alarm in found["alarms"]]
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    browser.open(f"{url}/login", urlencode({"token": token}).encode()).close()
    with browser.open(f"{url}/settings") as page:
        csrf = re.findall(r'name="csrf" value="([0-9a-f]+)"', page.read().decode())[0]
    print(f"{found['total']:,} open alarms")
    for told, choice in (("false alarm", "verdict:false alarm"), ("a new kind", "new")):
        for i, number in enumerate(numbers):
            form = {"csrf": csrf, "id": number, "choice": choice, "new_kind": f"odd {i}"}
            taken, cpu = [], [cpu_seconds(process)]
            for part in ("preview", "preview/names"):
                asked = Request(f"{url}/m/{model}/{part}", urlencode(form).encode())
                asked.add_header("HX-Request", "true")
                start = time.perf_counter()
                browser.open(asked, timeout=120).read()
                taken.append(time.perf_counter() - start)
                cpu.append(cpu_seconds(process))
            words = zip(taken, np.diff(cpu), ("scores", "names"), strict=True)
            spent = (
                f"{clock:7.2f} s {what} ({used:.2f} s of a core)" for clock, used, what in words
            )
            print(f"preview, {told:12}{''.join(spent)}", flush=True)


def tell(name: str, taken: list[float], clock: float, cpu: float, n_rows: int = 1) -> None:
    """One line."""
    p50, p99 = np.quantile(taken, [0.5, 0.99]) * 1e3
    print(
        f"{name:34}{len(taken) * n_rows / clock:9,.0f} rows/s{p50:8.1f} ms p50{p99:8.1f} ms p99"
        f"{cpu / len(taken) / n_rows * 1e3:9.3f} ms of a core a row"
    )


def in_process(name: str, task: Callable[[int], Any], *, n_rows: int, seconds: float) -> None:
    """What one thread does when it only calls a function."""
    taken: list[float] = []
    task(0)
    cpu, start = time.process_time(), time.perf_counter()
    while time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        task(len(taken) * n_rows % (N_ROWS - n_rows))
        taken.append(time.perf_counter() - begin)
    tell(name, taken, time.perf_counter() - start, time.process_time() - cpu, n_rows)


def tell_onnx(detector: Detector, frame: Any, folder: Path, seconds: float) -> None:
    """onnxruntime on the same model: it scores, and neither names, watches nor keeps."""
    detector.to_onnx(folder / "model.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        folder / "model.onnx", options, providers=["CPUExecutionProvider"]
    )
    columns = {
        one.name: frame[one.name].to_numpy(dtype=object if "string" in one.type else float)
        for one in session.get_inputs()
    }
    for n_rows in (1, 32, 100):

        def run(start: int, n: int = n_rows) -> Any:
            feed = {name: values[start : start + n] for name, values in columns.items()}
            return session.run(["score", "p_value", "label"], feed)

        name = f"onnxruntime, {n_rows} rows a call"
        in_process(name, run, n_rows=n_rows, seconds=seconds / 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--model", type=Path, help="a file with the detector, to fit it once")
    parser.add_argument("--verdicts", type=float, default=0.0, help="verdicts a minute meanwhile")
    parser.add_argument("--minutes", type=float, help="of load, with the memory of the service")
    parser.add_argument("--preview", type=int, help="open alarms with which a verdict is previewed")
    asked = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    home = os.environ.get("EQSEP_DATA", Path(__file__).parents[2] / "shared" / "data")
    split = load_nsl_kdd(data_home=home, as_frame=True)
    frame = split.X_test[:N_ROWS]
    with TemporaryDirectory() as name:
        folder = Path(name)
        model = asked.model or folder / "nsl_kdd.eqsep"
        if not model.exists():
            Detector(random_state=0).fit(split.X_train, split.kind_train).save(model)
        detector = load_model(model)
        rows = json.loads(frame.to_json(orient="records"))
        busy = os.getloadavg()[0]
        print(f"{os.cpu_count()} cores, on which {busy:.1f} programs ran in the last minute")
        print(f"{asked.workers} process(es) of the service, {asked.connections} connections")
        with service(model, folder / "store", workers=asked.workers) as (url, token, process):
            path = f"/api/v1/models/{model.stem}/score"
            if asked.preview:
                client = Client(url, token, timeout=120)
                tell_preview(client, model.stem, rows, process, n=asked.preview)
                return
            if asked.verdicts or asked.minutes:
                seconds = 60 * asked.minutes if asked.minutes else asked.seconds
                load = Load(url, token, path, asked.connections, seconds)
                cpu, client = cpu_seconds(process), Client(url, token)
                with judging(client, model.stem, a_minute=asked.verdicts) as judged:
                    taken, clock = asked_for(load, rows, process)
                tell("service, 1 row a request", taken, clock, cpu_seconds(process) - cpu)
                if judged:
                    print(f"{len(judged)} verdicts, {np.median(judged):.2f} s each (median)")
                return
            for told, query, n_rows, connections in (
                ("service, 1 row a request", "", 1, asked.connections),
                ("service, 1 row, nothing kept", "?keep=false", 1, asked.connections),
                ("service, 1 row, 1 connection", "", 1, 1),
                ("service, 100 rows a request", "", 100, 4),
            ):
                load = Load(url, token, path + query, connections, asked.seconds, n_rows)
                cpu = cpu_seconds(process)
                taken, clock = asked_for(load, rows, process)
                tell(told, taken, clock, cpu_seconds(process) - cpu, n_rows)
        in_process(
            "library, 1 row a call",
            lambda i: detector.score_samples(rows[i : i + 1]),
            n_rows=1,
            seconds=asked.seconds / 2,
        )
        tell_onnx(detector, frame, folder, asked.seconds)


if __name__ == "__main__":
    main()
