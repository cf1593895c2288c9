"""CQL as a sqlglot dialect: Spark SQL plus windows in brackets, relation-to-stream operators and definitions.

Text comes in, syntax trees go out: a list of statements, each a node of this module or a sqlglot query whose tables and
subqueries may carry a `StreamWindow` in their argument `window`. Names are not looked up here; the binder does that.

    SELECT ISTREAM(a, b) FROM s [RANGE 5 MINUTES SLIDE 1 MINUTE] AS x WHERE a > 1
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokens import Token, TokenType

from headgate.cql import foreign
from headgate.cql.strings import with_strings
from headgate.cql.syntax import (
    Alter,
    CreateFunction,
    CreateQuery,
    CreateRelation,
    CreateStream,
    CreateView,
    Drop,
    Explain,
    NamePendingView,
    PendingView,
    SetOption,
    Show,
    StreamOf,
    StreamWindow,
    TakeBack,
    Why,
    WindowedQuery,
)
from headgate.cql.time_grammar import TIME_STATEMENTS, TimeParser
from headgate.cql.time_grammar import UNITS as UNITS
from headgate.cql.trees import balanced, depth
from headgate.errors import Place, UserError, nearest

FOREIGN = "foreign construct: "
TOKEN = re.compile(r"<Token token_type: \S+, text: (.*?), line: .*>", re.DOTALL)
ARGUMENT = re.compile(r"required keyword: '(\w+)' missing for <class .*>")
"""How sqlglot speaks of its own objects."""

TYPOGRAPHIC = re.compile(r"`[^`'\n]*'")
ARITHMETIC = (TokenType.SLASH, TokenType.STAR, TokenType.PLUS, TokenType.DASH, TokenType.MOD)
STREAM_OPERATORS = ("ISTREAM", "DSTREAM", "RSTREAM")
STATEMENTS = (
    "CREATE",
    "DROP",
    "SHOW",
    "DESCRIBE",
    "SELECT",
    "SET",
    *TIME_STATEMENTS,
    "EXPLAIN",
    "WHY",
    "REGISTER",
    "ISTREAM",
    "DSTREAM",
    "RSTREAM",
    "WITH",
)
KINDS = ("STREAM", "RELATION", "VIEW", "QUERY", "FUNCTION")
LISTED = ("STREAMS", "RELATIONS", "VIEWS", "QUERIES", "FUNCTIONS", "SETTINGS", "BOUNDS")
REGISTERED = {exp.DataType.Type.TINYINT: "STRING", exp.DataType.Type.CHAR: "STRING", exp.DataType.Type.FLOAT: "DOUBLE"}


class CqlParser(TimeParser):
    in_window: ParseError | None = None
    """What was wrong in the brackets behind a stream, if anything was."""

    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        **Spark.Parser.FUNCTION_PARSERS,
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
        if not self._at_word("LATE") or self._next.token_type != TokenType.L_PAREN:
            table = super()._parse_table_parts(*args, **options)
            if isinstance(table, exp.Table):
                self._parse_sample(table)
            return table
        self._advance(2)
        table = self.expression(exp.Table(this=self._parse_name()))
        if not self._match(TokenType.R_PAREN):
            self.raise_error("expected ) behind the stream whose late tuples are meant")
        table.set("late", True)
        table.meta["end"] = self._prev.end
        self._parse_sample(table)
        return table

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
        """At SAMPLE and a number; a table may have the alias `sample`."""
        return self._at_word("SAMPLE") and self._next.token_type in (TokenType.NUMBER, TokenType.DASH)

    def _parse_sample(self, table: exp.Expression) -> None:
        """`SAMPLE 10 PERCENT REPEATABLE (7)` behind a stream."""
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
        """`FROM s ROWS 10`, as in the demonstration of Stanford's prototype."""
        if self._curr and self._curr.text.upper() in ("RANGE", "ROWS") and self._next:
            if self._next.token_type == TokenType.NUMBER or self._next.text.upper() == "UNBOUNDED":
                self._foreign("a window without brackets", f"Write [{self._curr.text.upper()} {self._next.text} ...].")

    def _foreign(self, what: str, hint: str) -> None:
        """A construct of another dialect: said so in one line, with what to write instead."""
        self.raise_error(f"{FOREIGN}{what}. {hint}")

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
                amount, unit = self._parse_span("RANGE needs a length")
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
            if self._at(TokenType.VAR):
                self._foreign("a length of time that is a name", f"Write a number for {self._curr.text}, or UNBOUNDED.")
            amount = self._parse_amount("RANGE needs a length or UNBOUNDED")
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
        return self.expression(StreamWindow(kind="ROWS", amount=self._parse_amount("ROWS needs a number")))

    def _with_slide(self, window: StreamWindow) -> StreamWindow:
        if self._match_text_seq("SLIDE"):
            amount, unit = self._parse_span("SLIDE needs a length")
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
        """At EVERY n or EMIT AT SLIDE: behind a query, where SQL would look for an alias."""
        if not self._curr or not self._next:
            return False
        word, following = self._curr.text.upper(), self._next
        return (word == "EVERY" and following.token_type == TokenType.NUMBER) or (
            word == "EMIT" and following.text.upper() in ("AT", "FINAL", "CHANGES")
        )

    def _parse_emission(self, operator: Any) -> None:
        if not self._at_emission():
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

    def _parse_query_body(self) -> Any:
        if self._at_operator():
            token = self._curr
            self._advance()
            if self._match(TokenType.L_PAREN):
                inner = self._parse_query()
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

    # statements

    def _parse_cql_statement(self) -> Any:
        if self._match_text_seq("CREATE"):
            return self._parse_definition()
        if self._match_text_seq("REGISTER"):
            return self._parse_register()
        if self._match_text_seq("DROP"):
            return self._parse_drop_statement()
        if self._match_text_seq("ALTER"):
            return self._parse_alter_statement()
        if self._match_text_seq("SHOW"):
            return self._parse_show_statement()
        if self._match_texts(("DESCRIBE", "DESC")):
            return self.expression(Show(this=self._parse_name()))
        if self._match_text_seq("SET"):
            return self._parse_set_option()
        if self._match_text_seq("EXPLAIN"):
            return self.expression(Explain(this=self._parse_query()))
        if self._at_statement("WHY"):
            self._advance()
            return self.expression(Why(this=self._parse_name()))
        if self._at_statement(*TIME_STATEMENTS):
            return self._parse_time_statement()
        labelled = self._parse_label()
        if labelled is not None:
            return labelled
        if self._curr and self._curr.text.upper() not in STATEMENTS and not self._at(TokenType.L_PAREN):
            following = self._next.token_type if self._next else None
            if following not in self.SET_OPERATIONS:
                if self._curr.text.upper() in foreign.STATEMENTS:
                    self._foreign(*foreign.STATEMENTS[self._curr.text.upper()])
                self._misspelt(f'unknown statement "{self._curr.text}"', (*STATEMENTS, *foreign.STATEMENTS), alike=0.7)
        return self._parse_query()

    def _parse_definition(self) -> Any:
        for word, parse in (
            ("STREAM", self._parse_create_stream),
            ("RELATION", self._parse_create_relation),
            ("VIEW", self._parse_create_view),
            ("QUERY", self._parse_create_query),
            ("FUNCTION", self._parse_create_function),
        ):
            if self._match_text_seq(word):
                return parse()
        if self._curr and self._curr.text.upper() in foreign.CREATED:
            self._foreign(*foreign.CREATED[self._curr.text.upper()])
        self._misspelt("expected STREAM, RELATION, VIEW, QUERY or FUNCTION after CREATE", KINDS)
        raise AssertionError

    def _parse_register(self) -> Any:
        """`register stream S (A integer, C byte)`, as Stanford's prototype has it: a byte is one character there."""
        for word, parse in (("STREAM", self._parse_create_stream), ("RELATION", self._parse_create_relation)):
            if self._match_text_seq(word):
                node = parse()
                for column in node.args.get("columns") or ():
                    kind = column.args["kind"] if isinstance(column, exp.ColumnDef) else None
                    if kind is not None and kind.this in REGISTERED:
                        column.set("kind", exp.DataType.build(REGISTERED[kind.this]))
                return node
        self.raise_error("expected STREAM or RELATION after REGISTER")
        raise AssertionError

    def _parse_label(self) -> Any:
        """`Name: query` and `Name(a, b): query`; `table :`, `query :`, `vquery :` and `vtable :` of the prototype's
        scripts.
        """
        start = self._index
        name = self._parse_id_var(any_token=False) if self._curr and self._next else None
        columns = None
        if name is not None and self._at(TokenType.L_PAREN):
            columns = self._try_parse(self._parse_wrapped_id_vars)
        if name is None or not self._match(TokenType.COLON):
            self._retreat(start)
            return None
        match name.name.lower():
            case "table" | "query" if columns is None:
                return self._parse_cql_statement()
            case "vquery" if columns is None:
                return self.expression(PendingView(query=self._parse_query()))
            case "vtable" if columns is None:
                if not self._match_text_seq("REGISTER"):
                    self.raise_error("expected REGISTER behind vtable :")
                registered = self._parse_register()
                if any(column.args.get("order") for column in registered.args["columns"]):
                    self.raise_error(
                        "the order of a query's columns follows from the query: leave INCREASING and DECREASING out"
                    )
                kind = "STREAM" if isinstance(registered, CreateStream) else "RELATION"
                return self.expression(
                    NamePendingView(this=registered.this, columns=registered.args["columns"], kind=kind)
                )
            case "source" | "dest" if columns is None:
                self._foreign("a file of the prototype's scripts", "Say FROM format OPTIONS (...), or INTO.")
        return self.expression(CreateView(this=name, columns=columns, query=self._parse_query()))

    def _parse_drop_statement(self) -> Drop | TakeBack:
        if self._curr and self._curr.text.upper() in TIME_STATEMENTS:
            return self._parse_take_back()
        for kind in KINDS:
            if self._match_text_seq(kind):
                if_exists = bool(self._match_text_seq("IF", "EXISTS"))
                return self.expression(Drop(this=self._parse_name(), kind=kind, if_exists=if_exists))
        known = (*KINDS, *TIME_STATEMENTS)
        self._misspelt(
            "expected STREAM, RELATION, VIEW, QUERY, FUNCTION or a declaration such as DISORDER OF after DROP", known
        )
        raise AssertionError

    def _parse_alter_statement(self) -> Alter:
        if self._match_text_seq("QUERY"):
            return self.expression(Alter(this=self._parse_create_query()))
        if self._match_text_seq("VIEW"):
            return self.expression(Alter(this=self._parse_create_view()))
        if self._match_text_seq("STREAM"):
            name = self._parse_name()
            if not self._match_text_seq("ADD", "COLUMN"):
                self.raise_error("expected ADD COLUMN and the column's name and type")
            return self.expression(Alter(this=name, column=self._parse_ordered_column()))
        self.raise_error("expected QUERY, VIEW or STREAM after ALTER")
        raise AssertionError

    def _parse_show_statement(self) -> Show:
        for kind in LISTED:
            if self._match_text_seq(kind):
                return self.expression(Show(kind=kind))
        self._misspelt(f"expected {', '.join(LISTED[:-1])} or {LISTED[-1]} after SHOW", LISTED)
        raise AssertionError

    def _parse_create_stream(self) -> Any:
        name = self._parse_name()
        if self._match_text_seq("AS"):
            return self.expression(CreateView(this=name, query=self._parse_query(), kind="STREAM"))
        columns = self._parse_wrapped(lambda: self._parse_csv(self._parse_ordered_column))
        node = self.expression(CreateStream(this=name, columns=columns))
        while self._curr:
            if self._match_text_seq("FROM"):
                self._parse_connector(node)
            elif not self._parse_payload(node) and not self._parse_time_clause(node):
                self._refuse_with()
                self._refuse_constraints()
                self.raise_error(
                    "expected TIMESTAMP, SOURCE BY, HEARTBEAT, DISORDER, LATENCY, LATE, FUTURE, FROM or VALUE AS"
                )
        return node

    def _parse_create_relation(self) -> Any:
        name = self._parse_name()
        if self._match_text_seq("AS"):
            return self.expression(CreateView(this=name, query=self._parse_query(), kind="RELATION"))
        columns = self._parse_wrapped(lambda: self._parse_csv(self._parse_ordered_column))
        node = self.expression(CreateRelation(this=name, columns=columns))
        while self._curr:
            if self._match_text_seq("TIMESTAMP", "BY"):
                node.set("timestamp", self._parse_name())
            elif self._match_text_seq("CHANGE", "BY"):
                node.set("change", self._parse_name())
            elif self._match_text_seq("KEY"):
                node.set("key", self._parse_wrapped_id_vars() if self._at(TokenType.L_PAREN) else [self._parse_name()])
            elif self._match_text_seq("FROM"):
                self._parse_connector(node)
            elif not self._parse_payload(node):
                self._refuse_with()
                self._refuse_constraints()
                self.raise_error("expected KEY, TIMESTAMP BY, CHANGE BY, FROM or VALUE AS")
        return node

    def _refuse_with(self) -> None:
        if self._at_word("WITH"):
            self._foreign(
                "WITH ('connector' = ...)",
                "Write FROM kafka OPTIONS ('subscribe' = 'topic', ...), or another connector.",
            )
        if self._at_word("PARTITIONED", "USING", "STORED"):
            self._foreign(f"{self._curr.text.upper()} of a table", "Write FROM parquet OPTIONS ('path' = 'folder').")

    def _refuse_constraints(self) -> None:
        """What other systems write among the columns of a table, or behind them."""
        if self._at_word("WATERMARK") and self._next.text.upper() == "FOR":
            tokens = self._tokens[self._index :]
            column = tokens[2].text if len(tokens) > 2 else "at"
            behind = [token for token in tokens[3:12] if token.token_type in (TokenType.STRING, TokenType.NUMBER)]
            units = [token.text for token in tokens[3:14] if token.text.upper().removesuffix("S") in UNITS]
            length = f"{behind[0].text} {units[0].upper().removesuffix('S')}S" if behind and units else "0 SECONDS"
            self._foreign("WATERMARK FOR", foreign.DISORDERED.format(column=column, length=length))
        if self._at(TokenType.PRIMARY_KEY):
            self._foreign(
                "PRIMARY KEY", "CREATE RELATION r (...) KEY (k): a row that is pushed replaces the one with its key."
            )

    def _parse_column_definition(self) -> exp.ColumnDef:
        self._refuse_constraints()
        name = self._parse_id_var()
        if name is None:
            self.raise_error("expected a column name")
        token = self._curr
        kind = self._parse_types(allow_identifiers=False)
        if kind is None:
            known = sorted({word for word in self.dialect.tokenizer_class.KEYWORDS if word.isalpha()})
            hint = nearest(token.text, known) if token and token.text.upper() not in known else ""
            self.raise_error(f'unknown type "{token.text if token else ""}" of column "{name.name}". {hint}'.strip())
        kind.meta.update(start=token.start, end=self._prev.end + 1)
        return self.expression(exp.ColumnDef(this=name, kind=kind))

    def _parse_ordered_column(self) -> exp.ColumnDef:
        column = self._parse_column_definition()
        if self._match_texts(("INCREASING", "DECREASING")):
            column.set("order", self._prev.text.lower())
            column.meta["order"] = (self._prev.start, self._prev.end + 1)
        return column

    def _parse_create_view(self) -> CreateView:
        name = self._parse_name()
        wrapped = self._at(TokenType.L_PAREN)
        columns = self._parse_wrapped(lambda: self._parse_csv(self._parse_view_column)) if wrapped else None
        if not self._match_text_seq("AS"):
            self.raise_error("expected AS")
        return self.expression(CreateView(this=name, columns=columns, query=self._parse_query()))

    def _parse_view_column(self) -> exp.Expression:
        """A name, or a name and a type: `(a INTEGER, b)`."""
        behind = self._next.token_type if self._next else None
        return self._parse_name() if behind in (TokenType.COMMA, TokenType.R_PAREN) else self._parse_column_definition()

    def _parse_create_query(self) -> CreateQuery:
        name = self._parse_name()
        from_beginning = self._match_text_seq("FROM", "BEGINNING")
        if not self._match_text_seq("AS"):
            self.raise_error("expected AS")
        node = self.expression(CreateQuery(this=name, from_beginning=from_beginning, query=self._parse_query()))
        if self._match_text_seq("INTO"):
            self._parse_connector(node)
        return node

    def _parse_create_function(self) -> CreateFunction:
        name = self._parse_name()
        parameters = self._parse_wrapped(lambda: self._parse_csv(self._parse_column_definition))
        if self._match_text_seq("RETURNS") and self._parse_types(allow_identifiers=False) is None:
            self.raise_error("expected a type after RETURNS")
        if not self._match_text_seq("RETURN"):
            self.raise_error("expected RETURN and an expression")
        return self.expression(CreateFunction(this=name, parameters=parameters, body=self._parse_expression()))

    def _parse_into(self) -> None:
        """INTO belongs to CREATE QUERY, not to the select inside."""

    def _parse_connector(self, node: exp.Expression) -> None:
        node.set("format", self._parse_name())
        if self._match_text_seq("OPTIONS"):
            node.set("options", self._parse_wrapped(lambda: self._parse_csv(self._parse_option)))

    def _parse_payload(self, node: exp.Expression) -> bool:
        """`VALUE AS json OPTIONS (...)`; whether it stands here."""
        if not self._match_text_seq("VALUE"):
            return False
        self._expect("AS")
        node.set("payload", self._parse_name())
        if self._match_text_seq("OPTIONS"):
            node.set("payload_options", self._parse_wrapped(lambda: self._parse_csv(self._parse_option)))
        return True

    def _parse_option(self) -> exp.Tuple:
        if not self._match_set((TokenType.STRING, TokenType.VAR)):
            self.raise_error("expected 'option' = 'value'")
        key = _placed(self._prev)
        if not self._match(TokenType.EQ):
            self.raise_error("expected = after the option's name")
        if not self._curr or self._curr.token_type in (TokenType.COMMA, TokenType.R_PAREN):
            self.raise_error(f'option "{key.name}" has no value')
        self._advance()
        return exp.Tuple(expressions=[key, _placed(self._prev)])

    def _parse_set_option(self) -> SetOption:
        name = self._parse_name()
        if not self._match(TokenType.EQ):
            self.raise_error("expected = after the setting's name")
        if not self._curr:
            self.raise_error("expected a value")
        self._advance()
        return self.expression(SetOption(this=name, value=self._prev.text))


