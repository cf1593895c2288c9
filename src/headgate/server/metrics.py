"""Metrics for Prometheus: those of the engine are made of its overview when they are asked for.

Names follow the conventions of Prometheus: counters end in `_total`, times are in seconds and sizes in bytes. Labels
are names of streams, queries, logs and fragments, reasons and routes. They are bounded: beyond `NAMES` of a kind, the
others are left out, and `headgate_unlisted` says how many. No label has a value of the data, such as a source.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate import __version__
from headgate.observe.overview import Overview
from headgate.server.status import Status
from headgate.texts import shown

NAMES = 500
"""How many streams, queries, logs and fragments have metrics of their own."""

disable_created_metrics()  # type: ignore[no-untyped-call] # when a series began is of no use here, and doubles their number

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)

CONTENT_TYPE = CONTENT_TYPE_LATEST
V = TypeVar("V")


class Metrics:
    """All metrics of a server."""

    def __init__(self, status: Status) -> None:
        self.registry = registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        registry.register(EngineCollector(status))
        build = Gauge("headgate_build_info", "The version.", ["version"], registry=registry)
        build.labels(__version__).set(1)
        Gauge("headgate_start_time_seconds", "When the server was started.", registry=registry).set(status.started)
        self.requests = Counter("headgate_http_requests", "Requests.", ["method", "route", "status"], registry=registry)
        self.seconds = Histogram(
            "headgate_http_request_duration_seconds",
            "How long requests took; those that follow results are not among them.",
            ["route"],
            buckets=BUCKETS,
            registry=registry,
        )
        self.followers = Gauge("headgate_live_followers", "Requests that follow results.", registry=registry)
        self.sent = Counter("headgate_live_results_sent", "Results sent to followers.", registry=registry)
        self.let_go = Counter(
            "headgate_live_followers_let_go", "Followers that took nothing and were let go.", registry=registry
        )

    def text(self) -> bytes:
        """Return all metrics as Prometheus reads them."""
        return generate_latest(self.registry)


class EngineCollector(Collector):
    """Makes metrics of an engine's overview."""

    def __init__(self, status: Status) -> None:
        self.status = status

    def describe(self) -> Iterable[Metric]:
        """Nothing is collected when it is registered."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Look at the engine, and give its metrics."""
        overview, _ = self.status.look()
        yield from engine_metrics(overview)


