"""The order in which fragments run: depth first, as soon as anything can get closer to the answer (Bai et al., 3).

    Forward     a fragment has run: on to the one that reads it
    Backtrack   a fragment has no input: back to the fragments it reads. At a stream there is no further back, so it is
                asked, now, up to when nothing will still come; the answer may give the fragment input

An epoch always puts something out, tuples or how far they are complete, so a fragment never runs twice before its
reader. When the fragment that gives the answer has run, the turn is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeVar


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
