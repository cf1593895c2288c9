"""EMIT FINAL in the reference: which values close a row, and from which instant on they cannot occur any more."""

from __future__ import annotations

from typing import Any

from sqlglot import exp


def closing_values(tree: exp.Select) -> list[list[exp.Expression]]:
    """The values that may close a row, as each entry of FROM has them: keys of GROUP BY, or what a join equates."""
    conditions = [join.args["on"] for join in tree.args.get("joins") or () if join.args.get("on")]
    conditions += [tree.args["where"].this] if tree.args.get("where") else []
    parts = [
        part.unnest()
        for condition in conditions
        for part in (condition.flatten() if isinstance(condition, exp.And) else [condition])
    ]
    equal: list[list[exp.Expression]] = []
    for part in parts:
        if isinstance(part, exp.EQ):
            sides = [part.this.unnest(), part.expression.unnest()]
            met = [one for one in equal if any(side in one for side in sides)]
            equal = [one for one in equal if one not in met]
            equal.append([value for one in met for value in one])
            equal[-1] += [side for side in sides if side not in equal[-1]]
    if tree.args.get("group") is None:
        return equal
    result = []
    for key in tree.args["group"].expressions:
        value = unaliased(key)
        result.append([value])
        for one, others in ((one, some) for some in equal for one in some):
            if one in list(value.walk()):
                result.append([value, *(_replaced(value, one, other) for other in others if other != one)])
    return result


def _replaced(value: exp.Expression, one: exp.Expression, other: exp.Expression) -> exp.Expression:
    """The value with another expression in each place where one stands."""
    if value == one:
        return other.copy()
    around = value.copy()
    for place in [node for node in around.walk() if node == one]:
        place.replace(other.copy())
    return around


def closing_instant(maps: list[dict[Any, int]], value: Any) -> int:
    """The first instant at which no input can have the value any more; -1 for null, which is never final."""
    if value is None:
        return -1
    return max(1 + max(_instants_not_beyond(known, value), default=-1) for known in maps)


def _instants_not_beyond(known: dict[Any, int], value: Any) -> list[int]:
    """The instants of the values up to this one, in the direction in which the values move."""
    by_time = sorted(known, key=lambda entry: known[entry])
    falling = bool(known) and by_time[-1] < by_time[0]
    return [last for one, last in known.items() if (one >= value if falling else one <= value)]


def never_missing(tree: exp.Select, value: exp.Expression) -> bool:
    """Whether no outer join leaves out a value that a select shows."""
    sides = [join.args.get("side") for join in tree.args.get("joins") or ()]
    if not any(sides):
        return True
    if len(sides) > 1 or sides[0] == "FULL" or not isinstance(value, exp.Column):
        return False
    present = tree.args["from_"].this if sides[0] == "LEFT" else tree.args["joins"][0].this
    return value.table.lower() == present.alias_or_name.lower()


def unaliased(item: exp.Expression) -> exp.Expression:
    """The expression without its AS and its parentheses."""
    inner = item.this if isinstance(item, exp.Alias) else item
    return inner.unnest()
