"""A collector of OpenTelemetry that speaks OTLP over HTTP, and remembers what it was sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Received:
    """A collector: what it was sent, as OTLP has it."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[str | None] = []
        self.status = 200
        self.hangs = False
        self.over = threading.Event()

    def names(self) -> list[str]:
        scopes = [scope for one in self.requests for resource in one.resource_spans for scope in resource.scope_spans]
        return [span.name for scope in scopes for span in scope.spans]

    def service(self) -> str:
        attributes = self.requests[0].resource_spans[0].resource.attributes
        return next(one.value.string_value for one in attributes if one.key == "service.name")


@contextmanager
def collecting(port: int = 0) -> Iterator[tuple[Received, int]]:
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if received.hangs:
                received.over.wait(30)
                return
            assert self.path == "/v1/traces"
            if received.status == 200:
                received.headers.append(self.headers.get("x-key"))
                received.requests.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(received.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Be quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield received, server.server_address[1]
    finally:
        received.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
