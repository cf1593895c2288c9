"""Bodies that are made to hold a server up, and texts that no answer could have."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tools.duck_engine import engine_on_duckdb, killed, without_spark
from tools.served import JSON, say, served

from headgate import Engine
from headgate.engine import stream_statements
from headgate.errors import UserError
from headgate.server.limits import NESTED, ROW_LETTERS, ROW_PARTS
from headgate.server.reading_json import Values

HALF = "\ud800"
STREAMS = "CREATE STREAM s (k STRING, x INT); CREATE STREAM z (k STRING, x INT) SOURCE BY k;"


@pytest.fixture(autouse=True)
def duck() -> Iterator[None]:
    with without_spark():
        yield


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with engine_on_duckdb(tmp_path / "state") as engine:
        engine.execute(STREAMS)
        yield engine


# what holds nobody up


def longest_wait(asking: httpx.Client, path: str, body: bytes, headers: dict[str, str] = JSON) -> tuple[float, Any]:
    """How long a probe waits at the most while a body is taken, and the answer to it."""
    answers: list[httpx.Response] = []
    sending = threading.Thread(target=lambda: answers.append(asking.post(path, headers=headers, content=body)))
    sending.start()
    longest = 0.0
    with httpx.Client(base_url=asking.base_url, timeout=60) as probing:
        while sending.is_alive():
            began = time.monotonic()
            assert probing.get("/health").status_code == 200
            longest = max(longest, time.monotonic() - began)
    return longest, answers[0].json()


@pytest.mark.parametrize(
    "path, body, code",
    [
        ("/streams/z/heartbeat", b"[" + b"[]," * 5_000_000 + b"[]]", "body-too-large"),
        ("/streams/s", b"[[" + b"[]," * 5_000_000 + b"[]]]", "bad-body"),
        ("/streams/s", b"[" + b"[]," * 5_000_000 + b"[]]", "bad-row"),
        ("/streams/s", b"{" + b'"":[],' * 2_500_000 + b'"":0}', "bad-body"),
    ],
)
def test_bodies_of_nothing_but_brackets(engine: Engine, path: str, body: bytes, code: str) -> None:
    with served(engine) as asking:
        longest, said = longest_wait(asking, path, body)
    assert said["code"] == code
    assert longest < 3, "it was 3.9 s where a body of 15 MiB was read at once"


def test_lines_have_a_bounded_length(engine: Engine) -> None:
    with served(engine) as asking:
        for kind in ("application/x-ndjson", "text/csv"):
            body = b"k,x\n" * (kind == "text/csv") + b"," * (ROW_LETTERS + 1)
            said = asking.post("/streams/s", headers={"Content-Type": kind}, content=body).json()
            assert said["code"] == "bad-body"
            assert said["message"] == f"the line has more than {ROW_LETTERS} letters"


def test_nesting_is_bounded(engine: Engine) -> None:
    with served(engine) as asking:
        for depth, code in ((NESTED + 1, "bad-body"), (20_000, "bad-body")):
            deep = "[" * depth + "]" * depth
            assert asking.post("/streams/s", headers=JSON, content=f'[[1, {{"k": {deep}}}]]').json()["code"] == code
            assert asking.post("/statements", headers=JSON, content=f'{{"cql": {deep}}}').json()["code"] == "bad-body"


def test_rows_that_lie_across_the_parts_of_a_text() -> None:
    """A body is read part by part; no row may notice."""
    rows = [{"k": "x" * (ROW_LETTERS // 3 + at), "x": at, "l": [1.5, None]} for at in range(12)]
    text = json.dumps(rows)
    found: list[Any] = []
    values, place = Values(text), 1
    while len(found) < len(rows):
        value, place = values.at(place)
        found.append(value)
        place += 2
    assert [one["x"] for one in found] == list(range(12))
    assert [one["k"] for one in found] == [one["k"] for one in rows]


def test_a_row_has_a_bounded_length(engine: Engine) -> None:
    with served(engine) as asking:
        letters, parts = f"{ROW_LETTERS} letters", f"{ROW_PARTS} lists and objects"
        for long, most in (
            (json.dumps("x" * 3 * ROW_LETTERS), letters),
            ("[" + "1," * 2 * ROW_LETTERS + "1]", letters),
            ("[" + "[]," * 2 * ROW_PARTS + "1]", parts),
            ("[" + "{}," * 2 * ROW_PARTS + "1]", parts),
        ):
            said = asking.post("/streams/s", headers=JSON, content=f'[[1, {{"k": {long}}}]]').json()
            assert (said["code"], said["detail"]) == ("bad-body", f"a value has more than {most}")


# half characters


@pytest.mark.parametrize(
    "path, body",
    [
        ("/streams/s", r'[[1, {"k": "\ud800", "x": 1}]]'),
        ("/streams/s", r'[[1, {"k": "a", "\uDFFF": 1}]]'),
        ("/streams/s", r'[[1, ["a\ud83d", 1]]]'),
        ("/streams/s", r'[[1, {"k": [["\udc00\ud800"]], "x": 1}]]'),
        ("/streams/z/heartbeat", r'{"to": 1, "source": "\ud800"}'),
        ("/statements", r'{"cql": "CREATE VIEW `\ud800` AS SELECT 1;"}'),
        ("/completions", r'{"before": "SELECT \ud800"}'),
    ],
)
def test_half_characters_are_refused(engine: Engine, path: str, body: str) -> None:
    with served(engine) as asking:
        answer = asking.post(path, headers=JSON, content=body)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad-text")
        assert asking.get("/status").status_code == 200


def test_whole_characters_are_taken(engine: Engine) -> None:
    with served(engine) as asking:
        answer = asking.post("/streams/s", headers=JSON, content=r'[[1, {"k": "\ud83d\ude00", "x": 1}]]')
        assert answer.json()["taken"] == 1
        say(asking, "CREATE QUERY q AS SELECT ISTREAM(k) FROM s [NOW];")
        engine.advance(1)
        assert asking.get("/queries/q/results").json()["rows"] == [{"_time": 1, "k": "\U0001f600"}]


def test_half_characters_in_an_address(engine: Engine) -> None:
    with served(engine) as asking:
        assert asking.get("/queries/%ED%A0%80").status_code == 404
        assert asking.get("/queries/q/results?after=%ED%A0%80").status_code == 404
        assert asking.get("/status").status_code == 200


def test_half_characters_from_python(engine: Engine) -> None:
    for wrong in (
        lambda: engine.push("s", [(1, {"k": HALF, "x": 1})]),
        lambda: engine.push("s", [(1, ("a" + HALF, 1))]),
        lambda: engine.punctuate("z", 1, HALF),
        lambda: engine.execute(f"CREATE QUERY `{HALF}` AS SELECT ISTREAM(k) FROM s [NOW];"),
    ):
        with pytest.raises(UserError, match="bad-text"):
            wrong()
    assert not engine.catalog.queries
    assert not engine.dead_letters("s")


def test_half_characters_that_were_kept_before(engine: Engine, tmp_path: Path) -> None:
    """A directory of an earlier version has some; the server shows everything all the same, also when it goes on."""
    engine.execute("CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM z [RANGE 5] GROUP BY k;")
    engine.push("z", [(9, ("a", 1))])
    stream_statements.punctuate(engine._core, "z", 2, HALF)
    engine.step()

    def look(engine: Engine) -> None:
        with served(engine) as asking:
            for path in ("/status", "/queries/q/why", "/metrics", "/", "/queries/q", "/queries/q/trace"):
                answer = asking.get(path)
                assert answer.status_code == 200, path
            assert r"\ud800" in asking.get("/queries/q/why").text
            assert say(asking, "WHY q; SHOW STREAMS;").status_code == 200

    look(engine)
    with killed(engine, tmp_path / "state") as later:
        look(later)


def test_the_command_line_writes_half_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    from headgate import cli

    written = io.TextIOWrapper(io.BytesIO(), "utf-8")
    monkeypatch.setattr("sys.stdout", written)
    monkeypatch.setattr(cli, "app", lambda: print(HALF))
    cli.main()
    written.flush()
    assert written.buffer.getvalue() == b"\\ud800\n"
