"""Spans that go to a collector by OTLP: where they go, what is told when it is down, and what is missing. No JVM."""

from __future__ import annotations

import sys
import time

import pytest
from tools.collector import collecting
from tools.duck_engine import engine_on_duckdb, without_spark
from typer.testing import CliRunner

from headgate.cli import app, collector_for
from headgate.errors import UserError
from headgate.observe.otlp import Collector


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    return monkeypatch


def answer(collector: Collector) -> None:
    """Let an engine answer, whose heartbeat goes to the collector when it is closed."""
    with without_spark(), engine_on_duckdb() as engine:
        engine.execute("CREATE STREAM s (k INT); CREATE QUERY q AS SELECT ISTREAM(k) FROM s [NOW]")
        engine.export_traces(collector.provider)
        engine.push("s", [(1, (1,))])
        engine.advance(1)
        assert engine.query("q").count == 1


def test_spans_go_where_the_environment_says(environment: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    with collecting() as (received, port):
        environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        environment.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
        with Collector(told.append) as collector:
            answer(collector)
        assert "answer q" in received.names()
        assert "deliver" in received.names()
        assert set(received.headers) == {"secret"}
        assert received.service() == "headgate"
    assert told == []


def test_the_environment_names_the_service_and_the_sampler(environment: pytest.MonkeyPatch) -> None:
    with collecting() as (received, port):
        environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        environment.setenv("OTEL_SERVICE_NAME", "weather")
        with Collector(print) as collector:
            answer(collector)
        assert received.service() == "weather"
        before = len(received.names())
        environment.setenv("OTEL_TRACES_SAMPLER", "always_off")
        with Collector(print) as collector:
            answer(collector)
        assert len(received.names()) == before


def test_a_collector_that_is_down_is_told_of_once_and_when_it_is_back(
    environment: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []
    with collecting() as (received, port):
        received.status = 400
        environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        with Collector(told.append) as collector:
            answer(collector)
            collector.provider.force_flush()
            answer(collector)
            collector.provider.force_flush()
            assert told == ["the collector takes no spans: heartbeats are not traced meanwhile, and all else goes on"]
            received.status = 200
            answer(collector)
            collector.provider.force_flush()
        assert told[1:] == ["the collector takes spans again"]
    assert not caplog.records


@pytest.mark.parametrize("hangs", [False, True])
def test_a_collector_that_is_away_or_hangs_holds_up_nobody(environment: pytest.MonkeyPatch, hangs: bool) -> None:
    told: list[str] = []
    with collecting() as (received, port):
        received.hangs = hangs
        environment.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60")
        environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port if hangs else 9}")
        collector = Collector(told.append)
        began_s = time.monotonic()
        for _ in range(3):
            answer(collector)
        collector.close(0.5)
        assert time.monotonic() - began_s < 20
        assert told == ["the collector has not taken the last spans within 0.5 s; they are lost"]


def test_a_protocol_that_is_not_spoken(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
    with pytest.raises(UserError) as caught:
        Collector(print)
    assert caught.value.code == "bad-option"
    assert caught.value.hint == "http/protobuf or grpc."


def test_what_is_missing_is_said_before_spark_starts(
    environment: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    script = tmp_path_factory.mktemp("script") / "q.cql"
    script.write_text("CREATE STREAM s (k INT); CREATE QUERY q AS SELECT ISTREAM(k) FROM s [NOW];")
    environment.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.grpc.trace_exporter", None)
    environment.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    answer = CliRunner().invoke(app, ["run", str(script), "--opentelemetry"])
    assert isinstance(answer.exception, UserError)
    assert answer.exception.message == "this needs opentelemetry-exporter-otlp-proto-grpc"
    assert answer.exception.hint == "pip install opentelemetry-exporter-otlp-proto-grpc"
    environment.delitem(sys.modules, "headgate.observe.otlp")
    environment.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(UserError) as caught:
        collector_for(True, print)
    assert caught.value.message == "this needs opentelemetry-sdk"
    assert caught.value.hint == "pip install 'headgate[opentelemetry]'"
    assert collector_for(False, print) is None
