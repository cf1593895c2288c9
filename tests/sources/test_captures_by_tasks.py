"""Capture files that tasks judge and write themselves: the same logs and dead letters as by Spark SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tools.packets import ether, ip4, ip6, pcap, udp

from headgate import Engine
from headgate.packets import sources
from headgate.sources.captures import Captures

pytestmark = pytest.mark.spark

QUERIES = "CREATE QUERY q AS SELECT ISTREAM(*) FROM packets [NOW];"
TYPES = {
    "microseconds": ("time TIMESTAMP, Src_IP STRING, dst_port BIGINT, length INT, syn BOOLEAN", "time"),
    "seconds": ("time BIGINT, src_ip STRING, dst_port INT, length BIGINT", "time"),
    "checked": ("time TIMESTAMP, dst_port INT CHECK (dst_port <> 3), length INT", "time"),
    "null": ("src_port INT, dst_port INT, length INT", "src_port"),
}


def written_both_ways(spark: SparkSession, folder: Path, state: Path, columns: str, by: str, low: str) -> list[Any]:
    found = []
    for way in ("tasks", "sql"):
        with pytest.MonkeyPatch.context() as patch, Engine(spark, state / way) as engine:
            patch.setattr(sources, "PIECE_BYTES", 4_000)
            if way == "sql":
                patch.setattr(Captures, "written", lambda *_: None)
            engine.execute(
                f"SET low_level = '{low}'; CREATE STREAM packets ({columns}) TIMESTAMP BY {by} "
                f"FROM pcap OPTIONS ('path' = '{folder}'); {QUERIES}"
            )
            engine.poll()
            engine.punctuate("packets", engine.heartbeat("packets") or 0)
            inlet = engine._core.inputs.inlets["packets"]
            kept = [name for name in inlet.rows.schema.names if name != "_s"]
            tuples = sorted(str(row) for chunk in inlet.log.chunks for row in chunk.table(kept).to_pylist())
            letters = sorted(str({**letter, "_s": 0}) for letter in engine.dead_letters("packets"))
            engine.run_once()
            answers = sorted(str(result) for result in engine.query("q").results())
            found.append((engine.counts("packets"), tuples, letters, engine.heartbeat("packets"), answers))
    return found


@pytest.mark.parametrize("kind", TYPES)
def test_tasks_write_what_spark_sql_would_write(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    plain = [ether(ip4(udp(9, 1 + number % 7, bytes(number)), 17)) for number in range(120)]
    pcap(folder / "1.pcap", [*plain, ether(bytes(ip4(udp(), 17))[:12])])
    pcap(folder / "2.pcap", [ether(ip6(udp(1, 7), 17), 0x86DD)] * 5 + [ether(b"?", 0x1234)])
    columns, by = TYPES[kind]
    tasks, sql = written_both_ways(spark, folder, tmp_path / "state", columns, by, "off")
    assert tasks == sql
    assert tasks[0]["malformed"] >= 1
    assert tasks[0]["taken"] + tasks[0].get("no-timestamp", 0) + tasks[0].get("check-failed", 0) == 126
    assert ("check-failed" in tasks[0]) == (kind == "checked")


def test_an_attempt_that_did_not_count_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Files that no successful attempt named are deleted: here one that another attempt has left."""
    pcap(tmp_path / "1.pcap", [ether(ip4(udp(9, 1), 17))] * 10)
    with Engine(spark) as engine, pytest.MonkeyPatch.context() as patch:
        engine.execute(
            f"CREATE STREAM packets (time TIMESTAMP) TIMESTAMP BY time FROM pcap OPTIONS ('path' = '{tmp_path}')"
        )
        run = Captures._run

        def with_rest(self: Captures, task: Any, parts: Any, staging: Path, unfinished: Path) -> Path | None:
            (unfinished / "_verdict=tuple").mkdir()
            (unfinished / "_verdict=tuple" / "part-00000-dead.parquet").write_text("half a file")
            return run(self, task, parts, staging, unfinished)

        patch.setattr(Captures, "_run", with_rest)
        assert engine.poll() == 10
