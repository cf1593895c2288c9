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
from headgate.plan.weights import carries_weight


@dataclass(frozen=True, slots=True)
class Need:
    """What is needed of a stream: some columns of the tuples for which one of some conditions holds."""

    columns: frozenset[str]
    """In lower case."""

    conditions: frozenset[str] | None
    """Conditions in SQL over the stream's columns, one of which holds for each needed tuple; None: all are needed."""

    weighted: bool = False
    """Whether tuples that are equal in these columns and in their timestamps may be kept once, with their number."""

    def covers(self, other: Need) -> bool:
        """True if this is known to hold all that the other one needs."""
        if not other.columns <= self.columns or (self.weighted and not other.weighted):
            return False
        return self.conditions is None or (other.conditions is not None and other.conditions <= self.conditions)

    def common(self, other: Need) -> Need:
        """What both hold for certain."""
        columns, weighted = self.columns & other.columns, self.weighted or other.weighted
        if self.conditions is None or other.conditions is None:
            return Need(columns, other.conditions if self.conditions is None else self.conditions, weighted)
        return Need(columns, self.conditions & other.conditions, weighted)

    @property
    def condition(self) -> str | None:
        """The conditions as one, in SQL; None if all tuples are needed."""
        return None if self.conditions is None else " OR ".join(f"({one})" for one in sorted(self.conditions))

    def written(self) -> dict[str, Any]:
        """The need for the journal."""
        return {
            "columns": sorted(self.columns),
            "conditions": None if self.conditions is None else sorted(self.conditions),
            "weighted": self.weighted,
        }

    @staticmethod
    def read(said: Mapping[str, Any]) -> Need:
        """A need from the journal."""
        conditions = said["conditions"]
        known = None if conditions is None else frozenset(conditions)
        return Need(frozenset(said["columns"]), known, said["weighted"])


def together(needs: Iterable[Need]) -> Need:
    """What any of several readers needs."""
    some = list(needs)
    columns = frozenset[str]().union(*(need.columns for need in some))
    conditions = frozenset[str]().union(*(need.conditions or () for need in some))
    everything = any(need.conditions is None for need in some)
    return Need(columns, None if everything else conditions, all(need.weighted for need in some))


def needs(plan: Node) -> dict[str, Need]:
    """What the plan needs of each base stream that it reads itself, by name. Dead letters are no such streams."""
    found: dict[str, list[Need]] = {}
    columns = columns_read(plan)
    for scan, parts in _ways_down(plan):
        types = {column.name.lower(): column.type.upper() for column in scan.columns}
        cheap = [part for part in parts if is_cheap(part, types)]
        conditions = frozenset({conjunction(cheap).sql}) if cheap else None
        always = {name.lower() for name in (scan.timestamp, scan.by) if name is not None}
        found.setdefault(scan.stream, []).append(
            Need(frozenset(columns[scan] | always), conditions, carries_weight(scan))
        )
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
