"""A compiled query: named SQL steps over ranges of logs and over synopses, to be run once an epoch.

A program is data. For an epoch (since, until] the executor lays the rows of every `Input` and the contents of every `Synopsis`
under their names and runs `output()`; it gives the results with `_t` in (since, until]. When the state is to move forward, it runs
`contents(synopsis)` for each: that is the synopsis as of `until`, which makes `until` the next `since`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from headgate.catalog import Column, Tick, TimeDomain
from headgate.delta.sql import indented


@dataclass(frozen=True, slots=True)
class Edge:
    """An instant relative to the epoch; without an anchor, the beginning of time."""

    anchor: Literal["since", "until"] | None
    offset: Tick = 0

    def at(self, since: Tick, until: Tick) -> Tick | None:
        if self.anchor is None:
            return None
        return (since if self.anchor == "since" else until) + self.offset

    def __str__(self) -> str:
        if self.anchor is None:
            return "the beginning"
        return self.anchor if not self.offset else f"{self.anchor} {'+' if self.offset > 0 else '-'} {abs(self.offset)}"


@dataclass(frozen=True, slots=True)
class Input:
    """The tuples of a stream's log with timestamps in (low, high]: its columns, `_t` and `_s`."""

    name: str
    stream: str
    low: Edge
    high: Edge


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    sql: str
    reads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Synopsis:
    """What is kept between epochs. Before the first epoch it is empty, with the columns of the step `shape`."""

    name: str
    contents: str
    shape: str


@dataclass(frozen=True, slots=True)
class Program:
    columns: tuple[Column, ...]
    kind: Literal["stream", "relation"]
    domain: TimeDomain
    inputs: tuple[Input, ...]
    synopses: tuple[Synopsis, ...]
    steps: Mapping[str, Step]
    result: str
    fallbacks: tuple[str, ...]
    """The operators that run by the universal rule."""

    def output(self) -> str:
        """The results of an epoch: the columns, `_t`, and `_n` (1 or -1). `:after` cuts off what was put out before."""
        return self.statement(self.result, "WHERE _t > :after")

    def contents(self, synopsis: Synopsis) -> str:
        return self.statement(synopsis.contents)

    def shape(self, synopsis: Synopsis) -> str:
        return self.statement(synopsis.shape)

    def statement(self, target: str, clause: str = "") -> str:
        """One SQL statement: the steps that `target` needs, in order, and a select from it."""
        needed = self.needed(target)
        steps = ",\n".join(f"{step.name} AS (\n{indented(step.sql)}\n)" for step in self.steps.values() if step.name in needed)
        return f"WITH {steps}\nSELECT * FROM {target} {clause}".rstrip()

    def needed(self, target: str) -> set[str]:
        """Everything that `target` reads, itself included: steps, inputs and synopses."""
        found: set[str] = set()
        waiting = [target]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                step = self.steps.get(name)
                waiting.extend(step.reads if step else ())
        return found

    def streams(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(source.stream for source in self.inputs))


WORD = re.compile(r"\w+")


def words(sql: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known names that stand in the text."""
    present = set(WORD.findall(sql))
    return tuple(candidate for candidate in known if candidate in present)
