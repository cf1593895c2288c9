"""The features of a query as words, so that a test can say which operators the random queries have."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from headgate.cql.script import parse
from headgate.cql.syntax import StreamOf
from headgate.plan.nodes import Aggregate, Join, Node, Range, Rows, Rstream, Window, children
from headgate.plan.temporal import partner_until
from headgate.testing.cases import Case
from tools.duck import bound

EXPECTED = frozenset(
    """Scan Sample Stored Window Istream Dstream Rstream Rstream.every Filter Project Join Union Aggregate Weight Ranked Distinct Exploded
    Final final final-join merge-final temporal-join decreasing
    Now Unbounded Range Range.slide Rows Rows.by Rows.span Rows.slide Rows.step Values stamp
    left right full semi anti cross using natural inner-on comma
    union union-all except except-all intersect intersect-all
    group having filter distinct-in-aggregate rollup cube grouping-sets order limit offset analytic named-window qualify
    with view view-of-view query-in-from stream-in-from exists not-exists in not-in all any scalar correlated row-value
    subquery-in-having subquery-in-select without-from relation-with-key in-order list by depth-3""".split()
)


def features(case: Case) -> set[str]:
    """The features of a case: kinds of plan nodes, windows, and forms of the language."""
    trees = [parse(text)[0] for text in (case.query, *(view.query for view in case.views))]
    found = {word for tree in trees for node in tree.walk() for word in _of_syntax(node)}
    found |= {word for node in _nodes(bound(case)) for word in _of_plan(node)}
    names = {table.name for tree in trees[:1] for table in tree.find_all(exp.Table)}
    views = {view.name for view in case.views}
    found |= {"view"} if names & views else set()
    found |= (
        {"view-of-view"}
        if len(trees) > 2 and any(table.name in views for table in trees[2].find_all(exp.Table))
        else set()
    )
    found |= {"relation-with-key"} if names & case.keys.keys() else set()
    found |= {f"depth-{level}" for level in range(1, _depth(trees[0]) + 1)}
    return found


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from _nodes(child)


def _of_plan(node: Node) -> Iterator[str]:
    yield type(node).__name__
    match node:
        case Rstream(every=int()):
            yield "Rstream.every"
        case Window(frame=frame, stamp=stamp):
            yield type(frame).__name__
            parts = (
                ("slide",)
                if isinstance(frame, Range)
                else ("by", "span", "slide", "step")
                if isinstance(frame, Rows)
                else ()
            )
            yield from (f"{type(frame).__name__}.{part}" for part in parts if getattr(frame, part))
            yield from ["stamp"] if stamp else []
        case Join(left, right) if None not in partner_until(node) and left.endless and right.endless:
            yield "temporal-join"
        case Aggregate(keys=keys) if any(key.expression.sql.startswith("-") for key in keys):
            yield "decreasing"
        case _:
            pass


def _of_syntax(node: exp.Expression) -> Iterator[str]:
    match node:
        case exp.Join():
            words = [str(node.args.get(part) or "").lower() for part in ("method", "side", "kind")]
            yield from (word for word in words if word)
            yield (
                "using" if node.args.get("using") else "inner-on" if node.args.get("on") and not any(words) else "comma"
            )
        case exp.SetOperation():
            yield type(node).__name__.lower() + ("" if node.args.get("distinct") else "-all")
        case exp.Select() if node.args.get("final"):
            yield "final"
            yield from ["final-join"] if node.args.get("joins") else []
            yield from ["merge-final"] if node.args["from_"].this.find(exp.Union) else []
            yield from _of_syntax(_plain(node))
        case exp.Select():
            parts = {
                "group": "group",
                "having": "having",
                "order": "order",
                "limit": "limit",
                "offset": "offset",
                "qualify": "qualify",
                "windows": "named-window",
                "with_": "with",
            }
            yield from (word for part, word in parts.items() if node.args.get(part))
            if node.args.get("from_") is None:
                yield "without-from"
            if any(item.find(exp.Select) for item in node.expressions):
                yield "subquery-in-select"
            if node.args.get("having") and node.args["having"].find(exp.Select):
                yield "subquery-in-having"
            if any(column.table in ("x", "y") for column in node.find_all(exp.Column)) and _aliases(node) == {"z"}:
                yield "correlated"
        case exp.Subquery() if isinstance(node.parent, exp.From | exp.Join):
            yield "stream-in-from" if isinstance(node.this, StreamOf) else "query-in-from"
        case exp.Subquery() if not isinstance(node.parent, exp.In | exp.Exists | exp.All | exp.Any | exp.SetOperation):
            yield "scalar"
        case exp.Exists() | exp.In() if isinstance(node.parent, exp.Not):
            yield f"not-{type(node).__name__.lower()}"
        case exp.Exists() | exp.In() | exp.All() | exp.Any():
            yield type(node).__name__.lower()
        case exp.Tuple() if isinstance(node.parent, exp.In):
            yield "row-value"
        case exp.Window():
            yield "analytic"
        case exp.Filter():
            yield "filter"
        case exp.Distinct() if isinstance(node.parent, exp.AggFunc):
            yield "distinct-in-aggregate"
        case exp.First() | exp.Last() | exp.AnyValue():
            yield "in-order"
        case exp.ArrayAgg() | exp.ArrayUniqueAgg():
            yield "list"
        case exp.ArgMax() | exp.ArgMin():
            yield "by"
        case exp.Rollup() | exp.Cube():
            yield type(node).__name__.lower()
        case exp.GroupingSets():
            yield "grouping-sets"
        case _:
            pass


def _plain(select: exp.Select) -> exp.Select:
    copy = select.copy()
    copy.set("final", None)
    return copy


def _aliases(select: exp.Select) -> set[str]:
    from_ = select.args.get("from_")
    return {from_.this.alias} if from_ is not None else set()


def _depth(tree: exp.Expression) -> int:
    """How many selects stand inside each other."""
    inside = max((_depth(child) for child in tree.iter_expressions()), default=0)
    return inside + isinstance(tree, exp.Select)
