"""What a GSQL query means, worked out from its syntax tree over all rows at once, without CQL, plans or time.

Every epoch is over in the end, so the answer is a bag of rows: selections choose, groups are formed over everything,
joins look at all pairs, merges put together. Of headgate it uses the parser alone. The first letter of an attribute
says its type: t and n are numbers, s texts, i addresses, b conditions.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from itertools import combinations
from typing import Any

from headgate.gsql.parser import parse
from headgate.gsql.syntax import (
    Attribute,
    Binary,
    Call,
    Constant,
    Expression,
    Key,
    KeySets,
    Merge,
    OneOf,
    Query,
    Select,
    Unary,
)

Row = dict[str, Any]
MISSING: dict[str, Any] = {"t": 0, "n": 0, "s": "", "b": False}
AGGREGATES = ("count", "sum", "min", "max", "avg", "and_aggr", "or_aggr", "xor_aggr")


class Address(int):
    """An IPv4 address: a number that is shown as people write it."""

    def __str__(self) -> str:
        return str(ipaddress.IPv4Address(int(self)))


def address(text: str) -> Address:
    return Address(ipaddress.IPv4Address(text))


def answer(texts: Mapping[str, str], asked: str, rows: Mapping[str, list[Row]]) -> list[tuple[Any, ...]]:
    """The rows of the query `asked`, which may read those before it."""
    known = {
        name.lower(): [{key.lower(): address(v) if key[0] == "i" else v for key, v in row.items()} for row in some]
        for name, some in rows.items()
    }
    for name, text in texts.items():
        tree = parse(text, 0, len(text))
        assert isinstance(tree, Query)
        known[name.lower()] = evaluated(tree, known)
    return [tuple(shown(value) for value in row.values()) for row in known[asked.lower()]]


def shown(value: Any) -> Any:
    return str(value) if isinstance(value, Address) else value


def evaluated(query: Query, known: Mapping[str, list[Row]]) -> list[Row]:
    match query.body:
        case Merge(tables=tables):
            names = list(known[tables[0].name.lower()][0]) if known[tables[0].name.lower()] else []
            every = [row for table in tables for row in known[table.name.lower()]]
            return [dict(zip(names or row, row.values(), strict=True)) for row in every]
        case Select() as select:
            return selected(select, known)


def selected(tree: Select, known: Mapping[str, list[Row]]) -> list[Row]:
    rows = joined(tree, known)
    if not tree.keys:
        return [{name_of(item, i): value(item.value, row) for i, item in enumerate(tree.items)} for row in rows]
    found: list[Row] = []
    for names in grouping_sets(tree.keys):
        found += grouped(tree, rows, names)
    return found


def name_of(item: Any, place: int) -> str:
    return (item.name or (item.value.name if isinstance(item.value, Attribute) else f"c{place}")).lower()


# joins

Pair = dict[str, Row | None]


def joined(tree: Select, known: Mapping[str, list[Row]]) -> list[Callable[[Attribute], Any]]:
    """The rows behind FROM and WHERE, each as a function from attributes to values."""
    inputs = [(table.alias.lower(), known[table.name.lower()]) for table in tree.tables]
    if tree.join not in ("OUTER", "LEFT_OUTER", "RIGHT_OUTER"):
        pairs: list[Pair] = reduce(
            lambda before, entry: [{**pair, entry[0]: row} for pair in before for row in entry[1]], inputs, [{}]
        )
        every = [looked_up(pair, {}) for pair in pairs]
        return [row for row in every if tree.where is None or value(tree.where, row)]
    parts = conjuncts(tree.where)
    sides = []
    for alias, given in inputs:
        own = [part for part in parts if {one.table.lower() for one in attributes(part)} == {alias}]
        sides.append([row for row in given if all(value(part, looked_up({alias: row}, {})) for part in own)])
    both = [part for part in parts if len({one.table.lower() for one in attributes(part)}) != 1]
    equal: dict[tuple[str, str], tuple[str, str]] = {}
    for part in both:
        if isinstance(part, Binary) and part.operator == "=":
            one, two = part.left, part.right
            if isinstance(one, Attribute) and isinstance(two, Attribute):
                a, b = ((side.table.lower(), side.name.lower()) for side in (one, two))
                equal.setdefault(a, b)
                equal.setdefault(b, a)
    (left, _), (right, _) = inputs
    met: list[tuple[int, int]] = []
    result: list[Pair] = []
    for i, first in enumerate(sides[0]):
        for j, second in enumerate(sides[1]):
            pair: Pair = {left: first, right: second}
            if all(value(part, looked_up(pair, {})) for part in both):
                met.append((i, j))
                result.append(pair)
    if tree.join != "RIGHT_OUTER":
        result += [{left: row, right: None} for i, row in enumerate(sides[0]) if i not in {one for one, _ in met}]
    if tree.join != "LEFT_OUTER":
        result += [{left: None, right: row} for j, row in enumerate(sides[1]) if j not in {two for _, two in met}]
    return [looked_up(pair, equal) for pair in result]


def looked_up(pair: Pair, equal: Mapping[tuple[str, str], tuple[str, str]]) -> Callable[[Attribute], Any]:
    def look(tree: Attribute) -> Any:
        name = tree.name.lower()
        owners = [alias for alias, row in pair.items() if row is not None and name in row]
        alias = tree.table.lower() or owners[0]
        row = pair[alias]
        if row is not None:
            return row[name]
        other = equal.get((alias, name))
        if other is not None and (there := pair[other[0]]) is not None:
            return there[other[1]]
        return address("0.0.0.0") if name[0] == "i" else MISSING[name[0]]

    return look


def conjuncts(tree: Expression | None) -> list[Expression]:
    match tree:
        case None:
            return []
        case Binary("AND", left, right):
            return [*conjuncts(left), *conjuncts(right)]
        case _:
            return [tree]


def attributes(tree: Expression) -> list[Attribute]:
    match tree:
        case Attribute():
            return [tree]
        case Unary(operand=one) | OneOf(operand=one):
            return attributes(one)
        case Binary(left=one, right=two):
            return [*attributes(one), *attributes(two)]
        case Call(arguments=some):
            return [found for one in some for found in attributes(one)]
        case _:
            return []


# groups


def grouping_sets(keys: Iterable[Key | KeySets]) -> list[frozenset[str]]:
    sets: list[frozenset[str]] = [frozenset()]
    for part in keys:
        if isinstance(part, Key):
            choices = [frozenset({part.name.lower()})]
        else:
            names = [[key.name.lower() for key in one] for one in part.sets]
            match part.kind:
                case "GROUPING_SETS":
                    choices = [frozenset(one) for one in names]
                case "ROLLUP":
                    choices = [frozenset(names[0][:count]) for count in range(len(names[0]) + 1)]
                case "CUBE":
                    sizes = range(len(names[0]) + 1)
                    choices = [frozenset(some) for size in sizes for some in combinations(names[0], size)]
        sets = [one | two for one in sets for two in choices]
    return sets


def grouped(tree: Select, rows: list[Callable[[Attribute], Any]], names: frozenset[str]) -> list[Row]:
    every = [key for part in tree.keys for key in ([part] if isinstance(part, Key) else sum(part.sets, ()))]
    keys = {key.name.lower(): key.value for key in every}
    groups: dict[tuple[Any, ...], list[Callable[[Attribute], Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(value(one, row) if name in names else None for name, one in keys.items()), []).append(
            row
        )
    super_names = {one.name.lower() for one in tree.supergroup} | {name for name in keys if name[0] == "t"}

    def supergroup(group: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        places = [place for place, name in enumerate(keys) if name in super_names]
        return [other for other in groups if all(other[place] == group[place] for place in places)]

    found = []
    for group in groups:
        values = dict(zip(keys, group, strict=True))

        def look(one: Expression, group: tuple[Any, ...] = group, values: Row = values) -> Any:
            match one:
                case Attribute() if not one.table and one.name.lower() in values:
                    here = values[one.name.lower()]
                    if here is not None:
                        return here
                    source = keys[one.name.lower()]
                    letter = source.name[0].lower() if isinstance(source, Attribute) else "n"
                    return address("0.0.0.0") if letter == "i" else MISSING[letter]
                case Call() if one.of_supergroup:
                    return over_groups(one, [groups[other] for other in supergroup(group)])
                case Call() if one.name.lower() in AGGREGATES:
                    return aggregate(one, groups[group])
                case _:
                    raise AssertionError(one)

        if tree.having is None or value(tree.having, look):
            found.append({name_of(item, i): value(item.value, look) for i, item in enumerate(tree.items)})
    return found


def aggregate(tree: Call, rows: list[Callable[[Attribute], Any]]) -> Any:
    name = tree.name.lower()
    if tree.star:
        return len(rows)
    values = [value(tree.arguments[0], row) for row in rows]
    of_conditions = isinstance(values[0], bool)
    kind = bool if of_conditions else type(values[0])
    match name:
        case "count":
            return len(values)
        case "sum":
            return sum(map(int, values))
        case "avg":
            return sum(map(int, values)) / len(values)
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "and_aggr":
            return kind(reduce(lambda a, b: a & b, values))
        case "or_aggr":
            return kind(reduce(lambda a, b: a | b, values))
        case _:
            return kind(reduce(lambda a, b: a ^ b, values))


def over_groups(tree: Call, groups: list[list[Callable[[Attribute], Any]]]) -> Any:
    name = tree.name.lower()
    if name == "count_distinct":
        return len(groups)
    values = [aggregate(Call(tree.name, tree.arguments, tree.span, star=tree.star), group) for group in groups]
    return sum(values) if name in ("count", "sum") else min(values) if name == "min" else max(values)


# expressions


def value(tree: Expression, look: Callable[[Any], Any]) -> Any:
    match tree:
        case Constant():
            return constant(tree)
        case Attribute():
            return look(tree)
        case Call(name=name) if name.lower() in AGGREGATES or tree.of_supergroup:
            return look(tree)
        case Unary("NOT" | "!", operand):
            return not value(operand, look)
        case Unary("-", operand):
            return -value(operand, look)
        case Unary("~", operand):
            inner = value(operand, look)
            return type(inner)(2**32 - 1 - inner)
        case OneOf(operand, values):
            return value(operand, look) in [constant(one) for one in values]
        case Binary("AND", left, right):
            return value(left, look) and value(right, look)
        case Binary("OR", left, right):
            return value(left, look) or value(right, look)
        case Binary(operator, left, right):
            return OPERATORS[operator](value(left, look), value(right, look))
        case _:
            raise AssertionError(tree)


def constant(tree: Constant) -> Any:
    match tree.kind:
        case "ip":
            return address(tree.text)
        case "hex":
            return int(tree.text, 16)
        case "bool":
            return tree.text == "TRUE"
        case "string":
            return tree.text
        case _:
            return int(tree.text)


def quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def like(a: Any, b: int) -> Any:
    return Address(b) if isinstance(a, Address) else b


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": quotient,
    "%": lambda a, b: a - quotient(a, b) * b,
    "&": lambda a, b: like(a, int(a) & int(b)),
    "|": lambda a, b: like(a, int(a) | int(b)),
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}
