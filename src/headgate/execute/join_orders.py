"""How the joins of several inputs of one fragment are arranged now, and when rows are counted to see if that is best.

Counting is a statement of its own, over the rows of the epoch that is about to run. It looks at some hundred new rows
of an input. It comes only before epochs that read so much that another arrangement could pay, and takes no more than a
share of the time that epochs take. What comes of it is decided in `plan/join_orders`. Orders change at once; caches
change when the synopses are moved, in one line of the journal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from headgate.delta.multiway import caches_named
from headgate.delta.program import Counting
from headgate.plan.join_orders import (
    Arrangement,
    Change,
    Counts,
    adapted,
    as_written,
    can_change,
    sets_to_count,
)
from headgate.plan.multiway import Group, Inputs

LEAST_ROWS = 10_000
"""So many rows an epoch must read, of logs and synopses together, before it is asked if it could read fewer."""

SAMPLED_ROWS = 400
"""Of so many new rows of an input, about, it is counted with how many rows of the others they agree."""

COUNTED_IN_ONE_TASK = 200_000
"""Up to so many rows one task counts: it reads each a few times, and joins them with a few hundred."""

SHARE = 0.05
"""How long counting takes at the most, for each second that epochs take."""

FIRST_COUNT_S = 1.0
"""How long the first count is expected to take. Those after it are expected to take as long as the last one."""

SECONDS_FOR_ROW = 2e-5
"""How long the epoch that is about to run is expected to take, for each row that it reads."""

SHOWN_CHANGES = 5
"""How many of them `explain` shows."""

KEPT_CHANGES = 50
"""How many of the last changes are remembered."""


class JoinOrders:
    """The arrangements of a fragment's groups, and what was counted for them."""

    def __init__(self, groups: Sequence[Group], arrangements: Sequence[Arrangement], caching: bool) -> None:
        self.groups = groups
        self.caching = caching
        self.arrangements = tuple(arrangements)
        self.coming: tuple[Arrangement, ...] | None = None
        """The arrangements that count when the synopses have been moved, because they have other caches."""
        self.counts = [Counts() for _ in groups]
        self.changes: deque[Change] = deque(maxlen=KEPT_CHANGES)
        """What was changed lately, oldest first."""
        self.least_rows, self.share = LEAST_ROWS, SHARE
        self.epochs_s = self.counting_s = 0.0
        self.count_s = FIRST_COUNT_S
        """How long the next count is expected to take."""
        self.counted = 0
        """How often rows were counted."""

    def due(self, rows: int) -> bool:
        """Say whether it is time to count, before an epoch that reads so many rows."""
        if self.coming is not None or rows < self.least_rows or not self._changing():
            return False
        return self.counting_s + self.count_s <= self.share * (self.epochs_s + rows * SECONDS_FOR_ROW)

    def _changing(self) -> list[int]:
        """Return the groups that can be arranged in another way."""
        both = zip(self.groups, self.arrangements, strict=True)
        return [number for number, (group, now) in enumerate(both) if can_change(group, now)]

    def took(self, seconds: float) -> None:
        """Note how long a count took."""
        self.counted += 1
        self.counting_s += seconds
        self.count_s = seconds

    def to_count(self, new_rows: Mapping[str, int]) -> tuple[Counting, ...]:
        """Return what to count next, by how many rows came of each stream: one group, and of a large one one input."""
        able = self._changing()
        number, turn = able[self.counted % len(able)], self.counted // len(able)
        group = self.groups[number]
        inputs = range(len(group.inputs))
        some = inputs if len(group.inputs) == 3 else [inputs[turn % len(inputs)]]
        return tuple(
            Counting(
                number,
                one,
                max(1, sum(new_rows.get(source.name, 0) for source in group.inputs[one].sources) // SAMPLED_ROWS),
                sets_to_count(group, self.arrangements[number], one),
            )
            for one in some
        )

    def take(self, rows: Iterable[tuple[int, int, str, int]]) -> bool:
        """Take what was counted: group, input, with which others, rows. Say whether orders changed."""
        arrived, stood, sample = dict[int, int](), dict[int, int](), dict[int, int]()
        found: dict[tuple[int, Inputs], int] = {}
        number = 0
        for of, one, others, count in rows:
            number = of
            if others == "came":
                arrived[one] = count
                stood.setdefault(one, 0)
            elif others == "stood":
                stood[one] = count
            elif not others:
                sample[one] = count
            else:
                found[one, frozenset(map(int, others.split()))] = count
        self.counts[number] = self.counts[number].with_more(arrived, stood, sample, found)
        before, group = self.arrangements[number], self.groups[number]
        after, changes = adapted(group, before, self.counts[number], self.caching)
        self.changes += changes
        if (after.caches, after.as_written) != (before.caches, before.as_written):
            self.coming = self._with(number, after)
            return False
        self.arrangements = self._with(number, after)
        return after != before

    def _with(self, number: int, arrangement: Arrangement) -> tuple[Arrangement, ...]:
        return (*self.arrangements[:number], arrangement, *self.arrangements[number + 1 :])

    def while_moving(self) -> tuple[Arrangement, ...]:
        """Return the arrangements with which synopses are moved: new caches are filled, and others no longer read."""
        assert self.coming is not None
        return tuple(map(_moving, self.arrangements, self.coming))

    def with_synopses(self, synopses: Iterable[str]) -> tuple[Arrangement, ...] | None:
        """Return the arrangements with which these synopses are kept; None if these are the ones in force."""
        caches, trees = caches_named(synopses)
        kept = tuple(
            self._keeping(number, caches.get(number, frozenset()), number in trees)
            for number in range(len(self.groups))
        )
        if kept == self.arrangements and self.coming is None:
            return None
        self.arrangements, self.coming = kept, None
        return kept

    def _keeping(self, number: int, caches: frozenset[Inputs], tree: bool) -> Arrangement:
        """Return how a group is arranged that keeps these caches, or what it keeps as it is written."""
        now, group = self.arrangements[number], self.groups[number]
        then = self.coming[number] if self.coming is not None else now
        for known in (then, now):
            nothing = not any(map(group.lasting, group.inner))
            if known.as_written and (tree or (nothing and not caches)):
                return known
            if not known.as_written and not tree and known.caches == caches:
                return known
        return as_written(group) if tree else Arrangement(caches=caches)

    def reasons(self) -> list[str]:
        """Return what was changed last, and by which figures, a line each."""
        return [f"{one.what} (by {one.by})" for one in list(self.changes)[-SHOWN_CHANGES:]]


def _moving(now: Arrangement, then: Arrangement) -> Arrangement:
    if now.as_written == then.as_written:
        return replace(now, caches=now.caches & then.caches, filling=then.caches - now.caches)
    return replace(then, caches=frozenset(), filling=then.caches)
