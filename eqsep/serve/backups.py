"""Backups of a service's SQLite database, made while it runs, and put back while it does not."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from eqsep.errors import UserError
from eqsep.serve.store import make_private, now

_PATIENCE = 30.0  # seconds that a copy waits for a writer


def back_up(database: Path, out: Path) -> None:
    """Copy one state of a service's SQLite database to a file, while the service runs."""
    if out.exists():
        raise UserError(f"{out} already exists: choose another file.")
    part = out.with_name(f"{out.name}.part")
    make_private(part)
    try:
        original = closing(sqlite3.connect(database, timeout=_PATIENCE))
        with original as source, closing(sqlite3.connect(part)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode=DELETE")  # one file holds all
        check(part)
        _sync(part)
        part.replace(out)
        _sync(out.parent)
    finally:
        part.unlink(missing_ok=True)


def restore(backup: Path, database: Path) -> Path | None:
    """Put a backup in the place of a database that nobody uses; what that is called from now on."""
    check(backup)
    part = database.with_name(f"{database.name}.part")
    make_private(part)
    shutil.copyfile(backup, part)
    _sync(part)
    aside = None
    if database.exists():
        _check_unused(database)  # its log is in the file then
        aside = database.with_name(f"{database.name}.{now():.0f}")
        database.replace(aside)
    part.replace(database)
    _sync(database.parent)
    return aside


def check(path: Path) -> None:
    """Read the whole of a service's database; one that is damaged, or not one, is an error."""
    if not path.is_file():
        raise UserError(f"{path} does not exist.")
    tables = "SELECT count(*) FROM sqlite_master WHERE name IN ('models', 'versions')"
    try:
        with closing(sqlite3.connect(path, timeout=_PATIENCE)) as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found == "ok" and connection.execute(tables).fetchone() != (2,):
                found = "its tables are missing"
    except sqlite3.DatabaseError as error:
        found = str(error)
    if found != "ok":
        raise UserError(
            f"{path} is damaged, or is not an eqsep database: {found}. Restore a backup with "
            f"eqsep serve restore, which keeps the damaged file: sqlite3 can often recover data."
        )


def _check_unused(database: Path) -> None:
    """Refuse a database that another process has open; end its log, so that one file is all."""
    try:
        with closing(sqlite3.connect(database, timeout=0.2)) as connection:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.OperationalError as error:
        raise UserError(f"{database} is in use ({error}): stop the service first.") from error


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, would outlast a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
