"""CQL as a sqlglot dialect: Spark SQL plus windows in brackets and relation-to-stream operators.

This module holds the grammar of queries; statements are in `statement_grammar` and what is declared about time is in
`time_grammar`. `script` reads a text with it. A tree is a node of `syntax` or a sqlglot query, whose tables and
subqueries may carry a `StreamWindow` in their argument `window`. Names are not looked up here; the binder does that.

    SELECT ISTREAM(a, b) FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] AS x WHERE a > 1
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError
from sqlglot.tokens import TokenType

from headgate.cql import foreign
from headgate.cql.statement_grammar import StatementParser
from headgate.cql.syntax import EarlyAnswers, StreamOf, StreamWindow, WindowedQuery
from headgate.cql.time_grammar import system_name
from headgate.sql.dialect import SparkSql
from headgate.ticks import micros_per

ARITHMETIC = (TokenType.SLASH, TokenType.STAR, TokenType.PLUS, TokenType.DASH, TokenType.MOD)
STREAM_OPERATORS = ("ISTREAM", "DSTREAM", "RSTREAM")


class CqlParser(StatementParser):
    """Parses CQL: windows in brackets, relation-to-stream operators and EMIT, on top of Spark SQL."""

    in_window: ParseError | None = None
    """The error inside the brackets behind a stream, if there was one."""

    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        **SparkSql.Parser.FUNCTION_PARSERS,
        **{kind: lambda self, kind=kind: self._parse_stream_of(kind) for kind in STREAM_OPERATORS},
    }

    def _parse_function(self, *args: Any, **options: Any) -> Any:
        self._refuse_foreign_function()
        return super()._parse_function(*args, **options)

    def _refuse_foreign_function(self) -> None:
        called = self._next is not None and self._next.token_type == TokenType.L_PAREN
        if (
            self._curr
            and called
            and self._curr.token_type != TokenType.IDENTIFIER
            and self._curr.text.upper() in foreign.FUNCTIONS
        ):
            self._foreign(*foreign.FUNCTIONS[self._curr.text.upper()])

    # windows

    def _parse_bracket(self, this: Any = None) -> Any:
        if isinstance(this, exp.Table):
            if self._at(TokenType.L_BRACKET):
                this.set("window", self._parse_stream_window())
            return this
        return super()._parse_bracket(this)

    def _parse_table(self, *args: Any, **options: Any) -> Any:
        if self._at(TokenType.TABLE) and self._next and self._next.token_type == TokenType.L_PAREN:
            self._advance(2)
            self._refuse_foreign_function()
            self._retreat(self._index - 2)
        self._refuse_foreign_function()
        found = super()._parse_table(*args, **options)
        if self._at_word("FOR") and self._next.text.upper() in ("SYSTEM_TIME", "TIMESTAMP"):
            hint = "Join with the relation itself, beside the stream [NOW]: it is as of the stream's time."
            self._foreign("FOR SYSTEM_TIME AS OF", hint)
        return found

    def _parse_lateral(self) -> Any:
        if self._at(TokenType.LATERAL) and self._next and self._next.token_type == TokenType.TABLE:
            self._foreign(
                "LATERAL TABLE", "Write LATERAL VIEW EXPLODE(values) AS value, or another function that makes rows."
            )
        return super()._parse_lateral()

    def _parse_table_parts(self, *args: Any, **options: Any) -> Any:
        if not self._at_word("LATE", "ERRORS") or self._next.token_type != TokenType.L_PAREN:
            table = super()._parse_table_parts(*args, **options)
            if isinstance(table, exp.Table):
                _join_system_name(table)
                self._parse_sample(table)
            return table
        late = self._at_word("LATE")
        self._advance(2)
        table = self.expression(exp.Table(this=self._parse_name()))
        if not self._match(TokenType.R_PAREN):
            whose = "the stream whose late tuples are meant" if late else "the query whose errors are meant"
            self.raise_error(f"expected ) behind {whose}")
        table.set("late" if late else "errors", True)
        table.meta["end"] = self._prev.end
        self._parse_sample(table)
        return table

    def _parse_alias(self, this: Any, explicit: bool = False) -> Any:
        """An alias in a query without FROM: EMIT is none."""
        return this if self._at_emission() else super()._parse_alias(this, explicit)

    def _parse_table_alias(self, alias_tokens: Any = None) -> Any:
        self._refuse_window_without_brackets()
        if self._at_sample():
            self.raise_error("SAMPLE stands before the window and the alias: FROM s SAMPLE 10 PERCENT [NOW] a")
        if self._at_word("MATCH_RECOGNIZE"):
            hint = (
                "Join windows of the stream with itself: FROM s [NOW] a, s [RANGE 5 MINUTES] b WHERE a.k = b.k AND ..."
            )
            self._foreign("MATCH_RECOGNIZE", hint)
        if self._at_emission():
            return None
        alias = super()._parse_table_alias(alias_tokens)
        if alias is not None and self._at(TokenType.L_BRACKET):
            alias.set("window", self._parse_stream_window())
        return alias

    def _at_sample(self) -> bool:
        """Whether SAMPLE and a number stand here; a table may have the alias `sample`."""
        return self._at_word("SAMPLE") and self._next.token_type in (TokenType.NUMBER, TokenType.DASH)

    def _parse_sample(self, table: exp.Expression) -> None:
        """Parse `SAMPLE 10 PERCENT REPEATABLE (7)` behind a stream, if it stands here."""
        if not self._at_sample():
            return
        opening = self._curr
        self._advance()
        sign = "-" if self._match(TokenType.DASH) else ""
        percent = sign + self._parse_amount("SAMPLE needs a number")
        if not self._match(TokenType.PERCENT) and not self._match_text_seq("PERCENT"):
            self.raise_error("expected PERCENT behind the number of SAMPLE")
        seed = "0"
        if self._match_text_seq("REPEATABLE"):
            if not self._match(TokenType.L_PAREN):
                self.raise_error("expected ( and a whole number behind REPEATABLE")
            seed = self._parse_amount("REPEATABLE needs a whole number")
            if not seed.isdigit() or not self._match(TokenType.R_PAREN):
                self.raise_error("expected a whole number and ) behind REPEATABLE (")
        sample = exp.TableSample(percent=percent, seed=seed)
        sample.meta.update(start=opening.start, end=self._prev.end + 1)
        table.set("drawn", sample)
        table.meta["end"] = self._prev.end

    def _parse_subquery(self, this: Any, parse_alias: bool = True) -> Any:
        holder = exp.Table()
        if this:
            self._parse_sample(holder)
        window = self._parse_stream_window() if this and self._at(TokenType.L_BRACKET) else None
        subquery = super()._parse_subquery(this, parse_alias)
        if subquery is not None and window is not None:
            subquery.set("window", window)
        if subquery is not None and holder.args.get("drawn"):
            subquery.set("drawn", holder.args["drawn"])
        return subquery

    def _parse_wrapped_select(self, table: bool = False) -> Any:
        opening = self._curr
        query = self._parse_query() if self._at_operator() else super()._parse_wrapped_select(table)
        if query is not None:
            query.meta.update(start=opening.start, end=self._prev.end + 1)
        return query

    def _refuse_window_without_brackets(self) -> None:
        """Refuse `FROM s ROWS 10`, as in the demonstration of Stanford's prototype, and show the brackets."""
        if self._curr and self._curr.text.upper() in ("RANGE", "ROWS") and self._next:
            if self._next.token_type == TokenType.NUMBER or self._next.text.upper() == "UNBOUNDED":
                self._foreign("a window without brackets", f"Write [{self._curr.text.upper()} {self._next.text} ...].")

    def _parse_stream_window(self) -> StreamWindow:
        opening = self._curr
        self._match(TokenType.L_BRACKET)
        try:
            window = self._parse_stream_window_body()
            if not self._match(TokenType.R_BRACKET):
                self.raise_error("the window is not closed: expected ]")
        except ParseError as error:
            self.in_window = error  # behind a comma sqlglot would go back and complain of the table
            raise
        window.meta.update(start=opening.start, end=self._prev.end + 1)
        return window

    def _parse_stream_window_body(self) -> StreamWindow:
        word = self._curr.text.upper() if self._curr else ""
        if word == "SIZE":
            self._foreign(
                "a window of SIZE and ADVANCE (Odysseus)", "Write [RANGE n unit SLIDE n unit] or [ROWS n SLIDE n]."
            )
        if word in ("AT", "FROM"):
            self._foreign(
                "a window in the past (SNEEql)", "Use DSTREAM over [RANGE n], which gives tuples when they leave it."
            )
        if self._match_text_seq("NOW"):
            return self.expression(StreamWindow(kind="NOW"))
        if self._match_text_seq("UNBOUNDED"):
            return self.expression(StreamWindow(kind="UNBOUNDED"))
        if self._match(TokenType.PARTITION_BY):
            partition = self._parse_csv(self._parse_column)
            if not self._match_text_seq("ROWS"):
                self.raise_error("a partitioned window needs ROWS n")
            window = self._parse_rows()
            window.set("partition", partition)
            if self._match_text_seq("RANGE"):
                amount, unit = self._parse_window_span("RANGE needs a length")
                window.set("range", amount)
                window.set("range_unit", unit)
            return self._with_slide(window)
        if self._match_text_seq("RANGE"):
            if self._match_text_seq("UNBOUNDED"):
                return self.expression(StreamWindow(kind="UNBOUNDED"))
            if self._at(TokenType.INTERVAL) or self._at(TokenType.STRING):
                self._foreign(
                    "a length of time as an INTERVAL or a text", "Write a number and a unit: [RANGE 5 MINUTES]."
                )
            if self._at(TokenType.VAR) and not self._at_member():
                self._foreign("a length of time that is a name", f"Write a number for {self._curr.text}, or UNBOUNDED.")
            amount = self._parse_window_amount("RANGE needs a length or UNBOUNDED")
            if self._curr and self._curr.text.upper() in ("TUPLE", "TUPLES"):
                self._foreign("RANGE in tuples (BQL)", f"Write [ROWS {amount}].")
            unit = self._parse_unit()
            window = self.expression(StreamWindow(kind="RANGE", amount=amount, unit=unit))
            if self._match_text_seq("ON"):
                window.set("on", self._parse_column())
            return self._with_slide(window)
        if self._match_text_seq("ROWS"):
            if self._match_text_seq("UNBOUNDED"):
                return self.expression(StreamWindow(kind="UNBOUNDED"))
            return self._with_slide(self._parse_rows())
        self.raise_error("unknown window: expected NOW, RANGE, ROWS, PARTITION BY or UNBOUNDED")
        raise AssertionError  # raise_error raises: the error level is IMMEDIATE

    def _parse_rows(self) -> StreamWindow:
        return self.expression(StreamWindow(kind="ROWS", amount=self._parse_window_amount("ROWS needs a number")))

    def _at_member(self) -> bool:
        """Whether `relation.column` stands here, where a window has a number: the value of a member of a family."""
        return bool(self._curr and self._next and self._next.token_type == TokenType.DOT)

    def _parse_window_amount(self, missing: str) -> Any:
        """A number, or the column of a member that holds it."""
        return self._parse_column() if self._at_member() else self._parse_amount(missing)

    def _parse_window_span(self, missing: str) -> tuple[Any, str | None]:
        return self._parse_window_amount(missing), self._parse_unit()

    def _with_slide(self, window: StreamWindow) -> StreamWindow:
        if self._match_text_seq("SLIDE"):
            amount, unit = self._parse_window_span("SLIDE needs a length")
            window.set("slide", amount)
            window.set("slide_unit", unit)
        return window

    # relation-to-stream operators

    def _parse_stream_of(self, kind: str) -> StreamOf:
        distinct = bool(self._match(TokenType.DISTINCT))
        return self.expression(StreamOf(kind=kind, expressions=self._parse_expressions(), distinct=distinct))

    def _parse_projections(self) -> Any:
        bare = self._at_operator() and self._next.token_type != TokenType.L_PAREN
        kind = self._curr.text.upper() if bare else ""
        if bare:
            self._advance()
        projections, exclude = super()._parse_projections()
        return ([StreamOf(kind=kind, expressions=projections)] if bare else projections), exclude

    def _at_emission(self) -> bool:
        """Whether EVERY n or EMIT stands here, behind a query, where SQL would look for an alias."""
        if not self._curr or not self._next:
            return False
        word, following = self._curr.text.upper(), self._next
        return (word == "EVERY" and following.token_type == TokenType.NUMBER) or (
            word == "EMIT" and following.text.upper() in ("AT", "FINAL", "CHANGES", "EARLY")
        )

    def _parse_emission(self, operator: Any) -> None:
        if not self._at_emission() or self._next.text.upper() == "EARLY":
            return
        if self._next.text.upper() == "FINAL":
            self.raise_error(
                "EMIT FINAL belongs to a SELECT that groups or joins: write it inside, or without the operator "
                "around it"
            )
        if not isinstance(operator, StreamOf) or operator.args["kind"] != "RSTREAM":
            self.raise_error(
                f"{self._curr.text.upper()} belongs to RSTREAM: ISTREAM and DSTREAM speak when something changes"
            )
        if self._match_text_seq("EVERY"):
            amount, unit = self._parse_span("EVERY needs a length of time")
            operator.set("every", amount)
            operator.set("every_unit", unit)
            return
        self._match_text_seq("EMIT")
        if not self._match_text_seq("AT", "SLIDE"):
            self.raise_error("expected AT SLIDE behind EMIT")
        operator.set("at_slide", True)

    def _parse_query_modifiers(self, this: Any) -> Any:
        query = super()._parse_query_modifiers(this)
        if self._at_word("EMIT") and self._next.text.upper() == "CHANGES":
            self._foreign("EMIT CHANGES (ksqlDB)", "Leave it out: the answer of a relation is given as its changes.")
        if isinstance(query, exp.Select) and query.expressions:
            if self._at_emission() and self._next.text.upper() == "FINAL":
                self._parse_final(query)
            else:
                self._parse_emission(query.expressions[0])
        return query

    def _parse_final(self, query: exp.Select) -> None:
        opening, operator = self._curr, query.expressions[0]
        if isinstance(operator, StreamOf) and operator.args["kind"] != "RSTREAM":
            self.raise_error(f"EMIT FINAL puts each row out once by itself: leave {operator.args['kind']} out")
        self._advance(2)
        query.set("final", True)
        query.meta["final"] = (opening.start, self._prev.end + 1)

    def _parse_group(self, skip_group_by_token: bool = False) -> Any:
        """`GROUP BY time / 60 AS tb`, as in GSQL, names what is grouped by."""
        group = super()._parse_group(skip_group_by_token)
        while group is not None and self._at(TokenType.ALIAS):
            self._advance()
            key = group.expressions[-1]
            group.expressions[-1].replace(self.expression(exp.Alias(this=key.copy(), alias=self._parse_name())))
            if self._match(TokenType.COMMA):
                more = super()._parse_group(skip_group_by_token=True)
                for part in more.expressions:
                    group.append("expressions", part)
        return group

    def _at_operator(self) -> bool:
        return bool(self._curr) and self._curr.text.upper() in STREAM_OPERATORS and bool(self._next)

    def _parse_query(self) -> Any:
        """A query in statement position: a select, a set operation, names, or an operator around any of them."""
        opening = self._curr
        query = self._parse_query_body()
        query.meta.update(start=opening.start, end=self._prev.end + 1)
        return query

    def _parse_whole_query(self) -> Any:
        """A query in statement position, with EMIT EARLY and ON ERROR behind it, in any order."""
        query = self._parse_query()
        while True:
            if self._at_early() and "early" not in query.meta:
                query.meta["early"] = self._parse_early()
            elif self._at_on_error() and "skips" not in query.meta:
                query.meta["skips"] = self._parse_on_error()
            else:
                return query

    def _parse_on_error(self) -> bool:
        """`ON ERROR STOP` or `ON ERROR SKIP`: whether rows that fail are left out."""
        self._advance(2)
        if not self._match_texts(("STOP", "SKIP")):
            self._misspelt("expected STOP or SKIP behind ON ERROR", ("STOP", "SKIP"))
        return bool(self._prev.text.upper() == "SKIP")

    def _at_on_error(self) -> bool:
        """Whether ON ERROR stands here, behind a query: no condition of a join begins like that."""
        if not self._at(TokenType.ON) or not self._next or self._next.text.upper() != "ERROR":
            return False
        behind = self._tokens[self._index + 2] if self._index + 2 < len(self._tokens) else None
        return behind is None or behind.token_type == TokenType.VAR or behind.text == ";"

    def _match(self, token_type: Any, *args: Any, **options: Any) -> Any:
        if token_type == TokenType.ON and self._at_on_error():
            return None  # `FROM a CROSS JOIN b ON ERROR SKIP`
        return super()._match(token_type, *args, **options)

    def _at_early(self) -> bool:
        return self._at_word("EMIT") and self._next.text.upper() == "EARLY"

    def _parse_early(self) -> EarlyAnswers:
        """`EMIT EARLY [EVERY 1 SECOND]`."""
        opening = self._curr
        self._advance(2)
        every = None
        if self._match_text_seq("EVERY"):
            amount, unit = self._parse_span("EVERY needs a length of time")
            every_us = Fraction(amount) * micros_per(unit) if unit not in (None, "TICK") else Fraction(0)
            if every_us < 1:
                self.raise_error("EMIT EARLY EVERY needs a length of time on the clock, such as 1 SECOND")
            every = int(every_us)
        return self._since(opening, EarlyAnswers(every_us=every))

    def _parse_query_body(self) -> Any:
        if self._at_operator():
            token = self._curr
            self._advance()
            if self._match(TokenType.L_PAREN):
                inner = self._parse_query()
                if self._at_early():
                    self.raise_error(
                        "EMIT EARLY stands once, behind a whole query that is registered: not in a view or a subquery"
                    )
                if not self._match(TokenType.R_PAREN):
                    self.raise_error("expected )")
            else:
                inner = self._parse_query()
            operator = self.expression(StreamOf(kind=token.text.upper(), query=inner))
            self._parse_emission(operator)
            return operator
        if self._at(TokenType.VAR):
            return self._parse_set_operations(self._named_query())
        start = self._index
        query = self._parse_select(nested=True, parse_subquery_alias=False)
        if query is None:
            self.raise_error("expected a query")
        query = self._parse_set_operations(query)
        if isinstance(query, exp.Subquery) and query.args.get("drawn"):
            self.raise_error("SAMPLE stands in FROM: SELECT * FROM (query) SAMPLE 10 PERCENT")
        if isinstance(query, exp.Subquery) and query.args.get("window"):
            return self.expression(WindowedQuery(this=query.this, window=query.args["window"]))
        if isinstance(query, exp.Subquery) and self._curr and self._curr.token_type in ARITHMETIC:
            return self._parse_arithmetic(start)
        return query

    def _parse_arithmetic(self, start: int) -> exp.Select:
        """Arithmetic over scalar queries as a whole query: a select without FROM."""
        self._retreat(start)
        return exp.Select(expressions=[self._parse_expression()])

    def _parse_select(self, *args: Any, **options: Any) -> Any:
        if options.get("nested") and not options.get("table") and self._at(TokenType.VAR) and not self._at_operator():
            return self._named_query()  # the right side of `A UNION B`
        return super()._parse_select(*args, **options)

    def _named_query(self) -> exp.Select:
        query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=self._parse_table_parts()))
        query.meta["bare"] = True
        return query


