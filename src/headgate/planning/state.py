"""What the planning process has to know of a catalog, and what has changed since it was told.

A snapshot holds the entries themselves, which never change, so what is new is what is another object. Of a query it is
enough to know its name, its columns and its time: nobody reads the plan of one, unless it was written in GSQL.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import Any

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Query
from headgate.permissions import Permissions
from headgate.plan.nodes import Scan, Stored, domain, is_stream
from headgate.planning.limits import PlanLimits
from headgate.ticks import TimeDomain

TABLES = (
    "streams",
    "relations",
    "views",
    "queries",
    "groups",
    "functions",
    "constraints",
    "protocols",
    "interface_sets",
    "parameters",
    "quarantine",
)
"""What a catalog knows by name."""

REST = ("settings", "declarations", "pending", "aggregates", "outside")
"""What else there is in a catalog."""


@dataclass(frozen=True, slots=True)
class State:
    """A catalog as it was at some time."""

    tables: dict[str, dict[str, Any]]
    rest: bytes
    """The rest, as it is sent: some of it is changed in place."""

    @classmethod
    def of(cls, catalog: Catalog) -> State:
        """The state of a catalog now. Nobody may change it meanwhile."""
        return cls(
            {name: dict(getattr(catalog, name)) for name in TABLES},
            pickle.dumps({name: getattr(catalog, name) for name in REST}),
        )

    def same(self, other: State) -> bool:
        """Whether nothing has changed from one to the other."""
        return self.rest == other.rest and not any(_changed(self, other))


NOTHING = State({name: {} for name in TABLES}, b"")
"""What a process knows that was told nothing yet."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What is new in a catalog."""

    entries: tuple[tuple[str, str, Any], ...]
    """The table, the key, and the entry; None for one that is gone."""

    rest: bytes | None
    """The rest, if it is another one."""


@dataclass(frozen=True, slots=True)
class Request:
    """A text to be planned, and what may be spent on it."""

    text: str
    origin: str
    allowed: Permissions | None
    limits: PlanLimits


def changes(before: State, now: State) -> Changes:
    """What has changed from one state to the next."""
    entries = tuple(
        (table, key, None if entry is None else _told(entry)) for table, key, entry in _changed(before, now)
    )
    return Changes(entries, None if before.rest == now.rest else now.rest)


def _changed(before: State, now: State) -> Any:
    for table in TABLES:
        old, new = before.tables[table], now.tables[table]
        for key, entry in new.items():
            if old.get(key) is not entry:
                yield table, key, entry
        if len(old) != len(new) or old.keys() != new.keys():
            yield from ((table, key, None) for key in old.keys() - new.keys())


def _told(entry: Any) -> Any:
    if not isinstance(entry, Query):
        return entry
    if entry.gsql is not None:
        return replace(entry, shape=None)
    columns, time = entry.plan.columns, domain(entry.plan)
    plan = (
        Scan("", columns, time, None)
        if is_stream(entry.plan)
        else Stored("", columns, time or TimeDomain.INTEGER, False)
    )
    return replace(entry, text="", resolved="", bound=plan, plan=plan, by_groups=(), family=None, shape=None)


def apply(some: Changes, catalog: Catalog) -> None:
    """Make a catalog what it is elsewhere."""
    for table, key, entry in some.entries:
        known = getattr(catalog, table)
        if entry is None:
            del known[key]
        else:
            known[key] = entry
    if some.rest is not None:
        for name, value in pickle.loads(some.rest).items():
            setattr(catalog, name, value)
