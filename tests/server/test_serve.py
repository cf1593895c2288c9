"""An engine that is served: statements and results over HTTP, and what strangers cannot do.

What only this file can catch: a result that a reader misses or sees twice, a reader that holds up the engine, a text
from outside that reaches beyond the engine. Epochs run in DuckDB.
"""

from __future__ import annotations

import json
import re
import shlex
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from tools.attacks import ALLOWED, ALWAYS, OUTSIDE, OVER_HTTP
from tools.duck_engine import engine_on_duckdb, killed, without_spark
from tools.places import DOCS, ROOT
from tools.served import JSON, events, say, served, until

from headgate import Engine
from headgate.server import examples
from headgate.server.app import application
from headgate.server.limits import Limits
from headgate.server.serving import Serving

STREAM = "CREATE STREAM s (k STRING, x INT);"
QUERY = "CREATE QUERY q AS SELECT ISTREAM(k, x) FROM s [NOW];"
METRICS_TEXT = (ROOT / "src/headgate/server/metrics.py").read_text()
RELATION = "CREATE QUERY r AS SELECT k, MAX(x) AS n FROM s [RANGE 3] GROUP BY k;"


@pytest.fixture(autouse=True)
def duck() -> Iterator[None]:
    with without_spark():
        yield


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with engine_on_duckdb(tmp_path / "state") as engine:
        yield engine


def feed(engine: Engine, first: int, last: int, each: int = 1) -> None:
    """Push rows stamped `first` to `last`, and take the queries there after every `each` instants."""
    for at in range(first, last + 1, each):
        engine.push("s", [(one, {"k": "abc"[one % 3], "x": one}) for one in range(at, min(at + each, last + 1))])
        engine.advance(min(at + each - 1, last))


def all_pages(asking: httpx.Client, query: str, limit: int, after: str | None = None) -> tuple[list[Any], str]:
    """All results behind a position, page by page, and the last position."""
    rows: list[Any] = []
    while True:
        said = {"limit": limit} | ({} if after is None else {"after": after})
        page = asking.get(f"/queries/{query}/results", params=said).json()
        rows, after = rows + page["rows"], page["position"]
        if not page["more"]:
            return rows, page["position"]


# the interface


def test_the_examples_are_true(engine: Engine) -> None:
    with served(engine) as asking:
        for method, path, body, said in examples.STORY:
            answer = asking.request(method, path, json=body).json()
            if "position" in answer:
                answer["position"] = f"5f3a09c1e2b44d0f-{answer['position'].partition('-')[2]}"
            assert answer == said, path
            if path.endswith("/heartbeat"):
                engine.step()
        described = asking.get("/openapi.json").json()
    routes = {(method.upper(), path) for path, one in described["paths"].items() for method in one}
    assert {
        (method, path) for method, path, *_ in examples.STORY if "sales" not in path and "large" not in path
    } <= routes
    for path, methods in described["paths"].items():
        for one in methods.values():
            (content,) = one["responses"]["200"]["content"].values()
            assert content["example"], path
            assert one["summary"], path
            assert one["description"], path


def test_the_page_on_the_server_says_what_happens(engine: Engine) -> None:
    """Every request of the page is sent, and answered as it says."""
    page = (DOCS / "server.md").read_text(encoding="utf-8")
    examples = re.findall(r"```sh\n(curl .*?)\n```\n```json\n(.*?)\n```", page, re.DOTALL)
    assert len(examples) == 7
    with served(engine) as asking:
        for command, said in examples:
            _, *words = shlex.split(command)
            method = "DELETE" if words[0] == "-X" else "POST" if "-d" in words else "GET"
            url = next(word for word in words if word.startswith("localhost:8080"))
            body = words[words.index("-d") + 1] if "-d" in words else None
            answer = asking.request(method, url.removeprefix("localhost:8080"), headers=JSON, content=body).json()
            if "position" in answer:
                answer["position"] = f"5f3a09c1e2b44d0f-{answer['position'].partition('-')[2]}"
            assert answer == json.loads(said), command
            if url.endswith("/heartbeat"):
                engine.step()
    for metric in re.findall(r"`(headgate_[a-z_]+)`", page):
        assert metric.removesuffix("_total") in METRICS_TEXT, metric


