"""The server as an ASGI application.

    POST /streams/{name}               rows: JSON, NDJSON or CSV -> {"taken": 2, "dead": {"late": 1}, "heartbeat": 17}
    POST /streams/{name}/heartbeat     {"to": 17, "source": "a"} -> {"heartbeat": 17}
    GET  /status /metrics              how everything is, for programs and for Prometheus
    GET  /health /ready                probes

An engine that is served takes statements and gives out results, too:

    POST   /statements                 {"cql": "CREATE ..."} -> {"answers": [...]}
    GET    /queries/{name}             and .../explain, .../why, .../trace
    DELETE /queries/{name}
    GET    /queries/{name}/results     a page behind a position
    GET    /queries/{name}/errors      rows that it has left out (ON ERROR SKIP)
    GET    /queries/{name}/early       what it answers before its input is complete
    GET    /queries/{name}/live        results as they come, as server-sent events
    GET    /openapi.json               all of this with examples
    GET    /                           the console, whose files are below /console/
    POST   /completions                how a text in its editor can go on

Routes are thin: what they do is done by `pushing`, `statements`, `pages`, `live`, `status` and `metrics`.
"""

from __future__ import annotations

import logging

from fastapi import FastAPI
from fastapi.routing import APIRoute

from headgate import __version__
from headgate.server.console_routes import console_routes
from headgate.server.guard import Guard
from headgate.server.limits import Limits
from headgate.server.live import Followers
from headgate.server.metrics import Measured
from headgate.server.office import Office
from headgate.server.push_routes import push_routes
from headgate.server.query_routes import query_routes
from headgate.server.refusals import answer_errors
from headgate.server.served import Served
from headgate.server.serving import Serving
from headgate.server.statements import Clerk
from headgate.server.status_routes import status_routes
from headgate.sources.inputs import Inputs

ABOUT = "Continuous queries in CQL: rows and statements come in, results and how everything is go out."


def application(
    engine: Served,
    inputs: Inputs,
    token: str | None = None,
    serving: Serving | None = None,
    limits: Limits | None = None,
) -> FastAPI:
    """Make the application: with `serving`, all of it; without, only what takes rows and shows the status.

    `Listener` stops its `state.office`.
    """
    limits = limits or (serving.limits if serving is not None else Limits())
    office = Office(engine, inputs, limits)
    pages = "/openapi.json" if serving is not None else None
    app = FastAPI(
        title="headgate", version=__version__, description=ABOUT, docs_url=None, redoc_url=None, openapi_url=pages
    )
    app.state.office = office
    routers = [push_routes(office), status_routes(office)]
    if serving is not None:
        clerk = Clerk(engine, serving.allowed, limits)
        followers = Followers(engine, limits, office.look, lambda: office.desk.stopping)
        office.on_stop += [followers.bell.ring, clerk.stop]
        routers += [query_routes(office, clerk, followers), console_routes(office)]
    for router in routers:
        app.include_router(router)
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    answer_errors(app, [f"{min(route.methods or ())} {route.path}" for route in routes])
    app.add_middleware(Guard, token=token, limits=limits, is_stopping=lambda: office.desk.stopping)
    app.add_middleware(Measured, metrics=office.metrics, log=logging.getLogger("headgate.http"))
    return app
