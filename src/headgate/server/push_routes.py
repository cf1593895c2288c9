"""Routes that take rows and heartbeats."""

from __future__ import annotations

from fastapi import APIRouter, Request

from headgate.errors import UserError
from headgate.server import examples
from headgate.server.json_answer import Json
from headgate.server.office import Office
from headgate.server.pushing import numbered_by
from headgate.server.receiving import kind_of


def push_routes(office: Office) -> APIRouter:
    """Make the routes by which rows come in."""
    routes = APIRouter(tags=["rows"])
    desk, bodies, inputs = office.desk, office.bodies, office.inputs

    @routes.post("/streams/{name}", **examples.PUSH)
    async def push(name: str, request: Request) -> Json:
        """Push rows to a stream or relation. They are durable when the answer comes."""
        inputs.inlet(name)  # before the body is read
        numbered, kind = numbered_by(request.headers), kind_of(request)
        async with bodies.whole(request) as body:
            return Json(await office.work(desk.take, name, kind, body, numbered))

    @routes.post("/streams/{name}/heartbeat", **examples.HEARTBEAT)
    async def promise(name: str, request: Request) -> Json:
        """Say that nothing stamped up to an instant will still come: a watermark."""
        if kind_of(request) != "application/json":
            raise UserError("bad-content-type", "a heartbeat is JSON", hint="Content-Type: application/json")
        async with bodies.whole(request, office.limits.heartbeat_bytes) as body:
            return Json(await office.work(desk.promise, name, bytes(body)))

    return routes
