"""A statement that fails at any step leaves nothing behind: catalog, what runs, journal and a restart agree."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tools.duck_engine import engine_on_duckdb, killed, without_spark

from headgate import compile as compiling
from headgate.cql import definitions, script
from headgate.cql.definitions import Listing
from headgate.engine import Engine, registry, sharing
from headgate.engine.core import Core
from headgate.engine.low_level import LowLevel
from headgate.errors import UserError
from headgate.execute.fragment import Fragment
from headgate.log.journal import RESERVE, Journal

BEFORE = """
CREATE STREAM s (n INT, k STRING);
CREATE STREAM u (n INT);
CREATE RELATION r (n INT);
CREATE VIEW v AS SELECT n FROM s [NOW];
CREATE QUERY keep AS SELECT ISTREAM(n) FROM s [NOW];
CREATE QUERY gone AS SELECT k FROM s [NOW];
CREATE QUERY one AS SELECT n FROM s [RANGE 5];
CREATE QUERY two AS SELECT n + 1 AS m FROM s [RANGE 6];
CREATE GROUP g OF one, two;
CREATE FUNCTION f(a INT) RETURN a + 1;
CREATE QUERY a1 AS SELECT n, k FROM s [RANGE 10] WHERE n > 1;
CREATE QUERY a2 AS SELECT n, k FROM s [RANGE 10] WHERE n > 2;
CREATE QUERY a3 AS SELECT n, k FROM s [RANGE 10] WHERE n > 3;
DISORDER OF s 3;
"""

STATEMENTS = [
    "CREATE STREAM x (n INT, k STRING, at BIGINT) TIMESTAMP BY at DISORDER 3",
    "CREATE RELATION x (n INT)",
    "CREATE VIEW x AS SELECT n FROM s [NOW]",
    "CREATE QUERY x AS SELECT k, COUNT(*) AS c FROM s [RANGE 7] GROUP BY k",
    "SELECT ISTREAM(k) FROM v, s [NOW]",
    "CREATE QUERY a4 AS SELECT n, k FROM s [RANGE 10] WHERE n > 4",
    "CREATE QUERY x AS SELECT stream FROM SYSTEM.streams [NOW]",
    "CREATE GROUP x OF keep_too, one",
    "CREATE FUNCTION f(a INT) RETURN a + 2",
    "CREATE CONSTRAINT x ON s (n) REFERENCES u (n)",
    "ALTER QUERY keep AS SELECT ISTREAM(k) FROM s [NOW] WHERE n = 3",
    "ALTER QUERY a3 AS SELECT n, k FROM s [RANGE 10] WHERE n > 30",
    "ALTER VIEW v AS SELECT k FROM s [NOW]",
    "ALTER STREAM s ADD COLUMN m INT",
    "DROP QUERY gone",
    "DROP GROUP g",
    "DROP STREAM u",
    "DROP RELATION r",
    "DROP VIEW v",
    "DROP FUNCTION f",
    "DROP DISORDER OF s",
    "DISORDER OF u 9",
    "SET epoch_rows = '77000'",
    "SET low_level = 'on'",
]


def defect(*_: Any, **__: Any) -> Any:
    raise RuntimeError("injected")


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


PLACES: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "parser": (script, "_statement", defect),
    "binder": (definitions, "bind", defect),
    "rewriter": (definitions, "rewritten", defect),
    "lower": (compiling, "lower", defect),
    "compiler": (sharing, "compile_fragment", defect),
    "spark's analysis": (Fragment, "analyse", defect),
    "facts": (Core, "record", defect),
    "sink": (registry.Registry, "outbox", defect),
    "remembering": (registry.Registry, "_remember", defect),
    "low level": (LowLevel, "refresh", defect),
    "journal's write": (Journal, "_write_line", full),
    "sync": (os, "fsync", full),
    "folder": (Path, "mkdir", full),
}


@pytest.fixture(autouse=True)
def no_spark() -> Iterator[None]:
    with without_spark():
        yield


def seen(engine: Engine) -> dict[str, Any]:
    """All that is to be as before."""
    core = engine._core
    state = dict(engine.catalog.state())
    listings = [
        engine.execute(f"SHOW {kind}")[0] for kind in ("STREAMS", "QUERIES", "VIEWS", "GROUPS", "SETTINGS", "BOUNDS")
    ]
    return {
        "catalog": state,
        "shown": [one.rows for one in listings if isinstance(one, Listing)],
        "queries": set(core.loop.queries.items()),
        "members": set(core.members.items()),
        "alone": {name: query.membership for name, query in core.loop.queries.items()},
        "groups": set(core.loop.groups.items()),
        "inlets": {name: (inlet, inlet.stream) for name, inlet in core.inputs.inlets.items()},
        "logs": set(core.inputs.logs.items()),
        "columns": dict(core.inputs.schemas),
        "shared": set(core.loop.shared()),
        "closed": [query.closed for query in core.queries()],
        "statements": list(engine._registry.statements.all),
    }


def of_restart(engine: Engine) -> dict[str, Any]:
    """What an engine has after a restart too."""
    known = {name: sorted(engine.catalog.of_kind(name)) for name in ("stream", "relation", "view", "query", "group")}
    texts = {query.name: query.definition.text for query in engine.queries()}
    columns = {name: stream.columns for name, stream in engine.catalog.streams.items()}
    return known | {
        "texts": texts,
        "columns": columns,
        "settings": engine.catalog.settings,
        "bounds": engine.bounds().rows,
    }


@contextmanager
def failing(owner: Any, name: str, fail: Callable[..., Any]) -> Iterator[None]:
    with patch.object(owner, name, fail):
        yield


def works(engine: Engine) -> None:
    engine.push("s", [(1, {"n": 7, "k": "k"})])
    engine.execute("CREATE QUERY later AS SELECT k FROM s [NOW]; DROP QUERY later; SET epoch_rows = '99000'")
    engine.step()


@pytest.mark.parametrize("place", PLACES)
def test_whatever_fails_leaves_nothing_behind(tmp_path: Path, place: str) -> None:
    engine = engine_on_duckdb(tmp_path)
    engine.execute(BEFORE + "CREATE QUERY keep_too AS SELECT n FROM u [NOW];")
    (tmp_path / RESERVE).unlink()
    refused = 0
    for statement in STATEMENTS:
        before, durable = seen(engine), of_restart(engine)
        try:
            with failing(*PLACES[place]):
                engine.execute(statement)
        except (UserError, RuntimeError):
            refused += 1
            assert seen(engine) == before, statement
            assert of_restart(engine) == durable, statement
    assert refused
    works(engine)
    durable = of_restart(engine)
    engine = killed(engine, tmp_path)
    assert of_restart(engine) == durable
    assert not engine.catalog.quarantine
    works(engine)
    engine.close()


def test_a_defect_that_python_raises_leaves_the_old_query(tmp_path: Path) -> None:
    engine = engine_on_duckdb(tmp_path)
    engine.execute(BEFORE)
    before = seen(engine)
    with pytest.raises((UserError, ValueError)):
        engine.execute(f"ALTER QUERY keep AS SELECT ISTREAM(n) FROM s [NOW] WHERE n = {'9' * 5000}")
    assert seen(engine) == before
    engine.execute("DROP QUERY keep")
    engine.close()


class FullDisk:
    """A disk with no room but that of the reserve, if this is gone."""

    def __init__(self, directory: Path) -> None:
        self.reserve = directory / RESERVE
        self.sync = os.fsync

    def fsync(self, number: int) -> None:
        if self.reserve.exists():
            full()
        self.sync(number)


@pytest.mark.parametrize("statement", [one for one in STATEMENTS if one.startswith("DROP") and "DISORDER" not in one])
def test_dropping_works_on_a_full_disk(tmp_path: Path, statement: str) -> None:
    engine = engine_on_duckdb(tmp_path)
    engine.execute(BEFORE)
    disk, before = FullDisk(tmp_path), seen(engine)
    with patch.object(os, "fsync", disk.fsync):
        with pytest.raises(UserError, match="disk-failed"):
            engine.execute("CREATE QUERY x AS SELECT n FROM u [NOW]")
        with pytest.raises(UserError, match="disk-failed"):
            engine.push("s", [(1, {"n": 7, "k": "k"})])
        assert seen(engine) == before
        engine.execute(statement)
    assert not disk.reserve.exists()
    dropped = of_restart(engine)
    assert dropped != before
    engine.step()
    assert disk.reserve.stat().st_size == 2**16, "room is kept again"
    works(engine)
    dropped = of_restart(engine)
    engine = killed(engine, tmp_path)
    assert of_restart(engine) == dropped
    engine.close()
