"""Grouped aggregation: each call by the cheapest rule that is exact for it.

    timeline     the timelines of the rules, put together: each group has from each the last value that it gave

panes        sums and extremes over windows that slide: partial aggregates, put together at each slide
running      sums, counts and spreads: kept up to date by adding and taking away; extremes where nothing leaves
framed       extremes and a few others over a window of fixed length: Spark's own window frames; of MIN and MAX alone
             only the rows that can still be the answer are kept (`leaders`)
extremes     extremes over anything else: a tree of partial aggregates over the instants
distinct     a DISTINCT inside a call is an aggregate over distinct rows
recomputed   everything else: the universal rule
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias, assert_never

from headgate.delta import extremes, framed, leaders, panes, recomputed, running, sweep
from headgate.delta.query import Table, select
from headgate.plan.derived import column
from headgate.plan.expressions import Call, Expression, Named
from headgate.plan.nodes import Aggregate, Distinct, Filter, Project
from headgate.plan.sums import SUMS, additive, growing
from headgate.sql import BOOLEAN, EMPTY, Sql, bracketed, comma, listed, name

if TYPE_CHECKING:
    from headgate.delta.lower import Lowering


Rule: TypeAlias = Literal["panes", "running", "framed", "extremes", "recomputed", "distinct", "apart"]

TOGETHER: tuple[Rule, ...] = ("panes", "running", "framed", "extremes", "recomputed")
"""These rules take several calls at once and know whether a group is there at all."""

ALONE: tuple[Rule, ...] = ("distinct", "apart")
"""These rules take one call each, beside one of the others."""


def timeline(lowering: Lowering, node: Aggregate) -> Table:
    """Timeline: of the one rule that takes all calls, or of several, put together."""
    parts = _parts(node, lowering.tiny, lowering.by_panes)
    every, alone = lowering.looked_up(node), len(parts) == 1
    by_leaders = lowering.by_leaders and _by_leaders(node)
    made = [(rule, part, _made(lowering, rule, part, every, alone, by_leaders)) for rule, part in parts]
    if len(made) == 1:
        return made[0][2]
    return _together(lowering, node, made)


def slots(lowering: Lowering, node: Aggregate) -> Table | None:
    """Slots, of an aggregate that is made of panes alone; None for every other aggregate."""
    slide = panes.slide_of(node.child) if lowering.by_panes and not node.row_when_empty else None
    if slide is None or lowering.all_doubles or not all(map(panes.mergeable, node.calls)):
        return None
    return panes.slots(lowering, node, slide)


def all_running(lowering: Lowering, node: Aggregate) -> bool:
    """True if running sums are all that the node's calls need."""
    return [rule for rule, _ in _parts(node, lowering.tiny, lowering.by_panes)] == ["running"]


def _parts(node: Aggregate, tiny: bool, by_panes: bool) -> list[tuple[Rule, Aggregate]]:
    """The node once for each rule, with the calls of that rule; the first part knows whether a group is there.

    In tiny epochs, the universal rule costs less than the many steps of `framed` and `extremes`.
    """
    slides = by_panes and panes.slide_of(node.child) is not None
    together: dict[Rule, list[Call]] = {}
    alone: list[tuple[Rule, Call]] = []
    for call in node.calls:
        rule = "panes" if slides and panes.mergeable(call) else _rule(node, call)
        rule = "recomputed" if tiny and rule in ("framed", "extremes") else rule
        if rule in ALONE:
            alone.append((rule, call))
        else:
            together.setdefault(rule, []).append(call)
    if not together:
        together["panes" if slides else "running"] = []
    parts = [(rule, together[rule]) for rule in TOGETHER if rule in together] + [(rule, [call]) for rule, call in alone]
    return [(rule, replace(node, calls=tuple(calls))) for rule, calls in parts]


def _rule(node: Aggregate, call: Call) -> Rule:
    """The cheapest rule that is exact for a call."""
    if call.outside:
        return "apart"
    if call.distinct:
        return "distinct" if call.function in SUMS else "recomputed"
    if additive(call):
        return "running"
    if node.child.fixed_span is not None and framed.framed(call):
        return "framed"
    if node.child.endless and growing(call):
        return "running"
    return "extremes" if growing(call) else "recomputed"


