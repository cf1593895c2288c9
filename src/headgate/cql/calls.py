"""Which functions a plan calls, by the text that Spark will see, and whether it may.

The plan holds every piece of SQL that a user wrote: views and functions in SQL are written out in it. So looking at
its texts finds a function however it was spelled, quoted, qualified or hidden. The names are judged by `permissions`;
the place of a refused one is looked up in the user's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from headgate.catalog.catalog import Catalog
from headgate.errors import Place, UserError, nearest
from headgate.plan.expressions import Call, Expression
from headgate.plan.left_out import TRIED
from headgate.plan.nodes import Node, children
from headgate.sql import BARE
from headgate.sql.functions import COMPUTES, REFUSED
from headgate.sql.printer import is_type
from headgate.sql.reading import parsed

READING_TEXTS = frozenset(
    """
    from_avro from_csv from_json from_xml schema_of_avro schema_of_csv schema_of_json schema_of_xml to_avro to_csv
    to_json to_xml
    """.split()
)
"""Functions that take options, some of which name files."""

OPTIONS = frozenset(
    """
    allowbackslashescapinganycharacter allowcomments allownonnumericnumbers allownumericleadingzeros allowsinglequotes
    allowunquotedcontrolchars allowunquotedfieldnames arrayelementname attributeprefix chartoescapequoteescaping
    columnnameofcorruptrecord comment compression dateformat datetimerebasemode declaration delimiter dropfieldifallnull
    emptyvalue encoding escape escapequotes excludeattribute ignoreleadingwhitespace ignorenamespace ignorenullfields
    ignoresurroundingspaces ignoretrailingwhitespace linesep locale maxcharspercolumn maxcolumns mode multiline
    nanvalue negativeinf nullvalue positiveinf prefersdecimal prefersdate preferdate primitivesasstring quote quoteall
    recursivefieldmaxdepth roottag rowtag sep timestampformat timestampntzformat timezone treatemptyvaluesasnulls
    unescapedquotehandling validatename valuetag wildcardcolname
    """.split()
)
"""The options that texts may give these functions: how a text is written, and nothing that names a file."""

PARAMETER = "parameter"
"""What stands for a parameter of a query until it is compiled."""

TRYING = ("headgate_try", "headgate_once")
"""Functions that the engine writes itself, for queries with ON ERROR SKIP (`cql.skipping`)."""

NOT_CALLED = frozenset(
    """all and any array as join between by case cast char date decimal distinct else end exists extract filter from
    group having ignore in interval is like ilike rlike not null numeric on or order over partition range respect
    rows select separator some struct then time timestamp timestamp_ltz timestamp_ntz try_cast union using values
    varchar when where within timestampadd timestampdiff map position substring trim overlay binary nulls last first
    with dec character float double string int bigint smallint tinyint boolean variant""".split()
)
"""Words that may stand before a parenthesis without being functions, or that Spark's parser handles itself."""

KNOWN = COMPUTES | NOT_CALLED
SPELLED = {
    "rand": ("random",),
    "uuid": ("gen_random_uuid",),
    "current_date": ("curdate",),
    "current_timestamp": ("unix_timestamp", "to_unix_timestamp", "utc_timestamp", "utc_date", "utc_time", "getdate"),
}
"""Other names of functions, by the name that sqlglot writes for them."""

TODAY = frozenset(("now", "today", "tomorrow", "yesterday"))
"""Texts that Spark takes for instants of its own clock where it expects a time."""

SPECIAL = re.compile(rf"[\x00-\x20\x7f]*({'|'.join(sorted(TODAY))})\b")
"""Spark leaves out blanks and control characters before such a text, and takes what is behind it for a zone."""


def check(plan: Node, catalog: Catalog, place: Place) -> None:
    """Refuses a plan that calls a forbidden or unknown function; `place` is the place of the query."""
    if catalog.permissions is None:  # a definition read again after a restart was allowed before
        return
    texts = tuple(text.replace(TRIED, "CASE WHEN TRUE THEN (") for text in sql_texts(plan))
    names = {name for text in texts for name in called_functions(text)}
    for name in sorted(names):
        refuse(name, place)
    for text in texts:
        lowered = text.lower()
        if any(name in lowered for name in READING_TEXTS):
            _check_reading(text, place)
        if "aes_encrypt" in lowered:
            _check_encryption(text, place)
        if any(word in lowered for word in TODAY):
            _check_instants(text, temporal_columns(plan), place)
    refuse_unknown(names, catalog, place)


