"""Notices: incidents, new kinds and drift, sent to a webhook and by e-mail."""

import hashlib
import hmac
import json
import logging
import secrets
import smtplib
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from email.message import EmailMessage
from typing import Annotated, Any, Literal, get_args
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pydantic import Field
from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from eqsep.errors import UserError
from eqsep.serve import schema
from eqsep.serve.alarms import Filter
from eqsep.serve.incidents import Folding
from eqsep.serve.ledger import Ledger
from eqsep.serve.people import audit_entry
from eqsep.serve.store import Store, now
from eqsep.serve.texts import Asked
from eqsep.serve.watching import Watching

INCIDENT, NEW_KIND, DRIFT, TEST = "incident", "new kind", "drift", "test"  # events
Event = Literal["incident", "new kind", "drift"]
WEBHOOK, EMAIL = "webhook", "email"
WAITING, SENT, FAILED = "waiting", "sent", "failed"
BACKOFF = (10.0, 60.0, 300.0, 1_800.0, 7_200.0, 21_600.0)  # seconds between attempts
SECONDS = 10.0  # that a receiver has to answer
SIGNATURE, DELIVERY = "X-Eqsep-Signature", "X-Eqsep-Delivery"
_SECONDS_BETWEEN_LOOKS = 10.0  # seconds between looks
_LEASE = 120.0  # seconds for which one process has a delivery
_LATEST = 86_400.0  # seconds: older incidents are not new
_MOST_IN_MAIL = 200  # events
_SCHEMES = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}
_CALLED = {
    "url": "webhook URL",
    "console": "address of this console",
    "mail_server": "e-mail server",
}
_WORDS = {
    INCIDENT: "{kind}: {counted}, highest score {score:.3f}",
    NEW_KIND: "new kind: {kind}",
    DRIFT: "drift: {message}",
    TEST: "a test",
}
Address = Annotated[str, Field(max_length=1_000)]
_LOG = logging.getLogger(__name__)


class Subscription(Asked):
    """Whom to tell what happens with a model; an empty address tells nobody."""

    url: Address = ""  # of the webhook
    events: tuple[Event, ...] = get_args(Event)
    min_score: Annotated[float, Field(allow_inf_nan=False)] = 0.0  # the highest of an incident
    mail_server: Address = ""  # smtp://HOST, smtps://USER:PASSWORD@HOST:PORT
    mail_from: Address = ""
    mail_to: Address = ""  # one or more, with commas between them
    hours: Annotated[float, Field(gt=0, le=168)] = 24.0  # between digests
    console: Address = ""  # where readers of e-mails reach the console; without it, no links

    def checked(self) -> "Subscription":
        """The same, or an error if it reaches nobody."""
        of_web = ("http", "https")
        for name, schemes in (("url", of_web), ("console", of_web), ("mail_server", _SCHEMES)):
            text = getattr(self, name)
            try:
                there = urlsplit(text)
                is_good = there.scheme in schemes and bool(there.hostname) and there.port != 0
            except ValueError:
                is_good = False
            if text and not (is_good and text.isprintable() and " " not in text):
                forms = " or ".join(f"{scheme}://HOST" for scheme in schemes)
                raise UserError(f"The {_CALLED[name]} must look like {forms}, got {text!r}.")
        mail = (self.mail_server, self.mail_from, self.mail_to)
        if any(mail) and not all(mail):
            raise UserError("E-mail needs a server, a sender and recipients: one of them is empty.")
        must_be = (
            "sender (From) must be an e-mail address",
            "recipients (To) must be e-mail addresses",
        )
        for rule, text in zip(must_be, mail[1:], strict=True):
            for one in text.split(",") if text else ():
                if not (one.isprintable() and "@" in one):
                    raise UserError(f"The {rule}, got {one.strip()!r}.")
        return self

    def tells_like(self, other: "Subscription") -> bool:
        """Whether the same people get the same notices."""
        return self == other.model_copy(update={"console": self.console})

    @property
    def channels(self) -> list[str]:
        """How to tell."""
        return [WEBHOOK] * bool(self.url) + [EMAIL] * bool(self.mail_server)


@dataclass(frozen=True)
class Delivery:
    """A notice that was sent, or waits."""

    id: int
    model: str
    channel: str  # {"webhook", "email"}
    event: str  # {"incident", "new kind", "drift", "test"}
    subject: str
    at: float  # of the event, in seconds since 1970
    state: str  # {"waiting", "sent", "failed"}
    due: float  # when it is tried next
    attempts: int
    error: str  # of the last attempt


def signature(secret: str, body: bytes, *, at: int) -> str:
    """What the header of a webhook says: receivers compute the same, and compare."""
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256)
    return f"t={at},v1={digest.hexdigest()}"


