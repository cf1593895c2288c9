"""Traces and series are looked at while the loop adds to them: a look is never cut short by what is added meanwhile."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from headgate.observe.series import Amounts, Series
from headgate.observe.trace import SINK, Traces

TURNS = 20_000


@pytest.fixture(autouse=True)
def many_switches() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def beside(add: Callable[[int], None], look: Callable[[], object]) -> None:
    """Look again and again while something is added, and do so at least once afterwards."""

    def add_all() -> None:
        for turn in range(1, TURNS):
            add(turn)

    adding = threading.Thread(target=add_all)
    adding.start()
    while adding.is_alive():
        look()
    adding.join()
    look()


def test_traces() -> None:
    traces = Traces(["s"], ["q"])

    def add(turn: int) -> None:
        traces.looked({"s": turn}, {"s": turn}, turn)
        traces.sent(turn, turn)
        traces.seen("q", turn, turn, turn)
        traces.seen(SINK, turn, turn, turn)

    beside(add, lambda: (traces.rows(), traces.ages(), traces.shares(), traces.to_json()))
    assert [row["instant"] for row in traces.rows()] == list(map(str, range(TURNS - 100, TURNS)))


def test_series() -> None:
    series = Series()
    beside(lambda turn: series.add(Amounts(epochs=1), turn * 1_000_000), lambda: series.buckets(0))
    assert series.whole.epochs == TURNS - 1
