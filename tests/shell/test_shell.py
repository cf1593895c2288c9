"""The shell: entries are split, words at the cursor are completed, statements and commands are executed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from pyspark.sql import SparkSession
from tools.places import DOCS

from headgate import Engine, UserError
from headgate.catalog.catalog import Catalog
from headgate.catalog.system import TABLE
from headgate.cql.definitions import define
from headgate.deliver.sinks.sink import Result
from headgate.editing.entries import Entry, read, split
from headgate.editing.words import words
from headgate.errors import Place
from headgate.shell.commands import COMMANDS, Advance, Command, Explain, Push, parsed_command
from headgate.shell.completion import completions
from headgate.shell.interpreter import HELD, Interpreter
from headgate.shell.prompt import CqlCompleter, CqlLexer, history, read_entries, session
from headgate.shell.start import state_directory, stderr_to
from headgate.shell.worker import Worker

# what was typed, cut into entries


def cut(text: str) -> tuple[list[str], str]:
    entries, rest = split(text)
    return [entry.text for entry in entries], rest


@pytest.mark.parametrize(
    "text, entries, rest",
    [
        ("", [], ""),
        ("  -- only a remark\n /* and another; */ ", [], ""),
        ("SELECT 1", [], "SELECT 1"),
        ("SELECT 1;", ["SELECT 1;"], ""),
        ("a;b ;\nc", ["a;", "b ;"], "c"),
        (";;a;;", ["a;"], ""),
        ('SELECT \';\' || "a;\\";" || `;` -- ;\n /* ; */ ;', ['SELECT \';\' || "a;\\";" || `;` -- ;\n /* ; */ ;'], ""),
        ("SELECT 'it''s; \\'; ';", ["SELECT 'it''s; \\'; ';"], ""),
        (r"SELECT r'\';", [r"SELECT r'\';"], ""),
        ("SELECT 'open;", [], "SELECT 'open;"),
        ("/* open; ", [], "/* open; "),
        ("\\show", ["\\show"], ""),
        ("\\show;\nSELECT 1", ["\\show"], "SELECT 1"),
        ('\\push s 1 {"a": "it\'s; so"}\nb;', ['\\push s 1 {"a": "it\'s; so"}', "b;"], ""),
        ("a;\\quit", ["a;", "\\quit"], ""),
        ("SELECT '\n\\quit\n", [], "SELECT '\n\\quit\n"),
        ("SELECT\n\\quit\n", [], "SELECT\n\\quit\n"),
    ],
)
def test_a_text_is_cut_into_statements_and_commands(text: str, entries: list[str], rest: str) -> None:
    assert cut(text) == (entries, rest)


def test_the_words_of_a_text_are_the_text() -> None:
    text = "SELECT 'a' , `b`\n-- c\n [RANGE 1.5 SECONDS] \\ \x00 é 'open"
    assert "".join(word.text for word in words(text)) == text


def test_entries_of_a_script_know_their_lines() -> None:
    script = "-- a remark\nCREATE STREAM s\n  (v INT); SELECT 1;\n\n\\show\nSELECT 2\n"
    entries = list(read(script.splitlines(keepends=True), "a.cql"))
    assert [(entry.text.split("\n")[0], entry.line) for entry in entries] == [
        ("CREATE STREAM s", 1),
        ("SELECT 1;", 2),
        ("\\show", 4),
        ("SELECT 2", 5),
    ]
    assert {entry.origin for entry in entries} == {"a.cql"}
    with pytest.raises(UserError) as error:
        define(Entry("SELECT 1 FROM nowhere;", 7, "a.cql").in_place(), Catalog(), "a.cql")
    assert "  --> a.cql:8\n  8 | SELECT 1 FROM nowhere;\n    |               ^^^^^^^" in error.value.render()


def test_a_statement_is_read_as_soon_as_it_ends() -> None:
    """A pipe that stays open must not hold back what is whole."""
    lines = iter(["a\n", ";\n", "b;\n"])
    assert next(read(lines)).text == "a\n;"
    assert list(lines) == ["b;\n"]


# commands


def asked(line: str) -> Command:
    return parsed_command(line, Place(line, 0, len(line)))


@pytest.mark.parametrize(
    "line, meant",
    [
        ("\\help", "help"),
        ("\\q", "quit"),
        ("\\SHOW", "show"),
        ("\\explain q1", Explain("q1")),
        ("\\advance 20", Advance(20)),
        ("\\advance 2026-01-31 12:00:00", Advance(datetime(2026, 1, 31, 12))),
        ("\\advance '2026-01-31'", Advance(datetime(2026, 1, 31))),
        ('\\push s {"a": 1}', Push("s", None, "+", {"a": 1})),
        ('\\push s 7 {"a": 1}', Push("s", 7, "+", {"a": 1})),
        ("\\push s -7 [1, null]", Push("s", -7, "+", [1, None])),
        ("\\push r 7 - [1]", Push("r", 7, "-", [1])),
        ("\\push `odd name` 7 [1]", Push("odd name", 7, "+", [1])),
    ],
)
def test_commands_mean(line: str, meant: Command) -> None:
    assert asked(line) == meant


@pytest.mark.parametrize(
    "line, code, marked",
    [
        ("\\psh", "no-such-command", "\\psh"),
        ("\\p", "no-such-command", "\\p"),
        ("\\", "no-such-command", "\\"),
        ("\\show me", "bad-command", "\\show me"),
        ("\\explain", "bad-command", "\\explain"),
        ("\\push s", "bad-command", "\\push s"),
        ('\\push s 1 {"a"', "bad-row", '{"a"'),
        ("\\advance soon", "bad-instant", "soon"),
    ],
)
def test_a_wrong_command_is_refused_with_its_place(line: str, code: str, marked: str) -> None:
    with pytest.raises(UserError) as error:
        asked(line)
    place = error.value.place
    assert place is not None
    assert (error.value.code, line[place.start : place.end]) == (code, marked)


# completion


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    known = Catalog()
    define(
        """
        CREATE STREAM bids (item STRING, price INT);
        CREATE STREAM readings (sensor STRING, celsius DOUBLE, `odd name` INT, at TIMESTAMP) TIMESTAMP BY at;
        CREATE RELATION sites (sensor STRING, site STRING);
        CREATE VIEW warm (where_to, degrees) AS SELECT sensor, celsius FROM readings WHERE celsius > 20;
        CREATE FUNCTION fahrenheit(c DOUBLE) RETURNS DOUBLE RETURN c * 9 / 5 + 32;
        CREATE QUERY best AS SELECT MAX(price) AS price FROM bids [RANGE 10];
        """,
        known,
    )
    return known


def offers(text: str, catalog: Catalog) -> list[str]:
    """What is offered at the bar, or at the end."""
    before, _, after = text.partition("|")
    return [candidate.text for candidate in completions(before, catalog, after).candidates]


@pytest.mark.parametrize(
    "text, offered",
    [
        # statements
        ("cre", ["create"]),
        ("CREATE STREAM s (a INT); SE", ["SELECT", "SET"]),
        ("CREATE ", ["STREAM", "RELATION", "VIEW", "QUERY", "QUERIES", "GROUP", "FUNCTION", "CONSTRAINT"]),
        ("CREATE GROUP g ", ["OF"]),
        ("CREATE GROUP g OF b", ["best"]),
        ("CREATE GROUP g OF best IN", ["INTO"]),
        ("CREATE GROUP g OF best INTO p", ["parquet"]),
        ("SNAPSHOT b", ["best"]),
        ("CREATE QUERIES q ", ["FOR"]),
        ("CREATE QUERIES q FOR EACH ROW OF ", ["sites"]),
        ("CREATE QUERIES q FOR EACH ROW OF sites ", ["AS", "INTO", "FROM"]),
        ("CREATE STREAM s (a I", ["INT"]),
        ("CREATE STREAM s (a", []),
        ("CREATE STREAM s (a INT ", ["CHECK", "INCREASING", "DECREASING"]),
        ("CREATE RELATION r (a INT, b STRING ", ["CHECK"]),
        ("CREATE RELATION r (a INT, b STRING CHECK (", ["b"]),
        ("CREATE STREAM s (a INT CHECK (a IN (1, 2)), b INT) TIMESTAMP BY ", ["a", "b"]),
        ("CREATE STREAM s (a INT, b DECIMAL(10, 2), c TIMESTAMP) TIMESTAMP BY ", ["a", "b", "c"]),
        ("CREATE STREAM s (a INT) T", ["TIMESTAMP BY"]),
        ("CREATE STREAM s (a INT) DISORDER 2 se", ["seconds"]),
        ("CREATE STREAM s (a INT) FROM c", ["csv"]),
        ("CREATE RELATION r (a INT) ch", ["change by"]),
        ("CREATE QUERY q ", ["AS"]),
        ("CREATE QUERY q AS SELECT * FROM bids INTO p", ["parquet"]),
        ("SET r", ["range"]),
        ("SET range = ", ["'closed'", "'half-open'"]),
        ("DISORDER OF b", ["bids"]),
        ("DROP QUERY b", ["best"]),
        ("DROP DIS", ["DISORDER"]),
        ("DROP DISORDER ", ["OF", "IF EXISTS"]),
        ("DROP DISORDER OF b", ["bids"]),
        ("DROP SKEW FROM bids T", ["TO"]),
        ("DROP ENVIRONMENT s", ["sensors", "source"]),
        ("DESCRIBE w", ["warm"]),
        ("SHOW q", ["queries", "quarantine"]),
        ("SHOW sys", ["system streams"]),
        ("DESCRIBE SYSTEM.q", ["queries"]),
        ("SELECT * FROM sys", ["SYSTEM."]),
        ("SELECT * FROM SYSTEM.", list(TABLE)),
        ("SELECT * FROM SYSTEM.h", ["heartbeats"]),
        ("SELECT queries.wai", []),
        ("SELECT q.query FROM SYSTEM.queries [NOW] q WHERE q.wai", ["waiting"]),
        ("SELECT query FROM SYSTEM.queries [NOW] WHERE queries.wai", ["waiting"]),
        ("TIMEOUT 2 mi", ["microseconds", "milliseconds", "minutes"]),
        ("HEARTBEAT ", ["OF", "ON DEMAND", "EVERY", "NONE", "WITHIN"]),
        ("HEARTBEAT OF b", ["bids"]),
        ("CONSTRAINT c O", ["ON"]),
        ("CONSTRAINT c ON b", ["bids"]),
        ("CONSTRAINT c ON bids ", ["CLUSTERED BY", "ORDERED BY", "REFERENCES"]),
        ("CONSTRAINT c ON bids CLUSTERED BY ", ["item", "price"]),
        ("CONSTRAINT c ON bids CLUSTERED BY item ", ["WITHIN", "DETECTED"]),
        ("CONSTRAINT c ON bids CLUSTERED BY item DETECTED ", ["WITHIN", "CONFIDENCE", "ON VIOLATION"]),
        ("CONSTRAINT c ON bids CLUSTERED BY item WITHIN 5 ", ["TUPLES"]),
        ("CONSTRAINT c ON bids CLUSTERED BY item WITHIN 5 TUPLES ON VIOLATION ", ["COUNT", "FAIL"]),
        # names
        ("SELECT * FROM ", ["bids", "readings", "sites", "warm", "SYSTEM."]),
        ("SELECT * FROM w", ["warm"]),
        ("SELECT * FROM bids, s", ["sites", "SYSTEM."]),
        ("SELECT * FROM bids [NOW] b JOIN r", ["readings"]),
        ("SELECT * FROM (SELECT item, price FROM bids), w", ["warm"]),
        ("SELECT fahr", ["fahrenheit"]),
        # columns
        ("SELECT pri| FROM bids", ["price"]),
        ("SELECT b.| FROM bids b", ["item", "price"]),
        ("SELECT * FROM bids [RANGE 5 SECONDS] AS b WHERE b.p", ["price"]),
        ("SELECT * FROM bids b, readings [NOW] r WHERE r.", ["sensor", "celsius", "`odd name`", "at"]),
        ("SELECT * FROM warm WHERE warm.d", ["degrees"]),
        ("SELECT readings.od", ["`odd name`"]),
        ("SELECT x.| FROM bids b", []),
        ("SELECT item, p| FROM bids", ["price", "partition"]),
        # windows
        ("SELECT * FROM bids [", ["NOW", "RANGE", "ROWS", "PARTITION BY"]),
        ("SELECT * FROM bids [r", ["range", "rows"]),
        ("SELECT * FROM bids [RANGE ", ["UNBOUNDED"]),
        ("SELECT * FROM bids [RANGE 5 MIN", ["MINUTES"]),
        ("SELECT * FROM bids [RANGE 5 S", ["SECONDS", "SLIDE"]),
        ("SELECT * FROM bids [RANGE 5 MINUTES ", ["SLIDE"]),
        ("SELECT * FROM bids [RANGE 5 MINUTES SLIDE 1 H", ["HOURS"]),
        ("SELECT * FROM bids [ROWS ", ["UNBOUNDED"]),
        ("SELECT * FROM bids [PARTITION ", ["BY"]),
        ("SELECT * FROM bids [PARTITION BY ", ["item", "price"]),
        ("SELECT * FROM bids AS b [PARTITION BY ", ["item", "price"]),
        ("SELECT * FROM bids [PARTITION BY item, p", ["price"]),
        ("SELECT * FROM bids [PARTITION BY item ", ["ROWS"]),
        ("SELECT * FROM bids [PARTITION BY item ROWS 3 ", ["RANGE"]),
        # commands
        ("\\p", ["\\push", "\\pause"]),
        ("\\push ", ["bids", "readings", "sites"]),
        ("\\push bids ", []),
        ("\\explain b", ["best"]),
        ("SELECT 1;\n\\explain b", ["best"]),
        # nothing
        ("SELECT 'fr", []),
        ("-- fr", []),
        ("SELECT /* fr", []),
    ],
)
def test_completion(text: str, offered: list[str], catalog: Catalog) -> None:
    assert offers(text, catalog) == offered


def test_a_query_is_offered_columns_first_then_words(catalog: Catalog) -> None:
    found = completions("SELECT * FROM bids WHERE ", catalog).candidates
    assert [(one.text, one.kind) for one in found[:3]] == [
        ("item", "column STRING"),
        ("price", "column INT"),
        ("bids", "alias"),
    ]
    assert {"AND", "GROUP", "ISTREAM"} <= {one.text for one in found}
    assert not {"NOW", "CREATE"} & {one.text for one in found}


def test_every_completion_begins_with_what_was_typed(catalog: Catalog) -> None:
    text = "CREATE QUERY q AS SELECT ISTREAM(b.item, `odd name`) FROM bids [PARTITION BY item ROWS 3] AS b, readings [NOW] WHERE price > 'x';\n\\push bids 1"
    for end in range(len(text) + 1):
        found = completions(text[:end], catalog, text[end:])
        assert text[:end].endswith(found.typed)
        assert all(one.text.lstrip("`").lower().startswith(found.typed.lower()) for one in found.candidates)


def test_completion_without_a_catalog_still_knows_the_language() -> None:
    assert offers("SELECT * FROM s [N", Catalog()) == ["NOW"]
    assert offers("SELECT * FROM ", Catalog()) == ["SYSTEM."]


# the terminal


def test_a_completion_takes_the_place_of_what_was_typed() -> None:
    (found,) = CqlCompleter(Worker(lambda: Engine(), print)).get_completions(
        Document("SELECT * FROM s [ra"), CompleteEvent()
    )
    assert (found.text, found.start_position) == ("range", -2)


def test_colours_follow_strings_over_lines() -> None:
    line = CqlLexer().lex_document(Document("SELECT 'a\nb' AS x -- c"))
    assert list(line(0)) == [("class:keyword", "SELECT"), ("", " "), ("class:string", "'a")]
    assert list(line(1))[:3] == [("class:string", "b'"), ("", " "), ("class:keyword", "AS")]


def test_history_is_kept_where_the_user_keeps_such_things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    history(state_directory()).append_string("SELECT 1;")
    assert list(history(tmp_path / "headgate").load_history_strings()) == ["SELECT 1;"]
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_directory() == tmp_path / ".local" / "state" / "headgate"
    (tmp_path / "file").touch()
    assert isinstance(history(tmp_path / "file" / "below"), InMemoryHistory)


def test_what_is_started_writes_its_errors_to_the_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "new" / "spark.log"
    with stderr_to(log):
        subprocess.run([sys.executable, "-c", "import os; os.write(2, b'stack trace')"], check=True)
    os.write(2, b"ours")
    assert (log.read_text(), capfd.readouterr().err) == ("stack trace", "ours")


def test_the_prompt_waits_neither_for_spark_nor_for_the_parser() -> None:
    code = "import headgate.cli, headgate.shell.start, headgate.shell.prompt, headgate.shell.worker, sys; assert not {'pyspark', 'sqlglot'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def typed(keys: str, worker: Worker) -> list[str]:
    """What is handed over when these keys are pressed."""
    handed: list[str] = []
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text(keys)
        asyncio.run(
            asyncio.wait_for(
                read_entries(session(worker, InMemoryHistory()), lambda entry: handed.append(entry.text)), 30
            )
        )
    return handed


def test_keys() -> None:
    idle = Worker(lambda: Engine(), print)
    assert typed("SELECT 1\rFROM s;\r\\q\rSELECT 2;\r", idle) == ["SELECT 1\nFROM s;"]
    assert typed("SELECT 1\x03SELECT 2;\r\x04", idle) == ["SELECT 2;"]  # Ctrl-C gives up the line, Ctrl-D leaves
    assert typed("a; \\show\r\r\x04", idle) == ["a;", "\\show"]
    assert typed("\x1b[200~a;\nb\n;\x1b[201~\r\x04", idle) == ["a;", "b\n;"]  # pasted


def test_without_spark_the_shell_says_so_and_goes_on() -> None:
    said: list[str] = []

    def none() -> Engine:
        raise UserError("no-java", "there is none")

    worker = Worker(none, said.append)
    worker.start()
    worker.join(30)
    worker.submit(Entry("SELECT 1;"))
    worker.finish()
    assert said == ["no-java: there is none"] * 2
    assert worker.status() == "Spark did not start"


# on Spark


@pytest.fixture
def said() -> list[str]:
    return []


def execute(interpreter: Interpreter, script: str) -> None:
    for entry in read(script.splitlines(keepends=True)):
        interpreter.execute(entry)
        interpreter.turn()


@pytest.mark.spark
def test_at_the_prompt(spark: SparkSession, said: list[str]) -> None:
    worker = Worker(lambda: Engine(spark), said.append)
    keys = """CREATE STREAM bids (item STRING, price INT);
