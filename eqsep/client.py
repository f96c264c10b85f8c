"""A client of the service, with the standard library alone.

Client("http://127.0.0.1:8000", token).score("payments", [{"amount": 12.5, "country": "NO"}])
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, Request, build_opener

from eqsep.errors import UserError

Row = Mapping[str, Any]
Json = Any  # as `json` reads it: the API's own words, which /openapi.json describes


class ServiceError(UserError):
    """The service refused a request. `status` is the HTTP status, or 0 if it was not reached."""

    def __init__(self, message: str = "", *, status: int = 0, **rest: Any) -> None:
        super().__init__(message, **rest)
        self.status = status


@dataclass(frozen=True)
class Answer:
    """The answer for a row. `error` says why it has no score; `id` is its number if stored."""

    score: float | None = None
    p_value: float | None = None
    alarm: bool | None = None
    kind: str | None = None
    kind_probability: float | None = None
    version: int | None = None
    id: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class Client:
    """A service at an address, with the token of a person or a program.

    Parameters
    ----------
    url : str
    token : str
        The token that `eqsep serve token NAME` prints.
    timeout : float, default=30.0
        Seconds to wait for an answer.

    Examples
    --------
    >>> Client("http://127.0.0.1:9", "a token").models()
    Traceback (most recent call last):
    ...
    eqsep.client.ServiceError: http://127.0.0.1:9 cannot be reached: ...
    """

    url: str
    token: str
    timeout: float = 30.0

    def score(self, model: str, rows: Sequence[Row], *, keep: bool = True) -> list[Answer]:
        """An answer for each row; alarms are stored for the console unless `keep` is False."""
        query = "" if keep else "?keep=false"
        path = f"/models/{quote(model, '')}/score{query}"
        body = self._ask("POST", path, {"rows": list(rows)}, also=422)
        if "answers" not in body:
            raise ServiceError(str(body.get("error")), status=422)
        errors = {error["row"]: error["error"] for error in body["errors"]}
        answers = enumerate(body["answers"])
        return [Answer(error=errors[i]) if one is None else Answer(**one) for i, one in answers]

    def explain(self, model: str, rows: Sequence[Row], *, top: int = 5) -> list[Json]:
        """Why each row has its score; None for a row that cannot be read."""
        body = self._ask("POST", f"/models/{quote(model, '')}/explain?top={top}", {"rows": rows})
        return list(body["answers"])

    def alarms(self, model: str, **wanted: Any) -> Json:
        """Alarms and their number; filter by state, kind, entity, assignee, min_score, since, …"""
        return self._ask("GET", f"/models/{quote(model, '')}/alarms?{urlencode(wanted)}")

    def alarm(self, number: int) -> Json:
        """An alarm with its reasons and verdicts."""
        return self._ask("GET", f"/alarms/{number}")

    def preview(self, rows: Sequence[int], verdict: str, *, kind: str | None = None) -> Json:
        """What a verdict would change; nothing is stored."""
        body = {"rows": list(rows), "verdict": verdict, "kind": kind}
        return self._ask("POST", "/verdicts/preview", body)

    def judge(
        self, rows: Sequence[int], verdict: str, *, kind: str | None = None, note: str = ""
    ) -> Json:
        """Give a verdict on alarms: "true" with a kind, "false alarm", "expected" or "unsure"."""
        body = {"rows": list(rows), "verdict": verdict, "kind": kind, "note": note}
        return self._ask("POST", "/verdicts", body)

    def undo(self, verdicts: Sequence[int]) -> Json:
        """Undo verdicts, and return the version that is live then."""
        return self._ask("POST", "/verdicts/undo", {"verdicts": list(verdicts)})

    def learn(
        self, model: str, rows: Sequence[Row], labels: Sequence[str], *, judged: bool = False
    ) -> Json:
        """Teach labelled rows, all or none, and return the version that has learnt them."""
        body = {"rows": list(rows), "labels": list(labels), "judged": judged}
        return self._ask("POST", f"/models/{quote(model, '')}/learn", body)

    def models(self) -> list[Json]:
        """All models."""
        return list(self._ask("GET", "/models"))

    def versions(self, model: str) -> list[Json]:
        """The log of a model, newest version first."""
        return list(self._ask("GET", f"/models/{quote(model, '')}/versions"))

    def revert(self, model: str, version: int) -> Json:
        """Revert to a version."""
        return self._ask("POST", f"/models/{quote(model, '')}/revert", {"version": version})

    def watch(self, model: str) -> Json:
        """Whether rows still look like those that set the threshold."""
        return self._ask("GET", f"/models/{quote(model, '')}/watch")

    def queue(self, model: str) -> Json:
        """The rows that would help most if labelled."""
        return self._ask("GET", f"/models/{quote(model, '')}/queue")

    def _ask(self, method: str, path: str, body: Any = None, *, also: int = 200) -> Json:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        asked = Request(f"{self.url.rstrip('/')}/api/v1{path}", data, headers, method=method)
        try:
            with build_opener(ProxyHandler({})).open(asked, timeout=self.timeout) as answer:
                return json.load(answer)
        except HTTPError as error:
            with error:
                answer = json.load(error) if "json" in error.headers.get("Content-Type", "") else {}
            if error.code == also:
                return answer
            message = f"{answer.get('error', error.reason)} ({error.code})"
            raise ServiceError(message, status=error.code) from error
        except URLError as error:
            raise ServiceError(f"{self.url} cannot be reached: {error.reason}.") from error
