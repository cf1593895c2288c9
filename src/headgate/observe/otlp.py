"""Sends spans to a collector by OTLP, for programs that have configured no OpenTelemetry: the command line.

Where they go is said by OpenTelemetry's own environment variables, such as OTEL_EXPORTER_OTLP_ENDPOINT,
OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME and OTEL_TRACES_SAMPLER. A collector that is down is told of once, and
once more when it is back; spans that it did not take are lost.

Importing this module needs the SDK of OpenTelemetry.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from importlib import import_module

from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from headgate import __version__
from headgate.errors import UserError
from headgate.observe.spans import missing

CLOSE_SECONDS = 5.0
"""How long the last spans may take when the program ends."""

PROTOCOLS = {"http/protobuf": "http", "grpc": "grpc"}
"""The protocols, and the packages opentelemetry-exporter-otlp-proto-... that speak them."""


class Collector:
    """A tracer provider whose spans go to a collector, in batches and in a thread of its own."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        """`tell` hears of it when the collector goes away, and when it is back."""
        self._tell = tell
        resource = Resource.create()
        if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
            resource = resource.merge(Resource({SERVICE_NAME: "headgate", SERVICE_VERSION: __version__}))
        self.provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.provider.add_span_processor(BatchSpanProcessor(_Told(_exporter(), tell)))

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self, wait_s: float = CLOSE_SECONDS) -> None:
        """Send what waits, but no longer than that: a collector that hangs holds nobody up."""
        thread = threading.Thread(target=self.provider.shutdown, name="last spans", daemon=True)
        thread.start()
        thread.join(wait_s)
        if thread.is_alive():
            self._tell(f"the collector has not taken the last spans within {wait_s:g} s; they are lost")


class _Told(SpanExporter):
    """An exporter that tells when its collector goes away, and when it is back."""

    def __init__(self, exporter: SpanExporter, tell: Callable[[str], None]) -> None:
        self._exporter = exporter
        self._tell = tell
        self._away = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans; say whether they were taken."""
        taken = self._exporter.export(spans)
        away = taken is not SpanExportResult.SUCCESS
        if away != self._away:
            self._away = away
            self._tell(
                "the collector takes no spans: heartbeats are not traced meanwhile, and all else goes on"
                if away
                else "the collector takes spans again"
            )
        return taken

    def shutdown(self) -> None:
        """Let go of the collector."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what the exporter keeps."""
        return self._exporter.force_flush(timeout_millis)


def _exporter() -> SpanExporter:
    """Return the exporter that the environment asks for. What it logs of a collector that is down, we tell once."""
    variables = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    protocol = next((found for name in variables if (found := os.environ.get(name, "").strip())), "http/protobuf")
    if protocol not in PROTOCOLS:
        raise UserError(
            "bad-option",
            f'OTEL_EXPORTER_OTLP_PROTOCOL is "{protocol}", which is not spoken here',
            hint=f"{' or '.join(PROTOCOLS)}.",
        )
    package = f"opentelemetry.exporter.otlp.proto.{PROTOCOLS[protocol]}"
    try:
        made: SpanExporter = import_module(f"{package}.trace_exporter").OTLPSpanExporter()
    except ImportError:
        raise missing(f"opentelemetry-exporter-otlp-proto-{PROTOCOLS[protocol]}") from None
    logging.getLogger(package).setLevel(logging.CRITICAL)
    return made
