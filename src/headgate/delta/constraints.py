"""State that constraints limit: which values cannot come any more, which tuples break a constraint.

    open       the values of a column that can still come
    broken     the tuples of the epoch that break the constraint
    pairs      of a join whose rows refer to one row each: rows wait until they meet it, or k tuples have come

Tuples of a stream are numbered by timestamp and arrival. Where a column is clustered, a synopsis has the last place of
each value that came within the last `REMEMBERED` * (k + 1) tuples: a value can come again if that place is among the
last k + 1. A value that comes again later breaks the constraint; one that has been forgotten is taken for a new one.
Where a column is ordered, a synopsis has, for the last k + 1 tuples, the largest value up to each: the first of these
is a bound for all that come. So every tuple that breaks the order is found. Where k is detected, `lives` does this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headgate.delta import lives
from headgate.delta.query import Alias, Joined, Select, Subquery, Table, Text, select, union
from headgate.delta.violations import counted
from headgate.plan.constraints import Closed, Referenced, closed_groups, in_words
from headgate.plan.limits import Limited
from headgate.plan.nodes import Aggregate, Constraint, Join, Relation, names
from headgate.sql import NEVER, ONE, Sql, comma, listed, literal, name

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering

REMEMBERED = 10
"""Places of values are kept for this many times as many tuples as the constraint is about, to find violations."""


# groups


def closing(lowering: Lowering, node: Aggregate) -> tuple[Closed, ...]:
    """The constraints by which groups of an aggregate are dropped. A join that looks groups up needs them all."""
    return () if lowering.looked_up(node) else closed_groups(node)


def still_open(
    lowering: Lowering, groups: Table, columns: Sql, hidden: Sequence[Sql], every: Sequence[Closed]
) -> Table:
    """The groups to which rows can still come."""
    for one in every:
        value = f"g.{hidden[one.place]}"
        if one.lives is not None:
            kept = lives.kept(lowering, one.lives, groups, columns, value, f"g.{hidden[one.life]}")
        else:
            kept = _kept(lowering, one, groups, columns, value, Sql("g"))
        groups = lowering.step("still_open", kept)
    return groups


def _kept(lowering: Lowering, one: Closed, rows: Table, columns: Sql, value: Sql, alias: Sql) -> Select:
    if one.constraint.kind == "ordered":
        return select(columns, Alias(rows, alias), where=_above(lowering, one, value))
    joined = Joined(Alias(rows, alias), Alias(_open_values(lowering, one), "o"), (f"{value} <=> o._v",))
    return select(columns, joined)


def alarms(lowering: Lowering, every: Sequence[Closed], columns: Sequence[str]) -> list[Select]:
    """For each constraint whose violation is an error: rows that raise it, none if no tuple breaks it."""
    return [_alarm(_broken(lowering, one), one.constraint, columns) for one in every if not one.constraint.counts]


def _alarm(broken: Table, constraint: Constraint, columns: Sequence[str]) -> Select:
    """Rows for a union; the column `_t` raises the error."""
    about = f'constraint "{constraint.name}" on stream "{constraint.stream}" is broken: {constraint.promise}'
    raised = f"CAST(RAISE_ERROR(CONCAT({literal(f'{about}, but ')}, _why)) AS BIGINT) AS _t"
    return select(", ".join(raised if column == "_t" else f"NULL AS {name(column)}" for column in columns), broken)


# what is known of a stream


def _numbered(lowering: Lowering, one: Closed, known: Table) -> Table:
    """The tuples of the epoch as value, timestamp and place in the order of the stream."""
    lowering.by_place = True
    last = select(Sql("MAX(_p)"), known)
    row = f"{name(one.column)} AS _v, _t, CAST(ROW_NUMBER() OVER (ORDER BY _t, _s) AS BIGINT) + COALESCE("
    return lowering.step(
        "arriving", select(Subquery(row, last, Sql(", CAST(0 AS BIGINT)) AS _p")), lowering.tuples(one.scan))
    )


def _broken(lowering: Lowering, one: Closed) -> Table:
    """The tuples of the epoch that break the constraint, each with the reason in words."""
    return _watched(lowering, one)[1]


def _open_values(lowering: Lowering, one: Closed) -> Table:
    """Of a clustered column, the values that can still come."""
    return _watched(lowering, one)[0]


def _above(lowering: Lowering, one: Closed, value: Sql) -> Text:
    """Of an ordered column, the condition that a value can still come."""
    largest, _ = _watched(lowering, one)
    bound = select(Sql(f"CASE WHEN COUNT(_m) > {one.constraint.k} THEN MIN(_m) END"), largest)
    return Subquery(f"COALESCE({value} >= ", bound, Sql(", TRUE)"))


def _watched(lowering: Lowering, one: Closed) -> tuple[Table, Table]:
    """What tells which values can still come, and the tuples of the epoch that break the constraint."""
    make = _clustered if one.constraint.kind == "clustered" else _ordered
    return lowering.once(f"watched {one.constraint.name}", one.scan, lambda: make(lowering, one))


def _clustered(lowering: Lowering, one: Closed) -> tuple[Table, Table]:
    constraint, known = one.constraint, lowering.fresh("places")
    arriving = _numbered(lowering, one, known)
    before = select(Sql("_v, CAST(:since AS BIGINT) AS _t, _p, FALSE AS _new"), known)
    every = union(before, select(Sql("_v, _t, _p, TRUE AS _new"), arriving))
    previous = Sql("LAG(_p) OVER (PARTITION BY _v ORDER BY _p)")
    walked = lowering.step("walked", select(f"_t, _v, _new, _p - {previous} - 1 AS _between", every))
    why = Sql(
        "CONCAT(CAST(_between AS STRING), ' tuples came between two with ', COALESCE(CAST(_v AS STRING), 'null'))"
    )
    reach = constraint.k + 1
    # A value that may have been forgotten is no violation, so that it does not matter when the state was moved.
    too_far = Sql(f"_between BETWEEN {reach} AND {REMEMBERED * reach - 1}")
    broken = lowering.step("broken", select(f"_t, {why} AS _why", walked, where=(Sql("_new"), too_far)))
    both = union(select(Sql("_v, _p"), known), select(Sql("_v, _p"), arriving))
    latest = lowering.step("latest", select(Sql("_v, MAX(_p) AS _p"), both, group_by=Sql("_v")))

    def within(tuples: int) -> Select:
        return select(Sql("_v, _p"), latest, where=Subquery(Sql("_p > "), select(Sql(f"MAX(_p) - {tuples}"), latest)))

    contents = lowering.step("placed", within(REMEMBERED * reach))
    shape = lowering.step("shape", select(f"{name(one.column)} AS _v, {ONE} AS _p", lowering.tuples(one.scan)))
    bound = Limited(f"limited by constraint {constraint.name}: the values of the last {REMEMBERED * reach} tuples")
    lowering.synopsis(known, contents, shape, bound)
    counted(lowering, constraint, broken)
    return lowering.step("open", within(reach)), broken


def _ordered(lowering: Lowering, one: Closed) -> tuple[Table, Table]:
    constraint, known = one.constraint, lowering.fresh("largest")
    arriving = _numbered(lowering, one, known)
    before = select(Sql("_m AS _v, CAST(:since AS BIGINT) AS _t, _p, FALSE AS _new"), known)
    every = union(before, select(Sql("_v, _t, _p, TRUE AS _new"), arriving))
    so_far = Sql("MAX(_v) OVER (ORDER BY _p ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)")
    rising = lowering.step("rising", select(f"_t, _v, _p, _new, {so_far} AS _m", every))
    reach = constraint.k + 1
    walked = lowering.step(
        "walked", select(Sql(f"_t, _v, _new, LAG(_m, {reach}) OVER (ORDER BY _p) AS _bound"), rising)
    )
    why = Sql("CONCAT(CAST(_v AS STRING), ' came after ', CAST(_bound AS STRING))")
    broken = lowering.step("broken", select(f"_t, {why} AS _why", walked, where=(Sql("_new"), Sql("_v < _bound"))))
    contents = lowering.step(
        "last", select(Sql("_m, _p"), rising, where=Subquery(Sql("_p > "), select(Sql(f"MAX(_p) - {reach}"), rising)))
    )
    shape = lowering.step("shape", select(f"{name(one.column)} AS _m, {ONE} AS _p", lowering.tuples(one.scan)))
    bound = Limited(f"limited by constraint {constraint.name}: the largest values of the last {reach} tuples")
    lowering.synopsis(known, contents, shape, bound)
    counted(lowering, constraint, broken)
    return contents, broken


# joins


def pairs(lowering: Lowering, node: Join, found: Referenced) -> tuple[list[tuple[Table, Table]], list[Select]]:
    """The pairs of tables that a join has to pair, left and right, and the rows that raise errors.

    A row of the many side meets at most one row of the other. So it waits only until it has met one, and no longer than
    until k tuples of the other stream have come behind its instant.
    """
    many, one = (node.left, node.right) if found.many == "left" else (node.right, node.left)
    new_many, new_one = lowering.born(many), lowering.born(one)
    waiting, held = lowering.fresh("waiting"), _held(lowering, found, one)
    old_many = lowering.step("waited", select(f"{_row(many)}, {NEVER} AS _x, _n", waiting))
    old_one = held if held is not None else lowering.live(one)
    assert old_one is not None  # a stream without a window: its log has them, if nothing else does
    columns = f"{listed(names(one))}, _t, _x, _n"
    every_one = lowering.step("all", union(select(columns, old_one), select(columns, new_one)))
    broken = _wait(lowering, found, (waiting, new_many, many), every_one)
    if held is not None:
        _hold(lowering, found, one, waiting)
    pairing = [(new_many, every_one), (old_many, new_one)]
    sides = pairing if found.many == "left" else [(right, left) for left, right in pairing]
    raising = [] if found.constraint.counts else [_alarm(broken, found.constraint, (*names(node), "_t", "_x", "_n"))]
    return sides, raising + alarms(lowering, found.closed, (*names(node), "_t", "_x", "_n"))


def _row(node: Relation) -> Sql:
    return listed((*names(node), "_t"))


def _wait(lowering: Lowering, found: Referenced, sides: tuple[Table, Table, Relation], every_one: Table) -> Table:
    """Keep the rows of the many side that wait for their partner; returns what breaks the constraint."""
    waiting, new_many, many = sides
    constraint, x, y = found.constraint, name(found.x), name(found.y)
    row = f"{_row(many)}, _n"
    all_many = lowering.step("asking", union(select(row, waiting), select(row, new_many)))
    there = lowering.step("there", select(f"{y} AS _y", every_one, where=f"{y} IS NOT NULL", group_by=y))
    met = Joined(Alias(all_many, "m"), Alias(there, "o"), (f"m.{x} = o._y",), outer=True)
    columns = listed((*names(many), "_t", "_n"), Sql("m"))
    unmet = lowering.step("unmet", select(columns, met, where=(Sql("o._y IS NULL"), f"m.{x} IS NOT NULL")))
    behind, still = _horizon(lowering, found)
    lowering.synopsis(
        waiting,
        lowering.step("keep_waiting", select(row, unmet, where=still)),
        lowering.step("shape", select(row, new_many)),
        Limited(f"limited by constraint {constraint.name}: rows without a partner, for {constraint.k} tuples"),
    )
    alone = f"CONCAT({literal(f'no tuple of {found.other.stream} came for ')}, CAST({x} AS STRING))"
    twice = f"CONCAT({literal(f'several tuples of {found.other.stream} have ')}, CAST({y} AS STRING))"
    again = select(
        f"{y}, _t, LAG(_t) OVER (PARTITION BY {y} ORDER BY _t) AS _earlier", every_one, where=f"{y} IS NOT NULL"
    )
    broken = lowering.step(
        "broken",
        union(
            select(f"_t, {alone} AS _why", unmet, where=behind),
            select(f"_t, {twice} AS _why", again, where=(Sql("_t > :since"), Sql("_earlier IS NOT NULL"))),
        ),
    )
    counted(lowering, constraint, broken)
    return broken


def _horizon(lowering: Lowering, found: Referenced) -> tuple[Text, Text]:
    """The conditions that k tuples of the other stream have come behind a row's instant, and that they have not."""
    k = found.constraint.k
    if not k:
        return Sql("TRUE"), Sql("FALSE")
    known, tuples = lowering.fresh("stamps"), lowering.tuples(found.other)
    both = union(select(Sql("_t"), known), select(Sql("_t"), tuples))
    ranked = select(Sql("_t, ROW_NUMBER() OVER (ORDER BY _t DESC) AS _r"), both)
    last = lowering.step("last", select(Sql("_t"), ranked, where=Sql(f"_r <= {k}")))
    shape = lowering.step("shape", select(Sql("_t"), tuples))
    lowering.synopsis(
        known, last, shape, Limited(f"limited by constraint {found.constraint.name}: the timestamps of {k} tuples")
    )
    first = select(Sql(f"CASE WHEN COUNT(*) >= {k} THEN MIN(_t) END"), last)
    return Subquery(Sql("COALESCE(_t < "), first, Sql(", FALSE)")), Subquery(
        Sql("COALESCE(_t >= "), first, Sql(", TRUE)")
    )


