"""From statements to definitions: CREATE, ALTER, DROP, SET and SHOW are checked, and carried out on the catalog.

Declarations about clocks and delays are read by `time`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeAlias

from sqlglot import exp

from headgate import settings
from headgate.catalog import system
from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import (
    Early,
    Function,
    Group,
    Quarantined,
    Query,
    Relation,
    Stamped,
    Stream,
    View,
    errors_name,
    late_name,
)
from headgate.catalog.protocols import Gsql, InterfaceSet, ParameterValue, Protocol
from headgate.cql import calls, constraints, families, groups, into, languages, readers, script, shapes, syntax, time
from headgate.cql.binder import bind
from headgate.cql.languages import Language
from headgate.cql.skipping import skipping
from headgate.cql.trees import has_subquery
from headgate.errors import NotYet, Place, UserError, nearest, quoted, unknown
from headgate.gsql.translate import InCql, sql_value, translated
from headgate.plan.expressions import INTEGRAL, Expression
from headgate.plan.lives import followed
from headgate.plan.monotone import kind_of
from headgate.plan.nodes import Constraint, Node, domain, is_stream, sources
from headgate.plan.prefilter import REAL, is_cheap
from headgate.plan.rewrites.driver import Rewritten, rewritten
from headgate.plan.scopes import by_groups
from headgate.plan.weights import weighted
from headgate.sql import BOOLEAN, Column, Sql, signature, spelled
from headgate.sql import name as column_name
from headgate.sql.nesting import on_own_stack
from headgate.sql.printer import printed, printed_type
from headgate.sql.reading import parsed
from headgate.table import Table
from headgate.ticks import Tick, TimeDomain

KNOWN_SHAPES = 1_000
"""Of so many shapes of queries the plans are remembered."""

TAKES_BACK = re.compile(r"^DROP\s+|(?<=\s)IF\s+EXISTS\s+", re.IGNORECASE)

INSTANTS = ("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "DATE")


@dataclass(frozen=True, slots=True)
class Setting:
    """A statement changed a setting, or made or took back a declaration about time; the catalog has it already."""

    name: str
    taken_back: bool = False


@dataclass(frozen=True, slots=True)
class Explanation:
    """EXPLAIN: a query that is bound but not registered."""

    query: Query


@dataclass(frozen=True, slots=True)
class Dropped:
    """DROP: something is no longer known by its name; an empty name if IF EXISTS found nothing."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Altered:
    """ALTER: something took the place of what its name stood for before."""

    now: Stream | View | Query
    before: Stream | View | Query

    @property
    def name(self) -> str:
        return self.now.name


@dataclass(frozen=True, slots=True, repr=False)
class Listing:
    """The answer to SHOW and DESCRIBE: a table of words."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        return f"Listing({', '.join(self.columns)}: {len(self.rows)} rows)"

    def __str__(self) -> str:
        """Words under their headings, in columns."""
        return str(Table(self.columns, self.rows))

    def _repr_html_(self) -> str:
        return Table(self.columns, self.rows)._repr_html_()


@dataclass(frozen=True, slots=True)
class BoundsAsked:
    """SHOW BOUNDS: the engine answers it, since the catalog does not know which bounds are in force."""


@dataclass(frozen=True, slots=True)
class ConstraintsAsked:
    """SHOW CONSTRAINTS: the engine answers it, since the catalog does not know how often tuples broke one."""


@dataclass(frozen=True, slots=True)
class PlanAsked:
    """SHOW PLAN: the engine draws the plan of all its queries."""


@dataclass(frozen=True, slots=True)
class ProfileAsked:
    """SHOW PROFILE [FOR query]: the engine says what streams, fragments and operators were seen to do."""

    query: str | None = None


@dataclass(frozen=True, slots=True)
class ParameterSet:
    """ALTER QUERY ... SET: the engine gives a parameter another value, and decides from which instant on it counts."""

    query: str
    name: str
    value: Sql
    """A literal of SQL."""

    since: Tick | None = None
    """The instant that was asked for; None: the first behind all that has come."""

    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class WhyAsked:
    """WHY: the engine answers what holds a registered query back."""

    query: str


@dataclass(frozen=True, slots=True)
class SnapshotAsked:
    """SNAPSHOT: the engine answers with the rows of registered queries at one instant."""

    queries: tuple[str, ...]
    places: tuple[Place | None, ...] = field(default=(), compare=False)
    """Where each of them is named; empty if no text names them."""

    early: bool = False
    """Whether early answers are to be shown, of what has come beyond the heartbeats."""

    def place(self, query: str) -> Place | None:
        """Where a query is named."""
        return dict(zip(self.queries, self.places, strict=False)).get(query)


Definition: TypeAlias = (
    Stream
    | Relation
    | View
    | Query
    | Group
    | Function
    | Constraint
    | Quarantined
    | ConstraintsAsked
    | Protocol
    | InterfaceSet
    | ParameterSet
    | Setting
    | Explanation
    | Dropped
    | Altered
    | Listing
    | BoundsAsked
    | PlanAsked
    | ProfileAsked
    | WhyAsked
    | SnapshotAsked
)


class Defined(NamedTuple):
    """A statement of a script and what it defines."""

    statement: str
    definition: Definition
    place: Place
    """Where the statement stands in the script."""

    known: bool
    """True if the words of the statement had defined it before, so that the catalog was left alone."""

    language: Language = "cql"
    """The language of the statement."""


def define(text: str, catalog: Catalog, origin: str = "") -> list[Definition]:
    """Carry out a script on the catalog, statement by statement; a bare query is registered as q1, q2, ..."""
    return [one.definition for one in defined(text, catalog, origin)]


def defined(
    text: str,
    catalog: Catalog,
    origin: str = "",
    registered: Callable[[str], Definition | None] = lambda statement: None,
    language: Language | None = None,
    judge: Callable[[Defined], None] = lambda one: None,
) -> Iterator[Defined]:
    """Carry out a script on the catalog, one statement a step, so that each can be put to work before the next.

    A mistake takes back nothing before it, and leaves nothing of its statement. `registered` says what the words of a
    statement have defined already; that is given out and not defined again. `language` is that of the whole text, which
    is one statement if it is GSQL; without it, SET dialect and the file's ending tell. `judge` raises an error for a
    statement that is not to count.
    """
    for place, words, own, carry_out in _steps(text, catalog, origin, language):
        known = registered(words)
        with catalog.undone_on_error():
            one = Defined(words, carry_out() if known is None else known, place, known is not None, own)
            if known is None:
                judge(one)
        yield one


def _steps(
    text: str, catalog: Catalog, origin: str, language: Language | None
) -> Iterator[tuple[Place, str, Language, Callable[[], Definition]]]:
    """The statements of a script: where each stands, its words, its language, and what carries it out.

    SET dialect says how the statements behind it are read, so the next is looked for when this one is carried out.
    """
    if language is None and languages.may_hold_gsql(text, catalog.settings.dialect, origin):
        for statement in languages.statements(text, lambda: catalog.settings.dialect, origin):
            own, place = statement.language, statement.place
            if own == "gsql":
                yield place, statement.words, own, partial(_define_gsql, text, place.start, place.end, catalog, origin)
            else:
                tree = statement.tree()
                carry_out = partial(_define_alone, statement, tree, catalog, origin)
                yield place, _span(tree, statement.words), own, carry_out
    elif language == "gsql":
        whole = Place(text, 0, len(text), origin)
        yield whole, text, language, partial(_define_gsql, text, 0, len(text), catalog, origin)
    else:
        for tree in script.parse(text, origin):
            place = Place(text, tree.meta["start"], tree.meta["end"], origin)
            yield place, _span(tree, text), "cql", partial(_defined, tree, text, catalog, origin)


def _define_alone(
    statement: languages.ScriptStatement, tree: exp.Expression, catalog: Catalog, origin: str
) -> Definition:
    """Carry out a statement of CQL in a script that may hold GSQL."""
    try:
        return _in_script(_defined(tree, statement.words, catalog, origin), statement)
    except UserError as error:
        raise statement.moved(error) from None


def _in_script(definition: Definition, statement: languages.ScriptStatement) -> Definition:
    """A definition with its places in the script instead of in the statement's own words."""
    match definition:
        case ParameterSet(place=place):
            return replace(definition, place=statement.in_script(place))
        case SnapshotAsked(places=places):
            return replace(definition, places=tuple(map(statement.in_script, places)))
    return definition


