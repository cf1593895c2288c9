"""INTO of a group: checks where the results of its queries go together.

Options hold for all queries of the group. One with a query's name before it holds for that query alone:
`'a.key' = 'id'`. Each query has a table or a folder of its own, which has its name if the options give no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

from sqlglot import exp

from headgate.catalog.entries import Connector, Query
from headgate.catalog.sinks import SINKS, SinkKind
from headgate.cql import into, syntax
from headgate.errors import Place, UserError, quoted
from headgate.permissions import Permissions

NOT_OF_GROUPS = {
    "flush_rows": "the results of a group go out together, and are not cut into pieces",
    "partial": "a group gets what is settled, and no early answers",
}
"""Options of sinks that no group takes, and why."""

Places = Callable[[exp.Expression], Place | None]


def connectors(
    tree: syntax.CreateGroup, queries: Sequence[Query], permissions: Permissions | None, place: Places
) -> tuple[Connector | None, dict[str, Connector]]:
    """The sink of a group, and that of each of its queries; None and nothing if the group has no INTO."""
    given = tree.args.get("format")
    if given is None:
        return None, {}
    kind = SINKS.get(given.name.lower())
    if kind is not None and not kind.together:
        able = [one.name for one in SINKS.values() if one.together]
        raise UserError(
            "bad-sink",
            f"the {kind.name} sink cannot take several queries at once",
            place=place(given),
            detail=f"Those that can are {quoted(able)}.",
            hint="CREATE QUERY ... INTO it, for each query by itself.",
        )
    shared, own = _told_apart(tree, queries, kind, place)
    members: dict[str, Connector] = {}
    for query in queries:
        options = _with_place(query, kind, shared, own[query.name])
        written = syntax.CreateQuery(format=given, options=[exp.Tuple(expressions=[*pair]) for pair in options])
        try:
            made = into.checked(written, query.name, "relation", query.plan.columns, permissions, place)
        except UserError as error:
            if error.code == "no-such-column":  # a key of all queries
                error.hint = f"'{query.name}.key' = '...' is the key of query \"{query.name}\" alone."
            raise
        assert made is not None
        members[query.name] = made
    _refuse_same_table(members, given, place)
    whole = {option.name.lower(): value.name for option, value in shared}
    if permissions is not None:  # those of the queries lie below, and the record of all does not
        places = {option.name.lower(): place(value) for option, value in shared}
        permissions.check(given.name.lower(), "into", whole, places, place(given))
    return Connector(given.name.lower(), whole), members


Pair = tuple[exp.Expression, exp.Expression]


def _told_apart(
    tree: syntax.CreateGroup, queries: Sequence[Query], kind: SinkKind | None, place: Places
) -> tuple[list[Pair], Mapping[str, list[Pair]]]:
    """The options that hold for all, and those of each query without its name."""
    shared: list[Pair] = []
    own: dict[str, list[Pair]] = {query.name: [] for query in queries}
    names = {query.name.lower(): query.name for query in queries}
    for entry in tree.args.get("options") or ():
        option, value = entry.expressions
        before, _, name = option.name.rpartition(".")
        query = names.get(before.lower())
        _refuse_option(option, name if query is not None else option.name, query, kind, place)
        if query is None:
            shared.append((option, value))
        else:
            plain = exp.Literal.string(name)
            plain.meta.update(option.meta)
            own[query].append((plain, value))
    return shared, own


def _refuse_option(option: exp.Expression, name: str, query: str | None, kind: SinkKind | None, place: Places) -> None:
    """Refuse what cannot be said of a group, or of one of its queries alone."""
    if name.lower() in NOT_OF_GROUPS:
        hint = f'Leave "{option.name}" out.'
        raise UserError("bad-option", NOT_OF_GROUPS[name.lower()], place=place(option), hint=hint)
    if query is not None and kind is not None and name.lower() in kind.whole:
        raise UserError(
            "bad-option",
            f'option "{name}" of the {kind.name} sink holds for all queries of a group',
            place=place(option),
            hint=f"Write '{name}' = '...'.",
        )
    if query is None and name.lower() == "dbtable":
        raise UserError(
            "bad-option",
            "each query of a group has a table of its own",
            place=place(option),
            detail="It has the name of the query, unless you give it another.",
            hint="'query.dbtable' = 'table'",
        )


def _with_place(query: Query, kind: SinkKind | None, shared: Sequence[Pair], own: Sequence[Pair]) -> list[Pair]:
    """The options of one query: those of the group, its own in their place, and where it goes."""
    replaced = {option.name.lower() for option, _ in own}
    options = [*(pair for pair in shared if pair[0].name.lower() not in replaced), *own]
    needs = [] if kind is None else [option.name for option in kind.needs]
    if "dbtable" in needs and "dbtable" not in replaced:
        options.append((exp.Literal.string("dbtable"), exp.Literal.string(query.name)))
    return [(option, _below(value, query) if option.name.lower() == "path" else value) for option, value in options]


def _below(path: exp.Expression, query: Query) -> exp.Expression:
    """The folder of a query in that of its group."""
    below = exp.Literal.string(f"{path.name.rstrip('/')}/{folder_of(query.name)}")
    below.meta.update(path.meta)
    return below


def folder_of(query: str) -> str:
    """What the folder of a query is called."""
    return quote(query, safe="")


def _refuse_same_table(members: Mapping[str, Connector], given: exp.Expression, place: Places) -> None:
    tables: dict[str, str] = {}
    for query, connector in members.items():
        table = connector.options.get("dbtable")
        if table is not None and table.lower() in tables:
            raise UserError(
                "bad-option",
                f'queries "{tables[table.lower()]}" and "{query}" cannot both go to table "{table}"',
                place=place(given),
                hint=f"'{query}.dbtable' = 'another'",
            )
        if table is not None:
            tables[table.lower()] = query
