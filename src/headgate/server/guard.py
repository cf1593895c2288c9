"""Who may ask: the token, the name that was asked for, and the page that asks; and how many may ask at a time.

Requests are counted by client, and those without the token apart from those with it. Probes are not counted: they are
answered however many others there are.

Without a token only this machine can reach the server. But a web page in a browser on it could be led here under a
foreign name, so the name that was asked for must be local too. A page of another origin is refused whoever it is: no
header of CORS is ever sent. Probes of health and readiness need no token, and learn nothing else. Nor do the files of
the console, which are the same for everybody: the page asks for the token.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.errors import UserError
from headgate.server.limits import Limits
from headgate.server.listener import is_local
from headgate.server.refusals import refusal, stopping
from headgate.server.shares import Shares, client_of

PROBES = ("/health", "/ready")

HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
]
"""Headers of every answer."""


class Guard:
    """Lets requests pass, or answers why they may not."""

    def __init__(self, app: ASGIApp, token: str | None, limits: Limits, is_stopping: Callable[[], bool]) -> None:
        self.app = app
        self.expected = None if token is None else f"bearer {token}".encode()
        self.is_stopping = is_stopping
        self.under_way = Shares(limits.requests, limits, "are under way")
        self.strangers = Shares(limits.strangers, limits, "without the token are under way")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        path, headers = scope["path"], Headers(scope=scope)
        known = self.expected is None or self._has_token(headers)
        shares, client = self.under_way if known else self.strangers, client_of(scope)
        try:
            self._check(path, headers, known)
            if path not in PROBES:
                shares.enter(client)
        except UserError as refused:
            await refusal(refused)(scope, receive, sent)
            return
        try:
            await self.app(scope, receive, sent)
        finally:
            if path not in PROBES:
                shares.leave(client)

    def _check(self, path: str, headers: Headers, known: bool) -> None:
        """Raise an error if a request with these headers may not pass."""
        if path not in PROBES:
            if not known and not is_page(path):
                raise UserError("no-token", "this server wants a token", hint="Authorization: Bearer TOKEN")
            if self.expected is None:
                _check_host(headers)
        _check_origin(headers)
        if path not in PROBES and self.is_stopping():
            raise stopping()

    def _has_token(self, headers: Headers) -> bool:
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        return hmac.compare_digest(f"{scheme.lower()} {credentials.strip()}".encode(), self.expected or b"")


def is_page(path: str) -> bool:
    """True for the console's page and its files, which hold no data."""
    return path == "/" or path.startswith("/console/")


def _check_host(headers: Headers) -> None:
    """Refuse a name that is not this machine's own."""
    host = host_of(headers.get("host", ""))
    if host is None:
        raise UserError("bad-host", "the header Host names no host")
    if not is_local(host):
        raise UserError("foreign-host", "without a token the server answers under local names only")


def _check_origin(headers: Headers) -> None:
    """Refuse what a page of another origin asks; programs that are no browser name no origin."""
    origin = headers.get("origin")
    if origin is None:
        return
    try:
        from_here = bool(origin) and urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    except ValueError:
        from_here = False
    if not from_here:
        raise UserError(
            "foreign-origin", "pages of other origins may not ask", detail="The server sends no CORS headers."
        )


def host_of(said: str) -> str | None:
    """Return the name in a header Host; None if it is none."""
    try:
        return urlsplit(f"//{said}").hostname or ""
    except ValueError:
        return None
