"""The store: one database, in transactions that are done whole or not at all."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields
from pathlib import Path
from time import time as now  # seconds since 1970
from typing import Any, TypeVar

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import exc
from sqlalchemy.sql.dml import UpdateBase

from eqsep.errors import MissingExtraError, UserError
from eqsep.serve import schema

_PATIENCE = "30"  # seconds that a writer waits for another one
_ROOM = 2**20  # bytes that must fit before a store that was full counts as writable
_OUR_FAULTS = (exc.DataError, exc.IntegrityError, exc.NotSupportedError, exc.ProgrammingError)
# A float comes back with the same bits, and nothing is lost in silence.
_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
Record = TypeVar("Record")


class Missing(UserError):
    """What was asked for is not in the store."""


class Conflict(UserError):
    """Other writers were first, again and again."""


class Unavailable(UserError):
    """The database cannot be reached or written now: it is locked, full or gone."""


class Store:
    """A database, by its URL for SQLAlchemy; an empty one gets the tables of `schema`."""

    def __init__(self, url: str) -> None:
        self.engine = _engine(url)
        self._could_write = True  # when it was last tried
        self._writer = threading.Lock()
        _migrate(self.engine)

    @contextmanager
    def writing(self, *, synced: bool = True) -> Iterator[sa.Connection]:
        """A transaction; a power cut can undo those not `synced` at the end, but no part of one."""
        with self._turn(), self._connected(synced=synced) as connection, connection.begin():
            yield connection
        self._could_write = True

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for other writers of this process: SQLite would sleep, longer each time."""
        if self.engine.dialect.name != "sqlite":
            yield
            return
        if not self._writer.acquire(timeout=float(_PATIENCE)):
            raise Unavailable("The database is unavailable: others are writing.")
        try:
            yield
        finally:
            self._writer.release()

    def reading(self) -> AbstractContextManager[sa.Connection]:
        """A connection that sees one state of the store."""
        return self._connected(reads=True)

    def check(self) -> None:
        """Raise `Unavailable` unless the store can be read, and written if it last could not be."""
        with self.reading() as connection:
            connection.execute(sa.select(schema.models.c.name).limit(1))
        if not self._could_write:
            table, nobody = schema.monitors, {"model": "", "worker": ""}
            full = sa.insert(table).values(**nobody, at=now(), state=bytes(_ROOM))
            self.write(full, sa.delete(table).filter_by(**nobody))

    @contextmanager
    def _connected(self, **options: bool) -> Iterator[sa.Connection]:
        try:
            with self.engine.connect().execution_options(**options) as connection:
                yield connection
        except _OUR_FAULTS:
            raise
        except (exc.DatabaseError, exc.InterfaceError, exc.TimeoutError) as error:
            self._could_write = self._could_write and options.get("reads", False)
            reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
            raise Unavailable(f"The database is unavailable: {reason.rstrip('.')}.") from error

    def write(self, *statements: UpdateBase) -> int:
        """Execute statements in one transaction; how many rows the last one changed."""
        with self.writing() as connection:
            return [connection.execute(one).rowcount for one in statements][-1]

    def rows(self, query: sa.Select[Any]) -> list[Any]:
        """The rows that a query selects."""
        with self.reading() as connection:
            return list(connection.execute(query).all())

    def first(self, query: sa.Select[Any]) -> Any:
        """The first of them, or None."""
        with self.reading() as connection:
            return connection.execute(query).first()

    def newest(
        self,
        record: type[Record],
        table: sa.Table,
        *where: sa.ColumnElement[bool],
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[Record]:
        """The rows of a table that meet all conditions, as records, the newest first."""
        query = sa.select(*columns_of(record, table)).where(*where).order_by(table.c.id.desc())
        return [record(*row) for row in self.rows(query.limit(limit).offset(offset))]

    def scrub(self) -> None:
        """Remove what was deleted from SQLite's log; in its pages, zeros have replaced it."""
        if self.engine.dialect.name == "sqlite":
            with self.engine.connect() as connection:
                raw: Any = connection.connection.dbapi_connection
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Give connections back."""
        self.engine.dispose()


def make_private(path: Path) -> None:
    """Make an empty file, if there is none, that only its owner can read."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    path.chmod(0o600)


def columns_of(record: Any, table: sa.Table, prefix: str = "") -> list[sa.ColumnElement[Any]]:
    """The columns of a table that have the names of a dataclass's fields, in their order."""
    return [table.c[prefix + field.name] for field in fields(record) if field.compare]


def _engine(url: str) -> sa.Engine:
    try:
        parsed = sa.make_url(url)
        # A value of a row must not get into a log by the message of an error.
        options: dict[str, Any] = {"json_serializer": _JSON.encode, "hide_parameters": True}
        if parsed.get_backend_name() == "sqlite":
            parsed = parsed.set(query={"timeout": _PATIENCE, **parsed.query})
            options["connect_args"] = {"check_same_thread": False}
            if parsed.database in (None, "", ":memory:"):
                # One connection is the database: threads wait for it.
                options |= {"poolclass": sa.QueuePool, "pool_size": 1, "max_overflow": 0}
            else:
                make_private(Path(parsed.database))  # SQLite's other files get the same mode
        else:
            options["pool_pre_ping"] = True  # a database that was restarted closes connections
        engine = sa.create_engine(parsed, **options)
    except (exc.ArgumentError, exc.NoSuchModuleError) as error:
        raise UserError(
            f"{url!r} is not the URL of a database: expected sqlite:///FILE or "
            f"postgresql+psycopg://USER:PASSWORD@HOST/NAME."
        ) from error
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f'{url.split(":")[0]} needs the package {error.name}: pip install "eqsep[team]".'
        ) from error
    except OSError as error:
        raise UserError(
            f"Cannot use the database {parsed.database}: {error.strerror}. Expected a file in a "
            f"writable folder."
        ) from error
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _set_up_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin when we say so
    for setting in ("journal_mode=WAL", "secure_delete=ON"):
        connection.execute(f"PRAGMA {setting}")


def _begin_sqlite(connection: sa.Connection) -> None:
    """Begin as a writer where it may write: two that have read cannot both go on to write."""
    options = connection.get_execution_options()
    if not options.get("reads", False):
        synced = "FULL" if options.get("synced", True) else "NORMAL"
        connection.exec_driver_sql(f"PRAGMA synchronous={synced}")
    connection.exec_driver_sql("BEGIN" if options.get("reads", False) else "BEGIN IMMEDIATE")


def _migrate(engine: sa.Engine) -> None:
    """Bring the tables to their present form, in one transaction."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    try:
        with engine.begin() as connection:
            if engine.dialect.name == "postgresql":  # workers that start together go one by one
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7236471)")
            config.attributes["connection"] = connection
            if sa.inspect(connection).has_table(schema.models.name):
                command.upgrade(config, "head")
            else:
                schema.metadata.create_all(connection)
                command.stamp(config, "head")
    except CommandError as error:  # a revision that is not among the migrations
        engine.dispose()
        raise UserError(
            f"A newer eqsep wrote the database {engine.url.render_as_string()}: {error}. Install "
            f"that eqsep, or use another database."
        ) from error
    except exc.DBAPIError as error:
        raise UserError(
            f"Cannot use the database {engine.url.render_as_string()}: {error.orig}. Expected a "
            f"writable one, empty or with eqsep's tables."
        ) from error
