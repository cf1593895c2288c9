"""The grammar of statements: CREATE, REGISTER, DROP, ALTER, SHOW, SET, EXPLAIN, WHY, SNAPSHOT, and labels of queries.

`dialect` builds on it and adds the grammar of queries, which a statement reaches through `_parse_query`.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from headgate.cql import foreign
from headgate.cql.syntax import (
    Alter,
    CreateConstraint,
    CreateFunction,
    CreateGroup,
    CreateQuery,
    CreateRelation,
    CreateStream,
    CreateView,
    Drop,
    Explain,
    NamePendingView,
    PendingView,
    SetOption,
    SetParameter,
    Show,
    Snapshot,
    TakeBack,
    Why,
)
from headgate.cql.time_grammar import TIME_STATEMENTS, UNITS, TimeParser
from headgate.errors import nearest

FOREIGN = "foreign construct: "
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
    "SNAPSHOT",
    "CONSTRAINT",
    "REGISTER",
    "ISTREAM",
    "DSTREAM",
    "RSTREAM",
    "WITH",
)
KINDS = ("STREAM", "RELATION", "VIEW", "QUERY", "GROUP", "FUNCTION", "CONSTRAINT")
LISTED = (
    "STREAMS",
    "SYSTEM STREAMS",
    "RELATIONS",
    "VIEWS",
    "QUERIES",
    "GROUPS",
    "FUNCTIONS",
    "CONSTRAINTS",
    "SETTINGS",
    "BOUNDS",
    "PLAN",
    "PROFILE",
    "PROTOCOLS",
    "PARAMETERS",
    "QUARANTINE",
)
REGISTERED = {exp.DataType.Type.TINYINT: "STRING", exp.DataType.Type.CHAR: "STRING", exp.DataType.Type.FLOAT: "DOUBLE"}


class StatementParser(TimeParser):
    """Parses one statement of CQL; the queries inside it are left to `CqlParser`."""

    labels = 0
    """How many tokens in front of the statement are labels, and no part of it: `table :`, `query :`."""

    def _foreign(self, what: str, hint: str) -> None:
        """Refuse a construct of another dialect, with its name and what to write instead."""
        self.raise_error(f"{FOREIGN}{what}. {hint}")

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
            members = self._parse_for_each() if self._at_word("FOR") else None
            if members is not None:
                self._expect("AS")
            return self.expression(Explain(this=self._parse_whole_query(), members=members))
        if self._at_statement("WHY"):
            self._advance()
            return self.expression(Why(this=self._parse_name()))
        if self._at_statement("SNAPSHOT"):
            self._advance()
            early = self._at_word("EARLY") and self._next is not None and self._next.text not in (",", ";")
            if early:
                self._advance()
            return self.expression(Snapshot(expressions=self._parse_csv(self._parse_name), early=early))
        if self._at_statement("CONSTRAINT"):
            self._advance()
            return self._parse_constraint()
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
        return self._parse_whole_query()

    def _parse_definition(self) -> Any:
        for word, parse in (
            ("STREAM", self._parse_create_stream),
            ("RELATION", self._parse_create_relation),
            ("VIEW", self._parse_create_view),
            ("QUERY", self._parse_create_query),
            ("QUERIES", self._parse_create_queries),
            ("GROUP", self._parse_create_group),
            ("FUNCTION", self._parse_create_function),
            ("CONSTRAINT", self._parse_constraint),
        ):
            if self._match_text_seq(word):
                return parse()
        if self._curr and self._curr.text.upper() in foreign.CREATED:
            self._foreign(*foreign.CREATED[self._curr.text.upper()])
        self._misspelt(
            "expected STREAM, RELATION, VIEW, QUERY, QUERIES, GROUP, FUNCTION or CONSTRAINT after CREATE",
            (*KINDS, "QUERIES"),
        )
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
        """`Name: query` and `Name(a, b): query`, and labels of Stanford's scripts: `table :`, `vquery :`."""
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
                self.labels = self._index
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
                if any(column.args.get("check") for column in registered.args["columns"]):
                    self.raise_error("a CHECK belongs to what comes in, and not to the answer of a query")
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
            if self._match_text_seq(kind) or (kind == "QUERY" and self._match_text_seq("QUERIES")):
                if_exists = bool(self._match_text_seq("IF", "EXISTS"))
                return self.expression(Drop(this=self._parse_name(), kind=kind, if_exists=if_exists))
        known = (*KINDS, *TIME_STATEMENTS)
        self._misspelt(
            "expected STREAM, RELATION, VIEW, QUERY, GROUP, FUNCTION, CONSTRAINT or a declaration such as DISORDER OF "
            "after DROP",
            known,
        )
        raise AssertionError

    def _parse_alter_statement(self) -> Alter | SetParameter:
        if self._match_text_seq("QUERY"):
            if self._next and self._next.text.upper() == "SET":
                return self._parse_set_parameter()
            return self.expression(Alter(this=self._parse_create_query()))
        if self._match_text_seq("QUERIES"):
            return self.expression(Alter(this=self._parse_create_queries()))
        if self._match_text_seq("VIEW"):
            return self.expression(Alter(this=self._parse_create_view()))
        if self._match_text_seq("STREAM"):
            name = self._parse_name()
            if not self._match_text_seq("ADD", "COLUMN"):
                self.raise_error("expected ADD COLUMN and the column's name and type")
            return self.expression(Alter(this=name, column=self._parse_ordered_column()))
        self.raise_error("expected QUERY, QUERIES, VIEW or STREAM after ALTER")
        raise AssertionError

    def _parse_set_parameter(self) -> SetParameter:
        """`q SET name = value [FROM instant]`, behind ALTER QUERY."""
        name = self._parse_name()
        self._expect("SET")
        parameter = self._parse_name()
        if not self._match(TokenType.EQ) or not self._curr:
            self.raise_error("expected = and the value of the parameter")
        value, since = self._parse_unary(), None
        if self._match_text_seq("FROM"):
            since = self._parse_unary()
            if since is None:
                self.raise_error("expected an instant")
        return self.expression(SetParameter(this=name, parameter=parameter, value=value, since=since))

    def _parse_show_statement(self) -> Show:
        for kind in LISTED:
            if self._match_text_seq(*kind.split()):
                of = self._parse_name() if kind == "PROFILE" and self._match_text_seq("FOR") else None
                return self.expression(Show(kind=kind, of=of))
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
        """Refuse what other systems write among the columns of a table or behind them, such as WATERMARK FOR."""
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
        if self._match_text_seq("CHECK"):
            opening = self._prev
            column.set("check", self._since(opening, exp.Paren(this=self._parse_wrapped(self._parse_disjunction))))
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
        if self._at_word("FOR"):
            self.raise_error("FOR EACH ROW OF belongs to CREATE QUERIES, which makes a query for each row")
        if not self._match_text_seq("AS"):
            self.raise_error("expected AS")
        node = self.expression(CreateQuery(this=name, from_beginning=from_beginning, query=self._parse_whole_query()))
        if self._match_text_seq("INTO"):
            self._parse_connector(node)
        return node

    def _parse_create_queries(self) -> CreateQuery:
        """`CREATE QUERIES q FOR EACH ROW OF r [FROM BEGINNING] [INTO ...] AS query [INTO ...]`."""
        node = CreateQuery(this=self._parse_name(), members=self._parse_for_each())
        node.set("from_beginning", self._match_text_seq("FROM", "BEGINNING"))
        if self._match_text_seq("INTO"):
            self._parse_connector(node)
        if not self._match_text_seq("AS"):
            self.raise_error("expected AS")
        node.set("query", self._parse_whole_query())
        if self._at_word("INTO") and node.args.get("format"):
            self.raise_error("INTO stands twice")
        if self._match_text_seq("INTO"):
            self._parse_connector(node)
        return self.expression(node)

    def _parse_for_each(self) -> exp.Identifier:
        """`FOR EACH ROW OF r`: the name of the relation whose rows are the members of a family."""
        if not self._match_text_seq("FOR", "EACH", "ROW", "OF"):
            self.raise_error("expected FOR EACH ROW OF and the name of a relation")
        return self._parse_name()

    def _parse_create_group(self) -> CreateGroup:
        """`CREATE GROUP g OF a, b [INTO ...]`."""
        name = self._parse_name()
        self._expect("OF")
        node = self.expression(CreateGroup(this=name, expressions=self._parse_csv(self._parse_name)))
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
        """Leave INTO alone: it belongs to CREATE QUERY, not to the select inside."""

    def _parse_constraint(self) -> CreateConstraint:
        name = self._parse_name()
        self._expect("ON")
        stream, other, other_column = self._parse_name(), None, None
        if self._match_text_seq("CLUSTERED"):
            kind, column = "clustered", self._parse_by()
        elif self._match_text_seq("ORDERED"):
            kind, column = "ordered", self._parse_by()
        elif self._at(TokenType.L_PAREN):
            kind, column = "references", self._parse_wrapped(self._parse_name)
            self._expect("REFERENCES")
            other = self._parse_name()
            other_column = self._parse_wrapped(self._parse_name)
        else:
            self._misspelt(
                "expected CLUSTERED BY, ORDERED BY or (column) REFERENCES after the stream",
                ("CLUSTERED", "ORDERED", "REFERENCES"),
            )
        detected, within, confidence, policy = self._parse_marked("DETECTED"), None, None, None
        if not self._match_text_seq("WITHIN"):
            if detected is None:
                self._misspelt("expected WITHIN or DETECTED", ("WITHIN", "DETECTED"))
        else:
            within = self._parse_signed("expected the number of tuples")
            if not self._match_texts(("TUPLES", "TUPLE")):
                self.raise_error("expected TUPLES")
        if self._at_word("CONFIDENCE") and detected is None:
            self.raise_error("CONFIDENCE is said of a k that is DETECTED")
        if self._match_text_seq("CONFIDENCE"):
            confidence = self._parse_signed("expected a number between 0 and 1 after CONFIDENCE")
        if self._match_text_seq("ON"):
            self._expect("VIOLATION")
            policy = self._parse_marked("COUNT", "FAIL")
            if policy is None:
                self._misspelt("expected FAIL or COUNT after ON VIOLATION", ("FAIL", "COUNT"))
        return self.expression(
            CreateConstraint(
                this=name,
                kind=kind,
                stream=stream,
                column=column,
                detected=detected,
                within=within,
                confidence=confidence,
                policy=policy,
                other=other,
                other_column=other_column,
            )
        )

    def _parse_marked(self, *words: str) -> exp.Var | None:
        """Parse one of some words, with its place; None if none of them stands here."""
        opening = self._curr
        return self._since(opening, exp.var(opening.text.upper())) if self._match_texts(words) else None

    def _parse_signed(self, missing: str) -> exp.Expression:
        """Parse a number with its sign, and its place."""
        opening = self._curr
        number = self._parse_unary() if opening else None
        if number is None:
            self.raise_error(missing)
        return self._since(opening, number)

    def _parse_by(self) -> exp.Identifier:
        self._expect("BY")
        return self._parse_name()

    def _parse_connector(self, node: exp.Expression) -> None:
        node.set("format", self._parse_name())
        if self._match_text_seq("OPTIONS"):
            node.set("options", self._parse_wrapped(lambda: self._parse_csv(self._parse_option)))

    def _parse_payload(self, node: exp.Expression) -> bool:
        """Parse `VALUE AS json OPTIONS (...)`; says whether it stood here."""
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
        key = _literal_with_place(self._prev)
        if not self._match(TokenType.EQ):
            self.raise_error("expected = after the option's name")
        if not self._curr or self._curr.token_type in (TokenType.COMMA, TokenType.R_PAREN):
            self.raise_error(f'option "{key.name}" has no value')
        self._advance()
        return exp.Tuple(expressions=[key, _literal_with_place(self._prev)])

    def _parse_set_option(self) -> SetOption:
        name = self._parse_name()
        if not self._match(TokenType.EQ):
            self.raise_error("expected = after the setting's name")
        if not self._curr:
            self.raise_error("expected a value")
        self._advance()
        return self.expression(SetOption(this=name, value=self._prev.text))


def _literal_with_place(token: Token) -> exp.Literal:
    """An option's name or value as a literal with its place in the text."""
    literal = exp.Literal.string(token.text)
    literal.meta.update(start=token.start, end=token.end + 1)
    return literal
