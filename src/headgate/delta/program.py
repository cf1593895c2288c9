"""A compiled query: named steps over ranges of logs and over synopses, to be run once an epoch.

A program is data. For an epoch (since, until] the executor puts the rows of every `Input` and the contents of every
`Synopsis` under their names and runs `output()`, which gives the results with `_t` in (since, until]. To move the state
forward, it runs `contents(synopsis)` for each synopsis: this is the synopsis as of `until`, and `until` becomes the
next `since`. A program does not run anything itself and knows nothing of Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from headgate.delta.assumptions import Assumption
from headgate.delta.query import (
    Alias,
    Joined,
    Query,
    Source,
    in_place,
    joins,
    printed,
    select,
    tables,
    unions_in_one_partition,
    with_joins,
)
from headgate.delta.ranges import Ranges
from headgate.plan.join_orders import Arrangement
from headgate.plan.limits import Growing, StateBound
from headgate.plan.multiway import Group, Inputs
from headgate.plan.nodes import is_part
from headgate.sql import ALL, Column, Sql, indented
from headgate.sql import name as quoted
from headgate.ticks import Tick, TimeDomain

LONGEST = 150
"""How many steps a statement may have, counting each wherever it is read, before some are computed on their own."""

SHORT = 8
"""Steps of at most this size, counted in the same way, are not worth computing on their own."""


FEW_ROWS = 10_000
"""A side of a join that has no more rows than this may be sent to every task whole."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An instant relative to the epoch; without an anchor, the beginning of time."""

    anchor: Literal["since", "until"] | None
    offset: Tick = 0

    def at(self, since: Tick, until: Tick) -> Tick | None:
        """The instant in ticks, for the epoch (since, until]; None for the beginning of time."""
        if self.anchor is None:
            return None
        return (since if self.anchor == "since" else until) + self.offset

    def __str__(self) -> str:
        if self.anchor is None:
            return "the beginning"
        return self.anchor if not self.offset else f"{self.anchor} {'+' if self.offset > 0 else '-'} {abs(self.offset)}"


@dataclass(frozen=True, slots=True)
class Counting:
    """What a program that counts looks at: of an input of a group, one row in so many; and the sets to join it with."""

    group: int
    number: int
    one_in: int
    sets: tuple[Inputs, ...]


@dataclass(frozen=True, slots=True)
class Input:
    """The tuples of a stream's log with timestamps in (low, high]: the stream's columns, `_t` and `_s`."""

    name: str
    stream: str
    low: Edge
    high: tuple[Edge, ...]
    """The end of the range is the earliest of these."""

    bound: StateBound | None = None
    """How much of the log must be kept for this input; None if it needs only the tuples of the epoch."""

    def range(self, since: Tick, until: Tick) -> tuple[Tick | None, Tick]:
        """The range in ticks, for the epoch (since, until]; None stands for the beginning of time."""
        highs = [instant for edge in self.high if (instant := edge.at(since, until)) is not None]
        return self.low.at(since, until), min(highs)

    def moves(self) -> bool:
        """True if the range grows with the epoch; False if it only holds what was there before, or at its end."""
        return self.low.anchor == "since" and any(edge.anchor == "until" for edge in self.high)

    def __str__(self) -> str:
        high = " or ".join(map(str, self.high))
        return f"{self.name}: {self.stream} in ({self.low}, {high}]"


