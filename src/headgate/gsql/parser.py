"""The grammar of GSQL: tokens come in, one statement goes out. Recursive descent, one method for each rule."""

from __future__ import annotations

from typing import NoReturn

from headgate.errors import Place, UserError, nearest
from headgate.gsql.refused import REFUSED, refused
from headgate.gsql.syntax import (
    Attribute,
    Binary,
    Call,
    Constant,
    Expression,
    InterfaceSetDefinition,
    InterfaceStream,
    Item,
    JoinKind,
    Key,
    KeySets,
    Merge,
    OneOf,
    Parameter,
    ParameterDeclaration,
    ProtocolField,
    Query,
    Schema,
    Select,
    Span,
    Statement,
    Table,
    Unary,
)
from headgate.gsql.tokens import Token, first_words, tokens
from headgate.gsql.types import TYPES, constant_kind

OPENING = ("DEFINE", "PARAM", "SELECT", "MERGE", "PROTOCOL")
"""The words with which a statement of GSQL begins."""

JOINS: dict[str, JoinKind] = {
    "INNER_JOIN": "INNER",
    "OUTER_JOIN": "OUTER",
    "LEFT_OUTER_JOIN": "LEFT_OUTER",
    "RIGHT_OUTER_JOIN": "RIGHT_OUTER",
}
CLAUSES = ("FROM", "WHERE", "GROUP", "SUPERGROUP", "HAVING", "INTO", *JOINS, *REFUSED)
RESERVED = (*CLAUSES, "SELECT", "MERGE", "BY", "AS", "AND", "OR", "NOT", "IN", "ROLLUP", "CUBE", "GROUPING_SETS")
LEVELS = (("OR",), ("AND",), ("NOT",), ("=", "<>", "!=", "<", ">", "<=", ">="), ("|",), ("&",), ("<<", ">>"))
ARITHMETIC = (("+", "-"), ("*", "/", "%"))
LITERALS = ("IP_VAL", "IPV6_VAL", "TIMEVAL", "HEX", "LHEX")
MOST_NESTED = 200
PRESENTED = ("query_name", "visibility", "comment", "title", "description")
"""What DEFINE can say of a query itself; everything else is a constant that the query reads as `#name`."""


def is_gsql(text: str, start: int, end: int) -> bool:
    """Whether a statement of a script in GSQL is GSQL, rather than one of the statements it has in common with CQL."""
    match first_words(text, start, end, 4):
        case [word, *_] if word in OPENING or word in REFUSED:
            return True
        case ["EXPLAIN", following, *_]:
            return following in OPENING
        case ["CREATE", "INTERFACE", *_]:
            return True
        case ["CREATE", "STREAM", _, mark, *_]:
            return mark not in ("(", "AS")
        case ["CREATE", "STREAM", *_]:
            return True
        case _:
            return False


def parse(text: str, start: int, end: int, origin: str = "") -> Statement:
    """Parse one statement of GSQL."""
    return Parser(text, tokens(text, start, end, origin), origin).statement()