def _define_gsql(text: str, start: int, end: int, catalog: Catalog, origin: str) -> Definition:
    """Carry out a statement of GSQL: on the catalog, or as the CQL that it amounts to."""
    place = Place(text, start, end, origin)
    match translated(text, start, end, catalog, origin):
        case Protocol() as protocol:
            if catalog.protocols.get(protocol.name.lower(), protocol) != protocol:
                raise UserError("name-taken", f'there is a protocol "{protocol.name}" already', place=place)
            catalog.protocols[protocol.name.lower()] = protocol
            catalog.quarantine.pop(("protocol", protocol.name.lower()), None)
            return protocol
        case InterfaceSet() as interfaces:
            catalog.interface_sets[interfaces.name.lower()] = interfaces
            return interfaces
        case InCql() as made:
            try:
                return _with_gsql(_define_in_cql(made, catalog, origin), made, text[start:end], catalog)
            except UserError as error:
                raise made.moved(error, text, origin) from None


def _define_in_cql(made: InCql, catalog: Catalog, origin: str) -> Definition:
    cql = made.cql.text
    (tree,) = script.parse(cql, origin)
    query = tree.args.get("query") or tree
    query.meta["gsql"] = True
    for parameter in made.parameters:
        catalog.parameters[parameter.full_name] = parameter
    return _defined(tree, cql, catalog, origin)


def _with_gsql(definition: Definition, made: InCql, words: str, catalog: Catalog) -> Definition:
    """What was defined, with what is known of it because it was written in GSQL."""
    match definition:
        case Stream():
            stream = replace(definition, protocol=made.protocol)
            catalog.streams[stream.name.lower()] = stream
            return stream
        case View():
            view = replace(definition, gsql=_gsql(definition.plan, made, words))
            catalog.views[view.name.lower()] = view
            return view
        case Query():
            query = replace(definition, gsql=_gsql(definition.bound, made, words))
            catalog.queries[query.name.lower()] = query
            return query
        case Explanation(query):
            return Explanation(replace(query, gsql=_gsql(query.bound, made, words)))
        case _:
            return definition


def _gsql(plan: Node, made: InCql, words: str) -> Gsql:
    kinds = {column.name.lower(): kind for column, kind in zip(plan.columns, made.kinds, strict=True)}
    return Gsql(words, kinds, made.defined)


def _defined(tree: exp.Expression, text: str, catalog: Catalog, origin: str) -> Definition:
    try:
        if tree.meta.get("deep"):
            return on_own_stack(lambda: _define(tree, text, catalog, origin))
        return _define(tree, text, catalog, origin)
    except RecursionError:
        raise script.too_deep(Place(text, tree.meta["start"], tree.meta["end"], origin)) from None
    except UserError as error:
        if error.place is None:  # of what was printed only the statement is known
            error.place = Place(text, tree.meta["start"], tree.meta["end"], origin)
        raise


