"""Orders the fragments of a query by what the profile knows of them, and takes note when the order changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import mean

from headgate.execute.fragment import MEASURED_ROWS, Fragment
from headgate.heartbeat.clock import Clock
from headgate.observe.profile import Figures
from headgate.schedule.priorities import Cost, priorities
from headgate.schedule.profiler import Profiler
from headgate.settings import Scheduling


class Scheduler:
    """Says which fragments of a query go first."""

    def __init__(self, profiler: Profiler, clock: Clock, scheduling: Callable[[], Scheduling]) -> None:
        self.profiler = profiler
        self.clock = clock
        self.scheduling = scheduling
        self._orders: dict[str, tuple[str, ...]] = {}
        """By query: its fragments in the order that was last taken note of."""

    def priorities(
        self, query: str, answer: Fragment, reads: Mapping[Fragment, Sequence[Fragment]]
    ) -> dict[Fragment, float]:
        """Return by how many rows a microsecond each fragment lets the queues fall, by itself or in its block."""
        how, now_us = self.scheduling(), self.clock.now_us()
        figures = {one: self.profiler.of(one, now_us) for one in reads}
        costs = _costs(answer, figures)
        found = priorities(how, answer, reads, costs)
        if how != "fifo" and len(reads) > 1:
            self._note(query, how, found, costs, now_us)
        return found

    def forget(self, query: str) -> None:
        """Drop what is known of a query that is gone."""
        self._orders.pop(query, None)

    def _note(
        self, query: str, how: Scheduling, found: Mapping[Fragment, float], costs: Mapping[Fragment, Cost], now_us: int
    ) -> None:
        """Take note of the order of a query's fragments, if it is another one than before."""
        order = sorted(found, key=lambda one: -found[one])
        names = tuple(one.part.name for one in order)
        if self._orders.get(query) == names:
            return
        before = self._orders.get(query)
        self._orders[query] = names
        was = f", before that {', '.join(before)}" if before else ""
        by = "; ".join(
            f"{one.part.name} passes on {costs[one].selectivity:.3g} of a row in {costs[one].time:.3g} us"
            for one in order
        )
        adaptations = self.profiler.profile.adaptations
        adaptations.note(now_us, "scheduling", query, f"{how} runs first {', '.join(names)}{was}", by)


def _costs(answer: Fragment, figures: Mapping[Fragment, Figures | None]) -> dict[Fragment, Cost]:
    """Return what each fragment does to a row. One that has read too few rows is taken to pass all of them on, in the
    time that others take on average.
    """
    known = {one: found for one, found in figures.items() if found is not None and found.rows_in >= MEASURED_ROWS}
    times = [found.us_per_row for found in known.values() if found.us_per_row]
    usual = mean(times) if times else 1.0
    costs = {}
    for one in figures:
        measured = known.get(one)
        passed = 1.0 if measured is None else measured.selectivity or 0.0
        costs[one] = Cost(0.0 if one is answer else passed, measured.us_per_row or usual if measured else usual)
    return costs