class Parser:
    """Reads one statement from left to right."""

    def __init__(self, text: str, found: list[Token], origin: str) -> None:
        self.text = text
        self.tokens = found
        self.origin = origin
        self.index = 0
        self.defined: dict[str, str] = {}
        self.depth = 0

    # tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    @property
    def before(self) -> Token:
        return self.tokens[max(self.index - 1, 0)]

    def place(self, span: Span | Token | None = None) -> Place:
        """A place in the user's text; without a span, that of the token that comes next."""
        span = span or self.token
        start, end = (span.start, span.end) if isinstance(span, Token) else span
        return Place(self.text, start, max(end, start + 1), self.origin)

    def since(self, start: int) -> Span:
        """What has been read since a position."""
        return start, self.before.end

    def at(self, *words: str) -> bool:
        return self.token.kind in ("name", "mark") and self.token.upper in words

    def take(self, *words: str) -> Token | None:
        """The next token, if it is one of the words; it is passed then."""
        if not self.at(*words):
            return None
        self.index += 1
        return self.before

    def expect(self, *words: str) -> Token:
        found = self.take(*words)
        if found is None:
            self.fail(f"expected {' or '.join(words)}")
        return found

    def name(self, what: str) -> Token:
        """A name that is no reserved word."""
        if self.token.kind != "name" or self.token.upper in RESERVED:
            self.fail(f"expected {what}")
        self.index += 1
        return self.before

    def fail(self, message: str, span: Span | Token | None = None) -> NoReturn:
        token = self.token
        if span is None and token.upper in REFUSED:
            raise refused(*REFUSED[token.upper], self.place())
        found = f', and this is "{token.text}"' if token.kind != "end" and span is None else ""
        known = (*RESERVED, *OPENING)
        hint = nearest(token.text, known, 0.75) if token.kind == "name" and token.upper not in known else ""
        raise UserError("syntax", message + found, place=self.place(span), hint=hint)

    # statements

    def statement(self) -> Statement:
        found = self._statement()
        if self.token.kind != "end":
            self.fail("expected the end of the statement")
        return found

    def _statement(self) -> Statement:
        start = self.token.start
        if self.at("PROTOCOL"):
            return self.protocol()
        if self.take("CREATE"):
            return self.interface_set(start) if self.take("INTERFACE") else self.interface_stream(start)
        explained = self.take("EXPLAIN") is not None
        parameters: list[ParameterDeclaration] = []
        while self.at("DEFINE", "PARAM"):
            if self.take("DEFINE"):
                self.define_section()
            else:
                self.index += 1
                parameters += self.parameter_section()
        body: Select | Merge
        if self.at("SELECT"):
            body = self.select()
        elif self.at("MERGE"):
            body = self.merge()
        else:
            self.fail("expected DEFINE, PARAM, SELECT, MERGE or PROTOCOL")
        self.refuse_unused()
        span, into = self.since(start), None
        if self.at("INTO") and not explained:
            into = self.token.start, self.tokens[-1].end
            self.index = len(self.tokens) - 1
        return Query(body, self.defined, tuple(parameters), span, explained, into)

    def define_section(self) -> None:
        """`DEFINE { name 'value'; ... }`."""
        self.expect("{")
        while not self.take("}"):
            named = self.name("a name and its value, or }")
            if self.token.kind not in ("string", "name", "number"):
                self.fail("expected a value")
            self.index += 1
            if named.text.lower() in self.defined:
                self.fail(f'"{named.text}" is defined twice', named)
            self.defined[named.text.lower()] = self.before.text
            self.expect(";")

    def refuse_unused(self) -> None:
        """Refuse a definition that says nothing: neither of the query nor by `#name` in it."""
        used = {two.text.lower() for one, two in zip(self.tokens, self.tokens[1:], strict=False) if one.text == "#"}
        for name in self.defined:
            if name not in PRESENTED and name not in used:
                token = next(token for token in self.tokens if token.kind == "name" and token.text.lower() == name)
                raise UserError(
                    "no-such-definition",
                    f'DEFINE says "{token.text}", which means nothing here',
                    place=self.place(token),
                    detail="It knows query_name, visibility, comment, title and description, and constants that the "
                    "query reads as #name.",
                    hint=nearest(name, PRESENTED) or "Leave it out, or use it: #" + token.text,
                )

    def parameter_section(self) -> list[ParameterDeclaration]:
        """`PARAM { name type [= value]; ... }`; the type may also stand first."""
        found: list[ParameterDeclaration] = []
        self.expect("{")
        while not self.take("}"):
            start = self.token.start
            one, two = self.name("a parameter, or }"), self.name("a type")
            named, kind = (two, one) if two.text.lower() not in TYPES and one.text.lower() in TYPES else (one, two)
            if kind.text.lower() not in TYPES:
                raise UserError(
                    "wrong-type",
                    f'"{kind.text}" is no type of GSQL',
                    place=self.place(kind),
                    hint=nearest(kind.text, TYPES),
                )
            value = None
            if self.take("="):
                negative = self.take("-")
                value = self.constant()
                if value is None:
                    self.fail("expected a value")
                if negative:
                    value = Constant(value.kind, f"-{value.text}", (negative.start, value.span[1]))
            if named.text.lower() in {one.name.lower() for one in found}:
                self.fail(f'parameter "{named.text}" stands twice', named)
            found.append(ParameterDeclaration(named.text, kind.text.lower(), value, self.since(start)))
            self.expect(";")
        return found

    # queries

    def select(self) -> Select:
        start = self.expect("SELECT").start
        items = [self.item()]
        while self.take(","):
            items.append(self.item())
        join: JoinKind = ""
        if self.at(*JOINS):
            join = JOINS[self.token.upper]
            self.index += 1
        tables = self.tables()
        where = self.expression() if self.take("WHERE") else None
        group_start = self.token.start
        keys: list[Key | KeySets] = []
        if self.take("GROUP"):
            self.expect("BY")
            keys.append(self.keys())
            while self.take(","):
                keys.append(self.keys())
        group_span = self.since(group_start) if keys else None
        supergroup = []
        if self.take("SUPERGROUP"):
            supergroup.append(self.variable())
            while self.take(","):
                supergroup.append(self.variable())
        having = self.expression() if self.take("HAVING") else None
        return Select(
            tuple(items),
            join,
            tables,
            where,
            tuple(keys),
            tuple(supergroup),
            having,
            self.since(start),
            group_span,
        )

    def item(self) -> Item:
        if self.at("*"):
            raise UserError(
                "syntax", "GSQL names every attribute in the select list", place=self.place(), hint="select a, b from s"
            )
        value = self.expression()
        return Item(value, self.name("a name").text if self.take("AS") else None)

    def variable(self) -> Attribute:
        token = self.name("a group-by variable")
        return Attribute("", token.text, (token.start, token.end))

    def keys(self) -> Key | KeySets:
        opening = self.take("ROLLUP", "CUBE", "GROUPING_SETS")
        if opening is None:
            return self.key()
        self.expect("(")
        if opening.upper == "GROUPING_SETS":
            sets = [self.key_set()]
            while self.take(","):
                sets.append(self.key_set())
            self.expect(")")
            return KeySets("GROUPING_SETS", tuple(sets), self.since(opening.start))
        keys = [self.key()]
        while self.take(","):
            keys.append(self.key())
        self.expect(")")
        return KeySets("ROLLUP" if opening.upper == "ROLLUP" else "CUBE", (tuple(keys),), self.since(opening.start))

    def key_set(self) -> tuple[Key, ...]:
        self.expect("(")
        keys: list[Key] = []
        while not self.take(")"):
            if keys:
                self.expect(",")
            keys.append(self.key())
        return tuple(keys)

    def key(self) -> Key:
        start = self.token.start
        value = self.expression()
        if self.take("AS"):
            return Key(value, self.name("a name").text, self.since(start))
        if not isinstance(value, Attribute):
            self.fail("a group-by expression needs a name: AS and the name", self.since(start))
        return Key(value, value.name, self.since(start))

    def tables(self) -> tuple[Table, ...]:
        self.expect("FROM")
        found = [self.table()]
        while self.take(","):
            found.append(self.table())
        return tuple(found)

    def table(self) -> Table:
        """`TCP`, `eth0.TCP`, `[main].TCP`, `host.eth0.TCP`, each perhaps with an alias."""
        start = self.token.start
        if self.take("["):
            interface = self.name("the name of a set of interfaces").text
            self.expect("]")
            self.expect(".")
            parts, is_set = [interface, self.name("a protocol").text], True
        else:
            parts, is_set = self.dotted(), False
        if self.at("/"):
            raise refused(
                "a query of a library",
                "Put the library's text into the script, and name the query alone.",
                self.place((start, self.tokens[min(self.index + 1, len(self.tokens) - 1)].end)),
            )
        interface_name = joined_name(parts[:-1]) if len(parts) > 1 else None
        span = self.since(start)
        named = self.token.kind == "name" and not self.at("JOIN", *RESERVED)
        alias = self.name("an alias").text if named else parts[-1]
        if self.at("JOIN"):
            raise refused("JOIN in FROM", "select ... INNER_JOIN from a, b where a.t = b.t", self.place())
        return Table(parts[-1], interface_name, is_set, alias, span)

    def dotted(self) -> list[str]:
        if self.token.kind == "string":
            self.index += 1
            parts = [self.before.text]
        else:
            parts = [self.name("the name of a protocol, stream or query").text]
        while self.take("."):
            parts.append(self.name("a name").text)
        if len(parts) > 3:
            self.fail("a name has at most a host, an interface and a protocol")
        return parts

    def merge(self) -> Merge:
        start = self.expect("MERGE").start
        attributes = [self.attribute()]
        while self.take(":"):
            attributes.append(self.attribute())
        if len(attributes) < 2:
            self.fail("expected : and the attribute of another stream")
        return Merge(tuple(attributes), self.tables(), self.since(start))

    def attribute(self) -> Attribute:
        first = self.name("an attribute")
        if not self.take("."):
            return Attribute("", first.text, (first.start, first.end))
        self.refuse_interface_parameter()
        second = self.name("an attribute")
        return Attribute(first.text, second.text, (first.start, second.end))

    # expressions

    def expression(self) -> Expression:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise UserError("too-deep", f"this is nested more than {MOST_NESTED} deep", place=self.place())
        try:
            return self.level(0)
        finally:
            self.depth -= 1

    def level(self, number: int) -> Expression:
        """An expression of operators that bind as strongly as those of a level, or more strongly."""
        every = (*LEVELS, *ARITHMETIC)
        if number == len(every):
            return self.unary()
        operators, start = every[number], self.token.start
        if operators == ("NOT",):
            if (opening := self.take("NOT")) is not None:
                return Unary("NOT", self.level(number), self.since(opening.start))
            return self.level(number + 1)
        left = self.level(number + 1)
        if "=" in operators and (self.at("IN") or self.at("NOT")):
            return self.one_of(left, start)
        while (found := self.take(*operators)) is not None:
            operator = "<>" if found.text == "!=" else found.upper
            left = Binary(operator, left, self.level(number + 1), self.since(start))
        return left

    def one_of(self, left: Expression, start: int) -> Expression:
        self.expect("IN")
        self.expect("[")
        values = [self.listed()]
        while self.take(","):
            values.append(self.listed())
        self.expect("]")
        return OneOf(left, tuple(values), self.since(start))

    def listed(self) -> Constant:
        negative = self.take("-")
        value = self.constant()
        if value is None:
            self.fail("IN takes literals")
        return value if negative is None else Constant(value.kind, f"-{value.text}", (negative.start, value.span[1]))

    def unary(self) -> Expression:
        opening = self.take("+", "-", "!", "~")
        if opening is None:
            return self.primary()
        return Unary(opening.text, self.unary(), self.since(opening.start))

    def primary(self) -> Expression:
        start = self.token.start
        constant = self.constant()
        if constant is not None:
            return constant
        if self.take("("):
            inner = self.expression()
            self.expect(")")
            return inner
        if self.take("$"):
            return Parameter(self.name("a parameter").text, self.since(start))
        self.refuse_interface_parameter()
        if self.token.kind != "name" or self.token.upper in RESERVED:
            self.fail("expected an expression")
        following = self.tokens[self.index + 1].text
        if following in ("(", "[", "$") and self.tokens[self.index + 1].kind == "mark":
            return self.call()
        return self.attribute()

    def refuse_interface_parameter(self) -> None:
        if self.at("@"):
            raise refused(
                "@interface_parameter", "Give the stream a column with its value, in the source.", self.place()
            )

    def call(self) -> Call:
        opening = self.name("a function")
        if self.take("["):
            return Call(opening.text, self.arguments("]"), self.since(opening.start), predicate=True)
        of_supergroup = self.take("$") is not None
        self.expect("(")
        if self.take("*"):
            self.expect(")")
            return Call(opening.text, (), self.since(opening.start), star=True, of_supergroup=of_supergroup)
        return Call(opening.text, self.arguments(")"), self.since(opening.start), of_supergroup=of_supergroup)

    def arguments(self, closing: str) -> tuple[Expression, ...]:
        found: list[Expression] = []
        while not self.take(closing):
            if found:
                self.expect(",")
            found.append(self.expression())
        return tuple(found)

    def constant(self) -> Constant | None:
        """A literal, or `#name`, which stands for one that DEFINE gives."""
        token = self.token
        if token.kind == "string":
            self.index += 1
            return Constant("string", token.text, (token.start, token.end))
        if token.kind == "number":
            self.index += 1
            return Constant(constant_kind(token.text), token.text, (token.start, token.end))
        if self.at("TRUE", "FALSE"):
            self.index += 1
            return Constant("bool", token.upper, (token.start, token.end))
        if self.at(*LITERALS) and self.tokens[self.index + 1].kind == "string":
            self.index += 2
            kind = {"IP_VAL": "ip", "IPV6_VAL": "ipv6", "TIMEVAL": "timeval"}.get(token.upper, "hex")
            return Constant(kind, self.before.text, (token.start, self.before.end))
        if self.take("#"):
            named = self.name("a name that DEFINE gives")
            value = self.defined.get(named.text.lower())
            if value is None:
                raise UserError(
                    "no-such-definition",
                    f'DEFINE gives no "{named.text}"',
                    place=self.place((token.start, named.end)),
                    hint=nearest(named.text, self.defined),
                )
            return Constant(constant_kind(value), value, (token.start, named.end))
        return None

    # schemas and interfaces

    def protocol(self) -> Schema:
        """`PROTOCOL TCP (base, other) { uint time get_time (increasing); ... }`."""
        start = self.expect("PROTOCOL").start
        name = self.name("the name of a protocol").text
        bases: list[tuple[str, Span]] = []
        if self.take("("):
            while not self.take(")"):
                if bases:
                    self.expect(",")
                base = self.name("a protocol")
                bases.append((base.text, (base.start, base.end)))
        if self.take("["):
            while not self.take("]"):
                self.index += 1
        self.expect("{")
        fields: list[ProtocolField] = []
        while not self.take("}"):
            fields.append(self.field())
        return Schema(name, tuple(bases), tuple(fields), self.since(start))

    def field(self) -> ProtocolField:
        start = self.token.start
        kind, named = self.name("the type of a field, or }"), self.name("the name of a field")
        access = self.name("a function").text if self.token.kind == "name" else ""
        properties: list[tuple[str, str, Span]] = []
        if self.take("("):
            while not self.take(")"):
                if properties:
                    self.expect(",")
                word, amount = self.name("a property"), ""
                if self.token.kind in ("number", "string", "name"):
                    amount = self.token.text
                    self.index += 1
                properties.append((word.text.lower(), amount, self.since(word.start)))
        if self.take("["):
            while not self.take("]"):
                self.index += 1
        span = self.since(start)
        self.expect(";")
        return ProtocolField(kind.text, named.text, access, tuple(properties), span)

    def interface_set(self, start: int) -> InterfaceSetDefinition:
        """`CREATE INTERFACE SET name OF a, b`."""
        self.expect("SET")
        name = self.name("the name of a set of interfaces").text
        self.expect("OF")
        found = [self.name("an interface").text]
        while self.take(","):
            found.append(self.name("an interface").text)
        return InterfaceSetDefinition(name, tuple(found), self.since(start))

    def interface_stream(self, start: int) -> InterfaceStream:
        """`CREATE STREAM eth0.TCP` and clauses of CQL, which are left as they are."""
        self.expect("STREAM")
        opening = self.token.start
        parts = self.dotted()
        span = self.since(opening)
        clauses = (self.before.end, self.tokens[-1].end)
        self.index = len(self.tokens) - 1
        return InterfaceStream(joined_name(parts), parts[-1], clauses, span)


def joined_name(parts: list[str]) -> str:
    """The name of the stream of a protocol on an interface: `eth0.TCP` is `eth0_TCP`."""
    return "_".join("".join(letter if letter.isalnum() or letter == "_" else "_" for letter in part) for part in parts)
