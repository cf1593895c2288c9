"""Which numbers of the two sides of a join its condition compares: the smaller and the larger column of each pair.

    s.price > r.threshold                       threshold is at most price
    s.price BETWEEN r.low AND r.high            low is at most price, price is at most high

Read from comparisons of plain columns that AND ties together. Others say nothing here, and are judged for every pair.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from headgate.plan.expressions import INTEGRAL
from headgate.plan.nodes import Join
from headgate.sql.reading import parsed


def comparisons(join: Join) -> tuple[tuple[str, str], ...]:
    """The pairs of a smaller and a larger column, one of each side of the join, by name."""
    tree = parsed(join.condition.sql) if join.condition is not None else None
    if tree is None:
        return ()
    numbers = {column.name.lower(): column.name for column in join.columns if _is_number(column.type)}
    left = {column.name.lower() for column in join.left.columns}
    return tuple(
        (numbers[low], numbers[high])
        for low, high in _compared(tree)
        if low in numbers and high in numbers and (low in left) != (high in left)
    )


def _is_number(kind: str) -> bool:
    return kind in INTEGRAL or kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL")


def _compared(tree: exp.Expression) -> Iterator[tuple[str, str]]:
    match tree.unnest():
        case exp.And() as both:
            yield from _compared(both.this)
            yield from _compared(both.expression)
        case exp.LT() | exp.LTE() as smaller:
            yield _name(smaller.this), _name(smaller.expression)
        case exp.GT() | exp.GTE() as larger:
            yield _name(larger.expression), _name(larger.this)
        case exp.Between() as between if not between.args.get("symmetric"):
            yield _name(between.args["low"]), _name(between.this)
            yield _name(between.this), _name(between.args["high"])


def _name(tree: exp.Expression) -> str:
    """The name of a plain column in lower case; empty for anything else."""
    column = tree.unnest()
    return column.name.lower() if isinstance(column, exp.Column) and not column.table else ""