class Cql(Spark):
    """Registered with sqlglot under the name `cql`."""

    class Tokenizer(Spark.Tokenizer):
        # What sqlglot leaves unparsed as a command is a statement of ours.
        KEYWORDS = {**Spark.Tokenizer.KEYWORDS, "EXPLAIN": TokenType.VAR, "SHOW": TokenType.VAR}

    TYPED_DIVISION = True  # int / int is int, as in SQL and in CQL

    Parser = CqlParser


MOST_NESTED = 200
"""How deep parentheses and operators may be nested. Spark's own parser overflows its stack at about twice as many."""

MOST_NESTED_TYPES = 12

ROOM = 20_000
"""How many calls deep Python may go while a text is read and bound. A level of nesting takes some dozens."""


@contextmanager
def deep_texts() -> Iterator[None]:
    """Let texts be nested as deep as they are allowed to be, whatever limit the program around has set."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, ROOM))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def too_deep(place: Place, most: int = MOST_NESTED) -> UserError:
    return UserError(
        "too-deep",
        f"this is nested more than {most} deep",
        place=place,
        detail="Parentheses count, and each operator of a chain such as a + b + c; AND, OR and || count once, "
        "however many.",
        hint="Cut it into views, or write IN (...) or a list: AGGREGATE(ARRAY(a, b, c), 0, (sum, x) -> sum + x).",
    )


def parse(text: str, origin: str = "") -> list[exp.Expression]:
    """The statements of a script, each with its span of the text in `meta`."""
    dialect = Cql()
    with deep_texts():
        return [_parsed(chunk, dialect, text, origin) for chunk in _chunks(text, origin)]


def spans(text: str, origin: str = "") -> list[Place]:
    """Where the statements of a script stand, whatever they say."""
    return [Place(text, chunk[0].start, chunk[-1].end + 1, origin) for chunk in _chunks(text, origin)]


def _chunks(text: str, origin: str) -> list[list[Token]]:
    try:
        return _statements(with_strings(Cql().tokenize(text), text))
    except TokenError:
        start = _open_quote(text)
        if text[start] == "`" and "'" in text[start:]:
            raise _typographic(text, start, origin) from None
        raise UserError(
            "syntax", "a quote or comment is not closed", place=Place(text, start, start + 1, origin)
        ) from None


def _parsed(chunk: list[Token], dialect: Cql, text: str, origin: str) -> exp.Expression:
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
    if depth(tree) > MOST_NESTED:
        raise too_deep(place)
    tree.meta.update(start=chunk[0].start, end=chunk[-1].end + 1)
    return tree


def _refuse_nested(chunk: list[Token], text: str, origin: str) -> None:
    """Refuse what is nested too deep before anything walks down into it. `ARRAY<` opens, too: sqlglot tries types many
    times.
    """
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
    """`GROUP BY WINDOW(at, ...)` and `WINDOW TUMBLING (SIZE ...)`: sqlglot would take both for named windows."""
    for token, following, third in zip(chunk, chunk[1:], chunk[2:], strict=False):
        if token.token_type != TokenType.WINDOW:
            continue
        named = following.text.upper() if third.token_type == TokenType.L_PAREN else ""
        if following.token_type == TokenType.L_PAREN or named in foreign.FUNCTIONS:
            what, hint = foreign.FUNCTIONS[named or "WINDOW"]
            raise UserError("foreign-construct", what, place=Place(text, token.start, token.end + 1, origin), hint=hint)


def _typographic(text: str, start: int, origin: str) -> UserError:
    place = Place(text, start, text.index("'", start) + 1, origin)
    return UserError(
        "foreign-construct", "typographic quotes", place=place, hint="Write 'text' between straight quotes."
    )


def _open_quote(text: str) -> int:
    """Where the quote or comment begins that has no end."""
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


def _placed(token: Token) -> exp.Literal:
    """An option's name or value that knows where it stands."""
    literal = exp.Literal.string(token.text)
    literal.meta.update(start=token.start, end=token.end + 1)
    return literal


