"""Partial aggregates: an aggregate over tuples that stand for several, so that the low level may put tuples together.

    γ COUNT(*), SUM(x), MIN(y), MAX(y) (σ π W S)  =  γ SUM(w), SUM(sx), MIN(y), MAX(hy) (σ π W S')

where a tuple of S' stands for a number of tuples of S, `_weight`, which are equal in all that the plan tells tuples
apart by. Its value of x is their least one, `_sum_x` their sum and `_max_x` their largest; null stands apart. A tuple
that was kept as it came has none of these columns, and stands for itself: the plan takes x for them. So it gives the
same over a log in which tuples were put together and over one in which they were not, or in part.

It is done to a plan if all that it reads of streams goes into such aggregates: counts, sums and averages of whole
numbers, extremes and distinct values, of groups. A sum of other numbers would be rounded differently. Windows must take
each tuple by itself: a row window counts tuples. An average is a sum and a count, divided above the aggregate. What a
FILTER reads tells tuples apart.

**Grains.** Tuples need not have the same timestamp. A window with SLIDE, EMIT FINAL, and a key that is a function of
the timestamp cannot tell instants of one bucket apart. A grain (offset, width) has the buckets

    (t - offset) DIV width       rounded down

and tuples in the same bucket of each grain of a plan are put together. A tuple's timestamp is then the largest of those
that it stands for. The grain (0, 1) tells all instants apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from headgate.plan.chains import chain, columns_of
from headgate.plan.expressions import INTEGRAL, Call, Expression, Named
from headgate.plan.monotone import Divided, Floored, Scale, Shift, Step, Steps, Truncated
from headgate.plan.nodes import Aggregate, Filter, Final, Node, Project, Range, Relation, Scan, Union, Window
from headgate.plan.nodes.operator import column_of
from headgate.plan.rewrites.substitution import substituted
from headgate.plan.tree import everywhere
from headgate.sql import BIGINT, EMPTY, Column, Sql, name

WEIGHT, SUM, MAX = "_weight", "_sum_", "_max_"
"""The columns that only tuples have that stand for several; the last two end in the name of a column."""

SMALL = ("TINYINT", "SMALLINT", "INT")
"""Types of numbers whose product with a weight fits into a BIGINT, whatever they are."""

ONE_OR_MORE = f"COALESCE({name(WEIGHT)}, 1)"

Grain: TypeAlias = tuple[int, int]
Grains: TypeAlias = frozenset[Grain]
INSTANTS: Grains = frozenset({(0, 1)})


@dataclass(frozen=True, slots=True)
class Told:
    """By what a plan tells the tuples of a stream apart: columns, in lower case, and grains of their timestamps."""

    columns: frozenset[str]
    grains: Grains


def weighted(plan: Node) -> Node:
    """The plan over tuples that may stand for several; as it was if they must stand for themselves."""
    found = everywhere(plan, _over_weights)
    return found if all(map(carries_weight, _scans(found))) else plan


def carries_weight(scan: Scan) -> bool:
    """Whether what reads a stream heeds the weights of its tuples."""
    return any(column.name == WEIGHT for column in scan.columns)


def is_partial(column: str) -> bool:
    """Whether a column of a log is one that only tuples have that stand for several."""
    return column == WEIGHT or column.startswith((SUM, MAX))


def partial_columns(plan: Node) -> dict[str, list[Column]]:
    """The columns of tuples that stand for several which a plan reads, by stream."""
    found: dict[str, dict[str, Column]] = {}
    for scan in _scans(plan):
        for column in scan.columns:
            if is_partial(column.name):
                found.setdefault(scan.stream, {})[column.name] = column
    return {stream: list(columns.values()) for stream, columns in found.items()}


def _scans(plan: Node) -> list[Scan]:
    return [source for source in plan.sources if isinstance(source, Scan)]


def _over_weights(node: Node) -> Node | None:
    if not isinstance(node, Aggregate) or not node.keys or node.compares:
        return None
    values = _values(node.child)
    calls = [_weighed(part, values) for call in node.calls for part in _parts(call)]
    extras = [name for call in calls if call is not None for name in sorted(call.columns) if is_partial(name)]
    own = {column.name.lower(): column for column in _base(node.child)}
    added = [Column(WEIGHT, BIGINT)]
    for extra in dict.fromkeys(extras):
        if extra.startswith(SUM):
            added.append(Column(extra, BIGINT))
        elif extra.startswith(MAX):
            added.append(Column(extra, own[extra.removeprefix(MAX)].type))
    below = _with_columns(node.child, tuple(added))
    if below is None or any(call is None for call in calls):
        return None
    found = replace(node, child=below, calls=tuple(call for call in calls if call is not None))
    if not any(map(_is_average, node.calls)):
        return found
    keys = [Named(key.name, column_of(key.name, key.expression.type)) for key in node.keys]
    return Project(found, (*keys, *(Named(call.name, _quotient(call)) for call in node.calls)))


def _is_average(call: Call) -> bool:
    whole = len(call.arguments) == 1 and call.arguments[0].type in INTEGRAL
    return call.function.lower() == "avg" and whole and not call.distinct and not call.outside


def _parts(call: Call) -> list[Call]:
    """The calls that a call is computed of: a sum and a count if it is an average."""
    if not _is_average(call):
        return [call]
    (argument,) = call.arguments
    return [
        replace(call, name=name, function=how.lower(), sql=f"{how}({argument.sql})", type=BIGINT)
        for name, how in zip(_part_names(call), (Sql("SUM"), Sql("COUNT")), strict=True)
    ]


def _part_names(call: Call) -> tuple[str, str]:
    return f"_total_{call.name}", f"_number_{call.name}"


def _quotient(call: Call) -> Expression:
    """The value of a call, from those of its parts."""
    if not _is_average(call):
        return column_of(call.name, call.type)
    total, number = (column_of(name, BIGINT) for name in _part_names(call))
    return Expression(f"{total.sql} / NULLIF({number.sql}, 0)", call.type, total.columns | number.columns)


def _with_columns(node: Relation, added: tuple[Column, ...]) -> Relation | None:
    """The relation with these columns of tuples as its last ones; None if a row is more than one selected tuple."""
    if isinstance(node, Window) and isinstance(node.child, Scan):
        taken_by_itself = node.frame.together is None and node.arrival is None
        if not taken_by_itself or node.child.stream.startswith("late("):
            return None
        scan = replace(node.child, columns=(*node.child.columns, *added))
        found = replace(node, child=scan)
        return found if node.stamp is None else _put_last(found, added)
    if isinstance(node, Filter):
        below = _with_columns(node.child, added)
        return None if below is None else replace(node, child=below)
    if isinstance(node, Project):
        below = _with_columns(node.child, added)
        return None if below is None else replace(node, child=below, items=(*node.items, *map(_item, added)))
    if isinstance(node, Union):
        left, right = _with_columns(node.left, added), _with_columns(node.right, added)
        return None if left is None or right is None else replace(node, left=left, right=right)
    return None


def _put_last(node: Relation, added: tuple[Column, ...]) -> Relation:
    own = [column for column in node.columns if column not in added]
    return Project(node, (*map(_item, own), *map(_item, added)))


def _item(column: Column) -> Named:
    return Named(column.name, column_of(column.name, column.type))


# aggregates


def _base(node: Relation) -> tuple[Column, ...]:
    """The columns of the one stream that a relation selects from; none if there are several."""
    while isinstance(node, Filter | Project):
        node = node.child
    return node.child.columns if isinstance(node, Window) and isinstance(node.child, Scan) else ()


def _values(node: Relation) -> dict[str, Column]:
    """The columns of a relation that are columns of whole numbers of the one stream that it selects from: by their
    names in lower case, the stream's column.
    """
    if isinstance(node, Filter):
        return _values(node.child)
    if isinstance(node, Project):
        below = _values(node.child)
        carried = {item.name.lower(): item.expression.column for item in node.items}
        return {name: below[own.lower()] for name, own in carried.items() if own is not None and own.lower() in below}
    if isinstance(node, Window) and isinstance(node.child, Scan):
        stamps = {name.lower() for name in (node.child.timestamp, node.stamp) if name is not None}
        own = {column.name.lower(): column for column in node.child.columns if not is_partial(column.name)}
        return {
            name: column for name, column in own.items() if column.type.upper() in INTEGRAL and name not in stamps
        }  # of several tuples the timestamp is the largest
    return {}


def _weighed(call: Call, values: dict[str, Column]) -> Call | None:
    """The call over tuples that stand for several; None if there is none that gives the same."""
    plain = not call.outside
    argument = call.arguments[0] if len(call.arguments) == 1 else None
    value = values.get((argument.column or "").lower()) if argument is not None else None
    match call.function.lower():
        case "max" if plain and not call.distinct and value is not None and argument is not None:
            largest = f"{MAX}{value.name.lower()}"
            return _replaced(call, Sql("MAX"), f"COALESCE({name(largest)}, {argument.sql})", value.type, largest)
        case "min" | "max":
            return call
        case "count" | "sum" if call.distinct and plain:
            return call
        case "count" if call.condition is not None and plain and len(call.arguments) < 2:  # 0 where it never holds
            given = f" AND {_bracketed(argument)} IS NOT NULL" if argument is not None else EMPTY
            counted = f"CASE WHEN ({call.condition}){given} THEN {ONE_OR_MORE} ELSE 0 END"
            return _replaced(replace(call, condition=None), Sql("SUM"), counted, BIGINT, WEIGHT)
        case "count" if not call.arguments and plain:
            return _replaced(call, Sql("SUM"), ONE_OR_MORE, BIGINT, WEIGHT)
        case "count" if argument is not None and plain:
            counted = f"CASE WHEN {argument.sql} IS NULL THEN 0 ELSE {ONE_OR_MORE} END"
            return _replaced(call, Sql("SUM"), counted, BIGINT, WEIGHT)
        case "sum" if plain and argument is not None and value is not None:
            total = f"{SUM}{value.name.lower()}"
            alone = f"{argument.sql} * {ONE_OR_MORE}" if argument.type in SMALL else argument.sql
            return _replaced(call, Sql("SUM"), f"COALESCE({name(total)}, {alone})", BIGINT, total, WEIGHT)
        case "sum" if plain and argument is not None and argument.type in SMALL:
            return _replaced(call, Sql("SUM"), f"{_bracketed(argument)} * {ONE_OR_MORE}", BIGINT, WEIGHT)
        case _:
            return None


def _replaced(call: Call, function: Sql, sql: Sql, kind: Sql, *more: str) -> Call:
    columns = call.columns | set(more)
    text, argument = f"{function}({sql})", Expression(sql, kind, columns)
    return replace(call, function=function.lower(), sql=text, arguments=(argument,), columns=columns)


def _bracketed(one: Expression) -> Sql:
    return one.sql if one.column is not None else f"({one.sql})"


# what tells tuples apart


@dataclass(slots=True)
class _Telling:
    """What was found of one stream while going through a plan."""

    columns: set[str] = field(default_factory=set)
    grains: set[Grain] = field(default_factory=set)


def told_apart(plan: Node) -> dict[Scan, Told]:
    """By what the aggregates of a weighted plan tell the tuples of each stream apart.

    What stands in keys, in conditions and in arguments that are computed tells tuples apart. Columns of which there are
    sums, counts and extremes do not, nor does the timestamp within a bucket of each grain.
    """
    found: dict[Scan, _Telling] = {}
    for node in _aggregates(plan):
        for scan, window, steps in _ways_to_streams(node.child):
            _note(found.setdefault(scan, _Telling()), node, scan, window, steps)
    return {scan: Told(frozenset(one.columns), _normal(one.grains)) for scan, one in found.items()}


def _aggregates(plan: Node) -> list[Aggregate]:
    found: list[Aggregate] = []

    def visit(node: Node) -> None:
        if isinstance(node, Aggregate):
            found.append(node)

    everywhere(plan, visit)
    return found


def _ways_to_streams(node: Relation) -> list[tuple[Scan, Window, tuple[Filter | Project, ...]]]:
    """Every way down from an aggregate to the window over a stream, with the selections and projections on it."""
    if isinstance(node, Window) and isinstance(node.child, Scan):
        return [(node.child, node, ())] if carries_weight(node.child) else []
    if isinstance(node, Filter | Project):
        return [(scan, window, (node, *steps)) for scan, window, steps in _ways_to_streams(node.child)]
    if isinstance(node, Union):
        return [*_ways_to_streams(node.left), *_ways_to_streams(node.right)]
    return []


def _note(telling: _Telling, node: Aggregate, scan: Scan, window: Window, steps: tuple[Filter | Project, ...]) -> None:
    """Note what tells the tuples of a stream apart on one way from an aggregate down to it."""
    stamps = {name.lower() for name in (scan.timestamp, window.stamp) if name is not None}
    types = {column.name.lower(): column.type for column in window.columns}
    asked = [key.expression for key in node.keys]
    values = _values(node.child)
    for call in node.calls:
        if not _tells_nothing(call, values):
            asked += _columns(call.columns)
        elif call.condition is not None:
            asked += _columns(columns_of(call.condition) or call.columns)
    for step in steps:
        if isinstance(step, Filter):
            asked.append(step.condition)
        else:
            carried = step.carried[0]
            moved = [(one, substituted(one, carried)) for one in asked]
            fixed = [carried[name] for one, below in moved if below is None for name in one.columns if name in carried]
            asked = [below for _, below in moved if below is not None]
            asked += [column for one in fixed for column in _columns(one.columns)]
    for one in asked:
        grains = _grains(one, stamps, types)
        if grains is not None:
            telling.grains |= grains
        else:
            telling.columns |= {name.lower() for name in one.columns if not is_partial(name)}
    if telling.columns & stamps:
        telling.grains |= INSTANTS
    telling.grains |= _window_grains(window, telling.columns)
    telling.columns |= {name.lower() for name in (scan.by,) if name is not None}


def _columns(names: Iterable[str]) -> list[Expression]:
    return [column_of(name) for name in sorted(names)]


def _tells_nothing(call: Call, values: dict[str, Column]) -> bool:
    """True if a call tells no tuples apart, but at most those that have a value from those that have none."""
    read = {name for name in call.columns if not is_partial(name)}
    if any(is_partial(name) and name != WEIGHT for name in call.columns) or call.sql == f"SUM({ONE_OR_MORE})":
        return True
    if call.distinct or call.condition is not None or len(read) != 1 or not read <= values.keys():
        return False
    (name,) = read
    alone = (f"MIN({name})", f"SUM(CASE WHEN {name} IS NULL THEN 0 ELSE {ONE_OR_MORE} END)")
    return call.sql.replace("`", "").lower() in map(str.lower, alone)


def _grains(one: Expression, stamps: set[str], types: dict[str, Sql]) -> Grains | None:
    """The grains by which an expression over a stream's timestamp tells instants apart; None if it reads others, or the
    instant itself.
    """
    if not one.columns or not {name.lower() for name in one.columns} <= stamps:
        return None if one.columns else frozenset()
    found = chain(one.sql, types)
    if found is None or types[found.column].upper() not in (*INTEGRAL, "TIMESTAMP"):
        return None
    return grains_of(found.steps)


def grains_of(steps: Steps) -> Grains | None:
    """The grains of a function of the timestamp, given by its steps; None if its buckets are not all of one width.

    After each step the value is `factor * ((t - offset) DIV width) + rest`, rounded down. A division towards zero
    rounds up where its argument is below zero, so from there on there are two such forms: if neither tells two instants
    apart, the function does not either, because it never falls.
    """
    forms = [(0, 1, 1, 0)]
    for step in steps:
        if isinstance(step, Divided) and len(forms) > 1:
            return None
        if isinstance(step, Divided) and step.by > 0:
            up = [(offset, width, factor, rest + step.by - 1) for offset, width, factor, rest in forms]
            forms, step = [*forms, *up], Floored(step.by)
        moved = [_moved(form, step) for form in forms]
        forms = [form for form in moved if form is not None]
        if len(forms) < len(moved):
            return None
    return frozenset((offset % width, width) for offset, width, _, _ in forms)


def _moved(form: tuple[int, int, int, int], step: Step) -> tuple[int, int, int, int] | None:
    offset, width, factor, rest = form
    match step:
        case Shift(by):
            return offset, width, factor, rest + by
        case Scale(by) if by > 0:
            return offset, width, factor * by, rest * by
        case Floored(by) | Truncated(by) if by % factor == 0:
            back = by if isinstance(step, Truncated) else 1
            return offset - rest // factor * width, width * (by // factor), back, 0
        case _:
            return None


def _window_grains(window: Window, columns: set[str]) -> Grains:
    """The grains by which a window tells instants apart."""
    frame = window.frame
    if isinstance(frame, Range) and frame.slide is not None:
        return frozenset({(1 % frame.slide, frame.slide), ((1 - frame.span) % frame.slide, frame.slide)})
    if isinstance(frame, Final) and not frame.reads:
        found = [grains_of(one.value.steps) if one.value.column == "_t" else None for one in frame.values]
        if all(one is not None for one in found):
            return frozenset[Grain]().union(*(one for one in found if one is not None))
    columns |= {name.lower() for name in frame.deciding}
    return INSTANTS


def _normal(grains: Iterable[Grain]) -> Grains:
    """The grains without those that tell nothing that another one does not."""
    some = set(grains) or set(INSTANTS)
    return INSTANTS if any(width == 1 for _, width in some) else frozenset(some)


def joined(grains: Iterable[Grains]) -> Grains:
    """The grains of several plans together."""
    return _normal(frozenset[Grain]().union(*grains))
