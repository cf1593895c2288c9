"""Pages of results as JSON, for requests and for those who follow results as they come."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.errors import UserError
from headgate.server.limits import Limits
from headgate.server.positions import Position, edition_of
from headgate.server.served import ServedQuery
from headgate.server.values import rows_of
from headgate.texts import to_json


@dataclass(frozen=True, slots=True)
class Page:
    """Results behind a position."""

    rows: tuple[bytes, ...]
    """Each is a JSON object."""

    position: Position
    """Behind the last of them: where to go on."""

    @property
    def size(self) -> int:
        """How many bytes its rows have."""
        return sum(map(len, self.rows))


def page_of(query: ServedQuery, after: Position, most_rows: int, limits: Limits) -> Page:
    """Read the results behind a position: at most so many rows, and no more bytes than a page may have.

    A page has a row at the least if there is one; one that is larger than a page by itself is refused.
    """
    tables, upto = query.page(after.count, most_rows)
    looked_at = sum(table.num_rows for table in tables)
    own = upto - after.count == looked_at  # otherwise some results are those of other members of a family
    rows, size = list[bytes](), 0
    for place, row in enumerate(map(to_json, rows_of(tables))):
        if size + len(row) > limits.page_bytes:
            if not own:
                return page_of(query, after, most_rows // 2, limits)
            if not rows:
                raise _too_large(query, Position(edition_of(query), after.count + 1), limits)
            return Page(tuple(rows), Position(edition_of(query), after.count + place))
        rows.append(row)
        size += len(row)
    return Page(tuple(rows), Position(edition_of(query), upto))


def _too_large(query: ServedQuery, behind: Position, limits: Limits) -> UserError:
    return UserError(
        "result-too-large",
        f'a result of query "{query.name}" has more than {limits.page_bytes} bytes',
        hint=f"after={behind} goes on behind it.",
    )
