"""A fragment's program, written for epochs of several sizes.

    tiny          up to 1,000 rows: rules that look at every row at every instant, in few steps
    single_task   up to 50,000 rows: every union comes back as one partition, so that nothing is shuffled
    parallel      more: Spark's tasks share the work, but one task walks through all rows of a window without partitions
    by_ranges     more, for four tasks or more: such a window is cut into ranges, so that they share it too

All of them keep the same synopses and give the same answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from headgate.delta.assumptions import Assumption
from headgate.delta.program import Counting, Program
from headgate.delta.ranges import Ranges
from headgate.plan.join_orders import Arrangement
from headgate.plan.multiway import Group
from headgate.sql import Sql

TINY_ROWS = 1_000
"""Up to here, looking at every row at every instant costs less than the steps that would save it."""

SINGLE_TASK_ROWS = 50_000
"""Up to here, one task does the work: more tasks would cost more than they save."""

LONGEST_SMALL = 60
"""How many steps a statement of one task may have, counting each wherever it is read, before some are computed on their
own. That costs less than in a large epoch: plans are kept, and what is computed stays in memory.
"""

TASKS_FOR_RANGES = 4
"""From so many tasks on, cutting windows into ranges saves more than it costs: two would be just as slow as one."""


@dataclass(frozen=True)
class SizedProgram:
    """A program for epochs of one size."""

    program: Program
    computed_first: tuple[str, ...]
    """Steps that a long statement reads more than once; a job of its own computes each of them first."""

    in_one_task: bool

    def output(self, columns: Sql) -> Sql:
        """Return the statement for the results of an epoch. It is the same in every epoch."""
        if columns not in self._outputs:
            self._outputs[columns] = self.program.output(columns)
        return self._outputs[columns]

    @cached_property
    def _outputs(self) -> dict[Sql, Sql]:
        return {}


def _sized(program: Program, in_one_task: bool = False) -> SizedProgram:
    computed_first = program.shared(LONGEST_SMALL) if in_one_task else program.shared()
    return SizedProgram(replace(program, nested=True), computed_first, in_one_task)


class Programs:
    """The program of a fragment as it was compiled, and for tiny, small and large epochs."""

    def __init__(self, program: Program, tiny: Program) -> None:
        self.program, self._tiny = program, tiny
        self.parallel = _sized(program)
        self.by_ranges = _sized(program.by_ranges(Ranges())) if program.by_ranges else None
        self.single_task = _sized(program.single_task(), in_one_task=True)
        self.tiny = _sized(tiny.single_task(), in_one_task=True)

    def large(self, tasks: Callable[[], int]) -> SizedProgram:
        """Return the program for an epoch of many rows. How many tasks share it is asked only where it matters."""
        return self.by_ranges if self.by_ranges and tasks() >= TASKS_FOR_RANGES else self.parallel

    def for_rows(self, rows: int, tasks: Callable[[], int], tiny: bool = True) -> SizedProgram:
        """Return the program for an epoch that reads so many rows, of logs and synopses together."""
        if rows > SINGLE_TASK_ROWS:
            return self.large(tasks)
        return self.tiny if tiny and rows <= TINY_ROWS else self.single_task

    @property
    def sums_every_double(self) -> bool:
        """Whether no double can make it fail. Otherwise `summing_every_double` gives programs that go on."""
        return self.program.for_all_doubles is None

    def summing_every_double(self) -> Programs:
        """Return programs for doubles that these do not sum. They keep synopses in addition, which begin empty."""
        assert self.program.for_all_doubles is not None
        assert self._tiny.for_all_doubles is not None
        return Programs(self.program.for_all_doubles(), self._tiny.for_all_doubles())

    @property
    def groups(self) -> tuple[Group, ...]:
        """The joins of several inputs."""
        return self.program.groups

    def arranged(self, arrangements: tuple[Arrangement, ...]) -> Programs:
        """Return programs that arrange their joins of several inputs in another way."""
        assert self.program.arranged is not None
        assert self._tiny.arranged is not None
        return Programs(self.program.arranged(arrangements), self._tiny.arranged(arrangements))

    def as_trees(self) -> Programs | None:
        """Return programs that join two inputs after two; None if these have no joins of several."""
        if self.program.as_tree is None:
            return None
        assert self._tiny.as_tree is not None
        return Programs(self.program.as_tree(), self._tiny.as_tree())

    def counting(self, counting: tuple[Counting, ...], in_one_task: bool) -> SizedProgram:
        """Return the program that counts what joins of several inputs give."""
        assert self.program.counting is not None
        program = self.program.counting(counting)
        return _sized(program.single_task() if in_one_task else program, in_one_task)

    @property
    def assumed(self) -> frozenset[Assumption]:
        """The assumptions about the numbers that are read."""
        return self.program.assumed | self._tiny.assumed

    def denying(self, denied: frozenset[Assumption] | None) -> Programs:
        """Return programs that do not take for granted what is denied, or nothing at all if None is given."""
        assert self.program.denying is not None
        assert self._tiny.denying is not None
        return Programs(self.program.denying(denied), self._tiny.denying(denied))

    def without_panes(self) -> Programs | None:
        """Return programs that keep running sums where these keep panes; None if these keep none."""
        if self.program.without_panes is None:
            return None
        assert self._tiny.without_panes is not None
        return Programs(self.program.without_panes(), self._tiny.without_panes())

    def without_distances(self) -> Programs | None:
        """Return programs that keep nothing because of how far apart rows begin; None if these do not either."""
        if self.program.without_distances is None:
            return None
        assert self._tiny.without_distances is not None
        return Programs(self.program.without_distances(), self._tiny.without_distances())

    def without_leaders(self) -> Programs | None:
        """Return programs that read moving windows again where these keep leaders; None if these keep none."""
        if self.program.without_leaders is None:
            return None
        assert self._tiny.without_leaders is not None
        return Programs(self.program.without_leaders(), self._tiny.without_leaders())
