"""What plans of different queries have in common, and a plan that reads it instead of computing it.

Two relations are equal if they differ only in the names of their columns. They are compared in their anonymous form
(see `rewrites.common`), which is the plan of a shared fragment too: it is the same whichever query it is taken from.

Worth sharing is what keeps something: joins, groups, distinct rows and set operations. Windows and selections over a
stream are shared already, because all queries read one log of the stream, each from where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from headgate.plan.fragments import Part, streams
from headgate.plan.nodes import (
    Aggregate,
    Distinct,
    Join,
    Needed,
    Node,
    Piped,
    Ranked,
    Relation,
    Union,
    Window,
    names,
)
from headgate.plan.rewrites.common import anonymous, renamed
from headgate.plan.rewrites.projections import merged
from headgate.plan.scopes import scopes

KEEPING = (Join, Aggregate, Distinct, Ranked)
"""Operators that keep something between epochs, or do much work in one."""

SHARABLE = (*KEEPING, Union, Window)
"""Operators whose results may be shared. What selects and projects on top of them is done by each reader."""


@dataclass(frozen=True, slots=True)
class Sharable:
    """A subplan that may be shared."""

    position: int
    """Its number among the nodes of its plan, each counted once, parents first."""

    node: Relation
    form: Relation
    """The subplan in its anonymous form: without the names of columns that the query gives."""


class SharableParts:
    """The subplans of a plan that may be shared: those inside it, and itself unless it is shared already."""

    def __init__(self, plan: Node, *, shared: bool = False) -> None:
        self.plan = plan
        self._shared = shared
        self._forms: dict[int, tuple[Node, Node]] = {}
        self._keeping: dict[int, bool] = {}
        self._positions: dict[int, int] = {}
        self._seen = scopes(plan)
        self._number(plan)

    def _number(self, node: Node) -> None:
        if id(node) not in self._positions:
            self._positions[id(node)] = len(self._positions)
            for child in node.children:
                self._number(child)

    def all(self) -> list[Sharable]:
        """Return all of them, each before those inside it."""
        return list(self._within(self.plan, lambda one: False, set()))

    def chosen(self, log_of: Callable[[Relation], str | None]) -> dict[str, Sharable]:
        """Return the largest ones for whose form there is a log, by the name of the log."""
        found: dict[str, Sharable] = {}

        def take(one: Sharable) -> bool:
            log = log_of(one.form)
            if log is not None:
                found.setdefault(log, one)
            return log is not None

        for _ in self._within(self.plan, take, set()):
            pass
        return found

    def number(self, position: int) -> Sharable | None:
        """Return the one at a position; None if there is none."""
        return next((one for one in self.all() if one.position == position), None)

    def reading(self, logs: Mapping[Relation, str]) -> Node:
        """Return the plan over the logs of shared fragments, given by their forms."""
        done: dict[int, Node] = {}

        def over(node: Node) -> Node:
            if id(node) not in done:
                one = self._at(node)
                if one is not None and one.form in logs:
                    done[id(node)] = _read(one, logs[one.form])
                elif not _is_cut_below(node):
                    done[id(node)] = node
                else:
                    done[id(node)] = node.over(tuple(map(over, node.children)))
            return done[id(node)]

        return over(self.plan)

    def _within(self, node: Node, stop: Callable[[Sharable], bool], known: set[int]) -> Iterator[Sharable]:
        """Give the ones at a node and below; nothing below one at which to stop."""
        if id(node) in known:
            return
        known.add(id(node))
        one = self._at(node)
        if one is not None:
            yield one
            if stop(one):
                return
        for child in node.children if _is_cut_below(node) else ():
            yield from self._within(child, stop, known)

    def _at(self, node: Node) -> Sharable | None:
        """Return the node as one that may be shared; None if it may not."""
        if not isinstance(node, SHARABLE) or (self._shared and node is self.plan):
            return None
        if not self._keeps(node) or not streams(node) or not self._sees_as_much(node):
            return None
        form = cast(Relation, anonymous(node, self._forms))
        return Sharable(self._positions[id(node)], node, form)

    def _keeps(self, node: Node) -> bool:
        if id(node) not in self._keeping:
            self._keeping[id(node)] = isinstance(node, KEEPING) or any(map(self._keeps, node.children))
        return self._keeping[id(node)]

    def _sees_as_much(self, node: Node) -> bool:
        """Say whether the plan waits for all sources that the node sees: then it never goes further than the node.

        Otherwise a selection above the node says that only some of its sources matter.
        """
        own = scopes(node)
        return all(stream not in self._seen or own.get(stream) == self._seen[stream] for stream in streams(node))


def _is_cut_below(node: Node) -> bool:
    """Say whether something below the node may be computed elsewhere.

    Not below a join that looks up groups: it has to know that they are groups. Nor where rows are kept only as long as
    they may find partners.
    """
    return not isinstance(node, Needed) and not (isinstance(node, Join) and node.lookup is not None)


def _read(one: Sharable, log: str) -> Relation:
    """What a shared fragment puts out, with the names that the reader gives to its columns."""
    piped = Piped(one.form, log)
    return piped if names(piped) == names(one.node) else renamed(piped, names(one.node))


def part_over(log: str | None, parts: SharableParts, below: Mapping[str, tuple[Relation, Part]]) -> Part:
    """Return the part that computes a plan over the logs of shared fragments, each given with its form and its part.

    `log` is where it puts its own elements, if it is shared too.
    """
    over = merged(parts.reading({form: name for name, (form, _) in below.items()}))
    return Part(log, over, tuple(part for _, part in below.values()), streams(parts.plan), scopes(parts.plan))