def _define(tree: exp.Expression, text: str, catalog: Catalog, origin: str) -> Definition:
    place = _Places(text, origin)
    match tree:
        case syntax.CreateStream():
            stream = _stream(tree, catalog, place)
            promised = time.promised(tree, stream, catalog, place)
            catalog.add(stream, place(tree.this))
            promised.remember(catalog.declarations)
            return stream
        case syntax.CreateRelation():
            relation = _relation(tree, catalog, place)
            catalog.add(relation, place(tree.this))
            return relation
        case syntax.CreateView():
            return _view(tree, tree.args["query"], tree.args.get("columns") or (), text, catalog, place)
        case syntax.PendingView():
            bind(tree.args["query"], text, catalog, origin)
            catalog.pending = (tree.args["query"], text)
            return Setting("vquery")
        case syntax.NamePendingView():
            if catalog.pending is None:
                raise UserError("no-pending-query", "vtable needs a vquery before it", place=place(tree.this))
            (query, written), catalog.pending = catalog.pending, None
            named = [column.this for column in tree.args["columns"]]
            return _view(tree, query, named, written, catalog, place)
        case syntax.Drop():
            return _drop(tree, catalog, place)
        case syntax.SetParameter():
            return _set_parameter(tree, catalog, place)
        case syntax.Alter():
            return _alter(tree, text, catalog, place)
        case syntax.Show() if tree.args.get("kind") == "BOUNDS":
            return BoundsAsked()
        case syntax.Show() if tree.args.get("kind") == "CONSTRAINTS":
            return ConstraintsAsked()
        case syntax.Show() if tree.args.get("kind") == "PLAN":
            return PlanAsked()
        case syntax.Show() if tree.args.get("kind") == "PROFILE":
            of = tree.args.get("of")
            return ProfileAsked() if of is None else ProfileAsked(catalog.query(of.name, place(of)).name)
        case syntax.Show():
            return (
                described(tree.name, catalog, place(tree.this))
                if tree.this is not None
                else shown(tree.args["kind"], catalog)
            )
        case syntax.CreateQuery():
            return _query(tree.name, tree.args["query"], text, catalog, place, tree, tree.args.get("members"))
        case syntax.CreateGroup():
            group = _group(tree, catalog, place)
            catalog.add(group, place(tree.this))
            return group
        case syntax.CreateFunction():
            parameters = tuple(parameter.name for parameter in tree.args["parameters"])
            if has_subquery(tree.args["body"]):
                raise UserError(
                    "foreign-construct",
                    "a function is an expression, without a subquery",
                    place=place(tree),
                    hint="CREATE VIEW names a query.",
                )
            if catalog.permissions is not None:
                calls.refuse_called(tree.args["body"], Place(text, tree.meta["start"], tree.meta["end"], origin))
            function = Function(tree.name, parameters, printed(tree.args["body"]))
            _check_body(function, catalog, Place(text, tree.meta["start"], tree.meta["end"], origin))
            catalog.add_function(function)
            return function
        case syntax.CreateConstraint():
            return constraints.declared(tree, catalog, place)
        case syntax.SetOption():
            catalog.set(tree.name, tree.args["value"], place(tree.this))
            return Setting(tree.name)
        case syntax.TimeStatement():
            time.declare(tree, catalog, place)
            return Setting(tree.key)
        case syntax.TakeBack():
            time.take_back(tree, catalog, place)
            _take_back_held(_span(tree, text), catalog)
            return Setting(tree.this.key, taken_back=True)
        case syntax.Why():
            return WhyAsked(catalog.query(tree.name, place(tree.this)).name)
        case syntax.Snapshot():
            named = tree.expressions
            early = bool(tree.args.get("early"))
            return snapshot_asked([one.name for one in named], catalog, [place(one) for one in named], early)
        case syntax.Explain():
            return Explanation(_bound("query", tree.this, text, catalog, place, tree.args.get("members")))
        case exp.Command():
            raise NotYet(str(tree.this), place=place(tree))
        case _:
            number = 1
            while (
                f"q{number}" in catalog.queries
                or catalog.has_source(f"q{number}")
                or catalog.in_quarantine(f"q{number}") is not None
            ):
                number += 1
            return _query(f"q{number}", tree, text, catalog, place)


def _check_body(function: Function, catalog: Catalog, whole: Place) -> None:
    """Refuse a function whose body calls what no query may call."""
    if catalog.permissions is None:
        return
    body = parsed(function.body)
    if body is None or body.find(exp.Placeholder):  # such as :since, the instants of an epoch in texts of our own
        raise UserError("syntax", "a parameter has no value here", place=whole)
    names = set(calls.called_functions(function.body))
    for name in sorted(names):
        calls.refuse(name, whole)
    calls.refuse_unknown(names, catalog, whole)


def _view(
    tree: exp.Expression,
    query: exp.Expression,
    columns: Sequence[exp.Expression],
    text: str,
    catalog: Catalog,
    place: _Places,
) -> View:
    """Bind a view and put it into the catalog. Columns that are given with a type are cast to it."""
    types = [printed_type(column.args["kind"]) if isinstance(column, exp.ColumnDef) else None for column in columns]
    bound = bind(query, text, catalog, place.origin, [column.name for column in columns], types)
    plan = bound.plan
    wanted = tree.args.get("kind")
    if wanted is not None and is_stream(plan) != (wanted == "STREAM"):
        given = "stream" if is_stream(plan) else "relation"
        hint = "Put ISTREAM, DSTREAM or RSTREAM around it." if given == "relation" else "Give it a window."
        raise UserError(
            "wrong-kind",
            f'"{tree.name}" is to be a {wanted.lower()}, and the query gives a {given}',
            place=place(tree.this),
            hint=hint,
        )
    view = View(tree.name, plan, reads=bound.reads)
    catalog.add(view, place(tree.this))
    return view


