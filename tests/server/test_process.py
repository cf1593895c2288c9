"""`headgate serve` as a process: it is killed and goes on, and a follower misses nothing; what it refuses to start with.

What only this file can catch: positions that do not survive a kill of the real engine on Spark.
"""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from tools.duck_engine import engine_on_duckdb, without_spark
from tools.places import ROOT
from tools.served import events
from typer.testing import CliRunner

from headgate.cli import app
from headgate.errors import UserError
from headgate.server.limits import Limits
from headgate.server.listener import Listener, opened
from headgate.server.serving import Serving

SCRIPT = """
CREATE STREAM s (x INT);
CREATE QUERY q AS SELECT ISTREAM(x) FROM s [NOW];
"""
TOKEN = "a-token-of-a-test"


@contextmanager
def process(script: Path, directory: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A server, killed at the end with its JVM unless it has ended."""
    command = [sys.executable, "-c", "from headgate.cli import main; main()", "serve", str(script)]
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    with (directory.parent / "stderr.txt").open("ab") as log:
        running = subprocess.Popen(
            [*command, "--directory", str(directory), "--listen", str(port), "--log", "json"],
            stderr=log,
            env={**os.environ, "PYTHONPATH": paths, "HEADGATE_TOKEN": TOKEN},
            start_new_session=True,
        )
    try:
        yield running
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait(30)


def wait_for(asking: httpx.Client, running: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 120
    while True:
        with suppress(httpx.TransportError):
            if asking.get("/ready").status_code == 200:
                return
        assert running.poll() is None, "the server has ended"
        assert time.monotonic() < end, "the server does not come up"
        time.sleep(0.2)


@pytest.mark.spark
def test_a_follower_misses_nothing_when_the_server_is_killed(tmp_path: Path) -> None:
    script, directory = tmp_path / "s.cql", tmp_path / "state"
    script.write_text(SCRIPT)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    seen: list[int] = []
    position: list[str] = []
    over = threading.Event()
    token = {"Authorization": f"Bearer {TOKEN}"}

    def follow() -> None:
        """Follow, and come back with the last position whenever the connection breaks."""
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=token, timeout=30) as asking:
            while not over.is_set():
                headers = {"Last-Event-ID": position[-1]} if position else {}
                with suppress(httpx.TransportError), asking.stream("GET", "/queries/q/live", headers=headers) as answer:
                    for kind, last, said in events(answer) if answer.status_code == 200 else ():
                        if kind == "results":
                            seen.extend(row["x"] for row in said["rows"])
                            position.append(last)
                        if over.is_set():
                            break
                time.sleep(0.1)

    follower = threading.Thread(target=follow)
    follower.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=token, timeout=60) as asking:

            def push(number: int) -> None:
                """As a producer does that gets no answer: send it again under its number."""
                headers = {"Producer": "p", "Sequence": str(number)}
                rows: list[Any] = [{"_time": number, "x": number}]
                assert asking.post("/streams/s", headers=headers, json=rows).status_code == 200

            with process(script, directory, port) as first:
                wait_for(asking, first)
                for number in range(1, 13):
                    push(number)
                _until(lambda: len(seen) >= 4)
            before = len(seen)
            with process(script, directory, port) as second:
                wait_for(asking, second)
                for number in range(12, 25):
                    push(number)
                asking.post("/streams/s/heartbeat", json={"to": 24})
                _until(lambda: len(seen) >= 24)
                time.sleep(0.3)
                whole = [row["x"] for row in asking.get("/queries/q/results").json()["rows"]]
                over.set()
                second.send_signal(signal.SIGTERM)
                assert second.wait(60) == 0
    finally:
        over.set()
        follower.join(60)
    assert before >= 4
    assert seen == list(range(1, 25)) == whole


FAILING = """
CREATE STREAM s (k STRING);
CREATE QUERY stops AS SELECT ISTREAM(CAST(k AS INT) AS v) FROM s [NOW];
"""
SKIPPING = """
CREATE QUERY skips AS SELECT ISTREAM(CAST(k AS INT) AS v) FROM s [NOW] ON ERROR SKIP;
CREATE QUERY other AS SELECT ISTREAM(k) FROM s [NOW];
"""


@pytest.mark.spark
def test_a_row_that_cannot_be_evaluated_ends_no_server(tmp_path: Path) -> None:
    script, directory = tmp_path / "s.cql", tmp_path / "state"
    script.write_text(FAILING)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=token, timeout=60) as asking:

        def push(at: int, k: str) -> None:
            assert asking.post("/streams/s", json=[{"_time": at, "k": k}]).json()["taken"] == 1
            asking.post("/streams/s/heartbeat", json={"to": at})

        def rows(query: str, what: str = "results") -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = asking.get(f"/queries/{query}/{what}").json()["rows"]
            return found

        def trouble() -> str:
            found: str = asking.get("/queries/stops/why").json()["trouble"]
            return found

        with process(script, directory, port) as first:
            wait_for(asking, first)
            push(1, "not a number")
            _until(lambda: "is not restarted any more" in trouble())
            assert "[CAST_INVALID_INPUT]" in trouble()
            assert asking.post("/statements", json={"cql": SKIPPING}).status_code == 200
            push(2, "2")
            push(3, "nor this")
            _until(lambda: len(rows("other")) == 2 and len(rows("skips", "errors")) == 1)
            assert (first.poll(), asking.get("/ready").status_code) == (None, 200)
        with process(script, directory, port) as second:
            wait_for(asking, second)
            push(4, "4")
            _until(lambda: len(rows("other")) == 3 and "is not restarted any more" in trouble())
            assert [row["v"] for row in rows("skips")] == [2, 4]
            (left_out,) = rows("skips", "errors")
            assert left_out["row"] == '{"k":"nor this"}'
            assert left_out["error"].startswith("[CAST_INVALID_INPUT] The value 'nor this'")
            altered = asking.post(
                "/statements", json={"cql": f"ALTER QUERY {FAILING.split('QUERY ')[1][:-2]} ON ERROR SKIP"}
            )
            assert altered.status_code == 200
            push(5, "5")
            _until(lambda: [row["v"] for row in rows("stops")] == [5])
            assert not trouble()
            second.send_signal(signal.SIGTERM)
            assert second.wait(60) == 0


def _until(true: Any) -> None:
    end = time.monotonic() + 90
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


# what it refuses to start with


@pytest.mark.parametrize(
    "arguments, code",
    [
        (["--listen", "0.0.0.0:0"], "no-token"),
        (["--listen", "nowhere"], "bad-address"),
        (["--listen", "0", "--tls-key", "key.pem"], "bad-certificate"),
        (["--listen", "0", "--tls-key", "none.pem", "--tls-certificate", "none.pem"], "bad-certificate"),
        (["--listen", "0", "--allow", "csv=/data/*"], "bad-permission"),
        (["none.cql"], "no-such-file"),
    ],
)
def test_what_it_does_not_start_with(arguments: list[str], code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADGATE_TOKEN", raising=False)
    found = CliRunner().invoke(app, ["serve", *arguments])
    assert isinstance(found.exception, UserError)
    assert found.exception.code == code


def test_without_its_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    found = CliRunner().invoke(app, ["serve", "--listen", "0"])
    assert isinstance(found.exception, UserError)
    assert (found.exception.code, found.exception.hint) == ("no-http", "pip install 'headgate[serve]'")


def test_it_speaks_tls(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    try:
        names = ["-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run([*make, *names, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl on this machine, to make a certificate with")
    with without_spark(), engine_on_duckdb() as engine:
        limits = Limits(header_seconds=1.0)
        door = opened("127.0.0.1", 0, None, certificate, key)
        listener: Listener = engine.serve(door, Serving(limits=limits))
        assert listener.url.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=str(certificate))
        assert httpx.get(f"{listener.url}/status", verify=trusted).status_code == 200
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http{listener.url.removeprefix('https')}/status")
        with socket.create_connection(door.bound.getsockname(), timeout=20) as silent:
            assert silent.recv(1) == b"", "a handshake that does not come is not waited for"
