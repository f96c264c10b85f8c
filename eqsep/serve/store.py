"""The store: one database, in transactions that are done whole or not at all."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time as now  # seconds since 1970
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import (
    Connection,
    Engine,
    Select,
    StaticPool,
    create_engine,
    delete,
    event,
    insert,
    inspect,
    select,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NoSuchModuleError,
    NotSupportedError,
    ProgrammingError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from eqsep.errors import MissingExtraError, UserError
from eqsep.serve import schema

__all__ = ["Conflict", "Missing", "Store", "Unavailable", "make_private", "now"]

_PATIENCE = "30"  # seconds that a writer waits for another one
_ROOM = 2**20  # bytes that must fit before a store that was full counts as writable
_OUR_FAULTS = (DataError, IntegrityError, NotSupportedError, ProgrammingError)


class Missing(UserError):
    """What was asked for is not in the store."""


class Conflict(UserError):
    """Other writers were first, again and again."""


class Unavailable(UserError):
    """The database cannot be reached or written now: it is locked, full or gone."""


class Store:
    """A database with the tables of `eqsep.serve.schema`.

    The URL is one of SQLAlchemy: "sqlite:///folder/eqsep.db", "postgresql+psycopg://host/name". A
    database that is empty or of an older version gets the tables of this one.
    """

    def __init__(self, url: str) -> None:
        self.engine = _engine(url)
        self._could_write = True  # when it was last tried
        _migrate(self.engine)

    @contextmanager
    def writing(self, *, synced: bool = True) -> Iterator[Connection]:
        """A transaction: all that is done in it is kept once it ends, or nothing is.

        A power cut can undo the last transactions that are not `synced`, but no part of one.
        """
        with self._connected(synced=synced) as connection, connection.begin():
            yield connection
        self._could_write = True

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the store."""
        with self._connected(reads=True) as connection:
            yield connection

    def check(self) -> None:
        """Raise `Unavailable` unless the store can be read, and written if it last could not be."""
        with self.reading() as connection:
            connection.execute(select(schema.models.c.name).limit(1))
        if not self._could_write:
            table = schema.monitors
            nobody = {"model": "", "worker": ""}
            with self.writing() as connection:
                connection.execute(insert(table).values(**nobody, at=now(), state=bytes(_ROOM)))
                connection.execute(delete(table).filter_by(**nobody))

    @contextmanager
    def _connected(self, **options: bool) -> Iterator[Connection]:
        try:
            with self.engine.connect().execution_options(**options) as connection:
                yield connection
        except _OUR_FAULTS:
            raise
        except (DatabaseError, InterfaceError, PoolTimeout) as error:
            self._could_write = self._could_write and options.get("reads", False)
            reason = getattr(error, "orig", None) or error
            raise Unavailable(f"The database cannot be used now: {_first_line(reason)}") from error

    def rows(self, query: Select[Any]) -> list[Any]:
        """The rows that a query selects."""
        with self.reading() as connection:
            return list(connection.execute(query).all())

    def first(self, query: Select[Any]) -> Any:
        """The first of them, or None."""
        with self.reading() as connection:
            return connection.execute(query).first()

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


def _first_line(reason: object) -> str:
    return str(reason).strip().partition("\n")[0].rstrip(".") + "."


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
        # A value of a row must not get into a log by the message of an error.
        options: dict[str, Any] = {"json_serializer": _json, "hide_parameters": True}
        if parsed.get_backend_name() == "sqlite":
            parsed = parsed.set(query={"timeout": _PATIENCE, **parsed.query})
            options["connect_args"] = {"check_same_thread": False}
            if parsed.database in (None, "", ":memory:"):
                options["poolclass"] = StaticPool  # one connection: it is the database
            else:
                make_private(Path(parsed.database))  # SQLite's other files get the same mode
        else:
            options["pool_pre_ping"] = True  # a database that was restarted closes connections
        engine = create_engine(parsed, **options)
    except (ArgumentError, NoSuchModuleError) as error:
        raise UserError(
            f"No database is at {url!r}: expected sqlite:///FILE or "
            f"postgresql+psycopg://USER:PASSWORD@HOST/NAME."
        ) from error
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f'{url.split(":")[0]} needs the package {error.name}: pip install "eqsep[team]".'
        ) from error
    except OSError as error:
        raise UserError(
            f"The database {parsed.database} cannot be used: {error.strerror}. Expected a file in "
            f"a folder that can be written."
        ) from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _json(value: Any) -> str:
    """JSON in which a float comes back with the same bits, and nothing is lost in silence."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _set_up_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin when we say so
    for setting in ("journal_mode=WAL", "secure_delete=ON"):
        connection.execute(f"PRAGMA {setting}")


def _begin_sqlite(connection: Connection) -> None:
    """Begin as a writer where it may write: two that have read cannot both go on to write."""
    options = connection.get_execution_options()
    if options.get("reads", False):
        connection.exec_driver_sql("BEGIN")
        return
    synced = options.get("synced", True)
    connection.exec_driver_sql(f"PRAGMA synchronous={'FULL' if synced else 'NORMAL'}")
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _migrate(engine: Engine) -> None:
    """Bring the tables to their present form, in one transaction."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    try:
        with engine.begin() as connection:
            if engine.dialect.name == "postgresql":  # workers that start together go one by one
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7236471)")
            config.attributes["connection"] = connection
            if inspect(connection).has_table(schema.models.name):
                command.upgrade(config, "head")
            else:
                schema.metadata.create_all(connection)
                command.stamp(config, "head")
    except DBAPIError as error:
        raise UserError(
            f"The database {engine.url.render_as_string()} cannot be used: {error.orig}. Expected "
            f"one that can be written, empty or with the tables of eqsep."
        ) from error