def _held(lowering: Lowering, found: Referenced, one: Relation) -> Table | None:
    """The rows of the other side that are kept, if a constraint on the many side lets some of them go; else None."""
    if not found.closed:
        return None
    kept = lowering.once(f"held {found.constraint.name}", one, lambda: lowering.fresh("held"))
    return lowering.step("live", select(f"{_row(one)}, {NEVER} AS _x, _n", kept))


def _hold(lowering: Lowering, found: Referenced, one: Relation, waiting: Table) -> None:
    """Keep the rows of the other side for which a row of the many side can still come.

    Of a clustered column that is known once a tuple with the value has come: `_seen`.
    """
    kept = lowering.once(f"held {found.constraint.name}", one, lambda: lowering.fresh("held"))
    new, y = lowering.born(one), f"h.{name(found.y)}"
    row = comma(_row(one), Sql("_n"))
    refers = next(iter(found.closed)).column
    came = union(
        select(f"{name(refers)} AS _v", lowering.tuples(found.scan)),
        select(f"{name(found.x)} AS _v", waiting),
    )
    seen = lowering.step("seen", select(Sql("_v"), came, where=Sql("_v IS NOT NULL"), group_by=Sql("_v")))
    every = lowering.step("holding", union(select(f"{row}, _seen", kept), select(f"{row}, FALSE AS _seen", new)))
    columns = listed((*names(one), "_t", "_n"), Sql("h"))
    marked = lowering.step(
        "marked",
        select(
            f"{columns}, h._seen OR s._v IS NOT NULL AS _seen",
            Joined(Alias(every, "h"), Alias(seen, "s"), (f"{y} = s._v",), outer=True),
        ),
    )
    for closed in found.closed:
        if closed.constraint.kind == "ordered":
            chosen = select(f"{columns}, h._seen", Alias(marked, "h"), where=_above(lowering, closed, y))
        else:
            still = Joined(Alias(marked, "h"), Alias(_open_values(lowering, closed), "o"), (f"{y} = o._v",), outer=True)
            chosen = select(f"{columns}, h._seen", still, where=Sql("(NOT h._seen OR o._v IS NOT NULL)"))
        marked = lowering.step("needed", chosen)
    lowering.synopsis(
        kept,
        marked,
        lowering.step("shape", select(f"{row}, FALSE AS _seen", new)),
        Limited(f"{in_words(found.closed)}: rows for which others can still come"),
    )
