"""What a plan needs of the base streams it reads: which columns, and which tuples. The low level keeps no more of them.

A tuple is not needed if a selection directly above the window, over which it is read, drops it: then it is in no
relation at any instant. That holds for windows in which each tuple counts by itself, and not for `[ROWS n]`, where a
tuple that is selected out has pushed another one out before. Of a condition only the parts between its ANDs count that
are cheap and cannot fail (see `prefilter`), so more tuples may be kept than are needed, and never fewer. The plan stays
as it is and selects once more.

    σ W S      needs the tuples of S that may pass σ
    σ π W S    the same, if σ reads what the projection carries
    two paths  to one stream: what either of them needs
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.plan.expressions import Expression
from headgate.plan.nodes import Filter, Node, Project, Scan, Window, children, names
from headgate.plan.prefilter import is_cheap
from headgate.plan.rewrites.columns import columns_read, parents_first
from headgate.plan.rewrites.substitution import conjunction, conjuncts, movable, substituted
from headgate.plan.weights import INSTANTS, Told, joined, told_apart
from headgate.sql import Sql
from headgate.sql.printer import printed
from headgate.sql.reading import parsed


@dataclass(frozen=True, slots=True)
class Need:
    """What is needed of a stream: some columns of the tuples for which one of some conditions holds."""

    columns: frozenset[str]
    """In lower case."""

    conditions: frozenset[Sql] | None
    """Conditions in SQL over the stream's columns, one of which holds for each needed tuple; None: all are needed."""

    told: Told | None = None
    """By what tuples are told apart: those that are equal in it may be kept once, with partial aggregates. None: each
    tuple counts by itself.
    """

    @property
    def coarse(self) -> bool:
        """True if tuples of different instants may be kept as one."""
        return self.told is not None and self.told.grains != INSTANTS

    def covers(self, other: Need) -> bool:
        """True if this is known to hold all that the other one needs."""
        if not other.columns <= self.columns:
            return False
        if self.told is not None:
            if other.told is None or not other.told.columns <= self.told.columns:
                return False
            if self.coarse and not other.told.grains <= self.told.grains:
                return False
        return self.conditions is None or (other.conditions is not None and other.conditions <= self.conditions)

    def common(self, other: Need) -> Need:
        """What both hold for certain."""
        columns, both = self.columns & other.columns, [one.told for one in (self, other) if one.told is not None]
        told = None
        if both:
            fine = all(one.grains == INSTANTS for one in both)
            told = Told(frozenset.intersection(*(one.columns for one in both)), INSTANTS if fine else frozenset())
        if self.conditions is None or other.conditions is None:
            return Need(columns, other.conditions if self.conditions is None else self.conditions, told)
        return Need(columns, self.conditions & other.conditions, told)

    @property
    def condition(self) -> Sql | None:
        """The conditions as one, in SQL; None if all tuples are needed."""
        return None if self.conditions is None else " OR ".join(f"({one})" for one in sorted(self.conditions))

    def written(self) -> dict[str, Any]:
        """The need for the journal."""
        return {
            "columns": sorted(self.columns),
            "conditions": None if self.conditions is None else sorted(self.conditions),
            "told": None if self.told is None else [sorted(self.told.columns), sorted(self.told.grains)],
        }

    @staticmethod
    def read(said: Mapping[str, Any]) -> Need:
        """A need from the journal."""
        conditions = said["conditions"]
        known = None if conditions is None else frozenset(map(_again, conditions))
        told = None
        if said.get("told") is not None:
            columns, grains = said["told"]
            told = Told(frozenset(columns), frozenset((offset, width) for offset, width in grains))
        elif said.get("weighted"):  # as it was written before there were grains
            told = Told(frozenset(said["columns"]), INSTANTS)
        return Need(frozenset(said["columns"]), known, told)


def _again(text: str) -> Sql:
    """A condition from the journal, read and printed again."""
    tree = parsed(text)
    assert tree is not None, text
    return printed(tree)


def together(needs: Iterable[Need]) -> Need:
    """What any of several readers needs."""
    some = list(needs)
    columns = frozenset[str]().union(*(need.columns for need in some))
    conditions = frozenset[Sql]().union(*(need.conditions or () for need in some))
    everything = any(need.conditions is None for need in some)
    told = [need.told for need in some if need.told is not None]
    apart = None
    if told and len(told) == len(some):
        apart = Told(frozenset[str]().union(*(one.columns for one in told)), joined(one.grains for one in told))
    return Need(columns, None if everything else conditions, apart)


def needs(plan: Node) -> dict[str, Need]:
    """What the plan needs of each base stream that it reads itself, by name. Dead letters are no such streams."""
    found: dict[str, list[Need]] = {}
    columns, told = columns_read(plan), told_apart(plan)
    for scan, parts in _ways_down(plan):
        types = {column.name.lower(): column.type.upper() for column in scan.columns}
        cheap = [part for part in parts if is_cheap(part, types)]
        conditions = frozenset({conjunction(cheap).sql}) if cheap else None
        always = {name.lower() for name in (scan.timestamp, scan.by) if name is not None}
        found.setdefault(scan.stream, []).append(Need(frozenset(columns[scan] | always), conditions, told.get(scan)))
    watched = {stream for node in parents_first(plan) for stream in node.watches}
    for scan in (source for source in plan.sources if isinstance(source, Scan) and source.stream in watched):
        found.setdefault(scan.stream, []).append(Need(frozenset(name.lower() for name in names(scan)), None))
    return {stream: together(some) for stream, some in found.items() if not stream.startswith("late(")}


def _ways_down(plan: Node) -> list[tuple[Scan, Sequence[Expression]]]:
    """Every way from the top of the plan to a base stream, with the conditions that its tuples must meet on it."""
    found: list[tuple[Scan, Sequence[Expression]]] = []
    seen: set[tuple[Node, frozenset[str]]] = set()
    waiting: list[tuple[Node, tuple[Expression, ...]]] = [(plan, ())]
    while waiting:
        node, parts = waiting.pop()
        key = node, frozenset(part.sql for part in parts)
        if key in seen:
            continue
        seen.add(key)
        if isinstance(node, Scan):
            found.append((node, parts))
        elif isinstance(node, Filter):
            waiting.append((node.child, (*parts, *filter(movable, conjuncts(node.condition)))))
        elif isinstance(node, Project):
            moved = (substituted(part, node.carried[0]) for part in parts)
            waiting.append((node.child, tuple(part for part in moved if part is not None)))
        elif isinstance(node, Window) and node.frame.together is None and isinstance(node.child, Scan):
            own = {name.lower() for name in names(node.child)}
            waiting.append((node.child, tuple(part for part in parts if part.columns <= own)))
        else:
            waiting += [(child, ()) for child in children(node)]
    return found
