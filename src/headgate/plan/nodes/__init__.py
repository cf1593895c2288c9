"""The logical plan: frozen nodes, each a stream or a relation that varies with time.

`columns` names what a node puts out, every name once (case-insensitively), none beginning with an underscore: those
belong to `delta`. What is true of a node is answered by its class; `operator` lists the questions.
"""

from __future__ import annotations

from typing import TypeAlias, TypeGuard

from headgate.plan.nodes.frames import Closing, Final, Frame, Now, Passed, Range, Rows, Unbounded, Values
from headgate.plan.nodes.groups import Aggregate, Distinct, Ranked
from headgate.plan.nodes.leaves import Piped, Stored
from headgate.plan.nodes.operator import StreamOperator
from headgate.plan.nodes.pairs import Equality, Join, Union
from headgate.plan.nodes.rows import Compared, Exploded, Filter, Needed, Ordered, Project, Weight
from headgate.plan.nodes.streams import Constraint, Dstream, Istream, Lives, Rstream, Sample, Scan
from headgate.plan.nodes.windows import Window
from headgate.ticks import TimeDomain

__all__ = [
    "MEMBERS",
    "Aggregate",
    "Closing",
    "Compared",
    "Constraint",
    "Distinct",
    "Dstream",
    "Equality",
    "Exploded",
    "Filter",
    "Final",
    "Frame",
    "Istream",
    "Join",
    "Lives",
    "Needed",
    "Node",
    "Now",
    "Ordered",
    "Passed",
    "Piped",
    "Project",
    "Range",
    "Ranked",
    "Relation",
    "Rows",
    "Rstream",
    "Sample",
    "Scan",
    "Stored",
    "Stream",
    "Unbounded",
    "Union",
    "Values",
    "Weight",
    "Window",
    "children",
    "domain",
    "is_part",
    "is_shared",
    "is_stream",
    "names",
    "part_name",
    "shared_name",
    "sources",
]

Stream: TypeAlias = Scan | Sample | Lives | Istream | Dstream | Rstream
Relation: TypeAlias = (
    Window
    | Filter
    | Project
    | Join
    | Union
    | Weight
    | Exploded
    | Ranked
    | Aggregate
    | Distinct
    | Needed
    | Stored
    | Piped
)
Node: TypeAlias = Stream | Relation


def part_name(number: int) -> str:
    """What the log of a query's part is called."""
    return f"part({number})"


MEMBERS = "_members"
"""The relation of constants of a family that was found: it belongs to its query alone."""


def shared_name(number: int) -> str:
    """What the log of a shared fragment is called."""
    return f"shared({number})"


def is_shared(log: str | None) -> bool:
    """Whether a log is that of a fragment that several queries may read."""
    return log is not None and log.startswith("shared(")


def is_part(log: str) -> bool:
    """Whether a log is no stream or relation: it holds what a fragment puts out, or the members of a family that was
    found.
    """
    return log.startswith("part(") or is_shared(log) or log == MEMBERS


def is_stream(node: Node) -> TypeGuard[Stream]:
    """Whether the node is a stream, and no relation."""
    return isinstance(node, StreamOperator)


def names(node: Node) -> tuple[str, ...]:
    """The names of the node's columns."""
    return tuple(column.name for column in node.columns)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes that stand directly below."""
    return node.children


def sources(node: Node) -> list[Scan | Stored]:
    """The base streams and relations the node reads, through other fragments too, each occurrence."""
    return node.sources


def domain(node: Node) -> TimeDomain:
    """The kind of time the node lives in; relations that never change live in any."""
    return node.time
