"""Works on the syntax trees of expressions: looks into them, replaces parts, infers types.

It also turns them into the plan's expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types

from headgate.errors import UserError
from headgate.plan.derived import fresh
from headgate.plan.expressions import INTEGRAL, Expression
from headgate.plan.nodes import Equality, Filter, Node, Relation
from headgate.plan.nodes.operator import StreamOperator
from headgate.sql import UNKNOWN, Sql, is_plain
from headgate.sql.dialect import SparkSql
from headgate.sql.functions import AGGREGATES
from headgate.sql.printer import printed


def as_relation(node: Node) -> Relation:
    """The node as a relation, for the type checker; a stream here would be a defect."""
    assert not isinstance(node, StreamOperator)
    return node


def unaliased(item: exp.Expression) -> exp.Expression:
    """The expression without its AS."""
    return item.this if isinstance(item, exp.Alias) else item


def conjuncts(tree: exp.Expression) -> list[exp.Expression]:
    """The conditions that AND ties together in a condition."""
    tree = tree.unnest()
    if not isinstance(tree, exp.And):
        return [tree]
    return [part for one in operands(tree.copy()) for part in (conjuncts(one) if isinstance(one, exp.Paren) else [one])]


def conjunction(conditions: Sequence[exp.Expression]) -> exp.Expression:
    """One condition that ties all of these together by AND."""
    return balanced_chain(
        exp.And, [exp.paren(one) if isinstance(one, exp.Connector) else one.copy() for one in conditions]
    )


def is_aggregate(tree: exp.Expression) -> bool:
    """Whether the node is a call of an aggregate: one of SQL, of Spark, or registered by the user."""
    if isinstance(tree, exp.Anonymous):
        return tree.name.lower() in AGGREGATES or bool(tree.meta.get("aggregate"))
    return isinstance(tree, exp.AggFunc)


def column_named(name: str, written: exp.Expression | None = None) -> exp.Column:
    """A column of the plan by its name, with the place and the spelling of the user's column it stands for."""
    identifier = exp.to_identifier(name, quoted=not is_plain(name))
    column = exp.Column(this=identifier)
    if isinstance(written, exp.Column):
        identifier.meta.update({key: written.this.meta[key] for key in ("start", "end") if key in written.this.meta})
        column.meta["written"] = written.meta.get("written", written.name)
    return column


def replaced_by(tree: exp.Expression, replacement: object) -> exp.Expression:
    """Replaces every outermost node for which `replacement` gives another one."""
    assert callable(replacement)
    new = replacement(tree)
    if new is not None:
        return new
    for child in list(tree.iter_expressions()):
        changed = replaced_by(child, replacement)
        if changed is not child:
            child.replace(changed)
    return tree


CHAINED = (exp.And, exp.Or, exp.DPipe)
"""Associative operators."""


def operands(tree: exp.Expression) -> list[exp.Expression]:
    """The operands of a chain of one operator, in order: a, b, c of `a AND b AND c`."""
    found: list[exp.Expression] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if type(node) is type(tree):
            waiting += [node.expression, node.this]
        else:
            found.append(node)
    return found


def balanced_chain(operator: type[exp.Expression], parts: Sequence[exp.Expression]) -> exp.Expression:
    """Chains operands by an operator, as a tree that is as flat as possible."""
    level = list(parts)
    while len(level) > 1:
        pairs = [operator(this=one, expression=two) for one, two in zip(level[::2], level[1::2], strict=False)]
        level = [*pairs, *(level[-1:] if len(level) % 2 else [])]
    return level[0]


def balanced(tree: exp.Expression) -> exp.Expression:
    """Flattens long chains of AND, OR and concatenation, so that recursion is not as deep as the chains are long.

    Spark takes any number of AND and OR, but its stack limits a chain of ||: a long one becomes a call of CONCAT.
    """
    chains = [node for node in tree.walk() if isinstance(node, CHAINED) and type(node.parent) is not type(node)]
    for chain in chains:
        parts = operands(chain)
        if len(parts) > 8:
            copies = [part.copy() for part in parts]
            if isinstance(chain, exp.DPipe):
                flat = exp.Concat(expressions=copies, safe=True, coalesce=False)
            else:
                flat = balanced_chain(type(chain), copies)
            flat.meta.update(chain.meta)
            tree = flat if chain is tree else tree
            chain.replace(flat)
    return tree


def depth(tree: exp.Expression) -> int:
    """The depth of a tree, in nodes. A call counts twice: to print it takes about twice as many steps."""
    deepest, waiting = 0, [(tree, 0)]
    while waiting:
        node, above = waiting.pop()
        level = above + (
            2 if isinstance(node, exp.Func) and not isinstance(node, exp.Connector | exp.Case | exp.If) else 1
        )
        deepest = max(deepest, level)
        waiting += [(child, level) for child in node.iter_expressions()]
    return deepest


