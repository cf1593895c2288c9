"""The examples with sinks, run by the command line as their pages say, and what they leave."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tools.places import ROOT
from tools.postgres_server import Server
from typer.testing import CliRunner

from headgate import read_commits
from headgate.cli import app
from headgate.engine import Engine

pytestmark = pytest.mark.spark


def run(script: str, folder: Path, *arguments: str, **replaced: str) -> str:
    """Run an example once, from the root of the repository; what it says on standard error and output."""
    text = (ROOT / script).read_text(encoding="utf-8")
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    copy = folder / Path(script).name
    copy.write_text(text, encoding="utf-8")
    answer = CliRunner().invoke(app, ["run", str(copy), "--once", *arguments])
    assert answer.exit_code == 0, answer.output
    assert "takes no results" not in answer.output, answer.output
    return answer.output


def relations(spark: SparkSession, script: str) -> dict[str, Counter[tuple[Any, ...]]]:
    """What each query of an example is in the end, by its results in memory."""
    text = (ROOT / script).read_text(encoding="utf-8")
    found: dict[str, Counter[tuple[Any, ...]]] = {}
    with Engine(spark) as engine:
        engine.execute(";".join(statement.partition("INTO")[0] for statement in text.split(";")))
        engine.run_once()
        for query in engine.queries():
            rows = found[query.name] = Counter()
            for result in query.results():
                rows[tuple(result.row.values())] += 1 if result.sign == "+" else -1
    return {name: +rows for name, rows in found.items()}


@pytest.mark.usefixtures("spark")
def test_files_to_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    arguments = ("--directory", str(tmp_path / "state"))
    replaced = {"'out/": f"'{tmp_path}/out/"}
    run("examples/files/files.cql", tmp_path, *arguments, **replaced)
    run("examples/files/files.cql", tmp_path, *arguments, **replaced)  # resumes: nothing is new
    last = list(read_commits(tmp_path / "out" / "prices"))[-1]
    rows = [tuple(row.values()) for row in pq.read_table(list(last.files)).to_pylist()]
    assert {(item, float(price)) for item, price in rows} == {("lamp", 17.9), ("vase", 8.5), ("rug", 99.0)}
    told = subprocess.run(
        [sys.executable, "examples/files/follow.py", str(tmp_path / "out" / "sold")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.splitlines()
    assert told[0] == "_time=2026-06-01 09:00:05+00:00, _change=+, item=lamp, pieces=2"
    changes = [line.partition(", ")[0] for line in told if line.startswith("_time")]
    assert len(changes) == 15
    assert changes == sorted(changes)
    assert told[-1].endswith("complete up to 2026-06-01 10:58:00+00:00")


def test_to_postgres(spark: SparkSession, postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    replaced = {"jdbc:postgresql://localhost:5432/postgres": postgres.url, "'user' = 'postgres'": "'user' = 'tester'"}
    run("examples/postgres/postgres.cql", tmp_path, "--directory", str(tmp_path / "state"), **replaced)
    means = Counter(
        (sensor, round(float(celsius), 9), int(n)) for sensor, celsius, n in postgres.ask("SELECT * FROM mean")
    )
    expected = relations(spark, "examples/postgres/postgres.cql")
    assert means == Counter((sensor, round(celsius, 9), n) for sensor, celsius, n in expected["mean"].elements())
    hot = expected["hot"]
    assert (
        Counter((sensor, float(celsius)) for sensor, celsius in postgres.ask("SELECT sensor, celsius FROM hot")) == hot
    )
    assert hot
    assert {target for (target,) in postgres.ask("SELECT target FROM headgate_deliveries")} >= {"mean", "hot"}
