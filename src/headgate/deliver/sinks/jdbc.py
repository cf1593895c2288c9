"""Results into a table of a database: every change, or the current row of each key, or all current rows.

Spark writes the rows of a delivery into a staging table. One transaction then merges them into the target and notes the
number of the delivery, so that both count or neither does:

    headgate_deliveries    target    query     writer     number    complete
                           alerts    alerts    5f3a...    12        2026-11-01T12:00:05+00:00

Transactions go through the same Java connections that Spark's writer uses: any database that Spark has a driver for
will do, and there is one way to say where it is and who one is. PostgreSQL merges by ON CONFLICT; in others the old
rows go and the new come.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headgate.catalog import sinks
from headgate.catalog.entries import Connector
from headgate.deliver.sinks import shape
from headgate.deliver.sinks.sink import Delivery
from headgate.deliver.sinks.writer import identity, known, owned_by_another
from headgate.errors import UserError, quoted
from headgate.spark.failures import reason_of, sentence
from headgate.spark.session import own_session
from headgate.spark.statements import selected
from headgate.sql import ALL, Sql, name
from headgate.sql.database import quoted_column, said
from headgate.sql.database import table as table_name

DRIVERS = {
    "postgresql": "org.postgresql.Driver",
    "mysql": "com.mysql.cj.jdbc.Driver",
    "mariadb": "org.mariadb.jdbc.Driver",
    "sqlserver": "com.microsoft.sqlserver.jdbc.SQLServerDriver",
    "oracle": "oracle.jdbc.OracleDriver",
    "db2": "com.ibm.db2.jcc.DB2Driver",
    "h2": "org.h2.Driver",
    "derby": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
}
"""The classes of drivers. Java finds one by itself only if it was there when the JVM started."""


QUOTES = set('"`[]\\\0')
"""What databases write names between."""


class JdbcSink:
    """Merges each delivery into a table of a database, in one transaction with the delivery's number."""

    guarantee = sinks.SINKS["jdbc"].guarantee
    wants_empty = True

    def __init__(self, query: str, connector: Connector, session: SparkSession, directory: Path) -> None:
        self.query = query
        self.connector = connector
        self.session = own_session(session)
        self.key = sinks.key(connector)
        self.mode = sinks.mode(connector)
        self.database = Database(self.session, connector)
        if self.mode == "current" and not self.key and not self.database.is_postgres:
            raise UserError(
                "bad-option",
                "current rows without a key can be kept in PostgreSQL only",
                detail="Other databases offer no common way to delete one of several equal rows.",
                hint="'key' = 'column, ...'",
            )
        self.target = table_name(connector.options["dbtable"])
        schema, dot, _ = self.target.rpartition(".")
        self.deliveries = table_name(f"{schema}{dot}headgate_deliveries")
        restarted = known(directory)
        self.writer = identity(directory)
        self.stages = f"headgate_stage_{self.writer[:16]}_"
        self.stage = table_name(f"{schema}{dot}{self.stages}{uuid.uuid4().hex[:8]}")
        """The staging table, another one in each run: executors of a run that died may still write to theirs."""

        self._last: int | None = None
        if not restarted:  # after a restart the database may be down: then it is waited for
            try:
                self._open()
            except UserError:
                (directory / "writer").unlink()
                raise

    def delivered(self) -> int | None:
        """The number that the database has for this target."""
        if self._last is None:
            self._open()
        return self._last

    def deliver(self, delivery: Delivery) -> None:
        """Write the rows into the staging table, and merge them in one transaction with their number."""
        if self._last is None:
            self._open()
        if self._last is not None and delivery.number <= self._last:
            return
        try:
            self._deliver(delivery)
        except Exception as error:
            # perhaps only the answer was lost and not the transaction: the database is asked before the next attempt
            self._last = None
            raise self.database.translated(error, self.target) from error
        self._last = delivery.number

    def close(self) -> None:
        """Take the staging table away. A database that is down keeps it until the next start."""
        with suppress(Exception), self.database.transaction() as run:
            if run.exists(self.stage):
                run(f"DROP TABLE {self.stage}")

    def _open(self) -> None:
        """Find out what arrived, or put our name on the target, unless another's is on it; drop what earlier runs
        staged.
        """
        try:
            with self.database.transaction() as run:
                if not run.exists(self.deliveries):
                    run(
                        f"CREATE TABLE {self.deliveries} (target VARCHAR(250) NOT NULL PRIMARY KEY, "
                        "query VARCHAR(250) NOT NULL, writer VARCHAR(32) NOT NULL, number BIGINT NOT NULL, "
                        "complete VARCHAR(64))"
                    )
            with self.database.transaction() as run:
                self._last = self._claimed(run)
                schema, dot, _ = self.stage.rpartition(".")
                for table in run.tables(self.stages):
                    run(f"DROP TABLE {table_name(f'{schema}{dot}{table}')}")
        except Exception as error:
            raise self.database.translated(error, self.target) from error

    def _claimed(self, run: Transaction) -> int:
        row = run.row(f"SELECT writer, number, query FROM {self.deliveries} WHERE target = ?", self.target)
        if row is not None and row[0] == self.writer:
            return int(row[1])
        existing = self.connector.options.get("existing", "refuse")
        filled = run.exists(self.target) and run.row(f"SELECT 1 FROM {self.target}") is not None
        if existing == "refuse" and row is not None and row[1]:  # who has delivered nothing has no claim
            raise owned_by_another(f'table "{self.target}"', row[2])
        if existing == "refuse" and filled and self.mode == "current":
            raise UserError(
                "sink-taken",
                f'table "{self.target}" holds rows that are not of query "{self.query}"',
                detail="It is to hold the current rows of the query and nothing else.",
                hint="Choose another table, or say 'existing' = 'replace' to do away with them.",
            )
        if existing == "replace" and filled:
            run(f"DELETE FROM {self.target}")
        last = int(row[1]) if row is not None and existing == "append" else 0
        run(f"DELETE FROM {self.deliveries} WHERE target = ?", self.target)
        run(f"INSERT INTO {self.deliveries} VALUES (?, ?, ?, {last}, NULL)", self.target, self.query, self.writer)
        return last

    def _deliver(self, delivery: Delivery) -> None:
        frame = self.staged(delivery)
        with self.database.transaction() as run:
            self.merge(run, frame, delivery)

    def staged(self, delivery: Delivery) -> DataFrame | None:
        """Write the rows of a delivery into the staging table; what was written, or None if it has no rows."""
        frame = self._shaped(delivery) if delivery.rows else None
        if frame is not None:
            self._write(frame)
        return frame

    def merge(self, run: Transaction, frame: DataFrame | None, delivery: Delivery) -> None:
        """Merge what was staged into the target and note the number of the delivery, as a part of a transaction."""
        if frame is not None:
            self._merge(run, frame, delivery)
        changed = run(
            f"UPDATE {self.deliveries} SET number = {delivery.number}, complete = ? "
            f"WHERE target = ? AND writer = ? AND number < {delivery.number}",
            _text(delivery.complete),
            self.target,
            self.writer,
        )
        if not changed:
            raise owned_by_another(f'table "{self.target}"', "another")

    def noted(self, number: int | None) -> None:
        """Take the last delivery that the database has; None: it is asked before the next attempt."""
        self._last = number

    def _shaped(self, delivery: Delivery) -> DataFrame:
        """The rows to merge, each with a number of its own, `_row`."""
        width = -(-delivery.rows // shape.PART_ROWS)
        self.session.conf.set("spark.sql.shuffle.partitions", str(width))
        frame = shape.changes(self.session, delivery)
        if self.mode == "changes":
            frame = shape.ordered(frame, delivery.rows)
        elif self.key:
            frame = shape.known_keys(shape.upserts(frame, self.key), self.key).drop("_time")
        else:
            frame = selected(
                shape.repeated(shape.netted(None, frame)), ALL, Sql("IF(_n > 0, '+', '-') AS _change")
            ).drop("_n")
        frame = shape.labelled(frame, delivery, self.connector)
        _check_columns(frame.columns, self.target)
        return selected(frame, ALL, Sql("MONOTONICALLY_INCREASING_ID() AS _row"))

    def _write(self, frame: DataFrame) -> None:
        options = {**self.database.options, "dbtable": self.stage, "truncate": "true"}
        if types := self.database.types(frame):
            options["createTableColumnTypes"] = types
        frame.write.format("jdbc").options(**options).mode("overwrite").save()

    def _merge(self, run: Transaction, frame: DataFrame, delivery: Delivery) -> None:
        plain = self.mode == "changes"
        columns = [
            column for column in frame.columns if column not in (("_row",) if plain else ("_row", "_change", "_copy"))
        ]
        if not run.exists(self.target):
            run.create(self.target, frame.select(*map(name, columns)))
            if self.key:
                run(
                    f"CREATE UNIQUE INDEX {run.quote('by_key_' + self.writer[:16])} ON {self.target} "
                    f"({run.listed(self.key)})"
                )
        rows, distinct = run.row(f"SELECT COUNT(*), COUNT(DISTINCT {run.quote('_row')}) FROM {self.stage}")  # type: ignore[misc]
        if rows != distinct or (plain and rows != delivery.rows):
            raise UserError(
                "sink-failed",
                f'table "{self.stage}" holds {rows} rows, {distinct} of them different, instead of the delivery',
                detail="A task that Spark ran twice may have written twice; the delivery is staged anew.",
            )
        for statement in self._statements(run, columns):
            run(statement)

    def _statements(self, run: Transaction, columns: Sequence[str]) -> list[Sql]:
        listed, change = run.listed(columns), run.quote("_change")
        insert = f"INSERT INTO {self.target} ({listed}) SELECT {listed} FROM {self.stage}"
        if self.mode == "changes":
            return [f"{insert} ORDER BY {run.quote('_row')}"]
        if not self.key:
            told_apart = run.listed([column for column in columns if column != shape.REFLECTS])
            return [self._delete_copies(run, told_apart), f"{insert} WHERE {change} = '+'"]
        same = " AND ".join(f"s.{run.quote(column)} = t.{run.quote(column)}" for column in self.key)
        delete = f"DELETE FROM {self.target} AS t WHERE EXISTS (SELECT 1 FROM {self.stage} AS s WHERE {same}"
        if not self.database.is_postgres:
            return [f"{delete})", f"{insert} WHERE {change} = '+'"]
        others = [run.quote(column) for column in columns if column not in self.key]
        changed = ", ".join(f"{column} = EXCLUDED.{column}" for column in others)
        update = f"UPDATE SET {changed}" if others else Sql("NOTHING")
        return [
            f"{delete} AND s.{change} = '-')",
            f"{insert} WHERE {change} = '+' ON CONFLICT ({run.listed(self.key)}) DO {update}",
        ]

    def _delete_copies(self, run: Transaction, listed: Sql) -> Sql:
        """As many of several equal rows as left: PostgreSQL tells them apart by where they are.

        Compared as whole rows, nulls are equal to each other.
        """
        copy, change = run.quote("_copy"), run.quote("_change")
        return (
            f"DELETE FROM {self.target} WHERE ctid IN (SELECT t.at FROM "
            f"(SELECT ctid AS at, ROW({listed}) AS r, ROW_NUMBER() OVER (PARTITION BY {listed}) AS n "
            f"FROM {self.target}) AS t "
            f"JOIN (SELECT ROW({listed}) AS r, {copy} AS n FROM {self.stage} WHERE {change} = '-') AS s "
            "ON t.r = s.r AND t.n = s.n)"
        )


def _check_columns(columns: Sequence[str], target: str) -> None:
    """Refuse names of columns that end the quotes around them: Spark writes them into its statements as they are."""
    wrong = [column for column in columns if QUOTES & set(column)]
    if wrong:
        raise UserError(
            "sink-failed",
            f'table "{target}" cannot have columns {quoted(wrong)}',
            detail="There are quotation marks, brackets or backslashes in their names.",
            hint="Name them by AS in the query.",
        )


def _text(instant: Any) -> str | None:
    return instant.isoformat() if isinstance(instant, datetime) else None if instant is None else str(instant)


class Database:
    """Where a database is, and transactions on it, through the Java connections that Spark's writer uses."""

    def __init__(self, session: SparkSession, connector: Connector) -> None:
        url = connector.options["url"]
        kind = url.split(":")[1].lower()
        own_options = ("deliver", "key", "existing", "flush_rows", "reflects", "partial")
        self.options = {name: value for name, value in connector.options.items() if name not in own_options}
        if kind in DRIVERS:
            self.options.setdefault("driver", DRIVERS[kind])
        self.is_postgres = kind == "postgresql"
        self.url = url
        self.session = session
        jvm: Any = session._jvm
        self.jvm = jvm
        self.packages = jvm.org.apache.spark.sql
        try:
            given = jvm.PythonUtils.toScalaMap(self.options)
            self.settings = self.packages.execution.datasources.jdbc.JdbcOptionsInWrite(given)
            self.dialect = self.packages.jdbc.JdbcDialects.get(url)
            self.connections = self.dialect.createConnectionFactory(self.settings)
        except Exception as error:
            raise self.translated(error, connector.options["dbtable"]) from error

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """All that is run in it counts, or nothing if an exception leaves it."""
        connection = self.connections.apply(-1)
        try:
            connection.setAutoCommit(False)
            yield Transaction(self, connection)
            connection.commit()
        except BaseException:
            with suppress(Exception):
                connection.rollback()
            raise
        finally:
            with suppress(Exception):
                connection.close()

    def types(self, frame: DataFrame) -> str:
        """The types of columns that the user gave, and a short text for `_change`: some databases cannot compare long
        ones.
        """
        given = [self.options["createTableColumnTypes"]] if "createTableColumnTypes" in self.options else []
        return ", ".join([*given, *(["_change VARCHAR(1)"] if "_change" in frame.columns else [])])

    def translated(self, error: Exception, target: str) -> UserError:
        """An error of the database or its driver as one of ours."""
        if isinstance(error, UserError):
            return error
        cause = reason_of(error)
        if any(
            missing in cause
            for missing in ("ClassNotFoundException", "No suitable driver", "did not find registered driver")
        ):
            return UserError(
                "no-connector",
                f'Spark\'s session has no driver for "{self.url.partition("?")[0]}"',
                hint="Start Spark with the package of the driver, such as org.postgresql:postgresql, "
                "and name its class by 'driver' if it is not a common one.",
            )
        return UserError("sink-failed", f'table "{target}" cannot be written', detail=sentence(error))


class Transaction:
    """Statements on one connection, in one transaction."""

    def __init__(self, database: Database, connection: Any) -> None:
        self.database = database
        self.connection = connection

    def __call__(self, sql: Sql, *values: str | None) -> int:
        """Run a statement; how many rows it changed."""
        with self._prepared(sql, values) as statement:
            return int(statement.executeUpdate())

    def row(self, sql: Sql, *values: str | None) -> list[Any] | None:
        """The first row of a query's answer; None if it has none."""
        with self._prepared(sql, values) as statement:
            statement.setMaxRows(1)
            answer = statement.executeQuery()
            if not answer.next():
                return None
            return [answer.getObject(position + 1) for position in range(answer.getMetaData().getColumnCount())]

    @contextmanager
    def _prepared(self, sql: Sql, values: Sequence[str | None]) -> Iterator[Any]:
        statement = self.connection.prepareStatement(sql)
        try:
            for position, value in enumerate(values):
                statement.setString(position + 1, value)
            yield statement
        finally:
            statement.close()

    def exists(self, table: str) -> bool:
        """True if the database lists the table.

        Asking for a row of a table that is not there would end a transaction in PostgreSQL.
        """
        schema, _, name = table.rpartition(".")
        return bool(self._listed(schema or None, name))

    def tables(self, beginning: str) -> list[str]:
        """The tables whose names begin so."""
        return self._listed(None, f"{beginning}%")

    def _listed(self, schema: str | None, pattern: str) -> list[str]:
        about = self.connection.getMetaData()
        fold = str.upper if about.storesUpperCaseIdentifiers() else str.lower
        schema = schema or self.connection.getSchema()
        found = []
        for spelled in dict.fromkeys((pattern, fold(pattern))):
            answer = about.getTables(None, schema and fold(schema), spelled.strip('"'), None)
            while answer.next():
                found.append(answer.getString("TABLE_NAME"))
        return found

    def create(self, table: Sql, frame: DataFrame) -> None:
        """Make a table for the columns of a frame, with the types that Spark has for this database."""
        database = self.database
        types = database.jvm.scala.Option.apply(database.types(frame) or None)
        utils = database.packages.execution.datasources.jdbc.JdbcUtils
        columns = utils.schemaString(database.dialect, frame._jdf.schema(), False, types)
        options = said(database.options.get("createTableOptions", ""))
        self(f"CREATE TABLE {table} ({said(columns)}) {options}")

    def quote(self, column: str) -> Sql:
        """A column's name as this database quotes it."""
        return quoted_column(str(self.database.dialect.quoteIdentifier(column)))

    def listed(self, columns: Sequence[str]) -> Sql:
        """Columns' names, quoted, with commas between them."""
        return ", ".join(map(self.quote, columns))
