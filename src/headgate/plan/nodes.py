"""The logical plan: frozen nodes, each a stream or a relation that varies with time.

`Source`, `Istream`, `Dstream` and `Rstream` are streams; all others are relations. `columns` names what a node puts
out, every name once (case-insensitively), none beginning with an underscore: those belong to `delta`."""

from __future__ import annotations

from typing import TypeAlias, TypeGuard

from headgate.plan.expressions import Call, Expression, Named
from headgate.plan.frozen import frozen
from headgate.plan.monotone import Chain, Closer
from headgate.sql import Column
from headgate.ticks import Tick, TimeDomain


@frozen
class Now:
    """The tuples of this instant."""


@frozen
class Unbounded:
    """All tuples so far."""


@frozen
class Range:
    """The tuples of the last `length` ticks; with `slide`, as of the last multiple of it.

    Closed: [now - length, now]. Half-open: (now - length, now].
    """

    length: Tick
    slide: Tick | None
    closed: bool

    @property
    def span(self) -> Tick:
        """For how many instants a tuple stays, when nothing slides."""
        return self.length + 1 if self.closed else self.length


@frozen
class Rows:
    """The last `count` tuples, of each value of `by` if there is any; with `span`, each for that many instants at most.

    With `slide`, as of the last instant that is a multiple of it. With `step`, as of the last tuple whose number is.
    """

    count: int
    by: tuple[str, ...]
    span: Tick | None = None
    slide: Tick | None = None
    step: int | None = None


@frozen
class Values:
    """The tuples whose `column` is at most `length` below the largest value so far.

    Closed: [largest - length, largest]. Half-open: (largest - length, largest]. `value` is the column as a number in
    SQL."""

    column: str
    value: str
    length: str
    closed: bool


@frozen
class Closing:
    """A value of each tuple that stops to occur, a function of its timestamp (`_t`) or of a column, and the clocks for
    it.
    """

    value: Chain
    closers: frozenset[Closer]


@frozen
class Final:
    """Each tuple for one instant: the first at which no tuple can have its value any more. Of several values the
    earliest counts.

    `closes` is that instant in SQL, over `_t` and the columns in `reads`. It is at most `delay` behind the tuple, if
    one knows."""

    values: tuple[Closing, ...]
    closes: str
    reads: frozenset[str]
    delay: Tick | None


@frozen
class Passed:
    """Each tuple for one instant: the timestamp of the first one whose `value`, a number in SQL, is larger; smaller if
    it falls.

    The column it is computed from was declared to be ordered; a tuple that is behind what has passed is an error.
    """

    column: str
    value: str
    rises: bool


Frame: TypeAlias = Now | Unbounded | Range | Rows | Values | Final | Passed


@frozen
class Source:
    stream: str
    columns: tuple[Column, ...]
    domain: TimeDomain
    timestamp: str | None
    """The column that holds the tuple's timestamp, if one does."""

    by: str | None = None
    """The column that names the tuple's source, if the stream holds many."""

    @property
    def name(self) -> str:
        return self.stream


@frozen
class Istream:
    child: Relation

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns


@frozen
class Dstream:
    child: Relation

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns


@frozen
class Rstream:
    """The whole relation, at every instant or at every multiple of `every`."""

    child: Relation
    every: Tick | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns


@frozen
class Window:
    """The stream as a relation, with further columns where they have a name.

    `stamp` holds the timestamp of the tuple, `arrival` the order of arrival (null where the stream has none).
    """

    child: Stream
    frame: Frame
    stamp: str | None = None
    arrival: str | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        kind = "TIMESTAMP" if domain(self.child) is TimeDomain.TIMESTAMP else "BIGINT"
        stamp = (Column(self.stamp, kind),) if self.stamp is not None else ()
        arrival = (Column(self.arrival, "BIGINT"),) if self.arrival is not None else ()
        return (*self.child.columns, *stamp, *arrival)


@frozen
class Filter:
    child: Relation
    condition: Expression

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns


@frozen
class Project:
    child: Relation
    items: tuple[Named, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(item.name, item.expression.type) for item in self.items)


@frozen
class Equality:
    """An expression of the left side that must equal one of the right; `null_safe` where null equals null."""

    left: Expression
    right: Expression
    null_safe: bool = False


