"""One member of a family of queries, as its user sees it: its own results, and the progress of the family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.catalog.entries import Query
from headgate.deliver.sinks.sink import Result, in_order
from headgate.errors import UserError, nearest, quoted

if TYPE_CHECKING:
    from headgate.schedule.query import RunningQuery


def values_of(query: Query, given: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a member, by the columns of the answer that hold them; an error if these are not all of them."""
    family = query.family
    if family is None:
        raise UserError(
            "no-family",
            f'query "{query.name}" is no family and has no members',
            hint="CREATE QUERIES q FOR EACH ROW OF r AS SELECT ... makes one.",
        )
    known = {column.lower(): shown for column, shown in zip(family.columns, family.shown, strict=True)}
    values = dict(zip(known.values(), given, strict=False))
    for name, value in named.items():
        if name.lower() not in known:
            raise UserError(
                "no-such-column",
                f'column "{name}" does not exist in a member of "{family.relation}"',
                detail=f"Columns of a member are {quoted(family.columns)}.",
                hint=nearest(name, family.columns),
            )
        values[known[name.lower()]] = value
    if len(given) > len(known) or set(values) != set(known.values()) or len(given) + len(named) != len(known):
        raise UserError(
            "no-such-member",
            f'a member of "{query.name}" has {len(known)} values, and {len(given) + len(named)} are given',
            detail=f"They are {quoted(family.columns)}.",
        )
    return values


class Member:
    """A member of a family: the answers that are its own."""

    def __init__(self, query: RunningQuery, values: Mapping[str, Any]) -> None:
        self.query = query
        self.values = dict(values)
        """By the columns of the family's answer that hold them."""

    def __repr__(self) -> str:
        return f"Member({self.query.name}: {self.values})"

    @property
    def complete(self) -> Any:
        """The instant up to which its results are complete: that of the family."""
        return self.query.complete

    def results(self, labels: bool = False) -> list[Result]:
        """Return what it put out so far, in order of time, without its own values; with their labels if asked for."""
        tables, known = self.query.labelled_tables()
        return list(in_order(list(map(self._own, tables)), known if labels else ()))

    def _own(self, table: pa.Table) -> pa.Table:
        """The rows of a table of results that are its own."""
        for name, value in self.values.items():
            column = table.column(name)
            try:
                same = pc.is_null(column) if value is None else pc.equal(column, pa.scalar(value, column.type))
            except pa.ArrowException:
                raise UserError(
                    "wrong-type", f'{value!r} is no value of column "{name}", which is {column.type}'
                ) from None
            table = table.filter(same)
        return table.drop_columns(list(self.values))

    def on_change(self, listener: Callable[[Sequence[Result]], None]) -> None:
        """Call `listener` with its results of each epoch that has any."""

        def heard(results: Sequence[Result]) -> None:
            own = [one for one in results if all(one.row[name] == value for name, value in self.values.items())]
            if own:
                shown = [
                    Result(
                        one.at,
                        one.sign,
                        {name: value for name, value in one.row.items() if name not in self.values},
                        one.reflects,
                    )
                    for one in own
                ]
                listener(shown)

        self.query.on_change(heard)
