"""Reads a CQL script: text comes in, a list of statements goes out, each a syntax tree with its place in the text.

Whatever sqlglot says of a text that it cannot parse becomes an error with its place and a hint here.
"""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokens import Token, TokenType

from headgate.cql import foreign
from headgate.cql.dialect import Cql, CqlParser
from headgate.cql.statement_grammar import FOREIGN, STATEMENTS
from headgate.cql.strings import with_strings
from headgate.cql.trees import balanced, depth
from headgate.errors import Place, UserError, nearest
from headgate.sql.nodes import refusal_in_statement

TOKEN = re.compile(r"<Token token_type: \S+, text: (.*?), line: .*>", re.DOTALL)
EARLY = re.compile(r"\s+EARLY\b", re.IGNORECASE)
ON_ERROR = re.compile(r"\s+ERROR\s+(STOP|SKIP)\b", re.IGNORECASE)
ARGUMENT = re.compile(r"required keyword: '(\w+)' missing for <class .*>")
"""How sqlglot names its own objects in messages."""

TYPOGRAPHIC = re.compile(r"`[^`'\n]*'")

MOST_NESTED = 200
"""How deep parentheses and operators may be nested. Spark's own parser overflows its stack at about twice as many."""

MOST_NESTED_TYPES = 12

DEEP = 30
"""A tree that is deeper is bound on a stack of its own, so that it does not depend on who asks for it."""

MOST_STATEMENTS = 100_000
"""So many statements may a text have."""

LONGEST_STATEMENT = 1_000_000
"""So many letters may a statement have."""

MOST_DIGITS, MOST_EXPONENT = 100, 400
"""So many letters may a number have, and so large may its exponent be: Spark knows none that is longer."""


def too_deep(place: Place, most: int = MOST_NESTED) -> UserError:
    """The error for a text that is nested too deep."""
    return UserError(
        "too-deep",
        f"this is nested more than {most} deep",
        place=place,
        detail="Parentheses count, calls count twice, and each operator of a chain such as a + b + c counts; AND, OR "
        "and || count once, however many.",
        hint="Cut it into views, or write IN (...) or a list: AGGREGATE(ARRAY(a, b, c), 0, (sum, x) -> sum + x).",
    )


def parse(text: str, origin: str = "") -> list[exp.Expression]:
    """Parses a script into its statements; each tree has its start and end in the text in `meta`."""
    dialect = Cql()
    return [_statement(chunk, dialect, text, origin) for chunk in _statement_tokens(text, origin)]


def spans(text: str, origin: str = "") -> list[Place]:
    """The places of the statements of a script, whether or not they can be parsed."""
    return [Place(text, chunk[0].start, chunk[-1].end + 1, origin) for chunk in _statement_tokens(text, origin)]


def _statement_tokens(text: str, origin: str) -> list[list[Token]]:
    try:
        chunks = _split_at_semicolons(with_strings(Cql().tokenize(text), text))
    except TokenError:
        start = _open_quote(text)
        if text[start] == "`" and "'" in text[start:]:
            raise _typographic_quotes(text, start, origin) from None
        raise UserError(
            "syntax", "a quote or comment is not closed", place=Place(text, start, start + 1, origin)
        ) from None
    if len(chunks) > MOST_STATEMENTS:
        token = chunks[MOST_STATEMENTS][0]
        raise UserError(
            "too-large",
            f"a text may have {MOST_STATEMENTS} statements",
            place=Place(text, token.start, token.end + 1, origin),
            hint="Send them in several texts.",
        )
    return chunks


def _statement(chunk: list[Token], dialect: Cql, text: str, origin: str) -> exp.Expression:
    refuse_long(text, chunk[0].start, chunk[-1].end + 1, origin)
    _refuse_long_numbers(chunk, text, origin)
    _refuse_nested(chunk, text, origin)
    _refuse_window_clause(chunk, text, origin)
    place = Place(text, chunk[0].start, chunk[-1].end + 1, origin)
    parser = dialect.parser(error_level=None)
    try:
        (tree,) = parser._parse(CqlParser._parse_cql_statement, chunk, text)
        tree = balanced(tree)
    except ParseError as error:
        raise _syntax_error(parser.in_window or error, text, chunk, origin) from None
    except RecursionError:
        raise too_deep(place) from None
    except (SqlglotError, AttributeError, TypeError, IndexError, KeyError, ValueError):
        raise UserError("syntax", "this statement cannot be parsed", place=place) from None
    deep = depth(tree)
    if deep > MOST_NESTED:
        raise too_deep(place)
    _refuse_unknown_nodes(tree, place)
    tree.meta.update(deep=deep > DEEP, start=chunk[parser.labels].start, end=chunk[-1].end + 1)
    return tree


