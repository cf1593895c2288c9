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
    pairs = [(part.this.unnest(), part.expression.unnest()) for part in parts if isinstance(part, exp.EQ)]
    pairs = [pair for one, two in pairs for pair in ((one, two), (two, one))]
    if tree.args.get("group") is None:
        return [[one, two] for one, two in pairs[::2]]
    result = []
    for key in tree.args["group"].expressions:
        value = unaliased(key)
        result.append([value])
        for one, two in pairs:
            around = value.copy()
            places = [node for node in around.walk() if node == one]
            for place in places:
                place.replace(two.copy())
            if places:
                result.append([value, two.copy() if value == one else around])
    return result


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


def has_outer_join(tree: exp.Select) -> bool:
    """Whether a select has an outer join."""
    return any(join.args.get("side") for join in tree.args.get("joins") or ())


def unaliased(item: exp.Expression) -> exp.Expression:
    """The expression without its AS and its parentheses."""
    inner = item.this if isinstance(item, exp.Alias) else item
    return inner.unnest()
