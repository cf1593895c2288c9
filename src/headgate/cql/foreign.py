"""Words of other systems that have another form here: what each is, and what to write instead.

People come from Spark SQL, Flink SQL, ksqlDB and Materialize with texts that almost fit. Each such word is refused by
its name, in one line, with the line of CQL that takes its place.
"""

from __future__ import annotations

TUMBLING = (
    "Group by the window's start: SELECT DATE_TRUNC('MINUTE', at) AS minute, COUNT(*) AS n FROM s "
    "GROUP BY DATE_TRUNC('MINUTE', at) EMIT FINAL gives each [start, end) once. "
    "Or write s [RANGE 1 MINUTE SLIDE 1 MINUTE] after SET range = 'half-open', which gives (start, end]; "
    "by default both ends count, so a tuple on a boundary is in two windows."
)
HOPPING = (
    "Write s [RANGE 10 MINUTES SLIDE 1 MINUTE] behind the stream's name in FROM; both ends count unless SET "
    "range = 'half-open'."
)
SESSIONS = (
    "headgate has no windows that end with a pause. A pause can be seen: compare ELEMENT_TIME of consecutive tuples in "
    "[PARTITION BY key ROWS 2]."
)
DISORDERED = (
    "Write TIMESTAMP BY {column} DISORDER {length} behind the columns: headgate's heartbeats take the "
    "watermark's place."
)

FUNCTIONS: dict[str, tuple[str, str]] = {
    "TUMBLE": ("a window by TUMBLE", TUMBLING),
    "TUMBLE_START": ("TUMBLE_START", TUMBLING),
    "TUMBLE_END": ("TUMBLE_END", TUMBLING),
    "HOP": ("a window by HOP", HOPPING),
    "HOP_START": ("HOP_START", HOPPING),
    "HOP_END": ("HOP_END", HOPPING),
    "HOPPING": ("a window by HOPPING", HOPPING),
    "TUMBLING": ("a window by TUMBLING", TUMBLING),
    "CUMULATE": (
        "a window by CUMULATE",
        "Group by DATE_TRUNC('DAY', at) without EMIT FINAL: the answer changes as tuples come.",
    ),
    "SESSION": ("a window by SESSION", SESSIONS),
    "SESSION_WINDOW": ("a window by SESSION_WINDOW", SESSIONS),
    "SESSION_START": ("SESSION_START", SESSIONS),
    "SESSION_END": ("SESSION_END", SESSIONS),
    "WINDOW": ("a window by WINDOW(...)", f"{TUMBLING} With a slide: s [RANGE 10 MINUTES SLIDE 5 MINUTES]."),
    "WINDOW_TIME": ("WINDOW_TIME", TUMBLING),
    "DESCRIPTOR": ("DESCRIPTOR", "TIMESTAMP BY at names the column with the time. A window: s [RANGE 1 MINUTE]."),
    "PROCTIME": (
        "PROCTIME()",
        "CREATE STREAM s (...) TIMESTAMP INTERNAL stamps tuples as they come; ELEMENT_TIME is that time.",
    ),
    "MZ_NOW": ("mz_now()", "Windows say how long a tuple counts: s [RANGE 5 MINUTES]."),
}
"""Functions, by name: what they are called in an error, and what to write."""

