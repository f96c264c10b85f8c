"""Who may do what: people with tokens and roles, and the log of what they did."""

import hashlib
import secrets
import threading
import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Insert, delete, insert, select

from eqsep.errors import UserError
from eqsep.serve import schema
from eqsep.serve.store import Missing, Store, now

ROLES = ("view", "judge", "admin")  # each may do what those before it may
_TRUSTED = 2.0  # seconds for which a token is not looked up again
_MOST = 1_000  # tokens that are remembered


@dataclass(frozen=True)
class Person:
    """Somebody, or a program, with a token."""

    name: str
    role: str  # {"view", "judge", "admin"}
    at: float  # since when, in seconds since 1970

    def may(self, role: str) -> bool:
        """Whether this person's role is the given one, or one that may do more."""
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True)
class Entry:
    """A line of the audit log: when, who, what, and to what."""

    at: float
    who: str
    action: str
    detail: dict[str, Any]


class People:
    """The people of a store. Of their tokens only hashes are kept.

    Examples
    --------
    >>> people = People(Store("sqlite://"))
    >>> token = people.issue("ada", "judge", by="eqsep serve")
    >>> people.check(token).name, people.check("guessed")
    ('ada', None)
    >>> [(entry.who, entry.action) for entry in people.audit()]
    [('eqsep serve', 'token issued')]
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[float, Person]] = {}
        self._lock = threading.Lock()

    def issue(self, name: str, role: str, *, by: str) -> str:
        """A new token of a person, who need not be known yet; an older one is void from now on."""
        if role not in ROLES:
            raise UserError(f"A role is one of {', '.join(ROLES)}, got {role!r}.")
        if not name.strip() or len(name) > 100 or not name.isprintable():
            raise UserError(f"A name has 1 to 100 printable characters, got {name!r}.")
        token = secrets.token_urlsafe(32)
        table = schema.people
        with self._store.writing() as connection:
            connection.execute(delete(table).where(table.c.name == name))
            connection.execute(
                insert(table).values(name=name, role=role, token=_hash(token), at=now())
            )
            connection.execute(noted(by, "token issued", name=name, role=role))
        self._forget_tokens()
        return token

    def known(self, token: str) -> Person | None:
        """Whose token this is, if that was looked up a moment ago."""
        with self._lock:
            at, person = self._known.get(_hash(token), (0.0, None))
        return person if time.monotonic() - at < _TRUSTED else None

    def check(self, token: str) -> Person | None:
        """Whose token this is, if anybody's."""
        person, key = self.known(token), _hash(token)
        if person is not None:
            return person
        row = self._store.first(select(schema.people).where(schema.people.c.token == key))
        with self._lock:
            self._known.pop(key, None)
            if row is None:
                return None
            if len(self._known) >= _MOST:
                self._known.clear()
            person = Person(row.name, row.role, row.at)
            self._known[key] = time.monotonic(), person
        return person

    def revoke(self, name: str, *, by: str) -> None:
        """Void a person's token."""
        with self._store.writing() as connection:
            gone = connection.execute(delete(schema.people).where(schema.people.c.name == name))
            if not gone.rowcount:
                raise Missing(f"There is nobody called {name!r}.")
            connection.execute(noted(by, "token revoked", name=name))
        self._forget_tokens()

    def all(self) -> list[Person]:
        """Everybody, by name."""
        query = select(schema.people).order_by(schema.people.c.name)
        return [Person(row.name, row.role, row.at) for row in self._store.rows(query)]

    def log(self, who: str, action: str, **detail: Any) -> None:
        """Write down who did what."""
        with self._store.writing() as connection:
            connection.execute(noted(who, action, **detail))

    def audit(self, *, limit: int = 100) -> list[Entry]:
        """The latest lines of the log, the newest first."""
        query = select(schema.audit).order_by(schema.audit.c.id.desc()).limit(limit)
        rows = self._store.rows(query)
        return [Entry(row.at, row.who, row.action, row.detail) for row in rows]

    def _forget_tokens(self) -> None:
        with self._lock:
            self._known.clear()


def noted(who: str, action: str, **detail: Any) -> Insert:
    """A line of the log, to be written in the transaction of what it tells of."""
    return insert(schema.audit).values(at=now(), who=who, action=action, detail=detail)


def _hash(token: str) -> str:
    """Of 32 random bytes: what is kept tells nobody the token."""
    return hashlib.sha256(token.encode()).hexdigest()