def engine_metrics(overview: Overview) -> Iterator[Metric]:
    """Give the metrics of what an engine runs."""
    streams = _some({**overview.streams, **overview.relations})
    queries, logs, fragments = _some(overview.queries), _some(overview.logs), _some(overview.fragments)

    def counter(name: str, about: str, labels: list[str], samples: Iterable[tuple[list[str], float | None]]) -> Metric:
        return _filled(CounterMetricFamily(name, about, labels=labels), samples)

    def gauge(name: str, about: str, labels: list[str], samples: Iterable[tuple[list[str], float | None]]) -> Metric:
        return _filled(GaugeMetricFamily(name, about, labels=labels), samples)

    yield gauge("headgate_engine_running", "1 while the engine runs its queries.", [], [([], float(overview.running))])
    everything: dict[str, int] = {
        "stream": len(overview.streams) + len(overview.relations),
        "query": len(overview.queries),
        "log": len(overview.logs),
        "fragment": len(overview.fragments),
    }
    yield gauge(
        "headgate_unlisted",
        "Streams, queries, logs and fragments that have no metrics of their own, because there are too many.",
        ["kind"],
        [([kind], max(count - NAMES, 0)) for kind, count in everything.items()],
    )

    # streams
    yield counter(
        "headgate_stream_tuples", "Tuples taken.", ["stream"], [([name], one.taken) for name, one in streams.items()]
    )
    yield counter(
        "headgate_stream_dead_letters",
        "Tuples that were late or could not be read.",
        ["stream", "reason"],
        [([name, reason], count) for name, one in streams.items() for reason, count in one.dead.items()],
    )
    yield gauge(
        "headgate_stream_heartbeat_timestamp_seconds",
        "Up to when a stream is complete (its watermark), if its time is that of a calendar.",
        ["stream"],
        [([name], _epoch_seconds(one.heartbeat)) for name, one in streams.items()],
    )
    yield gauge(
        "headgate_stream_silent",
        "1 if nothing came for the timeout.",
        ["stream"],
        [([name], float(one.silent)) for name, one in streams.items() if one.kind == "stream"],
    )
    yield gauge(
        "headgate_stream_failed",
        "1 if the source cannot be read.",
        ["stream"],
        [([name], float(one.trouble is not None)) for name, one in streams.items()],
    )

    # logs
    yield counter("headgate_log_rows", "Rows written.", ["log"], [([name], one.rows) for name, one in logs.items()])
    yield gauge(
        "headgate_log_kept_rows", "Rows kept.", ["log"], [([name], one.kept_rows) for name, one in logs.items()]
    )
    yield gauge(
        "headgate_log_kept_bytes", "Bytes kept.", ["log"], [([name], one.kept_bytes) for name, one in logs.items()]
    )
    yield gauge("headgate_log_files", "Files kept.", ["log"], [([name], one.chunks) for name, one in logs.items()])

    # fragments
    yield counter(
        "headgate_fragment_rows_read",
        "Rows read since the engine was started.",
        ["fragment"],
        [([name], one.rows_in) for name, one in fragments.items()],
    )
    yield counter(
        "headgate_fragment_rows_written",
        "Rows put out since the engine was started.",
        ["fragment"],
        [([name], one.rows_out) for name, one in fragments.items()],
    )
    yield gauge(
        "headgate_fragment_waiting_rows",
        "Rows of a log that have come and are not answered yet.",
        ["fragment", "log"],
        [([name, log], rows) for name, one in fragments.items() for log, rows in one.reads.items()],
    )

    # queries
    yield counter(
        "headgate_query_results", "Results.", ["query"], [([name], one.results) for name, one in queries.items()]
    )
    yield counter(
        "headgate_query_epochs", "Epochs.", ["query"], [([name], one.epochs) for name, one in queries.items()]
    )
    yield gauge(
        "headgate_query_complete_timestamp_seconds",
        "Up to when results are complete, if the query's time is that of a calendar.",
        ["query"],
        [([name], _epoch_seconds(one.complete)) for name, one in queries.items()],
    )
    yield gauge(
        "headgate_query_held_back",
        "1 if tuples wait because a stream is not complete.",
        ["query"],
        [([name], float(bool(one.why.held_by))) for name, one in queries.items()],
    )
    yield gauge(
        "headgate_query_failed",
        "1 if a query has failed.",
        ["query"],
        [([name], float(one.trouble is not None)) for name, one in queries.items()],
    )
    yield counter(
        "headgate_query_skipped_rows",
        "Rows that a query has left out because they could not be evaluated.",
        ["query"],
        [([name], one.skipped) for name, one in queries.items() if one.skipped is not None],
    )
    yield gauge(
        "headgate_query_answer_age_seconds",
        "How old the last answers were, from when their tuples began to be read, on the average.",
        ["query"],
        [([name], one.age_seconds) for name, one in queries.items()],
    )

    # sinks
    yield gauge(
        "headgate_sink_waiting_rows",
        "Results that the sink has not taken yet.",
        ["query"],
        [([name], one.sink.waiting_rows) for name, one in queries.items()],
    )
    yield gauge(
        "headgate_sink_failed",
        "1 if the sink takes no results.",
        ["query"],
        [([name], float(one.sink.trouble is not None)) for name, one in queries.items()],
    )
    yield gauge(
        "headgate_group_sink_failed",
        "1 if the sink of a group of queries takes no results.",
        ["group"],
        [
            ([name], float(one.sink.trouble is not None))
            for name, one in _some(overview.groups).items()
            if one.sink is not None
        ],
    )


def _some(everything: Mapping[str, V]) -> dict[str, V]:
    return dict(list(everything.items())[:NAMES])


def _filled(metric: Any, samples: Iterable[tuple[list[str], float | None]]) -> Metric:
    for labels, value in samples:
        if value is not None:
            metric.add_metric(list(map(shown, labels)), value)
    return metric


def _epoch_seconds(instant: Any) -> float | None:
    return instant.timestamp() if isinstance(instant, datetime) else None


class Measured:
    """Counts requests and how long they took, by the route that answered and never by the path that was asked for."""

    def __init__(self, app: ASGIApp, metrics: Metrics, log: Any) -> None:
        self.app = app
        self.metrics = metrics
        self.log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, events = time.perf_counter(), 500, False

        async def sent(message: Message) -> None:
            nonlocal status, events
            if message["type"] == "http.response.start":
                status = message["status"]
                events = any(value.startswith(b"text/event-stream") for _, value in message.get("headers", ()))
            await send(message)

        try:
            await self.app(scope, receive, sent)
        finally:
            took = time.perf_counter() - began
            route = getattr(scope.get("route"), "path", "none")
            method = scope["method"] if scope["method"] in METHODS else "other"
            self.metrics.requests.labels(method, route, str(status)).inc()
            if not events:
                self.metrics.seconds.labels(route).observe(took)
            client = (scope.get("client") or ("",))[0]
            fields = {"method": method, "route": route, "status": status, "seconds": round(took, 6), "client": client}
            self.log.info("request", extra={"fields": fields})


METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")