CREATE QUERY best AS
SELECT item, MAX(price) AS price FROM bids [RANGE 10] GROUP BY item;
\\push bids 1 {"item": "vase", "price": 20}
SELECT pric FROM bids;
\\push bids 4 {"item": "vase", "price": 25}
\\advance 20
\\quit
"""
    worker.start()
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text(keys.replace("\n", "\r"))
        asyncio.run(asyncio.wait_for(read_entries(session(worker, InMemoryHistory()), worker.submit), 60))
    worker.finish()
    assert not worker.is_alive()
    assert said[0].startswith("Spark 4")
    told = "\n".join(said[1:]).splitlines()
    results = [line for line in told if line.startswith("best ")]
    assert results == [
        "best 1 + item=vase, price=20",
        "best 4 - item=vase, price=20",
        "best 4 + item=vase, price=25",
        "best 15 - item=vase, price=25",
    ]
    assert [line for line in told if line not in results] == [
        "stream bids (item STRING, price INT)",
        "query best (item STRING, price INT): relation, running",
        "bids: taken, complete up to 0",
        'no-such-column: column "pric" does not exist in "bids"',
        "  1 | SELECT pric FROM bids;",
        "    |        ^^^^",
        'detail: Columns of "bids" are "item", "price".',
        'hint: Did you mean "price"?',
        "bids: taken, complete up to 3",
        "complete up to 20",
    ]
    assert [one.text for one in completions("SELECT * FROM b", worker.catalog()).candidates] == ["bids"]
    assert worker.status() == "1 query running"


@pytest.mark.spark
def test_the_transcript_of_the_documentation_is_true(spark: SparkSession, said: list[str]) -> None:
    page = (DOCS / "shell.md").read_text(encoding="utf-8")
    transcript = page.split("```\n")[1]
    with Engine(spark) as engine:
        shell = Interpreter(engine, said.append, said.append)
        for shown in transcript.split("headgate> ")[1:]:
            lines = shown.splitlines()
            typed = 1 + sum(line.startswith("       . ") for line in lines)
            said.clear()
            execute(shell, "\n".join(line.removeprefix("       . ") for line in lines[:typed]))
            assert "\n".join(said).splitlines() == lines[typed:], lines[0]


@pytest.mark.spark
def test_commands_and_mistakes(spark: SparkSession, said: list[str]) -> None:
    with Engine(spark) as engine:
        shell = Interpreter(engine, said.append, lambda text: said.append(f"! {text}"))

        def answers(script: str) -> str:
            said.clear()
            execute(shell, script)
            return "\n".join(said)

        assert answers("\\show") == "nothing is defined yet"
        assert answers("\\advance 1") == "! no-query: no query is running that could advance"
        execute(
            shell,
            "CREATE STREAM s (v INT); CREATE RELATION r (v INT); CREATE STREAM t (d DATE, m DECIMAL(5, 2), at DATE) TIMESTAMP BY at;",
        )
        assert answers('\\push s {"v": 1}').startswith('! bad-row: "s" has no timestamp column')
        assert answers('\\push s 1 {"w": 1}').startswith('! bad-row: stream "s" has no column "w"')
        assert answers('\\push s 1 {"v": "x"}') == "s: not taken, malformed; the row is in the dead letters"
        assert answers('\\push t 1 {"d": 1}').startswith('! bad-row: the instant of "t" is its column "at"')
        assert answers('\\push t {"d": "2026-01-31", "m": 1.25, "at": "2026-01-31"}').startswith(
            "t: taken, complete up to 2026-01-30"
        )
        assert answers("\\push nowhere 1 {}").startswith('! no-such-stream: stream "nowhere" does not exist')
        assert answers("SET range = 'half-open';") == "range is set"
        assert (
            answers("CREATE QUERY q AS SELECT s.v FROM s [RANGE 5] s, r WHERE s.v = r.v;")
            == "query q (v INT): relation, running"
        )
        assert answers("\\advance 2026-01-31").startswith("! bad-instant: 2026-01-31 00:00:00 is a timestamp")
        assert answers('\\push r 1 {"v": 7}') == "r: taken"
        execute(shell, '\\pause\n\\push s 2 {"v": 7}\n\\push r 3 - {"v": 7}\n\\push s 9 {"v": 0}')
        assert answers("\\advance 9") == "complete up to 9"
        assert answers("\\resume") == "q 2 + v=7\nq 3 - v=7"
        assert answers("\\explain q").startswith("query q (relation)\n\n-- with all defaults\n")
        assert answers("EXPLAIN SELECT v FROM s [NOW];").startswith("query query (relation)")
        assert "query q (v INT): relation, 2 results, complete up to 9" in answers("\\show")
        assert (
            answers("DESCRIBE t;")
            == "column  type           is\nd       DATE\nm       DECIMAL(5, 2)\nat      DATE           timestamp"
        )
        assert answers("CREATE VIEW w AS SELECT v FROM s; DROP VIEW w; DROP VIEW IF EXISTS w;").splitlines()[1:] == [
            "view w is dropped",
            "there is no such view",
        ]
        assert all(f"\\{name}" in answers("\\help") for name in COMMANDS)
        assert shell.failures == 6


@pytest.mark.spark
def test_a_query_that_fails_is_told_once_and_holds_up_no_other(spark: SparkSession, said: list[str]) -> None:
    with Engine(spark) as engine:
        shell = Interpreter(engine, said.append, said.append)
        execute(
            shell,
            "CREATE STREAM s (v INT); CREATE QUERY bad AS SELECT CAST(IF(v = 0, 'none', '1') AS INT) AS x FROM s;"
            "CREATE QUERY good AS SELECT v FROM s;",
        )
        execute(shell, '\\push s 1 {"v": 0}\n\\push s 2 {"v": 0}\n\\push s 3 {"v": 1}\n\\push s 4 {"v": 1}')
        shell.turn()
        assert len([text for text in said if text.startswith('query-failed: query "bad"')]) == 1
        assert [text for text in said if text.startswith("good")] == [
            f"good {at} + v={v}" for at, v in ((1, 0), (2, 0), (3, 1), (4, 1))
        ]


@pytest.mark.spark
def test_a_stream_that_cannot_be_set_up_leaves_its_name_free(
    spark: SparkSession, said: list[str], tmp_path: Path
) -> None:
    with Engine(spark) as engine:
        shell = Interpreter(engine, said.append, said.append)
        execute(shell, "CREATE STREAM s (v INT) TIMESTAMP BY v FROM csv;")
        execute(shell, f"CREATE STREAM s (v INT) TIMESTAMP BY v FROM csv OPTIONS ('path' = '{tmp_path}/none');")
        shell.turn()
        execute(shell, "CREATE STREAM s (v INT);")
        assert [text.split(":")[0] for text in said] == ["no-path", "stream s (v INT)", "no-such-file", "name-taken"]


@pytest.mark.spark
def test_a_point_in_time_does_not_move_integer_time(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(
            "CREATE STREAM i (v INT); CREATE STREAM t (at TIMESTAMP) TIMESTAMP BY at; SELECT * FROM i; SELECT * FROM t;"
        )
        engine.advance(datetime(2026, 1, 31))
        assert (engine.query("q1").complete, engine.query("q2").complete.year) == (None, 2026)


@pytest.mark.spark
def test_held_results_are_bounded_and_what_is_not_kept_is_counted(spark: SparkSession, said: list[str]) -> None:
    with Engine(spark) as engine:
        shell = Interpreter(engine, said.append, said.append)
        shell.pause()
        for at in range(HELD + 5):
            shell.show_results("q", [Result(at, "+", {"v": at})])
        shell.resume()
        assert said[1] == "... 5 earlier lines were not kept"
        assert said[2].splitlines()[0] == "q 5 + v=5"
        shell.show_results("q", [Result(1, "+", {})] * 60)
        assert said[3].splitlines()[-1] == "q ... and 10 more"


@pytest.mark.spark
def test_a_script_without_a_terminal(tmp_path: Path) -> None:
    """Runs the whole command: results on standard output, errors on standard error, and the exit code."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("1,5\n2,0\n3,7\n")
    script = f"""
CREATE STREAM s (at INT, v INT) TIMESTAMP BY at FROM csv OPTIONS ('path' = '{tmp_path}/in');
SELECT v FROM nowhere;
CREATE QUERY q AS SELECT ISTREAM(v) FROM s [NOW] WHERE v > 1;
CREATE QUERY bad AS SELECT CAST(IF(v = 0, 'none', '1') AS INT) AS x FROM s
"""
    code = "from headgate.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "shell", "--master", "local[1]"],
        input=script,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )
    assert done.stdout.splitlines() == [
        "stream s (at INT, v INT)",
        "query q (v INT): stream, running",
        "query bad (x INT): stream, running",
        "q 1 + v=5",
        "q 3 + v=7",
    ]
    errors = done.stderr.splitlines()
    assert errors[:3] == [
        'no-such-stream: stream "nowhere" does not exist',
        "  3 | SELECT v FROM nowhere;",
        "    |               ^^^^^^^",
    ]
    assert 'query-failed: query "bad" failed in the epoch (-1, 3]' in errors
    assert "at org.apache.spark" not in done.stderr
    assert "CAST_INVALID_INPUT" in done.stderr, "the cause is part of the message"
    assert done.returncode == 1
