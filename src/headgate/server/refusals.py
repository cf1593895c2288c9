"""Refusals: every error of the server is JSON, with the code, message, place, detail and hint of a `UserError`.

{"code": "no-such-stream", "message": "stream \\"bidz\\" does not exist",
 "place": {"line": 1, "column": 15, "start": 14, "end": 18, "caret": "  1 | SELECT * FROM bidz ..."},
 "detail": "There are \\"bids\\".", "hint": "Did you mean \\"bids\\"?"}
"""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from headgate.errors import Place, UserError
from headgate.server.bodies import BadBody
from headgate.server.json_answer import Json

SHOWN = 1_000
"""How long a text in an error may be: rows are quoted in some."""

STATUS = {
    "late-tuple": 409,
    "sequence-gap": 409,
    "results-elsewhere": 409,
    "results-changed": 409,
    "no-early-answers": 409,
    "no-errors-kept": 409,
    "not-one-input": 409,
    "bad-content-type": 415,
    "body-too-large": 413,
    "statement-too-large": 413,
    "result-too-large": 413,
    "body-too-slow": 408,
    "no-such-stream": 404,
    "no-such-relation": 404,
    "no-such-query": 404,
    "no-such-page": 404,
    "not-allowed": 403,
    "foreign-host": 403,
    "foreign-origin": 403,
    "no-token": 401,
    "busy": 429,
    "stopping": 503,
    "not-ready": 503,
    "not-kept": 503,
    "disk-failed": 503,
    "in-quarantine": 503,
    "stream-changed": 503,
    "not-begun": 503,
    "not-planned": 503,
    "still-running": 504,
    "broken": 500,
}
"""The status of each error that is not a plain 400."""

HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}, 503: {"Retry-After": "5"}}

logger = logging.getLogger("headgate.http")


def as_json(error: UserError) -> dict[str, Any]:
    """Return an error as JSON has it."""
    said: dict[str, Any] = {"code": error.code, "message": error.message[:SHOWN]}
    if isinstance(error, BadBody):
        said["place"] = error.where
    elif error.place is not None:
        said["place"] = _place(error.place)
    return said | {"detail": error.detail[:SHOWN], "hint": error.hint[:SHOWN]}


def _place(place: Place) -> dict[str, Any]:
    column = place.start - (place.text.rfind("\n", 0, place.start) + 1) + 1
    return {"line": place.line, "column": column, "start": place.start, "end": place.end, "caret": place.caret()}


def refusal(error: UserError, status: int | None = None, **more: Any) -> Json:
    """Return the answer to a request that is refused."""
    status = status or STATUS.get(error.code, 400)
    return Json(as_json(error) | more, status, HEADERS.get(status))


def stopping(hint: str = "Send it again when it is back.") -> UserError:
    """Return the error for requests that come while the engine stops."""
    return UserError("stopping", "the engine stops", hint=hint)


def answer_errors(app: FastAPI, known: list[str]) -> None:
    """Let an application answer every error as JSON; `known` are the pages it has."""

    @app.exception_handler(UserError)
    async def refused(request: Request, error: UserError) -> Json:
        return refusal(error)

    @app.exception_handler(RequestValidationError)
    async def bad_parameter(request: Request, error: RequestValidationError) -> Json:
        first = error.errors()[0]
        return refusal(UserError("bad-parameter", f'"{first["loc"][-1]}" cannot be used: {first["msg"]}'))

    @app.exception_handler(HTTPException)
    async def no_page(request: Request, error: HTTPException) -> Json:
        message = f"there is no {request.method} {request.url.path}"[:SHOWN]
        return refusal(UserError("no-such-page", message, detail=f"There is {', '.join(known)}."), error.status_code)

    @app.exception_handler(OSError)
    async def not_kept(request: Request, error: OSError) -> Json:
        return refusal(UserError("not-kept", "the rows could not be written", detail=error.strerror or ""))

    @app.exception_handler(ClientDisconnect)
    async def gone(request: Request, error: ClientDisconnect) -> Response:
        return Response(status_code=400)  # nobody hears it, and nothing was taken

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> Json:
        logger.error("headgate is wrong here", exc_info=error)
        what = type(error).__name__
        return refusal(UserError("broken", "headgate is wrong here", detail=what, hint="Please report it."))
