"""The two examples of STREAM's section 4.3 on a clock that counts units: operators in a chain under a burst.

The operators are scheduled by the functions that schedule an engine's fragments. One operator runs in each unit of
time and takes one batch. Amounts are multiples of n, the number of elements that come in each unit of the burst.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from headgate.schedule.priorities import Cost, priorities
from headgate.schedule.selection import by_priority, depth_first
from headgate.settings import Scheduling

BURST = 7
"""In so many units elements come, one batch in each."""


class Operator:
    """An operator with a queue before it. It takes a batch in one unit of time."""

    def __init__(self, batch: str, selectivity: str) -> None:
        self.batch = Fraction(batch)
        self.selectivity = Fraction(selectivity)
        self.queue = Fraction(0)

    @property
    def cost(self) -> Cost:
        """What it does to an element."""
        return Cost(float(self.selectivity), float(1 / self.batch))

    def has_input(self) -> bool:
        """Say whether a batch waits."""
        return self.queue >= self.batch

    def can_ask(self) -> bool:
        """Say that nobody can be asked for more."""
        return False

    def ask(self) -> bool:
        """Ask nobody."""
        return False


def first_example() -> list[Operator]:
    """Two operators, the first of which is selective."""
    return [Operator("1", "0.2"), Operator("0.2", "0")]


def second_example() -> list[Operator]:
    """Three operators, of which only the last lets the queues fall much."""
    return [Operator("1", "0.9"), Operator("0.9", "1"), Operator("0.9", "0")]


def queue_sizes(chain: Sequence[Operator], how: Scheduling, units: int = BURST) -> list[Fraction]:
    """Return how many elements wait at each of the first units of time, when those of the unit have come."""
    found: list[Fraction] = []
    turn = _turn(chain, how)
    for unit in range(units):
        chain[0].queue += unit < BURST
        found.append(sum((one.queue for one in chain), Fraction(0)))
        chosen = next(turn, None)
        if chosen is None:
            turn = _turn(chain, how)
            chosen = next(turn, None)
        if chosen is not None:
            _run(chosen, chain)
    return found


def _turn(chain: Sequence[Operator], how: Scheduling) -> Iterator[Operator]:
    reads = {one: list(chain[place - 1 : place]) if place else [] for place, one in enumerate(chain)}
    if how == "fifo":
        return depth_first(chain[-1], reads)
    costs = {one: one.cost for one in chain}
    return by_priority(chain[-1], reads, lambda: priorities(how, chain[-1], reads, costs), lambda: None)


def _run(operator: Operator, chain: Sequence[Operator]) -> None:
    operator.queue -= operator.batch
    above = chain.index(operator) + 1
    if above < len(chain):
        chain[above].queue += operator.batch * operator.selectivity