def _drop(tree: syntax.Drop, catalog: Catalog, place: _Places) -> Dropped:
    """Drop something. Views are written into the queries over them, so only a stream or relation can still be read."""
    kind = tree.args["kind"].lower()
    system.refuse_if_system(tree.name, place(tree.this))
    known = catalog.of_kind(kind)
    if tree.name.lower() not in known and (held := catalog.in_quarantine(tree.name, (kind,))) is not None:
        _drop_held(held, catalog)
        return Dropped(kind, held.name)
    if tree.name.lower() not in known:
        if tree.args.get("if_exists"):
            return Dropped(kind, "")
        raise unknown(kind, tree.name, (thing.name for thing in known.values()), place(tree.this))
    readers = _readers(tree.name.lower(), catalog) if kind in ("stream", "relation") else []
    readers += constraints.naming(tree.name, catalog) if kind == "stream" else []
    readers += constraints.users(tree.name, catalog) if kind == "constraint" else []
    if readers:
        raise _still_read(kind, tree.name, "dropped", readers, place(tree.this))
    if kind == "query":
        _refuse_kept_errors(tree.name, catalog, place(tree.this))
        _refuse_read(tree.name, "dropped", catalog, place(tree.this))
        _refuse_grouped(tree.name, "dropped", catalog, place(tree.this))
    dropped = known.pop(tree.name.lower()).name
    if kind == "query":
        catalog.forget_parameters(dropped)
    if kind in ("stream", "relation"):
        catalog.declarations.forget(dropped)
    if kind == "constraint":
        catalog.shapes.clear()
    return Dropped(kind, dropped)


def _drop_held(held: Quarantined, catalog: Catalog) -> None:
    """Take something out of quarantine, with the statements without a name that speak of a stream or relation."""
    gone = [(held.kind, held.name.lower())]
    if held.kind in ("stream", "relation"):
        named = re.compile(rf"\b{re.escape(held.name)}\b", re.IGNORECASE)
        gone += [key for key, one in catalog.quarantine.items() if one.kind == "statement" and named.search(one.words)]
    for key in gone:
        catalog.quarantine.pop(key, None)


def _take_back_held(said: str, catalog: Catalog) -> None:
    """Take declarations out of quarantine that begin with the words that are taken back."""
    begin = " ".join(TAKES_BACK.sub("", said).lower().split())
    for key, one in list(catalog.quarantine.items()):
        if one.kind == "statement" and " ".join(one.words.lower().split()).startswith(begin):
            del catalog.quarantine[key]


def _still_read(kind: str, name: str, what: str, readers: list[str], place: Place | None) -> UserError:
    return UserError(
        "still-read",
        f'{kind} "{name}" cannot be {what} while it is read',
        place=place,
        detail=f"It is read by {quoted(readers)}.",
        hint="Drop those first.",
    )


def _refuse_read(query: str, what: str, catalog: Catalog, place: Place | None) -> None:
    """Refuse to drop or alter a query that others read by its name, or whose errors they read."""
    every: list[View | Query] = [*catalog.views.values(), *catalog.queries.values()]
    own = errors_name(query).lower()  # comes and goes with it
    readers = sorted(one.name for one in every if query.lower() in one.reads and one.name.lower() != own)
    if readers:
        raise _still_read("query", query, what, readers, place)


def _refuse_kept_errors(query: str, catalog: Catalog, place: Place | None) -> None:
    """Refuse to drop or alter the query that keeps what another one leaves out."""
    owner = catalog.owner_of_errors(query)
    if owner is not None and catalog.permissions is not None:  # the engine itself has none
        raise UserError(
            "keeps-errors",
            f'query "{query}" keeps what query "{owner}" leaves out',
            place=place,
            hint=f"It goes with that one, or when that one is altered to ON ERROR STOP: DROP QUERY {spelled(owner)}.",
        )


def _refuse_grouped(query: str, what: str, catalog: Catalog, place: Place | None) -> None:
    """Refuse to drop or alter a query that belongs to a group."""
    found = catalog.groups_of(query)
    if found:
        raise UserError(
            "in-a-group",
            f'query "{catalog.query(query).name}" cannot be {what} while it belongs to a group',
            place=place,
            detail=f"It is one of {quoted(found)}.",
            hint=f"DROP GROUP {found[0]}.",
        )


def _readers(name: str, catalog: Catalog) -> list[str]:
    """The views and queries that read a stream or relation, or its dead letters."""
    plans = [(view.name, view.plan) for view in catalog.views.values()]
    plans += [(query.name, query.plan) for query in catalog.queries.values()]
    under = (name, late_name(name))
    return sorted({reader for reader, plan in plans for read in sources(plan) if read.name.lower() in under})


def _alter(tree: syntax.Alter, text: str, catalog: Catalog, place: _Places) -> Definition:
    """Replace a definition. One in quarantine is defined anew."""
    named = tree.this if isinstance(tree.this, exp.Identifier) else tree.this.this
    if tree.args.get("column") is not None:
        stream = catalog.only_stream(named.name, "ALTER STREAM", place(named))
        (column,) = _columns(syntax.Alter(columns=[tree.args["column"]]), place)
        if column.name.lower() in {known.lower() for known in stream.row_columns()}:
            at = place(tree.args["column"].this)
            raise UserError("name-taken", f'stream "{stream.name}" has a column "{column.name}" already', place=at)
        readers.check_columns([tree.args["column"]], stream.connector, place)
        wider = replace(stream, columns=(*stream.columns, column))
        catalog.streams[stream.name.lower()] = wider
        return Altered(wider, stream)
    kind = "query" if isinstance(tree.this, syntax.CreateQuery) else "view"
    known = catalog.of_kind(kind)
    if named.name.lower() not in known and catalog.in_quarantine(named.name, (kind,)) is not None:
        return _define(tree.this, text, catalog, place.origin)
    if named.name.lower() not in known:
        raise unknown(kind, named.name, (thing.name for thing in known.values()), place(named))
    if kind == "query":
        _refuse_kept_errors(named.name, catalog, place(named))
        _refuse_read(named.name, "altered", catalog, place(named))
        _refuse_grouped(named.name, "altered", catalog, place(named))
    before = known.pop(named.name.lower())
    now = _define(tree.this, text, catalog, place.origin)
    assert isinstance(now, View | Query)
    return Altered(now, before)


