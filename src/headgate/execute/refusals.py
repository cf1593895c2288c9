"""What Spark refuses when it analyses a program, as the user wrote it: the place in the query's text, and what may
help.

Spark complains of the SQL that a query was compiled to. Its error names functions, columns and expressions; those
that stand in the user's text, however they are spaced and quoted there, tell the place.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from headgate.cql.functions import BUILT_IN
from headgate.errors import Place, nearest
from headgate.spark.failures import condition, parameters, reason_of

LEFT_OUT = " \t\r\n`\"'()"
"""Characters in which Spark's way to write an expression differs from the user's."""

FROM_OUTSIDE = (
    "PythonUDF",
    "PythonUDAF",
    "ScalaUDF",
    "ScalaAggregator",
    "HiveSimpleUDF",
    "HiveGenericUDF",
    "HiveUDAFFunction",
)


def place(error: Exception, text: str) -> Place:
    """The longest of the names and expressions Spark complains of that stands in the user's text; else the whole
    query.
    """
    named = parameters(error).values()
    parts = [part for value in map(str, named) for part in (value, value.split(".")[-1])]
    found = [span for part in parts if (span := _found(part, text)) is not None]
    if not found:
        return Place(text, 0, len(text))
    start, end = max(found, key=lambda span: span[1] - span[0])
    return Place(text, start, end)


def _found(wanted: str, text: str) -> tuple[int, int] | None:
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


def hint(error: Exception) -> str:
    named = {key: str(value) for key, value in parameters(error).items()}
    code = condition(error)
    if code.startswith(("UNRESOLVED_ROUTINE", "UNRESOLVABLE_TABLE")):
        name = named.get("routineName", named.get("name", "")).strip("`").split(".")[-1].strip("`")
        return nearest(name, BUILT_IN) or "engine.register_function makes a function in Python known."
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


def undetermined(frame: DataFrame) -> str | None:
    """The first function from outside that was registered as one that is not deterministic.

    It can be seen only where Spark runs in this process.
    """
    waiting: list[Any] = [frame._jdf.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop()
        kind = str(node.getClass().getSimpleName())
        if kind in FROM_OUTSIDE and not node.udfDeterministic():
            return str(node.name() if kind.startswith("Python") else node.toString())
        parts = (
            node.expressions() if hasattr(node, "expressions") and kind not in FROM_OUTSIDE and _is_plan(node) else None
        )
        for some in (parts, node.children()):
            waiting.extend(some.apply(number) for number in range(some.size())) if some is not None else None
    return None


def _is_plan(node: Any) -> bool:
    return ".plans." in str(node.getClass().getName())