def _refuse_unknown_nodes(tree: exp.Expression, statement: Place) -> None:
    """Refuse what is on no list of ours, such as a unit of time that is none: no part of a text is passed on unread."""
    for node in tree.walk():
        reason = refusal_in_statement(node)
        if reason is not None:
            spans = [part.meta for part in node.walk() if "start" in part.meta]
            start = min((span["start"] for span in spans), default=statement.start)
            end = max((span["end"] + 1 for span in spans), default=statement.end)
            raise UserError("foreign-construct", reason, place=Place(statement.text, start, end, statement.origin))


def refuse_long(text: str, start: int, end: int, origin: str) -> None:
    """Refuse a statement of too many letters."""
    if end - start > LONGEST_STATEMENT:
        raise UserError(
            "too-large",
            f"this statement has {end - start} letters, and may have {LONGEST_STATEMENT}",
            place=Place(text, start, start + 1, origin),
            hint="Put constants into a relation, and join with it.",
        )


def long_number(number: str) -> bool:
    """Whether a number, as it is written, has too many digits or too large an exponent."""
    _, _, exponent = number.lower().partition("e")
    exponent = exponent.lstrip("+-").rstrip("dfl")
    return len(number) > MOST_DIGITS or (exponent.isdigit() and int(exponent) > MOST_EXPONENT)


def too_long_number(number: str, place: Place) -> UserError:
    """The error for such a number."""
    return UserError(
        "too-large",
        f"the number {number[:20]}... is too long" if len(number) > 20 else f"the number {number} is too large",
        place=place,
        detail=f"A number may have {MOST_DIGITS} digits, and an exponent of {MOST_EXPONENT}.",
    )


def _refuse_long_numbers(chunk: list[Token], text: str, origin: str) -> None:
    for token in chunk:
        if token.token_type == TokenType.NUMBER and long_number(token.text):
            raise too_long_number(token.text, Place(text, token.start, token.end + 1, origin))


def _refuse_nested(chunk: list[Token], text: str, origin: str) -> None:
    """Refuse what is nested too deep before the parser recurses into it; `ARRAY<` counts as nesting, too."""
    opened = types = 0
    for token, following in zip(chunk, [*chunk[1:], None], strict=True):
        match token.token_type:
            case TokenType.L_PAREN | TokenType.L_BRACKET | TokenType.L_BRACE | TokenType.CASE:
                opened += 1
            case TokenType.R_PAREN | TokenType.R_BRACKET | TokenType.R_BRACE | TokenType.END:
                opened -= 1
            case TokenType.ARRAY | TokenType.MAP | TokenType.STRUCT if (
                following and following.token_type == TokenType.LT
            ):
                types += 1
            case TokenType.GT:
                types = max(types - 1, 0)
        if opened > MOST_NESTED or types > MOST_NESTED_TYPES:
            most = MOST_NESTED if opened > MOST_NESTED else MOST_NESTED_TYPES
            raise too_deep(Place(text, token.start, token.end + 1, origin), most)


def _refuse_window_clause(chunk: list[Token], text: str, origin: str) -> None:
    """Refuse `GROUP BY WINDOW(...)` and `WINDOW TUMBLING (...)`, which sqlglot would take for named windows."""
    for token, following, third in zip(chunk, chunk[1:], chunk[2:], strict=False):
        if token.token_type != TokenType.WINDOW:
            continue
        named = following.text.upper() if third.token_type == TokenType.L_PAREN else ""
        if following.token_type == TokenType.L_PAREN or named in foreign.FUNCTIONS:
            what, hint = foreign.FUNCTIONS[named if named in foreign.FUNCTIONS else "WINDOW"]
            raise UserError("foreign-construct", what, place=Place(text, token.start, token.end + 1, origin), hint=hint)


def _typographic_quotes(text: str, start: int, origin: str) -> UserError:
    place = Place(text, start, text.index("'", start) + 1, origin)
    return UserError(
        "foreign-construct", "typographic quotes", place=place, hint="Write 'text' between straight quotes."
    )


