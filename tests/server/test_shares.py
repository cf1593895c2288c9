"""Fair shares at the door: what one client does to a server, and what others notice of it.

What only this file can catch: readers that take nothing and yet hold places, one client that keeps all others out, a
server that answers no probe. Clients are addresses of the loopback network: 127.0.0.1, 127.0.0.2 and so on.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from tools.no_spark import NoSpark

from headgate import Engine
from headgate.errors import UserError
from headgate.heartbeat.clock import ManualClock
from headgate.server.limits import Limits
from headgate.server.listener import opened
from headgate.server.serving import Serving, outside
from headgate.server.shares import Shares, client_at

TOKEN = "a-token-of-a-test"
FILE = b"GET /console/vendor/uplot/uPlot.esm.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(NoSpark(), tmp_path / "state", clock=ManualClock()) as engine:  # type: ignore[arg-type]
        engine.execute("CREATE STREAM s (k STRING, x INT);")
        yield engine


@contextmanager
def serving(engine: Engine, limits: Limits, token: str | None = TOKEN) -> Iterator[tuple[str, int]]:
    """The host and port of a server."""
    door = opened("127.0.0.1", 0, token)
    with engine.serve(door, Serving(outside(()), limits)):
        yield door.bound.getsockname()[:2]


def asking(where: tuple[str, int], own: str = "127.0.0.1", token: str | None = TOKEN) -> httpx.Client:
    """A client that asks from an address of its own."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    transport = httpx.HTTPTransport(local_address=own)
    return httpx.Client(base_url=f"http://{where[0]}:{where[1]}", headers=headers, timeout=20, transport=transport)


def lazy(where: tuple[str, int], own: str, sent: bytes, buffer: int = 2_048) -> socket.socket:
    """A connection that sends something and takes nothing."""
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    opened.settimeout(20)
    opened.bind((own, 0))
    opened.connect(where)
    with suppress(OSError):  # it may have been let go already
        opened.sendall(sent)
    return opened


