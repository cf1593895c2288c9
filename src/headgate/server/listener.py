"""The server on a socket, in a thread: on loopback unless told otherwise, beyond it never without a token."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

from headgate.errors import UserError
from headgate.server.limits import Limits
from headgate.server.served import Served
from headgate.server.serving import Serving
from headgate.sources.inputs import Inputs

STOP_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Door:
    """Where a server is to be reached, and by whom."""

    bound: socket.socket
    token: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    """With a certificate and its key, the server speaks TLS."""

    @property
    def url(self) -> str:
        """The address of the server."""
        host, port = self.bound.getsockname()[:2]
        scheme = "http" if self.certificate is None else "https"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    @property
    def in_the_clear(self) -> bool:
        """True if others than this machine can reach it, and what is said can be overheard."""
        return self.certificate is None and not is_local(self.bound.getsockname()[0])


class Listener:
    """A running server: it takes requests until it is stopped."""

    def __init__(self, app: Any, door: Door, limits: Limits) -> None:
        import uvicorn

        from headgate.server.connection import Connections, Loop

        self.url = door.url
        self._app = app
        self._socket = door.bound
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=Connections(limits),  # type: ignore[arg-type] # it makes them
                loop=lambda: Loop(limits.header_seconds),  # type: ignore[arg-type] # it makes one
                lifespan="off",
                proxy_headers=False,  # who asks is who is connected, and not who a header says
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=STOP_SECONDS,
                ws="none",
                ssl_certfile=door.certificate,
                ssl_keyfile=door.key,
            )
        )
        # Signals are the business of the main thread: uvicorn leaves them alone in any other.
        self._thread = threading.Thread(
            target=self._server.run, args=([door.bound],), name="headgate-http", daemon=True
        )
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.005)

    def stop(self) -> None:
        """Take no more requests, answer those under way, and let go of the port."""
        self._app.state.office.begin_to_stop()
        self._server.should_exit = True
        self._thread.join(STOP_SECONDS + 5)
        self._app.state.office.close()
        self._socket.close()

    def __enter__(self) -> Listener:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def listening(
    engine: Served, inputs: Inputs, door: Door, serving: Serving | None = None, limits: Limits | None = None
) -> Listener:
    """Serve an engine at a door, from a thread: with `serving`, statements and results too; without, rows only."""
    need_packages()
    from headgate.server.app import application

    limits = limits or (serving.limits if serving is not None else Limits())
    return Listener(application(engine, inputs, door.token, serving, limits), door, limits)


def need_packages() -> None:
    """Raise an error that says what to install if a package is missing that the server needs."""
    for name in ("fastapi", "uvicorn", "prometheus_client"):
        try:
            import_module(name)
        except ModuleNotFoundError:
            raise UserError(
                "no-http", f"the server needs {name}, which is not installed", hint="pip install 'headgate[serve]'"
            ) from None


def opened(
    host: str, port: int, token: str | None = None, certificate: Path | None = None, key: Path | None = None
) -> Door:
    """Open a door at a host and port; one that strangers could use, or that cannot be had, is an error."""
    need_packages()
    check(host, token)
    check_certificate(certificate, key)
    return Door(bind(host, port), token, certificate, key)


def check_certificate(certificate: Path | None, key: Path | None) -> None:
    """Refuse a certificate without its key, and files that are neither."""
    if certificate is None and key is None:
        return
    if certificate is None or key is None:
        raise UserError(
            "bad-certificate", "TLS needs a certificate and its key", hint="--tls-certificate and --tls-key"
        )
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        raise UserError("bad-certificate", f'"{certificate}" and "{key}" cannot be used', detail=str(error)) from None


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


def bind(host: str, port: int) -> socket.socket:
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
