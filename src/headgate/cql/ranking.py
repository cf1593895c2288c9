"""Analytic functions, and ORDER BY with LIMIT: SQL over the rows of one instant.

Each function is computed with the instant as one more partitioning column. Its result must be the same whenever it is
computed, so where ties would leave it open (row_number, lag, frames of rows, ...) all columns are put behind the order
that was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headgate.cql.trees import as_expression, column_named, filtered, replaced_by, types_of
from headgate.errors import UserError, unknown
from headgate.plan.derived import fresh, kept
from headgate.plan.expressions import Named
from headgate.plan.nodes import Ranked, Relation, names
from headgate.sql.printer import compared

if TYPE_CHECKING:
    from headgate.cql.binder import Binder

INSTANT = "_at"
OPEN_ON_TIES = (
    exp.RowNumber,
    exp.Ntile,
    exp.Lag,
    exp.Lead,
    exp.FirstValue,
    exp.LastValue,
    exp.NthValue,
    exp.First,
    exp.Last,
)


def expand_named_windows(binder: Binder, tree: exp.Select) -> None:
    """Writes the definition that WINDOW gives to a name into every `OVER name` of a select."""
    known = {window.this.name.lower(): window for window in tree.args.get("windows") or ()}
    for window in list(tree.find_all(exp.Window)):
        alias = window.args.get("alias")
        if alias is None or window.find_ancestor(exp.Select) is not tree or window.arg_key == "windows":
            continue
        meant = known.get(alias.name.lower())
        if meant is None:
            raise unknown("window", alias.name, list(known), binder.place(alias))
        for part in ("partition_by", "order", "spec"):
            if not window.args.get(part) and meant.args.get(part):
                given = meant.args[part]
                window.set(part, [one.copy() for one in given] if isinstance(given, list) else given.copy())
        window.set("alias", None)


def ranked(binder: Binder, node: Relation, trees: list[exp.Expression]) -> tuple[Relation, list[exp.Expression]]:
    """Computes the analytic functions of some expressions: adds a column for each, and lets the expressions read it."""
    found: dict[str, tuple[str, exp.Window]] = {}
    taken = {name.lower() for name in names(node)}

    def replaced(tree: exp.Expression) -> exp.Expression | None:
        if not isinstance(tree, exp.Window):
            return None
        text = compared(tree)
        if text not in found:
            found[text] = (fresh("ranked", taken), tree.copy())
        return column_named(found[text][0])

    rest = [replaced_by(tree.copy(), replaced) for tree in trees]
    if not found:
        return node, trees
    types = types_of(node)
    items = tuple(Named(name, as_expression(_at_each_instant(node, window), types)) for name, window in found.values())
    return Ranked(node, _common_partition([window for _, window in found.values()]), items), rest


def _at_each_instant(node: Relation, window: exp.Window) -> exp.Window:
    result = window.copy()
    result.set("partition_by", [exp.column(INSTANT), *(window.args.get("partition_by") or [])])
    frame = window.args.get("spec")
    function = (
        window.this.this if isinstance(window.this, exp.IgnoreNulls | exp.RespectNulls | exp.Filter) else window.this
    )
    by_rows = frame is not None and (frame.args.get("kind") or "").upper() == "ROWS"
    if isinstance(function, OPEN_ON_TIES) or by_rows:
        order = window.args.get("order")
        keys = [*(order.expressions if order is not None else []), *_all_columns(node)]
        result.set("order", exp.Order(expressions=[key.copy() for key in keys]))
    return result


def _all_columns(node: Relation) -> list[exp.Expression]:
    return [exp.Ordered(this=column_named(name), nulls_first=True) for name in names(node)]


def _common_partition(windows: list[exp.Window]) -> tuple[str, ...]:
    """The columns by which all of these functions partition."""
    partitions = [
        [key.name for key in window.args.get("partition_by") or [] if isinstance(key, exp.Column)] for window in windows
    ]
    return tuple(name for name in dict.fromkeys(partitions[0]) if all(name in other for other in partitions))


def first_rows(
    binder: Binder,
    node: Relation,
    keys: list[exp.Expression],
    limit: exp.Expression | None,
    offset: exp.Expression | None,
    columns: tuple[str, ...],
) -> Relation:
    """Keeps the first rows by ORDER BY, LIMIT and OFFSET; ties are broken by all columns."""
    place = fresh("place", {name.lower() for name in names(node)})
    order = exp.Order(expressions=[*(key.copy() for key in keys), *_all_columns(node)])
    number = exp.Window(this=exp.RowNumber(), partition_by=[exp.column(INSTANT)], order=order)
    numbered = Ranked(node, (), (Named(place, as_expression(number, types_of(node))),))
    bounds = []
    skipped = _count(binder, offset, "OFFSET") if offset is not None else 0
    if skipped:
        bounds.append(exp.GT(this=column_named(place), expression=exp.Literal.number(skipped)))
    if limit is not None:
        last = skipped + _count(binder, limit, "LIMIT")
        bounds.append(exp.LTE(this=column_named(place), expression=exp.Literal.number(last)))
    return kept(filtered(numbered, bounds), columns)


def _count(binder: Binder, clause: exp.Expression, word: str) -> int:
    number = clause.expression
    if not isinstance(number, exp.Literal) or not number.name.isdigit():
        raise UserError("bad-limit", f"{word} takes a whole number", place=binder.place(clause))
    return int(number.name)
