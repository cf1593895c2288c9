"""Completes statements: keywords of CQL, names of the catalog, columns of the streams that a statement mentions.

Text and a catalog come in, candidates go out; no terminal and no Spark. The shell and the console use it. It reads
words, not grammar, because the statement is not finished yet. Columns of subqueries and of WITH are not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Group, Query, Relation, Stream, View
from headgate.catalog.readers import STREAMED
from headgate.catalog.sinks import SINKS
from headgate.catalog.system import PREFIX, short_name
from headgate.cql.statement_grammar import LISTED, STATEMENTS
from headgate.cql.time_grammar import UNITS
from headgate.editing.entries import split
from headgate.editing.words import KEYWORDS, Word, words
from headgate.gsql.parser import JOINS, OPENING
from headgate.gsql.types import TYPES as GSQL_TYPES
from headgate.settings import TABLE, settable
from headgate.sql import Column, backquoted, is_plain

CLAUSES_OF_GSQL = """SELECT FROM WHERE GROUP BY SUPERGROUP HAVING MERGE ROLLUP CUBE GROUPING_SETS AND OR NOT IN AS TRUE
FALSE IP_VAL IPV6_VAL TIMEVAL HEX DEFINE PARAM INTO""".split()
ELSEWHERE = """
    CHANGE CREATE DISORDER EXPLAIN FUNCTION NOW OF OPTIONS QUERY RELATION RETURN RETURNS SET SLIDE STREAM TIMEOUT VIEW
"""
IN_QUERIES = sorted(KEYWORDS - set(ELSEWHERE.split()))
TYPES = "ARRAY BIGINT BOOLEAN DATE DECIMAL DOUBLE FLOAT INT MAP SMALLINT STRING STRUCT TIMESTAMP".split()
CLAUSES = ("SELECT", "FROM", "WHERE", "BY", "HAVING", "ON", "UNION", "EXCEPT", "INTERSECT", "LIMIT")
SPANS = [f"{unit}S" for unit in UNITS]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One completion, with what it is."""

    text: str
    kind: str
    """keyword, command, type, function, value, column with its type, or a kind of thing in the catalog."""


@dataclass(frozen=True, slots=True)
class Completions:
    """The candidates at the cursor, and the beginning of a word that they replace."""

    typed: str
    """The beginning of a word before the cursor, which a candidate replaces."""

    candidates: list[Candidate]


def completions(before: str, catalog: Catalog, after: str = "") -> Completions:
    """The candidates between the text before the cursor and the text after it, in the order they are offered."""
    line = before[before.rfind("\n") + 1 :].lstrip()
    _, rest = split(before)
    last = list(words(rest or line))[-1:]
    if any(word.kind in ("open", "string") or word.text.startswith("--") for word in last):
        return Completions("", [])
    past = list(words(rest))
    typed = past.pop().text if past and past[-1].kind in ("word", "number") else ""
    known = [word for word in past if not word.blank]
    coming = [word for word in words(after.partition(";")[0]) if not word.blank]
    return Completions(typed, matching(typed, in_statement(known, coming, catalog)))