def parameter(query: str, name: str, catalog: Catalog, place: Place | None = None) -> ParameterValue:
    """The parameter of a query; an error if it has none of that name."""
    known = catalog.query(query, place)
    found = catalog.parameters.get(f"{known.name}.{name}".lower())
    if found is not None:
        return found
    own = [one.name for one in catalog.parameters.values() if one.query.lower() == known.name.lower()]
    raise unknown("parameter", name, own, place)


def _set_parameter(tree: syntax.SetParameter, catalog: Catalog, place: _Places) -> ParameterSet:
    known = parameter(tree.name, tree.args["parameter"].name, catalog, place(tree.args["parameter"]))
    value, at = tree.args["value"], place(tree.args["parameter"])
    negative = isinstance(value, exp.Neg)
    plain = value.this if negative else value
    if not isinstance(plain, exp.Literal | exp.Boolean):
        raise UserError("wrong-type", "a parameter takes a literal", place=at, hint="SET least = 100")
    written: object = plain.name if isinstance(plain, exp.Literal) and plain.is_string else None
    if isinstance(plain, exp.Boolean):
        written = bool(plain.this)
    elif not plain.is_string:
        written = (-1 if negative else 1) * (int(plain.name) if plain.name.isdigit() else float(plain.name))
    since = tree.args.get("since")
    if since is not None and not (isinstance(since, exp.Literal) and not since.is_string and since.name.isdigit()):
        raise UserError("wrong-type", "FROM takes an instant as a number", place=at, hint="FROM 1200, or without FROM")
    return ParameterSet(
        known.query,
        known.name,
        sql_value(written, known.type, at),
        None if since is None else int(since.name),
        at,
    )


def snapshot_asked(
    names: Sequence[str], catalog: Catalog, places: Sequence[Place | None] = (), early: bool = False
) -> SnapshotAsked:
    """What SNAPSHOT asks for; a group stands for its queries. An error unless they are different queries that give
    relations over one kind of time, and whose results are kept.
    """
    if not names:
        raise UserError("no-name", "a snapshot needs the name of a query", hint="SNAPSHOT a, b;")
    named: list[tuple[str, Place | None]] = []
    for name, place in zip(names, places or [None] * len(names), strict=True):
        group = catalog.groups.get(name.lower())
        named += [(name, place)] if group is None else [(query, place) for query in group.queries]
    queries = _together(named, "a snapshot", catalog)
    return SnapshotAsked(tuple(query.name for query in queries), tuple(place for _, place in named), early)


def _group(tree: syntax.CreateGroup, catalog: Catalog, place: _Places) -> Group:
    """A group of queries, with the sink of each."""
    named = tree.expressions
    queries = _together([(one.name, place(one)) for one in named], "a group", catalog)
    connector, members = groups.connectors(tree, queries, catalog.permissions, place)
    return Group(tree.name, tuple(query.name for query in queries), connector, members)


def _together(named: Sequence[tuple[str, Place | None]], what: str, catalog: Catalog) -> list[Query]:
    """Queries that can have one instant in common: each is named once."""
    queries: list[Query] = []
    for name, place in named:
        query = _kept_relation(name, what, catalog, place)
        if query in queries:
            raise UserError("name-taken", f'query "{query.name}" stands twice', place=place)
        queries.append(query)
    _refuse_two_times(queries, what, [place for _, place in named])
    return queries


def _kept_relation(name: str, what: str, catalog: Catalog, place: Place | None) -> Query:
    """The query of that name, if it gives a relation and its results stay with the engine."""
    if name.lower() not in catalog.queries and catalog.has_source(name):
        found = catalog.source(name)
        kind, flows = (
            type(found).__name__.lower(),
            isinstance(found, Stream) or (isinstance(found, View) and is_stream(found.plan)),
        )
        hint = f"CREATE QUERY {name}_now AS SELECT * FROM {name}{' [RANGE UNBOUNDED]' if flows else ''}, and name that."
        raise UserError("wrong-kind", f'"{name}" is a {kind}, and {what} is of queries', place=place, hint=hint)
    query = catalog.query(name, place)
    if is_stream(query.plan):
        raise UserError(
            "wrong-kind",
            f'query "{query.name}" gives a stream, and {what} is of relations',
            place=place,
            detail="A stream has tuples that come, and no rows that are there at an instant.",
            hint="Leave ISTREAM, DSTREAM or RSTREAM out, and give what it reads a window.",
        )
    if query.connector is not None and query.connector.format != "memory":
        raise UserError(
            "results-elsewhere",
            f'the results of query "{query.name}" go to {query.connector.format}',
            place=place,
            hint=f'Leave INTO out of query "{query.name}", or create another query without it.',
        )
    return query


def _refuse_two_times(queries: Sequence[Query], what: str, places: Sequence[Place | None]) -> None:
    """Refuse queries that have no instants in common, because they are over different kinds of time."""
    first = queries[0]
    for query, place in zip(queries, places, strict=True):
        if domain(query.plan) is not domain(first.plan):
            raise UserError(
                "time-domains-differ",
                f"{what} has one instant, and these queries are over different kinds of time",
                place=place,
                detail=f'Query "{first.name}" has {domain(first.plan)}, and "{query.name}" has {domain(query.plan)}.',
                hint="Name those of one kind only.",
            )


