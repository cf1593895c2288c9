"""Operators made of others: semi-, anti- and outer joins, except and intersect.

    L ⋉ R = L ⋈ distinct(keys of R)          L ▷ R = L - (L ⋉ R)          L ⟕ R = (L ⋈ R) + (L ▷ R, padded with nulls)

Counts are signed, so taking away is a union with a weight of -1. None of these needs a rule of its own.
"""

from __future__ import annotations

from typing import Literal

from headgate.plan.expressions import Call, Expression, Named
from headgate.plan.nodes import Aggregate, Distinct, Equality, Filter, Join, Project, Relation, Union, Weight, names
from headgate.plan.nodes.operator import column_of
from headgate.sql import BIGINT, BOOLEAN, EMPTY, Column, Sql, spelled

MINUS_ONE = Expression(Sql("-1"), Sql("INT"), frozenset())


def column(node: Relation, name: str) -> Expression:
    kind = next(found.type for found in node.columns if found.name == name)
    return column_of(name, kind)


def fresh(name: str, taken: set[str]) -> str:
    """The name, with a number behind it if it is taken; it is taken from now on."""
    candidate, number = name, 1
    while candidate.lower() in taken:
        number += 1
        candidate = f"{name}_{number}"
    taken.add(candidate.lower())
    return candidate


def constant(sql: Sql, kind: Sql) -> Expression:
    return Expression(sql, kind, frozenset())


def kept(node: Relation, wanted: tuple[str, ...]) -> Relation:
    """Only these columns of the node."""
    return Project(node, tuple(Named(name, column(node, name)) for name in wanted))


def renamed(node: Relation, prefix: str) -> Relation:
    return Project(node, tuple(Named(f"{prefix}{name}", column(node, name)) for name in names(node)))


def minus(left: Relation, right: Relation) -> Relation:
    """Bag difference where the right side is known to be a part of the left."""
    return Union(left, Weight(right, MINUS_ONE))


def semi_join(
    left: Relation, right: Relation, equalities: tuple[Equality, ...], condition: Expression | None
) -> Relation:
    """The rows of the left side that have a partner."""
    if condition is None:
        keys = tuple(Named(f"m{number + 1}", equality.right) for number, equality in enumerate(equalities))
        partners = Distinct(Project(right, keys or (Named("m0", constant(Sql("1"), Sql("INT"))),)), partners=True)
        matched = Join(
            left,
            partners,
            tuple(
                Equality(e.left, column(partners, key.name), e.null_safe)
                for e, key in zip(equalities, keys, strict=True)
            ),
            None,
        )
        return kept(matched, names(left))
    pairs = Join(left, right, equalities, condition)
    matched_rows = renamed(Distinct(kept(pairs, names(left)), partners=True), "m_")
    same = tuple(
        Equality(column(left, name), column(matched_rows, f"m_{name}"), null_safe=True) for name in names(left)
    )
    return kept(Join(left, matched_rows, same, None), names(left))


def anti_join(
    left: Relation, right: Relation, equalities: tuple[Equality, ...], condition: Expression | None
) -> Relation:
    """The rows of the left side that have no partner."""
    return minus(left, semi_join(left, right, equalities, condition))


def outer_join(
    side: Literal["LEFT", "RIGHT", "FULL"],
    left: Relation,
    right: Relation,
    equalities: tuple[Equality, ...],
    condition: Expression | None,
) -> Relation:
    inner: Relation = Join(left, right, equalities, condition)
    result = inner
    if side in ("LEFT", "FULL"):
        alone = anti_join(left, right, equalities, condition)
        result = Union(result, padded(alone, inner.columns))
    if side in ("RIGHT", "FULL"):
        turned = tuple(Equality(e.right, e.left, e.null_safe) for e in equalities)
        alone = anti_join(right, left, turned, condition)
        result = Union(result, padded(alone, inner.columns))
    return result


def padded(node: Relation, columns: tuple[Column, ...]) -> Relation:
    """The node with nulls in the columns it does not have."""
    own = set(names(node))
    return Project(node, tuple(Named(c.name, column(node, c.name) if c.name in own else null(c.type)) for c in columns))


def null(kind: Sql) -> Expression:
    return constant(Sql("NULL") if kind == "UNKNOWN" else f"CAST(NULL AS {kind})", kind)


def set_difference(left: Relation, right: Relation, every: bool) -> Relation:
    """EXCEPT: rows of the left side that the right has not; with `every`, as often as the left has more of them."""
    return _compared(
        left, right, Sql("sides_l > 0 AND sides_r = 0"), Sql("GREATEST(sides_l - sides_r, 0)") if every else EMPTY
    )


def intersection(left: Relation, right: Relation, every: bool) -> Relation:
    """INTERSECT: rows that both sides have; with `every`, as often as the side that has fewer."""
    return _compared(
        left, right, Sql("sides_l > 0 AND sides_r > 0"), Sql("LEAST(sides_l, sides_r)") if every else EMPTY
    )


def _compared(left: Relation, right: Relation, condition: Sql, times: Sql) -> Relation:
    """Count each row on both sides, then keep it where the condition holds, or as often as `times` says."""
    columns = names(left)
    marked = Union(_marked(left, columns, Sql("1"), Sql("0")), _marked(right, columns, Sql("0"), Sql("1")))
    counted = Aggregate(
        marked,
        tuple(Named(name, column(left, name)) for name in columns),
        tuple(
            Call(
                name,
                "sum",
                f"SUM({spelled(name)})",
                BIGINT,
                (column(marked, name),),
                False,
                None,
                frozenset({name}),
            )
            for name in ("sides_l", "sides_r")
        ),
        row_when_empty=False,
        compares=True,
    )
    both = frozenset({"sides_l", "sides_r"})
    if times:
        return kept(Weight(counted, Expression(times, BIGINT, both)), columns)
    return kept(Filter(counted, Expression(condition, BOOLEAN, both)), columns)


def _marked(node: Relation, columns: tuple[str, ...], left: Sql, right: Sql) -> Relation:
    items = [Named(new, column(node, old)) for new, old in zip(columns, names(node), strict=True)]
    return Project(
        node, (*items, Named("sides_l", constant(left, Sql("INT"))), Named("sides_r", constant(right, Sql("INT"))))
    )
