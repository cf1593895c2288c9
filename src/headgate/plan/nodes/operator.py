"""Every question that is asked of a plan node, in one place: `Operator`, and below it streams and relations.

A node class answers all of them, or takes the answers of a kind such as `RowByRow` that says what it is. No question
has an answer by default: a node class that forgets one cannot be made (mypy says so, and so does Python), and
tests/plan/test_nodes.py looks at every class and every question. Everything else in `plan`, and `explain`, folds over
these answers and knows no list of node classes.

What is proved of a node is conservative: False, or None, means "not proved". The rules in `delta` rely on it for
exactness, so each answer says why it holds where that is not obvious.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, TypeVar, cast

from headgate.plan.expressions import Call, Expression
from headgate.plan.limits import StateBound
from headgate.plan.spans import Spans
from headgate.sql import UNKNOWN, Sql, spelled
from headgate.ticks import Tick, TimeDomain

if TYPE_CHECKING:
    from headgate.plan.nodes import Node, Now, Relation, Scan, Stored, Stream, Unbounded, Window

Carried: TypeAlias = Mapping[str, Expression]
"""Output columns in lower case, each with the expression over one child that it is."""

Closing: TypeAlias = Callable[[Sql, Tick | None], Tick | None]
"""Evaluates SQL over one `_t`; without one, over the last instant at which anything came from a source."""

T = TypeVar("T", Expression, Call)


class Change(ABC):
    """A change of the expressions, calls and columns that a node reads."""

    @abstractmethod
    def __call__(self, value: T) -> T: ...

    def column(self, name: str) -> str:
        """The column that is read instead of the one of this name."""
        return self(column_of(name)).column or name


def column_of(name: str, kind: Sql = UNKNOWN) -> Expression:
    """The expression that is nothing but the column of this name."""
    return Expression(spelled(name), kind, frozenset({name.lower()}), name)


def identity(child: Node) -> Carried:
    """Every column of the child as it is."""
    return {column.name.lower(): column_of(column.name, column.type) for column in child.columns}


def lower_names(node: Node) -> frozenset[str]:
    return frozenset(column.name.lower() for column in node.columns)


class Operator(ABC):
    """The questions that every node answers, stream or relation."""

    inputs: ClassVar[tuple[str, ...]]
    """The fields that hold its children."""

    # what follows from the fields of the node alone, for every class of nodes

    @property
    def children(self) -> tuple[Node, ...]:
        return tuple(getattr(self, name) for name in self.inputs)

    def over(self, below: tuple[Node, ...]) -> Node:
        """The node over other children; the node itself if they are the same."""
        if all(one is other for one, other in zip(self.children, below, strict=True)):
            return cast("Node", self)
        return cast("Node", replace(cast(Any, self), **dict(zip(self.inputs, below, strict=True))))

    @property
    def expressions(self) -> tuple[Expression | Call, ...]:
        """Every expression and aggregate call in the node's fields."""
        own = (getattr(self, field.name) for field in fields(cast(Any, self)) if field.name not in self.inputs)
        return tuple(found for value in own for found in _expressions(value))

    def reading(self, change: Change) -> Self:
        """The node with every expression and call in its fields changed. Nodes that read columns by name add those."""
        own = [field.name for field in fields(cast(Any, self)) if field.name not in self.inputs]
        changed = {name: _changed(getattr(self, name), change) for name in own}
        return cast(Self, replace(cast(Any, self), **changed))

    @property
    def sources(self) -> list[Scan | Stored]:
        """The base streams and relations that the node reads, through other fragments too, each occurrence."""
        return [source for child in self.children for source in child.sources]

    @property
    def time(self) -> TimeDomain:
        """The kind of time the node lives in; relations that never change live in any."""
        return next((source.domain for source in self.sources if source.domain is not None), TimeDomain.INTEGER)

    # columns

    @property
    @abstractmethod
    def label(self) -> str:
        """The node as `explain` prints it."""

    @property
    @abstractmethod
    def carried(self) -> tuple[Carried, ...]:
        """Of each child the output columns that are computed, row by row, from that child alone."""

    @property
    @abstractmethod
    def together(self) -> frozenset[str] | None:
        """The output columns, in lower case, on which rows agree that are computed together; None if each is alone.

        A selection by these columns gives the same below the node, and rows that differ in one of them never meet.
        """

    @property
    @abstractmethod
    def deciding(self) -> frozenset[str]:
        """Columns of the children, in lower case, that decide about rows although no expression reads them."""

    @property
    @abstractmethod
    def watches(self) -> frozenset[str]:
        """Base streams that the node looks at beside its children."""

    @property
    @abstractmethod
    def own_names(self) -> tuple[str, ...]:
        """The names of output columns that the node itself gives."""

    @abstractmethod
    def with_own_names(self, names: tuple[str, ...]) -> Self:
        """The node with other names of its own."""

    @abstractmethod
    def with_outputs(self, needed: set[str], movable: Callable[[Expression], bool]) -> Self:
        """The node without computed columns that nobody needs. One stays at least, and so does what is not movable."""

    @property
    @abstractmethod
    def narrows(self) -> Literal["never", "what is kept", "always"]:
        """Whether its children are projected to the columns it reads: never, where they have to be kept, or always."""

    # time

    @property
    @abstractmethod
    def ends(self) -> Spans:
        """When something may begin or end."""

    @property
    @abstractmethod
    def lasts(self) -> bool:
        """Whether rows may stay for ever."""

    @property
    @abstractmethod
    def opens(self) -> bool:
        """Whether there are rows before anything has come."""

    @property
    @abstractmethod
    def monotonic(self) -> bool:
        """Rows are never taken away again (CQL's conservative test, for the defaults)."""

    @abstractmethod
    def shown_at(self, last: Tick, closing: Closing) -> Tick:
        """The instant at which rows of the children up to `last` have taken effect."""

    # fragments

    @property
    @abstractmethod
    def flowing(self) -> bool:
        """Whether answers are tuples of base streams, each selected, projected and put out by itself.

        Such a query can take tuples in any order (the order of its answers is that of its tuples), and the tuples of an
        instant need not wait for one another.
        """

    @property
    @abstractmethod
    def at_leaf(self) -> bool:
        """Whether it only selects from base streams and relations: a fragment of its own would save no waiting."""

    @property
    @abstractmethod
    def waits_for_several(self) -> bool:
        """Whether it has several inputs, so that a fragment below it need not wait for the others."""

    # state

    @property
    @abstractmethod
    def flow(self) -> StateBound:
        """What limits the rows that begin in a span of time."""

    @property
    @abstractmethod
    def reads_again(self) -> str:
        """How it is said that the node reads a log again."""


