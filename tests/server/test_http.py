"""The HTTP endpoint: what is acknowledged is kept, what is refused is not taken, and who may ask.

An engine without Spark stands in for most of it: streams are real, queries there are none.
"""

from __future__ import annotations

import json
import re
import shlex
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tools.no_spark import NoSpark
from tools.places import DOCS

from headgate import Engine, ManualClock, Result, UserError
from headgate.heartbeat.clock import Clock
from headgate.server.limits import Limits
from headgate.server.listener import address, listening, opened
from headgate.server.pushing import PRODUCERS

JSON, LINES, CSV = ({"Content-Type": kind} for kind in ("application/json", "application/x-ndjson", "text/csv"))

STREAMS = (
    "CREATE STREAM s (k STRING, v INT);"
    "CREATE STREAM fleet (car STRING, at TIMESTAMP) TIMESTAMP BY at SOURCE BY car;"
    "CREATE STREAM entered (v INT) TIMESTAMP INTERNAL;"
    "CREATE STREAM strict (v INT) LATE FAIL;"
    "CREATE STREAM typed (m DECIMAL(10, 2), d DATE, b BINARY, x DOUBLE, l ARRAY<DOUBLE>, y BOOLEAN, t INT) TIMESTAMP BY t;"
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(NoSpark(), tmp_path, clock=ManualClock()) as engine:  # type: ignore[arg-type]
        engine.execute(STREAMS)
        yield engine


@contextmanager
def client(engine: Engine, token: str | None = None, limits: Limits | None = None) -> Iterator[httpx.Client]:
    listener = listening(engine, engine._core.inputs, opened("127.0.0.1", 0, token), limits=limits)
    with listener, httpx.Client(base_url=listener.url, timeout=30) as asking:
        yield asking


def logged(engine: Engine, stream: str) -> list[dict[str, Any]]:
    return [
        row for chunk in engine._core.inputs.inlet(stream).log.chunks for row in pq.read_table(chunk.path).to_pylist()
    ]


def test_rows_in_every_notation(engine: Engine) -> None:
    with client(engine) as asking:
        first = asking.post(
            "/streams/s", headers=JSON, json=[[1, {"k": "a", "v": 7}], {"_time": 2, "K": "b", "v": 8}, [3, ["c", 9]]]
        )
        assert (first.status_code, first.json()) == (200, {"taken": 3, "dead": {}, "heartbeat": 2})
        lines = '{"_time": 4, "k": "d", "v": 1}\r\n\n[5, ["e", 2]]\n'
        assert asking.post("/streams/S", headers=LINES, content=lines).json()["taken"] == 2
        text = 'k,v,_time\n"f, ""g""",3,6\n,4,7\nh,x,8\n'
        assert asking.post("/streams/s", headers=CSV, content=text).json() == {
            "taken": 2,
            "dead": {"malformed": 1},
            "heartbeat": 6,
        }
        assert asking.post("/streams/s", headers=JSON, content="[]").json()["taken"] == 0
    rows = [(row["_t"], row["k"], row["v"]) for row in logged(engine, "s")]
    assert rows == [(1, "a", 7), (2, "b", 8), (3, "c", 9), (4, "d", 1), (5, "e", 2), (6, 'f, "g"', 3), (7, None, 4)]
    assert engine.dead_letters("s")[0]["_raw"] == '[8, {"k": "h", "v": "x"}]'


def test_types_without_a_notation_in_json(engine: Engine) -> None:
    given = {"m": 1.10, "d": "2026-01-31", "b": "aGk=", "x": 0.1, "l": [0.5, 1], "y": True, "t": 1}
    with client(engine) as asking:
        others = [
            {**given, "m": "2.20", "t": 2},
            {**given, "t": 3.5},
            {**given, "m": 1e40},
            {**given, "b": "?"},
            {**given, "d": "soon"},
        ]
        answer = asking.post("/streams/typed", headers=JSON, json=[given, *others])
        assert answer.json()["dead"] == {"malformed": 3}, "only what its column cannot take"
        plain = "m,d,b,x,y,t\n3.30,2026-02-01,aGk=,0.25,false,4\n,,,,,5\n"
        assert asking.post("/streams/typed", headers=CSV, content=plain).json()["taken"] == 2
        refused = asking.post("/streams/typed", headers=CSV, content="t,l\n1,[]\n")
        assert (refused.status_code, refused.json()["code"]) == (400, "bad-body")
    rows = sorted(logged(engine, "typed"), key=lambda row: row["t"])
    expected = {
        "m": Decimal("1.10"),
        "d": date(2026, 1, 31),
        "b": b"hi",
        "x": 0.1,
        "l": [0.5, 1.0],
        "y": True,
        "t": 1,
        "_t": 1,
        "_s": 0,
    }
    assert rows[0] == expected
    assert rows[-2]["m"] == Decimal("3.30")
    assert rows[-1]["d"] is None


@pytest.mark.parametrize(
    "path, headers, body, status, code",
    [
        ("/streams/none", JSON, "[]", 404, "no-such-stream"),
        ("/nowhere", JSON, "[]", 404, "no-such-page"),
        ("/streams/s", {"Content-Type": "application/x-www-form-urlencoded"}, "[]", 415, "bad-content-type"),
        ("/streams/s", {**JSON, "Content-Encoding": "gzip"}, "[]", 415, "bad-content-type"),
        ("/streams/s", JSON, "{}", 400, "bad-body"),
        ("/streams/s", JSON, "[" * 100_000, 400, "bad-body"),
        ("/streams/s", JSON, "[" + "9" * 5_000 + "]", 400, "bad-body"),
        ("/streams/s", JSON, "[7]", 400, "bad-row"),
        ("/streams/s", JSON, '[{"k": "a"}]', 400, "bad-row"),
        ("/streams/s", JSON, '[[1, {"w": 1}]]', 400, "bad-row"),
        ("/streams/s", CSV, "", 400, "bad-body"),
        ("/streams/s", CSV, "k,k\n1,2\n", 400, "bad-body"),
        ("/streams/s", CSV, 'k,v\n1,"2\n', 400, "bad-body"),
        ("/streams/s", {**JSON, "Producer": "p"}, "[]", 400, "bad-sequence"),
        ("/streams/s", {**JSON, "Producer": "p", "Sequence": "-1"}, "[]", 400, "bad-sequence"),
        ("/streams/s/heartbeat", JSON, '{"to": "noon"}', 400, "bad-heartbeat"),
        ("/streams/s/heartbeat", JSON, '{"to": 1e400}', 400, "bad-heartbeat"),
        ("/streams/s/heartbeat", JSON, '{"to": 1, "source": "x"}', 400, "bad-heartbeat"),
        ("/streams/s/heartbeat", JSON, '{"upto": 1}', 400, "bad-heartbeat"),
        ("/streams/fleet/heartbeat", JSON, '{"to": 1}', 400, "bad-heartbeat"),
        ("/streams/none/heartbeat", JSON, '{"to": 1}', 404, "no-such-stream"),
    ],
)
def test_what_is_refused(engine: Engine, path: str, headers: dict[str, str], body: str, status: int, code: str) -> None:
    with client(engine) as asking:
        answer = asking.post(path, headers=headers, content=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert set(answer.json()) >= {"message", "detail", "hint"}
    assert not logged(engine, "s")
    assert not engine.dead_letters("s")


@pytest.mark.parametrize(
    "headers, body, place",
    [
        (LINES, b'[1, ["a", 1]]\n[2, ["b", oops]]\n', {"line": 2, "column": 11, "near": "oops]]"}),
        (JSON, b'[[1, ["a", 1]],\n [2,, 3]]', {"line": 2, "column": 5, "near": ", 3]]"}),
        (CSV, b"k,v,_time\na,1,1\nb,2\n", {"line": 3, "column": 1, "near": "b,2"}),
        (JSON, b'[\n"\xff"]', {"line": 2, "column": 2, "near": ""}),
    ],
)
def test_a_bad_body_has_its_place(engine: Engine, headers: dict[str, str], body: bytes, place: dict[str, Any]) -> None:
    with client(engine) as asking:
        answer = asking.post("/streams/s", headers=headers, content=body)
    assert (answer.status_code, answer.json()["place"]) == (400, place)
    assert not logged(engine, "s"), "also what stands before it"


def test_a_stream_that_is_to_fail_refuses_the_whole_batch(engine: Engine) -> None:
    with client(engine) as asking:
        asking.post("/streams/strict/heartbeat", headers=JSON, json={"to": 5})
        engine._core.heartbeats.promise("strict", 5)
        answer = asking.post("/streams/strict", headers=JSON, json=[[9, [1]], [3, [2]]])
        assert (answer.status_code, answer.json()["code"]) == (409, "late-tuple")
    assert not logged(engine, "strict")


def test_heartbeats_and_status(engine: Engine) -> None:
    with client(engine) as asking:
        assert asking.post("/streams/s/heartbeat", headers=JSON, json={"to": 17}).json() == {"heartbeat": 17}
        asking.post(
            "/streams/fleet",
            headers=JSON,
            json=[["a", "2026-01-01T12:00:00Z"], {"car": "b", "at": "2026-01-01T12:00:09"}],
        )
        noon = "2026-01-01T12:00:05+00:00"
        assert (
            asking.post("/streams/fleet/heartbeat", headers=JSON, json={"to": noon, "source": "a"}).status_code == 200
        )
        assert asking.post("/streams/fleet/heartbeat", headers=JSON, json={"to": noon}).json() == {"heartbeat": noon}
        assert asking.post("/streams/entered", headers=JSON, json=[[1], {"v": 2}]).json()["taken"] == 2
        status = asking.get("/status").json()
    fleet = status["streams"]["fleet"]
    assert (fleet["taken"], fleet["heartbeat"], fleet["silent"], fleet["dead"]) == (2, noon, False, {})
    assert (status["relations"], status["queries"]) == ({}, {})


def test_a_request_whose_answer_was_lost_is_not_taken_twice(engine: Engine) -> None:
    def send(sequence: int, rows: Any, producer: str = "till-7") -> httpx.Response:
        return asking.post("/streams/s", headers={**JSON, "Producer": producer, "Sequence": str(sequence)}, json=rows)

    with client(engine) as asking:
        first = send(7, [[1, ["a", 1]], [2, ["b", "?"]]])
        assert first.json() == {"taken": 1, "dead": {"malformed": 1}, "heartbeat": 0}
        assert send(7, [[1, ["a", 1]], [2, ["b", "?"]]]).json() == {**first.json(), "again": True}
        assert send(8, [7]).json()["code"] == "bad-row", "what was refused does not count"
        assert (send(9, []).status_code, send(9, []).json()["code"]) == (409, "sequence-gap")
        assert send(8, [[3, ["c", 3]]]).json()["taken"] == 1
        assert send(7, [[1, ["a", 1]]]).json()["again"]
        assert send(1, [[4, ["d", 4]]], "till-8").json()["taken"] == 1
        assert [row["k"] for row in logged(engine, "s")] == ["a", "c", "d"]
        for number in range(PRODUCERS - 1):
            send(0, [], f"p{number}")
        assert len(engine._core.inputs.inlet("s").position["producers"]) == PRODUCERS
        assert send(8, [[3, ["c", 3]]]).json()["taken"] == 1, "the longest silent was forgotten"
        json.dumps(engine._core.inputs.inlet("s").position)


def test_nobody_passes_without_the_token(engine: Engine) -> None:
    with client(engine, token="much-longer-in-truth") as asking:
        for path in ("/status", "/nowhere"):
            for said in (
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": "Basic much-longer-in-truth"},
                {"Authorization": "Bearer ü".encode()},
            ):
                answer = asking.get(path, headers=said)  # type: ignore[arg-type]
                assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert asking.get("/status", headers={"Authorization": "bearer much-longer-in-truth"}).status_code == 200
        assert (
            asking.get(
                "/status", headers={"Authorization": "Bearer much-longer-in-truth", "Host": "elsewhere"}
            ).status_code
            == 200
        )
    with client(engine) as asking:
        assert asking.get("/status", headers={"Host": "evil.example:80"}).status_code == 403, "a name that was led here"
        assert asking.get("/status", headers={"Host": "[::1]:80"}).status_code == 200


def test_bodies_are_bounded(engine: Engine) -> None:
    with client(engine, limits=Limits(body_bytes=100)) as asking:
        assert asking.post("/streams/s", headers=JSON, content=b" " * 101).status_code == 413
        assert asking.post("/streams/s", headers=JSON, content=(b" " * 60 for _ in range(2))).status_code == 413
        assert asking.post("/streams/s", headers=JSON, content=b"[]" + b" " * 98).status_code == 200


def test_a_body_that_does_not_come_is_not_waited_for(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    begun = (
        b"POST /streams/s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n[["
    )
    with client(engine, limits=Limits(body_seconds=0.2, waiting=1)) as asking:
        where = (asking.base_url.host, asking.base_url.port or 0)
        with socket.create_connection(where, timeout=30) as slow:
            slow.sendall(begun)
            assert slow.recv(1_000).startswith(b"HTTP/1.1 408")
        with socket.create_connection(where, timeout=30) as lost:
            lost.sendall(begun)
        asked(lambda: asking.post("/streams/s", headers=JSON, content="[]"), 200)
    assert not logged(engine, "s")
    assert not caplog.records, "who goes away is no error of ours"


def test_connections_that_send_no_whole_headers_keep_nobody_out(engine: Engine) -> None:
    with client(engine, limits=Limits(header_seconds=2.0, idle=10)) as asking:
        where = (asking.base_url.host, asking.base_url.port or 0)
        half = [socket.create_connection(where, timeout=30) for _ in range(40)]
        for one in half:
            with suppress(OSError):  # it may have been closed already
                one.sendall(b"GET /status HTTP/1.1\r\nHost: localhost\r\nX-")
        began = time.monotonic()
        assert httpx.get(f"http://{where[0]}:{where[1]}/status", timeout=30).status_code == 200
        with socket.create_connection(where, timeout=30) as slow:
            slow.sendall(b"GET /sta")
            assert slow.recv(100) == b"", "nobody is waited for longer than that"
        assert 1 < time.monotonic() - began < 20
        for one in half:
            one.close()
        assert asking.post("/streams/s", headers=JSON, json=[[1, ["a", 1]]]).status_code == 200
        time.sleep(1.0)
        assert asking.get("/status").status_code == 200, "a connection that is used again is not closed meanwhile"


def test_bodies_that_come_slowly_keep_nobody_out(engine: Engine) -> None:
    begun = (
        b"POST /streams/s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n[["
    )
    with client(engine, limits=Limits(waiting=1, reading=4, pause_seconds=1.0)) as asking:
        where = (asking.base_url.host, asking.base_url.port or 0)
        slow = [socket.create_connection(where, timeout=30) for _ in range(8)]
        for one in slow:
            one.sendall(begun)
        assert asking.post("/streams/s", headers=JSON, json=[[1, ["a", 1]]]).status_code == 200
        for one in slow:
            assert one.recv(1_000).startswith(b"HTTP/1.1 408"), "some to make room, the others because they are slow"
            one.close()


def test_bodies_together_are_bounded(engine: Engine) -> None:
    begun = (
        b"POST /streams/s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n"
    )
    with client(engine, limits=Limits(held_bytes=1_000)) as asking:
        where = (asking.base_url.host, asking.base_url.port or 0)
        with socket.create_connection(where, timeout=30) as slow:
            slow.sendall(begun + b" " * 900)
            time.sleep(0.2)
            assert asking.post("/streams/s", headers=JSON, content=b"[]" + b" " * 198).status_code == 200
            assert slow.recv(1_000).startswith(b"HTTP/1.1 408")
        assert asking.post("/streams/s", headers=JSON, content=b"[]" + b" " * 1_998).status_code == 429
        assert asking.post("/streams/s", headers=JSON, content=b"[]").status_code == 200, "everything is given back"


@pytest.mark.parametrize("host", ["[", "[::1", "]", "[]", "[x]:80", "a[b"])
def test_a_host_that_is_none(engine: Engine, host: str) -> None:
    with client(engine) as asking:
        answer = asking.get("/status", headers={"Host": host})
        assert answer.status_code in (400, 403), answer.text


def test_when_there_is_no_room_one_comes_back_later(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    held, begun = threading.Event(), threading.Event()
    inlet = engine._core.inputs.inlet("s")
    pushed = inlet.take_reads

    def slow(reads: Any, clock: Clock) -> Any:
        begun.set()
        held.wait(60)
        return pushed(reads, clock)

    monkeypatch.setattr(inlet, "take_reads", slow)
    answers: list[int] = []
    with client(engine, limits=Limits(waiting=1)) as asking:

        def send() -> None:
            answers.append(asking.post("/streams/s", headers=JSON, json=[[1, ["a", 1]]]).status_code)

        sender = threading.Thread(target=send)
        sender.start()
        assert begun.wait(30)
        answer = asking.post("/streams/s", headers=JSON, content="[]")
        assert (answer.status_code, answer.headers["Retry-After"], answer.json()["code"]) == (429, "1", "busy")
        assert asking.get("/nowhere").status_code == 404, "others are not held up"
        held.set()
        sender.join(30)
        assert asking.post("/streams/s", headers=JSON, content="[]").status_code == 200
    assert answers == [200]
    assert len(logged(engine, "s")) == 1


def asked(ask: Callable[[], httpx.Response], status: int) -> httpx.Response:
    """Another request may still be on its way in or out: ask until the answer has the status."""
    end = time.monotonic() + 30
    while (answer := ask()).status_code != status:
        assert time.monotonic() < end
    return answer


def test_a_full_disk_is_not_acknowledged(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(engine._core.inputs.inlet("s").log, "append", full)
    with client(engine) as asking:
        answer = asking.post("/streams/s", headers={**JSON, "Producer": "p", "Sequence": "1"}, json=[[1, ["a", 1]]])
        assert (answer.status_code, answer.json()["code"], answer.headers["Retry-After"]) == (503, "not-kept", "5")
        assert not engine._core.inputs.inlet("s").position.get("producers")


def test_who_may_listen_where(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert address("8080") == ("127.0.0.1", 8080)
    assert address("[::1]:80") == ("::1", 80)
    for text in ("", "host:", "99999", "host"):
        with pytest.raises(UserError, match="bad-address"):
            address(text)
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org", ""):
        with pytest.raises(UserError, match="no-token"):
            engine.listen(host)
    with pytest.raises(UserError, match="bad-token"):
        engine.listen(token="")
    with engine.listen() as first, pytest.raises(UserError, match="cannot-listen"):
        engine.listen(port=int(first.url.rpartition(":")[2]))
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    with pytest.raises(UserError, match="no-http"):
        engine.listen()


def test_the_page_on_http_says_what_happens(tmp_path: Path) -> None:
    """Every request of the page is sent, and answered as it says; queries need Spark and are left out."""
    page = (DOCS / "http.md").read_text(encoding="utf-8")
    examples = re.findall(r"```sh\n(curl .*?)\n```\n```json\n(.*?)\n```", page, re.DOTALL)
    assert len(examples) == 6
    with Engine(NoSpark(), tmp_path, clock=ManualClock()) as engine:  # type: ignore[arg-type]
        engine.execute(re.findall(r"```cql\n(.*?;)", page, re.DOTALL)[0])
        with client(engine) as asking:
            for command, said in examples:
                _, url, *options = shlex.split(re.sub(r"\$'(.*?)'", lambda text: f"'{text[1]}'", command))
                sent = dict(zip(options[::2], options[1::2], strict=True))
                headers = dict(option.split(": ") for option in options if ": " in option and option[0] not in "[{")
                body = (sent.get("-d") or sent.get("--data-binary", "")).replace("\\n", "\n")
                path = url.removeprefix("localhost:8080")
                answer = asking.post(path, headers=headers, content=body) if body else asking.get(path)
                assert answer.json() == json.loads(said)


@pytest.mark.spark
def test_from_a_socket_to_an_answer(spark: SparkSession, tmp_path: Path) -> None:
    token = "a-token-of-a-test"
    with Engine(spark, tmp_path) as engine:
        engine.execute(
            "CREATE STREAM s (k STRING, v INT); CREATE QUERY q AS SELECT ISTREAM(k, v) FROM s [NOW] WHERE v > 1"
        )
        url = engine.listen(token=token).url
        assert url.startswith("http://127.0.0.1:")
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=30) as asking:
            threads = [
                threading.Thread(
                    target=asking.post, args=("/streams/s",), kwargs={"headers": JSON, "json": [[at, ["a", at]]]}
                )
                for at in range(1, 9)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
            assert asking.post("/streams/s/heartbeat", headers=JSON, json={"to": 8}).json() == {"heartbeat": 8}
            engine.step()
            status = asking.get("/status").json()["queries"]["q"]
            assert (status["complete"], status["results"], status["epochs"]) == (8, 7, 1)
            assert httpx.get(f"{url}/status").status_code == 401
        assert engine.query("q").results() == [Result(at, "+", {"k": "a", "v": at}) for at in range(2, 9)]
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/status")
