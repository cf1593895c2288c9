"""A server whose queries fail: it goes on, and a row that cannot be evaluated ends nothing but what has to read it.

What only this file can catch: a sender of rows that ends a server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from tools.duck_engine import engine_on_duckdb, without_spark
from tools.served import JSON, say, served

from headgate import ManualClock

STREAM = "CREATE STREAM s (k INT);"
FAILING = "CREATE QUERY q AS SELECT ISTREAM(k * 1000000000 AS v) FROM s [NOW];"
OTHER = "CREATE QUERY other AS SELECT ISTREAM(k) FROM s [NOW];"


@pytest.fixture(autouse=True)
def duck() -> Iterator[None]:
    with without_spark():
        yield


def push(asking: httpx.Client, at: int, k: int) -> httpx.Response:
    answer = asking.post("/streams/s", headers=JSON, json=[{"_time": at, "k": k}])
    asking.post("/streams/s/heartbeat", headers=JSON, json={"to": at})
    return answer


def until(clock: ManualClock, true: Callable[[], bool]) -> None:
    """Wait for something in an engine whose clock goes 31 s at a time, so that no restart is waited for."""
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        clock.move_by(31_000_000)
        time.sleep(0.01)


def test_a_server_goes_on_while_all_of_its_queries_stand_still(tmp_path: Path) -> None:
    clock = ManualClock()
    engine = engine_on_duckdb(tmp_path / "state", clock)
    told: list[str] = []
    with served(engine) as asking:
        assert say(asking, STREAM + FAILING).status_code == 200
        engine.start(told.append)
        push(asking, 1, 3)
        until(clock, lambda: engine.query("q").given_up)
        until(clock, lambda: any("All queries stand still now" in one for one in told))
        assert engine.running
        assert asking.get("/ready").status_code == asking.get("/health").status_code == 200
        taken = push(asking, 2, 2)
        assert (taken.status_code, taken.json()["taken"]) == (200, 1)
        assert "Overflow" in asking.get("/status").json()["queries"]["q"]["trouble"]
        why = asking.get("/queries/q/why").json()
        assert why["trouble"].startswith('query-failed: query "q" failed in the epoch (0, 1]')
        assert "it stands still: query-failed" in why["text"]
        assert "ON ERROR SKIP leaves out rows that cannot be evaluated; DROP QUERY ends it." in why["text"]
        assert 'headgate_query_failed{query="q"} 1.0' in asking.get("/metrics").text
        assert say(asking, OTHER).status_code == 200
        push(asking, 3, 1)
        until(clock, lambda: engine.query("other").count == 1)
        assert engine.running
    engine.stop()
    engine._running.end()
    engine._core.journal.close()
    engine._core.lock.release()
    engine = engine_on_duckdb(tmp_path / "state", clock)
    with served(engine) as asking:
        engine.start(told.append)
        push(asking, 4, 1)
        until(clock, lambda: engine.query("q").given_up and engine.query("other").count == 2)
        assert engine.counts("s")["taken"] == 4
        assert (
            say(asking, "DROP QUERY q; " + FAILING.replace(" AS SELECT", " FROM BEGINNING AS SELECT")).status_code
            == 200
        )
    engine.close()


def test_what_is_not_served_ends_when_all_queries_stand_still() -> None:
    clock = ManualClock()
    with engine_on_duckdb(clock=clock) as engine:
        engine.execute(STREAM + FAILING)
        engine.push("s", [(1, (3,))])
        engine.punctuate("s", 1)

        def later() -> bool:
            clock.move_by(31_000_000)
            return False

        with pytest.raises(Exception, match='query "q" failed'):
            engine.run(until=later)


def test_rows_that_a_query_leaves_out_are_counted_and_shown() -> None:
    with engine_on_duckdb() as engine, served(engine) as asking:
        assert say(asking, STREAM + OTHER + FAILING.replace(";", " ON ERROR SKIP;")).status_code == 200
        for at, k in enumerate((1, 3, 2, 4), 1):
            push(asking, at, k)
            engine.step()
        assert [row["v"] for row in asking.get("/queries/q/results").json()["rows"]] == [1000000000, 2000000000]
        page = asking.get("/queries/q/errors", params={"limit": 1}).json()
        row = {"row": '{"k":3}', "expression": "k * 1000000000", "operator": "select list"}
        (first,) = page["rows"]
        assert first.pop("error") is not None
        assert (first, page["more"]) == ({"_time": 2, **row}, True)
        (second,) = asking.get("/queries/q/errors", params={"after": page["position"]}).json()["rows"]
        assert (second["_time"], second["row"]) == (4, '{"k":4}')
        status = asking.get("/status").json()["queries"]
        assert (status["q"]["skipped"], status["other"]["skipped"]) == (2, None)
        why = asking.get("/queries/q/why").json()
        assert why["skipped"] == 2
        assert "2 rows were left out, because they could not be evaluated: see ERRORS(q)" in why["text"]
        assert 'headgate_query_skipped_rows_total{query="q"} 2.0' in asking.get("/metrics").text
        missing = asking.get("/queries/other/errors")
        assert (missing.status_code, missing.json()["code"]) == (409, "no-errors-kept")
        assert asking.delete("/queries/errors(q)").json()["code"] == "keeps-errors"
        assert asking.delete("/queries/q").status_code == 200
        assert asking.get("/queries/errors(q)").status_code == 404
