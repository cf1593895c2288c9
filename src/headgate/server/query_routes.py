"""Routes for statements, and for queries and their results."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from headgate.catalog.entries import errors_name
from headgate.errors import UserError
from headgate.observe.overview import plain
from headgate.server import examples
from headgate.server.answers import why_of
from headgate.server.early import early_page
from headgate.server.event_stream import EventStream
from headgate.server.json_answer import Json
from headgate.server.live import Followers
from headgate.server.office import Office
from headgate.server.pages import Page, page_of
from headgate.server.positions import Position, position_in
from headgate.server.reading_json import members
from headgate.server.receiving import kind_of
from headgate.server.refusals import refusal
from headgate.server.served import ServedQuery
from headgate.server.shares import client_of
from headgate.server.statements import Clerk, Outcome
from headgate.sql import spelled

After = Annotated[str | None, Query(description='A position, "beginning" or "end".', max_length=100)]


def query_routes(office: Office, clerk: Clerk, followers: Followers) -> APIRouter:
    """Make the routes by which statements come in and results go out."""
    routes = APIRouter(tags=["queries"])
    engine, limits = office.engine, office.limits

    @routes.post("/statements", **examples.STATEMENTS)
    async def execute(request: Request) -> Json:
        """Carry out CQL statements, one by one."""
        kind = kind_of(request)
        async with office.bodies.whole(request, limits.statement_bytes) as body:
            cql = await office.read(text_of, kind, bytes(body))
        return answered(await clerk.carry_out(cql, client_of(request.scope)))

    @routes.get("/queries/{name}", **examples.QUERY)
    async def query(name: str) -> Json:
        """Say what a query is, and how far its results are."""
        running = engine.query(name)
        overview, _ = await office.look(office.status.look)
        if running.name not in overview.queries:
            raise UserError("no-such-query", f'query "{name}" is being created', hint="Ask again in a second.")
        last = Position(position_in(running, None).edition, running.last_position)
        return Json({"name": running.name, **plain_view(overview, running.name), "position": str(last)})

    @routes.get("/queries/{name}/explain", **examples.EXPLAIN)
    async def explain(name: str) -> Json:
        """Say how a query is computed: its plan, its fragments, what it keeps, and the SQL of an epoch."""
        running = engine.query(name)
        return Json({"query": running.name, "text": await office.look(in_turn, office, running.explain)})

    @routes.get("/queries/{name}/why", **examples.WHY)
    async def why(name: str) -> Json:
        """Say why a query has come no further."""
        return Json(why_of(await office.look(in_turn, office, engine.query(name).why)))

    @routes.get("/queries/{name}/trace", **examples.TRACE)
    async def trace(name: str) -> Json:
        """Say when each stop on the way from the streams to the sink saw the last heartbeats (watermarks)."""
        running = engine.query(name)
        return Json({"query": running.name, "heartbeats": await office.look(traced, office, running)})

    @routes.delete("/queries/{name}", **examples.DROP)
    async def drop(request: Request, name: str) -> Json:
        """Drop a query."""
        held = engine.catalog.in_quarantine(name, ("query",))
        known = held.name if held is not None else engine.query(name).name
        return answered(await clerk.carry_out(f"DROP QUERY {spelled(known)};", client_of(request.scope)))

    @routes.get("/queries/{name}/results", **examples.RESULTS)
    async def results(
        name: str, after: After = None, limit: Annotated[int, Query(ge=1)] = limits.page_rows
    ) -> Response:
        """Give a page of results, in order, behind a position."""
        running = engine.query(name)
        position = position_in(running, after)
        page = await office.look(page_of, running, position, min(limit, limits.most_page_rows), limits)
        return Response(written(page, running), media_type="application/json")

    @routes.get("/queries/{name}/errors", **examples.ERRORS)
    async def errors(name: str, after: After = None, limit: Annotated[int, Query(ge=1)] = limits.page_rows) -> Response:
        """Give a page of the rows that a query with ON ERROR SKIP has left out. The first ones have their error."""
        owner = engine.query(name).name
        engine.errors(owner, ())  # refused here if it leaves nothing out
        running = engine.query(errors_name(owner))
        position = position_in(running, after)
        page = await office.look(page_of, running, position, min(limit, limits.most_page_rows), limits)
        rows = await office.look(engine.errors, owner, [json.loads(row) for row in page.rows])
        return Response(
            written(replace(page, rows=tuple(json.dumps(row).encode() for row in rows)), running),
            media_type="application/json",
        )

    @routes.get("/queries/{name}/early", **examples.EARLY)
    async def early(name: str) -> Response:
        """Give the early answer that holds now: partial results beyond the last complete instant (EMIT EARLY)."""
        page = await office.look(early_page, engine.query(name), limits)
        return Response(page.to_json(), media_type="application/json")

    @routes.get("/queries/{name}/live", **examples.LIVE)
    async def live(
        request: Request,
        name: str,
        after: After = None,
        last_event_id: Annotated[str | None, Header(max_length=100)] = None,
    ) -> Response:
        """Follow results as they come, as server-sent events, behind a position or the last event that was seen.

        Events of the kind `early` are partial, replace each other, and have no position.
        """
        client = client_of(request.scope)
        followers.places.check(client)
        running = engine.query(name)
        await office.look(running.page, running.last_position, 1)  # refused here if its results go elsewhere
        position = position_in(running, last_event_id or after)
        followers.places.enter(client)
        office.metrics.followers.set(followers.places.taken)

        def ended(let_go: bool) -> None:
            followers.places.leave(client)
            office.metrics.followers.set(followers.places.taken)
            office.metrics.let_go.inc(int(let_go))

        return EventStream(followers.follow(running.name, position), office.metrics.sent.inc, ended)

    return routes


def text_of(kind: str, body: bytes) -> str:
    """Return the CQL in a body: {"cql": "..."} as JSON, or the text itself as application/sql."""
    wrong = UserError("bad-body", "statements are JSON or SQL", hint='{"cql": "SHOW QUERIES;"}')
    match kind:
        case "application/sql":
            try:
                return body.decode()
            except ValueError:
                raise wrong from None
        case "application/json":
            cql = members(body, wrong, needs={"cql"}, takes={"cql"})["cql"]
            if not isinstance(cql, str):
                raise wrong
            return cql
        case _:
            raise UserError(
                "bad-content-type",
                f'statements cannot be read from a body of type "{kind[:100]}"',
                hint="Content-Type: application/json, or application/sql",
            )


def answered(outcome: Outcome) -> Json:
    """Return what became of statements; of a text that failed, also what was done before the mistake."""
    if outcome.error is not None:
        missing = outcome.error.code.startswith("no-such-")  # a name in the text, not the page that was asked for
        return refusal(outcome.error, 400 if missing else None, answers=outcome.answers)
    return Json({"answers": outcome.answers})


def in_turn(office: Office, work: Any) -> Any:
    """Do something while nothing changes."""
    with office.engine.turn:
        return work()


def traced(office: Office, query: ServedQuery) -> list[dict[str, Any]]:
    """Return the last heartbeats of a query."""
    with office.engine.turn:
        return query.traces.rows()


def plain_view(overview: Any, name: str) -> dict[str, Any]:
    """Return what the status says of one query."""
    found: dict[str, Any] = overview.to_json()["queries"][name]
    return found


def written(page: Page, query: ServedQuery) -> bytes:
    """Return a page as JSON."""
    more = page.position.count < query.last_position
    about = {"position": str(page.position), "more": more, "complete": plain(query.complete)}
    return json.dumps(about).encode()[:-1] + b', "rows": [' + b", ".join(page.rows) + b"]}"
