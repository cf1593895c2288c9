"""Early answers are right for what has come so far, and change nothing that is settled.

Tuples come in any order, in a few batches. After each batch the early answer is what the reference says of the tuples
that have come, for the instants that are not complete. Then some instants are completed, if no tuple of theirs is
still to come. In the end the settled answers are those of the reference, and of the query without EMIT EARLY.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from laws.test_cases import ANSWERED, named
from pyspark.sql import SparkSession

from headgate.engine import Engine
from headgate.sql import name as quoted
from headgate.testing.cases import Case, Change, Row, difference
from headgate.testing.reference import evaluate
from headgate.testing.runner import on_spark, script

Arrival = tuple[str, tuple[int, Row, str]]


def batches(case: Case, chance: random.Random) -> list[list[Arrival]]:
    """The input of a case in batches. Tuples come out of order, those of an instant and rows of relations in order."""
    every = [(name, one) for name, rows in case.input.items() for one in rows if one[0] <= case.horizon]
    late = {instant: chance.uniform(0, 4) for _, (instant, *_) in every}
    every.sort(key=lambda one: one[1][0] + (0 if one[0] in case.relations else late[one[1][0]]))
    cuts = sorted(chance.sample(range(len(every) + 1), min(2, len(every) + 1)))
    return [every[low:high] for low, high in zip([0, *cuts], [*cuts, len(every)], strict=True)]


def so_far(case: Case, came: list[Arrival], horizon: int) -> Case:
    """The case of the tuples that have come."""
    rows = {name: [one for stream, one in came if stream == name] for name in case.input}
    return replace(case, input=rows, horizon=horizon)


def changes(case: Case, after: int) -> list[Change]:
    return [change for change in evaluate(case)[1] if change[0] > after]


@pytest.mark.spark
@pytest.mark.parametrize("case", ANSWERED[::5], ids=named)
def test_early_answers_are_the_reference_over_what_has_come(spark: SparkSession, case: Case) -> None:
    chance = random.Random(case.id)
    came: list[Arrival] = []
    left = batches(case, chance)
    with Engine(spark) as engine:
        engine.execute(f"{script(case)} EMIT EARLY")
        engine.execute(";".join(f"DISORDER OF {quoted(stream)} 1000" for stream in case.streams))
        query = engine.query("answer")
        while left:
            new, left = left[0], left[1:]
            for name, (instant, row, sign) in new:
                one = (instant, row, sign) if name in case.relations else (instant, row)
                engine.push(name, [one])
            came += new
            engine.step()
            early, reached = query.early(), query.reached
            if early is not None and not query.answer.inputs.by_arrival:
                upto = max(instant for _, (instant, *_) in came)
                given = [(one.at, one.sign, tuple(one.row.values())) for one in early.results]
                assert all(one.partial for one in early.results)
                differs = difference(changes(so_far(case, came, upto), reached), given, upto)
                assert differs is None, f"{case.query} after {came}, complete up to {reached}: {differs}"
            complete = min((instant for some in left for _, (instant, *_) in some), default=case.horizon + 1) - 1
            if complete > reached and chance.random() < 0.7:
                engine.advance(min(complete, case.horizon))
        engine.advance(case.horizon)
        found = [(one.at, one.sign, tuple(one.row.values())) for one in query.results()]
    assert difference(evaluate(so_far(case, came, case.horizon))[1], found, case.horizon) is None
    assert case.expected is not None
    assert difference(on_spark(case, "one", spark), found, case.horizon) is None
