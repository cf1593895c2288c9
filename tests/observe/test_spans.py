"""Heartbeats as spans: how the tree follows from a trace, and that the engine never waits for a tracer. No JVM."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracerProvider
from tools.duck_engine import engine_on_duckdb, without_spark

from headgate import ManualClock, UserError
from headgate.observe import spans as module
from headgate.observe.spans import Part, Spans, parted
from headgate.observe.trace import SINK, Traces, Work
from headgate.ticks import TimeDomain

DATE_US = 1_793_534_400_000_000


@dataclass(frozen=True)
class Came:
    upto: int
    began_us: int
    taken_us: int


def traced() -> Traces:
    """Tuples stamped 8 come on a at 90 to 100; b is complete up to 8 at 400; given at 450; a part and the query work."""
    traces = Traces(["a", "b"], ["part(1)", "q"])
    traces.looked({"a": 5, "b": 2}, {"a": 40, "b": None}, 50)
    traces.sent(2, 60)
    traces.seen("part(1)", 2, 60, 70)
    traces.seen("q", 2, 60, 70)
    traces.seen(SINK, 2, 70, 80)
    traces.looked({"a": 9, "b": 8}, {"a": 100, "b": 400}, 450)
    traces.sent(8, 450, {"a": [Came(1, 0, 1), Came(8, 90, 100)], "b": [Came(2, 0, 2), Came(8, 380, 400)]})
    traces.seen("part(1)", 8, 460, 600, 7, Work(50, 460, 580))
    traces.seen("q", 8, 610, 900, 5, Work(200, 610, 860))
    return traces


def flat(part: Part) -> dict[str, tuple[int, int]]:
    """The spans of a tree by their paths, with when each began and ended."""
    found = {part.name: (part.began_us, part.ended_us)}
    for one in part.parts:
        name = f"{one.name} {one.said['headgate.stream']}" if "headgate.stream" in one.said else one.name
        found |= {f"{name}/{path}".removesuffix(f"/{one.name}"): span for path, span in flat(one).items()}
    return found


def test_a_heartbeat_is_a_tree_of_spans() -> None:
    traces = traced()
    (trace,) = traces.seen(SINK, 8, 900, 1_000)
    assert trace.came_us == (235, 250, 400), "the average of two batches"
    whole = parted(traces, trace, "q", ["q"])
    assert flat(whole) == {
        "answer q": (235, 1_000),
        "ingest": (235, 250),
        "wait for heartbeat": (250, 400),
        "wait for stream b": (250, 400),
        "wait for loop": (400, 460),
        "fragment part(1)": (460, 600),
        "fragment part(1)/planning": (460, 530),
        "fragment part(1)/job": (530, 580),
        "fragment part(1)/commit": (580, 600),
        "fragment q": (610, 900),
        "fragment q/planning": (610, 660),
        "fragment q/job": (660, 860),
        "fragment q/commit": (860, 900),
        "deliver": (900, 1_000),
    }
    assert whole.said == {
        "headgate.query": "q",
        "headgate.heartbeat": 2,
        "headgate.instant": "8",
        "headgate.rows": 5,
        "headgate.streams": ("a", "b"),
    }
    (part,) = (one for one in whole.parts if one.name == "fragment part(1)")
    assert part.said == {"headgate.fragment": "part(1)", "headgate.rows": 7}


def test_a_heartbeat_is_through_once_when_the_sink_is() -> None:
    traces = traced()
    assert traces.seen(SINK, 7, 900, 950) == []
    assert [trace.instant for trace in traces.seen(SINK, 8, 960, 1_000)] == [8]
    assert traces.seen(SINK, 8, 1_100, 1_200) == []


def test_without_batches_a_tree_begins_when_the_first_stream_had_come_so_far() -> None:
    traces = Traces(["a", "b"], ["q"], TimeDomain.TIMESTAMP)
    traces.looked({"a": 5, "b": None}, {"a": None, "b": None}, 50)
    traces.looked({"a": 12, "b": 10}, {"a": 100, "b": 400}, 450)
    traces.sent(10, 450)
    traces.seen("q", 10, 460, 600, 3)
    (trace,) = traces.seen(SINK, 10, 600, 700)
    whole = parted(traces, trace, "q", ["q"], [f"m{n}" for n in range(20)])
    assert flat(whole) == {
        "answer q": (100, 700),
        "wait for heartbeat": (100, 400),
        "wait for stream b": (100, 400),
        "wait for loop": (400, 460),
        "fragment q": (460, 600),
        "deliver": (600, 700),
    }
    assert whole.said["headgate.instant"] == "1970-01-01 00:00:00.000010+00:00"
    assert whole.said["headgate.queries"] == tuple(f"m{n}" for n in range(10))
    assert whole.said["headgate.members"] == 20


def test_no_span_ends_before_it_begins_or_lies_outside() -> None:
    """Averages over tuples can lie apart from the heartbeat itself, and a clock that stood still gives no length."""
    traces = Traces(["a"], ["q"])
    traces.looked({"a": 5}, {"a": 40}, 50)
    traces.sent(5, 50)
    traces.looked({"a": 9}, {"a": 100}, 120)
    traces.sent(8, 120, {"a": [Came(8, 119, 130)]})
    traces.seen("q", 8, 100, 110, 1, Work(5_000, 100, 105))
    (_, trace) = traces.seen(SINK, 8, 110, 110)

    def check(part: Part) -> None:
        assert part.began_us <= part.ended_us
        for one in part.parts:
            assert part.began_us <= one.began_us
            assert one.ended_us <= part.ended_us
            check(one)

    check(parted(traces, trace, "q", ["q"]))


def provider_to(exporter: SpanExporter) -> TracerProvider:
    made = TracerProvider(shutdown_on_exit=False)
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made


def give(spans: Spans, traces: Traces | None = None) -> None:
    traces = traces or traced()
    spans.through(traces, traces.seen(SINK, 8, 900, 1_000), "q", ["q"], [])


def test_spans_have_dates_parents_and_attributes() -> None:
    kept = InMemorySpanExporter()
    spans = Spans(ManualClock(1_000, DATE_US + 1_000), provider_to(kept))
    give(spans)
    spans.close()
    assert (spans.given, spans.left_out) == (1, 0)
    found = {span.name: span for span in kept.get_finished_spans()}
    root, job, fragment = found["answer q"], found["job"], found["fragment q"]
    assert (root.start_time, root.end_time) == ((DATE_US + 235) * 1_000, (DATE_US + 1_000) * 1_000)
    assert root.parent is None
    assert root.attributes is not None
    assert root.attributes["headgate.rows"] == 5
    assert root.instrumentation_scope is not None
    assert root.instrumentation_scope.name == "headgate"
    assert fragment.parent is not None
    assert job.parent is not None
    assert (fragment.parent.span_id, job.parent.trace_id) == (root.context.span_id, root.context.trace_id)
    assert {span.context.trace_id for span in kept.get_finished_spans()} == {root.context.trace_id}
    assert len(kept.get_finished_spans()) == 14


def test_a_clock_without_a_date_goes_by_the_computer() -> None:
    kept = InMemorySpanExporter()
    before_ns = time.time_ns()
    spans = Spans(ManualClock(1_000), provider_to(kept))
    give(spans)
    spans.close()
    root = kept.get_finished_spans()[-1]
    assert root.end_time is not None
    assert before_ns - 1_000 <= root.end_time <= time.time_ns()


class Hanging(SpanExporter):
    """A collector that takes nothing, and does not say so."""

    def __init__(self) -> None:
        self.called, self.over = threading.Event(), threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.called.set()
        self.over.wait(30)
        return SpanExportResult.FAILURE


def test_a_collector_that_hangs_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "WAITING", 3)
    hanging = Hanging()
    spans = Spans(ManualClock(1_000), provider_to(hanging))
    give(spans)
    assert hanging.called.wait(10)
    began_s = time.monotonic()
    for _ in range(10):
        give(spans)
    assert time.monotonic() - began_s < 1
    assert spans.left_out == 7
    assert [record.message for record in caplog.records] == [
        "heartbeats are not exported: too many heartbeats wait for the tracer"
    ]
    spans.close(0.1)
    assert time.monotonic() - began_s < 2
    hanging.over.set()


class Failing(TracerProvider):
    def get_tracer(self, *arguments: object, **named: object) -> object:  # type: ignore[override]
        class Tracer:
            def start_span(self, *arguments: object, **named: object) -> object:
                raise RuntimeError("out of order")

        return Tracer()


def test_a_tracer_that_fails_is_told_of_once_and_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    spans = Spans(ManualClock(1_000), Failing(shutdown_on_exit=False))
    give(spans)
    give(spans)
    spans.close()
    assert (spans.given, spans.left_out) == (0, 2)
    assert [record.message for record in caplog.records] == ["heartbeats are not exported: out of order"]


def test_a_provider_that_records_nothing_costs_little() -> None:
    spans = Spans(ManualClock(1_000), NoOpTracerProvider())
    give(spans)
    spans.close()
    assert (spans.given, spans.left_out) == (1, 0)


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(UserError) as caught:
        Spans(ManualClock())
    assert (caught.value.code, caught.value.hint) == ("no-module", "pip install 'headgate[opentelemetry]'")


def test_an_engine_exports_each_heartbeat_of_each_query() -> None:
    kept, clock = InMemorySpanExporter(), ManualClock(0, DATE_US)
    with without_spark(), engine_on_duckdb(clock=clock) as engine:
        engine.execute(
            """CREATE STREAM s (k STRING, v INT);
            CREATE QUERY all_of_it AS SELECT ISTREAM(k, v) FROM s [NOW];
            CREATE QUERY none AS SELECT ISTREAM(k) FROM s [NOW] WHERE v > 100"""
        )
        assert engine._core.loop.spans is None
        engine.push("s", [(1, ("a", 1))])
        engine.advance(1)
        spans = engine.export_traces(provider_to(kept))
        clock.move_by(5_000_000)
        engine.push("s", [(2, ("b", 1)), (3, ("c", 2))])
        clock.move_by(1_000_000)
        engine.advance(3)
        assert engine.query("all_of_it").count == 3
    roots = [span for span in kept.get_finished_spans() if span.parent is None]
    said = [span.attributes for span in roots if span.attributes is not None]
    assert sorted((str(one["headgate.query"]), one["headgate.instant"], one["headgate.rows"]) for one in said) == [
        ("all_of_it", "3", 2),
        ("none", "3", 0),
    ], "the heartbeats from when they are exported on"
    assert {(root.start_time, root.end_time) for root in roots} == {
        ((DATE_US + 5_000_000) * 1_000, (DATE_US + 6_000_000) * 1_000)
    }
    assert spans.given == 2


def test_an_engine_goes_on_beside_a_collector_that_hangs() -> None:
    hanging = Hanging()
    with without_spark(), engine_on_duckdb() as engine:
        engine.execute("CREATE STREAM s (k INT); CREATE QUERY q AS SELECT ISTREAM(k) FROM s [NOW]")
        engine.export_traces(provider_to(hanging))
        for instant in range(1, 6):
            engine.push("s", [(instant, (instant,))])
            engine.advance(instant)
        assert hanging.called.wait(10)
        assert engine.query("q").count == 5
        began_s = time.monotonic()
    assert time.monotonic() - began_s < 10
    hanging.over.set()


def test_another_provider_takes_the_place_of_the_first() -> None:
    first, second = InMemorySpanExporter(), InMemorySpanExporter()
    with without_spark(), engine_on_duckdb() as engine:
        engine.execute("CREATE STREAM s (k INT); CREATE QUERY q AS SELECT ISTREAM(k) FROM s [NOW]")
        for instant, kept in enumerate((first, second), 1):
            engine.export_traces(provider_to(kept))
            engine.push("s", [(instant, (instant,))])
            engine.advance(instant)
    instants = [
        [one.attributes["headgate.instant"] for one in kept.get_finished_spans() if one.attributes and not one.parent]
        for kept in (first, second)
    ]
    assert instants == [["1"], ["2"]]


def test_the_members_of_a_family_are_named() -> None:
    kept = InMemorySpanExporter()
    with without_spark(), engine_on_duckdb() as engine:
        engine.execute("CREATE STREAM s (k INT)")
        engine.execute(";".join(f"CREATE QUERY q{n} AS SELECT ISTREAM(k) FROM s [NOW] WHERE k > {n}" for n in range(6)))
        hidden = [query for query in engine._core.programs() if query.hidden]
        assert hidden, "they are found to be a family"
        engine.export_traces(provider_to(kept))
        engine.push("s", [(1, (4,))])
        engine.advance(1)
        members = [query.name for query in engine.queries() if query.membership is not None]
    said = [one.attributes for one in kept.get_finished_spans() if one.attributes and one.parent is None]
    (family,) = (one for one in said if one["headgate.query"] == hidden[0].name)
    assert family["headgate.queries"] == tuple(members)
    assert family["headgate.members"] == len(members)
