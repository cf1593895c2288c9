"""`headgate run --opentelemetry`, as users start it, with a collector and without one."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tools.collector import collecting
from tools.places import ROOT
from typer.testing import CliRunner, Result

from headgate.cli import app

pytestmark = pytest.mark.spark


def run(*options: str) -> Result:
    return CliRunner().invoke(app, ["run", "examples/weather/weather.cql", "--once", *options])


def test_heartbeats_of_a_run_go_to_the_collector(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with collecting() as (received, port):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        plain = run()
        assert received.requests == []
        traced = run("--opentelemetry")
        assert traced.exit_code == 0, traced.output
        assert sorted(traced.output.splitlines()) == sorted(plain.output.splitlines())
        names = set(received.names())
        assert {"answer hot", "answer mean", "fragment hot", "planning", "job", "commit", "deliver"} <= names


def test_without_a_collector_the_answers_are_the_same(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    plain, traced = run(), run("--opentelemetry")
    assert traced.exit_code == 0, traced.output
    more = set(traced.output.splitlines()) - set(plain.output.splitlines())
    assert more == {"note: the collector takes no spans: heartbeats are not traced meanwhile, and all else goes on"}