def _open_quote(text: str) -> int:
    """The position of the quote or comment that is not closed."""
    start, closing = 0, ""
    position = 0
    while position < len(text):
        if closing:
            if text.startswith("\\", position) and closing in "'\"":
                position += 1
            elif text.startswith(closing, position):
                position += len(closing) - 1
                closing = ""
        else:
            opened = next((mark for mark in ("/*", "--", "'", '"', "`") if text.startswith(mark, position)), "")
            if opened:
                start, closing = position, {"/*": "*/", "--": "\n"}.get(opened, opened)
                position += len(opened) - 1
        position += 1
    return start


def _split_at_semicolons(tokens: list[Token]) -> list[list[Token]]:
    chunks: list[list[Token]] = [[]]
    for token in _count_distinct(tokens):
        if token.token_type == TokenType.SEMICOLON:
            chunks.append([])
        else:
            chunks[-1].append(token)
    return [chunk for chunk in chunks if chunk]


def _count_distinct(tokens: list[Token]) -> list[Token]:
    """Rewrite `COUNT DISTINCT (x)`, as the Linear Road queries have it, to `COUNT(DISTINCT x)`."""
    result = list(tokens)
    for position in range(len(result) - 2):
        word, distinct, opening = result[position : position + 3]
        if (
            word.text.upper() == "COUNT"
            and distinct.token_type == TokenType.DISTINCT
            and opening.token_type == TokenType.L_PAREN
        ):
            result[position + 1 : position + 3] = [opening, distinct]
    return result


def _syntax_error(error: ParseError, text: str, chunk: list[Token], origin: str) -> UserError:
    first: dict[str, Any] = error.errors[0] if error.errors else {"description": str(error)}
    typographic = TYPOGRAPHIC.search(text, chunk[0].start, chunk[-1].end + 1)
    if typographic is not None:
        return _typographic_quotes(text, typographic.start(), origin)
    message = str(first.get("description") or "syntax error")
    if not message.split(" ")[0].isupper():
        message = message[0].lower() + message[1:]
    if message.startswith(FOREIGN):
        message, _, instead = message.partition(". ")
        message = message.removeprefix(FOREIGN)
        start = max(0, _offset(text, first) - len(str(first.get("highlight") or "")))
        place = Place(text, start, max(_offset(text, first), start + 1), origin)
        return UserError("foreign-construct", message, place=place, hint=instead)
    message, _, hint = message.partition(". Did you")
    word = str(first.get("highlight") or "")
    if message.startswith("invalid expression"):
        message = f'unexpected "{word}"'
    message = TOKEN.sub(r"\1", message).replace(" but got SENTINEL", "")
    if missing := ARGUMENT.fullmatch(message):
        message = f'the argument "{missing[1]}" is missing'
    end = _offset(text, first)
    if word.upper() == "EMIT" and EARLY.match(text, end):
        message = "EMIT EARLY stands once, behind a whole query that is registered: not in a view or a subquery"
    if word.upper() == "ON" and ON_ERROR.match(text, end):
        message = "ON ERROR stands once, behind a whole query that is registered: not in a view or a subquery"
    start = max(end - (first.get("col") or 0), end - len(word))
    needs_no_hint = message.startswith(("EVERY ", "EMIT ", "ON ERROR ", "expected STREAM")) or message.endswith(
        "stands twice"
    )
    if not hint and word.isalpha() and not needs_no_hint:
        known = (
            *STATEMENTS,
            "FROM",
            "WHERE",
            "GROUP",
            "HAVING",
            "RANGE",
            "ROWS",
            "SLIDE",
            "UNBOUNDED",
            "STREAM",
            "QUERY",
        )
        close = nearest(word, known)
        hint = close.removeprefix("Did you") if close and word.upper() not in known else ""
    before = next((token.text for token in reversed(chunk) if token.end < start), "")
    if not hint and before.isalpha() and not needs_no_hint:  # the word before may be the one that is misspelt
        close = nearest(before, ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "UNION"))
        hint = close.removeprefix("Did you") if close and before.upper() not in close else ""
    place = Place(text, start, max(end, start + 1), origin)
    return UserError("syntax", message, place=place, hint=f"Did you{hint}" if hint else "")


def _offset(text: str, error: dict[str, Any]) -> int:
    """The offset in the text of the end of an error, which sqlglot gives by line and column."""
    return sum(len(part) + 1 for part in text.split("\n")[: (error.get("line") or 1) - 1]) + (error.get("col") or 0)
