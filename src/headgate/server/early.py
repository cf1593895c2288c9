"""Early answers as JSON: what a query answers beyond its last complete instant, by what has come so far.

An early answer is partial and replaces the one before it. It has no position: nobody can go on behind it.

    event: early
    data: {"partial":true,"complete":2,"upto":9,"consistent":true,"tuples":{"s":4},"left_out":0,"rows":[{"_time":9}]}
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.observe.overview import plain
from headgate.server.limits import Limits
from headgate.server.served import ServedQuery
from headgate.server.values import rows_of
from headgate.sql import result_order
from headgate.texts import to_json


@dataclass(frozen=True, slots=True)
class EarlyPage:
    """The early answer of a query that holds now."""

    rows: tuple[bytes, ...] = ()
    """Each is a JSON object."""

    left_out: int = 0
    """How many rows more it has than an answer may have."""

    complete: Any = field(default=None, compare=False)
    """The instant up to which results are settled. It moves with settled results, which are told of by themselves."""

    upto: Any = None
    consistent: bool = True
    tuples: Mapping[str, int] = field(default_factory=dict, compare=False)

    def to_json(self) -> bytes:
        """Return it as JSON has it, on one line."""
        about = {
            "partial": True,
            "complete": plain(self.complete),
            "upto": plain(self.upto),
            "consistent": self.consistent,
            "tuples": dict(self.tuples),
            "left_out": self.left_out,
        }
        head = json.dumps(about, separators=(",", ":")).encode()
        return head[:-1] + b',"rows":[' + b",".join(self.rows) + b"]}"


def early_page(query: ServedQuery, limits: Limits) -> EarlyPage:
    """Return the early answer that holds now, as many of its first rows as an answer may have.

    A query without EMIT EARLY is an error.
    """
    answer = query.early()
    if answer is None:
        return EarlyPage(complete=query.complete)
    rows, size = list[bytes](), 0
    if answer.table is not None:
        first = answer.table.sort_by(result_order(answer.table.column_names)).slice(0, limits.most_page_rows)
        for row in map(to_json, rows_of([first])):
            size += len(row)
            if size > limits.page_bytes:
                break
            rows.append(row)
    all_rows = 0 if answer.table is None else answer.table.num_rows
    return EarlyPage(
        tuple(rows), all_rows - len(rows), answer.complete, answer.upto, answer.consistent, dict(answer.tuples)
    )


class EarlyPages:
    """The early answers that followers get, each made once for all who follow the query."""

    def __init__(self, limits: Limits, aside: Callable[..., Awaitable[Any]]) -> None:
        self.limits = limits
        self.aside = aside
        self._made: dict[str, tuple[int, asyncio.Future[EarlyPage]]] = {}

    async def now(self, query: ServedQuery, ring: int) -> EarlyPage:
        """Return the early answer as it was when the bell was rung for the `ring`th time, or later."""
        name = query.name
        if name not in self._made or self._made[name][0] != ring:
            self._made = {other: one for other, one in self._made.items() if one[0] == ring}
            self._made[name] = ring, asyncio.ensure_future(self.aside(early_page, query, self.limits))
        return await asyncio.shield(self._made[name][1])
