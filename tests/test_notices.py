"""Notices: told once, signed, tried again when a receiver fails, and written down."""

import email
import json
import socket
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from consoled import consoled, pump_rows
from sqlalchemy import update

from eqsep.errors import UserError
from eqsep.serve import schema
from eqsep.serve.notices import BACKOFF, DELIVERY, SIGNATURE, Subscription, signature
from eqsep.serve.workspace import Workspace


@pytest.fixture
def ws(url):
    made = consoled(url).ws
    yield made
    made.close()


@contextmanager
def receiver(answers):
    """A server that answers posts with these states, then 200; it keeps what came."""
    came = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came.append((self.path, dict(self.headers), body))
            status = answers.pop(0) if answers else 200
            if status == "hangs":
                time.sleep(1.0)
                status = 200
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook", came
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def mail_server(*, refuses=0):
    """A server that takes mail, after it has refused some."""
    mails, left = [], [refuses]

    def talk(connection):
        with connection, connection.makefile("rwb") as stream:

            def say(text):
                stream.write(text + b"\r\n")
                stream.flush()

            say(b"220 here")
            for line in stream:
                word = line.split()[0].upper()
                if word == b"DATA":
                    say(b"354 go on")
                    lines = iter(lambda: stream.readline(), b".\r\n")
                    mails.append(email.message_from_bytes(b"".join(lines)))
                elif word == b"MAIL" and left[0]:
                    left[0] -= 1
                    say(b"451 not now")
                    continue
                elif word == b"QUIT":
                    say(b"221 bye")
                    return
                say(b"250 ok")

    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            talk(connection)

    threading.Thread(target=serve, daemon=True).start()
    yield f"smtp://127.0.0.1:{listener.getsockname()[1]}", mails
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def states(ws):
    return [(one.event, one.state, one.attempts) for one in ws.notices.deliveries("pumps")]


def test_an_incident_is_posted_once_signed_and_again_after_failures(ws):
    with receiver([500, 503]) as (url, came):
        secret = ws.notices.subscribe("pumps", Subscription(url=url), by="ada")
        ws.notices.tick()
        assert came == []  # what was before is no news
        numbers = [one.id for one in ws.intake.take("pumps", pump_rows((6, 0), 3, seed=4))]
        at = time.time()
        ws.notices.tick(at)
        assert states(ws) == [("incident", "waiting", 1)]
        assert ws.notices.deliveries("pumps")[0].error == "answered 500"
        ws.notices.tick(at + BACKOFF[0] - 1)  # not yet
        assert len(came) == 1
        ws.notices.tick(at + BACKOFF[0])
        ws.notices.tick(at + BACKOFF[0] + BACKOFF[1])
        assert states(ws) == [("incident", "sent", 3)]
        ws.intake.take("pumps", pump_rows((6, 0), 1, seed=5))  # one more of the same incident
        ws.notices.tick(at + 7_200)
    assert len(came) == 3
    path, headers, body = came[-1]
    told = json.loads(body)
    assert (path, told["event"], told["path"]) == (
        "/hook",
        "incident",
        f"/m/pumps/incidents/{numbers[0]}",
    )
    assert told["detail"]["alarms"] == numbers
    assert "heat" not in body.decode()  # no values of rows
    stamp = int(headers[SIGNATURE].split(",")[0].removeprefix("t="))
    assert headers[SIGNATURE] == signature(secret, body, at=stamp)
    assert signature("other", body, at=stamp) != headers[SIGNATURE]
    assert {headers[DELIVERY] for _, headers, _ in came} == {str(told["id"])}


def test_a_receiver_that_never_answers_is_given_up(ws, monkeypatch):
    monkeypatch.setattr("eqsep.serve.notices.SECONDS", 0.2)
    quick = ws.notices
    with receiver(["hangs"] + [302] * 9) as (url, came):
        quick.subscribe("pumps", Subscription(url=url), by="ada")
        quick.test("pumps")
        at = time.time()
        quick.tick(at)
        assert "TimeoutError" in quick.deliveries("pumps")[0].error
        for seconds in BACKOFF:
            at += seconds
            quick.tick(at)
        assert [path for path, *_ in came] == ["/hook"] * 7  # sent nowhere else
    assert states(ws) == [("test", "failed", 7)]
    assert quick.deliveries("pumps")[0].error == "answered 302"
    quick.subscribe("pumps", Subscription(url=url), by="ada")
    quick.test("pumps")
    quick.tick()
    assert quick.deliveries("pumps")[0].error == "ConnectionRefusedError: Connection refused"
    quick.subscribe("pumps", Subscription(url=url), by="ada")
    quick.tick()  # at once, as the address may be another
    assert states(ws) == [("test", "waiting", 2), ("test", "failed", 7)]


def test_a_digest_has_all_events_and_is_sent_again_later(ws):
    with mail_server(refuses=1) as (server, mails):
        wanted = {"mail_from": "eqsep@plant.example", "mail_to": "ada@plant.example"}
        at_home = "https://eqsep.plant.example/"
        told = Subscription(mail_server=server, min_score=0.2, hours=2, console=at_home, **wanted)
        ws.notices.subscribe("pumps", told, by="ada")
        at = time.time()
        rows = pump_rows((-7, -7), 6, seed=6, machine="m8")
        numbers = [one.id for one in ws.intake.take("pumps", rows)]
        ws.notices.tick(at)
        ws.verdicts.give(numbers, "true", kind="dry run", by="ada")
        ws.intake.take("pumps", pump_rows((6, 0), 2, seed=7, machine="m9"))
        ws.intake.take("pumps", [{"heat": 6.0, "load": 0.0}])  # of no machine
        ws.notices.tick(at + 60)
        assert {state for _, state, _ in states(ws)} == {"waiting"}
        ws.notices.tick(at + 7_300)  # refused
        assert {(state, n) for _, state, n in states(ws)} == {("waiting", 1)}
        ws.notices.tick(at + 7_300 + BACKOFF[0])
    assert {state for _, state, _ in states(ws)} == {"sent"}
    (mail,) = mails
    lines = mail.get_payload().splitlines()
    assert mail["Subject"] == "eqsep: 4 notices for pumps"
    assert sum("alarms of m" in line for line in lines) == 2
    assert sum("leak: 1 alarm, highest score" in line for line in lines) == 1
    assert "new kind: dry run  https://eqsep.plant.example/m/pumps/inbox" in lines


