"""A compiled query: named SQL steps over ranges of logs and over synopses, to be run once an epoch.

A program is data. For an epoch (since, until] the executor lays the rows of every `Input` and the contents of every
`Synopsis` under their names and runs `output()`; it gives the results with `_t` in (since, until]. When the state is to
move forward, it runs `contents(synopsis)` for each: that is the synopsis as of `until`, which makes `until` the next
`since`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from headgate.plan.limits import Growing, StateBound
from headgate.plan.nodes import is_part
from headgate.sql import Column, indented
from headgate.ticks import Tick, TimeDomain

LONGEST = 150
"""How many steps a statement may have, written out, before it is cut."""

SHORT = 8
"""Steps that are no longer than this, written out, are not worth computing for themselves."""


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
    high: tuple[Edge, ...]
    """The earliest of these."""

    bound: StateBound | None = None
    """How much of the log must stay for this; None where it is nothing but the epoch."""

    def range(self, since: Tick, until: Tick) -> tuple[Tick | None, Tick]:
        highs = [instant for edge in self.high if (instant := edge.at(since, until)) is not None]
        return self.low.at(since, until), min(highs)

    def moves(self) -> bool:
        """Whether it holds what happens in the epoch, and not only what was there before."""
        return self.low.anchor is not None and any(edge.anchor == "until" for edge in self.high)

    def __str__(self) -> str:
        high = " or ".join(map(str, self.high))
        return f"{self.name}: {self.stream} in ({self.low}, {high}]"


@dataclass(frozen=True, slots=True)
class Step:
    """A named select; `reads` are the steps, inputs and synopses behind its FROMs, each as often as it stands there."""

    name: str
    sql: str
    reads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Synopsis:
    """What is kept between epochs. Before the first epoch it is empty, with the columns of the step `shape`."""

    name: str
    contents: str
    shape: str
    bound: StateBound
    """How much it holds at the most."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A synopsis, or the part of a log that must stay, and how large it becomes."""

    name: str
    bound: StateBound

    def __str__(self) -> str:
        return f"{self.name}: {self.bound}"


