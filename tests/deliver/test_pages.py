"""Results that are read page by page while the engine goes on and merges their files. No JVM."""

from __future__ import annotations

import pytest
from tools.duck_engine import engine_on_duckdb, without_spark

from headgate.engine.running import Running
from headgate.log.log import MERGE_AT


def test_files_of_results_that_a_reader_has_in_memory_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    with without_spark(), engine_on_duckdb() as engine:
        engine.execute("CREATE STREAM s (k INT); CREATE QUERY q AS SELECT ISTREAM(k) FROM s [RANGE UNBOUNDED]")
        query = engine.query("q")
        with monkeypatch.context() as busy:
            busy.setattr(Running, "tidy", lambda self: None)  # as in a run that has epochs in every turn
            for instant in range(1, MERGE_AT + 1):
                engine.push("s", [(instant, (instant,))])
                engine.advance(instant)
        assert len(query.outbox.log.chunks) == MERGE_AT
        tables, position = query.page(0, 100)
        seen = [value for table in tables for value in table.column("k").to_pylist()]
        assert seen == list(range(1, MERGE_AT + 1))
        engine.step()
        assert len(query.outbox.log.chunks) == 1, "they were merged"
        assert query.page(0, 100)[1] == position == MERGE_AT
        assert [result.row["k"] for result in query.results()] == seen
