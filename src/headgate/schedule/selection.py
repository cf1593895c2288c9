"""The order in which fragments run: depth first, as soon as anything can get closer to the answer (Bai et al., 3).

That is `depth_first`, for `SET scheduling = 'fifo'`. The other schedulers run whatever has the first priority of all
fragments that have input: `by_priority`.

    Forward     a fragment has run: on to the one that reads it
    Backtrack   a fragment has no input: back to the fragments it reads. At a stream there is no further back, so it is
                asked, now, up to when nothing will still come; the answer may give the fragment input

An epoch always puts something out, tuples or how far they are complete, so a fragment never runs twice before its
reader. When the fragment that gives the answer has run, the turn is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from headgate.schedule.priorities import first

MOST_EPOCHS = 64
"""So many epochs a turn by priority has at the most, so that other queries and sinks get theirs."""


class Node(Protocol):
    """A fragment, as the selection sees it."""

    def has_input(self) -> bool:
        """Say whether there is input that it can take."""

    def can_ask(self) -> bool:
        """Say whether it would help to ask the streams that it reads how far they are."""

    def ask(self) -> bool:
        """Ask them; say whether any answer moves anything."""


N = TypeVar("N", bound=Node)


def depth_first(root: N, reads: Mapping[N, Sequence[N]]) -> Iterator[N]:
    """Give the fragments to be run, one after another, until the answer's has run or nothing can run.

    `reads` are the fragments that each fragment reads. The caller runs a fragment before it takes the next. No
    fragment is asked twice, or gone back to twice in vain.
    """
    reader: dict[N, N] = {}
    for above, several in reads.items():
        for below in several:
            reader.setdefault(below, above)
    here, tried, asked = root, set[N](), set[N]()
    while True:
        if here.has_input():
            yield here
            if here is root:
                return
            here = reader[here]  # Forward
            continue
        before = next((one for one in reads[here] if one not in tried), None)
        if before is not None:
            tried.add(before)
            here = before  # Backtrack
            continue
        if here not in asked and here.can_ask():
            asked.add(here)
            if here.ask():
                tried.clear()  # what moved may be of use to any of them
                continue
        if here is root:
            return
        here = reader[here]


def by_priority(
    root: N, reads: Mapping[N, Sequence[N]], priorities: Callable[[], Mapping[N, float]], look: Callable[[], None]
) -> Iterator[N]:
    """Give the fragments to be run, one after another, the one with the largest priority first: until the answer's has
    run, nothing can run, or enough have run for one turn.

    Of equals, the one nearest the answer goes first. `look` is called before it is looked which have input: what has
    come meanwhile counts. When none has, those that can be are asked, each once.
    """
    nearest, asked = _nearest_first(root, reads), set[N]()
    epochs = 0
    while epochs < MOST_EPOCHS:
        look()
        ready = [one for one in nearest if one.has_input()]
        if ready:
            chosen = first(ready, priorities())
            epochs += 1
            yield chosen
            if chosen is root:
                return
            continue
        unasked = next((one for one in nearest if one not in asked and one.can_ask()), None)
        if unasked is None:
            return
        asked.add(unasked)
        unasked.ask()


def _nearest_first(root: N, reads: Mapping[N, Sequence[N]]) -> list[N]:
    """Return all fragments, those with the shortest way to the answer first."""
    found, level = {root: None}, [root]
    while level:
        level = [below for one in level for below in reads[one] if below not in found]
        found |= dict.fromkeys(level)
    return list(found)