def _join_system_name(table: exp.Table) -> None:
    """Make one name of SYSTEM.queries, which SQL reads as a table in a schema."""
    schema = table.args.get("db")
    if isinstance(schema, exp.Identifier) and schema.name.lower() == "system" and not table.args.get("catalog"):
        table.set("db", None)
        table.set("this", system_name(schema, table.this))


class CqlGenerator(Spark.Generator):
    """Writes syntax trees of CQL as text, for people to read."""

    TRANSFORMS: ClassVar[dict[Any, Any]] = {
        **{kind: write for kind, write in Spark.Generator.TRANSFORMS.items() if kind is not exp.Select},
        StreamOf: lambda self, tree: self.streamof_sql(tree),
        StreamWindow: lambda self, tree: self.streamwindow_sql(tree),
        WindowedQuery: lambda self, tree: self.windowedquery_sql(tree),
    }

    def streamof_sql(self, tree: StreamOf) -> str:
        """ISTREAM(...) around a select list or a query."""
        if tree.args.get("query") is not None:
            return f"{tree.args['kind']}({self.sql(tree, 'query')}){self._emission(tree)}"
        distinct = "DISTINCT " if tree.args.get("distinct") else ""
        return f"{tree.args['kind']}({distinct}{self.expressions(tree, flat=True)})"

    def _emission(self, tree: exp.Expression) -> str:
        if tree.args.get("at_slide"):
            return " EMIT AT SLIDE"
        if tree.args.get("every") is None:
            return ""
        return f" EVERY {_length(tree.args['every'], tree.args.get('every_unit'))}"

    def streamwindow_sql(self, tree: StreamWindow) -> str:
        """A window in brackets."""
        parts = []
        if tree.args.get("partition"):
            parts.append(f"PARTITION BY {', '.join(map(self.sql, tree.args['partition']))}")
        parts.append(tree.args["kind"])
        if tree.args.get("amount") is not None:
            parts.append(_length(self.sql(tree, "amount"), tree.args.get("unit")))
        if tree.args.get("on") is not None:
            parts.append(f"ON {self.sql(tree, 'on')}")
        if tree.args.get("range") is not None:
            parts.append(f"RANGE {_length(self.sql(tree, 'range'), tree.args.get('range_unit'))}")
        if tree.args.get("slide") is not None:
            parts.append(f"SLIDE {_length(self.sql(tree, 'slide'), tree.args.get('slide_unit'))}")
        return f"[{' '.join(parts)}]"

    def windowedquery_sql(self, tree: WindowedQuery) -> str:
        """A query with a window behind it."""
        return f"({self.sql(tree, 'this')}) {self.sql(tree, 'window')}"

    def table_parts(self, expression: exp.Table) -> str:
        """The name of a table, with its sample and its window."""
        name = super().table_parts(expression)
        alias = expression.args.get("alias")
        window = expression.args.get("window") or (alias.args.get("window") if alias is not None else None)
        behind = self._drawn(expression) + (f" {self.sql(window)}" if window is not None else "")
        function = "LATE" if expression.args.get("late") else "ERRORS" if expression.args.get("errors") else ""
        return (f"{function}({name})" if function else name) + behind

    def wrap(self, expression: Any) -> str:
        """A subquery in parentheses, with its sample and its window."""
        text = super().wrap(expression)
        if not isinstance(expression, exp.Subquery):
            return text
        window = expression.args.get("window")
        return text + self._drawn(expression) + (f" {self.sql(window)}" if window is not None else "")

    def _drawn(self, tree: exp.Expression) -> str:
        drawn = tree.args.get("drawn")
        return f" SAMPLE {drawn.args['percent']} PERCENT REPEATABLE ({drawn.args['seed']})" if drawn is not None else ""

    def select_sql(self, expression: exp.Select) -> str:
        """A select, with what stands behind it."""
        text = super().select_sql(expression)
        if expression.args.get("final"):
            return f"{text} EMIT FINAL"
        first = expression.expressions[0] if expression.expressions else None
        return text + (self._emission(first) if isinstance(first, StreamOf) else "")


def _length(amount: str, unit: str | None) -> str:
    return amount if unit is None else f"{amount} {unit}S"


class Cql(SparkSql):
    """The dialect that sqlglot knows under the name `cql`."""

    class Tokenizer(Spark.Tokenizer):
        """Splits CQL into tokens as Spark SQL does."""

        # What sqlglot leaves unparsed as a command is a statement of ours.
        KEYWORDS = {**Spark.Tokenizer.KEYWORDS, "EXPLAIN": TokenType.VAR, "SHOW": TokenType.VAR}

    TYPED_DIVISION = True  # int / int is int, as in SQL and in CQL

    Parser = CqlParser
    Generator = CqlGenerator
