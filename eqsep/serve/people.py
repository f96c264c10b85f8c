"""Who may do what: people with tokens, roles and sessions, and the audit log."""

import hashlib
import math
import secrets
import time
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection, Insert, Select, delete, insert, select, update

from eqsep.errors import UserError
from eqsep.serve import schema, texts
from eqsep.serve.store import Missing, Store, columns_of, now

ROLES = ("view", "judge", "admin")  # each may do what those before it may
_ADMIN = ROLES[-1]
_TRUSTED = 2.0  # seconds for which a token is not looked up again
_MAX_TOKENS_CACHED = 1_000  # tokens that are remembered
_DAY = 86_400.0  # seconds
_MOST_DAYS = 3650
_SESSION = 12 * 3600.0  # seconds that a session lasts
_RENEWED = 3600.0  # seconds after which a session gets another cookie
_GRACE = 60.0  # seconds for which the cookie before is taken too
Found = TypeVar("Found")


@dataclass(frozen=True)
class Person:
    """Somebody, or a program, with a token."""

    name: str
    role: str  # {"view", "judge", "admin"}
    at: float  # since when, in seconds since 1970
    expires: float | None = None  # until when the token lets in; None: until it is revoked

    def may(self, role: str) -> bool:
        """Whether this person's role is the given one, or one that may do more."""
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True)
class Session:
    """A browser that somebody has signed in with."""

    id: int
    name: str
    at: float
    expires: float


