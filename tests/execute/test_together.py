"""Small epochs of several queries in one statement: the answers of each are those it gives alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate import Engine
from headgate.errors import UserError
from headgate.execute import together
from headgate.execute.prepared import PreparedEpoch, Written
from headgate.schedule import loop

STREAMS = """
CREATE STREAM s (t BIGINT, k STRING, v DOUBLE) TIMESTAMP BY t;
CREATE STREAM r (t BIGINT, k STRING, w INT) TIMESTAMP BY t;
"""
QUERIES = (
    "SELECT ISTREAM k, v FROM s [NOW] WHERE v > 2",
    "SELECT k, COUNT(*) AS n, AVG(v) AS m FROM s [RANGE 4] GROUP BY k",
    "SELECT ISTREAM MAX(v) AS m, COUNT(*) AS n FROM s [ROWS 5]",
    "SELECT DISTINCT k FROM s [RANGE 3]",
    "SELECT s.k, s.v, r.w FROM s [RANGE 3], r [RANGE 5] WHERE s.k = r.k",
    "SELECT DSTREAM k, SUM(w) AS total FROM r [RANGE 4 SLIDE 2] GROUP BY k",
    "SELECT s.k, r.w FROM s [RANGE 2] LEFT JOIN r [NOW] ON s.k = r.k",
    "SELECT ISTREAM ARRAY(k, 'x') AS both, NAMED_STRUCT('v', v, 'n', 1) AS pair FROM s [NOW]",
)


def rows(chance: random.Random, instant: int, stream: str) -> list[tuple[Any, ...]]:
    value = (lambda: round(chance.random() * 5, 1)) if stream == "s" else (lambda: chance.randrange(5))
    return [(instant, chance.choice("abc"), value()) for _ in range(chance.randrange(4))]


class Counting:
    """Runs epochs together as ever, and notes how many were in each statement."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.branches: list[int] = []
        monkeypatch.setattr(loop, "run_together", self.run)

    def run(self, epochs: Sequence[PreparedEpoch]) -> list[Written | None]:
        self.branches.append(len(epochs))
        return together.run_together(epochs)


@pytest.mark.parametrize("seed", range(2))
def test_answers_are_the_same_as_alone_while_queries_come_and_go(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance, counting = random.Random(seed), Counting(monkeypatch)
    begun: dict[str, tuple[int, str]] = {}
    ended: dict[str, tuple[int, list[Any]]] = {}
    pushed: list[tuple[str, list[tuple[Any, ...]]]] = []
    with Engine(spark, tmp_path / "all") as engine:
        engine.execute(STREAMS)
        for instant in range(1, 9):
            if instant % 3 == 1:
                for text in chance.sample(QUERIES, 4):
                    name = f"q{len(begun)}"
                    engine.execute(f"CREATE QUERY {name} AS {text}")
                    begun[name] = (len(pushed), text)
            for stream in ("s", "r"):
                new = rows(chance, instant, stream)
                pushed.append((stream, new))
                engine.push(stream, new)
            engine.advance(instant)
            if instant % 4 == 0:
                gone = chance.choice([name for name in begun if name not in ended])
                ended[gone] = (len(pushed), list(engine.query(gone).results()))
                engine.execute(f"DROP QUERY {gone}")
        for name in begun.keys() - ended.keys():
            ended[name] = (len(pushed), list(engine.query(name).results()))
    assert max(counting.branches) >= 4, "they ran in one statement"
    monkeypatch.setattr(loop, "run_together", lambda epochs: [None] * len(epochs))
    with Engine(spark, tmp_path / "alone") as engine:
        engine.execute(STREAMS)
        left = dict(begun)
        for position in range(0, len(pushed) + 1, 2):
            for name in [name for name, (first, _) in left.items() if first == position]:
                engine.execute(f"CREATE QUERY {name} AS {left.pop(name)[1]}")
            for stream, new in pushed[position : position + 2]:
                engine.push(stream, new)
            engine.advance(position // 2 + 1)
        for name, (until, results) in ended.items():
            alone = [result for result in engine.query(name).results() if result.at <= until // 2]
            assert sorted(map(repr, results)) == sorted(map(repr, alone)), begun[name][1]


def test_a_query_that_fails_is_found_and_the_others_go_on_in_the_same_turn(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = Counting(monkeypatch)
    with Engine(spark) as engine:
        engine.execute(STREAMS)
        engine.execute("CREATE QUERY good AS SELECT ISTREAM k FROM s [NOW]")
        engine.execute("CREATE QUERY bad AS SELECT ISTREAM CAST(k AS INT) AS n FROM s [NOW]")
        engine.execute("CREATE QUERY fine AS SELECT ISTREAM v FROM s [NOW]")
        engine.push("s", [(1, "a", 1.0)])
        with pytest.raises(UserError, match="CAST_INVALID_INPUT") as raised:
            engine.advance(1)
        assert '"bad"' in str(raised.value)
        assert (engine.query("good").complete, engine.query("fine").complete) == (1, 1)
        assert engine.query("bad").failed
        assert not engine.query("good").failed
        assert counting.branches == [3]
        engine.push("s", [(2, "b", 1.0)])
        with suppress(UserError):  # it may be time to restart it
            engine.advance(2)
        assert [result.row for result in engine.query("good").results()] == [{"k": "a"}, {"k": "b"}]


def test_all_are_committed_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark, tmp_path) as engine:
        engine.execute(STREAMS)
        for number in range(3):
            engine.execute(f"CREATE QUERY q{number} AS SELECT ISTREAM k FROM s [NOW] WHERE v > {number}")
        engine.push("s", [(1, "a", 9.0)])
        engine.advance(0)
        lines = next((tmp_path / "journal").glob("*.lines"))
        before = len(lines.read_text().splitlines())
        engine.advance(1)
        assert len(lines.read_text().splitlines()) == before + 1
    with Engine(spark, tmp_path) as engine:
        assert [len(engine.query(f"q{number}").results()) for number in range(3)] == [1, 1, 1]


def test_what_gives_too_many_rows_runs_alone(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "TAKEN_ROWS", 2)
    counting = Counting(monkeypatch)
    with Engine(spark) as engine:
        engine.execute(STREAMS)
        engine.execute("CREATE QUERY few AS SELECT ISTREAM k FROM s [NOW] WHERE v > 3")
        engine.execute("CREATE QUERY many AS SELECT ISTREAM k, v FROM s [NOW]")
        engine.push("s", [(1, "a", float(number)) for number in range(5)])
        engine.advance(1)
        assert counting.branches == [2]
        assert (engine.query("few").count, engine.query("many").count) == (1, 5)
