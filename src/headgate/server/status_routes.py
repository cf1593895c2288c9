"""Routes that say how the engine is."""

from __future__ import annotations

from fastapi import APIRouter, Response

from headgate.errors import UserError
from headgate.server import examples
from headgate.server.json_answer import Json
from headgate.server.metrics import CONTENT_TYPE
from headgate.server.office import Office
from headgate.server.refusals import stopping


def status_routes(office: Office) -> APIRouter:
    """Make the routes for those who watch."""
    routes = APIRouter(tags=["status"])

    @routes.get("/status", **examples.STATUS)
    async def status() -> Json:
        """Say how everything is: streams, logs, fragments, queries, sinks, rates, and what holds queries back."""
        return Json(await office.look(office.status.to_json))

    @routes.get("/metrics", **examples.METRICS)
    async def metrics() -> Response:
        """Give metrics for Prometheus."""
        return Response(await office.look(office.metrics.text), media_type=CONTENT_TYPE)

    @routes.get("/health", **examples.HEALTH)
    async def health() -> Json:
        """Say that the process answers. It needs no token."""
        return Json({"status": "ok"})

    @routes.get("/ready", **examples.READY)
    async def ready() -> Json:
        """Say whether the engine runs its queries, and takes requests. It needs no token."""
        if office.desk.stopping:
            raise stopping()
        if not office.engine.running:
            raise UserError("not-ready", "the engine does not run its queries", hint="Ask again in some seconds.")
        return Json({"status": "ready"})

    return routes
