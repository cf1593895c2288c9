"""The law of scheduling: answers do not depend on which of the fragments that are ready runs first.

Random queries run in fragments while tuples come out of order, and after everything that happens another scheduler and
another size of epochs may be set, or the engine killed. The reference judges the answers of each moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.test_label_laws import Opening, Scene
from tools.duck_engine import engine_on_duckdb, without_spark
from tools.random_queries import cases

from headgate import ManualClock
from headgate.testing.cases import Case


class Rescheduled(Scene):
    """A scene in which fragments have figures from the first row on, and schedulers change."""

    def __init__(self, open_engine: Opening, directory: Path, case: Case, queries: dict[str, str], seed: int) -> None:
        super().__init__(open_engine, directory, case, queries, seed)
        self._reschedule()

    def look(self) -> None:
        super().look()
        self._reschedule()

    def _reschedule(self) -> None:
        how, rows = self.chance.choice(("fifo", "greedy", "chain")), self.chance.choice((1, 3, 100))
        self.engine.execute(f"SET scheduling = '{how}'; SET epoch_rows = {rows}")


@settings(max_examples=40)
@given(cases(depth=1, most=8), st.integers(0, 10_000))
def test_answers_do_not_depend_on_the_scheduler(case: Case, seed: int) -> None:
    with TemporaryDirectory() as directory, without_spark(), patch("headgate.schedule.scheduler.MEASURED_ROWS", 1):
        Rescheduled(engine_on_duckdb, Path(directory), case, {"answer": case.query}, seed).run()


CHAIN = """SELECT ISTREAM(a.n, a.k, b.w, c.x) FROM a [NOW], b [RANGE UNBOUNDED], c [RANGE UNBOUNDED]
  WHERE a.k = b.k AND a.v = c.v"""


class Ticking(ManualClock):
    """A clock that goes on whenever it is read, so that every epoch takes about as long as any other."""

    def now_us(self) -> int:
        self.move_by(1_000)
        return super().now_us()


def burst(how: str, bursts: int = 6) -> tuple[list[str], list[object], Sequence[str]]:
    """The parts that ran, the results, and what was adapted, when a batch comes with every epoch for a while."""
    with (
        without_spark(),
        patch("headgate.schedule.scheduler.MEASURED_ROWS", 1),
        engine_on_duckdb(clock=Ticking()) as engine,
    ):
        engine.execute(
            "SET heartbeats = 'operator'; SET estimation = 'off'; CREATE STREAM a (n INT, k INT, v INT);"
            f"CREATE STREAM b (k INT, w INT); CREATE STREAM c (v INT, x INT); CREATE QUERY q AS {CHAIN};"
            f"SET epoch_rows = 5; SET scheduling = '{how}'"
        )
        engine.push("b", [(0, (0, 7))])
        engine.push("c", [(0, (v, v)) for v in range(5)])
        engine.finish("b")
        engine.finish("c")
        left = iter(range(1, bursts + 1))

        def come() -> None:
            if (at := next(left, None)) is not None:
                engine.push("a", [(at, (at, k, k)) for k in range(5)])
                engine.punctuate("a", at)

        engine.on_commit(come)
        come()
        ran: list[str] = []
        while epochs := engine.step():
            ran += [epoch.part for epoch in epochs]
        notes = [str(one) for one in engine.adaptations("q")]
        assert [line for line in notes if line in "".join(engine.query("q").why().adapted)] == notes[-5:]
        assert ("-- adapted" in engine.query("q").explain()) == bool(notes)
        return ran, [(one.at, tuple(one.row.values())) for one in engine.query("q").results()], notes


@pytest.mark.parametrize("how", ["fifo", "greedy", "chain"])
def test_a_selective_part_takes_a_burst_first_unless_it_is_fifo(how: str) -> None:
    ran, results, notes = burst(how)
    assert results == [(at, (at, 0, 7, 0)) for at in range(1, 7)]
    assert ("part(1) part(1) part(1)" in " ".join(ran)) == (how != "fifo"), "once it is known that it is selective"
    assert bool(notes) == (how != "fifo"), "and it is said by which figures"
    if notes:
        assert f"scheduling: {how} runs first part(1), answer" in notes[-1]
        assert "us a row" in notes[-1]
