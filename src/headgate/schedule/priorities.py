"""Which of the fragments that are ready goes first, by what each was measured to do (STREAM, section 4.3).

    fifo      what came first goes through all fragments first: the one nearest the answer runs
    greedy    the fragment that lets the number of waiting rows fall fastest
    chain     fragments on the way to the answer form blocks; the block that lets it fall fastest, fifo within a block

A row that a fragment takes becomes `selectivity` rows after some time. From one fragment of a way on, the number of
rows that wait because of one row there changes fragment by fragment. A block is the stretch of steepest descent:

    waiting
    1.0  o                        o1 alone falls by 0.1 a unit, o1 and o2 by 0.05, o1 to o3 by 0.33:
    0.9      o-------o            all three are one block
    0.0                      o
         0   1       2       3   time

Everything here is a pure function of figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from headgate.settings import Scheduling

N = TypeVar("N")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a fragment does to a row."""

    selectivity: float
    """How many rows it puts out for one that it takes. Answers leave the queues: theirs is 0."""

    time: float
    """How long it takes for one row."""


def descent(block: Sequence[Cost]) -> float:
    """Return by how many rows the queues fall in a unit of time, if a block takes rows in and passes them on."""
    left, took = 1.0, 0.0
    for one in block:
        took += left * one.time
        left *= one.selectivity
    return (1.0 - left) / took if took else float("inf")


def blocks(way: Sequence[Cost]) -> list[int]:
    """Return how many fragments each block has, from the first fragment of a way to the last."""
    found: list[int] = []
    first = 0
    while first < len(way):
        lengths = range(1, len(way) - first + 1)
        steepest = max(lengths, key=lambda length: (descent(way[first : first + length]), length))
        found.append(steepest)
        first += steepest
    return found


def ways(root: N, reads: Mapping[N, Sequence[N]]) -> Iterator[list[N]]:
    """Give each way from a fragment that reads no other to the one that gives the answer."""

    def above(way: list[N]) -> Iterator[list[N]]:
        below = reads[way[0]]
        if not below:
            yield way
        for one in below:
            yield from above([one, *way])

    yield from above([root])


def priorities(how: Scheduling, root: N, reads: Mapping[N, Sequence[N]], costs: Mapping[N, Cost]) -> dict[N, float]:
    """Return by how much each fragment, or the block it is in, lets the queues fall: those with more go first.

    A fragment on several ways has what the best of them gives it. Fifo prefers none.
    """
    match how:
        case "fifo":
            return dict.fromkeys(reads, 0.0)
        case "greedy":
            return {one: descent([costs[one]]) for one in reads}
        case "chain":
            found: dict[N, float] = {}
            for way in ways(root, reads):
                for one, slope in _along(way, costs):
                    found[one] = max(slope, found.get(one, slope))
            return found


def _along(way: Sequence[N], costs: Mapping[N, Cost]) -> Iterator[tuple[N, float]]:
    """Give each fragment of a way with the descent of its block."""
    first, line = 0, [costs[one] for one in way]
    for length in blocks(line):
        slope = descent(line[first : first + length])
        yield from ((one, slope) for one in way[first : first + length])
        first += length


def first(ready: Iterable[N], priority: Mapping[N, float]) -> N:
    """Return the fragment that runs next of some that are ready, given with those nearest the answer first."""
    return max(ready, key=lambda one: priority[one])  # of equals the first
