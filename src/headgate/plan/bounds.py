"""How much of a relation has to be remembered, however long a query runs: limited by what, or growing because of what.

Streams are taken to bring a limited number of tuples in a limited time, and a relation that is put in and taken out of
to be as large as its owner wants it. Conservative like `properties`: limited is proved, growing may be better in fact
(a column may have few values, or a join few partners).

    rows     the rows that live at one instant: what a synopsis of the relation holds
    flow     the rows that begin in a span of time: what a time window over them holds
    waiting  the tuples of a stream that a sliding window does not show yet
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from headgate.plan.expressions import Named
from headgate.plan.nodes import (
    Aggregate,
    Distinct,
    Dstream,
    Exploded,
    Filter,
    Final,
    Istream,
    Join,
    Needed,
    Node,
    Now,
    Passed,
    Piped,
    Project,
    Range,
    Ranked,
    Relation,
    Rows,
    Rstream,
    Source,
    Stored,
    Unbounded,
    Union,
    Values,
    Weight,
    Window,
    domain,
    names,
)
from headgate.plan.temporal import groups_until
from headgate.ticks import MICROSECONDS_PER_UNIT, Tick, TimeDomain


@dataclass(frozen=True, slots=True)
class Limited:
    by: str

    def __str__(self) -> str:
        return self.by


@dataclass(frozen=True, slots=True)
class Growing:
    operator: str
    """As it would stand in the query."""

    reason: str

    def __str__(self) -> str:
        return f"grows without limit: {self.reason}"


Bound: TypeAlias = Limited | Growing


def rows(node: Relation) -> Bound:
    match node:
        case Window():
            return _window(node)
        case Filter(child) | Project(child) | Weight(child) | Exploded(child) | Ranked(child) | Piped(child):
            return rows(child)  # a row becomes as many as a function of it says
        case Union(left, right):
            return _both(rows(left), rows(right), "{}, and {}")
        case Join(left, right) if _one_partner(node, right):
            return _of("a partner for each of", rows(left))
        case Join(left, right) if _one_partner(node, left):
            return _of("a partner for each of", rows(right))
        case Join(left, right):
            return _because("JOIN", "a join keeps every pair", _both(rows(left), rows(right), "pairs of {} and {}"))
        case Aggregate(keys=()):
            return Limited("one row")
        case Aggregate(child, keys, calls):
            by = ", ".join(key.expression.sql for key in keys)
            if {call.name for call in calls} == {"sides_l", "sides_r"}:
                return _because(
                    "EXCEPT", "EXCEPT or INTERSECT keeps every row ever seen", _of("the different rows of", rows(child))
                )
            kept = f"GROUP BY {by} keeps one row for each group ever seen"
            return _because("GROUP BY", kept, _of(f"one row for each {by} among", rows(child)))
        case Distinct(Project(Join(left), items)) if _reads_only(items, left):
            return _of("the different rows of", rows(left))  # however many partners each has
        case Distinct(child):
            operator = "IN" if names(child) and names(child)[0] in ("m0", "m1") else "DISTINCT"
            word = "IN, EXISTS or an outer join" if operator == "IN" else operator
            return _because(operator, f"{word} keeps every row ever seen", _of("the different rows of", rows(child)))
        case Needed(because=because, grows=True):
            return Growing("JOIN", f"a row waits ever longer for a partner by {because}")
        case Needed(child, because=because):
            return _unless_growing(f"what can still find a partner by {because}", flow(child))
        case Stored(relation, domain=None):
            return Limited(f"the rows of relation {relation}, which never change")
        case Stored(relation, growing=True):
            return Growing(relation, f"relation {relation} is only ever put into")
        case Stored(relation):
            return Limited(f"the rows of relation {relation}")
        case _:
            assert_never(node)


def _window(node: Window) -> Bound:
    arrived = "arrived" if isinstance(node.child, Source) else "came"
    match node.frame:
        case Now():
            return _unless_growing(f"what {arrived} at the last instant", flow(node.child))
        case Range(length, slide):
            span = lasting(length + (slide or 0), domain(node))
            return _unless_growing(f"what {arrived} in the last {span}", flow(node.child))
        case Unbounded():
            if isinstance(node.child, Source):
                return Growing(node.child.stream, f"{node.child.stream} [RANGE UNBOUNDED] holds every tuple ever seen")
            return Growing("RANGE UNBOUNDED", "[RANGE UNBOUNDED] over a query holds every tuple that ever came of it")
        case Rows(count, by, span_ticks, slide, step):
            count += step or 0
            last = "the last row" if count == 1 else f"the last {count} rows"
            if slide is not None:
                last += f" and what {arrived} in the last {lasting(slide, domain(node))}"
            if not by:
                return Limited(last) if slide is None else _unless_growing(last, flow(node.child))
            each = ", ".join(by)
            if span_ticks is None:
                many = "one row" if count == 1 else f"{count} rows"
                return Growing(
                    "PARTITION BY", f"PARTITION BY {each} ROWS {count} keeps {many} for each {each} ever seen"
                )
            span = lasting(span_ticks, domain(node))
            return _unless_growing(f"{last} for each {each} that {arrived} in the last {span}", flow(node.child))
        case Final():
            return _unless_growing(f"what {arrived} and is not final yet", flow(node.child))
        case Passed(column):
            return _unless_growing(
                f"what {arrived} since {column} last changed enough to close something", flow(node.child)
            )
        case Values(column, _, length):
            return Growing(
                f"ON {column}",
                f"[RANGE {length} ON {column}] keeps every tuple near the largest {column}, however many come",
            )
        case _:
            assert_never(node.frame)


def flow(node: Node) -> Bound:
    match node:
        case Source() | Stored():
            return Limited("what arrives")
        case Rstream(child):
            return rows(child)
        case Istream(child) | Dstream(child):
            return flow(child)
        case (
            Window(child)
            | Filter(child)
            | Project(child)
            | Weight(child)
            | Exploded(child)
            | Needed(child)
            | Piped(child)
        ):
            return flow(child)
        case Aggregate(child) | Distinct(child):
            return flow(child)  # each row that comes or goes changes one group
        case Union(left, right):
            return _both(flow(left), flow(right), "{}, and {}")
        case Join(left, right):
            for side in (left, right):
                met = rows(side)
                if isinstance(met, Growing) and not _one_partner(node, side):
                    return _because("JOIN", "a new row of one side of a join meets every row of the other", met)
            return _both(flow(left), flow(right), "{}, and {}")
        case Ranked(child):
            changed = _because(
                "OVER", "a new row may change an analytic function or LIMIT for every other", rows(child)
            )
            return changed if isinstance(changed, Growing) else flow(child)
        case _:
            assert_never(node)


def _one_partner(join: Join, side: Relation) -> bool:
    """Whether a row of the other side meets at most one row of this one: the join equates what tells its rows apart."""
    key = _key(side)
    equated = {e.right.column if side is join.right else e.left.column for e in join.equalities}
    return key is not None and key <= {column.lower() for column in equated if column is not None}


def _reads_only(items: tuple[Named, ...], node: Relation) -> bool:
    own = {name.lower() for name in names(node)}
    return all(item.expression.columns <= own for item in items)


def _key(node: Relation) -> frozenset[str] | None:
    """Columns of which no two rows that live at one instant have the same values, in lower case; None if none are
    known.
    """
    match node:
        case Window(_, Rows(1, by)) | Stored(key=(_, *_) as by):
            return frozenset(name.lower() for name in by)
        case Aggregate(keys=keys):
            return frozenset(key.name.lower() for key in keys)
        case Distinct():
            return frozenset(name.lower() for name in names(node))
        case Filter(child) | Needed(child):
            return _key(child)
        case Project(child, items):
            below = _key(child)
            kept = {item.expression.column.lower(): item.name.lower() for item in items if item.expression.column}
            return frozenset(kept[name] for name in below) if below is not None and below <= kept.keys() else None
        case _:
            return None


def accumulators(node: Aggregate) -> Bound:
    """What is kept of groups to add to: not of those whose key says that nothing will come any more."""
    kept = rows(node)
    if isinstance(kept, Growing) and groups_until(node, [key.name for key in node.keys]) is not None:
        by = ", ".join(key.expression.sql for key in node.keys)
        return _unless_growing(f"one row for each {by} that can still change", flow(node.child))
    return kept


def waiting(node: Window) -> Bound:
    if isinstance(node.frame, Final | Passed):
        return _window(node)
    slide = node.frame.slide if isinstance(node.frame, Range) and node.frame.slide else 0
    return _unless_growing(f"what came in the last {lasting(slide, domain(node))}", flow(node.child))


def read_again(asking: Node, node: Window) -> Bound:
    """The part of a base stream's log that must stay because of a window over it, which another operator looks into."""
    found = rows(node)
    match asking:
        case Join():
            who = "a join reads it again"
        case Aggregate(calls=calls):
            who = f"{', '.join(call.sql for call in calls)} is computed from it again"
        case Ranked():
            who = "an analytic function or LIMIT is computed from it again"
        case _:
            who = "it is read again"
    return found if isinstance(found, Limited) else Growing(found.operator, f"{found.reason}, and {who}")


