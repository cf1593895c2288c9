"""The endpoint on a socket, served from a thread: on loopback unless told otherwise, beyond it never without a
token.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headgate.errors import UserError
from headgate.server.served import Served
from headgate.sources.inputs import Inputs

if TYPE_CHECKING:
    from headgate.server.app import Room

STOP_SECONDS = 10
CONNECTIONS = 1_000


class Listener:
    """A running endpoint: it takes requests until it is stopped."""

    def __init__(self, app: Any, bound: socket.socket) -> None:
        import uvicorn

        from headgate.server.connection import guarded

        host, port = bound.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._app = app
        self._socket = bound
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=guarded(),
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                limit_concurrency=CONNECTIONS,
                timeout_graceful_shutdown=STOP_SECONDS,
                ws="none",
            )
        )
        # Signals are the business of the main thread: uvicorn leaves them alone in any other.
        self._thread = threading.Thread(target=self._server.run, args=([bound],), name="headgate-http", daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.005)

    def stop(self) -> None:
        """Take no more requests, answer those under way, and let go of the port."""
        self._app.state.desk.stopping = True
        self._server.should_exit = True
        self._thread.join(STOP_SECONDS + 5)
        self._app.state.pool.shutdown()
        self._socket.close()

    def __enter__(self) -> Listener:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def listening(
    engine: Served, inputs: Inputs, host: str, port: int, token: str | None, room: Room | None = None
) -> Listener:
    """Open the endpoint on a host and port, and serve it from a thread; without the packages it needs, an error."""
    try:
        import uvicorn  # noqa: F401

        from headgate.server.app import application
    except ModuleNotFoundError as error:
        raise UserError(
            "no-http",
            f"the HTTP endpoint needs {error.name}, which is not installed",
            hint="pip install 'headgate[http]'",
        ) from None
    check(host, token)
    return Listener(application(engine, inputs, token, room), opened(host, port))


def check(host: str, token: str | None) -> None:
    """Refuse to listen beyond this machine without a token, and tokens that no header can carry."""
    if token is None and not is_local(host):
        raise UserError(
            "no-token",
            f'listening on "{host}" wants a token, because others than this machine can reach it',
            hint="Set HEADGATE_TOKEN to a long random text, or listen on 127.0.0.1.",
        )
    if token is not None and (not token or not token.isascii() or not token.isprintable() or " " in token):
        raise UserError("bad-token", "the token is empty, or has other letters in it than a header can carry")


def is_local(host: str) -> bool:
    """True if the host is this machine and nobody else can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def opened(host: str, port: int) -> socket.socket:
    """Bind a socket; a host or port that cannot be had is an error."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)  # with the protocol: asyncio sends at once on TCP only
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except (OSError, OverflowError) as error:
        raise UserError(
            "cannot-listen",
            f'cannot listen on "{host}", port {port}',
            detail=str(getattr(error, "strerror", None) or error),
        ) from None
    return bound


def address(text: str) -> tuple[str, int]:
    """Read [HOST:]PORT, with an IPv6 address in brackets; without a host, this machine."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise UserError("bad-address", f'"{text}" is not [HOST:]PORT', hint="8080, 127.0.0.1:8080 or [::1]:8080")
    return host.strip("[]") or "127.0.0.1", int(port)
