"""`headgate check`: what would be refused of a script, without data and without running anything.

Every statement is carried out on a catalog of its own. With Spark, each query is compiled and its programs are analysed
over empty inputs, so that functions and types are what Spark says they are, and connectors are looked up. A statement
that fails is left out, and the others are checked.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Connector, Query, Relation, Stream
from headgate.catalog.readers import STREAMED, reader
from headgate.compile import compile_query, compile_script
from headgate.cql import script
from headgate.cql.definitions import Altered, Definition, Explanation
from headgate.cql.languages import Language, may_hold_gsql, statements
from headgate.errors import Place, UserError, nearest, quoted
from headgate.execute.build import build_fragments
from headgate.execute.workspaces import Workspaces
from headgate.log.journal import Journal
from headgate.permissions import READING, permissions
from headgate.spark.connectors import is_missing
from headgate.spark.failures import reason_of
from headgate.spark.session import SessionFunctions
from headgate.sql import ddl


def problems(
    text: str, origin: str, session: SparkSession | None, allow: list[str] | None = None
) -> Iterator[UserError]:
    """Give the errors of a script's statements, in their order; without a session, those that need no Spark."""
    catalog = Catalog()
    catalog.permissions = permissions(allow)
    if session is not None:
        catalog.session_functions = SessionFunctions(session)
    shapes: dict[str, StructType] = {}
    try:
        parts = _statements(text, origin, catalog)
    except UserError as error:
        yield error
        return
    for whole, language in parts:
        try:
            for definition in compile_script(text[whole.start : whole.end], catalog, origin, language):
                yield from _refused(definition, catalog, session, shapes, whole)
        except UserError as error:
            yield _moved(error, whole)


def _statements(text: str, origin: str, catalog: Catalog) -> Iterable[tuple[Place, Language]]:
    """The statements of a script with their languages; one that may hold GSQL is read as it is carried out."""
    if not may_hold_gsql(text, origin=origin):
        return [(place, "cql") for place in script.spans(text, origin)]
    return ((one.place, one.language) for one in statements(text, lambda: catalog.settings.dialect, origin))


def _moved(error: UserError, whole: Place) -> UserError:
    """The error with its place in the script instead of its place in a statement."""
    if error.place is None:
        error.place = whole
    elif error.place.text != whole.text:
        start = whole.start + error.place.start
        error.place = Place(whole.text, start, whole.start + error.place.end, whole.origin)
    return error


def _refused(
    definition: Definition, catalog: Catalog, session: SparkSession | None, shapes: dict[str, StructType], whole: Place
) -> Iterator[UserError]:
    match definition:
        case Stream() | Relation():
            yield from _source(definition, session, whole)
            if session is not None:
                yield from _shape(definition, catalog, session, shapes, whole)
        case Altered(Stream() as stream) if session is not None:
            yield from _shape(stream, catalog, session, shapes, whole)
        case Query() as query:
            yield from _program(query, catalog, session, shapes, whole)
        case Explanation(query) | Altered(Query() as query):
            yield from _program(query, catalog, session, shapes, whole)
        case _:
            pass


def _program(
    query: Query, catalog: Catalog, session: SparkSession | None, shapes: dict[str, StructType], whole: Place
) -> Iterator[UserError]:
    try:
        if session is not None:
            _analyse(query, catalog, session, shapes)
    except UserError as error:
        yield _within(error, query, whole)


def _within(error: UserError, query: Query, whole: Place) -> UserError:
    """The error with its place in the script: the query's text stands somewhere in its statement."""
    at = whole.text.find(query.text, whole.start)
    if error.place is not None and at >= 0:
        error.place = Place(whole.text, at + error.place.start, at + error.place.end, whole.origin)
    return error


