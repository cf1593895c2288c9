"""Who may ask: the token, the name that was asked for, and the page that asks; and how many may ask at a time.

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
from headgate.server.listener import is_local
from headgate.server.refusals import refusal

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

    def __init__(self, app: ASGIApp, token: str | None, most: int, stopping: Callable[[], bool]) -> None:
        self.app = app
        self.expected = None if token is None else f"bearer {token}".encode()
        self.most = most
        self.stopping = stopping
        self.under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        refused = self.refused(scope["path"], Headers(scope=scope))
        self.under_way += 1
        try:
            await (self.app if refused is None else refusal(refused))(scope, receive, sent)
        finally:
            self.under_way -= 1

    def refused(self, path: str, headers: Headers) -> UserError | None:
        """Return the reason to refuse a request with these headers; None if it may pass."""
        return (None if path in PROBES else self._unknown(path, headers)) or _foreign_page(headers) or self._no_room()

    def _unknown(self, path: str, headers: Headers) -> UserError | None:
        if self.expected is not None and is_page(path):
            return None
        if self.expected is not None:
            scheme, _, credentials = headers.get("authorization", "").partition(" ")
            if not hmac.compare_digest(f"{scheme.lower()} {credentials.strip()}".encode(), self.expected):
                return UserError("no-token", "this server wants a token", hint="Authorization: Bearer TOKEN")
            return None
        host = host_of(headers.get("host", ""))
        if host is None:
            return UserError("bad-host", "the header Host names no host")
        if not is_local(host):
            return UserError("foreign-host", "without a token the server answers under local names only")
        return None

    def _no_room(self) -> UserError | None:
        if self.stopping():
            return UserError("stopping", "the engine stops", hint="Send it again when it is back.")
        if self.under_way >= self.most:
            return UserError("busy", f"{self.under_way} requests are under way", hint="Send it again a little later.")
        return None


def is_page(path: str) -> bool:
    """True for the console's page and its files, which hold no data."""
    return path == "/" or path.startswith("/console/")


def _foreign_page(headers: Headers) -> UserError | None:
    """Refuse what a page of another origin asks; programs that are no browser name no origin."""
    origin = headers.get("origin")
    if origin is None:
        return None
    try:
        from_here = bool(origin) and urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    except ValueError:
        from_here = False
    if from_here:
        return None
    return UserError("foreign-origin", "pages of other origins may not ask", detail="The server sends no CORS headers.")


def host_of(said: str) -> str | None:
    """Return the name in a header Host; None if it is none."""
    try:
        return urlsplit(f"//{said}").hostname or ""
    except ValueError:
        return None
