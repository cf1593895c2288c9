"""What Spark refuses or fails with, as an error of ours: which query, which epoch, where in its text, and what helps.

Spark complains of the SQL that a query was compiled to. Its error names functions, columns and expressions. Those that
stand in the user's text, however they are spaced and quoted there, tell the place.
"""

from __future__ import annotations

from headgate.catalog.entries import Query
from headgate.errors import Place, UserError, nearest
from headgate.spark.failures import condition, failure, parameters, reason_of
from headgate.sql.functions import COMPUTES
from headgate.ticks import Tick

LEFT_OUT = " \t\r\n`\"'()"
"""Characters in which Spark's way to write an expression differs from the user's."""


def rejected(error: Exception, query: str, text: str) -> UserError:
    """Return the error for a query that Spark refuses when it is registered."""
    return failure(
        error, "query-rejected", f'Spark refuses query "{query}"', place=_rejected_place(error, text), hint=_hint(error)
    )


def failed(error: Exception, query: str, text: str, after: Tick, until: Tick) -> UserError:
    """Return the error for a query that fails in the epoch (after, until]."""
    message = f'query "{query}" failed in the epoch ({after}, {until}]'
    return failure(error, "query-failed", message, place=_failed_place(error, text))


def failed_too(error: UserError, first: str, reader: Query) -> UserError:
    """Return an error of a fragment that several queries share as one of its readers: as if it had failed alone."""
    place, marked = error.place, "" if error.place is None else error.place.text[error.place.start : error.place.end]
    if place is not None:
        start = reader.text.find(marked)
        place = Place(reader.text, start, start + len(marked)) if start >= 0 else None
    message = error.message.replace(f'query "{first}"', f'query "{reader.name}"')
    return UserError(error.code, message, place=place, detail=error.detail, hint=error.hint)


def _rejected_place(error: Exception, text: str) -> Place:
    """Return the longest of the names and expressions in the error that stands in the text; else the whole query."""
    named = parameters(error).values()
    parts = [part for value in map(str, named) for part in (value, value.split(".")[-1])]
    found = [span for part in parts if (span := _find(part, text)) is not None]
    if not found:
        return Place(text, 0, len(text))
    start, end = max(found, key=lambda span: span[1] - span[0])
    return Place(text, start, end)


def _failed_place(error: Exception, text: str) -> Place | None:
    """Return the longest of the names and expressions in the error that stands in the text as it is; else None."""
    named = [str(value).strip("`\"'") for value in parameters(error).values()]
    found = [(len(name), start) for name in named if name and (start := text.lower().find(name.lower())) >= 0]
    if not found:
        return None
    length, start = max(found)
    return Place(text, start, start + length)


def _find(wanted: str, text: str) -> tuple[int, int] | None:
    """Find an expression in the text, whatever the spaces, quotes and brackets; a name only as a whole word."""
    letters = [(letter.lower(), place) for place, letter in enumerate(text) if letter not in LEFT_OUT]
    plain = "".join(letter for letter in wanted.lower() if letter not in LEFT_OUT)
    written = "".join(letter for letter, _ in letters)
    at = written.find(plain) if plain else -1
    while at >= 0 and plain.isidentifier() and _within_word(text, letters[at][1], letters[at + len(plain) - 1][1] + 1):
        at = written.find(plain, at + 1)
    return None if at < 0 else (letters[at][1], letters[at + len(plain) - 1][1] + 1)


def _within_word(text: str, start: int, end: int) -> bool:
    before, behind = text[start - 1 : start], text[end : end + 1]
    return before.isalnum() or before == "_" or behind.isalnum() or behind == "_"


def _hint(error: Exception) -> str:
    named = {key: str(value) for key, value in parameters(error).items()}
    code = condition(error)
    if code.startswith(("UNRESOLVED_ROUTINE", "UNRESOLVABLE_TABLE")):
        name = named.get("routineName", named.get("name", "")).strip("`").split(".")[-1].strip("`")
        return nearest(name, COMPUTES) or "engine.register_function makes a function in Python known."
    if code.startswith("DATATYPE_MISMATCH") and named.get("filter"):
        return "Compare it with something, such as <> 0."
    if code.startswith("DATATYPE_MISMATCH.CAST"):
        return "TRY_CAST gives null for a value that cannot be cast; between these types there is no cast at all."
    if code.startswith("DATATYPE_MISMATCH"):
        return "CAST(... AS ...) one of them."
    if code.startswith("WRONG_NUM_ARGS"):
        return f"It takes {named.get('expectedNum', 'another number of')} arguments."
    if code == "FAILED_TO_PARSE_TOO_COMPLEX" or "java.lang.StackOverflowError" in reason_of(error):
        return "It is too long for Spark: write IN (...), or cut it into views."
    return ""