def _shape(
    stream: Stream | Relation, catalog: Catalog, session: SparkSession, shapes: dict[str, StructType], whole: Place
) -> Iterator[UserError]:
    for log, columns in catalog.logs_of(stream).items():
        try:
            shapes[log] = session.createDataFrame([], ddl(columns)).schema
        except PySparkException as error:
            detail = reason_of(error)
            yield UserError("wrong-type", f'Spark refuses the columns of "{stream.name}"', place=whole, detail=detail)
            return


def _analyse(query: Query, catalog: Catalog, session: SparkSession, schemas: dict[str, StructType]) -> None:
    """Let Spark analyse the program of each fragment; raise what it refuses."""
    fragments = compile_query(replace(query, by_groups=()), catalog)
    known = {*schemas, *(fragment.part.log for fragment in fragments)}
    if not all(log in known for fragment in fragments for log in fragment.program.logs()):
        return  # it reads a stream that was refused already
    with tempfile.TemporaryDirectory(prefix="headgate-check-") as folder, closing(Workspaces(session, 1)) as workspaces:
        build_fragments(query, fragments, workspaces, {}, schemas, Path(folder), Journal())


def _source(stream: Stream | Relation, session: SparkSession | None, whole: Place) -> Iterator[UserError]:
    connector = stream.connector
    if connector is None or connector.format == "memory":
        return
    at: Callable[[str], Place] = lambda word: _word(word, whole)  # noqa: E731
    options = {option.lower(): (option, value) for option, value in connector.options.items()}
    if reader(connector.format).way == "files":
        if "path" not in options:
            hint = "OPTIONS ('path' = 'folder')"
            yield UserError(
                "no-path",
                f'"{stream.name}" is read from {connector.format} files but has no path',
                place=whole,
                hint=hint,
            )
        elif problem := missing(options["path"][1]):
            yield replace_place(problem, at(options["path"][1]))
        known = {option.lower() for option in READING}
        for option in connector.options:
            close = nearest(option, READING)
            if option.lower() not in known and close:
                yield UserError(
                    "bad-option",
                    f'option "{option}" of {connector.format} is not known',
                    place=at(option),
                    detail="Spark passes over options that it does not know.",
                    hint=close,
                )
    elif session is not None and not reader(connector.format).fields and not _there(session, connector):
        yield UserError(
            "no-such-source",
            f'there is no connector "{connector.format}"',
            place=at(connector.format),
            detail=f"Known by name are {quoted(STREAMED)}.",
            hint=nearest(connector.format, STREAMED),
        )


def missing(path: str) -> UserError | None:
    """The error for a local folder that does not exist; None if it exists or is not local."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path) and not path.lower().startswith("file:"):
        return None
    local = re.sub(r"^[fF][iI][lL][eE]:/*", "/", path) if path.lower().startswith("file:") else path
    plain = re.split(r"[*?\[{]", local)[0]
    plain = plain if plain == local else os.path.dirname(plain) or "."
    if os.path.exists(plain) or os.path.exists(unquote(plain)):
        return None
    above = Path(plain).parent
    beside = [entry.name for entry in above.iterdir()] if above.is_dir() else []
    return UserError(
        "no-such-file",
        f'"{path}" does not exist',
        detail=f'Paths are relative to "{Path.cwd().name}".' if plain[:1] != "/" else "",
        hint=nearest(Path(plain).name, beside) or f"mkdir -p {plain}",
    )


def replace_place(error: UserError, place: Place) -> UserError:
    """Give the error another place."""
    error.place = place
    return error


def _word(word: str, whole: Place) -> Place:
    at = whole.text.find(word, whole.start, whole.end)
    return whole if at < 0 else replace(whole, start=at, end=at + len(word))


def _there(session: SparkSession, connector: Connector) -> bool:
    """Whether Spark finds a reader of that name."""
    lookup = session._jvm.org.apache.spark.sql.execution.datasources.DataSource  # type: ignore[union-attr]
    try:
        lookup.lookupDataSource(connector.format, session._jsparkSession.sessionState().conf())
    except Exception as error:
        return not is_missing(error)
    return True