def matching(typed: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates that begin with what is typed, each once; keywords in lower case for a user of lower case."""
    chosen: dict[str, Candidate] = {}
    for candidate in candidates:
        if candidate.text.lstrip("`").lower().startswith(typed.lower()):
            small = candidate.kind in ("keyword", "type") and typed != "" and typed.islower()
            text = candidate.text.lower() if small else candidate.text
            chosen.setdefault(text.lower(), Candidate(text, candidate.kind))
    return list(chosen.values())


def in_statement(past: Sequence[Word], coming: Sequence[Word], catalog: Catalog) -> list[Candidate]:
    """Candidates inside a statement, by its first words."""
    in_gsql = catalog.settings.dialect == "gsql"
    if not past:
        return keywords([*OPENING, *STATEMENTS] if in_gsql else STATEMENTS)
    if in_gsql and past[0].upper in OPENING:
        return in_gsql_statement(past, coming, catalog)
    bracket = open_bracket(past)
    if past[-1].text == "." and len(past) > 1 and past[-2].name == "system":
        return [Candidate(short_name(one.name), "system stream") for one in catalog.system.values()]
    if past[-1].text == ".":
        known = {**columns_by_source(catalog), **sources_read([*past, *coming], catalog)}
        return columns_of([past[-2].name] if len(past) > 1 else [], known)
    if bracket is not None:
        return in_window(past[bracket + 1 :], columns_before(past, bracket, catalog))
    match [word.upper for word in past[:2]]:
        case ["CREATE"]:
            return keywords(["STREAM", "RELATION", "VIEW", "QUERY", "QUERIES", "GROUP", "FUNCTION", "CONSTRAINT"])
        case ["CREATE", ("STREAM" | "RELATION") as kind]:
            return in_definition(past[2:], kind)
        case ["CREATE", "FUNCTION"]:
            return keywords(["RETURNS", "RETURN"]) + [Candidate(name, "type") for name in TYPES]
        case ["CREATE" | "ALTER", "QUERIES"] if not any(word.upper == "AS" for word in past):
            return in_family(past, catalog)
        case ["CREATE", "VIEW" | "QUERY"] if not any(word.upper == "AS" for word in past):
            return keywords(["AS"]) if len(past) > 2 else []
        case ["CREATE", "GROUP"]:
            return in_group(past, catalog)
        case ["SET", *_]:
            return in_setting(past)
        case [statement, *_] if statement in ABOUT_TIME:
            return in_time(past, statement, catalog)
        case ["CONSTRAINT", *_] | ["CREATE", "CONSTRAINT"]:
            return in_constraint(past, catalog)
        case ["WHY", *_]:
            return catalog_names("query", catalog.queries.values())
        case ["SNAPSHOT", *_]:
            groups = catalog_names("group", catalog.groups.values())
            return [*catalog_names("query", catalog.queries.values()), *groups]
        case ["SHOW"]:
            return keywords(LISTED)
        case ["DROP"]:
            return keywords(["STREAM", "RELATION", "VIEW", "QUERY", "GROUP", "FUNCTION", "CONSTRAINT", *ABOUT_TIME])
        case ["DROP", statement, *_] if statement in ABOUT_TIME:
            return in_drop_of_declaration(past[1:], statement, catalog)
        case ["DROP", kind]:
            return droppable_names(kind, catalog)
        case ["DESCRIBE", *_]:
            return all_names(catalog)
        case [first, *_] if first in STATEMENTS or past[0].text == "(" or past[0].name in columns_by_source(catalog):
            return in_query(past, coming, catalog)
        case _:
            return [*all_names(catalog), *keywords(["STREAM", "RELATION", "VIEW", "QUERY"])]


def in_gsql_statement(past: Sequence[Word], coming: Sequence[Word], catalog: Catalog) -> list[Candidate]:
    """Candidates inside a statement of GSQL: types and orders in a schema, sources behind FROM, attributes, words."""
    if past[0].upper == "PROTOCOL":
        opened = sum({"{": 1, "}": -1}.get(word.text, 0) for word in past)
        types = [Candidate(name, "type") for name in GSQL_TYPES] if past[-1].text in ("{", ";") and opened > 0 else []
        return types or keywords(["increasing", "decreasing", "banded_increasing"])
    last = past[-1].upper
    if last == "{":
        return keywords(["query_name", "visibility"]) if past[-2].upper == "DEFINE" else []
    if last in ("FROM", ",") and clause(past) == "FROM":
        streams = [
            *source_names(catalog),
            *(Candidate(one.name, "query") for one in catalog.queries.values() if one.gsql),
        ]
        protocols = [Candidate(one.name, "protocol") for one in catalog.protocols.values()]
        interfaces = [
            Candidate(f"{one.name[: -len(one.protocol) - 1]}.{one.name[-len(one.protocol) :]}", "stream")
            for one in catalog.streams.values()
            if one.protocol and one.name.lower() != one.protocol
        ]
        return [*interfaces, *protocols, *streams]
    words = {word.name for word in (*past, *coming)}
    read = [
        Candidate(column.name, f"column {column.type}")
        for stream in catalog.streams.values()
        if words & {stream.name.lower(), stream.protocol}
        for column in stream.columns
    ]
    return [*read, *keywords([*CLAUSES_OF_GSQL, *JOINS])]


def in_group(past: Sequence[Word], catalog: Catalog) -> list[Candidate]:
    """Candidates inside CREATE GROUP: OF and queries, then INTO and a sink."""
    words = [word.upper for word in past]
    if "INTO" in words:
        grouped = [kind.name for kind in SINKS.values() if kind.together]
        return keywords(["OPTIONS"]) if words[-1] != "INTO" else [Candidate(name, "sink") for name in grouped]
    if "OF" in words:
        after = keywords(["INTO"]) if words[-1] not in ("OF", ",") else []
        return [*catalog_names("query", catalog.queries.values()), *after]
    return keywords(["OF"]) if len(words) > 2 else []


def in_family(past: Sequence[Word], catalog: Catalog) -> list[Candidate]:
    """Candidates before the query of a family: FOR EACH ROW OF and a relation, then AS."""
    words = [word.upper for word in past]
    if len(words) < 3:
        return []
    if words[-1] == "OF":
        return catalog_names("relation", catalog.relations.values())
    following = {"FOR": "EACH", "EACH": "ROW", "ROW": "OF"}
    if words[-1] in following:
        return keywords([following[words[-1]]])
    return keywords(["AS", "INTO", "FROM"]) if "OF" in words else keywords(["FOR"])


def in_query(past: Sequence[Word], coming: Sequence[Word], catalog: Catalog) -> list[Candidate]:
    """Candidates inside a query: sources behind FROM, otherwise columns, aliases, functions and keywords."""
    last = past[-1].upper
    if last == "INTO":
        return [Candidate(name, "value") for name in SINKS]
    if last in ("FROM", "JOIN") or (last == "," and clause(past) == "FROM"):
        return source_names(catalog)
    statement = [*past, *coming]
    seen = sources_read(statement, catalog)
    functions = [Candidate(function.name, "function") for function in list(catalog.functions.values())]
    starting = keywords(["SELECT", *IN_QUERIES]) if last in ("AS", "(", "EXPLAIN") else []
    aliases = [Candidate(quoted(alias), "alias") for alias in seen]
    return [*starting, *columns_of(seen, seen), *aliases, *functions, *keywords([*IN_QUERIES, "INTO", "ON ERROR SKIP"])]


def in_window(inside: Sequence[Word], columns: Sequence[Column]) -> list[Candidate]:
    """Candidates inside the brackets of a window: the kinds of windows, then what each of them takes."""
    typed = [word.upper for word in inside]
    offered = [Candidate(quoted(column.name), f"column {column.type}") for column in columns]
    match typed:
        case []:
            return keywords(["NOW", "RANGE", "ROWS", "PARTITION BY"])
        case [*_, "RANGE"]:
            return keywords(["UNBOUNDED"])
        case ["ROWS"]:
            return keywords(["UNBOUNDED"])
        case ["PARTITION"]:
            return keywords(["BY"])
        case ["PARTITION", *_, "BY" | ","]:
            return offered
        case ["PARTITION", *_, "ROWS", _]:
            return keywords(["RANGE"])
        case ["PARTITION", "BY", _, *behind] if "ROWS" not in behind:
            return keywords(["ROWS"])
        case [*_, "RANGE", _]:
            return keywords([*SPANS, "SLIDE"])
        case [*_, "SLIDE", _]:
            return keywords(SPANS)
        case [*_, "RANGE", _, _]:
            return keywords(["SLIDE"])
        case ["ROWS", _]:
            return keywords(["SLIDE"])
        case _:
            return []


def in_definition(past: Sequence[Word], kind: str) -> list[Candidate]:
    """Candidates inside CREATE STREAM or CREATE RELATION: types in parentheses, then the clauses behind them."""
    if not any(word.text == "(" for word in past):
        return []
    if sum({"(": 1, ")": -1}.get(word.text, 0) for word in past) > 0:
        options = any(word.upper == "OPTIONS" for word in past)
        if not options and past[-1].upper in TYPES and past[-2].kind in ("word", "quoted"):
            return keywords(["CHECK", *(["INCREASING", "DECREASING"] if kind == "STREAM" else [])])
        if past[-1].text == "(" and past[-2].upper == "CHECK":
            return [Candidate(past[-4].text, "column")]
        return (
            [Candidate(name, "type") for name in TYPES] if past[-1].kind in ("word", "quoted") and not options else []
        )
    match past[-1].upper:
        case "FROM":
            return [Candidate(name, "value") for name in STREAMED]
        case "TIMESTAMP" if kind == "STREAM":
            return keywords(["BY", "INTERNAL", "LATENT"])
        case "HEARTBEAT" if kind == "STREAM":
            return keywords(["BY", "ON DEMAND", "EVERY", "NONE"])
        case "TIMESTAMP" | "CHANGE" | "SOURCE" | "HEARTBEAT":
            return keywords(["BY"])
        case "BY":
            opening = next(position for position, word in enumerate(past) if word.text == "(")
            firsts = [past[i + 1] for i in range(opening, len(past) - 1) if i == opening or past[i].text == ","]
            return [Candidate(word.text, "column") for word in firsts if word.kind in ("word", "quoted")]
        case _ if past[-1].kind == "number":
            return keywords(SPANS)
        case _:
            own = (
                ["DISORDER", "LATENCY", "SOURCE BY", "HEARTBEAT", "LATE", "FUTURE"]
                if kind == "STREAM"
                else ["CHANGE BY"]
            )
            return keywords(["TIMESTAMP BY", *own, "FROM", "OPTIONS"])


ABOUT_TIME = {
    "SKEW": ("FROM", "CLOCK", "TO", "SOURCE", "AFTER", "WITHIN"),
    "DISORDER": ("OF", "SOURCE", "AFTER", "WITHIN"),
    "LATENCY": ("OF", "SOURCE"),
    "ENVIRONMENT": ("SENSORS", "GLOBAL_COUNTER", "DEVIATION", "RATE", "PROCESSING", "TO", "PER", "OF", "SOURCE"),
    "ESTIMATE": ("OF", "HORIZON", "WINDOW", "WEIGHT", "FIXED", "CONFIDENCE", "TUPLES"),
    "GROUPS": ("OF",),
    "LATE": ("OF", "KEEP", "DROP", "FAIL"),
    "FUTURE": ("OF", "UNLIMITED"),
    "HEARTBEAT": ("OF", "ON DEMAND", "EVERY", "NONE", "WITHIN"),
    "TIMEOUT": (),
}
"""The declarations about time, with the keywords that each of them may contain."""


NAMING = ("FROM", "CLOCK", "TO", "OF", "SOURCE", "SENSORS", "GLOBAL_COUNTER")
"""The keywords that name what was declared; they may also follow DROP."""


def in_drop_of_declaration(past: Sequence[Word], statement: str, catalog: Catalog) -> list[Candidate]:
    """Candidates behind DROP of a declaration about time, such as DROP DISORDER OF."""
    known = {*keywords(NAMING)}
    found = in_time(past, statement, catalog)
    return [one for one in found if one.kind != "keyword" or one in known] + (
        keywords(["IF EXISTS"]) if len(past) == 1 else []
    )


def in_time(past: Sequence[Word], statement: str, catalog: Catalog) -> list[Candidate]:
    """Candidates inside a declaration about time, such as SKEW or DISORDER."""
    if past[-1].kind == "number":
        return keywords([*SPANS, "TUPLES"] if statement in ("SKEW", "DISORDER", "ESTIMATE") else SPANS)
    if (past[-1].upper in ("OF", "FROM", "TO") and statement != "ENVIRONMENT") or past[-1].upper == "OF":
        return [
            *catalog_names("stream", catalog.streams.values()),
            *catalog_names("relation", catalog.relations.values()),
        ]
    if len(past) == 1 and "OF" in ABOUT_TIME[statement] and statement not in ("ENVIRONMENT", "HEARTBEAT"):
        return keywords(["OF"])
    return keywords(ABOUT_TIME[statement])


def in_constraint(past: Sequence[Word], catalog: Catalog) -> list[Candidate]:
    """Candidates inside CONSTRAINT: the stream and its columns, then how k is known and what a violation does."""
    match past[-1].upper:
        case "CONSTRAINT":
            return []
        case "REFERENCES":
            return catalog_names("stream", catalog.streams.values())
        case "ON":
            streams = catalog_names("stream", catalog.streams.values())
            return streams if sum(word.upper == "ON" for word in past) == 1 else keywords(["VIOLATION"])
        case "CLUSTERED" | "ORDERED":
            return keywords(["BY"])
        case "BY" | "(":
            return columns_of([word.name for word in past], columns_by_source(catalog))
        case "VIOLATION":
            return keywords(["COUNT", "FAIL"])
        case "WITHIN" | "CONFIDENCE":
            return []
        case _ if past[-1].kind == "number" and past[-2].upper == "WITHIN":
            return keywords(["TUPLES"])
        case _ if any(word.upper in ("WITHIN", "DETECTED") for word in past):
            detected = past[-1].upper == "DETECTED"
            return keywords([*(["WITHIN"] if detected else []), "CONFIDENCE", "ON VIOLATION"])
        case _ if any(word.upper in ("BY", "REFERENCES") for word in past):
            return keywords(["WITHIN", "DETECTED"])
        case _:
            return keywords(["ON"] if past[-2].upper == "CONSTRAINT" else ["CLUSTERED BY", "ORDERED BY", "REFERENCES"])


def in_setting(past: Sequence[Word]) -> list[Candidate]:
    """Candidates inside SET: the settings, then the values of the one that is named."""
    if len(past) == 1:
        return [Candidate(name, "value") for name in settable()]
    if past[-1].text == "=":
        return [
            Candidate(f"'{value}'", "value") for value in (TABLE[past[1].name].values if past[1].name in TABLE else ())
        ]
    return []


# what the statement is about


def open_bracket(past: Sequence[Word]) -> int | None:
    """The position of the innermost `[` that is not closed yet."""
    open_ones: list[int] = []
    for position, word in enumerate(past):
        if word.text == "[":
            open_ones.append(position)
        elif word.text == "]" and open_ones:
            open_ones.pop()
    return open_ones[-1] if open_ones else None


def columns_before(past: Sequence[Word], bracket: int, catalog: Catalog) -> Sequence[Column]:
    """The columns of the stream before a window's bracket, found by its name or alias."""
    known = columns_by_source(catalog)
    for word in reversed(past[max(0, bracket - 3) : bracket]):
        if word.name in known:
            return known[word.name]
    return ()


def clause(past: Sequence[Word]) -> str:
    """The keyword of the clause in which the text ends; closed parentheses are skipped."""
    depth = 0
    for word in reversed(past):
        depth += {")": 1, "]": 1, "(": -1, "[": -1}.get(word.text, 0)
        if depth < 0:
            return ""
        if depth == 0 and word.upper in CLAUSES:
            return word.upper
    return ""


def sources_read(statement: Sequence[Word], catalog: Catalog) -> dict[str, Sequence[Column]]:
    """The columns of the sources that a statement reads, by alias if they have one, else by name."""
    known = columns_by_source(catalog)
    found: dict[str, Sequence[Column]] = {}
    for position, word in enumerate(statement):
        if position and statement[position - 1].upper in ("FROM", "JOIN", ",") and word.name in known:
            found[alias(statement[position + 1 :]) or word.name] = known[word.name]
        elif word.name == "system" and [one.text for one in statement[position + 1 : position + 2]] == ["."]:
            short = "".join(one.name for one in statement[position + 2 : position + 3])
            if (stream := catalog.system.get(f"system.{short}")) is not None:
                found[alias(statement[position + 3 :]) or short] = stream.columns
    return found


def alias(behind: Sequence[Word]) -> str | None:
    """The alias at the beginning of the words behind a source, after its window and AS; None if there is none."""
    position = 0
    if behind and behind[0].text == "[":
        position = next((i + 1 for i, word in enumerate(behind) if word.text == "]"), len(behind))
    if position < len(behind) and behind[position].upper == "AS":
        position += 1
    if (
        position < len(behind)
        and behind[position].kind in ("word", "quoted")
        and behind[position].upper not in KEYWORDS
    ):
        return behind[position].name
    return None


# candidates


def keywords(spelled: Iterable[str]) -> list[Candidate]:
    """Candidates for keywords."""
    return [Candidate(word, "keyword") for word in spelled]


def catalog_names(kind: str, known: Iterable[Stream | Relation | View | Query | Group]) -> list[Candidate]:
    """Candidates for things of the catalog, all of one kind."""
    return [Candidate(quoted(thing.name), kind) for thing in list(known)]


def columns_of(names: Iterable[str], seen: Mapping[str, Sequence[Column]]) -> list[Candidate]:
    """Candidates for the columns of these sources."""
    return [Candidate(quoted(column.name), f"column {column.type}") for name in names for column in seen.get(name, ())]


def columns_by_source(catalog: Catalog) -> dict[str, Sequence[Column]]:
    """The columns of every stream, relation and view, by name."""
    bases: list[Stream | Relation] = [*catalog.streams.values(), *catalog.relations.values()]
    views = {name: view.plan.columns for name, view in list(catalog.views.items())}
    return {**{base.name.lower(): base.columns for base in bases}, **views}


def source_names(catalog: Catalog) -> list[Candidate]:
    """Candidates for all streams, relations and views."""
    return [
        *catalog_names("stream", catalog.streams.values()),
        *catalog_names("relation", catalog.relations.values()),
        *catalog_names("view", catalog.views.values()),
        Candidate(PREFIX, "system streams"),
    ]


def droppable_names(kind: str, catalog: Catalog) -> list[Candidate]:
    """Candidates for the things of one kind, behind DROP."""
    wanted = "query" if kind == "QUERIES" else kind.lower()
    held = [Candidate(quoted(one.name), wanted) for one in catalog.quarantine.values() if one.kind == wanted]
    if kind == "GROUP":
        return [*catalog_names("group", catalog.groups.values()), *held]
    if kind == "CONSTRAINT":
        return [*(Candidate(quoted(one.name), "constraint") for one in catalog.constraints.values()), *held]
    return [*(candidate for candidate in all_names(catalog) if candidate.kind == wanted), *held]


def all_names(catalog: Catalog) -> list[Candidate]:
    """Candidates for everything that the catalog has under a name."""
    return [*source_names(catalog), *catalog_names("query", catalog.queries.values())]


def quoted(name: str) -> str:
    """A name as CQL takes it: in backquotes if it would be read as a keyword."""
    return name if is_plain(name) and name.upper() not in KEYWORDS else backquoted(name)
