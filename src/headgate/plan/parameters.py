"""Parameters of queries in plans: `PARAMETER('q.least', t)` stands for the value that counts at the instant t.

A plan keeps the call. When it is compiled, the call becomes a CASE over the instants of the changes so far, so another
value from a later instant on changes the text of a program and nothing that it has computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from headgate.plan.expressions import Call, Expression
from headgate.plan.nodes import Node, domain
from headgate.sql import Sql, part
from headgate.ticks import Tick, TimeDomain

OPENING = re.compile(r"\bPARAMETER\(\s*'([^']*)'\s*,\s*", re.IGNORECASE)

Changes = Sequence[tuple[Tick | None, Sql]]
"""Instants in order, the first of them None, each with a value in SQL."""


def parameters(plan: Node) -> frozenset[str]:
    """The names of the parameters that a plan reads."""
    return frozenset(found[1] for text in _texts(plan) for found in OPENING.finditer(text))


def with_values(plan: Node, values: Mapping[str, Changes]) -> Node:
    """The plan with what each parameter is, in the place of its name."""
    if not any(OPENING.search(text) for text in _texts(plan)):
        return plan
    return _changed(plan, lambda sql: written_out(sql, values, domain(plan) is TimeDomain.TIMESTAMP))


def written_out(sql: Sql, values: Mapping[str, Changes], timestamps: bool = False) -> Sql:
    """A text of SQL with a CASE in the place of each parameter; `timestamps` if instants are timestamps."""
    position = 0
    while (found := OPENING.search(sql, position)) is not None:
        end, position = _closing(sql, found.end()), found.end()
        if found[1] not in values:
            continue
        when, changes = part(sql, found.end(), end), values[found[1]]
        value = changes[0][1]
        later = [(instant, one) for instant, one in changes if instant is not None]
        if later:
            cases = " ".join(
                f"WHEN {when} >= {f'TIMESTAMP_MICROS({instant})' if timestamps else instant} THEN {one}"
                for instant, one in reversed(later)
            )
            value = f"CASE {cases} ELSE {value} END"
        sql = f"{part(sql, 0, found.start())}({value}){part(sql, end + 1)}"
        position = found.start() + len(value) + 2
    return sql


def _closing(sql: str, start: int) -> int:
    """The position of the parenthesis that closes the call whose last argument begins here."""
    depth = 1
    for position in range(start, len(sql)):
        depth += (sql[position] == "(") - (sql[position] == ")")
        if not depth:
            return position
    return len(sql)


def _texts(value: object) -> Iterator[Sql]:
    waiting: list[object] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, tuple | frozenset):
            waiting.extend(one)
        elif isinstance(one, Expression | Call):
            yield one.sql
            if isinstance(one, Call):
                waiting.append(one.arguments)
                if one.condition is not None:
                    yield one.condition
        elif is_dataclass(one):
            waiting.extend(getattr(one, field.name) for field in fields(one))


def _changed(value: Any, change: Callable[[Sql], Sql]) -> Any:
    """A plan, or a part of one, with its texts of SQL changed."""
    match value:
        case tuple():
            return tuple(_changed(one, change) for one in value)
        case Expression():
            return replace(value, sql=change(value.sql))
        case Call():
            condition = None if value.condition is None else change(value.condition)
            arguments = tuple(_changed(one, change) for one in value.arguments)
            return replace(value, sql=change(value.sql), arguments=arguments, condition=condition)
        case _ if is_dataclass(value) and not isinstance(value, type):
            new = {field.name: _changed(getattr(value, field.name), change) for field in fields(value) if field.init}
            same = all(new[name] is getattr(value, name) or new[name] == getattr(value, name) for name in new)
            return value if same else replace(value, **new)
        case _:
            return value