def shown(kind: str, catalog: Catalog) -> Listing:
    """Answer SHOW STREAMS, QUERIES, ...: list everything of that kind."""
    if kind == "SETTINGS":
        return Listing(("setting", "value", "values"), tuple(settings.listed(catalog.settings)))
    if kind == "PROTOCOLS":
        protocols = catalog.protocols.values()
        return Listing(("protocol", "fields"), tuple((one.name, _fields(one)) for one in protocols))
    if kind == "PARAMETERS":
        of = catalog.parameters.values()
        return Listing(
            ("query", "parameter", "type", "value"), tuple((one.query, one.name, one.type, one.value) for one in of)
        )
    if kind == "SYSTEM STREAMS":
        rows_of = ((one.name, one.rows, signature(one.entry().columns)) for one in system.TABLE.values())
        return Listing(("system stream", "of", "columns"), tuple(rows_of))
    if kind == "QUARANTINE":
        held = ((one.kind, one.name, one.why, one.mend) for one in catalog.quarantine.values())
        return Listing(("kind", "name", "why", "how to mend it"), tuple(held))
    singular = {"QUERIES": "query"}.get(kind, kind.lower().removesuffix("s"))
    rows = []
    for thing in catalog.of_kind(singular).values():
        match thing:
            case Group():
                target = "" if thing.connector is None else thing.connector.format
                rows.append((thing.name, ", ".join(thing.queries), target))
            case Function():
                rows.append((thing.name, ", ".join(thing.parameters), thing.body))
            case Query() | View():
                given = "stream" if is_stream(thing.plan) else "relation"
                given += ", on error skip" if isinstance(thing, Query) and thing.skips else ""
                rows.append((thing.name, given, signature(thing.plan.columns)))
            case Stream() | Relation():
                origin = thing.connector.format if thing.connector else "push"
                rows.append((thing.name, origin, signature(thing.columns)))
    headings = {"function": ("function", "parameters", "body"), "group": ("group", "of", "into")}
    return Listing(headings.get(singular, (singular, "of", "columns")), tuple(rows))


def _fields(protocol: Protocol) -> str:
    return ", ".join(
        f"{one.kind} {one.name}" + (f" ({one.order})" if one.order is not None else "") for one in protocol.attributes
    )


def described(name: str, catalog: Catalog, place: Place | None) -> Listing:
    """Answer DESCRIBE: list the columns of a stream, relation, view or query, and which of them hold its time."""
    found = catalog.queries.get(name.lower()) or catalog.source(name, place)
    columns = found.plan.columns if isinstance(found, Query | View) else found.columns
    notes = {}
    if isinstance(found, Stream | Relation) and found.timestamp is not None:
        notes[found.timestamp.lower()] = "timestamp"
    if isinstance(found, Stream):
        notes = {column.name.lower(): column.order for column in found.columns if column.order} | notes
        notes |= {
            name.lower(): note for name, note in ((found.source, "source"), (found.heartbeat, "heartbeat")) if name
        }
    if isinstance(found, Relation):
        notes |= {key.lower(): "key" for key in found.key} | ({found.change.lower(): "change"} if found.change else {})
    for column in columns:
        if column.check is not None:
            before = notes.get(column.name.lower())
            notes[column.name.lower()] = f"{before + ', ' if before else ''}CHECK ({column.check})"
    return Listing(("column", "type", "is"), tuple((c.name, c.type, notes.get(c.name.lower(), "")) for c in columns))


class _Places:
    """Where a name or a statement stands in the script."""

    def __init__(self, text: str, origin: str) -> None:
        self.text = text
        self.origin = origin

    def __call__(self, tree: exp.Expression) -> Place | None:
        if "start" not in tree.meta:
            return None
        end = tree.meta["end"] + (1 if isinstance(tree, exp.Identifier) else 0)
        return Place(self.text, tree.meta["start"], end, self.origin)


def _span(tree: exp.Expression, text: str) -> str:
    return text[tree.meta.get("start", 0) : tree.meta.get("end", len(text))]


def _query(
    name: str,
    tree: exp.Expression,
    text: str,
    catalog: Catalog,
    place: _Places,
    created: syntax.CreateQuery | None = None,
    members: exp.Identifier | None = None,
) -> Query:
    # others read a query of GSQL by its plan; of a family, no member has errors of its own
    alone = members is not None or tree.meta.get("gsql") or tree.meta.get("skips")
    query = None if alone else _bound_or_known(name, tree, text, catalog, place, created)
    if query is None:
        query = _bound(name, tree, text, catalog, place, members)
    if created is not None:
        kind = "stream" if is_stream(query.plan) else "relation"
        connector = into.checked(created, name, kind, query.plan.columns, catalog.permissions, place)
        query = replace(query, connector=connector, from_beginning=bool(created.args.get("from_beginning")))
    catalog.add(query, place(created.this) if created is not None else None)
    return query


def _bound_or_known(
    name: str, tree: exp.Expression, text: str, catalog: Catalog, place: _Places, created: syntax.CreateQuery | None
) -> Query | None:
    """A query that may be one of a family; if one of its shape was bound before, with that one's plans. None if it
    cannot be one.
    """
    found = shapes.found(tree, created, catalog, place.origin)
    if found is None:
        return None
    shape, _ = found
    allowed = shape.key, repr(catalog.permissions)
    known = catalog.shapes.get(allowed)
    if known is not None:
        words = _span(tree, text)
        return replace(known, name=name, text=words, resolved=words, shape=shapes.kept(shape), borrowed=True)
    query = _bound(name, tree, text, catalog, place, None)
    if not shapes.fits(query):
        return query
    query = replace(query, shape=shapes.kept(shape))
    catalog.shapes[allowed] = replace(query, connector=None, from_beginning=False)
    while len(catalog.shapes) > KNOWN_SHAPES:
        catalog.shapes.pop(next(iter(catalog.shapes)))
    return query


def with_own_plan(query: Query) -> Query:
    """The query with the plans of its own text, if it has those of another."""
    if not query.borrowed:
        return query
    tree, place = script.parse(query.text)[0], _Places(query.text, query.shape.origin)
    own = _bound(query.name, tree, query.text, query.shape.catalog, place, None)
    return replace(query, resolved=own.resolved, bound=own.bound, plan=own.plan, rules=own.rules, borrowed=False)