def lasting(ticks: Tick, time: TimeDomain) -> str:
    """A length of time in the largest unit that fits; of TIMESTAMP time, not to the microsecond that a closed window
    has more.
    """
    if time is TimeDomain.ARRIVAL:
        return "arrival" if ticks == 1 else f"{ticks} arrivals"
    if time is TimeDomain.INTEGER:
        return "unit of time" if ticks == 1 else f"{ticks} units of time"
    ticks -= ticks % 1_000 == 1
    if not ticks:
        return "instant"
    unit, size = max(
        ((unit, size) for unit, size in MICROSECONDS_PER_UNIT.items() if ticks % size == 0), key=lambda entry: entry[1]
    )
    return unit.lower() if ticks == size else f"{ticks // size} {unit.lower()}s"


def _of(text: str, below: Bound) -> Bound:
    return below if isinstance(below, Growing) else Limited(f"{text} {below.by}")


def _unless_growing(text: str, below: Bound) -> Bound:
    return below if isinstance(below, Growing) else Limited(text)


def _both(one: Bound, other: Bound, text: str) -> Bound:
    if isinstance(one, Growing):
        return one
    if isinstance(other, Growing):
        return other
    return one if one == other and text != "pairs of {} and {}" else Limited(text.format(one.by, other.by))


def _because(operator: str, what: str, cause: Bound) -> Bound:
    """What grows, and below it why."""
    return cause if isinstance(cause, Limited) else Growing(operator, f"{what}: {cause.reason}")
