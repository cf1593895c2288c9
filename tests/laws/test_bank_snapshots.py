"""A bank in pictures: balances and their total, early and settled, while the engine is killed and goes on.

A transfer is a debit and a credit, which come out of order and apart. A settled picture shows all queries at one
instant, and money is only moved: the balances sum to zero, and so says the total. An early picture may have one leg
without the other; but all queries in it reflect the same input, so the total is the sum of the balances.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate import Engine, UserError
from headgate.deliver.bags import net

pytestmark = pytest.mark.spark

BANK = """
CREATE STREAM debits (account STRING, amount INT) DISORDER 4;
CREATE STREAM credits (account STRING, amount INT) DISORDER 6;
CREATE VIEW moves AS SELECT account, -amount AS amount FROM debits [RANGE UNBOUNDED]
  UNION ALL SELECT account, amount FROM credits [RANGE UNBOUNDED];
CREATE QUERY balances AS SELECT account, SUM(amount) AS balance FROM moves GROUP BY account EMIT EARLY;
CREATE QUERY total AS SELECT SUM(amount) AS total FROM moves EMIT EARLY;
"""
INSTANTS = 30


def legs(chance: random.Random) -> list[tuple[float, str, tuple[int, tuple[str, int]]]]:
    """Both legs of transfers with when they come, by the clock of nobody."""
    found = []
    for at in range(1, INSTANTS + 1):
        for _ in range(chance.randrange(3)):
            giver, taker = chance.sample("abcd", 2)
            amount = chance.randrange(1, 100)
            found.append((at + chance.uniform(0, 3.9), "debits", (at, (giver, amount))))
            found.append((at + chance.uniform(0, 5.9), "credits", (at, (taker, amount))))
    return sorted(found)


def early_rows(engine: Engine, query: str) -> list[dict[str, Any]]:
    """The rows of a relation as of its early answer."""
    answer = engine.query(query).early()
    early = [] if answer is None or answer.table is None else [answer.table]
    left = net([*engine.query(query).result_tables(), *early])
    return [] if left is None else left.to_pylist()


def check_early(engine: Engine) -> int:
    """How many tuples the early picture reflects that is not settled."""
    answers = [engine.query(name).early() for name in ("balances", "total")]
    assert answers[0] is not None
    assert answers[1] is not None
    assert answers[0].tuples == answers[1].tuples
    (total,) = early_rows(engine, "total")
    balances = early_rows(engine, "balances")
    assert sum(row["balance"] for row in balances) == (total["total"] or 0)
    picture = engine.snapshot("balances", "total", early=True)
    assert (picture.at, picture["total"]) == (answers[0].upto, [total])
    assert sorted(map(str, picture["balances"])) == sorted(map(str, balances))
    assert {stream: one.tuples for stream, one in picture.reflects.items()} == answers[0].tuples
    return total["total"] or 0


def check_settled(engine: Engine) -> Any:
    try:
        picture = engine.snapshot("balances", "total")
    except UserError as error:
        assert error.code == "nothing-complete"
        return None
    assert sum(row["balance"] for row in picture["balances"]) == 0
    assert [row["total"] or 0 for row in picture["total"]] == [0]
    return picture.at


@pytest.mark.parametrize("seed", range(2))
def test_every_picture_of_the_bank_is_of_one_moment(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    arrivals = legs(chance)
    engine = Engine(spark, tmp_path)
    engine.execute(BANK)
    seen, one_sided = set(), 0
    while arrivals:
        count = chance.randrange(1, 9)
        for _, stream, row in arrivals[:count]:
            assert engine.push(stream, [row]) == 1
        arrivals = arrivals[count:]
        engine.step()
        one_sided += check_early(engine) != 0
        seen.add(check_settled(engine))
        if chance.random() < 0.15:
            engine._core.journal.close()  # as if it were killed
            engine._core.lock.release()
            engine = Engine(spark, tmp_path)
            assert check_settled(engine) in seen
    engine.advance(INSTANTS)
    engine.step()
    assert check_settled(engine) == INSTANTS
    assert check_early(engine) == 0
    engine.close()
    assert len(seen) > 4
    assert one_sided, "some early pictures have one leg without the other"
