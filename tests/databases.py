"""Databases for tests: SQLite always, PostgreSQL where its programs are installed."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOMES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
WHY_NOT = "PostgreSQL is not installed: apt-get install postgresql"


@contextmanager
def postgres_server() -> Iterator[str]:
    """A server of one's own on a socket in a new folder; the start of a database's URL."""
    with tempfile.TemporaryDirectory(prefix="eqsep-pg-") as name:
        folder, home = Path(name), HOMES[-1]
        as_user: dict[str, object] = {}
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(folder, "postgres", "postgres")
            as_user = {"user": "postgres", "group": "postgres"}
        data = folder / "data"

        def run(program: str, *options: str) -> None:
            command = [home / program, "-D", data, *options]
            subprocess.run(command, check=True, capture_output=True, cwd=folder, **as_user)

        run("initdb", "-A", "trust", "-U", "eqsep", "--no-sync")
        settings = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        run("pg_ctl", "-w", "-l", str(folder / "log"), "-o", settings, "start")
        try:
            yield f"postgresql+psycopg://eqsep@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")
