"""ON ERROR SKIP, as the reference means it: a row that cannot be evaluated is left out, as if a condition ruled it out.

Each SELECT is rewritten for DuckDB, whose TRY gives null where an expression raises an error. Conditions are tried.
The rows that they keep must give a value for each expression of the select list, or where rows are grouped, for the
keys and for the arguments of aggregates; then the rows of the groups must, for what stands above the aggregates.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from headgate.testing.reference_sql import has_aggregate


def leaving_out(tree: exp.Expression) -> exp.Expression:
    """The query without the rows whose own evaluation fails. Inner queries come first."""
    for select in reversed(list(tree.find_all(exp.Select))):
        new = _select(select)
        if select is tree:
            tree = new
        elif new is not select:
            select.replace(new)
    return tree


def _select(select: exp.Select) -> exp.Select:
    for join in select.args.get("joins") or ():
        if join.args.get("on") is not None:
            join.set("on", _tried(join.args["on"]))
    for call in [one for one in select.find_all(exp.Filter) if one.find_ancestor(exp.Select) is select]:
        for argument in [
            one for given in call.this.iter_expressions() for one in _values(given)
        ]:  # DuckDB evaluates it
            argument.replace(exp.Case(ifs=[exp.If(this=call.expression.this.copy(), true=argument.copy())]))
    items = [item.unalias() for item in select.expressions]
    grouped = bool(select.args.get("group")) or any(map(has_aggregate, [*items, select.args.get("having")]))
    evaluated = _of_rows(items, select) if grouped else _of_windows(items)
    conditions = [_tried(select.args["where"].this)] if select.args.get("where") else []
    conditions += [_evaluates(evaluated)] if evaluated else []
    if conditions:
        select.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))
    return _above_groups(select) if grouped else select


def _tried(tree: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this="TRY", expressions=[tree.copy()])


def _evaluates(trees: Iterable[exp.Expression]) -> exp.Expression:
    """The condition that all of these give a value, which may be null."""
    fields = [exp.PropertyEQ(this=exp.to_identifier(f"e{n}"), expression=one.copy()) for n, one in enumerate(trees)]
    return exp.not_(exp.Is(this=_tried(exp.Struct(expressions=fields)), expression=exp.null()))


def _of_windows(items: Iterable[exp.Expression]) -> list[exp.Expression]:
    """What is evaluated of each row for these items: of analytic functions, what they are computed from."""
    found: list[exp.Expression] = []
    for item in items:
        windows = list(item.find_all(exp.Window))
        if not windows:
            found += [] if isinstance(item, exp.Star | exp.Column) else [item]
        for window in windows:
            order = window.args.get("order")
            found += [*window.this.iter_expressions(), *(window.args.get("partition_by") or [])]
            found += [one.this for one in (order.expressions if order is not None else ())]
    return [one for one in found if not isinstance(one, exp.Star)]


def _calls(tree: exp.Expression | None) -> list[exp.Expression]:
    """The aggregates of an expression, with their FILTER."""
    if tree is None or isinstance(tree, exp.Subquery):
        return []
    if isinstance(tree, exp.Filter | exp.AggFunc):
        return [tree]
    return [call for child in tree.iter_expressions() for call in _calls(child)]


def _of_rows(items: list[exp.Expression], select: exp.Select) -> list[exp.Expression]:
    """What is evaluated of each row that is grouped: keys, and arguments where the FILTER of the call holds."""
    group = select.args.get("group")
    found = list(group.expressions) if group is not None else []
    for call in [call for item in [*items, select.args.get("having")] for call in _calls(item)]:
        function, condition = (call.this, call.expression.this) if isinstance(call, exp.Filter) else (call, None)
        given = [part for one in function.iter_expressions() for part in _values(one)]
        found += [*given, *([condition] if condition is not None else [])]
    return found


def _values(argument: exp.Expression) -> list[exp.Expression]:
    if isinstance(argument, exp.Distinct):
        return list(argument.expressions)
    return [] if isinstance(argument, exp.Star) else [argument]


def _above_groups(select: exp.Select) -> exp.Select:
    """The groups as a table, and above it what is computed of them: DuckDB tries nothing that has aggregates in it."""
    group, having = select.args.get("group"), select.args.pop("having", None)
    named: dict[str, tuple[str, exp.Expression]] = {}
    for key in group.expressions if group is not None else ():
        named.setdefault(key.sql(), (f"k{len(named)}", key))
    for tree in [*select.expressions, having]:
        for call in _calls(tree):
            named.setdefault(call.sql(), (f"k{len(named)}", call))

    def replaced(node: exp.Expression) -> exp.Expression:
        return exp.column(named[node.sql()][0], table="groups") if node.sql() in named else node

    names = [item.alias_or_name for item in select.expressions]
    items = [item.unalias().copy().transform(replaced) for item in select.expressions]
    outer = exp.Select(
        expressions=[
            exp.alias_(item.copy(), name, quoted=True) if name else item
            for item, name in zip(items, names, strict=True)
        ]
    )
    conditions = [_evaluates(items)]
    conditions += [_tried(having.this.copy().transform(replaced))] if having is not None else []
    for clause in ("distinct", "with_"):
        if select.args.get(clause):
            outer.set(clause, select.args.pop(clause))
    select.set("expressions", [exp.alias_(tree.copy(), name) for name, tree in named.values()])
    outer.set(
        "from_", exp.From(this=exp.Subquery(this=select.copy(), alias=exp.TableAlias(this=exp.to_identifier("groups"))))
    )
    outer.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))
    return outer
