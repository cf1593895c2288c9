"""INTO: where the results of a query go, and whether the options given make sense of its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from sqlglot import exp

from headgate.catalog.entries import Connector
from headgate.catalog.sinks import EXISTING, FILES, SINKS, key, mode
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
    """Where INTO points, with its options as the sink knows them; None if the query has no INTO."""
    given = tree.args.get("format")
    if given is None:
        return None
    name = given.name.lower()
    if name not in SINKS:
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
        spelled = _spelled(option, name, place)
        if spelled in options:
            raise UserError("bad-option", f'option "{spelled}" stands twice', place=place(option))
        options[spelled] = value.name
    missing = [option for option in SINKS[name].needs if option not in options]
    if missing:
        raise UserError(
            "bad-option",
            f'the {name} sink of query "{query}" needs {quoted(missing)}',
            place=place(given),
            hint=SINKS[name].example,
        )
    if permissions is not None:
        permissions.check(name, "into", options, places, place(given))
    _check_values(name, options, places)
    return Connector(name, _with_key(name, options, kind, columns, places, place(given)))


def _spelled(option: exp.Expression, sink: str, place: Places) -> str:
    """An option's name as the sink spells it; as in Spark, letters may be large or small."""
    known = SINKS[sink]
    for spelled in known.options:
        if spelled.lower() == option.name.lower():
            return spelled
    if any(
        option.name.lower().startswith(beginning) and option.name.lower() != beginning for beginning in known.passes
    ):
        return option.name
    rest = [f"{beginning}..." for beginning in known.passes]
    detail = f"Its options are {quoted([*known.options, *rest])}." if known.options else "It takes none."
    raise UserError(
        "bad-option",
        f'the {sink} sink knows no option "{option.name}"',
        place=place(option),
        detail=detail,
        hint=nearest(option.name, known.options),
    )


def _check_values(sink: str, options: dict[str, str], places: dict[str, Place | None]) -> None:
    one_of: dict[str, Iterable[str]] = {"deliver": SINKS[sink].modes, "existing": EXISTING}
    for option, values in one_of.items():
        if option in options and options[option] not in values:
            raise UserError(
                "bad-option",
                f'option "{option}" of the {sink} sink cannot be "{options[option]}"',
                place=places[option],
                detail=f"It is one of {quoted(values)}.",
                hint=nearest(options[option], values),
            )
    for option in ("rows", "timeout", "batchsize", "queryTimeout", "flush_rows"):
        if option in options and not (options[option].isdigit() and int(options[option])):
            raise UserError(
                "bad-option",
                f'option "{option}" of the {sink} sink is a number of 1 or more',
                place=places[option.lower()],
                detail=f'It is "{options[option]}".',
            )
    for option in options if sink == "webhook" else ():
        if option.lower() in ("header.content-length", "header.transfer-encoding", "header.connection"):
            raise UserError(
                "bad-option",
                f'the webhook sink sets "{option.partition(".")[2]}" itself',
                place=places.get(option.lower()),
            )
    scheme, _, rest = options.get("path", "").partition("://")
    if rest and scheme != "file" and sink != "delta":
        raise UserError(
            "bad-option",
            f'the {sink} sink writes into a folder of a file system, not to "{scheme}"',
            place=places["path"],
            detail="Deliveries are committed by renaming files.",
            hint="Give a local or mounted folder.",
        )
    if sink == "webhook" and (
        urlsplit(options["url"]).scheme not in ("http", "https") or not urlsplit(options["url"]).hostname
    ):
        raise UserError(
            "bad-option",
            f'"{options["url"]}" is not an address for a webhook',
            place=places["url"],
            hint=SINKS[sink].example,
        )
    if sink == "jdbc" and not options["url"].startswith("jdbc:"):
        raise UserError(
            "bad-option", f'"{options["url"]}" is not a JDBC address', place=places["url"], hint=SINKS[sink].example
        )
    module, _, function = options.get("function", "").partition(":")
    if sink == "callback" and not all(part.isidentifier() for part in [*module.split("."), *function.split(".")]):
        raise UserError(
            "bad-option",
            f'"{options["function"]}" does not name a function',
            place=places["function"],
            hint=SINKS[sink].example,
        )


def _with_key(
    sink: str,
    options: dict[str, str],
    kind: str,
    columns: tuple[Column, ...],
    places: dict[str, Place | None],
    whole: Place | None,
) -> dict[str, str]:
    """The options with the key spelled as the columns are, if mode, key and columns go together."""
    connector = Connector(sink, options)
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
    if "key" in options and (
        (wanted == "changes" and not SINKS[sink].keyed) or (wanted == "current" and sink in FILES)
    ):
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
    for column in columns if sink == "csv" else ():
        if column.type.upper().startswith(("ARRAY", "MAP", "STRUCT", "BINARY", "VARIANT")):
            raise UserError(
                "wrong-type",
                f'column "{column.name}" is {column.type} and cannot be written to csv',
                place=whole,
                hint="INTO json can hold it.",
            )
    if "key" in options:
        options["key"] = ", ".join(names[name.lower()] for name in key(connector))
    return options
