"""Fair turns: who waits, who is next, who is let go when there is no more room; and attackers beside rows."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tools.attacks import HEAVY
from tools.duck_engine import engine_on_duckdb, without_spark
from tools.served import say, served

from headgate import Engine
from headgate.planning.limits import PlanLimits
from headgate.planning.planner import Step
from headgate.server.limits import Limits
from headgate.server.statements import pieces
from headgate.server.turns import Job, Turns

ATTACKERS = 10


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with without_spark(), engine_on_duckdb(tmp_path / "state") as engine:
        yield engine


def job(client: str, cql: str = "") -> Job:
    return Job(client, cql, asyncio.new_event_loop().create_future())


# turns


def test_each_client_has_a_turn_before_any_has_a_second_one() -> None:
    turns = Turns(16)
    for number in range(4):
        turns.add(job("a", f"a{number}"))
    for client in "bc":
        turns.add(job(client, f"{client}0"))
    taken = [turns.take() for _ in range(6)]
    assert [one.cql for one in taken if one is not None] == ["a0", "b0", "c0", "a1", "a2", "a3"]
    assert (turns.take(), len(turns)) == (None, 0)


def test_room_is_taken_from_the_client_that_has_most_of_it() -> None:
    turns = Turns(3)
    jobs = [job("a", f"a{number}") for number in range(4)]
    assert [turns.add(one) for one in jobs] == [None, None, None, jobs[3]]
    other = job("b")
    assert turns.add(other) is jobs[2]
    assert turns.take() is jobs[0]
    assert turns.take() is other
    turns.remove(jobs[1])
    turns.remove(jobs[1])
    assert turns.take() is None


def test_a_job_is_begun_or_given_up() -> None:
    one, other = job("a"), job("a")
    assert (one.begin(), one.give_up(), one.begun) == (True, False, True)
    assert (other.give_up(), other.begin(), other.begun) == (True, False, False)


def test_statements_are_carried_out_in_pieces() -> None:
    steps = [
        Step(0, 1, 0.01),
        Step(1, 2, 0.2),
        Step(2, 3, 0.01),
        Step(3, 4, 0.01, "explained"),
        Step(4, 5, 0.01),
    ]
    assert [[one.start for one in piece] for piece in pieces(steps)] == [[0, 1], [2], [3], [4]]
    assert list(pieces([])) == []


# over HTTP


def test_statements_of_all_kinds_keep_their_order(engine: Engine) -> None:
    with served(engine) as asking:
        text = (
            "CREATE STREAM s (k STRING, n INT); CREATE QUERY q AS SELECT n FROM s [NOW]; EXPLAIN SELECT k FROM s [NOW];"
            "SHOW QUERIES; EXPLAIN SELECT n FROM s [NOW]; DROP QUERY q; DESCRIBE nothing; SHOW QUERIES"
        )
        answer = say(asking, text)
    said = answer.json()
    kinds = ["stream", "query", "explanation", "listing", "explanation", "query"]
    assert [one["kind"] for one in said["answers"]] == kinds
    assert said["answers"][3]["rows"][0][0] == "q"
    assert (said["code"], text[said["place"]["start"] : said["place"]["end"]]) == ("no-such-stream", "nothing")


def test_what_changes_beside_a_text_is_seen(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view that is defined between planning and carrying out: the text is planned anew, on what is there then."""
    engine.execute("CREATE STREAM s (k STRING, n INT);")
    with served(engine) as asking:
        clerk = engine.execute
        plans: list[str] = []

        def meddled(cql: str, *given: object, **named: object) -> object:
            plans.append(cql)
            return clerk(cql, *given, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(engine, "execute", meddled)
        assert say(asking, "SET dialect = 'cql'; CREATE VIEW v AS SELECT n FROM s [NOW]").status_code == 200
        clerk("CREATE VIEW w AS SELECT n FROM v;")
        assert say(asking, "CREATE QUERY q AS SELECT n FROM w").status_code == 200
    assert plans == ["SET dialect = 'cql'; CREATE VIEW v AS SELECT n FROM s [NOW]", "CREATE QUERY q AS SELECT n FROM w"]


def test_statements_of_before_a_restart_are_known_again(tmp_path: Path) -> None:
    script = "CREATE STREAM s (n INT); CREATE QUERY q AS SELECT n FROM s [NOW];"
    for _ in range(2):
        with without_spark(), engine_on_duckdb(tmp_path / "state") as engine, served(engine) as asking:
            answer = say(asking, script)
            assert answer.status_code == 200, answer.text
            assert list(engine.catalog.queries) == ["q"]


def test_ten_attackers_hold_up_no_rows(engine: Engine) -> None:
    engine.execute("CREATE STREAM s (k STRING, n INT); CREATE QUERY q AS SELECT ISTREAM(n) FROM s [NOW];")
    limits = Limits(statement_seconds=20, planning=PlanLimits(statement_seconds=1))
    codes: set[str] = set()
    stop = threading.Event()
    with served(engine, limits=limits) as asking:
        texts = list(HEAVY.values())

        def attack(number: int) -> None:
            with httpx.Client(base_url=asking.base_url, timeout=60) as own:
                while not stop.is_set():
                    codes.add(say(own, texts[number % len(texts)]).json().get("code", ""))
                    number += 1

        attackers = [threading.Thread(target=attack, args=(number,)) for number in range(ATTACKERS)]
        for one in attackers:
            one.start()
        longest = 0.0
        try:
            for at in range(1, 101):
                before = time.monotonic()
                answer = asking.post("/streams/s", json=[[at, {"k": "a", "n": at}]])
                assert (answer.status_code, answer.json()["taken"]) == (200, 1), answer.text
                assert asking.get("/health").status_code == 200
                longest = max(longest, time.monotonic() - before)
        finally:
            stop.set()
            for one in attackers:
                one.join(60)
        assert say(asking, "SHOW QUERIES").status_code == 200
    assert longest < 10
    assert codes & {"too-large", "too-deep", "too-long-to-plan", "busy"}
    assert not codes & {"broken", "not-planned"}