def eventually(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 25
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def answered(where: tuple[str, int], own: str) -> bool:
    """True if a probe from an address is answered."""
    with asking(where, own, None) as stranger, suppress(httpx.HTTPError):
        return stranger.get("/health").status_code == 200
    return False


def ended(one: socket.socket) -> bool:
    """True if the server has ended a connection: what lies in its buffers is passed over."""
    one.setblocking(False)
    try:
        while one.recv(2**16):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def test_readers_that_take_nothing_shut_nobody_out(engine: Engine) -> None:
    """1,100 connections without the token, each with twenty requests for a large file that nobody reads."""
    with serving(engine, Limits(send_seconds=3.0)) as where, ExitStack() as opened:
        waiting = [opened.enter_context(lazy(where, "127.0.0.2", FILE * 20)) for _ in range(1_100)]
        with asking(where) as known:
            for _ in range(3):
                assert known.get("/status").status_code == 200
                with asking(where, "127.0.0.3", None) as stranger:
                    assert [stranger.get(path).status_code for path in ("/health", "/ready")] == [200, 503]
            assert known.post("/streams/s", headers=JSON, json=[[1, ["a", 1]]]).status_code == 200
            eventually(lambda: answered(where, "127.0.0.2"))
            eventually(lambda: sum(map(ended, waiting)) == len(waiting))


def test_a_reader_that_takes_its_time_gets_its_answer(engine: Engine) -> None:
    """It is slower than the limit for the whole, and takes enough at any time."""
    with serving(engine, Limits(send_seconds=1.0)) as where:
        reading = lazy(where, "127.0.0.1", FILE * 12, 2**17)
        expected, got, began = 12 * 145_000, 0, time.monotonic()
        while got < expected:
            got += len(part := reading.recv(2**16))
            assert part, f"it ended after {got} bytes"
            time.sleep(0.1)
        assert time.monotonic() - began > 2.0
        reading.close()


def test_what_lies_ready_for_readers_is_bounded(engine: Engine) -> None:
    limits = Limits(unsent_bytes=1_000_000, socket_bytes=2**13)
    with serving(engine, limits) as where, ExitStack() as opened:
        waiting = [opened.enter_context(lazy(where, "127.0.0.2", FILE)) for _ in range(20)]
        others = [opened.enter_context(lazy(where, "127.0.0.3", FILE)) for _ in range(2)]
        eventually(lambda: sum(map(ended, waiting[:10])) == 10)
        assert not any(map(ended, others)), "the slowest of those who take too much are let go, and no others"


def test_requests_sent_ahead_are_bounded(engine: Engine) -> None:
    with serving(engine, Limits(pipelined=5)) as where:
        reading = lazy(where, "127.0.0.1", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        answers = b""
        while part := reading.recv(2**16):
            answers += part
        assert 5 <= answers.count(b"HTTP/1.1 200") <= 7
        assert answers.count(b"connection: close") == 1
        reading.close()


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The clients of requests that began."""
    began: list[str] = []
    enter = Shares.enter

    def noted(self: Shares, client: str) -> None:
        enter(self, client)
        began.append(client)

    monkeypatch.setattr(Shares, "enter", noted)
    return began


def test_one_client_has_only_its_share(engine: Engine, monkeypatch: pytest.MonkeyPatch, entered: list[str]) -> None:
    """Of requests, and of connections; both of them with the token."""
    held = threading.Event()
    monkeypatch.setattr(type(engine), "overview", lambda _: held.wait(20))
    greedy = f"GET /status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    with serving(engine, Limits(requests=8, connections=12)) as where, ExitStack() as opened:
        waiting = [opened.enter_context(lazy(where, "127.0.0.2", greedy)) for _ in range(4)]
        with asking(where) as known, asking(where, "127.0.0.2") as more:
            more.headers["X-Forwarded-For"] = "127.0.0.9"  # it is not believed
            eventually(lambda: len(entered) == 4)
            said = more.get("/queries/q").json()
            assert (said["code"], said["detail"]) == ("busy", "One client may not take all places.")
            assert more.get("/health").status_code == 200
            assert known.get("/queries/q").status_code == 404
            for _ in range(20):
                opened.enter_context(lazy(where, "127.0.0.2", b""))
            assert known.get("/queries/q").status_code == 404, "its connection was not let go"
            assert not any(map(ended, waiting)), "nor any that has a request under way"
        held.set()


def test_without_idle_or_slow_ones_a_new_connection_gives_way(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, entered: list[str]
) -> None:
    held = threading.Event()
    monkeypatch.setattr(type(engine), "overview", lambda _: held.wait(20))
    with serving(engine, Limits(connections=4), None) as where, ExitStack() as opened:
        asked = b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n"
        waiting = [opened.enter_context(lazy(where, "127.0.0.2", asked)) for _ in range(2)]
        eventually(lambda: len(entered) == 2)
        new = opened.enter_context(lazy(where, "127.0.0.2", asked))
        eventually(lambda: ended(new))
        assert not any(map(ended, waiting))
        with asking(where, token=None) as other:
            assert other.get("/health").status_code == 200
        held.set()


def test_places_are_shared_out() -> None:
    shares = Shares(10, Limits(), "follow results already")
    for _ in range(5):
        shares.enter("a")
    with pytest.raises(UserError, match="5 requests of this client follow results already"):
        shares.enter("a")
    for _ in range(5):
        shares.enter("b")
    with pytest.raises(UserError, match="10 requests follow results already"):
        shares.enter("c")
    shares.leave("a")
    with shares.place("c"):
        assert shares.taken == 10


def test_bodies_of_one_client_leave_room_for_others(engine: Engine) -> None:
    begun = (
        f"POST /streams/s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        "Content-Type: application/json\r\nContent-Length: 9000\r\n\r\n"
    ).encode()
    limits = Limits(body_bytes=10_000, held_bytes=40_000, reading=10)
    with serving(engine, limits) as where, ExitStack() as opened:
        (first, *_) = [opened.enter_context(lazy(where, "127.0.0.3", begun + b" " * 8_000)) for _ in range(2)]
        slow = [opened.enter_context(lazy(where, "127.0.0.2", begun + b" " * 8_000)) for _ in range(8)]
        assert slow[0].recv(1_000).startswith(b"HTTP/1.1 408")
        first.sendall(b" " * 998 + b"[]")
        assert first.recv(1_000).startswith(b"HTTP/1.1 200"), "it was not refused to make room for the other client"


@pytest.mark.parametrize(
    "address, client",
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("a name", "a name"),
    ],
)
def test_who_is_one_client(address: str, client: str) -> None:
    assert client_at(address) == client