class StreamOperator(Operator):
    """The questions that streams answer besides."""

    @property
    @abstractmethod
    def base(self) -> Scan | None:
        """The base stream of which the node puts out some tuples as they are, if it is that."""

    @property
    @abstractmethod
    def straight(self) -> Stream | None:
        """The stream of which the node only selects and projects tuples, in its order; None if it does more."""

    @property
    @abstractmethod
    def stamp_column(self) -> str | None:
        """The column that holds the tuple's timestamp, if one does."""

    @property
    @abstractmethod
    def starting(self) -> Relation | None:
        """The relation whose rows are put out when they begin, and only then; None if that is not so."""

    @property
    @abstractmethod
    def arrival_ordered(self) -> bool:
        """Whether the tuples have an order of arrival; other streams order ties by their values."""


class RelationOperator(Operator):
    """The questions that relations answer besides."""

    flowing = False  # the changes of a relation are no tuples

    @property
    @abstractmethod
    def rows(self) -> StateBound:
        """What limits the rows that live at one instant."""

    @property
    @abstractmethod
    def unique(self) -> frozenset[str] | None:
        """Columns in lower case on which no two rows of one instant agree; None if none are known."""

    @property
    @abstractmethod
    def group_key(self) -> tuple[str, ...] | None:
        """Columns that tell its rows apart at every instant, where it is an aggregate under selections.

        None where the key is lost by a projection: then rows of different groups may be equal.
        """

    @property
    @abstractmethod
    def begins(self) -> Spans:
        """When a row may begin. Only of some operators' results does a row begin because another ends."""

    @property
    @abstractmethod
    def starts_with_input(self) -> bool:
        """Whether an element begins only at an instant at which an element of a child begins."""

    @property
    @abstractmethod
    def endless(self) -> bool:
        """No element has an end or is taken back: there is nothing that Istream could net a row against."""

    @property
    @abstractmethod
    def open_ended(self) -> bool:
        """No element that outlives its epoch has an end: it is taken back when that comes."""

    @property
    @abstractmethod
    def retracts(self) -> bool:
        """Some element may be taken back by one with a negative count; otherwise every count is 1."""

    @property
    @abstractmethod
    def instantaneous(self) -> bool:
        """Every element lives for one instant."""

    @property
    @abstractmethod
    def fixed_span(self) -> Tick | None:
        """For how many instants every element lives, if that is the same for all and nothing is taken back."""

    @property
    @abstractmethod
    def longest(self) -> Tick | None:
        """For how many instants an element lives at the most; None if that is not known. Then some has no end."""

    @property
    @abstractmethod
    def coarse(self) -> bool:
        """Many elements share both ends of their interval: grouping by them first makes a sweep cheap."""

    @property
    @abstractmethod
    def slides(self) -> tuple[Tick, int] | None:
        """The slide at whose multiples all elements begin and end, and how many slides one lives at the most.

        None if there is no such slide.
        """

    @property
    @abstractmethod
    def stamped_by(self) -> frozenset[str] | None:
        """Columns from which the interval of a row follows; None if there are none.

        A time window's interval is a function of the timestamp, so a row that holds its timestamp determines it, and
        equal rows have equal intervals: none ends at the instant at which another begins.
        """

    @property
    @abstractmethod
    def in_logs(self) -> bool:
        """Whether the live elements can be read back from logs or a row window's tail: then no synopsis is needed."""

    @property
    @abstractmethod
    def window(self) -> Window | None:
        """The window from which it only selects and projects, tuple by tuple; None if it does more."""

    @property
    @abstractmethod
    def plain_merge(self) -> bool:
        """Whether it is a merge of whole streams, perhaps selected and projected.

        ISTREAM makes a stream of it, and [RANGE UNBOUNDED] the same relation again.
        """

    @abstractmethod
    def flows(self, frame: Unbounded | Now) -> bool:
        """Whether each row is made of one tuple of a flowing stream, through windows with that frame."""

    @property
    @abstractmethod
    def linear(self) -> bool:
        """Whether its answer is right, tuple by tuple, if all windows below show each tuple for one instant only."""