@dataclass(frozen=True)
class Step:
    """A named query of a program."""

    name: str
    query: Query
    may_not_fit: bool = False
    """True if it raises an error with `exact.DOES_NOT_FIT` when it meets a double that does not fit."""

    alone: bool = False
    """True if it is computed on its own, because it mostly has no rows: then what reads it costs nothing."""

    @cached_property
    def sql(self) -> Sql:
        """The query as SQL text."""
        return printed(self.query)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The names of the steps, inputs and synopses that it reads, each as often as it stands there."""
        return tuple(table.name for table in tables(self.query))


@dataclass(frozen=True, slots=True)
class Synopsis:
    """A table that is kept between epochs. Before the first epoch it is empty, with the columns of the step `shape`."""

    name: str
    contents: str
    """The step that computes what it holds at `until`."""

    shape: str
    bound: StateBound
    """How much it holds at the most."""

    from_logs: str | None = None
    """A step that computes the rows of `contents` from what the logs hold at `until`; None if they do not hold it."""

    at_rest: bool = False
    """True if it follows from base relations alone: it stays as it is while no row of theirs comes."""

    def ways(self) -> tuple[str, ...]:
        """The steps that compute what it holds at `until`. Each gives the same rows."""
        return (self.contents,) if self.from_logs is None else (self.contents, self.from_logs)


@dataclass(frozen=True, slots=True)
class Kept:
    """A synopsis, or the part of a log that must be kept, and how large it becomes."""

    name: str
    bound: StateBound

    def __str__(self) -> str:
        return f"{self.name}: {self.bound}"


@dataclass(frozen=True)
class Program:
    """The steps of a query or of a fragment, with the inputs and synopses they read."""

    columns: tuple[Column, ...]
    kind: Literal["stream", "relation", "elements"]
    domain: TimeDomain
    inputs: tuple[Input, ...]
    synopses: tuple[Synopsis, ...]
    steps: Mapping[str, Step]
    result: str
    fallbacks: tuple[str, ...]
    """The operators that run by the universal rule."""

    by_arrival: bool = True
    """True if some step looks at the order in which tuples arrived, `_s`; otherwise `_s` may be null."""

    acts_without_input: bool = False
    """True if results may change at some instant by the passing of time alone, and no range of a log tells when."""

    expiring: tuple[Input, ...] = ()
    """Ranges of logs whose tuples leave a window in the epoch. The steps do not read these inputs."""

    for_all_doubles: Callable[[], Program] | None = None
    """Makes the program to go on with after an error with `exact.DOES_NOT_FIT`; None if no step raises it.

    That program has the synopses of this one, and more, which are empty when it starts.
    """

    without_panes: Callable[[], Program] | None = None
    """Makes the program that keeps running sums where this one keeps panes; None if it keeps none."""

    assumed: frozenset[Assumption] = frozenset()
    """What it takes for granted of the numbers it reads. It must not run over chunks for which this does not hold."""

    denying: Callable[[frozenset[Assumption] | None], Program] | None = None
    """Makes the program that takes nothing for granted of what is denied, or nothing at all if None is given.

    Its synopses have the columns of this program's, and more, which are null in what this one has kept.
    """

    without_distances: Callable[[], Program] | None = None
    """Makes the program that reads sides of joins from logs where this one keeps what can find a partner; None if it
    keeps none of them because of a distance.
    """

    without_leaders: Callable[[], Program] | None = None
    """Makes the program that reads the windows below MIN and MAX again where this one keeps the rows that can still be
    the answer; None if it keeps none.
    """

    for_small_epochs: Callable[[], Program] | None = None
    """Makes the program that computes nothing on its own before and shuffles nothing; None if this one is that."""

    by_ranges: Callable[[Ranges], Program] | None = None
    """Makes the program that cuts windows over all rows into ranges of their order; None if it has none to cut.

    That program has the synopses of this one.
    """

    groups: tuple[Group, ...] = ()
    """Its joins of several inputs, which can be arranged in several ways."""

    arrangements: tuple[Arrangement, ...] = ()
    """How each of them is arranged."""

    arranged: Callable[[tuple[Arrangement, ...]], Program] | None = None
    """Makes the program that arranges them in another way. It has the synopses of this one, but for other caches."""

    as_tree: Callable[[], Program] | None = None
    """Makes the program that knows of no joins of several inputs: each is a tree of joins of two, and what these keep
    has the names that it had in earlier versions. None if it has no groups.
    """

    counting: Callable[[tuple[Counting, ...]], Program] | None = None
    """Makes the program whose result are counts: `_group`, `_input`, `_with` and `_rows`."""

    nested: bool = False
    """True if a statement has each step that is read once where it is read. Spark analyses that in fewer rounds; steps
    one after the other are easier to read.
    """

    computed: frozenset[str] = frozenset()
    """Steps that have been computed on their own and lie under their names like inputs."""

    def output(self, columns: Sql = ALL) -> Sql:
        """The statement for the results of an epoch: the columns, `_t`, and `_n` (1 or -1).

        The parameter `:after` leaves out results that were put out before.
        """
        return f"{self.steps_for(self.result)}\nSELECT {columns} FROM {quoted(self.result)} WHERE _t > :after"

    def shape(self, synopsis: Synopsis) -> Sql:
        """A statement with the columns of a synopsis."""
        return f"{self.steps_for(synopsis.shape)}\nSELECT * FROM {quoted(synopsis.shape)}"

    def steps_for(self, target: str) -> Sql:
        """The steps that `target` needs, in order, as the WITH clause of a statement."""
        known = self._known_steps.get(target)
        if known is None:
            known = self._known_steps[target] = self._steps_for(target)
        return known

    @cached_property
    def _known_steps(self) -> dict[str, Sql]:
        return {}

    @cached_property
    def _known_computed(self) -> dict[frozenset[str], Program]:
        return {}

    def with_computed(self, names: frozenset[str]) -> Program:
        """The program for when these steps have been computed on their own. It is the same one each time."""
        known = self._known_computed.get(names)
        if known is None:
            known = self._known_computed[names] = replace(self, computed=names)
        return known

    def _steps_for(self, target: str) -> Sql:
        needed = self.needed(target)
        steps = [step for step in self.steps.values() if step.name in needed]
        steps = _merged(steps) if self.nested else steps
        listed = ",\n".join(f"{quoted(step.name)} AS (\n{indented(step.sql)}\n)" for step in steps)
        return f"WITH {listed}"

    def texts(self, target: str) -> dict[str, Sql]:
        """The steps that `target` needs, in order, each as SQL."""
        needed = self.needed(target)
        return {name: step.sql for name, step in self.steps.items() if name in needed}

    def single_task(self) -> Program:
        """A copy for small epochs: every union comes back as one partition, so that Spark shuffles nothing."""
        one = self.for_small_epochs() if self.for_small_epochs is not None else self
        steps = {name: replace(step, query=unions_in_one_partition(step.query)) for name, step in one.steps.items()}
        return replace(one, steps=steps)

    def hashes(self, in_one_task: bool) -> bool:
        """True if some step joins rows by buckets of time, in many tasks, or with a relation at rest."""
        found = [joined for step in self.steps.values() for joined in joins(step.query)]
        return any(joined.uneven or (joined.by_time and not in_one_task) for joined in found)

    def with_hash_joins(self, rows: Callable[[str], int], most: int, in_one_task: bool = False) -> Program:
        """A copy in which some joins make hash tables of their smaller side, where that has at most so many rows.

        `rows` says how many rows lie under the name of an input or a synopsis. Sorting both sides takes longer, but
        needs no memory for a whole side. A side of a few rows is left to Spark, which sends it to every task; a single
        task would sort it.
        """
        few = 0 if in_one_task else FEW_ROWS

        def size(side: Source) -> int:
            return sum(rows(name) for table in tables(select(ALL, side)) for name in self.needed(table.name))

        def decided(joined: Joined) -> Joined:
            if joined.sent or (not joined.uneven and (in_one_task or not joined.by_time)):
                return joined
            both = {alias.name: size(alias) for alias in (joined.left, joined.right) if isinstance(alias, Alias)}
            smaller = min(both, key=both.__getitem__)
            return replace(joined, hashed=smaller if few < both[smaller] <= most else "")

        steps = {name: replace(step, query=with_joins(step.query, decided)) for name, step in self.steps.items()}
        return replace(self, steps=steps)

    def happens(self, after: Tick, until: Tick, has_rows: Callable[[str, Tick | None, Tick], bool]) -> bool:
        """False if no tuple begins or ends to count in (after, until], so that results and synopses stay as they are.

        `has_rows` says whether a log has rows within a range. A relation that never changes is not asked: its rows
        were there before.
        """
        moving = [source for source in self.inputs if source.moves()]
        ranges = ((source.stream, *source.range(after, until)) for source in (*moving, *self.expiring))
        return self.acts_without_input or any(has_rows(*one) for one in ranges)

    def needed(self, target: str) -> frozenset[str]:
        """The names of `target` and of all it reads, directly or through other steps, up to what has been computed."""
        known = self._known_needs.get(target)
        if known is None:
            known = self._known_needs[target] = self._needed(target)
        return known

    @cached_property
    def _known_needs(self) -> dict[str, frozenset[str]]:
        return {}

    def _needed(self, target: str) -> frozenset[str]:
        found: set[str] = set()
        waiting = [target]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                step = self.steps.get(name)
                waiting.extend(step.reads if step and (name == target or name not in self.computed) else ())
        return frozenset(found - (self.computed - {target}))

    def step_statement(self, name: str) -> Sql:
        """The statement for one step alone."""
        return f"{self.steps_for(name)}\nSELECT * FROM {quoted(name)}"

    def shared(self, longest: int = LONGEST) -> tuple[str, ...]:
        """The steps to compute once and on their own, in order: few if the statements are short enough.

        Spark puts a copy of a step wherever it is read. A statement that would grow too long that way is divided at the
        steps that are read more than once.
        """
        targets = [self.result, *(synopsis.contents for synopsis in self.synopses)]
        alone = frozenset(name for name, step in self.steps.items() if step.alone)
        if max(self.written_out(target, alone) for target in targets) <= longest:
            return tuple(name for name in self.steps if name in alone)
        used = {name for target in targets for name in self.needed(target)}
        uses = Counter(read for name in used if name in self.steps for read in self.steps[name].reads)
        cut: list[str] = []
        for name in self.steps:
            often = name in used and uses[name] > 1 and self.written_out(name, frozenset(cut)) > SHORT
            if often or name in alone:
                cut.append(name)
        return tuple(cut)

    def written_out(self, target: str, computed: frozenset[str]) -> int:
        """How many steps a statement has, counting each wherever it is read."""
        sizes: dict[str, int] = {}
        for name, step in self.steps.items():
            sizes[name] = 1 + sum(sizes[read] for read in step.reads if read in sizes and read not in computed)
            if name == target:
                break
        return sizes[target]

    def scans(self, target: str) -> dict[str, int]:
        """How often the statement of a step scans each input and synopsis.

        Spark puts a copy of a step wherever it is read. Copies with the same exchange below them share it.
        """
        counted: dict[str, Counter[str]] = {}
        for name, step in self.steps.items():
            counted[name] = Counter()
            for read in step.reads:
                counted[name].update(counted.get(read, [read]))
            if name == target:
                break
        return dict(counted[target])

    def inputs_of(self, *targets: str) -> tuple[Input, ...]:
        """The inputs that some steps need."""
        needed = {name for target in targets for name in self.needed(target)}
        return tuple(source for source in self.inputs if source.name in needed)

    def state(self) -> tuple[Kept, ...]:
        """All that is kept between epochs."""
        synopses = [Kept(synopsis.name, synopsis.bound) for synopsis in self.synopses]
        read = (*self.inputs, *self.expiring)
        logs = [Kept(f"log of {source.stream}", source.bound) for source in read if source.bound is not None]
        return tuple(dict.fromkeys([*synopses, *logs]))

    def growing(self) -> tuple[Growing, ...]:
        """Why some of what is kept grows for as long as the query runs; empty if all of it is bounded."""
        return tuple(dict.fromkeys(kept.bound for kept in self.state() if isinstance(kept.bound, Growing)))

    def logs(self) -> tuple[str, ...]:
        """The logs that it reads: of streams, of relations, and of other fragments' results."""
        return tuple(dict.fromkeys(source.stream for source in self.inputs))

    def streams(self) -> tuple[str, ...]:
        """The base streams and relations that it reads."""
        return tuple(name for name in self.logs() if not is_part(name))


def _merged(steps: Sequence[Step]) -> list[Step]:
    """The steps of a statement, in order, with each that is read once put where it is read."""
    read, merged = Counter(name for step in steps for name in step.reads), dict[str, Step]()
    for step in steps:
        inner = {name: merged.pop(name).query for name in step.reads if name in merged and read[name] == 1}
        merged[step.name] = replace(step, query=in_place(step.query, inner)) if inner else step
    return list(merged.values())