def test_an_email_has_no_links_where_the_console_is_not_known(ws):
    with mail_server() as (server, mails):
        wanted = Subscription(mail_server=server, mail_from="eqsep@plant", mail_to="ada@plant")
        ws.notices.subscribe("pumps", wanted, by="ada")
        ws.notices.test("pumps")
        ws.notices.tick()
    assert mails[0].get_payload().splitlines() == ["a test"]


def test_saving_the_same_again_loses_no_event(ws):
    with receiver([]) as (url, came):
        told = Subscription(url=url)
        ws.notices.subscribe("pumps", told, by="ada")
        number = ws.intake.take("pumps", pump_rows((6, 0), 1, seed=4))[0].id
        ws.verdicts.give([number], "true", kind="dry run", by="ada")
        ws.intake.take("pumps", pump_rows((-7, -7), 1, seed=5))
        moved = told.model_copy(update={"console": "https://elsewhere.example"})
        ws.notices.subscribe("pumps", moved, by="ada")
        ws.notices.tick()
        assert {json.loads(body)["event"] for *_, body in came} == {"incident", "new kind"}
        came.clear()
        ws.intake.take("pumps", pump_rows((6, 0), 1, seed=6, machine="m7"))
        ws.notices.subscribe("pumps", Subscription(url=url, min_score=0.1), by="ada")
        ws.notices.tick()
    assert came == []


def test_drift_is_told_and_what_is_not_wanted_is_not(ws):
    with receiver([]) as (url, came):
        ws.notices.subscribe("pumps", Subscription(url=url, events=("drift",)), by="ada")
        for seed in range(5):
            ws.intake.take("pumps", pump_rows((1.6, 0), 300, seed=seed, spread=1.0))
        assert ws.watching.status("pumps").evidence == "strong"
        ws.notices.tick()
        ws.notices.tick()
    (told,) = (json.loads(body) for _, _, body in came)
    assert (told["event"], told["path"]) == ("drift", "/m/pumps/watch")
    assert told["detail"]["columns"][0] == "heat"


def test_incidents_below_the_score_are_not_told(ws):
    with receiver([]) as (url, came):
        ws.notices.subscribe("pumps", Subscription(url=url, min_score=1e6), by="ada")
        ws.intake.take("pumps", pump_rows((6, 0), 2, seed=7))
        ws.notices.tick()
    assert came == []


def test_two_processes_tell_an_event_once(ws, url):
    with receiver([]) as (there, came):
        ws.notices.subscribe("pumps", Subscription(url=there), by="ada")
        other = Workspace(url)
        ws.intake.take("pumps", pump_rows((6, 0), 2, seed=7))
        threads = [threading.Thread(target=one.notices.tick) for one in (ws, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        other.close()
    assert len(came) == 1


def test_a_notice_that_one_process_sends_late_is_not_sent_by_another(ws, url):
    with receiver(["hangs"]) as (there, came):
        ws.notices.subscribe("pumps", Subscription(url=there), by="ada")
        ws.notices.test("pumps")
        other, later = Workspace(url), time.time()
        ws.store.write(update(schema.deliveries).values(due=later - 600))
        slow = threading.Thread(target=ws.notices.tick, args=[later - 500])  # a long look
        slow.start()
        while not came:
            time.sleep(0.01)
        other.notices.tick()
        slow.join()
        other.close()
    assert len(came) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "file:///etc/passwd"},
        {"console": "javascript:alert(1)"},
        {"url": "https://"},
        {"url": "http://[::1"},
        {"url": "http://host/a b"},
        {"mail_server": "http://host", "mail_from": "a@b", "mail_to": "a@b"},
        {"mail_server": "smtp://host", "mail_from": "a@b"},
        {"mail_server": "smtp://host", "mail_from": "a@b", "mail_to": "a@b\nBcc: c@d"},
    ],
)
def test_addresses_that_nobody_is_at_are_refused(ws, wrong):
    with pytest.raises(UserError):
        ws.notices.subscribe("pumps", Subscription(**wrong), by="ada")
    assert ws.notices.subscription("pumps") == Subscription()


def test_the_secret_changes_with_the_address_alone(ws):
    first = ws.notices.subscribe("pumps", Subscription(url="http://a.example/"), by="ada")
    same = Subscription(url="http://a.example/", min_score=2.0)
    assert ws.notices.subscribe("pumps", same, by="ada") == first
    assert ws.notices.subscribe("pumps", Subscription(url="http://b.example/"), by="ada") != first
    with pytest.raises(UserError, match="No channel is set up"):
        ws.notices.test("hostile")


def test_a_signature_is_that_of_other_programs():
    """By openssl: printf '1.{}' | openssl dgst -sha256 -hmac secret."""
    assert signature("secret", b"{}", at=1).startswith("t=1,v1=1122767b1")