def nodes_in(tree: exp.Expression) -> int:
    """How many nodes a tree has."""
    return sum(1 for _ in tree.walk())


def read_columns(tree: exp.Expression) -> set[str]:
    """The columns that an expression reads, in lower case."""
    return {column.name.lower() for column in tree.find_all(exp.Column)}


def marked_resolved(column: exp.Expression) -> exp.Expression:
    """Marks a column as resolved already: its name is the plan's, and it is not looked up again."""
    column.meta["resolved"] = True
    return column


def equalities(
    left: Relation, right: Relation, waiting: Iterable[exp.Expression]
) -> tuple[list[Equality], list[exp.Expression]]:
    """The conditions that equate a value of the left side with one of the right, for the plan and as written."""
    first, second = types_of(left), types_of(right)
    mine, theirs = {name.lower() for name in first}, {name.lower() for name in second}
    pairs, used = [], []
    for tree in waiting:
        if not isinstance(tree, exp.EQ | exp.NullSafeEQ):
            continue
        one, two = tree.this, tree.expression
        if read_columns(one) <= theirs and read_columns(two) <= mine:
            one, two = two, one
        if read_columns(one) and read_columns(two) and read_columns(one) <= mine and read_columns(two) <= theirs:
            safe = isinstance(tree, exp.NullSafeEQ)
            pairs.append(Equality(as_expression(one, first), as_expression(two, second), safe))
            used.append(tree)
    return pairs, used


def types_of(node: Node) -> dict[str, Sql]:
    """The types of a node's columns, by name."""
    return {column.name: column.type for column in node.columns}


def annotated(tree: exp.Expression, types: Mapping[str, Sql]) -> exp.Expression:
    """A copy of the tree with types on every node."""
    copy = tree.copy()
    select = exp.Select(expressions=[copy], from_=exp.From(this=exp.to_table("t")))
    for column in select.find_all(exp.Column):
        column.set("table", exp.to_identifier("t"))
    schema = {"t": {name.lower(): kind for name, kind in types.items() if kind != "UNKNOWN"}}
    for column in select.find_all(exp.Column):
        column.set("this", exp.to_identifier(column.name.lower(), quoted=True))
    try:
        annotate_types(select, schema=schema if schema["t"] else None, dialect=SparkSql)
    except (AttributeError, KeyError, TypeError, ValueError):  # sqlglot meets with a tree that means nothing
        raise UserError("syntax", "this expression has no meaning") from None
    return select.expressions[0]


def connected(condition: exp.Expression) -> Iterator[exp.Expression]:
    """The operands of AND, OR and NOT in a condition, however deep they are nested."""
    waiting = [condition]
    while waiting:
        match waiting.pop().unnest():
            case exp.Connector() as both:
                waiting += [both.expression, both.this]
            case exp.Not() as negated:
                waiting.append(negated.this)
            case part:
                yield part


def type_of(tree: exp.Expression) -> Sql:
    """The type of an annotated tree, as Spark writes it."""
    kind = tree.type
    return UNKNOWN if kind is None or kind.this == exp.DataType.Type.UNKNOWN else printed(kind)


def _is_pmod(tree: exp.Expression) -> bool:
    return isinstance(tree, exp.Anonymous) and tree.name.lower() == "pmod" and len(tree.expressions) == 2


def _is_zero(divisor: exp.Expression) -> bool:
    """Whether a divisor may be zero: all but a literal that is not zero."""
    number = divisor.unnest()
    number = number.this if isinstance(number, exp.Neg) else number
    return not (
        isinstance(number, exp.Literal) and not number.is_string and number.name.strip("0.eE+-")
    ) and not isinstance(number, exp.Nullif)


def with_safe_division(tree: exp.Expression, types: Mapping[str, Sql]) -> exp.Expression:
    """Gives division the meaning of CQL: / of integers is an integer, and a divisor of zero gives null.

    This holds for /, %, DIV, MOD and PMOD. A query that runs for months must not fail at the one instant at which a
    count is zero.
    """
    for node in [tree, *tree.find_all(exp.Mod, exp.IntDiv, exp.Anonymous)]:
        if isinstance(node, exp.Mod | exp.IntDiv) and _is_zero(node.expression):
            node.set("expression", exp.Nullif(this=node.expression.unnest(), expression=exp.Literal.number(0)))
        elif _is_pmod(node) and _is_zero(node.expressions[1]):
            node.expressions[1].replace(exp.Nullif(this=node.expressions[1].copy(), expression=exp.Literal.number(0)))
    if tree.find(exp.Div) is None:
        return tree
    holder = exp.Paren(this=tree.copy())
    twins = list(zip(holder.this.find_all(exp.Div), annotated(holder.this, types).find_all(exp.Div), strict=True))
    for written, typed in twins:
        if _is_zero(written.expression):
            written.set("expression", exp.Nullif(this=written.expression.unnest(), expression=exp.Literal.number(0)))
        if {type_of(typed.this), type_of(typed.expression)} <= INTEGRAL:
            written.replace(exp.IntDiv(this=written.this, expression=written.expression))
        else:
            written.set("typed", False)
    return holder.this