class _NoRedirect(HTTPRedirectHandler):
    """A receiver cannot send us to another address."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Notices:
    """Sends news to subscribers, once on each channel; what fails is tried again, ever later."""

    def __init__(self, store: Store, ledger: Ledger, folding: Folding, watching: Watching) -> None:
        self._store, self._ledger, self._folding, self._watching = store, ledger, folding, watching
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    def subscription(self, name: str) -> Subscription:
        """Whom a model tells; nobody at first."""
        table = schema.subscriptions
        found = self._store.first(select(table.c.settings).where(table.c.model == name))
        return Subscription() if found is None else Subscription(**found.settings)

    def subscribe(self, name: str, wanted: Subscription, *, by: str) -> str:
        """Tell others of what happens from now on; the secret that signs what a webhook gets.

        If nothing but the console's address has changed, they are told of what happened since.
        """
        wanted.checked()
        known = list(self._ledger.live_model(name).kinds)
        table, secret = schema.subscriptions, secrets.token_hex(32)
        values = {"settings": wanted.model_dump(mode="json"), "known": known, "at": now()}
        host = urlsplit(wanted.url).hostname  # the rest may hold a password
        with self._store.writing() as connection:
            mine = table.c.model == name
            kept = connection.execute(select(table).where(mine)).first()
            if kept is not None and kept.settings.get("url") == wanted.url:
                secret = kept.secret
            if kept is not None and Subscription(**kept.settings).tells_like(wanted):
                values |= {"known": kept.known, "at": kept.at}
            connection.execute(delete(table).where(mine))
            connection.execute(insert(table).values(model=name, secret=secret, **values))
            failed = update(schema.deliveries).filter_by(model=name, state=WAITING)
            failed = failed.where(schema.deliveries.c.attempts > 0)
            connection.execute(failed.values(due=now()))  # it may work now
            channels = {"webhook": host, "email": wanted.mail_to}
            connection.execute(audit_entry(by, "notices", model=name, **channels))
        return secret

    def deliveries(self, name: str, *, limit: int = 50) -> list[Delivery]:
        """The latest notices of a model, the newest first."""
        table = schema.deliveries
        return self._store.newest(Delivery, table, table.c.model == name, limit=limit)

    def test(self, name: str) -> None:
        """Queue a notice that says only that notices arrive."""
        wanted = self.subscription(name)
        if not wanted.channels:
            raise UserError("No channel is set up: set a webhook or an e-mail address first.")
        what = {"model": name, "event": TEST, "subject": secrets.token_hex(8)}
        for channel in wanted.channels:
            self._queue(what | {"channel": channel}, {}, due=now())

    def start(self) -> None:
        """Look and send from now on, in the background."""
        self._ends.clear()
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; what waits is sent after the next start."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join(timeout=1.0)  # it may wait for a receiver

    def _run(self) -> None:
        while not self._ends.wait(_SECONDS_BETWEEN_LOOKS):
            try:
                self.tick()
            except (SQLAlchemyError, UserError) as error:  # the next look may find a store again
                _LOG.warning("Notices are delayed: %s.", type(error).__name__)

    def tick(self, at: float | None = None) -> None:
        """Look for news and send what is due at a time, by default now."""
        at, table = now() if at is None else at, schema.deliveries
        for row in self._store.rows(select(schema.subscriptions)):
            self._look(row, Subscription(**row.settings), at)
        due = (table.c.state == WAITING) & (table.c.due <= at)
        waiting = self._store.rows(select(table).where(due).order_by(table.c.id).limit(1_000))
        mails: dict[str, list[Any]] = {}
        for row in waiting:
            if row.channel == EMAIL:
                mails.setdefault(row.model, []).append(row)
            else:
                self._send(row.model, WEBHOOK, [row], at)
        for name, rows in mails.items():
            self._send(name, EMAIL, rows[:_MOST_IN_MAIL], at)

    def _look(self, row: Any, wanted: Subscription, at: float) -> None:
        """Queue the news of a model."""
        due_at = dict.fromkeys(wanted.channels, at)
        if EMAIL in due_at:  # with the next digest
            seconds = 3_600 * wanted.hours
            due_at[EMAIL] = row.at + seconds * (int((at - row.at) // seconds) + 1)
        for event, subject, content in self._news(row, wanted, at) if due_at else ():
            what = {"model": row.model, "event": event, "subject": subject}
            for channel, due in due_at.items():
                self._queue(what | {"channel": channel}, content, due=due)

    def _news(
        self, row: Any, wanted: Subscription, at: float
    ) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Events since the subscription: what happened, what it is sent once for, and details."""
        name = row.model
        if INCIDENT in wanted.events:
            recent = Filter(since=max(row.at, at - _LATEST))
            for one in self._folding.incidents(name, recent, limit=10_000).incidents:
                if one.score >= wanted.min_score:
                    details = asdict(one) | {"n_alarms": len(one.alarms)}
                    yield INCIDENT, str(one.id), {**details, "alarms": one.alarms[:100]}
        if NEW_KIND in wanted.events:
            for kind in self._ledger.live_model(name).kinds:
                if kind not in row.known:
                    yield NEW_KIND, kind[:200], {"kind": kind}
        if DRIFT in wanted.events:
            watch = self._watching.status(name)
            if watch.drift_since is not None and watch.drift_since >= row.at:
                shifts = [column for column, _ in watch.shifts[:3]]
                content = {"since": watch.drift_since, "columns": shifts, "message": watch.banner}
                yield DRIFT, str(watch.version), content

    def _queue(self, what: dict[str, str], content: dict[str, Any], *, due: float) -> None:
        """Queue a notice, unless the same was queued before."""
        table = schema.deliveries
        if self._store.first(select(table.c.id).filter_by(**what)) is None:
            values = {"content": content, "at": now(), "due": due, "attempts": 0, "error": ""}
            with suppress(IntegrityError):  # another process was first
                self._store.write(insert(table).values(**what, state=WAITING, **values))

    def _send(self, name: str, channel: str, rows: Sequence[Any], at: float) -> None:
        """Send notices of a model together, and write down how that went."""
        table = schema.deliveries
        ids = [row.id for row in rows]
        mine = table.c.id.in_(ids) & (table.c.state == WAITING) & (table.c.due <= at)
        with self._store.writing() as connection:
            until = max(at, now()) + _LEASE  # many were sent since this look began
            taken = connection.execute(update(table).where(mine).values(due=until))
            if taken.rowcount != len(rows):
                connection.rollback()  # another process sends them
                return
        subscribed = schema.subscriptions
        row = self._store.first(select(subscribed).where(subscribed.c.model == name))
        wanted = Subscription() if row is None else Subscription(**row.settings)
        error = "The channel was removed."
        if channel in wanted.channels:
            send = self._post if channel == WEBHOOK else self._mail
            error = send(wanted, row.secret, rows)
        attempts = rows[0].attempts + 1
        is_over = attempts > len(BACKOFF) or channel not in wanted.channels
        state = SENT if not error else FAILED if is_over else WAITING
        values = {"state": state, "attempts": attempts, "error": error}
        if state == WAITING:
            values["due"] = at + BACKOFF[attempts - 1]
        self._store.write(update(table).where(table.c.id.in_(ids)).values(**values))

    def _post(self, wanted: Subscription, secret: str, rows: Sequence[Any]) -> str:
        """Post a notice to the webhook; what went wrong, or "" if nothing did."""
        (row,) = rows
        body = json.dumps(_payload(row), ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "eqsep", DELIVERY: str(row.id)}
        headers[SIGNATURE] = signature(secret, body, at=int(now()))
        request = Request(wanted.url, data=body, headers=headers, method="POST")
        try:
            with build_opener(_NoRedirect).open(request, timeout=SECONDS) as answer:
                return "" if 200 <= answer.status < 300 else f"answered {answer.status}"
        except HTTPError as error:
            error.close()
            return f"answered {error.code}"
        except (OSError, ValueError) as error:
            return _reason(error)

    def _mail(self, wanted: Subscription, _: str, rows: Sequence[Any]) -> str:
        """Send notices in one e-mail; what went wrong, or "" if nothing did."""
        message, server = EmailMessage(), urlsplit(wanted.mail_server)
        message["From"], message["To"] = wanted.mail_from, wanted.mail_to
        count = "1 notice" if len(rows) == 1 else f"{len(rows)} notices"
        message["Subject"] = f"eqsep: {count} for {rows[0].model}"
        message.set_content("".join(_line(_payload(row), wanted.console) for row in rows))
        host, port = server.hostname or "", server.port or _SCHEMES[server.scheme]
        secure = ssl.create_default_context()
        try:
            with (
                smtplib.SMTP_SSL(host, port, timeout=SECONDS, context=secure)
                if server.scheme == "smtps"
                else smtplib.SMTP(host, port, timeout=SECONDS) as connection
            ):
                if server.scheme == "smtp+starttls":
                    connection.starttls(context=secure)
                if server.username:
                    connection.login(unquote(server.username), unquote(server.password or ""))
                connection.send_message(message)
        except (OSError, smtplib.SMTPException, ValueError) as error:
            return _reason(error)
        return ""


def _reason(error: Exception) -> str:
    """Why a receiver was not reached, without what it has answered."""
    inner = getattr(error, "reason", error)
    return f"{type(inner).__name__}: {getattr(inner, 'strerror', None) or 'no answer'}"


def _line(notice: dict[str, Any], console: str) -> str:
    """A notice in an e-mail, with a link where the address of the console is known."""
    detail = notice["detail"]
    n, entity = detail.get("n_alarms"), detail.get("entity")
    counted = ("1 alarm" if n == 1 else f"{n} alarms") + (f" of {entity}" if entity else "")
    link = f"  {console.rstrip('/')}{notice['path']}" if console else ""
    return f"{_WORDS[notice['event']].format(counted=counted, **detail)}{link}\n"


def _payload(row: Any) -> dict[str, Any]:
    """What a receiver gets."""
    path = f"/m/{quote(row.model, safe='')}"
    paths = {INCIDENT: f"{path}/incidents/{row.subject}", DRIFT: f"{path}/watch"}
    plain = {"id": row.id, "event": row.event, "model": row.model, "at": row.at}
    return plain | {"path": paths.get(row.event, f"{path}/inbox"), "detail": row.content}
