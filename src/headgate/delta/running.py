"""Aggregates that can be added and taken away again: running sums over the events of a group.

    timeline     the sums at `since`, and after each event of the group; between epochs only sums are kept

What is added up are the columns of `accumulators`: counts, sums and spreads; also extremes, where nothing ever leaves.

A program first sums only doubles that fit (`exact`) and raises an error at the first one that does not. The program
that runs from then on has, beside these sums, those of the other doubles by band (`bands`), which rightly begin
empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from headgate.delta import bands, constraints, ranges, recomputed, sweep
from headgate.delta.accumulators import Accumulators, doubles_of
from headgate.delta.query import Alias, Joined, LateralView, Select, Table, dealt_by, select, union
from headgate.delta.ranges import Ranges
from headgate.plan.nodes import Aggregate, domain, names
from headgate.plan.sums import SPREADS
from headgate.plan.temporal import groups_until
from headgate.sql import ALL, EMPTY, Sql, comma, listed, name

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


def timeline(lowering: Lowering, node: Aggregate, alone: bool = False) -> Table:
    """Timeline: the sums kept at `since` and the events of the epoch, added up in order of time.

    One that stands alone, and not beside the timelines of other calls, can be walked through by ranges.
    """
    accumulated, values = accumulators(lowering, node)
    moves = _moves(lowering, node, accumulated)
    if alone and (cut := _cut(lowering, node, accumulated)):
        swept = ranges.running(lowering, cut, moves, {a.name: a.combine for a in accumulated.terms.values()})
        lowering.ranged.add(node)
    else:
        hidden = sweep.group(node)
        instants = f"{comma(listed(hidden), Sql('_t'))}, LEAD(_t) OVER {sweep.over(hidden)} AS _next"
        swept = lowering.step("swept", select(f"{instants},\n  {_added_up(node, accumulated)}", moves))
    living = Sql("TRUE") if node.row_when_empty else Sql("_rows > 0")
    walked = listed(sweep.walk(lowering, node))
    row = comma(walked, listed(accumulated.names()), Sql("_t"), f"{living} AS _live")
    last = select(row, swept, where=Sql("_next IS NULL OR _next > _t"))
    return finished(lowering, node, accumulated, values, last)


def swept_beside(lowering: Lowering, node: Aggregate, rows: Table | Carried, columns: tuple[Sql, ...]) -> Table | None:
    """Rows that look up their group, each beside the row that the group has at its instant, if there is one then.

    The rows are those of a table with the group, `_t` and some columns that are handed on; or they are tuples that are
    summed as well, and carry these columns along. None if some doubles are summed by band: bands are put together with
    the sums of a timeline.
    """
    accumulated, values = accumulators(lowering, node)
    if any(map(accumulated.has_bands, accumulated.doubles.values())):
        return None
    hidden, own = sweep.group(node), accumulated.names()
    absent = comma(Sql("FALSE AS _looks"), *(f"NULL AS {column}" for column in columns))
    moves = _moves(lowering, node, accumulated)
    if isinstance(rows, Carried):
        held = select(f"{_dealing(lowering, node)}{comma(_held(node, accumulated), absent)}", _state(lowering, node))
        walk = union(_carrying(lowering, node, accumulated, rows), held)
    else:
        nothing = ", ".join(f"{a.nothing} AS {a.name}" for a in accumulated.terms.values())
        asking = listed((*hidden, "_t"))
        walk = union(
            select(comma(listed((*hidden, "_t", *own)), absent), moves),
            select(f"{_dealing(lowering, node)}{asking}, {nothing}, TRUE AS _looks, {listed(columns)}", rows),
        )
    walked = lowering.step("walked", walk)
    added = comma(listed((*hidden, "_t")), Sql("_looks"), listed(columns), _added_up(node, accumulated))
    swept = select(ALL, select(added, walked), where=(Sql("_looks"), Sql("_rows > 0")))
    shown = ", ".join(f"{sql} AS {name(call)}" for call, sql in values.items())
    row = comma(sweep.keys_again(node), shown, Sql("_t"), listed(columns))
    return lowering.step("seen", select(row, accumulated.finished(swept)))


@dataclass(frozen=True, slots=True)
class Carried:
    """What tuples carry along that look up their own group."""

    looks: Sql
    """The condition that a tuple looks up its group."""

    columns: Mapping[Sql, Sql]
    """By name: columns of the tuple, as SQL."""


def _carrying(lowering: Lowering, node: Aggregate, accumulated: Accumulators, carried: Carried) -> Select:
    """The events of the epoch, of which the starts carry something along."""
    hidden, own = sweep.group(node), accumulated.names()
    selected = comma(sweep.keys(node), Sql("_t, _x"), accumulated.terms_sql())
    along = comma(f"{carried.looks} AS _looks", *(f"{sql} AS {column}" for column, sql in carried.columns.items()))
    nothing = comma(Sql("FALSE AS _looks"), *(f"NULL AS {column}" for column in carried.columns))
    if dealt := _dealt(lowering, node):
        parts = [
            select(comma(listed(hidden), Sql("_t, _x"), accumulated.terms_sql(), along), accumulated.prepared(dealt))
        ]
    else:
        parts = [select(comma(selected, along), accumulated.prepared(lowering.born(node.child)))]
        if ends := lowering.ends(node.child):
            parts.append(select(comma(selected, nothing), accumulated.prepared(ends)))
    touched = lowering.step("carrying", union(*parts), accumulated.may_not_fit())
    columns = comma(Sql("_side = 1 AND _looks AS _looks"), listed(carried.columns))
    sides = select(comma(_sides(hidden, own), columns), LateralView(touched, BOTH_SIDES))
    every = listed((*hidden, "_t", *own, "_looks", *carried.columns))
    return select(every, sides, where=IN_EPOCH)


def accumulators(lowering: Lowering, node: Aggregate, once: bool = False) -> tuple[Accumulators, dict[str, Sql]]:
    """The accumulators of the node's calls, and the values of the calls in terms of them.

    With `once` every row counts once, whatever `_n` says.
    """
    accumulated = Accumulators(lowering.all_doubles, once, partial(lowering.holds, node.child))
    return accumulated, {call.name: accumulated.value(call) for call in node.calls}


def _added_up(node: Aggregate, accumulated: Accumulators) -> Sql:
    """The accumulators over all events of the group up to each instant."""
    over = sweep.over(sweep.group(node))
    return ", ".join(f"{a.combine}({a.name}) OVER {over} AS {a.name}" for a in accumulated.terms.values())


def _moves(lowering: Lowering, node: Aggregate, accumulated: Accumulators) -> Table:
    """The sums kept at `since`, as if they were an event there, and the events of the epoch."""

    def make() -> Table:
        hidden, own = sweep.group(node), accumulated.names()
        events = _events(lowering, node, accumulated)
        state = _state(lowering, node)
        held = select(_held(node, accumulated), state)
        every = listed((*hidden, "_t", *own))
        closed = constraints.closing(lowering, node)
        raising = constraints.alarms(lowering, closed, (*hidden, Sql("_t"), *own))
        moves = lowering.step("moves", union(held, select(every, events), *raising))
        totals = comma(listed(hidden), combined(accumulated))
        contents = lowering.step("totals", select(totals, moves, group_by=listed(hidden), having=_there(node)))
        contents = constraints.still_open(lowering, contents, listed((*hidden, *own), Sql("g")), hidden, closed)
        shape = lowering.step("shape", select(totals, events, group_by=listed(hidden)))
        again = _totals_from_logs(lowering, node, accumulated)
        lowering.synopsis(state, contents, shape, from_logs=again)
        if node in lowering.touched_only:
            changing = lowering.step("changing", select(listed(hidden), events, group_by=listed(hidden)))
            same = tuple(f"h.{one} <=> c.{one}" for one in hidden)
            both = Joined(Alias(select(listed((*hidden, *own)), state), "h"), Alias(changing, "c"), same)
            mine = select(comma(listed(hidden, Sql("h")), listed(own, Sql("h"))), both)
            return lowering.step("moves", union(select(_held(node, accumulated), mine), select(every, events)))
        if dealt := _dealt(lowering, node):
            terms = comma(listed(hidden), Sql("_t, _x"), accumulated.terms_sql())
            touched = select(terms, accumulated.prepared(dealt))
            rows = lowering.step("touched", touched, accumulated.may_not_fit())
            held = select(f"{_dealing(lowering, node)}{_held(node, accumulated)}", state)
            moves = lowering.step("moves", union(select(every, _both_sides(hidden, own, rows), where=IN_EPOCH), held))
        return moves

    return lowering.once("moves", node, make)


def _dealt(lowering: Lowering, node: Aggregate) -> Table | None:
    """The rows that begin or end in the epoch, dealt to the tasks by their group; None where that does not pay.

    A row is shuffled once and then becomes two events, instead of the other way round. Sums that are only totalled are
    better shuffled as partial sums.
    """
    hint = _dealing(lowering, node)
    if not hint:
        return None

    def make() -> Table:
        columns = comma(sweep.keys(node), listed((*names(node.child), "_t", "_x", "_n")))
        forms = (lowering.born(node.child), lowering.ends(node.child))
        rows = union(*(select(columns, form) for form in forms if form))
        return lowering.step("dealt", select(f"{hint}*", rows))

    return lowering.once("dealt", node, make)


def _dealing(lowering: Lowering, node: Aggregate) -> Sql:
    """The hint that deals rows to the tasks by their group; empty where that does not pay.

    All parts of a union have it, or none, and a part whose columns may be null comes first: then Spark knows that the
    whole is dealt like that, and shuffles no more.
    """
    pays = lowering.large and node.keys and not node.child.coarse and not node.child.endless
    return dealt_by(sweep.group(node)) if pays else EMPTY


def _state(lowering: Lowering, node: Aggregate) -> Table:
    """The synopsis that holds the sums."""
    return lowering.once("sums", node, lambda: lowering.fresh("sums"))


def _held(node: Aggregate, accumulated: Accumulators) -> Sql:
    """The columns of the synopsis, as those of an event at `since`."""
    kept = ", ".join(accumulator.kept for accumulator in accumulated.terms.values())
    return comma(listed(sweep.group(node)), Sql("CAST(:since AS BIGINT) AS _t"), kept)


def _totals_from_logs(lowering: Lowering, node: Aggregate, accumulated: Accumulators) -> Table | None:
    """The sums over what lives at `until`, where the logs hold it; None elsewhere.

    A sum without a group is kept even where no row lives, so it is not found this way.
    """

    def make() -> Table | None:
        alive = lowering.alive(node.child) if node.keys else None
        if alive is None:
            return None
        rows = select(comma(sweep.keys(node), accumulated.terms_sql()), accumulated.prepared(alive))
        living = lowering.step("living", rows, accumulated.may_not_fit())
        by = listed(sweep.group(node))
        found = select(comma(by, combined(accumulated)), living, group_by=by, having=_there(node))
        return lowering.step("living_totals", found)

    return lowering.once("living", node, make)


def _there(node: Aggregate) -> tuple[Sql, ...]:
    """The condition for a group whose sums are kept."""
    hidden = sweep.group(node)
    if not hidden:
        return (Sql("COUNT(*) > 0"),)
    until = groups_until(node, hidden)
    return (Sql("SUM(_rows) <> 0"), f"COALESCE({until}, :until + 1) > :until" if until is not None else EMPTY)


def living(lowering: Lowering, node: Aggregate) -> Table | None:
    """The rows that the groups have at `until`, from the logs alone; None where these do not tell."""
    accumulated, values = accumulators(lowering, node)
    if any(map(accumulated.has_bands, accumulated.doubles.values())):
        return None
    totals = _totals_from_logs(lowering, node, accumulated)
    if totals is None:
        return None
    shown = ", ".join(f"{sql} AS {name(call)}" for call, sql in values.items())
    row = comma(sweep.keys_again(node), shown, Sql("CAST(:until AS BIGINT) AS _t"))
    return lowering.step(
        "living_groups", select(row, accumulated.finished(select(ALL, totals, where=Sql("_rows > 0"))))
    )


def finished(
    lowering: Lowering, node: Aggregate, accumulated: Accumulators, values: dict[str, Sql], last: Select
) -> Table:
    """Timeline: the values of the calls, from the accumulators of each group at each instant of change."""
    if by_band := _bands(lowering, node, accumulated):
        last = _beside(lowering, node, lowering.step("fitting", last), accumulated.names(), by_band)
    row = comma(
        sweep.keys_again(node),
        ", ".join(f"{sql} AS {name(call)}" for call, sql in values.items()),
        listed(sweep.walk(lowering, node)),
        Sql("_t, _live"),
    )
    return lowering.step("timeline", select(row, accumulated.finished(last)))


def _cut(lowering: Lowering, node: Aggregate, accumulated: Accumulators) -> Ranges | None:
    """Into how many ranges of time a timeline of one group is cut; None if one task walks through it.

    Sums of decimals get wider with each addition, so they would have another type. The bands of doubles have timelines
    of their own.
    """
    decimals = any(a.combine == "SUM" and a.nothing == "NULL" for a in accumulated.terms.values())
    beside = any(map(accumulated.has_bands, range(len(accumulated.doubles))))
    if node.keys or decimals or beside or not lowering.inputs_of_epoch():
        return None
    lowering.can_be_cut = True
    return lowering.by_ranges


def _bands(lowering: Lowering, node: Aggregate, accumulated: Accumulators) -> dict[str, Table]:
    """The timelines of the bands, where doubles are summed by band, by the column that holds them."""
    made: dict[str, Table] = {}
    for doubles, number in accumulated.doubles.items():
        if accumulated.has_bands(number):
            calls = [call for call in node.calls if call.arguments and doubles_of(call) == doubles]
            spread = any(call.function in SPREADS for call in calls)
            plan = bands.by_group(node, calls[0], doubles.given, f"_w{number}", spread)
            with lowering.naming("wild_"):  # names of synopses, which directories on disk have
                made[f"_w{number}"] = lowering.once(
                    "timeline", plan, partial(recomputed.timeline, lowering, plan, unchanged=True)
                )
    return made


def _beside(lowering: Lowering, node: Aggregate, fitting: Table, own: list[Sql], by_band: dict[str, Table]) -> Select:
    """The accumulators and the bands of each group, as they are from each instant of change on."""
    hidden = sweep.group(node)
    known = sweep.together(
        lowering, hidden, [(fitting, own), *((timeline, [column]) for column, timeline in by_band.items())]
    )
    columns = [f"_p0.{one} AS {one}" for one in own]
    columns += [f"_p{number}.{name(column)} AS {name(column)}" for number, column in enumerate(by_band, 1)]
    return select(f"{comma(listed(hidden), *columns)}, _t, _p0._live AS _live", known)


def combined(accumulated: Accumulators) -> Sql:
    """The accumulators combined over several rows."""
    return ", ".join(f"{a.combine}({a.name}) AS {a.name}" for a in accumulated.terms.values())


def _events(lowering: Lowering, node: Aggregate, accumulated: Accumulators) -> Table:
    """The group, the instant and what is added there: every start in the epoch, and every end, negated."""
    hidden, every = sweep.group(node), list(accumulated.terms.values())
    own = [accumulator.name for accumulator in every]
    selected = comma(sweep.keys(node), Sql("_t, _x"), accumulated.terms_sql())
    born, ends = lowering.born(node.child), lowering.ends(node.child)
    touched = union(*(select(selected, accumulated.prepared(form)) for form in (born, ends) if form))
    moved = lowering.step("touched", touched, accumulated.may_not_fit())
    if node.child.coarse:
        ends_by = listed((*hidden, "_t", "_x"))
        moved = lowering.step("panes", select(f"{ends_by}, {combined(accumulated)}", moved, group_by=ends_by))
    columns = listed((*hidden, "_t", *own))
    if node.child.endless:
        events = select(columns, moved)
    else:
        events = select(columns, _both_sides(hidden, own, moved), where=IN_EPOCH)
    if not node.row_when_empty:
        return lowering.step("events", events)
    nothing = ", ".join(f"{a.nothing} AS {a.name}" for a in every)
    origin = domain(node.child).origin
    begun = (Sql(f"{origin} > :since"), Sql(f"{origin} <= :until"))
    first = select(f"CAST({origin} AS BIGINT) AS _t, {nothing}", where=begun)  # the row over nothing, from then on
    return lowering.step("events", union(events, first))


BOTH_SIDES = Sql("EXPLODE(ARRAY(1, -1)) e AS _side")
"""The lateral view that gives a row once for its start and once for its end."""

IN_EPOCH = (Sql("_t > :since"), Sql("_t <= :until"))


def _both_sides(hidden: tuple[Sql, ...], own: list[Sql], rows: Table) -> Select:
    """The events of rows, at whatever instants."""
    return select(_sides(hidden, own), LateralView(rows, BOTH_SIDES))


def _sides(hidden: tuple[Sql, ...], own: list[Sql]) -> Sql:
    """The columns of an event: a row adds its sums at its start, and takes them away at its end."""
    signed = (f"CASE WHEN _side = 1 THEN {one} ELSE -{one} END AS {one}" for one in own)
    return comma(listed(hidden), Sql("CASE WHEN _side = 1 THEN _t ELSE _x END AS _t"), *signed)
