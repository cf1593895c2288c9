"""An engine starts whatever its journal holds: what it cannot carry out again is in quarantine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zlib import crc32

import pytest
from tools.duck_engine import engine_on_duckdb, killed, without_spark

from headgate.catalog.entries import Query
from headgate.cql.definitions import Listing
from headgate.deliver.outbox import Outbox
from headgate.engine import Engine
from headgate.engine.found import FoundFamilies
from headgate.engine.registry import Registry
from headgate.engine.statements import remembered_statements
from headgate.errors import UserError
from headgate.observe import status

SCRIPT = """
CREATE STREAM s (n INT, at BIGINT) TIMESTAMP BY at;
CREATE STREAM t (n INT, at BIGINT) TIMESTAMP BY at;
DISORDER OF s 5;
CREATE QUERY q AS SELECT ISTREAM(n) FROM s [NOW] WHERE n > 1;
CREATE QUERY healthy AS SELECT SUM(n) AS total FROM t [RANGE 100];
CREATE VIEW v AS SELECT n FROM s [NOW];
CREATE QUERY over AS SELECT ISTREAM(n) FROM v;
CREATE FUNCTION f(a INT) RETURN a + 1;
CREATE QUERY one AS SELECT n FROM s [NOW];
CREATE QUERY two AS SELECT n + 1 AS m FROM s [NOW];
CREATE GROUP g OF one, two;
"""


@pytest.fixture(autouse=True)
def no_spark() -> Iterator[None]:
    with without_spark():
        yield


def rewritten(directory: Path, change: Callable[[str, dict[str, Any]], dict[str, Any]]) -> None:
    """Change the facts of a journal, as if another version had written them; every checksum is right."""
    for path in (directory / "journal").glob("*.lines"):
        heading, *lines = path.read_bytes().splitlines()
        checksum, written = crc32(heading), [heading]
        for line in lines:
            facts = json.loads(line.partition(b" ")[2])
            if isinstance(facts, list):
                facts = [[subject, change(subject, what)] for subject, what in facts]
            text = json.dumps(facts, separators=(",", ":")).encode()
            checksum = crc32(text, checksum)
            written.append(b"%08x %s" % (checksum, text))
        path.write_bytes(b"\n".join(written) + b"\n")
    for path in (directory / "journal").glob("*.checkpoint"):
        heading, *lines, _ = path.read_bytes().splitlines()
        facts = [json.loads(line) for line in lines]
        lines = [json.dumps([one, change(one, what)], separators=(",", ":")).encode() for one, what in facts]
        checksum = 0
        for line in (heading, *lines):
            checksum = crc32(line + b"\n", checksum)
        end = b'{"facts": %d, "crc": "%08x"}' % (len(lines), checksum)
        path.write_bytes(b"\n".join([heading, *lines, end]) + b"\n")


def saying(words: str, instead: str) -> Callable[[str, dict[str, Any]], dict[str, Any]]:
    """Exchanges words in statements."""

    def change(subject: str, what: dict[str, Any]) -> dict[str, Any]:
        if subject == "engine" and "statement" in what:
            what["statement"]["cql"] = what["statement"]["cql"].replace(words, instead)
        return what

    return change


def begun(directory: Path, script: str = SCRIPT) -> Engine:
    engine = engine_on_duckdb(directory)
    engine.execute(script)
    engine.push("s", [{"n": 1, "at": 1}, {"n": 2, "at": 2}])
    engine.push("t", [{"n": 5, "at": 1}])
    engine.advance(2)
    return engine


def ended(engine: Engine) -> None:
    engine._core.journal.close()
    engine._core.lock.release()


def held(engine: Engine) -> set[tuple[str, str]]:
    (listing,) = engine.execute("SHOW QUARANTINE")
    assert isinstance(listing, Listing)
    return {(kind, name) for kind, name, _, _ in listing.rows}


def values(engine: Engine, query: str) -> list[Any]:
    return [list(result.row.values()) for result in engine.query(query).results() if result.sign == "+"]


def again(engine: Engine, directory: Path, how: str) -> Engine:
    """Start once more: after a crash, or after an end that leaves a checkpoint."""
    if how == "crash":
        return killed(engine, directory)
    engine.close()
    return engine_on_duckdb(directory)


@pytest.mark.parametrize("how", ["crash", "checkpoint"])
def test_a_query_that_cannot_be_read_comes_back_as_it_was(tmp_path: Path, how: str) -> None:
    engine = begun(tmp_path)
    again(engine, tmp_path, how).close()
    rewritten(tmp_path, saying("n > 1", "n >>> 1"))
    engine = engine_on_duckdb(tmp_path)
    for at in (8, 18):
        assert held(engine) == {("query", "q")}
        with pytest.raises(UserError, match='in-quarantine: query "q" is in quarantine'):
            engine.query("q")
        assert "ALTER QUERY q AS ..., DROP QUERY q" in engine.troubles()["quarantine"]["query q"]
        engine.push("s", [{"n": 7, "at": at}])
        engine.push("t", [{"n": 7, "at": at}])
        engine.advance(at)
        engine.step()
        engine = again(engine, tmp_path, how)
    assert [5] in values(engine, "healthy")
    again(engine, tmp_path, how).close()
    rewritten(tmp_path, saying("n >>> 1", "n > 1"))
    engine = engine_on_duckdb(tmp_path)
    assert held(engine) == set()
    engine.advance(19)
    assert values(engine, "q") == [[2], [7], [7]], "the stream has forgotten nothing"
    engine.close()


@pytest.mark.parametrize("how", ["crash", "checkpoint"])
@pytest.mark.parametrize(
    ("mending", "running"),
    [
        ("DROP QUERY q", False),
        ("ALTER QUERY q AS SELECT n FROM t [NOW]", True),
        ("CREATE QUERY q AS SELECT n FROM t [NOW]", True),
    ],
)
def test_a_query_leaves_quarantine_for_good(tmp_path: Path, how: str, mending: str, running: bool) -> None:
    again(begun(tmp_path), tmp_path, how).close()
    rewritten(tmp_path, saying("n > 1", "n >>> 1"))
    engine = engine_on_duckdb(tmp_path)
    folder = next((tmp_path / "queries").glob("q"))
    engine.execute(mending)
    assert held(engine) == set()
    engine.step()
    assert not folder.exists(), "its files are not needed any more"
    for mended in (False, True):
        engine = again(engine, tmp_path, how)
        assert held(engine) == set()
        assert ("q" in {query.name for query in engine.queries()}) == running
        if not mended:
            ended(engine)
            rewritten(tmp_path, saying("n >>> 1", "n > 1"))
            engine = engine_on_duckdb(tmp_path)
    engine.close()


@pytest.mark.parametrize("how", ["crash", "checkpoint"])
def test_what_depends_on_a_stream_is_in_quarantine_too(tmp_path: Path, how: str) -> None:
    again(begun(tmp_path), tmp_path, how).close()
    rewritten(tmp_path, saying("s (n INT", "s (n INTT"))
    engine = engine_on_duckdb(tmp_path)
    everything = {("stream", "s"), ("statement", "DISORDER OF s 5"), ("view", "v"), ("group", "g")}
    everything |= {("query", name) for name in ("q", "over", "one", "two")}
    assert held(engine) == everything
    with pytest.raises(UserError, match='in-quarantine: stream "s" is in quarantine'):
        engine.push("s", [{"n": 9, "at": 9}])
    with pytest.raises(UserError, match="in-quarantine"):
        engine.execute("CREATE QUERY r AS SELECT n FROM s [NOW]")
    with pytest.raises(UserError, match="name-taken"):
        engine.execute("CREATE QUERY s AS SELECT n FROM t [NOW]")
    engine.step()
    engine = again(engine, tmp_path, how)
    assert held(engine) == everything
    again(engine, tmp_path, how).close()
    rewritten(tmp_path, saying("s (n INTT", "s (n INT"))
    engine = engine_on_duckdb(tmp_path)
    assert held(engine) == set()
    engine.push("s", [{"n": 9, "at": 9}])
    engine.advance(9)
    assert values(engine, "q") == [[2], [9]]
    assert engine.bounds().rows
    engine.close()


@pytest.mark.parametrize("how", ["crash", "checkpoint"])
def test_a_stream_is_dropped_or_made_anew(tmp_path: Path, how: str) -> None:
    again(begun(tmp_path), tmp_path, how).close()
    rewritten(tmp_path, saying("s (n INT", "s (n INTT"))
    engine = engine_on_duckdb(tmp_path)
    engine.execute("CREATE STREAM s (n INT, k STRING); DROP GROUP g; DROP VIEW v; DROP QUERY over")
    assert held(engine) == {("query", "q"), ("query", "one"), ("query", "two"), ("statement", "DISORDER OF s 5")}
    engine.push("s", [(1, (3, "x"))])
    engine = again(engine, tmp_path, how)
    assert engine.counts("s") == {"taken": 1}
    assert [column.name for column in engine.catalog.stream("s").columns] == ["n", "k"]
    engine.execute("DROP STREAM s")
    engine = again(engine, tmp_path, how)
    assert "s" not in engine.catalog.streams
    engine.execute("DROP QUERY q; DROP QUERY one; DROP QUERY two")
    engine = again(engine, tmp_path, how)
    assert {kind for kind, _ in held(engine)} <= {"statement"}
    engine.close()


def test_a_stream_made_anew_stays_when_the_old_one_can_be_read(tmp_path: Path) -> None:
    ended(begun(tmp_path))
    rewritten(tmp_path, saying("s (n INT", "s (n INTT"))
    engine = engine_on_duckdb(tmp_path)
    engine.execute("CREATE STREAM s (n INT, k STRING)")
    ended(engine)
    rewritten(tmp_path, saying("s (n INTT", "s (n INT"))
    engine = engine_on_duckdb(tmp_path)
    assert [column.name for column in engine.catalog.stream("s").columns] == ["n", "k"]
    assert ("query", "q") in held(engine), "it read the old one"
    engine.close()


@pytest.mark.parametrize("how", ["crash", "checkpoint"])
def test_facts_of_a_later_version_are_kept_as_they_are(tmp_path: Path, how: str) -> None:
    engine = begun(tmp_path)
    engine.pause("s")
    ended(engine)
    later = {"invented": {"by": "a later version"}, "v": 9}

    def change(subject: str, what: dict[str, Any]) -> dict[str, Any]:
        return later if what.get("told", [""])[0] == "pause" else what

    rewritten(tmp_path, change)
    for _ in range(3):
        engine = engine_on_duckdb(tmp_path)
        assert held(engine) == {("fact", "invented 1")}
        assert len(engine.queries()) == 5
        ended(again(engine, tmp_path, how))
    assert json.dumps(later, separators=(",", ":")) in "".join(
        path.read_text() for path in (tmp_path / "journal").iterdir()
    ).replace('": ', '":').replace(', "', ',"')


def test_a_ghost_of_a_label_does_not_keep_an_engine_from_starting(tmp_path: Path) -> None:
    """Earlier versions remembered the label of a query without a name, and could not read it again."""
    ended(begun(tmp_path))
    rewritten(tmp_path, saying("CREATE QUERY q AS SELECT", "CREATE QUERY q AS query : SELECT"))
    assert any("query : SELECT" in one for one in remembered_statements(tmp_path))
    engine = engine_on_duckdb(tmp_path)
    assert held(engine) == {("query", "q")}
    (again_said,) = engine.execute("CREATE QUERY q AS SELECT ISTREAM(n) FROM s [NOW] WHERE n > 1")
    assert repr(again_said).startswith("Quarantined(query q"), "a script that is said once more goes on"
    engine.close()


@pytest.mark.parametrize("how", ["crash", "checkpoint"])
def test_damaged_files_put_their_owner_into_quarantine(tmp_path: Path, how: str) -> None:
    ended(again(begun(tmp_path), tmp_path, how))
    (results,) = (tmp_path / "queries" / "q" / "results").glob("*.parquet")
    whole = results.read_bytes()
    results.unlink()
    engine = engine_on_duckdb(tmp_path)
    assert held(engine) == {("query", "q")}
    engine.push("s", [{"n": 7, "at": 8}])
    engine.advance(8)
    ended(again(engine, tmp_path, how))
    results.write_bytes(whole)
    engine = engine_on_duckdb(tmp_path)
    engine.advance(9)
    assert values(engine, "q") == [[2], [7]]
    engine.push("s", [{"n": 9, "at": 10}])
    ended(engine)
    chunk = min((tmp_path / "streams" / "s").glob("*.parquet"))
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:-5])
    engine = engine_on_duckdb(tmp_path)
    assert ("stream", "s") in held(engine)
    assert {query.name for query in engine.queries()} == {"healthy"}
    engine = again(engine, tmp_path, how)
    assert ("stream", "s") in held(engine)
    ended(engine)
    chunk.write_bytes(whole)
    engine = engine_on_duckdb(tmp_path)
    assert held(engine) == set()
    engine.push("s", [{"n": 11, "at": 12}])
    engine.advance(12)
    assert values(engine, "q") == [[2], [7], [9], [11]]
    engine.close()


SHARED = """
CREATE QUERY p1 AS SELECT n, COUNT(*) AS c FROM s [RANGE 10] GROUP BY n;
CREATE QUERY p2 AS SELECT n, COUNT(*) AS c FROM s [RANGE 10] GROUP BY n HAVING COUNT(*) > 0;
"""
ALIKE = ";".join(f"CREATE QUERY a{least} AS SELECT ISTREAM(n) FROM s [NOW] WHERE n > {least}" for least in range(5))


@pytest.mark.parametrize("how", ["crash", "checkpoint"])
@pytest.mark.parametrize("broken", ["q", "p1", "p2"])
def test_a_query_that_cannot_be_set_up_comes_back(tmp_path: Path, how: str, broken: str) -> None:
    script = SCRIPT + SHARED
    ended(again(begun(tmp_path, script), tmp_path, how))
    make = Registry.outbox

    def outbox(registry: Registry, query: Query, directory: Path) -> Outbox:
        if query.name == broken:
            raise RuntimeError("a function is missing")
        return make(registry, query, directory)

    with patch.object(Registry, "outbox", outbox):
        engine = engine_on_duckdb(tmp_path)
        for at in (8, 18):
            assert held(engine) == {("query", broken)}
            engine.push("s", [{"n": 7, "at": at}])
            engine.advance(at)
            engine.step()
            engine = again(engine, tmp_path, how)
        ended(engine)
    engine = engine_on_duckdb(tmp_path)
    assert held(engine) == set()
    engine.advance(30)
    with without_spark():
        whole = begun(tmp_path / "whole", script)
    for at in (8, 18):
        whole.push("s", [{"n": 7, "at": at}])
        whole.advance(at)
    whole.advance(30)
    for query in ("q", "p1", "p2"):
        assert engine.query(query).results() == whole.query(query).results()
    engine.close()
    whole.close()


@pytest.mark.parametrize("how", ["crash", "checkpoint"])
def test_members_of_a_family_come_back(tmp_path: Path, how: str) -> None:
    engine = begun(tmp_path, SCRIPT + ALIKE)
    members = {("query", name) for name in engine._core.members}
    assert len(members) >= 4
    ended(again(engine, tmp_path, how))
    with patch.object(FoundFamilies, "_family", lambda *_, **__: None):
        engine = engine_on_duckdb(tmp_path)
        assert held(engine) == members
        engine = again(engine, tmp_path, how)
        assert held(engine) == members
        ended(engine)
    engine = engine_on_duckdb(tmp_path)
    assert held(engine) == set()
    engine.push("s", [{"n": 3, "at": 9}])
    engine.advance(9)
    assert values(engine, "a1") == [[2], [3]]
    assert values(engine, "a2") == [[3]]
    engine.close()


def test_the_status_says_what_is_in_quarantine(tmp_path: Path) -> None:
    ended(begun(tmp_path))
    rewritten(tmp_path, saying("n > 1", "n >>> 1"))
    engine = engine_on_duckdb(tmp_path)
    engine._running.write_status()
    with pytest.raises(UserError, match='in-quarantine: query "Q" is in quarantine') as error:
        status.read(tmp_path, "Q")
    assert "DROP QUERY q" in error.value.detail
    assert "query q" in engine.overview().to_json()["troubles"]["quarantine"]
    engine.close()


@pytest.mark.parametrize("how", ["crash", "checkpoint"])
def test_a_stream_that_was_widened_in_a_way_not_known_here(tmp_path: Path, how: str) -> None:
    """Rows came before the statement that cannot be read, and behind it: all of them are kept."""
    engine = begun(tmp_path)
    engine.execute("ALTER STREAM s ADD COLUMN m INT")
    engine.push("s", [{"n": 3, "at": 12, "m": 4}])
    ended(again(engine, tmp_path, how))
    rewritten(tmp_path, saying("ADD COLUMN m INT", "ADD COLUMN m INTT"))
    engine = engine_on_duckdb(tmp_path)
    assert ("stream", "s") in held(engine)
    assert {query.name for query in engine.queries()} == {"healthy"}
    ended(again(engine, tmp_path, how))
    rewritten(tmp_path, saying("ADD COLUMN m INTT", "ADD COLUMN m INT"))
    engine = engine_on_duckdb(tmp_path)
    assert held(engine) == set()
    assert engine.counts("s") == {"taken": 3}
    engine.advance(12)
    assert values(engine, "q") == [[2], [3]]
    engine.close()