@dataclass(frozen=True, slots=True)
class Program:
    columns: tuple[Column, ...]
    kind: Literal["stream", "relation", "elements"]
    domain: TimeDomain
    inputs: tuple[Input, ...]
    synopses: tuple[Synopsis, ...]
    steps: Mapping[str, Step]
    result: str
    fallbacks: tuple[str, ...]
    """The operators that run by the universal rule."""

    timed: bool = False
    """Something may happen by the passing of time alone that no range of a log tells of."""

    ending: tuple[Input, ...] = ()
    """Ranges of logs that are not read as such, but hold what ends in the epoch."""

    beyond: Callable[[], Program] | None = None
    """Makes the program to go on with when this one has raised an error with `exact.BEYOND`; None if it never does.

    It has the synopses of this one, and more, which are empty at that moment.
    """

    computed: frozenset[str] = frozenset()
    """Steps that have been computed for themselves and lie under their names like inputs."""

    def output(self, columns: str = "*") -> str:
        """The results of an epoch: the columns, `_t`, and `_n` (1 or -1). `:after` cuts off what was put out before."""
        return f"{self.steps_for(self.result)}\nSELECT {columns} FROM {self.result} WHERE _t > :after"

    def contents(self, synopsis: Synopsis) -> str:
        return f"{self.steps_for(synopsis.contents)}\nSELECT * FROM {synopsis.contents}"

    def shape(self, synopsis: Synopsis) -> str:
        return f"{self.steps_for(synopsis.shape)}\nSELECT * FROM {synopsis.shape}"

    def steps_for(self, target: str) -> str:
        """The steps that `target` needs, in order, as the WITH clause of a statement."""
        needed = self.needed(target)
        steps = ",\n".join(
            f"{step.name} AS (\n{indented(step.sql)}\n)" for step in self.steps.values() if step.name in needed
        )
        return f"WITH {steps}"

    def in_one_task(self) -> Program:
        """The same program for a small epoch: every union comes back as one partition, so that nothing is shuffled."""

        def narrow(step: Step) -> Step:
            if not step.sql.startswith("SELECT") or "\nUNION ALL\nSELECT" not in step.sql:
                return step
            head, inner, tail = _union_within(step.sql)
            return replace(step, sql=f"{head}SELECT /*+ COALESCE(1) */ * FROM (\n{inner}\n){tail}")

        return replace(self, steps={name: narrow(step) for name, step in self.steps.items()})

    def happens(self, after: Tick, until: Tick, has_rows: Callable[[str, Tick | None, Tick], bool]) -> bool:
        """Whether anything can happen in (after, until], if something has come: tuples that wait, or elements that end.

        `has_rows` says whether a log has rows within a range. What a relation that never changes holds was there
        before."""
        moving = [source for source in self.inputs if source.moves()]
        ranges = ((source.stream, *source.range(after, until)) for source in (*moving, *self.ending))
        return self.timed or any(has_rows(*one) for one in ranges)

    def needed(self, target: str) -> set[str]:
        """Everything that `target` reads, itself included; what has been computed already is not looked into."""
        found: set[str] = set()
        waiting = [target]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                step = self.steps.get(name)
                waiting.extend(step.reads if step and (name == target or name not in self.computed) else ())
        return found - (self.computed - {target})

    def step_statement(self, name: str) -> str:
        return f"{self.steps_for(name)}\nSELECT * FROM {name}"

    def shared(self) -> tuple[str, ...]:
        """Steps to be computed once and for themselves, in order, because Spark writes a step out wherever it is read.

        A statement that would grow too long that way is cut at the steps that are read more than once.
        """
        targets = [self.result, *(synopsis.contents for synopsis in self.synopses)]
        if max(self.written_out(target, frozenset()) for target in targets) <= LONGEST:
            return ()
        used = {name for target in targets for name in self.needed(target)}
        uses = Counter(read for name in used if name in self.steps for read in self.steps[name].reads)
        cut: list[str] = []
        for name in self.steps:
            if name in used and uses[name] > 1 and self.written_out(name, frozenset(cut)) > SHORT:
                cut.append(name)
        return tuple(cut)

    def written_out(self, target: str, computed: frozenset[str]) -> int:
        """How many steps a statement has when each is written out wherever it is read."""
        sizes: dict[str, int] = {}
        for name, step in self.steps.items():
            sizes[name] = 1 + sum(sizes[read] for read in step.reads if read in sizes and read not in computed)
            if name == target:
                break
        return sizes[target]

    def state(self) -> tuple[Kept, ...]:
        """Everything that must be there between epochs."""
        synopses = [Kept(synopsis.name, synopsis.bound) for synopsis in self.synopses]
        logs = [Kept(f"log of {source.stream}", source.bound) for source in self.inputs if source.bound is not None]
        return tuple(dict.fromkeys([*synopses, *logs]))

    def growing(self) -> tuple[Growing, ...]:
        """Why some of it grows for as long as the query runs; nothing if it does not."""
        return tuple(dict.fromkeys(kept.bound for kept in self.state() if isinstance(kept.bound, Growing)))

    def logs(self) -> tuple[str, ...]:
        """What it reads: streams, relations, and what other fragments put out."""
        return tuple(dict.fromkeys(source.stream for source in self.inputs))

    def streams(self) -> tuple[str, ...]:
        """The base streams and relations among them."""
        return tuple(name for name in self.logs() if not is_part(name))


def _union_within(sql: str) -> tuple[str, str, str]:
    """A step's text cut into what stands before its union, the union, and what stands behind."""
    if "(\nSELECT" in sql and sql.index("(\nSELECT") < sql.index("\nUNION ALL\n"):
        start = sql.index("(\nSELECT") + 2
        end = sql.rindex("\n)")
        return sql[:start], sql[start:end], sql[end:]
    return "", sql, ""


SOURCE = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)")


def read_names(sql: str, known: set[str]) -> tuple[str, ...]:
    """The known names behind the FROMs and JOINs of a text, each as often as it stands there."""
    return tuple(name for name in SOURCE.findall(sql) if name in known)