def _type_of_column(tree: exp.Expression, types: Mapping[str, Sql]) -> Sql | None:
    """The type of a column by its name alone, as `annotated` would find it; None for any other expression.

    Most expressions are nothing but a column, and to annotate a tree takes much longer than to look into the types.
    """
    if not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Identifier) or tree.table:
        return None
    known = [kind for name, kind in types.items() if name.lower() == tree.name.lower() and kind != "UNKNOWN"]
    return _as_written(known[-1]) if known else None


def _as_written(kind: str) -> Sql:
    """A type as sqlglot writes it for Spark."""
    return _kept_type(kind) if len(kind) <= LONGEST_KEPT else _kept_type.__wrapped__(kind)


@lru_cache(maxsize=1_000)
def _kept_type(kind: str) -> Sql:
    return printed(exp.DataType.build(kind, dialect="spark"))


LONGEST_KEPT = 1_000
"""So many letters may a type have that is kept as sqlglot writes it."""


def as_expression(tree: exp.Expression, types: Mapping[str, Sql]) -> Expression:
    """The plan's expression for a resolved tree: its SQL, its type and the columns it reads."""
    column = tree.name if isinstance(tree, exp.Column) else None
    kind = _type_of_column(tree, types) or type_of(annotated(tree, types))
    if kind == "UNKNOWN" and column is not None:
        kind = next((kind for name, kind in types.items() if name.lower() == column.lower()), UNKNOWN)
    if kind == "UNKNOWN" and isinstance(tree, exp.TimestampTrunc | exp.DateTrunc):
        kind = Sql("TIMESTAMP") if isinstance(tree, exp.TimestampTrunc) else Sql("DATE")
    return Expression(printed(tree), kind, frozenset(read_columns(tree)), column)


def filtered(node: Relation, conditions: list[exp.Expression]) -> Relation:
    """The node under a filter by these conditions; the node itself if there are none."""
    if not conditions:
        return node
    return Filter(node, as_expression(conjunction(conditions), types_of(node)))


def call_name(node: exp.Expression) -> str:
    """The name of the column that holds the result of a call."""
    inner = node
    while isinstance(inner, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        inner = inner.this
    base = inner.name.lower() if isinstance(inner, exp.Anonymous) else inner.sql_name().lower()
    column = next(inner.find_all(exp.Column), None)
    return f"{base}_{column.name}" if column is not None and column.name.isidentifier() else base


def unique(wanted: Iterable[str], others: Iterable[str] = ()) -> list[str]:
    """Makes names unique by numbers behind them, also against those in use; strips leading underscores."""
    taken: set[str] = set(others)
    return [fresh(name.lstrip("_") or "value", taken) for name in wanted]


def aggregate_calls(tree: exp.Expression) -> list[exp.Expression]:
    """The outermost aggregate calls of an expression, with their FILTER."""
    if isinstance(tree, exp.Subquery | exp.Select):
        return []
    if isinstance(tree, exp.Window):  # the function itself is none, but its arguments may have some
        parts = [*tree.this.iter_expressions(), *(tree.args.get("partition_by") or []), tree.args.get("order")]
        return [call for part in parts if part is not None for call in aggregate_calls(part)]
    if isinstance(tree, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls) or is_aggregate(tree):
        return [tree]
    return [call for child in tree.iter_expressions() for call in aggregate_calls(child)]


# subqueries in expressions


def has_subquery(tree: exp.Expression) -> bool:
    """Whether an expression contains a subquery."""
    return tree.find(exp.Subquery, exp.Select, exp.Exists, exp.SetOperation) is not None


def is_predicate(tree: exp.Expression) -> bool:
    """Whether the node is a predicate over a subquery: EXISTS, IN, or a comparison with ANY or ALL."""
    match tree:
        case exp.Exists():
            return True
        case exp.In():
            return tree.args.get("query") is not None
        case exp.EQ() | exp.NEQ() | exp.GT() | exp.GTE() | exp.LT() | exp.LTE():
            return isinstance(tree.expression, exp.All | exp.Any)
        case _:
            return False


def replaced_outside_subquery(
    tree: exp.Expression, replaced: Callable[[exp.Expression], exp.Expression | None]
) -> exp.Expression | None:
    """Replaces only the outer side of a predicate over a subquery, not the subquery; None for any other node."""
    if isinstance(tree, exp.Subquery | exp.Select | exp.SetOperation):
        return tree
    if not is_predicate(tree):
        return None
    if not isinstance(tree, exp.Exists):
        tree.set("this", replaced_by(tree.this, replaced))
    return tree
