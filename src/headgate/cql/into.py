"""INTO: checks where a query's results go. What a sink takes stands in its row of `catalog.sinks`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from headgate.catalog.entries import Connector
from headgate.catalog.sinks import SINKS, SinkKind, key, mode, partial, takes_back
from headgate.errors import Place, UserError, nearest, quoted
from headgate.permissions import Permissions
from headgate.sql import Column

Places = Callable[[exp.Expression], Place | None]


def checked(
    tree: exp.Expression,
    query: str,
    kind: str,
    columns: tuple[Column, ...],
    permissions: Permissions | None,
    place: Places,
) -> Connector | None:
    """The sink that INTO names, with its options spelled as the sink knows them; None if the query has no INTO.

    `kind` is "stream" or "relation", `columns` are those of the query. Raises an error for a sink that does not exist,
    options that it does not know or that contradict each other, and what the text may not use.
    """
    given = tree.args.get("format")
    if given is None:
        return None
    sink = SINKS.get(given.name.lower())
    if sink is None:
        raise UserError(
            "no-such-sink",
            f'sink "{given.name}" does not exist',
            place=place(given),
            detail=f"There are {quoted(SINKS)}.",
            hint=nearest(given.name, SINKS),
        )
    entries = [tuple(entry.expressions) for entry in tree.args.get("options") or ()]
    places = {option.name.lower(): place(value) for option, value in entries}
    options: dict[str, str] = {}
    for option, value in entries:
        spelled = _spelled(option, sink, place)
        if spelled in options:
            raise UserError("bad-option", f'option "{spelled}" stands twice', place=place(option))
        options[spelled] = value.name
    missing = [option.name for option in sink.needs if option.name not in options]
    if missing:
        raise UserError(
            "bad-option",
            f'the {sink.name} sink of query "{query}" needs {quoted(missing)}',
            place=place(given),
            hint=sink.example,
        )
    if permissions is not None:
        permissions.check(sink.name, "into", options, places, place(given))
    for option, value in options.items():
        if objection := sink.objection(option, value):
            at = places.get(option.lower())
            raise UserError("bad-option", objection.message, place=at, detail=objection.detail, hint=objection.hint)
    _check_columns(sink, options, kind, columns, places, place(given))
    _check_partial(Connector(sink.name, options), _is_early(tree), places)
    return Connector(sink.name, _with_spelled_key(options, columns))


def _is_early(tree: exp.Expression) -> bool:
    query = tree.args.get("query")
    return query is not None and "early" in query.meta


def _check_partial(connector: Connector, early: bool, places: Mapping[str, Place | None]) -> None:
    """Raise an error if early answers are to be marked that do not go out, or that the sink takes back by itself."""
    if not partial(connector):
        return
    if not early:
        hint = "Write EMIT EARLY behind the query, or leave 'partial' out."
        raise UserError("bad-option", "'partial' is for early answers", place=places["partial"], hint=hint)
    if takes_back(connector):
        raise UserError(
            "bad-option",
            f"'partial' does not go with 'deliver' = '{mode(connector)}'",
            place=places["partial"],
            detail="Such a sink gets early answers anyway, and they are taken back when the settled ones come.",
            hint="Leave 'partial' out.",
        )


def _spelled(option: exp.Expression, sink: SinkKind, place: Places) -> str:
    """An option's name as the sink spells it; as in Spark, letters may be large or small."""
    written = option.name.lower()
    for spelled in sink.options:
        if spelled.lower() == written:
            return spelled
    prefixes = [prefix.name for prefix in sink.prefixes]
    if any(written.startswith(prefix) and written != prefix for prefix in prefixes):
        return option.name
    rest = [f"{prefix}..." for prefix in prefixes]
    detail = f"Its options are {quoted([*sink.options, *rest])}." if sink.options else "It takes none."
    raise UserError(
        "bad-option",
        f'the {sink.name} sink knows no option "{option.name}"',
        place=place(option),
        detail=detail,
        hint=nearest(option.name, sink.options),
    )


def _with_spelled_key(options: Mapping[str, str], columns: tuple[Column, ...]) -> dict[str, str]:
    """The options with the key spelled as the columns are."""
    names = {column.name.lower(): column.name for column in columns}
    spelled = ", ".join(names[name.lower()] for name in key(Connector("", options)))
    return {**options, "key": spelled} if "key" in options else dict(options)


def _check_columns(
    sink: SinkKind,
    options: Mapping[str, str],
    kind: str,
    columns: tuple[Column, ...],
    places: Mapping[str, Place | None],
    whole: Place | None,
) -> None:
    """Raise an error unless the options that mean one thing for all sinks go together, and with the query's columns."""
    connector = Connector(sink.name, options)
    wanted, names = mode(connector), {column.name.lower(): column.name for column in columns}
    if kind == "stream" and wanted != "changes":
        raise UserError(
            "bad-option",
            f"a stream cannot be delivered as {wanted}",
            place=places["deliver"],
            detail="Its tuples are only ever added: they go out one after another.",
            hint="Leave 'deliver' out, or the ISTREAM.",
        )
    for name in key(connector):
        if name.lower() not in names:
            raise UserError(
                "no-such-column",
                f'column "{name}" of the key does not exist in the query',
                place=places["key"],
                detail=f"Its columns are {quoted(names.values())}.",
                hint=nearest(name, names.values()),
            )
    if wanted == "upserts" and not key(connector):
        raise UserError(
            "bad-option",
            "upserts need a key",
            place=places["deliver"],
            detail="It names the columns that tell the rows of the relation apart.",
            hint=f"'key' = '{columns[0].name}'",
        )
    if wanted == "current" and options.get("existing") == "append":
        raise UserError(
            "bad-option",
            "current rows cannot be appended to those of another run",
            place=places["existing"],
            hint="'existing' = 'replace'",
        )
    if "key" in options and wanted not in sink.keyed:
        raise UserError(
            "bad-option",
            f"a key is of no use where {wanted} are delivered",
            place=places["key"],
            hint="'deliver' = 'upserts'",
        )
    if "flush_rows" in options and wanted != "changes":
        what = {"current": "current rows"}.get(wanted, wanted)
        raise UserError(
            "bad-option",
            f"{what} cannot be cut into pieces",
            place=places["flush_rows"],
            detail="They are what the relation is at an instant: a part of them would be what it never was.",
            hint="Leave 'flush_rows' out, or deliver changes.",
        )
    if "ordered" in options and wanted != "changes":
        raise UserError(
            "bad-option",
            "only changes have an order that can be asked for",
            place=places["ordered"],
            detail="Upserts are in order of time anyway, and current rows have no time.",
            hint="Leave 'ordered' out, or deliver changes.",
        )
    for column in columns:
        if column.type.upper().startswith(sink.unwritable):
            raise UserError(
                "wrong-type",
                f'column "{column.name}" is {column.type} and cannot be written to {sink.name}',
                place=whole,
                hint="INTO json can hold it.",
            )
