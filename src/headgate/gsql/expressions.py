"""Expressions of GSQL as CQL, each with its GSQL type.

Addresses are texts, as people write them; where their order or their bits count, IP_NUMBER makes numbers of them and
IP_TEXT makes addresses again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation

from headgate.catalog.catalog import Catalog
from headgate.errors import Place, UserError, nearest, quoted
from headgate.gsql.functions import AGGREGATES, SUPERAGGREGATES, WRITTEN
from headgate.gsql.inputs import Source, named
from headgate.gsql.refused import refused
from headgate.gsql.syntax import (
    Attribute,
    Binary,
    Call,
    Constant,
    Expression,
    Key,
    OneOf,
    Parameter,
    ParameterDeclaration,
    Span,
    Unary,
)
from headgate.gsql.types import MISSING, NUMBERS, TYPES, address_number, ipv6_text, wider
from headgate.gsql.written import Written, listed, written
from headgate.sql import literal

COMPARISONS = ("=", "<>", "<", ">", "<=", ">=")
BITS = ("&", "|", "<<", ">>")
STRENGTH = {"OR": 1, "AND": 2, "NOT": 3} | dict.fromkeys(COMPARISONS, 4) | {"+": 8, "-": 8, "*": 9, "/": 9, "%": 9}
PREFIX = 10
WHOLE = 11
ALL_BITS = 2**32 - 1
LARGEST = 2**63
WHOLE_NUMBERS = ("bool", "ushort", "int", "uint", "llong", "ullong")


@dataclass(frozen=True, slots=True)
class Value:
    """An expression in CQL, its GSQL type, and how strongly its outermost operator binds."""

    text: Written
    kind: str
    strength: int = WHOLE

    def within(self, strength: int) -> Written:
        """The text as an operand of an operator."""
        return self.text if self.strength > strength else written("(", self.text, ")")


@dataclass(slots=True)
class Scope:
    """What names mean in one query."""

    text: str
    origin: str
    catalog: Catalog
    sources: list[Source]
    query_name: str = ""
    parameters: dict[str, ParameterDeclaration] = field(default_factory=dict)
    """By name in lower case."""

    keys: dict[str, Key] = field(default_factory=dict)
    """The group-by variables by name in lower case; only outside aggregates names mean them."""

    rolled_up: frozenset[str] = frozenset()
    """The group-by variables that some rows have no value of, because of ROLLUP, CUBE or GROUPING_SETS."""

    super_keys: tuple[Written, ...] = ()
    """The keys of the supergroup."""

    shown: Callable[[Source, str, Written], Written] | None = None
    """How an attribute of a source is shown, in the select list of an outer join."""

    def place(self, span: Span) -> Place:
        return Place(self.text, *span, self.origin)

    # names

    def found(self, tree: Attribute) -> tuple[Source, str, str]:
        """The source, name and type of an attribute."""
        candidates = [one for one in self.sources if not tree.table or one.alias.lower() == tree.table.lower()]
        if not candidates:
            aliases = [one.alias for one in self.sources]
            raise UserError(
                "no-such-input",
                f'"{tree.table}" is not in FROM',
                place=self.place(tree.span),
                detail=f"FROM has {quoted(aliases)}.",
                hint=nearest(tree.table, aliases),
            )
        owners = [one for one in candidates if tree.name.lower() in one.kinds]
        if len(owners) > 1:
            raise UserError(
                "ambiguous-column",
                f'attribute "{tree.name}" stands in more than one input',
                place=self.place(tree.span),
                detail=f"It is in {quoted(one.alias for one in owners)}.",
                hint=f"Write {owners[0].alias}.{tree.name}.",
            )
        if not owners:
            known = [
                *(name for one in candidates for name in one.attributes),
                *(key.name for key in self.keys.values()),
            ]
            where = quoted([candidates[0].alias]) if len(candidates) == 1 else "FROM"
            raise UserError(
                "no-such-column",
                f'attribute "{tree.name}" does not exist in {where}',
                place=self.place(tree.span),
                detail=f"There are {quoted(known)}.",
                hint=nearest(tree.name, known),
            )
        name, kind = owners[0].kinds[tree.name.lower()]
        return owners[0], name, kind

    def attribute(self, tree: Attribute) -> Value:
        key = self.keys.get(tree.name.lower()) if not tree.table else None
        if key is not None:
            inner = self.without_keys().value(key.value)
            if key.name.lower() in self.rolled_up and inner.kind in MISSING:
                made = written("COALESCE(", inner.text, f", {MISSING[inner.kind]})")
                return Value(made.at(tree.span), inner.kind)
            return Value(inner.text.at(tree.span), inner.kind, inner.strength)
        owner, name, kind = self.found(tree)
        qualified = f"{named(owner.alias)}.{named(name)}" if len(self.sources) > 1 else named(name)
        text = Written(qualified)
        return Value((self.shown(owner, name, text) if self.shown is not None else text).at(tree.span), kind)

    def without_keys(self) -> Scope:
        """The scope inside aggregates and keys, where names mean attributes."""
        return Scope(
            self.text,
            self.origin,
            self.catalog,
            self.sources,
            self.query_name,
            self.parameters,
            shown=self.shown,
        )

    # expressions

    def value(self, tree: Expression) -> Value:
        """An expression in CQL."""
        match tree:
            case Constant():
                return self.constant(tree)
            case Attribute():
                return self.attribute(tree)
            case Parameter():
                return self.parameter(tree)
            case Unary():
                return self.unary(tree)
            case Binary():
                return self.binary(tree)
            case OneOf():
                return self.one_of(tree)
            case Call():
                return self.call(tree)

    def constant(self, tree: Constant) -> Value:
        text = tree.text
        made: str
        match tree.kind:
            case "string":
                made, kind = literal(text), "string"
            case "ip":
                if address_number(text) is None:
                    raise self.bad_literal(tree, "an IPv4 address", "IP_VAL'10.0.0.1'")
                made, kind = literal(text), "ip"
            case "ipv6":
                address = ipv6_text(text)
                if address is None:
                    raise self.bad_literal(tree, "an IPv6 address", "IPV6_VAL'::1'")
                made, kind = literal(address), "ipv6"
            case "hex":
                try:
                    number = int(text, 16)
                except ValueError:
                    raise self.bad_literal(tree, "a hexadecimal number", "HEX'ff'") from None
                self.fits(tree, number)
                made, kind = str(number), "uint" if number <= ALL_BITS else "ullong"
            case "timeval":
                made, kind = self.instant(tree), "timeval"
            case "float":
                made, kind = f"{Decimal(text):f}D", "float"
            case _:
                if tree.kind != "bool":
                    self.fits(tree, int(text))
                made, kind = text, tree.kind
        strength = PREFIX if made.startswith("-") else WHOLE
        return Value(Written(made).at(tree.span), kind, strength)

    def instant(self, tree: Constant) -> str:
        """`TIMEVAL'1400000000.5'` counts seconds since 1970; any other text is a date as SQL writes it."""
        try:
            micros = Decimal(tree.text) * 1_000_000
        except InvalidOperation:
            try:
                datetime.fromisoformat(tree.text)
            except ValueError:
                raise self.bad_literal(tree, "seconds since 1970 or a date", "TIMEVAL'1400000000.5'") from None
            return f"TIMESTAMP {literal(tree.text)}"
        if micros != int(micros):
            raise self.bad_literal(tree, "a whole number of microseconds", "TIMEVAL'1400000000.5'")
        return f"TIMESTAMP_MICROS({int(micros)})"

    def fits(self, tree: Constant, number: int) -> None:
        if not -LARGEST <= number < LARGEST:
            raise UserError("bad-literal", f"'{tree.text}' does not fit into 64 bits", place=self.place(tree.span))

    def bad_literal(self, tree: Constant, what: str, hint: str) -> UserError:
        return UserError("bad-literal", f"'{tree.text}' is not {what}", place=self.place(tree.span), hint=hint)

    def parameter(self, tree: Parameter) -> Value:
        """The value of a parameter as of the time of the tuple, or of the last tuple of a group."""
        known = self.parameters.get(tree.name.lower())
        if known is None:
            raise UserError(
                "no-such-parameter",
                f'the query has no parameter "{tree.name}"',
                place=self.place(tree.span),
                hint=nearest(tree.name, [one.name for one in self.parameters.values()])
                or f"PARAM {{ {tree.name} uint = 0; }} before the query declares it.",
            )
        stamps = [named(one.stamp) if one.stamp else "ELEMENT_TIME" for one in self.sources]
        owners = [f"{named(one.alias)}." if len(self.sources) > 1 else "" for one in self.sources]
        times = [owner + stamp for owner, stamp in zip(owners, stamps, strict=True)]
        when = times[0] if len(times) == 1 else f"GREATEST({', '.join(times)})"
        when = f"MAX({when})" if self.keys else when
        name = literal(f"{self.query_name}.{known.name}".lower())
        made = f"CAST(PARAMETER({name}, {when}) AS {TYPES[known.kind]})"
        return Value(Written(made).at(tree.span), known.kind)

    def unary(self, tree: Unary) -> Value:
        inner = self.value(tree.operand)
        match tree.operator:
            case "NOT" | "!":
                if inner.kind not in ("bool", "other"):
                    raise self.wrong_type(tree.operand, inner.kind, f"{tree.operator} needs a condition")
                made, kind, strength = written("NOT ", inner.within(STRENGTH["NOT"])), "bool", STRENGTH["NOT"]
            case "~" if inner.kind == "ip":
                made, kind, strength = written("IP_TEXT(", self.complement(self.number(tree.operand)), ")"), "ip", WHOLE
            case "~" if inner.kind == "uint":
                made, kind, strength = self.complement(inner), "uint", STRENGTH["-"]
            case "~":
                self.needs_whole(tree.operand, inner)
                made, kind, strength = written("~", inner.within(PREFIX)), inner.kind, PREFIX
            case operator:
                self.needs_number(tree.operand, inner)
                made, kind, strength = written(operator, self.counted(inner).within(PREFIX)), inner.kind, PREFIX
        return Value(made.at(tree.span), kind, strength)

    def complement(self, value: Value) -> Written:
        """All other bits of a number of 32."""
        return written(f"{ALL_BITS} - ", value.within(STRENGTH["-"]))

    def binary(self, tree: Binary) -> Value:
        operator = tree.operator
        if operator in BITS:
            return self.bits(tree)
        left, right = self.value(tree.left), self.value(tree.right)
        if operator in COMPARISONS:
            left, right = self.as_address(tree.left, left, right), self.as_address(tree.right, right, left)
        strength, kind = STRENGTH[operator], "bool"
        if operator in COMPARISONS:
            left, right = self.comparable(tree, left, right)
        elif operator in ("AND", "OR"):
            for side, value in ((tree.left, left), (tree.right, right)):
                if value.kind not in ("bool", "other"):
                    raise self.wrong_type(side, value.kind, f"{operator} needs conditions")
        else:
            self.needs_number(tree.left, left)
            self.needs_number(tree.right, right)
            left, right, kind = self.counted(left), self.counted(right), wider(left.kind, right.kind)
        # a - (b - c) needs its parentheses, and so does a comparison in a comparison
        again = strength - 1 if operator in ("AND", "OR", "+", "*") else strength
        one = left.within(strength if operator in COMPARISONS else strength - 1)
        made = written(one, f" {operator} ", right.within(again))
        return Value(made.at(tree.span), kind, strength)

    def as_address(self, tree: Expression, value: Value, other: Value) -> Value:
        """A text that is compared with an address, as one; the value as it is if it is none."""
        if not isinstance(tree, Constant) or tree.kind != "string" or other.kind not in ("ip", "ipv6"):
            return value
        return self.constant(Constant(other.kind, tree.text, tree.span))

    def comparable(self, tree: Binary, left: Value, right: Value) -> tuple[Value, Value]:
        """Both sides of a comparison, in one form: addresses are compared as numbers where their order counts."""
        if tree.operator not in ("=", "<>") and "ip" in (left.kind, right.kind):
            return self.number(tree.left), self.number(tree.right)
        if tree.operator not in ("=", "<>") and "ipv6" in (left.kind, right.kind):
            raise refused(
                "the order of IPv6 addresses", "Compare them by = and <>, or IN [...].", self.place(tree.span)
            )
        if {left.kind, right.kind} & {"uint", "int", "ushort", "ullong", "llong"}:
            left, right = self.counted(left), self.counted(right)
        texts = ("string", "v_str", "ip", "ipv6")
        for side, value, other in ((tree.left, left, right), (tree.right, right, left)):
            why = f"it is compared with {other.kind}"
            if value.kind in texts and other.kind in (*NUMBERS, "timeval"):
                if value.kind == "ip" and other.kind in NUMBERS:
                    return (self.number(tree.left), self.number(tree.right))
                raise self.wrong_type(side, value.kind, why)
            if value.kind == "timeval" and other.kind in NUMBERS:
                raise self.wrong_type(side, value.kind, why, "Compare it with TIMEVAL'...', or UINT(...) with seconds.")
            if (value.kind, other.kind) == ("ip", "ipv6"):
                raise self.wrong_type(side, value.kind, why)
        return left, right

    def bits(self, tree: Binary) -> Value:
        """`&`, `|` and shifts; of addresses, by their numbers."""
        left, right = self.value(tree.left), self.value(tree.right)
        of_address = left.kind == "ip" or (right.kind == "ip" and tree.operator in ("&", "|"))
        if of_address:
            left, right = self.number(tree.left), self.number(tree.right)
        else:
            self.needs_whole(tree.left, left)
            self.needs_whole(tree.right, right)
            left, right = self.counted(left), self.counted(right)
        if tree.operator in ("<<", ">>"):
            function = "SHIFTLEFT" if tree.operator == "<<" else "SHIFTRIGHT"
            made, strength = written(f"{function}(", left.text, ", ", self.as_int(right), ")"), WHOLE
        else:
            made, strength = written(left.within(PREFIX), f" {tree.operator} ", right.within(PREFIX)), STRENGTH["="] + 1
        if of_address:
            return Value(written("IP_TEXT(", made, ")").at(tree.span), "ip")
        return Value(made.at(tree.span), wider(left.kind, right.kind) if made else left.kind, strength)

    @staticmethod
    def as_int(value: Value) -> Written:
        """By how many bits to shift, which SQL wants as an INT."""
        return value.text if value.kind in ("int", "ushort") else written("CAST(", value.text, " AS INT)")

    def number(self, tree: Expression) -> Value:
        """An address as a number; any other value as it is."""
        if isinstance(tree, Constant) and tree.kind in ("ip", "string"):
            known = address_number(tree.text)
            if known is None:
                raise self.bad_literal(tree, "an IPv4 address", "IP_VAL'10.0.0.1'")
            return Value(Written(str(known)).at(tree.span), "uint")
        value = self.value(tree)
        if value.kind != "ip":
            return self.counted(value)
        inner = value.text.text
        if inner.startswith("IP_TEXT(") and isinstance(tree, Binary | Unary):  # straight from its number
            cut = Written(
                inner[len("IP_TEXT(") : -1],
                tuple((max(a - 8, 0), min(b - 8, len(inner) - 9), span) for a, b, span in value.text.places),
            )
            return Value(cut, "uint", STRENGTH["="] + 1)
        return Value(written("IP_NUMBER(", value.text, ")"), "uint")

    def counted(self, value: Value) -> Value:
        """A value with which one can calculate: TRUE counts as 1."""
        return Value(written("CAST(", value.text, " AS INT)"), "int") if value.kind == "bool" else value

    def needs_number(self, tree: Expression, value: Value) -> None:
        if value.kind == "timeval":
            raise self.wrong_type(tree, value.kind, "a number is needed", "UINT(...) is its seconds since 1970.")
        if value.kind not in (*NUMBERS, "other"):
            raise self.wrong_type(tree, value.kind, "a number is needed")

    def needs_whole(self, tree: Expression, value: Value) -> None:
        self.needs_number(tree, value)
        if value.kind == "float":
            raise self.wrong_type(tree, value.kind, "only whole numbers have bits")

    def wrong_type(self, tree: Expression, kind: str, why: str, hint: str = "") -> UserError:
        return UserError("wrong-type", f"this is {kind}, and {why}", place=self.place(tree.span), hint=hint)

    def one_of(self, tree: OneOf) -> Value:
        operand = self.value(tree.operand)
        values = [self.as_address(one, self.constant(one), operand) for one in tree.values]
        texts = ("string", "v_str", "ip", "ipv6")
        for one, value in zip(tree.values, values, strict=True):
            mixed = (operand.kind in texts) != (value.kind in texts) or {operand.kind, value.kind} == {"ip", "ipv6"}
            mixed |= (operand.kind == "timeval") != (value.kind == "timeval")
            if mixed and "other" not in (operand.kind, value.kind):
                raise self.wrong_type(one, value.kind, f"it is compared with {operand.kind}")
        strength = STRENGTH["="]
        made = written(operand.within(strength), " IN (", listed([value.text for value in values]), ")")
        return Value(made.at(tree.span), "bool", strength)

    # calls

    def call(self, tree: Call) -> Value:
        lower = tree.name.lower()
        own = lower in self.catalog.functions or lower in self.catalog.outside
        if tree.of_supergroup:
            return self.superaggregate(tree)
        if lower in self.catalog.aggregates or (lower in AGGREGATES and not own):
            return self.aggregate(tree)
        if tree.star:
            raise UserError("syntax", f"{tree.name} takes no *", place=self.place(tree.span))
        values = [self.value(argument) for argument in tree.arguments]
        if lower in TYPES and len(values) == 1 and not own and not tree.predicate:
            return self.converted(tree, lower)
        if lower in WRITTEN and not own:
            form, kind = WRITTEN[lower]
            pieces = form.split("{}")
            if len(pieces) != len(values) + 1:
                raise UserError(
                    "wrong-arguments", f"{tree.name} takes {len(pieces) - 1} arguments", place=self.place(tree.span)
                )
            made = written(
                *(part for pair in zip(pieces, [v.text for v in values], strict=False) for part in pair), pieces[-1]
            )
            return Value(made.at(tree.span), kind)
        made = written(f"{named(tree.name)}(", listed([value.text for value in values]), ")")
        return Value(made.at(tree.span), "bool" if tree.predicate else "other")

    def converted(self, tree: Call, kind: str) -> Value:
        """A conversion that is named like its type, such as UINT(x)."""
        (argument,) = tree.arguments
        value = self.value(argument)
        if value.kind == "ip" and kind in NUMBERS:
            made = self.number(argument).text
            return Value(written("CAST(", made, f" AS {TYPES[kind]})").at(tree.span), kind)
        if kind == "ip" and value.kind in NUMBERS:
            return Value(written("IP_TEXT(", value.text, ")").at(tree.span), "ip")
        if kind in NUMBERS and kind != "bool":
            value = self.counted(value)
        return Value(written("CAST(", value.text, f" AS {TYPES[kind]})").at(tree.span), kind)

    def aggregate(self, tree: Call) -> Value:
        lower = tree.name.lower()
        if tree.star:
            if lower != "count":
                raise UserError("syntax", f"{tree.name} takes no *", place=self.place(tree.span))
            return Value(Written("COUNT(*)").at(tree.span), "uint")
        inside = self.without_keys()
        values = [inside.value(argument) for argument in tree.arguments]
        if lower in ("count", "sum", "min", "max", "avg", "and_aggr", "or_aggr", "xor_aggr") and len(values) != 1:
            raise UserError("wrong-arguments", f"{tree.name} takes one argument", place=self.place(tree.span))
        kind = values[0].kind if values else "other"
        if kind == "ipv6" and lower not in ("count", "first", "last"):
            raise refused(f"{tree.name} of IPv6 addresses", "Group by them, or count them.", self.place(tree.span))
        match lower:
            case "count":
                return Value(written("COUNT(", values[0].text, ")").at(tree.span), "uint")
            case "sum" | "avg":
                inside.needs_number(tree.arguments[0], values[0])
                given = {"bool": "uint", "ushort": "uint", "int": "llong", "uint": "ullong"}.get(kind, kind)
                made = written(f"{lower.upper()}(", self.counted(values[0]).text, ")")
                return Value(made.at(tree.span), given if lower == "sum" else "float")
            case "min" | "max" | "and_aggr" | "or_aggr" | "xor_aggr":
                return self.extreme(tree, lower, values[0], inside)
            case "first" | "last":
                return Value(written(f"{lower.upper()}(", values[0].text, ")").at(tree.span), kind)
            case _:
                made = written(f"{named(tree.name)}(", listed([value.text for value in values]), ")")
                return Value(made.at(tree.span), "other")

    def extreme(self, tree: Call, lower: str, value: Value, inside: Scope) -> Value:
        """MIN, MAX and the aggregates of bits; of addresses, by their numbers."""
        function = {"and_aggr": "BIT_AND", "or_aggr": "BIT_OR", "xor_aggr": "BIT_XOR"}.get(lower, lower.upper())
        if value.kind == "ip":
            number = inside.number(tree.arguments[0]).text
            return Value(written(f"IP_TEXT({function}(", number, "))").at(tree.span), "ip")
        if lower in ("min", "max"):
            return Value(written(f"{function}(", value.text, ")").at(tree.span), value.kind)
        if value.kind == "bool":
            if lower == "xor_aggr":
                made = written("BIT_XOR(", self.counted(value).text, ") = 1")
                return Value(made.at(tree.span), "bool", STRENGTH["="])
            function = "BOOL_AND" if lower == "and_aggr" else "BOOL_OR"
        elif value.kind not in ("ushort", "int", "uint", "llong", "ullong", "other"):
            raise self.wrong_type(tree.arguments[0], value.kind, f"{tree.name} needs whole numbers or conditions")
        return Value(written(f"{function}(", value.text, ")").at(tree.span), value.kind)

    def superaggregate(self, tree: Call) -> Value:
        """An aggregate over the groups of a supergroup: `count$(*)`."""
        lower = tree.name.lower()
        if not self.keys:
            raise UserError("syntax", f"{tree.name}$ belongs to a query with GROUP BY", place=self.place(tree.span))
        over = written(" OVER (PARTITION BY ", listed(self.super_keys), ")")
        if lower == "count_distinct":  # how many groups the supergroup has
            return Value(written("COUNT(*)", over).at(tree.span), "uint")
        if lower not in SUPERAGGREGATES:
            raise refused(
                f"the superaggregate {tree.name}$",
                "There are count$, sum$, min$, max$ and count_distinct$. Others: a query over this one.",
                self.place(tree.span),
            )
        inner = self.aggregate(Call(tree.name, tree.arguments, tree.span, star=tree.star))
        if inner.kind in ("ip", "ipv6", "bool"):
            raise self.wrong_type(tree, inner.kind, f"{tree.name}$ needs numbers or texts")
        outer = "SUM" if lower in ("count", "sum") else lower.upper()
        return Value(written(f"{outer}(", inner.text, ")", over).at(tree.span), inner.kind)


def within(tree: Expression) -> Iterator[Expression]:
    """An expression and all that it consists of."""
    yield tree
    match tree:
        case Unary(operand=one) | OneOf(operand=one):
            yield from within(one)
        case Binary(left=one, right=other):
            yield from within(one)
            yield from within(other)
        case Call(arguments=some):
            for argument in some:
                yield from within(argument)
        case _:
            pass