def found_family(query: Query, name: str) -> Query | None:
    """The family to which a query with a shape belongs, as a query; None if those of its shape have to run alone."""
    tree = script.parse(query.text)[0]
    found = shapes.found(tree, None, query.shape.catalog, query.shape.origin)
    made = shapes.bind_found(found[1], query, query.shape) if found is not None else None
    if made is None:
        return None
    bound, family = made
    better = rewritten(bound.plan)
    return Query(
        name,
        query.text,
        family.text,
        bound.plan,
        better.plan,
        better.fired,
        heartbeats=query.heartbeats,
        ordering=query.ordering,
        family=family,
    )


def _members(named: exp.Identifier, catalog: Catalog, place: _Places) -> families.Members:
    """The members of the family that a relation stands for."""
    if not catalog.has_source(named.name):
        raise unknown("relation", named.name, (found.name for found in catalog.relations.values()), place(named))
    found = catalog.source(named.name, place(named))
    if isinstance(found, Relation):
        return families.members_of(found)
    kind = "stream" if isinstance(found, Stream) else "view"
    raise UserError(
        "wrong-kind",
        f'"{named.name}" is a {kind}, and FOR EACH ROW OF needs a relation',
        place=place(named),
        hint="CREATE RELATION r (...), and put a row in for each member.",
    )


def _bound(
    name: str,
    tree: exp.Expression,
    text: str,
    catalog: Catalog,
    place: _Places,
    members: exp.Identifier | None,
) -> Query:
    """The query with the plan its text says and the one to run. Views stay as bound: they are rewritten with what reads
    them.
    """
    family = None
    if members is None:
        bound = bind(tree, text, catalog, place.origin)
    else:
        bound, family = families.bind_family(tree, text, catalog, place.origin, _members(members, catalog, place))
    skips = bool(tree.meta.get("skips"))
    given = skipping(bound.plan) if skips else None
    better = rewritten(bound.plan if given is None else given.plan)
    if given is not None and given.left_out:
        better = Rewritten(better.plan, ("rows that fail left out", *better.fired))
    if (over := followed(better.plan)) != better.plan:
        better = Rewritten(over, (*better.fired, "lives of values"))
    if catalog.settings.low_level == "on" and (over := weighted(better.plan)) != better.plan:
        better = Rewritten(over, (*better.fired, "partial aggregates"))
    settings, early = catalog.settings, _early(tree, catalog)
    heartbeats = settings.heartbeats if early is None else "query"  # early answers wait for no heartbeat
    at_once = better.plan.flowing and len(sources(better.plan)) == 1  # its answers wait for nobody
    whole = at_once or heartbeats != "query" or settings.ordering == "always"
    groups = () if whole else by_groups(better.plan, catalog.declarations.groups())
    if groups and early is not None and early.level != "none" and early.method == "draining":
        early = replace(early, method="fused")  # one fragment for each group is as consistent, and waits for no other
    return Query(
        name,
        _span(tree, text),
        bound.resolved,
        bound.plan,
        better.plan,
        better.fired,
        heartbeats=heartbeats,
        ordering=settings.ordering,
        sharing=settings.sharing == "on" and early is None,
        adaptive_joins=settings.join_order == "adaptive",
        join_caches=settings.join_caches == "adaptive",
        skips=skips,
        left_out=() if given is None else given.left_out,
        by_groups=() if early is not None and early.in_stages else groups,
        family=family,
        early=early,
        reads=bound.reads,
    )


def _early(tree: exp.Expression, catalog: Catalog) -> Early | None:
    given, chosen = tree.meta.get("early"), catalog.settings
    if given is None:
        return None
    level, method, marked = chosen.consistency, chosen.consistency_method, chosen.inconsistent == "mark"
    return Early(given.args["every_us"] or 0, level, method, marked, chosen.token_period)


def _relation(tree: syntax.CreateRelation, catalog: Catalog, place: _Places) -> Relation:
    """Fixed if it is read from somewhere without a timestamp; otherwise it changes at the instants its rows carry."""
    columns = _columns(tree, place)
    timestamp, domain = _timestamp(tree, columns, place)
    change = _one_of(tree.args.get("change"), columns, tree.name, place)
    key = tuple(found for given in tree.args.get("key") or () if (found := _one_of(given, columns, tree.name, place)))
    connector = readers.read_from(tree, timestamp is not None, catalog, place)
    readers.check_columns(tree.args["columns"], connector, place)
    fixed = timestamp is None and connector is not None and connector.format != "memory"
    if key and fixed:
        raise UserError(
            "no-timestamp-column",
            f'relation "{tree.name}" has a KEY, by which later rows replace earlier ones, and no time',
            place=place(tree.args["key"][0]),
            hint="Say TIMESTAMP BY which column.",
        )
    growing = not key and (fixed or (timestamp is not None and change is None))
    return Relation(tree.name, columns, None if fixed else domain, timestamp, change, growing, connector, key)


def _columns(tree: exp.Expression, place: _Places) -> tuple[Column, ...]:
    columns = tuple(
        Column(column.name, printed_type(column.args["kind"]), column.args.get("order"), _check(column, place))
        for column in tree.args["columns"]
    )
    _check_order(tree, columns, place)
    for position, column in enumerate(tree.args["columns"]):
        if column.name.startswith("_"):
            raise UserError(
                "bad-name",
                f'column "{column.name}" begins with an underscore',
                place=place(column.this),
                detail="Such names are headgate's own.",
            )
        if column.name.lower() in {other.name.lower() for other in columns[:position]}:
            raise UserError("name-taken", f'column "{column.name}" stands twice', place=place(column.this))
    return columns