def test_snapshots_settled_and_early(engine: Engine) -> None:
    with served(engine) as asking:
        counts = "CREATE QUERY c AS SELECT COUNT(*) AS n FROM s [RANGE 50] EMIT EARLY; DISORDER OF s 100;"
        assert say(asking, f"{STREAM} {counts}").status_code == 200
        engine.push("s", [(1, ("a", 1)), (3, ("b", 2))])
        engine.punctuate("s", 2)
        engine.step()
        settled, early = say(asking, "SNAPSHOT c; SNAPSHOT EARLY c;").json()["answers"]
        assert settled == {
            "kind": "snapshot",
            "at": 2,
            "partial": False,
            "tuples": {"s": 2},
            "queries": {"c": [{"n": "1"}]},
        }
        assert early == {
            "kind": "snapshot",
            "at": 3,
            "partial": True,
            "tuples": {"s": 2},
            "queries": {"c": [{"n": "2"}]},
        }
        say(asking, "ALTER QUERY c AS SELECT COUNT(*) AS n FROM s [RANGE 50]")
        refused = say(asking, "SNAPSHOT EARLY c;")
        assert (refused.status_code, refused.json()["code"]) == (409, "no-early-answers")


def test_statements_before_a_mistake_are_done_and_said(engine: Engine) -> None:
    with served(engine) as asking:
        answer = say(asking, f"{STREAM}\n{QUERY}\nCREATE QUERY p AS SELECT y FROM s [NOW];")
        assert answer.status_code == 400
        said = answer.json()
        assert [one["name"] for one in said["answers"]] == ["s", "q"]
        assert (said["code"], said["place"]["line"], said["place"]["column"]) == ("no-such-column", 3, 26)
        assert said["hint"] or said["detail"]
        again = asking.post("/statements", headers={"Content-Type": "application/sql"}, content="SHOW QUERIES;")
        assert again.json()["answers"][0]["rows"][0][0] == "q"
        feed(engine, 1, 4)
        kinds = [one["kind"] for one in say(asking, "WHY q; EXPLAIN SELECT k FROM s [NOW];").json()["answers"]]
        assert kinds == ["why", "explanation"]
        assert "-- plan" in asking.get("/queries/q/explain").json()["text"]
        assert [one["instant"] for one in asking.get("/queries/q/trace").json()["heartbeats"]] == list("1234")
        assert asking.get("/queries/Q").json()["results"] == 4
        altered = say(asking, "ALTER QUERY q AS SELECT ISTREAM(k) FROM s [NOW];")
        assert altered.json()["answers"] == [{"kind": "query", "name": "q", "did": "altered"}]
        assert asking.delete("/queries/q").json()["answers"] == [{"kind": "query", "name": "q", "did": "dropped"}]
        assert asking.get("/queries/q").status_code == 404
        assert asking.delete("/queries/q").json()["code"] == "no-such-query"


@pytest.mark.parametrize(
    "headers, body, code",
    [
        (JSON, b"{", "bad-body"),
        (JSON, b'{"sql": "x"}', "bad-body"),
        (JSON, b'{"cql": 7}', "bad-body"),
        (JSON, b"[" * 50_000, "bad-body"),
        (JSON, b'{"cql": "' + b"x" * 300_000 + b'"}', "body-too-large"),
        ({"Content-Type": "application/sql"}, b"\xff", "bad-body"),
        ({"Content-Type": "text/plain"}, b"SHOW QUERIES", "bad-content-type"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, b"cql=x", "bad-content-type"),
    ],
)
def test_bodies_that_are_no_statements(engine: Engine, headers: dict[str, str], body: bytes, code: str) -> None:
    with served(engine) as asking:
        answer = asking.post("/statements", headers=headers, content=body)
    assert answer.json()["code"] == code
    assert answer.status_code in (400, 413, 415)