def _statements(tokens: list[Token]) -> list[list[Token]]:
    chunks: list[list[Token]] = [[]]
    for token in _count_distinct(tokens):
        if token.token_type == TokenType.SEMICOLON:
            chunks.append([])
        else:
            chunks[-1].append(token)
    return [chunk for chunk in chunks if chunk]


def _count_distinct(tokens: list[Token]) -> list[Token]:
    """`COUNT DISTINCT (x)`, as the Linear Road queries write it, as `COUNT(DISTINCT x)`."""
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
    first = error.errors[0]
    typographic = TYPOGRAPHIC.search(text, chunk[0].start, chunk[-1].end + 1)
    if typographic is not None:
        return _typographic(text, typographic.start(), origin)
    message = str(first["description"] or "syntax error")
    if not message.split(" ")[0].isupper():
        message = message[0].lower() + message[1:]
    if message.startswith(FOREIGN):
        message, _, instead = message.partition(". ")
        message = message.removeprefix(FOREIGN)
        start = max(0, _offset(text, first) - len(str(first["highlight"] or "")))
        place = Place(text, start, max(_offset(text, first), start + 1), origin)
        return UserError("foreign-construct", message, place=place, hint=instead)
    message, _, hint = message.partition(". Did you")
    word = str(first["highlight"] or "")
    if message.startswith("invalid expression"):
        message = f'unexpected "{word}"'
    message = TOKEN.sub(r"\1", message).replace(" but got SENTINEL", "")
    if missing := ARGUMENT.fullmatch(message):
        message = f'the argument "{missing[1]}" is missing'
    end = _offset(text, first)
    start = max(end - (first["col"] or 0), end - len(word))
    said_all = message.startswith(("EVERY ", "EMIT ", "expected STREAM")) or message.endswith("stands twice")
    if not hint and word.isalpha() and not said_all:
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
    if not hint and before.isalpha() and not said_all:  # the word before may be the one that is misspelt
        close = nearest(before, ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "UNION"))
        hint = close.removeprefix("Did you") if close and before.upper() not in close else ""
    place = Place(text, start, max(end, start + 1), origin)
    return UserError("syntax", message, place=place, hint=f"Did you{hint}" if hint else "")


def _offset(text: str, error: dict[str, Any]) -> int:
    """Where in the text the place ends that sqlglot gives by line and column."""
    return sum(len(part) + 1 for part in text.split("\n")[: (error["line"] or 1) - 1]) + (error["col"] or 0)