def _check(written: exp.ColumnDef, place: _Places) -> Sql | None:
    """The condition of a column's CHECK in SQL: it compares the column with constants of its type."""
    check = written.args.get("check")
    if check is None:
        return None
    own, kind, condition = written.name, printed_type(written.args["kind"]), check.this.copy()
    named = column_name(own)
    for column in condition.find_all(exp.Column):
        if column.table or column.name.lower() != own.lower():
            raise UserError(
                "bad-check",
                f'CHECK of column "{own}" reads "{column.sql("cql")}"',
                place=place(check),
                detail="A CHECK is of the values of its own column.",
            )
        column.set("this", exp.to_identifier(own, quoted=named != own))
    sql = printed(condition)
    if kind in REAL or not is_cheap(Expression(f"NOT ({sql})", BOOLEAN, frozenset()), {own.lower(): kind}):
        values = "'a', 'b'" if kind == "STRING" else "1, 5, 60"
        raise UserError(
            "bad-check",
            f'the CHECK of column "{own}", which is {kind}, has a form that is not known',
            place=place(check),
            detail="It compares a column of whole numbers or of texts with constants.",
            hint=f"CHECK ({named} IN ({values})), or =, <, BETWEEN and the like, joined by AND, OR and NOT.",
        )
    return sql


def _check_order(tree: exp.Expression, columns: tuple[Column, ...], place: _Places) -> None:
    """INCREASING and DECREASING belong to columns of a stream whose values are counted or timed."""
    for written, column in zip(tree.args["columns"], columns, strict=True):
        if column.order is None or (
            isinstance(tree, syntax.CreateStream | syntax.Alter) and kind_of(column.type) is not None
        ):
            continue
        start, end = written.meta["order"]
        at, word = Place(place.text, start, end, place.origin), column.order.upper()
        if not isinstance(tree, syntax.CreateStream | syntax.Alter):
            raise UserError(
                "wrong-kind", f"{word} belongs to a column of a stream: tuples come in an order, rows do not", place=at
            )
        raise UserError(
            "wrong-type",
            f'column "{column.name}" is {column.type} and cannot be {word}',
            place=at,
            detail="An ordered column is of an integer type, TIMESTAMP or DATE.",
        )


def _stream(tree: syntax.CreateStream, catalog: Catalog, place: _Places) -> Stream:
    columns = _columns(tree, place)
    timestamp, domain, stamped = _stamped(tree, columns, place)
    connector = readers.read_from(tree, True, catalog, place)
    readers.check_columns(tree.args["columns"], connector, place)
    if connector is not None and connector.format != "memory" and timestamp is None and stamped == "external":
        raise UserError(
            "no-timestamp-column",
            f'stream "{tree.name}" is read from {connector.format} and needs TIMESTAMP BY',
            place=place(tree.this),
            hint="Say TIMESTAMP BY which column, or TIMESTAMP INTERNAL or LATENT if none holds it.",
        )
    source = _one_of(tree.args.get("source"), columns, tree.name, place)
    heartbeat = _heartbeat(tree, columns, timestamp, domain, place)
    stream = Stream(
        tree.name, columns, domain, timestamp, connector, stamped, source, heartbeat, tree.args.get("late") or "keep"
    )
    return replace(stream, ahead=time.ahead(tree.args.get("future"), stream, catalog, place))


def _stamped(
    tree: syntax.CreateStream, columns: tuple[Column, ...], place: _Places
) -> tuple[str | None, TimeDomain, Stamped]:
    """The column that holds the timestamp, if one does, the kind of time, and who stamps."""
    match tree.args.get("timestamp"):
        case "internal":
            return None, TimeDomain.TIMESTAMP, "internal"
        case "latent":
            return None, TimeDomain.ARRIVAL, "latent"
        case _:
            return *_timestamp(tree, columns, place), "external"


def _heartbeat(
    tree: syntax.CreateStream, columns: tuple[Column, ...], timestamp: str | None, domain: TimeDomain, place: _Places
) -> str | None:
    """The column in which the source sends heartbeats: it marks rows, or holds instants of the stream's time."""
    named = tree.args.get("heartbeat")
    name = _one_of(named, columns, tree.name, place)
    if name is None:
        return None
    if timestamp is None:
        raise UserError(
            "no-timestamp-column",
            "HEARTBEAT BY needs TIMESTAMP BY: heartbeats speak of timestamps that the source gives",
            place=place(named),
        )
    kind = next(column.type for column in columns if column.name == name)
    if kind == "BOOLEAN" or kind in (INTEGRAL if domain is TimeDomain.INTEGER else INSTANTS):
        return name
    raise UserError(
        "wrong-type",
        f'column "{name}" is {kind} and cannot hold heartbeats',
        place=place(named),
        detail=f'They are BOOLEAN, or instants like the timestamps in "{timestamp}".',
    )


def _timestamp(tree: exp.Expression, columns: tuple[Column, ...], place: _Places) -> tuple[str | None, TimeDomain]:
    named = tree.args.get("timestamp")
    name = _one_of(named, columns, tree.name, place)
    if name is None:
        return None, TimeDomain.INTEGER
    kind = next(column.type for column in columns if column.name == name)
    if kind in INTEGRAL:
        return name, TimeDomain.INTEGER
    if kind in INSTANTS:
        return name, TimeDomain.TIMESTAMP
    raise UserError(
        "wrong-type",
        f'column "{name}" is {kind} and cannot be a timestamp',
        place=place(named),
        detail="A timestamp is of type TIMESTAMP, DATE or an integer type.",
    )


def _one_of(named: exp.Identifier | None, columns: tuple[Column, ...], stream: str, place: _Places) -> str | None:
    if named is None:
        return None
    for column in columns:
        if column.name.lower() == named.name.lower():
            return column.name
    known = [column.name for column in columns]
    raise UserError(
        "no-such-column",
        f'column "{named.name}" does not exist in stream "{stream}"',
        place=place(named),
        detail=f'Columns of "{stream}" are {quoted(known)}.',
        hint=nearest(named.name, known),
    )
