"""How the joins of several inputs of one fragment are arranged now, and when rows are counted to see if that is best.

Counting is a statement of its own, over the rows of the epoch that is about to run. It looks at some hundred new rows
of an input, and at no more than a share of the time that epochs take. What comes of it is decided in
`plan/join_orders`. Orders change at once; caches change when the synopses are moved, in one line of the journal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from headgate.delta.program import Counting
from headgate.plan.join_orders import (
    Arrangement,
    Change,
    Counts,
    adapted,
    sets_to_count,
)
from headgate.plan.multiway import Group, Inputs

LEAST_ROWS = 500
"""So many rows must have come since the last count."""

SAMPLED_ROWS = 400
"""Of so many new rows of an input, about, it is counted with how many rows of the others they agree."""

SHARE = 0.05
"""How long counting takes at the most, for each second that epochs take."""

SHOWN_CHANGES = 5
"""How many of them `explain` shows."""

KEPT_CHANGES = 50
"""How many of the last changes are remembered."""


class JoinOrders:
    """The arrangements of a fragment's groups, and what was counted for them."""

    def __init__(self, groups: Sequence[Group], caching: bool) -> None:
        self.groups = groups
        self.caching = caching
        self.arrangements = tuple(Arrangement() for _ in groups)
        self.coming: tuple[Arrangement, ...] | None = None
        """The arrangements that count when the synopses have been moved, because they have other caches."""
        self.counts = [Counts() for _ in groups]
        self.changes: deque[Change] = deque(maxlen=KEPT_CHANGES)
        """What was changed lately, oldest first."""
        self.rows = 0
        """How many rows came since the last count."""
        self.epochs_s = self.counting_s = 0.0
        self.counted = 0
        """How often rows were counted."""

    def due(self, rows: int) -> bool:
        """Say whether it is time to count, before an epoch of so many rows."""
        many = self.rows + rows >= LEAST_ROWS
        return bool(self.groups) and self.coming is None and many and self.counting_s <= SHARE * self.epochs_s

    def to_count(self, new_rows: Mapping[str, int]) -> tuple[Counting, ...]:
        """Return what to count next, by how many rows came of each stream: one group, and of a large one one input."""
        number, turn = self.counted % len(self.groups), self.counted // len(self.groups)
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
        arrived, sample, found = dict[int, int](), dict[int, int](), dict[tuple[int, Inputs], int]()
        number = 0
        for of, one, others, count in rows:
            number = of
            if others == "came":
                arrived[one] = count
            elif not others:
                sample[one] = count
            else:
                found[one, frozenset(map(int, others.split()))] = count
        self.counts[number] = self.counts[number].with_more(arrived, sample, found)
        before, group = self.arrangements[number], self.groups[number]
        after, changes = adapted(group, before, self.counts[number], self.caching)
        self.changes += changes
        if after.caches != before.caches:
            self.coming = self._with(number, after)
            return False
        self.arrangements = self._with(number, after)
        return after != before

    def _with(self, number: int, arrangement: Arrangement) -> tuple[Arrangement, ...]:
        return (*self.arrangements[:number], arrangement, *self.arrangements[number + 1 :])

    def while_moving(self) -> tuple[Arrangement, ...]:
        """Return the arrangements with which synopses are moved: new caches are filled, and others no longer read."""
        assert self.coming is not None
        return tuple(
            replace(now, caches=now.caches & then.caches, filling=then.caches - now.caches)
            for now, then in zip(self.arrangements, self.coming, strict=True)
        )

    def with_caches(self, caches: Mapping[int, frozenset[Inputs]]) -> tuple[Arrangement, ...] | None:
        """Return the arrangements with the caches that are kept now; None if these are the ones in force."""
        now = [one.caches for one in self.arrangements]
        kept = [caches.get(number, frozenset()) for number in range(len(self.groups))]
        if now == kept and self.coming is None:
            return None
        coming, self.coming = self.coming, None
        if coming is not None and [one.caches for one in coming] == kept:
            self.arrangements = coming
        else:
            pairs = zip(self.arrangements, kept, strict=True)
            self.arrangements = tuple(replace(one, caches=some, filling=frozenset()) for one, some in pairs)
        return self.arrangements

    def reasons(self) -> list[str]:
        """Return what was changed last, and by which figures, a line each."""
        return [f"{one.what} (by {one.by})" for one in list(self.changes)[-SHOWN_CHANGES:]]
