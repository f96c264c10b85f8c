"""Who may do what: people with tokens and roles, and the audit log."""

import hashlib
import secrets
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
    """An entry of the audit log."""

    at: float
    who: str
    action: str
    detail: dict[str, Any]


class People:
    """The people of a store. Only hashes of their tokens are kept."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[float, Person]] = {}  # by hash, with the time of the look-up

    def issue(self, name: str, role: str, *, by: str) -> str:
        """A new token for a person, known or not; an older one is void from now on."""
        if role not in ROLES:
            raise UserError(f"A role is one of {', '.join(ROLES)}, got {role!r}.")
        if not name.strip() or len(name) > 100 or not name.isprintable():
            raise UserError(f"A name has 1 to 100 printable characters, got {name!r}.")
        token, table = secrets.token_urlsafe(32), schema.people
        person = {"name": name, "role": role, "token": _hash(token), "at": now()}
        with self._store.writing() as connection:
            connection.execute(delete(table).where(table.c.name == name))
            connection.execute(insert(table).values(**person))
            connection.execute(audit_entry(by, "token issued", name=name, role=role))
        self._known.clear()
        return token

    def known(self, token: str) -> Person | None:
        """Whose token this is, if that was looked up a moment ago."""
        at, person = self._known.get(_hash(token), (0.0, None))
        return person if time.monotonic() - at < _TRUSTED else None

    def check(self, token: str) -> Person | None:
        """Whose token this is, if anybody's."""
        person, key, table = self.known(token), _hash(token), schema.people
        if person is None:
            columns = (table.c.name, table.c.role, table.c.at)
            row = self._store.first(select(*columns).where(table.c.token == key))
            if row is None:
                return None
            if len(self._known) >= _MOST:
                self._known.clear()
            person = Person(*row)
            self._known[key] = time.monotonic(), person
        return person

    def revoke(self, name: str, *, by: str) -> None:
        """Void a person's token."""
        with self._store.writing() as connection:
            gone = connection.execute(delete(schema.people).where(schema.people.c.name == name))
            if not gone.rowcount:
                raise Missing(f"There is nobody called {name!r}.")
            connection.execute(audit_entry(by, "token revoked", name=name))
        self._known.clear()

    def all(self) -> list[Person]:
        """Everybody, by name."""
        table = schema.people.c
        query = select(table.name, table.role, table.at).order_by(table.name)
        return [Person(*row) for row in self._store.rows(query)]

    def log(self, who: str, action: str, **detail: Any) -> None:
        """Write down who did what."""
        with self._store.writing() as connection:
            connection.execute(audit_entry(who, action, **detail))

    def audit(self, *, limit: int = 100) -> list[Entry]:
        """The latest entries of the audit log, the newest first."""
        table = schema.audit.c
        query = select(table.at, table.who, table.action, table.detail).order_by(table.id.desc())
        return [Entry(*row) for row in self._store.rows(query.limit(limit))]


def audit_entry(who: str, action: str, **detail: Any) -> Insert:
    """An entry of the audit log, to be written in the same transaction as the action."""
    return insert(schema.audit).values(at=now(), who=who, action=action, detail=detail)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
