"""SQLite on a disk that remembers writes and syncs, to see what a power cut would have left."""

import random
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

VFS = "recorded"


@dataclass
class Disk:
    """What was written, truncated, deleted and synced, in order; by the name of the file."""

    steps: list[tuple[str, str, int, bytes]] = field(default_factory=list)

    def note(self, what: str, path: str, at: int = 0, data: bytes = b"") -> None:
        self.steps.append((what, Path(path).name, at, data))

    @property
    def syncs(self) -> list[int]:
        """The places of the syncs among the steps."""
        return [i for i, step in enumerate(self.steps) if step[0] == "sync"]

    def left(self, before: dict[str, bytes], end: int, rng: random.Random) -> dict[str, bytes]:
        """The files if power is cut before step `end`: of what was not synced, any part."""
        there = {name: bytearray(content) for name, content in before.items()}
        unsynced = defaultdict(list)
        for step in self.steps[:end]:
            what, name, _, _ = step
            if what == "sync":
                for one in unsynced.pop(name, []):
                    _do(there, one)
            else:
                unsynced[name].append(step)
        share = rng.choice([0.0, 0.5, 1.0])
        for steps in unsynced.values():
            for step in steps:
                if rng.random() < share:
                    _do(there, step)
        return {name: bytes(content) for name, content in there.items()}


def _do(there: dict[str, bytearray], step: tuple[str, str, int, bytes]) -> None:
    what, name, at, data = step
    if what == "delete":
        there.pop(name, None)
        return
    content = there.setdefault(name, bytearray())
    if what == "truncate":
        del content[at:]
    content.extend(bytes(max(at - len(content), 0)))
    content[at : at + len(data)] = data


class _File(apsw.VFSFile):
    def __init__(self, name: Any, flags: Any, disk: Disk) -> None:
        self.path = name.filename() if isinstance(name, apsw.URIFilename) else name or "temporary"
        self.disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self.disk.note("write", self.path, offset, bytes(data))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self.disk.note("truncate", self.path, newsize)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self.disk.note("sync", self.path)
        super().xSync(flags)


class Recorder(apsw.VFS):
    """A file system of SQLite that notes what it does on a disk."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        super().__init__(VFS, "")

    def xOpen(self, name: Any, flags: Any) -> _File:
        return _File(name, flags, self.disk)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.disk.note("delete", filename)
        super().xDelete(filename, syncdir)


# ---- as much of Python's sqlite3 as SQLAlchemy asks for, on top of apsw


class Driver:
    """The module `sqlite3` with connections that go through the recorder."""

    paramstyle = "qmark"
    sqlite_version_info = tuple(map(int, apsw.sqlite_lib_version().split(".")))
    PARSE_DECLTYPES = PARSE_COLNAMES = 0
    Error = DatabaseError = OperationalError = apsw.Error
    IntegrityError = apsw.ConstraintError
    ProgrammingError = InterfaceError = NotSupportedError = InternalError = DataError = apsw.Error
    Binary = bytes

    @staticmethod
    def connect(database: str, **_: Any) -> "_Connection":
        return _Connection(database)


class _Connection:
    isolation_level = None

    def __init__(self, database: str) -> None:
        self._inner = apsw.Connection(database, vfs=VFS)
        self._inner.set_busy_timeout(30_000)

    def cursor(self) -> "_Cursor":
        return _Cursor(self._inner)

    def execute(self, sql: str) -> Any:
        return self._inner.execute(sql).fetchall()

    def create_function(self, *_: Any, **__: Any) -> None:
        """Regular expressions, which no query here has."""

    def commit(self) -> None:
        if self._inner.in_transaction:
            self._inner.execute("COMMIT")

    def rollback(self) -> None:
        if self._inner.in_transaction:
            self._inner.execute("ROLLBACK")

    def close(self) -> None:
        self._inner.close()


class _Cursor:
    arraysize = 1

    def __init__(self, inner: apsw.Connection) -> None:
        self._inner = inner
        self._rows: list[Any] = []
        self.description: Any = None
        self.rowcount, self.lastrowid = -1, None

    def execute(self, sql: str, values: Any = ()) -> "_Cursor":
        before = self._inner.total_changes()
        cursor = self._inner.cursor()
        described: list[Any] = []

        def note(found: Any, _: str, __: Any) -> bool:
            described[:] = found.get_description()
            return True

        cursor.exec_trace = note
        cursor.execute(sql, tuple(values))
        self._rows = cursor.fetchall()
        self.description = [(name, *[None] * 6) for name, _ in described] or None
        self.rowcount = self._inner.total_changes() - before
        self.lastrowid = self._inner.last_insert_rowid()
        return self

    def executemany(self, sql: str, many: Any) -> "_Cursor":
        for values in many:
            self.execute(sql, values)
        return self

    def fetchone(self) -> Any:
        return self._rows.pop(0) if self._rows else None

    def fetchall(self) -> list[Any]:
        rows, self._rows = self._rows, []
        return rows

    def fetchmany(self, size: int = 1) -> list[Any]:
        rows, self._rows = self._rows[:size], self._rows[size:]
        return rows

    def close(self) -> None:
        self._rows = []