def refuse_unknown(names: Iterable[str], catalog: Catalog, place: Place) -> None:
    """Refuses names that are neither Spark's own functions nor somebody's who may be called here."""
    assert catalog.permissions is not None
    known = KNOWN | {PARAMETER} | {name.lower() for name in (*catalog.functions, *catalog.outside, *catalog.aggregates)}
    for name in sorted(set(names) - known):
        if catalog.permissions.restricted or name not in catalog.session_functions:
            hint = nearest(name, sorted(known)) or "engine.register_function makes a function in Python known."
            raise UserError(
                "no-such-function", f'there is no function "{name}"', place=place_of(name, place), hint=hint
            )


def refuse_called(tree: exp.Expression, place: Place) -> None:
    """Refuses an expression, as it was read, that calls a function which no query may call."""
    for node in tree.find_all(exp.Func):
        name = node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()
        refuse(name, place)
        if name in TRYING:
            hint = "engine.register_function makes a function in Python known."
            raise UserError(
                "no-such-function", f'there is no function "{name}"', place=place_of(name, place), hint=hint
            )


def refuse(name: str, place: Place) -> None:
    """Refuses a function that no query may call, such as one that gives another value each time."""
    refused = REFUSED.get(name)
    if refused is None:
        return
    undetermined = refused.kind == "undetermined"
    why = "gives another value each time it is called" if undetermined else "reaches beyond the query"
    raise UserError(
        "not-deterministic" if undetermined else "function-refused",
        f"{name.upper()} {why}",
        place=place_of(name, place),
        detail="An answer must follow from the tuples, and from nothing else.",
        hint=refused.hint,
    )


def place_of(name: str, place: Place, literal: bool = False) -> Place:
    """The place of a word, or of a literal, in the user's text; the whole query if it does not occur."""
    names = (name,) if literal else (name, *SPELLED.get(name, ()))
    written = place.text[place.start : place.end]
    try:
        tokens = Spark().tokenize(written)
    except SqlglotError:
        return place
    for token in tokens:
        if token.text.lower() in names and (token.token_type == TokenType.STRING) == literal:
            return Place(place.text, place.start + token.start, place.start + token.end + 1, place.origin)
    return place


def calls_unknown(plan: Node) -> bool:
    """Whether a plan calls functions that Spark does not have by itself: the user's."""
    return not {name for text in sql_texts(plan) for name in called_functions(text)} - {PARAMETER, *TRYING} <= KNOWN


def called_functions(sql: str) -> Iterator[str]:
    """The functions that a text of Spark SQL calls, in lower case.

    A call is a name before a parenthesis, or a name such as CURRENT_DATE that needs none.
    """
    tokens = Spark().tokenize(sql)
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        quoted = token.token_type == TokenType.IDENTIFIER
        if token.token_type in (TokenType.STRING, TokenType.NUMBER) or not (quoted or token.text[:1].isidentifier()):
            continue
        word = token.text.lower()
        behind = following.token_type if following is not None else None
        if behind == TokenType.L_PAREN or (word in BARE and token.token_type != TokenType.IDENTIFIER):
            yield word


def sql_texts(value: object) -> Iterator[str]:
    """Every piece of SQL text in a plan."""
    seen: set[int] = set()
    waiting: list[object] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, tuple | frozenset):
            waiting.extend(one)
        elif is_dataclass(one) and id(one) not in seen:
            seen.add(id(one))
            if isinstance(one, Expression):
                yield one.sql
                continue
            if isinstance(one, Call):
                yield one.sql
                if one.condition is not None:
                    yield one.condition
            waiting.extend(getattr(one, field.name) for field in fields(one))


def _tree(sql: str) -> exp.Expression:
    tree = parsed(sql)
    if tree is None:
        raise SqlglotError(f"what cannot be read cannot be judged: {sql}")
    return tree


def _trees(sql: str, kinds: Iterable[str]) -> Iterator[exp.Expression]:
    for node in _tree(sql).find_all(exp.Func):
        name = node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()
        if name in kinds:
            yield node


def _check_reading(sql: str, place: Place) -> None:
    """Refuse schemas that are no literals, and options that are not on the list, of functions that read texts."""
    for node in _trees(sql, READING_TEXTS):
        name = node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()
        arguments = list(node.iter_expressions())
        schema = arguments[1:2] if name in ("from_csv", "from_json", "from_xml") else []
        options = arguments[1:] if name.startswith(("schema_of", "to_")) and name != "to_avro" else arguments[2:]
        if not all(map(_is_schema, schema)):
            raise UserError(
                "function-refused",
                f"{name.upper()} takes its columns as a text, such as 'a INT, b STRING'",
                place=place_of(name, place),
                hint="SCHEMA_OF_JSON and its kin may stand there too, around a text.",
            )
        for given in options:
            if not _are_options(given):
                raise UserError(
                    "function-refused",
                    f"{name.upper()} takes other options",
                    place=place_of(name, place),
                    detail="Some options of Spark name files to read.",
                    hint="Options stand in MAP('name', 'value'), as texts, and say how a value is written: "
                    "MAP('timestampFormat', 'dd/MM/yyyy').",
                )