STATEMENTS: dict[str, tuple[str, str]] = {
    "INSERT": (
        "INSERT",
        "Rows are pushed: engine.push('s', rows) in Python, \\push in the shell, POST /streams/s over HTTP. "
        "The answers of a query go where it says: CREATE QUERY q AS SELECT ... INTO parquet OPTIONS ('path' = "
        "'folder').",
    ),
    "UPDATE": ("UPDATE", "CREATE RELATION r (...) KEY (k): a row that is pushed replaces the one with its key."),
    "DELETE": ("DELETE", "CREATE RELATION r (...) CHANGE BY c: a row with - in c takes one out."),
    "MERGE": ("MERGE", "CREATE RELATION r (...) KEY (k): a row that is pushed replaces the one with its key."),
    "SUBSCRIBE": ("SUBSCRIBE", "Every query is continuous: write SELECT ... alone, or CREATE QUERY q AS SELECT ..."),
    "TAIL": ("TAIL", "Every query is continuous: write SELECT ... alone, or CREATE QUERY q AS SELECT ..."),
    "PRINT": ("PRINT", "Write SELECT * FROM s [NOW];"),
    "USE": ("USE", "There is one catalog: streams, relations, views and queries by their names."),
    "REFRESH": ("REFRESH", "Answers are kept up to date by themselves."),
    "TRUNCATE": ("TRUNCATE", "DROP what reads it and create it anew."),
    "CACHE": ("CACHE", "Leave it out: what a query needs again, it keeps."),
    "ADD": ("ADD", "engine.register_function makes a Python function known; packages go to spark.jars (--conf)."),
    "LOAD": ("LOAD", "CREATE STREAM s (...) TIMESTAMP BY at FROM csv OPTIONS ('path' = 'folder')."),
    "DECLARE": ("DECLARE", "There are no variables: write the value, or CREATE FUNCTION f() RETURN value."),
    "EXECUTE": ("EXECUTE", "Write the statement itself."),
    "VALUES": (
        "VALUES as a query",
        "Push rows to a stream, or read a relation: CREATE RELATION r (...) FROM csv OPTIONS (...).",
    ),
    "ANALYZE": ("ANALYZE", "Leave it out: headgate keeps no statistics of tables."),
}
"""Statements, by the word they begin with."""

CREATED: dict[str, tuple[str, str]] = {
    "TABLE": (
        "CREATE TABLE",
        "Write CREATE STREAM s (...) TIMESTAMP BY at for rows that come with time, or CREATE RELATION r (...) KEY "
        "(k) for rows "
        "that replace one another.",
    ),
    "MATERIALIZED": ("CREATE MATERIALIZED VIEW", "Every query is kept up to date: CREATE QUERY v AS SELECT ..."),
    "LIVE": ("CREATE LIVE", "Every query is kept up to date: CREATE QUERY v AS SELECT ..."),
    "STREAMING": ("CREATE STREAMING", "CREATE STREAM s (...), or CREATE QUERY v AS SELECT ..."),
    "TEMPORARY": ("CREATE TEMPORARY", "Leave TEMPORARY out: without --directory nothing is remembered."),
    "TEMP": ("CREATE TEMP", "Leave TEMP out: without --directory nothing is remembered."),
    "OR": ("CREATE OR REPLACE", "ALTER QUERY q AS SELECT ... and ALTER VIEW v AS SELECT ... replace what is there."),
    "SOURCE": ("CREATE SOURCE", "Write CREATE STREAM s (...) TIMESTAMP BY at FROM kafka OPTIONS (...)."),
    "SINK": ("CREATE SINK", "Write CREATE QUERY q AS SELECT ... INTO kafka OPTIONS (...)."),
    "CONNECTION": (
        "CREATE CONNECTION",
        "The address stands in FROM ... OPTIONS (...) of a stream, or INTO ... of a query.",
    ),
    "CONNECTOR": ("CREATE CONNECTOR", "Write CREATE STREAM s (...) FROM kafka OPTIONS (...), or INTO behind a query."),
    "INDEX": ("CREATE INDEX", "Leave it out: a query keeps what it needs."),
    "DATABASE": ("CREATE DATABASE", "There is one catalog: leave it out."),
    "SCHEMA": ("CREATE SCHEMA", "There is one catalog: leave it out."),
    "TYPE": ("CREATE TYPE", "Write STRUCT<a: INT, b: STRING> where the type is needed."),
    "AGGREGATE": (
        "CREATE AGGREGATE",
        "engine.register_function(name, function), with a pandas UDF from series to scalar.",
    ),
}
"""What other systems create, by the word behind CREATE."""
