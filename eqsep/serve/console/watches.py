"""The screen of the watch: is the promise kept?"""

import time

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from eqsep.serve.console.pages import Pages
from eqsep.serve.watching import DELTA, Minute

_LEAST, _MOST = 20, 180  # minutes that are shown
_SERIES = ("at", "rows", "alarms", "shadow_alarms")


def add_routes(routes: APIRouter, pages: Pages) -> None:
    """One screen."""

    @routes.get("/m/{model}/watch")
    def watch(request: Request, model: str) -> Response:
        status = pages.ws.watching.status(model)
        shown = _every(status.per_minute)
        return pages.show(
            request,
            "watch.html",
            heading="Watch",
            model=model,
            watch=status,
            too_high=round(1 / DELTA),
            plotted=[[getattr(minute, name) for minute in shown] for name in _SERIES],
            per_minute_now=f"{shown[-2].rows:,}",
        )


def _every(counted: list[Minute]) -> list[Minute]:
    """The last minutes, those in which nothing came too."""
    last = int(time.time()) // 60 * 60
    found = {minute.at: minute for minute in counted}
    first = max(min([last - 60 * _LEAST, *found]), last - 60 * _MOST)
    return [found.get(at, Minute(at, 0, 0, 0)) for at in range(first, last + 1, 60)]