def _is_schema(tree: exp.Expression) -> bool:
    """Whether it is a text of columns or of a type that we can read, or a schema that Spark finds in a text."""
    if isinstance(tree, exp.Literal) and tree.is_string:
        return any(is_type(text) for text in (tree.name, f"STRUCT<{tree.name}>"))
    inferred = isinstance(tree, exp.Anonymous) and tree.name.lower().startswith("schema_of_")
    return inferred and all(
        isinstance(part, exp.Literal | exp.Map | exp.VarMap | exp.Array) for part in tree.expressions
    )


def _are_options(tree: exp.Expression) -> bool:
    """Whether it is a MAP of texts whose names are on the list."""
    match tree:
        case exp.VarMap() | exp.Map():
            keys, values = tree.args.get("keys"), tree.args.get("values")
            named, said = [part.expressions if isinstance(part, exp.Array) else [] for part in (keys, values)]
            return (
                bool(named)
                and len(named) == len(said)
                and all(isinstance(one, exp.Literal) for one in (*named, *said))
                and all(one.name.lower() in OPTIONS for one in named)
            )
        case _:
            return False


def _check_encryption(sql: str, place: Place) -> None:
    """Refuse AES_ENCRYPT without an initialization vector, because it would draw a random one."""
    for node in _trees(sql, ("aes_encrypt",)):
        arguments = list(node.iter_expressions())
        mode = arguments[2].name.upper() if len(arguments) > 2 and arguments[2].is_string else ""
        vector = arguments[4] if len(arguments) > 4 else None
        drawn = vector is None or isinstance(vector, exp.Null) or (isinstance(vector, exp.Literal) and not vector.name)
        if mode != "ECB" and drawn:
            raise UserError(
                "not-deterministic",
                "AES_ENCRYPT gives another value each time it is called",
                place=place_of("aes_encrypt", place),
                hint="Give it a mode, a padding and an initialization vector, which makes five arguments.",
            )


def temporal_columns(plan: Node) -> frozenset[str]:
    """The names of all columns in the plan that hold a TIMESTAMP or a DATE."""
    found, waiting = set(), [plan]
    while waiting:
        node = waiting.pop()
        waiting.extend(children(node))
        found |= {column.name.lower() for column in node.columns if column.type.startswith(("TIMESTAMP", "DATE"))}
    return frozenset(found)


def _check_instants(sql: str, times: frozenset[str], place: Place) -> None:
    """Refuse texts such as 'now' where a time is wanted, because Spark takes them for instants of its own clock."""
    for literal in _tree(sql).find_all(exp.Literal):
        instant = SPECIAL.match(literal.name.lower())
        if not literal.is_string or instant is None or not _wants_instant(literal, times):
            continue
        raise UserError(
            "not-deterministic",
            f"Spark takes '{literal.name}' for an instant of its own clock",
            place=place_of(literal.name.lower(), place, literal=True),
            detail="An answer must follow from the tuples, and from nothing else.",
            hint="Write the date, or compare with ELEMENT_TIME. As a text: CONCAT('to', 'day') = column.",
        )


def _wants_instant(literal: exp.Expression, times: frozenset[str]) -> bool:
    around = literal.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    match around:
        case None:
            return False
        case exp.Cast():
            return around.to.this in exp.DataType.TEMPORAL_TYPES
        case (
            exp.EQ()
            | exp.NEQ()
            | exp.GT()
            | exp.GTE()
            | exp.LT()
            | exp.LTE()
            | exp.In()
            | exp.Between()
            | exp.NullSafeEQ()
        ):
            others = [node for node in around.iter_expressions() if node is not literal]
            return any(_looks_temporal(node, times) for node in others)
        case _:
            name = (
                around.name
                if isinstance(around, exp.Anonymous)
                else around.sql_name()
                if isinstance(around, exp.Func)
                else ""
            )
            return any(
                word in name.lower()
                for word in ("date", "time", "day", "month", "year", "hour", "minute", "trunc", "week")
            )


def _looks_temporal(tree: exp.Expression, times: frozenset[str]) -> bool:
    """Whether an expression seems to give a time."""
    cast = tree.find(exp.Cast)
    return any(column.name.lower() in times for column in tree.find_all(exp.Column)) or (
        cast is not None and cast.to.this in exp.DataType.TEMPORAL_TYPES
    )