def _by_leaders(node: Aggregate) -> bool:
    """True if MIN and MAX over a window of fixed length are all that need its rows again, epoch after epoch."""
    again = [call for call in node.calls if _rule(node, call) in ("framed", "extremes", "recomputed")]
    return bool(again) and all(_rule(node, call) == "framed" and leaders.leads(call) for call in again)


def _made(lowering: Lowering, rule: Rule, part: Aggregate, every_group: bool, alone: bool, by_leaders: bool) -> Table:
    """The timeline of the calls of one rule; with `every_group` also of groups in which nothing changes.

    `alone` says that the rule takes all calls of its node, and `by_leaders` that only leaders are kept of a window.
    """
    match rule:
        case "panes":
            slide = panes.slide_of(part.child)
            assert slide is not None
            return panes.timeline(lowering, part, slide)
        case "running":
            return running.timeline(lowering, part, alone)
        case "framed":
            span = part.child.fixed_span
            assert span is not None
            return framed.timeline(lowering, part, span, leaders.elements(lowering, part) if by_leaders else None)
        case "extremes":
            return extremes.timeline(lowering, part, every_group)
        case "distinct":
            over_distinct = _over_distinct(part)
            with lowering.uncut():  # it is put beside another timeline, instant by instant
                made = lowering.timeline(over_distinct)
            assert made is not None
            assert over_distinct not in lowering.ranged
            return made
        case "apart" | "recomputed":
            if by_leaders and rule == "recomputed":
                return recomputed.timeline(lowering, part, every_group, leaders.elements(lowering, part))
            shown = ", ".join(call.sql for call in part.calls)
            lowering.fallback(f"aggregate {shown}: recomputed for each group and instant of change")
            return recomputed.timeline(lowering, part, every_group)
        case _:
            assert_never(rule)


def _over_distinct(part: Aggregate) -> Aggregate:
    """COUNT(DISTINCT x) as COUNT(x) over the distinct pairs of group and x."""
    (call,) = part.calls
    given = [f"{bracketed(argument.sql)} IS NOT NULL" for argument in call.arguments] + (
        [f"({call.condition})"] if call.condition else []
    )
    counted = Filter(part.child, Expression(" AND ".join(given), BOOLEAN, call.columns))
    values = tuple(Named(f"x{number + 1}", argument) for number, argument in enumerate(call.arguments))
    keys = tuple(Named(f"k{number + 1}", key.expression) for number, key in enumerate(part.keys))
    rows = Distinct(Project(counted, (*keys, *values)))
    plain = tuple(column(rows, value.name) for value in values)
    again = Call(
        call.name, call.function, EMPTY, call.type, plain, False, None, frozenset(value.name for value in values)
    )
    groups = tuple(Named(old.name, column(rows, new.name)) for old, new in zip(part.keys, keys, strict=True))
    return Aggregate(rows, groups, (again,), part.row_when_empty)


def _together(lowering: Lowering, node: Aggregate, made: list[tuple[Rule, Aggregate, Table]]) -> Table:
    """One timeline of several: each group has from each the last value that it gave."""
    hidden = sweep.group(node)
    known = sweep.together(lowering, hidden, [(step, [call.name for call in part.calls]) for _, part, step in made])
    values = {}
    for number, (_, part, _) in enumerate(made):
        for call in part.calls:
            value = f"_p{number}.{name(call.name)}"
            values[call.name] = f"COALESCE({value}, 0)" if call.function == "count" else value
    row = comma(
        sweep.keys_again(node),
        ", ".join(f"{values[call.name]} AS {name(call.name)}" for call in node.calls),
        listed(hidden),
    )
    living = Sql("TRUE") if node.row_when_empty else Sql("COALESCE(_p0._live, FALSE)")
    return lowering.step("timeline", select(f"{row}, _t, {living} AS _live", known))