@dataclass(frozen=True)
class SignedIn:
    """A session as a request has found it: who it is of, and what its forms must send."""

    person: Person
    id: int
    secret: str
    is_old: bool  # whether it is time for another cookie


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
        # By what it is and the hash of a token or cookie, with the time of the look-up.
        self._kept: dict[tuple[type, str], tuple[float, Any]] = {}

    def issue(self, name: str, role: str, *, by: str, days: float | None = None) -> str:
        """A new token for a person, known or not; an older one is void, with its sessions.

        The last admin stays one.
        """
        if role not in ROLES:
            raise UserError(f"role must be one of {', '.join(ROLES)}, got {role!r}.")
        name = texts.name(name)
        if days is not None and not 0 < days <= _MOST_DAYS:
            raise UserError(
                f"Days must be more than 0 and at most {_MOST_DAYS:,}, or empty for no end."
            )
        token, table = secrets.token_urlsafe(32), schema.people
        expires = None if days is None else now() + days * _DAY
        person = {"name": name, "role": role, "token": _hash(token), "at": now()}
        more = {} if days is None else {"days": days}
        with self._store.writing() as connection:
            if role != _ADMIN:
                _check_others(connection, name)
            connection.execute(delete(table).where(table.c.name == name))
            connection.execute(delete(schema.sessions).where(schema.sessions.c.name == name))
            connection.execute(insert(table).values(expires=expires, **person))
            connection.execute(audit_entry(by, "token issued", name=name, role=role, **more))
        self._kept.clear()
        return token

    def known(self, token: str) -> Person | None:
        """Whose token this is, if that was looked up a moment ago."""
        return self._recent(Person, token)

    def _recent(self, kind: type[Found], token: str) -> Found | None:
        at, found = self._kept.get((kind, _hash(token)), (-math.inf, None))
        return found if time.monotonic() - at < _TRUSTED else None

    def _keep(self, token: str, found: Found) -> Found:
        if len(self._kept) >= _MAX_TOKENS_CACHED:
            self._kept.clear()
        self._kept[type(found), _hash(token)] = time.monotonic(), found
        return found

    def check(self, token: str) -> Person | None:
        """Whose token this is, if anybody's."""
        person = self.known(token)
        if person is None:
            row = self._store.first(_people().where(schema.people.c.token == _hash(token)))
            person = None if row is None else self._keep(token, Person(*row))
        return person

    def revoke(self, name: str, *, by: str) -> None:
        """Void a person's token, unless it is that of the last admin."""
        with self._store.writing() as connection:
            _check_others(connection, name)
            gone = connection.execute(delete(schema.people).where(schema.people.c.name == name))
            if not gone.rowcount:
                raise Missing(f"{name!r} does not have a token.")
            connection.execute(delete(schema.sessions).where(schema.sessions.c.name == name))
            connection.execute(audit_entry(by, "token revoked", name=name))
        self._kept.clear()

    def sign_in(self, person: Person, *, address: str) -> str:
        """Begin a session; what its cookie holds."""
        cookie, secret = secrets.token_urlsafe(32), secrets.token_hex(32)
        ends = min(now() + _SESSION, person.expires or math.inf)
        times = {"at": now(), "renewed": now(), "expires": ends}
        begun = {"name": person.name, "key": _hash(cookie), "secret": secret} | times
        self._store.write(
            delete(schema.sessions).where(schema.sessions.c.expires < now()),
            insert(schema.sessions).values(**begun),
            audit_entry(person.name, "login", address=address),
        )
        return cookie

    def signed_in(self, cookie: str) -> SignedIn | None:
        """The session of a cookie, if it lasts and its person's token does."""
        table, key, people = schema.sessions, _hash(cookie), schema.people
        found = self._recent(SignedIn, cookie)
        if found is not None:
            return found
        is_former = (table.c.former == key) & (table.c.renewed > now() - _GRACE)
        query = _people().add_columns(table.c.id, table.c.secret, table.c.key, table.c.renewed)
        query = query.join(table, table.c.name == people.c.name).where(table.c.expires > now())
        row = self._store.first(query.where((table.c.key == key) | is_former))
        if row is None:
            return None
        is_old = row.key == key and row.renewed < now() - _RENEWED
        return self._keep(cookie, SignedIn(Person(*row[:4]), row.id, row.secret, is_old))

    def renew(self, cookie: str) -> str | None:
        """Another cookie for the same session; None if another request was first."""
        table, renewed = schema.sessions, secrets.token_urlsafe(32)
        values = {"key": _hash(renewed), "former": _hash(cookie), "renewed": now()}
        mine = (table.c.key == _hash(cookie)) & (table.c.renewed < now() - _RENEWED)
        changed = self._store.write(update(table).where(mine).values(**values))
        self._kept.clear()
        return renewed if changed else None

    def sign_out(self, session: int, *, by: str) -> None:
        """End a session, one's own or that of somebody else."""
        table = schema.sessions
        with self._store.writing() as connection:
            whose = connection.execute(select(table.c.name).where(table.c.id == session)).scalar()
            if whose is None:
                raise Missing(f"Session {session} does not exist.")
            connection.execute(delete(table).where(table.c.id == session))
            action, detail = ("logout", {}) if whose == by else ("session ended", {"name": whose})
            connection.execute(audit_entry(by, action, **detail))
        self._kept.clear()

    def sessions(self) -> list[Session]:
        """All sessions that last, the newest first."""
        table = schema.sessions
        return self._store.newest(Session, table, table.c.expires > now())

    def all(self) -> list[Person]:
        """Everybody whose token lets in, by name."""
        return [Person(*row) for row in self._store.rows(_people().order_by(schema.people.c.name))]

    def holder(self, name: str) -> Person | None:
        """The person of this name, if their token lets in."""
        return next((one for one in self.all() if one.name == texts.name(name)), None)

    def check_role(self, name: str, role: str) -> None:
        """Refuse a role for a person if nobody would be an admin any more."""
        if role != _ADMIN:
            _refuse_last(name, {one.name for one in self.all() if one.role == _ADMIN})

    def log(self, who: str, action: str, **detail: Any) -> None:
        """Write down who did what."""
        self._store.write(audit_entry(who, action, **detail))

    def audit(self, *, limit: int = 100) -> list[Entry]:
        """The latest entries of the audit log, the newest first."""
        return self._store.newest(Entry, schema.audit, limit=limit)


def audit_entry(who: str, action: str, **detail: Any) -> Insert:
    """An entry of the audit log, to be written in the same transaction as the action."""
    return insert(schema.audit).values(at=now(), who=who, action=action, detail=detail)


def _people() -> Select[Any]:
    """Everybody whose token has not expired."""
    expires = schema.people.c.expires
    return select(*columns_of(Person, schema.people)).where((expires > now()) | expires.is_(None))


def _check_others(connection: Connection, name: str) -> None:
    """Refuse to take the admin role from a person if nobody else has it."""
    people = connection.execute(_people().with_for_update()).all()
    _refuse_last(name, {person.name for person in people if person.role == _ADMIN})


def _refuse_last(name: str, admins: set[str]) -> None:
    if admins == {name}:
        raise UserError(f"{name} is the last admin: give somebody else the role admin first.")


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