class RowByRow(RelationOperator):
    """A relation that makes each of its rows of one row of its child, and for as long as that lives."""

    inputs = ("child",)

    if TYPE_CHECKING:

        @property
        def child(self) -> Relation: ...

    @property
    @abstractmethod
    def selects(self) -> bool:
        """Whether a row becomes one row or none."""

    def carry(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        """The output columns that hold these of the child; None if one of them is lost."""
        holding = {value.column.lower(): name for name, value in self.carried[0].items() if value.column is not None}
        if columns is None or not columns <= holding.keys():
            return None
        return frozenset(holding[name] for name in columns)

    @property
    def carried(self) -> tuple[Carried, ...]:
        return (identity(self.child),)

    together = None
    deciding = frozenset()

    @property
    def watches(self) -> frozenset[str]:
        return frozenset()

    @property
    def own_names(self) -> tuple[str, ...]:
        return ()

    def with_own_names(self, names: tuple[str, ...]) -> Self:
        assert not names
        return self

    def with_outputs(self, needed: set[str], movable: Callable[[Expression], bool]) -> Self:
        return self

    @property
    def narrows(self) -> Literal["never", "what is kept", "always"]:
        return "never"

    @property
    def ends(self) -> Spans:
        return self.child.ends

    @property
    def begins(self) -> Spans:
        return self.child.begins

    @property
    def lasts(self) -> bool:
        return self.child.lasts

    @property
    def opens(self) -> bool:
        return self.child.opens

    def shown_at(self, last: Tick, closing: Closing) -> Tick:
        return last

    @property
    def rows(self) -> StateBound:
        return self.child.rows  # a row becomes as many as a function of it says

    @property
    def flow(self) -> StateBound:
        return self.child.flow

    reads_again = "it is read again"

    @property
    def unique(self) -> frozenset[str] | None:
        return self.carry(self.child.unique) if self.selects else None

    @property
    def group_key(self) -> tuple[str, ...] | None:
        below = self.child.group_key if self.selects else None
        if below is None:
            return None
        holding = {value.column.lower(): name for name, value in self.carried[0].items() if value.column is not None}
        written = {column.name.lower(): column.name for column in cast("Relation", self).columns}
        if not {name.lower() for name in below} <= holding.keys():
            return None
        return tuple(written[holding[name.lower()]] for name in below)

    starts_with_input = True

    @property
    def monotonic(self) -> bool:
        return self.child.monotonic

    @property
    def endless(self) -> bool:
        return self.child.endless

    @property
    def open_ended(self) -> bool:
        return self.child.open_ended

    @property
    def retracts(self) -> bool:
        return self.child.retracts

    @property
    def instantaneous(self) -> bool:
        return self.child.instantaneous

    @property
    def fixed_span(self) -> Tick | None:
        return self.child.fixed_span

    @property
    def longest(self) -> Tick | None:
        return self.child.longest

    @property
    def coarse(self) -> bool:
        return self.child.coarse

    @property
    def slides(self) -> tuple[Tick, int] | None:
        return self.child.slides

    @property
    def stamped_by(self) -> frozenset[str] | None:
        return self.carry(self.child.stamped_by)

    @property
    def in_logs(self) -> bool:
        return self.child.in_logs

    @property
    def at_leaf(self) -> bool:
        return self.child.at_leaf

    waits_for_several = False

    @property
    def window(self) -> Window | None:
        return self.child.window if self.selects else None

    @property
    def plain_merge(self) -> bool:
        return self.selects and self.child.plain_merge

    def flows(self, frame: Unbounded | Now) -> bool:
        return self.child.flows(frame)

    @property
    def linear(self) -> bool:
        return True


def _expressions(value: object) -> Iterator[Expression | Call]:
    if isinstance(value, Expression | Call):
        yield value
    elif isinstance(value, tuple):
        for one in value:
            yield from _expressions(one)
    elif is_dataclass(value) and not isinstance(value, Operator):
        for field in fields(value):
            yield from _expressions(getattr(value, field.name))


def _changed(value: Any, change: Change) -> Any:
    if isinstance(value, Expression):
        return change(value)
    if isinstance(value, Call):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_changed(one, change) for one in value)
    if is_dataclass(value) and not isinstance(value, Operator | type) and any(_expressions(value)):
        return replace(value, **{field.name: _changed(getattr(value, field.name), change) for field in fields(value)})
    return value
