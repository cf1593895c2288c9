"""What names in an expression mean: columns of FROM, functions defined in SQL, CURRENT_TIME, * in a select list.

An expression as the user wrote it and a `Scope` come in; the expression over the plan's own column names goes out, or
an error with its place and the names that would have been right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot import exp, parse_one

from headgate.catalog import addresses
from headgate.catalog.catalog import Catalog
from headgate.cql import calls
from headgate.cql.dialect import Cql
from headgate.cql.inputs import CURRENT_TIME, Scope, check_conditions
from headgate.cql.syntax import StreamOf, StreamWindow
from headgate.cql.trees import (
    annotated,
    column_named,
    connected,
    has_subquery,
    replaced_by,
    replaced_outside_subquery,
    type_of,
    with_safe_division,
)
from headgate.errors import NotYet, Place, UserError, nearest, quoted
from headgate.plan.expressions import INTEGRAL

DASHED = re.compile(r"[A-Za-z_]\w*(?:-[A-Za-z_]\w*)+")
"""A name with dashes, as some published queries write it; SQL reads a subtraction."""


class Resolver:
    """Resolves the names of one query's expressions against the catalog and the query's scopes."""

    def __init__(self, text: str, catalog: Catalog, origin: str) -> None:
        self.text = text
        self.catalog = catalog
        self.origin = origin
        self.whole = Place(text, 0, len(text), origin)

    def place(self, tree: exp.Expression | None) -> Place:
        """The place of a tree in the user's text; the whole query if none of its words has a place."""
        if tree is None:
            return self.whole
        if "start" in tree.meta and isinstance(
            tree, StreamWindow | exp.Identifier | exp.Anonymous | exp.Command | exp.DataType
        ):
            end = tree.meta["end"] + (0 if isinstance(tree, StreamWindow | exp.Command | exp.DataType) else 1)
            return Place(self.text, tree.meta["start"], end, self.origin)
        spans = [
            node.meta for node in tree.find_all(exp.Identifier, exp.Anonymous, StreamWindow) if "start" in node.meta
        ]
        if spans:
            first = min(spans, key=lambda meta: meta["start"])
            last = max(spans, key=lambda meta: meta["end"])
            whole = isinstance(tree, exp.Column | exp.Func | exp.Condition | exp.Alias)
            end = (last if whole else first)["end"] + 1
            return Place(self.text, first["start"], end, self.origin)
        if "start" in tree.meta:
            return Place(self.text, tree.meta["start"], tree.meta["end"], self.origin)
        return self.whole

    def conditions(self, conditions: list[exp.Expression], scope: Scope) -> list[exp.Expression]:
        """Resolves the names in conditions, and refuses what is not a condition."""
        check_conditions(self, conditions)
        resolved = [self.resolve(condition, scope) for condition in conditions]
        for written, condition in zip(conditions, resolved, strict=True):
            self.refuse_value(condition, scope.types, written)
        return resolved

    def refuse_value(
        self, condition: exp.Expression, types: dict[str, str], written: exp.Expression | None = None
    ) -> None:
        """Refuses a value that is not BOOLEAN where a condition is needed, also below AND, OR and NOT."""
        for part in connected(condition):
            if isinstance(part, exp.Predicate | exp.Query | exp.Subquery):
                continue
            kind = type_of(annotated(part, types))
            if kind not in ("BOOLEAN", "UNKNOWN", "NULL", "VOID"):
                place = self.place(written if part is condition and written is not None else part)
                hint = (
                    "Compare it with something, such as <> 0."
                    if kind in INTEGRAL
                    else "Compare it with something, or CAST it."
                )
                raise UserError("wrong-type", f"a condition is needed here, and this is {kind}", place=place, hint=hint)

    def resolve(self, tree: exp.Expression, scope: Scope, nested: bool = False) -> exp.Expression:
        """Rewrites an expression to the plan's column names; with `nested`, subqueries in it are left for later."""
        self.check_expression(tree, nested)
        if self.catalog.permissions is not None:
            calls.refuse_called(tree, self.whole)
        expanded = replaced_by(tree.copy(), self.expanded_call)

        def replaced(node: exp.Expression) -> exp.Expression | None:
            return replaced_outside_subquery(node, replaced) or self.column(node, scope)

        resolved = with_safe_division(replaced_by(expanded, replaced), scope.types)
        for choice in resolved.find_all(exp.If, exp.Filter):
            if isinstance(choice, exp.Filter):
                self.refuse_value(choice.expression.this, scope.types)
            elif not (isinstance(choice.parent, exp.Case) and choice.parent.this):  # CASE x WHEN 1 compares
                self.refuse_value(choice.this, scope.types)
        return resolved

    def expanded_call(self, node: exp.Expression) -> exp.Expression | None:
        """Expands a call of a function defined in SQL to its body, with the arguments in place."""
        if not isinstance(node, exp.Anonymous):
            return None
        function = self.catalog.functions.get(node.name.lower()) or addresses.FUNCTIONS.get(node.name.lower())
        if function is None:
            return None
        if len(node.expressions) != len(function.parameters):
            raise UserError(
                "wrong-arguments",
                f'function "{function.name}" takes {len(function.parameters)} arguments',
                place=self.place(node),
            )
        arguments = {
            parameter.lower(): replaced_by(argument.copy(), self.expanded_call)
            for parameter, argument in zip(function.parameters, node.expressions, strict=True)
        }

        def filled(inner: exp.Expression) -> exp.Expression | None:
            if isinstance(inner, exp.Column) and inner.name.lower() in arguments:
                return exp.paren(arguments[inner.name.lower()].copy())
            return None

        body = parse_one(function.body, dialect=Cql)
        return exp.paren(replaced_by(body, filled), copy=False)

    def check_expression(self, tree: exp.Expression, nested: bool = False) -> None:
        """Refuses a subquery, a parameter or a relation-to-stream operator inside an expression."""
        if not nested and has_subquery(tree):
            raise NotYet("a subquery in an expression", place=self.place(tree))
        for parameter in tree.find_all(exp.Placeholder, exp.Parameter):
            raise UserError("syntax", "a parameter has no value here", place=self.place(parameter))
        for stream in tree.find_all(StreamOf):
            raise UserError(
                "operator-in-list",
                f"{stream.args['kind']} must be around the whole select list",
                place=self.place(stream),
            )

    def column(self, node: exp.Expression, scope: Scope) -> exp.Expression | None:
        """Finds the column that a name means, in this query or in one around it; None if the node is no column."""
        if not isinstance(node, exp.Column) or node.meta.get("resolved"):
            return None
        if isinstance(node.this, exp.Star):
            raise UserError("syntax", "* cannot stand here", place=self.place(node))
        name, table = node.name, node.table
        if not table and name.lower() in scope.merged:
            return scope.merged[name.lower()].copy()
        if node.args.get("db"):
            table, name = node.args["db"].name, node.table  # a.b.c: column b, field c
        candidates = [item for item in scope.items if not table or item.alias.lower() == table.lower()]
        found = [item.inner[name.lower()] for item in candidates if name.lower() in item.inner]
        if len(found) == 1:
            inner = column_named(found[0], node)
            return exp.Dot(this=inner, expression=node.this.copy()) if node.args.get("db") else inner
        if len(found) > 1:
            owners = [item.alias for item in candidates if name.lower() in item.inner]
            raise UserError(
                "ambiguous-column",
                f'column "{name}" stands in more than one input',
                place=self.place(node),
                detail=f"It is in {quoted(owners)}.",
                hint=f"Write {owners[0]}.{name}.",
            )
        if scope.outer is not None and self.knows(node, scope.outer):
            found_there = self.column(node, scope.outer)
            if isinstance(found_there, exp.Column) and found_there.name in scope.copies:
                return column_named(scope.copies[found_there.name], node)
            return found_there
        if table and not candidates:
            owner = [item for item in scope.items if table.lower() in item.inner]
            if len(owner) == 1:  # a struct column and its field
                return exp.Dot(this=column_named(owner[0].inner[table.lower()], node), expression=node.this.copy())
            aliases = [item.alias for item in scope.items if item.alias]
            raise UserError(
                "no-such-input",
                f'"{table}" is not in FROM',
                place=self.place(node),
                detail=f"FROM has {quoted(aliases)}.",
                hint=nearest(table, aliases),
            )
        if not table and name.lower() == CURRENT_TIME:
            return self.current_time(node, scope)
        where = f'"{candidates[0].alias}"' if len(candidates) == 1 and candidates[0].alias else "FROM"
        raise self.no_such_column(node, where, [name for item in candidates for name in item.visible])

    def current_time(self, node: exp.Expression, scope: Scope) -> exp.Expression:
        """The column that CURRENT_TIME means: the instant of the answer.

        Only a row that lives for one instant has one value for it, as beside a stream [NOW]; elsewhere the answer would
        change at every instant, and CURRENT_TIME is refused.
        """
        if scope.current is not None:
            return column_named(scope.current, node)
        raise UserError(
            "not-deterministic",
            "CURRENT_TIME is the instant of the answer, which changes at every instant",
            place=self.place(node),
            detail="It has one value for a row only where the row lives for one instant: beside a stream [NOW] in "
            "FROM.",
            hint="FROM s [NOW], ..., or ELEMENT_TIME for the timestamp of a tuple.",
        )

    def knows(self, node: exp.Column, scope: Scope) -> bool:
        """Whether a query, or one around it, has the column."""
        name, table = node.name.lower(), node.table.lower()
        if any(name in item.inner and (not table or item.alias.lower() == table) for item in scope.items):
            return True
        return scope.outer is not None and self.knows(node, scope.outer)

    def no_such_column(self, column: exp.Expression, where: str, known: Iterable[str]) -> UserError:
        """The error for a column that does not exist, with the columns that do and the nearest name."""
        columns = list(known)
        start = column.this.meta.get("start")
        dashed = next((found for found in DASHED.finditer(self.text) if found.start() == start), None)
        if dashed is not None:
            place = Place(self.text, dashed.start(), dashed.end(), self.origin)
            hint = f"If it is one name, write `{dashed.group()}`; if not, put spaces around the minus."
            return UserError("foreign-construct", f'a name with a dash, "{dashed.group()}"', place=place, hint=hint)
        return UserError(
            "no-such-column",
            f'column "{column.name}" does not exist in {where}',
            place=self.place(column.this),
            detail=f"Columns of {where} are {quoted(columns)}.",
            hint=nearest(column.name, columns),
        )

    def expand(self, projections: Iterable[exp.Expression], scope: Scope) -> list[exp.Expression]:
        """The select list with every * written out."""
        result: list[exp.Expression] = []
        for projection in projections:
            star = isinstance(projection, exp.Star)
            if not star and not (isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star)):
                result.append(projection)
                continue
            shape = projection if star else projection.this
            if any(shape.args.get(part) for part in ("replace", "rename", "ilike")):
                raise NotYet("REPLACE, RENAME or ILIKE behind *", place=self.place(projection))
            left_out = {column.name.lower(): column for column in shape.args.get("except_") or ()}
            items = (
                scope.items
                if star
                else [item for item in scope.items if item.alias.lower() == projection.table.lower()]
            )
            if not items:
                aliases = [item.alias for item in scope.items if item.alias]
                raise UserError(
                    "no-such-input",
                    f'"{projection.table}" is not in FROM',
                    place=self.place(projection.args["table"]),
                    detail=f"FROM has {quoted(aliases)}.",
                    hint=nearest(projection.table, aliases),
                )
            qualify = len(scope.items) > 1
            once = set(scope.merged) if star else set()
            shown = [exp.Column(this=exp.to_identifier(name, quoted=True)) for name in _merged_columns(scope, once)]
            for item in items:
                for visible in item.visible:
                    if visible.lower() in once:
                        continue
                    table = exp.to_identifier(item.alias) if item.alias and qualify else None
                    shown.append(exp.Column(this=exp.to_identifier(visible, quoted=True), table=table))
            known = {column.name.lower() for column in shown}
            for name, column in left_out.items():
                if name not in known:
                    raise self.no_such_column(column, "the select list", [column.name for column in shown])
            result += [column for column in shown if column.name.lower() not in left_out]
        return result

    def output_name(self, item: exp.Expression) -> str:
        """The name of a column of the result: its alias, its column, its function, or `value`."""
        if isinstance(item, exp.Alias):
            return item.alias
        if isinstance(item, exp.Column):
            return item.name
        if isinstance(item, exp.Anonymous):
            return item.name.lower()
        if isinstance(item, exp.Func) and not isinstance(item, exp.Cast | exp.Connector):
            return item.sql_name().lower()
        return "value"


def _merged_columns(scope: Scope, merged: set[str]) -> list[str]:
    """The spelling of the columns that USING merged, in the order of FROM."""
    written = {name.lower(): name for item in reversed(scope.items) for name in item.visible if name.lower() in merged}
    ordered = [name.lower() for item in scope.items for name in item.visible if name.lower() in merged]
    return [written[name] for name in dict.fromkeys(ordered)]
