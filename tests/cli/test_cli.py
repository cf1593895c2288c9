"""The command line as a newcomer meets it: what is wrong is said at once, in words, and without a stack trace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headgate import cli
from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.cql.readers import files_read
from headgate.errors import UserError
from headgate.log.lock import Lock
from headgate.observe import status
from headgate.spark import session

STREAM = "CREATE STREAM s (v INT, at INT) TIMESTAMP BY at FROM json OPTIONS ('path' = '{}');"


@pytest.fixture(autouse=True)
def no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever these tests are about is noticed before Spark is started."""

    def started(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(session, "started", started)
    monkeypatch.setattr(sys, "argv", ["headgate"])


def said(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int | str | None, str, str]:
    """Exit code, output and errors of a command."""
    monkeypatch.setattr(sys, "argv", ["headgate", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err + captured.out
    return ended.value.code, captured.out, captured.err


def test_a_folder_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "script.cql"
    script.write_text(STREAM.format("in/here"))
    code, _, errors = said(["run", "script.cql"], monkeypatch, capsys)
    assert (code, errors.splitlines()) == (
        2,
        [
            'no-such-file: path "in/here" of stream "s" does not exist',
            "  --> script.cql:1",
            f"  1 | {STREAM.format('in/here')}",
            "    | " + " " * STREAM.index("'{") + "^^^^^^^^^",
            f'detail: It is looked for in "{tmp_path}".',
            "hint: A folder may be empty, but must be there: make it, or mend 'path' among the OPTIONS.",
        ],
    )
    (tmp_path / "in" / "here").mkdir(parents=True)
    assert "Spark was started" in said(["run", "script.cql"], monkeypatch, capsys)[2]
    for elsewhere in ("s3a://bucket/in", "in/*/there", f"file:{tmp_path}/in"):
        script.write_text(STREAM.format(elsewhere))
        assert "Spark was started" in said(["run", "script.cql"], monkeypatch, capsys)[2]


def test_a_script_that_would_be_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    script = tmp_path / "script.cql"
    script.write_text(STREAM.format("in") + "\nCREATE QUERY q AS SELECT w FROM s [NOW];")
    for more in ([], ["--once"], ["--directory", "state"]):
        code, _, errors = said(["run", "script.cql", *more], monkeypatch, capsys)
        assert (code, errors.splitlines()[:2]) == (
            2,
            ['no-such-column: column "w" does not exist in "s"', "  --> script.cql:2"],
        )
    code, _, errors = said(["run", "script.cql", "--allow", "from:csv"], monkeypatch, capsys)
    assert (code, errors.splitlines()[:2]) == (
        2,
        ["not-allowed: this text may not read from json", "  --> script.cql:1"],
    )


def test_scripts_and_directories_that_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.cql").write_text("CREATE STREAM s (v INT);")
    (tmp_path / "bytes.cql").write_bytes(b"\xff\xfe")
    (tmp_path / "file").write_text("")
    wrong = {
        ("run", "nowhere.cql"): "no-such-file",
        ("run", "."): "bad-file",
        ("run", "bytes.cql"): "bad-file",
        ("run", "script.cql", "--directory", "file"): "bad-directory",
        ("run", "script.cql", "--directory", "file/below"): "bad-directory",
        ("run", "script.cql", "--directory", "state", "--replay", "arrival"): "no-replay",
        ("explain", "."): "bad-file",
        ("why", "q", "--directory", "file"): "no-engine",
    }
    for arguments, expected in wrong.items():
        code, _, errors = said(list(arguments), monkeypatch, capsys)
        assert (code, errors.partition(":")[0]) == (2, expected), arguments
    lock = Lock(tmp_path)
    assert "directory-in-use" in said(["run", "script.cql", "--directory", "."], monkeypatch, capsys)[2]
    lock.release()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert said(["run", "script.cql"], monkeypatch, capsys)[2].startswith("no-java: Spark needs Java 17")


def test_what_nobody_foresaw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "script.cql").write_text("CREATE STREAM s (v INT);")
    code, _, errors = said(["run", str(tmp_path / "script.cql")], monkeypatch, capsys)
    assert code == 70
    assert errors.splitlines() == [
        "unexpected: AssertionError: Spark was started",
        "detail: This is a defect of headgate, not of your script.",
        "hint: --debug shows where it comes from; please report that, with the script.",
    ]
    monkeypatch.setattr(sys, "argv", ["headgate", "run", str(tmp_path / "script.cql"), "--debug"])
    monkeypatch.setenv("HEADGATE_DEBUG", "0")
    with pytest.raises(SystemExit):
        cli.main()
    assert os.environ["HEADGATE_DEBUG"] == "1", "for Spark's process, too"
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    (tmp_path / "script.cql").write_text(
        "CREATE STREAM s (v INT); " + "".join(f"CREATE QUERY q{n} AS SELECT v FROM s;" for n in range(200))
    )
    begin = [sys.executable, "-c", "from headgate.cli import main; main()", "explain", str(tmp_path / "script.cql")]
    with subprocess.Popen(begin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert (process.stderr.read(), process.wait() in (1, 141)) == ("", True)


def test_why_says_whether_an_engine_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    why = ["why", "q", "--directory", str(tmp_path)]
    assert said(why, monkeypatch, capsys)[2].startswith("no-engine: no engine has left word")
    words = {"query": "q", "text": 'query "q" is complete up to 3\nnothing holds it back'}
    at, process = "2026-01-01T00:00:00+00:00", os.getpid()
    lock = Lock(tmp_path)
    code, _, errors = said(why, monkeypatch, capsys)
    assert (code, errors.partition(":")[0]) == (2, "engine-starting")
    assert f"process {process}" in errors
    for whose, running in ((process, True), (process + 1, False)):
        (tmp_path / status.FILE).write_text(
            json.dumps({"at": at, "process": whose, "queries": {"q": words}, "traces": {}})
        )
        code, answer, errors = ask(why)
        assert ("engine-starting" in errors) == (not running), "the file is of another engine"
        assert answer == (words["text"] + "\n" if running else "")
    lock.release()
    assert (tmp_path / "lock").read_text() == str(process), "a process of that number runs, but it holds no lock"
    code, answer, errors = ask(why)
    assert code == 0
    assert errors.startswith("note: no engine runs there any more; the last one said this ")
    assert answer == 'query "q" is complete up to 3\nnothing held it back then\n'
    assert json.loads(ask([*why, "--json"])[1]) == {"query": "q", "running": False}


def ask(arguments: list[str]) -> tuple[int, str, str]:
    found = CliRunner().invoke(cli.app, arguments)
    refused = found.exception.render() if isinstance(found.exception, UserError) else ""
    return found.exit_code, found.stdout, found.stderr + refused


def test_errors_and_answers_in_one_line() -> None:
    assert str(UserError("sink-failed", 'table "t" cannot be written', detail="connection refused")) == (
        'sink-failed: table "t" cannot be written. connection refused'
    )
    catalog = Catalog()
    columns = ", ".join(f"column_{number} STRING" for number in range(50))
    made = define(
        f"CREATE STREAM s ({columns}); CREATE VIEW w AS SELECT * FROM s; CREATE FUNCTION f (a INT) RETURN a + 1;"
        "CREATE QUERY q AS SELECT column_1,\n COUNT(*) AS n FROM s GROUP BY column_1; SHOW STREAMS; EXPLAIN SELECT * FROM s;"
        "ALTER QUERY q AS SELECT column_2 FROM s; SET range = 'closed';",
        catalog,
    )
    assert len(made) == 8
    for one in made:
        assert len(repr(one)) < 260, repr(one)
        assert "\n" not in repr(one)
    assert repr(catalog.query("q")) == "Query(q: SELECT column_2 FROM s)"


def test_the_version_of_java_without_starting_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_292\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert session.java_version() == 8
    (tmp_path / "release").write_text('IMPLEMENTOR="X"\nJAVA_VERSION="21.0.3"\n')
    assert session.java_version() == 21
    (tmp_path / "release").write_text("nothing")
    assert session.java_version() == 8


def test_sessions_of_another_time_zone_are_refused() -> None:
    for zone in ("UTC", "Etc/UTC", "GMT", "Z", "+00:00", "UTC+0", "Etc/GMT"):
        session.check_zone(zone)
    for zone in ("Europe/Berlin", "+01:00", "Europe/London", "GMT+1", "America/New_York"):
        with pytest.raises(UserError, match="not-utc") as refused:
            session.check_zone(zone)
        assert f"FROM_UTC_TIMESTAMP(at, '{zone}')" in refused.value.hint


def test_files_that_a_script_reads(tmp_path: Path) -> None:
    (tmp_path / "in" / "below").mkdir(parents=True)
    (tmp_path / "in" / "1").write_text("12345")
    (tmp_path / "in" / "below" / "2").write_text("678")
    text = STREAM.format(tmp_path / "in") + STREAM.format(f"file:{tmp_path}/in/1").replace(" s ", " r ")
    files, alone = files_read(text + "CREATE STREAM pushed (v INT);", "script.cql")
    assert ([(one.stream, one.size()) for one in files], alone) == ([("s", 8), ("r", 5)], True)
    for more in ("s3a://bucket/in", f"{tmp_path}/*"):
        files, alone = files_read(STREAM.format(more))
        assert (files, alone) == ([], False)