def test_a_request_waits_for_its_statements_for_a_limited_time(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    held, carried = threading.Event(), list[str]()

    def slow(cql: str, *_: Any, **__: Any) -> list[Any]:
        carried.append(cql)
        held.wait(30)
        return []

    monkeypatch.setattr(engine, "execute", slow)
    with served(engine, limits=Limits(statement_seconds=5, statements_waiting=1, client_share=1)) as asking:
        answers: list[httpx.Response] = []
        texts = [f"SHOW QUERIES -- {number}" for number in (1, 2, 3, 4)]
        asked = [threading.Thread(target=lambda cql=cql: answers.append(say(asking, cql))) for cql in texts[:2]]
        asked[0].start()
        until(lambda: carried)
        asked[1].start()
        time.sleep(0.1)
        busy = say(asking, texts[2])
        for one in asked:
            one.join()
        assert (busy.status_code, busy.json()["code"]) == (429, "busy")
        assert [(one.status_code, one.json()["code"]) for one in answers] == [
            (504, "still-running"),
            (503, "not-begun"),
        ]
        assert asking.get("/health").status_code == 200
        held.set()
        assert say(asking, texts[3]).status_code == 200
    assert carried == ["SHOW QUERIES"] * 2, "what had not begun is not carried out later"


# strangers


def test_what_no_text_from_outside_can_do(engine: Engine) -> None:
    engine.execute("CREATE STREAM s (k STRING, x INT, at TIMESTAMP) TIMESTAMP BY at;")
    known = dict(engine.catalog.queries)
    with served(engine, limits=Limits(statement_seconds=300)) as asking:
        for text in [*ALWAYS, *OVER_HTTP]:
            answer = say(asking, text)
            assert 400 <= answer.status_code < 500, text[:200]
            assert answer.json()["code"] not in ("broken", "unexpected"), text[:200]
            assert set(answer.json()) >= {"code", "message", "detail", "hint"}
            say(asking, "SET dialect = 'cql';")
    assert engine.catalog.queries == known
    assert list(engine.catalog.streams) == ["s"]
    assert not engine.catalog.relations
    assert not engine.catalog.functions


def test_what_the_operator_did_not_allow(engine: Engine, tmp_path: Path) -> None:
    for folder in ("in/deeper", "out", "secret", "inner"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "in" / "link").symlink_to("/etc")
    engine.execute("CREATE STREAM s (k STRING, x INT, at TIMESTAMP) TIMESTAMP BY at;")
    fill = {"{here}": str(tmp_path), "{{": "{", "}}": "}"}
    with served(engine, allow=(ALLOWED.format(here=tmp_path),)) as asking:
        for text in OUTSIDE:
            for old, new in fill.items():
                text = text.replace(old, new)
            answer = say(asking, text)
            assert answer.json()["code"] in ("not-allowed", "bad-option", "no-such-function"), text
    with served(engine) as asking:
        for text in OUTSIDE:
            answer = say(asking, text.replace("{here}", str(tmp_path)).replace("{{", "{").replace("}}", "}"))
            assert 400 <= answer.status_code < 500, text
    assert list(engine.catalog.streams) == ["s"]
    assert not engine.catalog.queries
    assert not list((tmp_path / "out").iterdir())


def test_pages_of_other_origins_are_refused(engine: Engine) -> None:
    with served(engine) as asking:
        own = str(asking.base_url).rstrip("/")
        for origin in ("https://evil.example", "null", "http://localhost:1", "http://["):
            for method, path in (("GET", "/status"), ("POST", "/statements"), ("OPTIONS", "/statements")):
                answer = asking.request(method, path, headers={"Origin": origin})
                assert (answer.status_code, answer.json()["code"]) == (403, "foreign-origin")
        answer = asking.get("/status", headers={"Origin": own})
        assert answer.status_code == 200
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert asking.options("/statements").json()["code"] == "no-such-page"


def test_a_token_guards_everything_but_probes(engine: Engine) -> None:
    with served(engine, token="a-token-of-a-test") as asking:
        for path in ("/status", "/metrics", "/openapi.json", "/queries/q", "/queries/q/live"):
            assert asking.get(path).status_code == 401
        assert say(asking, "SHOW QUERIES;").status_code == 401
        assert asking.get("/health").json() == {"status": "ok"}
        ready = asking.get("/ready")
        assert (ready.status_code, ready.json()["code"]) == (503, "not-ready"), "nothing runs the engine"
        asking.headers["Authorization"] = "Bearer a-token-of-a-test"
        assert asking.get("/status").status_code == 200


def test_rows_only_is_rows_only(engine: Engine) -> None:
    """`engine.listen` and `run --listen` take no statements and give out no results."""
    with engine.listen() as listener, httpx.Client(base_url=listener.url) as asking:
        assert say(asking, "SHOW QUERIES;").json()["code"] == "no-such-page"
        assert asking.get("/openapi.json").status_code == 404
        assert asking.get("/metrics").status_code == 200


# results


def test_pages_have_every_result_once_and_in_order(engine: Engine, tmp_path: Path) -> None:
    """Whatever the size of pages, while files are merged, and over a kill."""
    engine.execute(STREAM + QUERY + RELATION)
    random = Random(1)
    read: dict[str, list[Any]] = {"q": [], "r": []}
    after: dict[str, str | None] = {"q": None, "r": None}

    def read_on(asking: httpx.Client) -> None:
        for query in read:
            rows, after[query] = all_pages(asking, query, random.randint(1, 7), after[query])
            read[query] += rows

    with served(engine) as asking:
        for at in range(1, 45, 3):
            feed(engine, at, at + 2, each=random.choice((1, 2, 3)))
            read_on(asking)
        whole = {query: all_pages(asking, query, 10_000)[0] for query in read}
        assert len(engine.query("q").outbox.log.chunks) < 16, "files were merged"
    assert read == whole
    for query, rows in read.items():
        expected = [{"_time": one.at, "_change": one.sign, **one.row} for one in engine.query(query).results()]
        plain = [{"_change": "+", **row} for row in rows]
        key = lambda row: sorted(map(str, row.items()))  # noqa: E731
        assert sorted(plain, key=key) == sorted(expected, key=key)
        placed = [(row["_time"], row["_change"] != "-") for row in plain]
        assert all(one <= two for one, two in pairwise(placed)), "deletions come before insertions"
    with killed(engine, tmp_path / "state") as later, served(later) as asking:
        assert [all_pages(asking, query, 100, after[query])[0] for query in read] == [[], []]
        feed(later, 46, 48)
        read_on(asking)
        assert read == {query: all_pages(asking, query, 10_000)[0] for query in read}
        assert read["q"][-3:] == [{"_time": at, "k": "abc"[at % 3], "x": at} for at in (46, 47, 48)]


def test_members_of_a_family_have_pages_of_their_own(engine: Engine) -> None:
    """Their results lie in one log: each sees its own, in pages and as they come, and never those of another."""
    engine.execute(STREAM)
    texts = {f"q{n}": f"SELECT ISTREAM(k, x) FROM s [NOW] WHERE x > {n}" for n in range(12)}
    engine.execute("".join(f"CREATE QUERY {name} AS {text};" for name, text in texts.items()))
    assert engine.query("q1").shares_outbox, "they run as one program"
    feed(engine, 1, 15, each=4)
    with served(engine, limits=Limits(page_rows=3, page_bytes=200)) as asking:
        positions = set()
        for n in (0, 5, 11):
            expected = list(range(n + 1, 16))
            rows, position = all_pages(asking, f"q{n}", 4)
            assert [row["x"] for row in rows] == expected
            with asking.stream("GET", f"/queries/q{n}/live") as answer:
                seen: list[int] = []
                for _, _, said in events(answer):
                    seen += [row["x"] for row in said["rows"]]
                    if seen[-1] == 15:
                        break
            assert seen == expected
            positions.add(position)
        assert len(positions) == 3
        wrong = asking.get("/queries/q3/results", params={"after": position})
        assert wrong.json()["code"] == "results-changed", "a position of another query"
        assert asking.get("/status").json()["queries"]["q1"]["results"] is None


def test_positions_of_other_results_are_refused(engine: Engine) -> None:
    engine.execute(STREAM + QUERY)
    feed(engine, 1, 3)
    with served(engine) as asking:
        _, position = all_pages(asking, "q", 10)
        for wrong in ("7", "x-1", f"{position}9", "-1", "é"):
            said = asking.get("/queries/q/results", params={"after": wrong}).json()["code"]
            assert said in ("bad-position", "results-changed")
        assert asking.get("/queries/q/results", params={"limit": 0}).json()["code"] == "bad-parameter"
        assert asking.get("/queries/q/results", params={"after": "end"}).json()["rows"] == []
        say(asking, "DROP QUERY q;")
        say(asking, QUERY)
        feed(engine, 4, 9)
        changed = asking.get("/queries/q/results", params={"after": position})
        assert (changed.status_code, changed.json()["code"]) == (409, "results-changed")


def test_a_page_has_no_more_bytes_than_it_may(engine: Engine) -> None:
    engine.execute(STREAM + QUERY)
    engine.push("s", [(at, {"k": "x" * (400 if at != 3 else 4_000), "x": at}) for at in range(1, 6)])
    engine.advance(5)
    with served(engine, limits=Limits(page_bytes=1_000)) as asking:
        first = asking.get("/queries/q/results").json()
        assert [row["x"] for row in first["rows"]] == [1, 2]
        large = asking.get("/queries/q/results", params={"after": first["position"]})
        assert (large.status_code, large.json()["code"]) == (413, "result-too-large")
        behind = large.json()["hint"].split()[0].removeprefix("after=")
        assert [row["x"] for row in all_pages(asking, "q", 10, behind)[0]] == [4, 5]


def test_values_that_json_has_no_notation_for(engine: Engine) -> None:
    engine.execute("CREATE STREAM s (d DOUBLE, b BINARY, y DATE, l ARRAY<DOUBLE>, at TIMESTAMP) TIMESTAMP BY at;")
    engine.execute("CREATE QUERY q AS SELECT ISTREAM(d, b, y, l) FROM s [NOW];")
    at = "2026-01-31T12:00:00Z"
    engine.push("s", [{"d": float("nan"), "b": b"hi", "y": date(2026, 1, 31), "l": [0.5, float("inf")], "at": at}])
    engine.advance(at)
    with served(engine) as asking:
        (row,) = asking.get("/queries/q/results").json()["rows"]
    time_of = row.pop("_time")
    assert time_of.startswith("2026-01-31T12:00:00")
    assert row == {"d": "NaN", "b": "aGk=", "y": "2026-01-31", "l": [0.5, "Infinity"]}


# results as they come


def test_followers_see_every_result_once_and_come_back(engine: Engine) -> None:
    engine.execute(STREAM + QUERY)
    feed(engine, 1, 3)
    seen, last = list[int](), None
    with served(engine) as asking:
        for upto in (6, 9, 12):
            headers: dict[str, str] = {} if last is None else {"Last-Event-ID": last}
            with asking.stream("GET", "/queries/q/live", headers=headers) as answer:
                assert answer.headers["Content-Type"].startswith("text/event-stream")
                feeding = threading.Thread(target=feed, args=(engine, upto - 2, upto))
                feeding.start()
                for kind, last, said in events(answer):
                    assert (kind, last) == ("results", said["position"])
                    seen += [row["x"] for row in said["rows"]]
                    if seen[-1] == upto:
                        break
                feeding.join()
        with asking.stream("GET", "/queries/q/live", params={"after": "end"}) as answer:
            found = events(answer)
            feeding = threading.Thread(target=feed, args=(engine, 13, 13))
            time.sleep(0.2)
            feeding.start()
            assert [row["x"] for row in next(found)[2]["rows"]] == [13]
            feeding.join()
            say(asking, "DROP QUERY q;")
            say(asking, QUERY)
            feed(engine, 14, 14)
            kind, _, said = next(found)
            assert (kind, said["code"]) == ("end", "results-changed")
            assert list(found) == [], "the answer has ended"
    assert seen == list(range(1, 13))


def test_a_follower_that_takes_nothing_is_let_go_and_holds_up_nobody(engine: Engine) -> None:
    engine.execute(STREAM + QUERY)
    with served(engine, limits=Limits(send_seconds=0.5, page_rows=10, status_seconds=0)) as asking:
        where = (asking.base_url.host, asking.base_url.port or 0)
        with socket.socket() as lazy:
            lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            lazy.settimeout(30)
            lazy.connect(where)
            lazy.sendall(b"GET /queries/q/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert lazy.recv(100).startswith(b"HTTP/1.1 200")
            began = time.monotonic()
            for at in range(1, 201, 20):
                engine.push("s", [(one, {"k": "y" * 50_000, "x": one}) for one in range(at, at + 20)])
                engine.advance(at + 19)
            took = time.monotonic() - began
            text = ""
            while "headgate_live_followers_let_go_total 1.0" not in text:
                assert time.monotonic() < began + 60, text
                text = asking.get("/metrics").text
                time.sleep(0.05)
            assert "headgate_live_followers 0.0" in text
        with asking.stream("GET", "/queries/q/live") as answer:
            seen = list[int]()
            for _, _, said in events(answer):
                seen += [row["x"] for row in said["rows"]]
                if seen[-1] == 200:
                    break
        assert seen == list(range(1, 201)), "whoever reads has them all"
    assert took < 30


def test_room_for_followers_and_requests(engine: Engine) -> None:
    engine.execute(STREAM + QUERY + "CREATE QUERY away AS SELECT ISTREAM(k) FROM s [NOW] INTO console;")
    with served(engine, limits=Limits(followers=1, requests=2)) as asking:
        with asking.stream("GET", "/queries/q/live"):
            full = asking.get("/queries/q/live")
            assert (full.status_code, full.json()["code"], full.headers["Retry-After"]) == (429, "busy", "1")
            assert asking.get("/queries/none/live").json()["code"] in ("busy", "no-such-query")
            assert asking.get("/health").status_code == 200
        end = time.monotonic() + 30
        while (answer := asking.get("/queries/none/live")).json()["code"] == "busy":
            assert time.monotonic() < end
        assert answer.status_code == 404


def test_followers_of_one_client_leave_room_for_others(engine: Engine) -> None:
    engine.execute(STREAM + QUERY)
    with served(engine, limits=Limits(followers=4)) as asking, ExitStack() as opened:

        def follow(own: str) -> httpx.Response:
            transport = httpx.HTTPTransport(local_address=own)
            client = opened.enter_context(httpx.Client(base_url=asking.base_url, transport=transport, timeout=30))
            return opened.enter_context(client.stream("GET", "/queries/q/live"))

        assert [follow("127.0.0.2").status_code for _ in range(3)] == [200, 200, 429]
        assert [follow("127.0.0.3").status_code for _ in range(3)] == [200, 200, 429]
        assert follow("127.0.0.4").status_code == 429, "there are four in all"


def test_the_application_needs_no_socket(engine: Engine) -> None:
    """It is plain ASGI: other servers can run it."""
    import asyncio

    async def ask() -> httpx.Response:
        app = application(engine, engine._core.inputs, serving=Serving())
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as asking:
            found = await asking.post("/statements", json={"cql": STREAM + QUERY})
        app.state.office.begin_to_stop()
        app.state.office.close()
        return found

    assert [one["name"] for one in asyncio.run(ask()).json()["answers"]] == ["s", "q"]


# early answers


def test_early_answers_are_partial_and_have_no_position(engine: Engine) -> None:
    engine.execute(STREAM + QUERY + "CREATE QUERY e AS SELECT k, MAX(x) AS n FROM s [RANGE 3] GROUP BY k EMIT EARLY;")
    with served(engine) as asking:
        first = asking.get("/queries/e/early").json()
        assert first == {
            "partial": True,
            "complete": None,
            "upto": None,
            "consistent": True,
            "tuples": {},
            "left_out": 0,
            "rows": [],
        }
        refused = asking.get("/queries/q/early")
        assert (refused.status_code, refused.json()["code"]) == (409, "no-early-answers")
        with asking.stream("GET", "/queries/e/live") as answer:
            found = events(answer)
            engine.push("s", [(5, {"k": "a", "x": 7})])
            engine.step()
            settled = list[Any]()
            kind, position, said = next(found)
            assert (kind, position, said["partial"]) == ("early", "", True), "no id: nobody goes on behind it"
            assert "position" not in said
            assert {"_time": 5, "_change": "+", "k": "a", "n": 7} in said["rows"]
            assert (said["upto"], said["tuples"]) == (5, {"s": 1})
            assert asking.get("/queries/e/early").json() == said
            engine.push("s", [(9, {"k": "b", "x": 1})])
            engine.step()
            while not (kind == "early" and said["upto"] == 9):
                kind, position, said = next(found)
                settled += said["rows"] if kind == "results" else []
                assert bool(position) == (kind == "results")
            assert settled == [{"_time": 5, "_change": "+", "k": "a", "n": 7}]
            assert all(row["_time"] > 8 for row in said["rows"])
            assert {"_time": 9, "_change": "+", "k": "b", "n": 1} in said["rows"]


def test_an_early_answer_has_no_more_rows_than_a_page(engine: Engine) -> None:
    engine.execute(STREAM + "CREATE QUERY e AS SELECT ISTREAM(k, x) FROM s [RANGE 2] WHERE x > 1 EMIT EARLY;")
    engine.push("s", [(9, {"k": "a", "x": 1 + at}) for at in range(1, 11)])
    engine.step()
    with served(engine, limits=Limits(most_page_rows=4, page_rows=4)) as asking:
        said = asking.get("/queries/e/early").json()
    assert (len(said["rows"]), said["left_out"]) == (4, 6)
