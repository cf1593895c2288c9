"""The part of the grammar that speaks of time: lengths, parties and what is declared of them. `dialect` is built on it.

Numbers are taken as they are written, with their sign and unit; `time` says what they mean and which of them make no
sense.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from headgate.cql.syntax import (
    CreateStream,
    Disorder,
    Environment,
    Estimate,
    Future,
    Groups,
    Heartbeat,
    Late,
    Latency,
    Length,
    Parameter,
    Party,
    Promise,
    Skew,
    TakeBack,
    Timeout,
    TimeStatement,
)
from headgate.errors import nearest
from headgate.sql.dialect import SparkSql

TIME_STATEMENTS = (
    "SKEW",
    "DISORDER",
    "LATENCY",
    "ENVIRONMENT",
    "ESTIMATE",
    "GROUPS",
    "LATE",
    "FUTURE",
    "HEARTBEAT",
    "TIMEOUT",
)
UNITS = ("TICK", "NANOSECOND", "MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK")
BEHIND_A_NUMBER = (
    "SLIDE",
    "ON",
    "FROM",
    "INTO",
    "EMIT",
    "RANGE",
    "WITHIN",
    "TO",
    "PER",
    "OF",
    "SOURCE",
    "HEARTBEAT",
    "DISORDER",
    "LATENCY",
    "LATE",
    "FUTURE",
    "VALUE",
)
"""Words that may follow a length of time whose unit is left out."""

LONGEST_NUMBER = 30
POLICIES = ("KEEP", "DROP", "FAIL")


def system_name(schema: exp.Identifier, short: exp.Identifier) -> exp.Identifier:
    """One name of the two that a dot joins in the name of a system stream."""
    name = exp.Identifier(this=f"{schema.name}.{short.name}", quoted=True)
    name.meta.update({**short.meta, "start": schema.meta.get("start", 0)})
    return name


class TimeParser(SparkSql.Parser):
    # words

    """Parses statements and clauses about time. The dialect builds on it."""

    def _at(self, kind: TokenType) -> bool:
        return bool(self._curr) and self._curr.token_type == kind

    def _at_word(self, *words: str) -> bool:
        return bool(self._curr) and bool(self._next) and self._curr.text.upper() in words

    def _at_statement(self, *words: str) -> bool:
        """At one of the words as the beginning of a statement, not as a name: `late : ...`, `late UNION ...`."""
        if not self._curr or self._curr.text.upper() not in words:
            return False
        following = self._next.token_type if self._next else None
        return following not in (TokenType.COLON, TokenType.L_PAREN, *self.SET_OPERATIONS)

    def _expect(self, word: str) -> None:
        if not self._match_text_seq(word):
            self.raise_error(f"expected {word}")

    def _misspelt(self, message: str, known: Iterable[str], alike: float = 0.6) -> None:
        hint = nearest(self._curr.text, known, alike) if self._curr else ""
        self.raise_error(f"{message}. {hint}" if hint else message)

    def _parse_name(self) -> exp.Identifier:
        name = self._parse_id_var(any_token=False)
        if name is None:
            self.raise_error("expected a name")
        return self._with_schema(name)

    def _with_schema(self, name: exp.Identifier) -> exp.Identifier:
        """The name of a system stream, which has a dot in it, as one name."""
        if name.name.lower() != "system" or not self._match(TokenType.DOT):
            return name
        short = self._parse_id_var(any_token=True)
        if short is None:
            self.raise_error("expected the name of a system stream behind SYSTEM.")
        return system_name(name, short)

    def _since(self, opening: Token, node: Any) -> Any:
        """The node, with where it stands."""
        node.meta.update(start=opening.start, end=self._prev.end + 1)
        return node

    # lengths

    def _parse_span(self, missing: str) -> tuple[str, str | None]:
        return self._parse_amount(missing), self._parse_unit()

    def _parse_amount(self, missing: str) -> str:
        if not self._match(TokenType.NUMBER):
            self.raise_error(missing)
        digits = self._prev.text
        while self._at(TokenType.COMMA) and self._next and self._next.token_type == TokenType.NUMBER:
            self._advance(2)  # 50,000 as the papers write it
            digits += self._prev.text
        if len(digits) > LONGEST_NUMBER or not digits.replace(".", "", 1).isdigit():
            self.raise_error(f"{digits[:LONGEST_NUMBER]} is not a number of at most {LONGEST_NUMBER} digits")
        return digits

    def _parse_unit(self) -> str | None:
        if not self._curr:
            return None
        word = self._curr.text.upper().removesuffix("S")
        if word in UNITS:
            self._advance()
            return word
        if self._at(TokenType.VAR) and self._curr.text.upper() not in BEHIND_A_NUMBER:
            self._misspelt(f'unknown unit of time "{self._curr.text}"', (*UNITS, *(f"{unit}S" for unit in UNITS)))
        return None

    def _parse_length(self, missing: str) -> Length:
        opening = self._curr
        if self._match_text_seq("UNLIMITED"):
            return self._since(opening, self.expression(Length(unit="UNLIMITED")))
        sign = "-" if self._match(TokenType.DASH) else ""
        amount = sign + self._parse_amount(missing)
        unit = "TUPLE" if self._match_texts(("TUPLE", "TUPLES")) else self._parse_unit()
        return self._since(opening, self.expression(Length(amount=amount, unit=unit)))

    # parties and promises

    def _parse_party(self) -> Party:
        name = self._parse_name()
        return self.expression(
            Party(this=name, sources=[self._parse_source()] if self._match_text_seq("SOURCE") else [])
        )

    def _parse_member(self) -> Party:
        """A party of which several sources can be named."""
        party = self._parse_party()
        while (
            party.args["sources"]
            and self._at(TokenType.COMMA)
            and self._next
            and self._next.token_type == TokenType.STRING
        ):
            self._advance()
            party.append("sources", self._parse_source())
        return party

    def _parse_source(self) -> exp.Literal:
        if not self._match(TokenType.STRING):
            self.raise_error("expected a source between quotes")
        return self._since(self._prev, exp.Literal.string(self._prev.text))

    def _parse_promises(self) -> list[Promise]:
        return self._parse_csv(self._parse_promise)

    def _parse_promise(self) -> Promise:
        opening = self._curr
        if not self._match(TokenType.L_PAREN):
            self.raise_error("expected bounds such as (AFTER 2 SECONDS WITHIN 5 SECONDS)")
        after = self._parse_length("AFTER needs a length of time") if self._match_text_seq("AFTER") else None
        self._expect("WITHIN")
        within = self._parse_length("WITHIN needs a length of time")
        if not self._match(TokenType.R_PAREN):
            self.raise_error("expected ) behind WITHIN")
        return self._since(opening, self.expression(Promise(after=after, within=within)))

    def _parse_disorder(self, word: str) -> list[Length] | list[Promise]:
        if self._at(TokenType.L_PAREN):
            return self._parse_promises()
        return [self._parse_length(f"{word} needs a length of time")]

    def _parse_time_parameter(self) -> Parameter:
        if not self._curr or not self._curr.text.isidentifier():
            self.raise_error("expected the name of a parameter")
        token = self._curr
        self._advance()
        name = exp.to_identifier(token.text)
        name.meta.update(start=token.start, end=token.end)
        node = self.expression(Parameter(this=name))
        if not self._at(TokenType.COMMA) and not self._at(TokenType.R_PAREN):
            node.set("value", self._parse_length(f"{token.text.upper()} needs a value"))
        if self._match_text_seq("TO"):
            node.set("to", self._parse_length("TO needs a length of time"))
        if self._match_text_seq("PER"):
            unit = self._parse_unit()
            if unit is None:
                self.raise_error("PER needs a unit of time")
            node.set("per", unit)
        return node

    def _parse_policy(self) -> str:
        if not self._match_texts(POLICIES):
            self._misspelt("expected KEEP, DROP or FAIL", POLICIES)
        return str(self._prev.text.lower())

    # statements and clauses

    def _parse_time_statement(self) -> TimeStatement:
        parsers: dict[str, Callable[[], TimeStatement]] = {
            "SKEW": self._parse_skew,
            "DISORDER": lambda: Disorder(this=self._parse_of(), promises=self._parse_disorder("DISORDER OF")),
            "LATENCY": lambda: Latency(
                this=self._parse_of(), length=self._parse_length("LATENCY OF needs a length of time")
            ),
            "ENVIRONMENT": self._parse_environment,
            "ESTIMATE": self._parse_estimate,
            "GROUPS": self._parse_groups,
            "LATE": lambda: Late(this=self._parse_of_name(), policy=self._parse_policy()),
            "FUTURE": lambda: Future(
                this=self._parse_of_name(), length=self._parse_length("FUTURE OF needs a length of time")
            ),
            "HEARTBEAT": self._parse_heartbeat,
            "TIMEOUT": lambda: Timeout(length=self._parse_length("TIMEOUT needs a length of time")),
        }
        word = self._curr.text.upper()
        self._advance()
        return self.expression(parsers[word]())

    def _parse_take_back(self) -> TakeBack:
        """Behind DROP: what was declared, in the words that declared it, without numbers."""
        parsers: dict[str, Callable[[], TimeStatement]] = {
            "SKEW": lambda: Skew(**self._parse_pair()),
            "DISORDER": lambda: Disorder(this=self._parse_of()),
            "LATENCY": lambda: Latency(this=self._parse_of()),
            "ENVIRONMENT": lambda: Environment(this=self._parse_name(), members=self._parse_members()),
            "ESTIMATE": lambda: Estimate(this=self._parse_of_name()),
            "GROUPS": lambda: Groups(this=self._parse_of_name()),
            "LATE": lambda: Late(this=self._parse_of_name()),
            "FUTURE": lambda: Future(this=self._parse_of_name()),
            "HEARTBEAT": lambda: Heartbeat(this=self._parse_name() if self._match_text_seq("OF") else None),
            "TIMEOUT": Timeout,
        }
        opening = self._curr
        self._advance()
        if_exists = bool(self._match_text_seq("IF", "EXISTS"))
        taken = self._since(opening, parsers[opening.text.upper()]())
        if self._curr and not self._at(TokenType.SEMICOLON):
            self.raise_error(f"DROP {opening.text.upper()} names what was declared and nothing else: expected the end")
        return TakeBack(this=taken, if_exists=if_exists)

    def _parse_of(self) -> Party:
        self._expect("OF")
        return self._parse_party()

    def _parse_of_name(self) -> exp.Identifier:
        self._expect("OF")
        return self._parse_name()

    def _parse_skew(self) -> Skew:
        return Skew(**self._parse_pair(), promises=self._parse_promises())

    def _parse_pair(self) -> dict[str, Party]:
        self._expect("FROM")
        first = self._parse_party()
        self._expect("TO")
        return {"this": first, "to": self._parse_party()}

    def _parse_environment(self) -> Environment:
        name = self._parse_name()
        parameters = self._parse_wrapped(lambda: self._parse_csv(self._parse_time_parameter))
        return Environment(this=name, parameters=parameters, members=self._parse_members())

    def _parse_members(self) -> list[Party] | None:
        return self._parse_csv(self._parse_member) if self._match_text_seq("OF") else None

    def _parse_estimate(self) -> Estimate:
        name = self._parse_of_name()
        wrapped = self._at(TokenType.L_PAREN)
        parameters = self._parse_wrapped(lambda: self._parse_csv(self._parse_time_parameter)) if wrapped else []
        return Estimate(this=name, parameters=parameters)

    def _parse_groups(self) -> Groups:
        name = self._parse_of_name()
        if not self._at(TokenType.L_PAREN):
            return Groups(this=name, count=self._parse_length("GROUPS OF needs a number or sets of sources"))
        return Groups(this=name, sets=self._parse_csv(self._parse_source_group))

    def _parse_source_group(self) -> exp.Tuple:
        return exp.Tuple(expressions=self._parse_wrapped(lambda: self._parse_csv(self._parse_source)))

    def _parse_heartbeat(self) -> Heartbeat:
        stream = self._parse_name() if self._match_text_seq("OF") else None
        node = self._parse_enabling()
        node.set("this", stream)
        return node

    def _parse_enabling(self) -> Heartbeat:
        """When the clock is asked: the same words in a statement and in CREATE STREAM."""
        node = self.expression(Heartbeat(how="none"))
        if self._match_text_seq("ON"):
            self._expect("DEMAND")
            node.set("how", "on demand")
        elif self._match_text_seq("EVERY"):
            node.set("how", "every")
            node.set("every", self._parse_length("EVERY needs a length of time"))
        elif not self._match_text_seq("NONE"):
            self._misspelt(
                "expected ON DEMAND, EVERY and a length of time, or NONE behind HEARTBEAT", ("ON", "EVERY", "NONE")
            )
        if self._match_text_seq("WITHIN"):
            node.set("within", self._parse_length("WITHIN needs a length of time"))
        return node

    def _parse_time_clause(self, node: CreateStream) -> bool:
        """A clause of CREATE STREAM about its time; whether there was one."""
        parsers: dict[str, Callable[[], Any]] = {
            "TIMESTAMP": self._parse_timestamp,
            "SOURCE": self._parse_by,
            "HEARTBEAT": self._parse_by,
            "DISORDER": lambda: self._parse_disorder("DISORDER"),
            "LATENCY": lambda: self._parse_length("LATENCY needs a length of time"),
            "LATE": self._parse_policy,
            "FUTURE": lambda: self._parse_length("FUTURE needs a length of time"),
            "ENABLING": self._parse_enabling,
        }
        word = part = self._curr.text.upper()
        if word == "HEARTBEAT" and self._next and self._next.text.upper() != "BY":
            part = "ENABLING"
        if word not in parsers or word == "ENABLING":
            return False
        if node.args.get(part.lower()) is not None:
            self.raise_error(f"{word} stands twice")
        self._advance()
        node.set(part.lower(), parsers[part]())
        return True

    def _parse_by(self) -> exp.Identifier:
        self._expect("BY")
        return self._parse_name()

    def _parse_timestamp(self) -> exp.Identifier | str:
        if self._match_texts(("INTERNAL", "LATENT")):
            return str(self._prev.text.lower())
        if not self._match_text_seq("BY"):
            self._misspelt("expected BY and a column, INTERNAL or LATENT behind TIMESTAMP", ("INTERNAL", "LATENT"))
        return self._parse_name()
