"""Plans the statements of a text on a catalog that is thrown away, and says what became of each, as JSON.

    {"start": 0, "end": 21, "seconds": 0.004}                              it can be carried out
    {"start": 22, "end": 40, "seconds": 0.002, "explanation": "..."}       it is answered
    {"error": {"code": ..., "message": ..., "start": 8, "end": 9, ...}}    it is refused, and those behind it with it
    {"done": true}                                                         there are no more of them

This runs in the planning process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Query
from headgate.compile import compile_query, compile_statements, explanation
from headgate.cql import languages, script
from headgate.cql.definitions import Altered, Explanation
from headgate.errors import Place, UserError


def planned(text: str, catalog: Catalog, origin: str, begin: Callable[[], None]) -> Iterator[dict[str, Any]]:
    """What becomes of the statements, one after the other; `begin` is called before each."""
    begin()
    try:
        for start, end in _statements(text, catalog, origin):
            before = time.process_time()
            found = _planned_one(text, start, end, catalog, origin)
            last = found.pop("last", False)
            yield {"start": start, "end": end, "seconds": time.process_time() - before, **found}
            if last:
                return
            begin()
        yield {"done": True}
    except UserError as error:
        yield {"error": _told(error)}


def _statements(text: str, catalog: Catalog, origin: str) -> Iterator[tuple[int, int]]:
    """Where the statements stand. All of a text in CQL is read before any of it is planned."""
    if languages.may_hold_gsql(text, catalog.settings.dialect, origin):
        for statement in languages.statements(text, lambda: catalog.settings.dialect, origin):
            yield statement.place.start, statement.place.end
        return
    for tree in script.parse(text, origin):
        yield tree.meta["start"], tree.meta["end"]


def _planned_one(text: str, start: int, end: int, catalog: Catalog, origin: str) -> dict[str, Any]:
    """Plan one statement as far as that can be done without Spark."""
    words = text[start:end]
    try:
        for one in compile_statements(words, catalog, origin):
            match one.definition:
                case (Query() as query) | Altered(Query() as query):
                    if not query.borrowed:
                        compile_query(query, catalog)
                case Explanation(query):
                    return {"explanation": explanation(query, catalog)}
    except MemoryError:
        raise
    except RecursionError:
        raise script.too_deep(Place(text, start, end, origin)) from None
    except UserError as error:
        if error.code == "name-taken":  # after a restart these words may stand for what is there already
            return {}
        if error.place is not None and error.place.text == words:
            error.place = Place(text, start + error.place.start, start + error.place.end, origin)
        raise
    except Exception:  # a defect: the engine meets it as well, and says so
        return {"last": True}
    return {}


def _told(error: UserError) -> dict[str, Any]:
    first = error.each()[0]
    place = first.place
    where = {} if place is None else {"start": place.start, "end": place.end}
    return {"code": first.code, "message": first.message, "detail": first.detail, "hint": first.hint, **where}