@frozen
class Join:
    """Pairs that agree on every equality and satisfy the condition; the names of the two sides are disjoint."""

    left: Relation
    right: Relation
    equalities: tuple[Equality, ...]
    condition: Expression | None

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.left.columns, *self.right.columns)


@frozen
class Union:
    """Bag union; the sides agree in number of columns and take the first side's names."""

    left: Relation
    right: Relation

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns


@frozen
class Aggregate:
    """One row a group: keys, then calls. Without keys one row always, or only over a non-empty input."""

    child: Relation
    keys: tuple[Named, ...]
    calls: tuple[Call, ...]
    row_when_empty: bool

    @property
    def columns(self) -> tuple[Column, ...]:
        keys = (Column(key.name, key.expression.type) for key in self.keys)
        return (*keys, *(Column(call.name, call.type) for call in self.calls))


@frozen
class Weight:
    """Every row as often as the factor says: none where it is 0, and taken away where it is negative."""

    child: Relation
    factor: Expression

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns


@frozen
class Exploded:
    """Each row once for every row that a generator such as EXPLODE makes of it; with `outer`, at least once."""

    child: Relation
    generator: Expression
    outer: bool
    made: tuple[str, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        kind = self.generator.type if len(self.made) == 1 else "UNKNOWN"
        return (*self.child.columns, *(Column(name, kind) for name in self.made))


@frozen
class Ranked:
    """A relation with analytic functions over it, or only its first rows: SQL over the rows of one instant.

    `items` are added as columns. `by` are the columns by which every function partitions: groups that do not change
    need not be looked at.
    """

    child: Relation
    by: tuple[str, ...]
    items: tuple[Named, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.child.columns, *(Column(item.name, item.expression.type) for item in self.items))


@frozen
class Distinct:
    child: Relation

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns


@frozen
class Ordered:
    """A value of a base stream's tuples, a number in SQL, that was declared never to fall, or never to rise."""

    stream: Source
    column: str
    value: str
    rises: bool


@frozen
class Compared:
    """A number of each row beside what the tuples of a stream have come to."""

    value: Expression
    order: Ordered


@frozen
class Needed:
    """The same relation as one side of a join, of which a row is needed only as long as it can find a partner.

    That is until an instant, as a number, or until the tuples of the other side's stream have gone beyond the row's
    value. `because` says which values partners have. What the other side relies on is checked: rows of this one must
    not be behind."""

    child: Relation
    because: str
    until: Expression | None = None
    behind: Compared | None = None
    checked: Compared | None = None
    grows: bool = False
    """Whether rows wait ever longer for a partner."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def reads(self) -> frozenset[str]:
        """The columns by which it is decided."""
        compared = [one.value for one in (self.behind, self.checked) if one is not None]
        return frozenset[str]().union(*(one.columns for one in (self.until, *compared) if one is not None))


@frozen
class Stored:
    """A base relation: rows that were put in and taken out at known instants."""

    relation: str
    columns: tuple[Column, ...]
    domain: TimeDomain | None
    """None for a relation that never changes."""

    growing: bool
    """Rows are only ever put in."""

    key: tuple[str, ...] = ()
    """Columns by which a row put in replaces the one that was there."""

    @property
    def name(self) -> str:
        return self.relation


@frozen
class Piped:
    """A relation that another fragment computes: its elements are read from the log that one writes.

    What is proved of `child` holds here too, except that what is taken back comes as changes that have no end.
    """

    child: Relation
    log: str

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns


Stream: TypeAlias = Source | Istream | Dstream | Rstream
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


def is_part(log: str) -> bool:
    return log.startswith("part(")


def is_stream(node: Node) -> TypeGuard[Stream]:
    return isinstance(node, Source | Istream | Dstream | Rstream)


def names(node: Node) -> tuple[str, ...]:
    return tuple(column.name for column in node.columns)


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Source() | Stored() | Piped():
            return ()
        case Join(left, right) | Union(left, right):
            return (left, right)
        case _:
            return (node.child,)


def sources(node: Node) -> list[Source | Stored]:
    """The base streams and relations the node reads, through other fragments too, each occurrence."""
    if isinstance(node, Source | Stored):
        return [node]
    if isinstance(node, Piped):
        return sources(node.child)
    return [source for child in children(node) for source in sources(child)]


def domain(node: Node) -> TimeDomain:
    """The kind of time the node lives in; relations that never change live in any."""
    return next((source.domain for source in sources(node) if source.domain is not None), TimeDomain.INTEGER)
