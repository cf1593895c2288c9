"""Routes of the console: the page at `/`, the files that it needs, and completion for its editor.

The files are read once, when the server starts; a path that names none of them is no page. They hold no data, so they
need no token: the page asks for it, and sends it with every request for data. A browser takes nothing for the page from
anywhere else, and runs no script that is not one of these files.
"""

from __future__ import annotations

from dataclasses import asdict
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request
from fastapi.responses import Response

from headgate.editing.completion import completions
from headgate.errors import UserError
from headgate.server import examples
from headgate.server.json_answer import Json
from headgate.server.office import Office
from headgate.server.reading_json import members
from headgate.server.receiving import kind_of

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""The Content-Security-Policy of the page."""

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""The content types of what is served, by the ending of its name. Other files of the folder are not served."""

CANDIDATES = 50
"""How many completions are offered at once."""


def console_routes(office: Office) -> APIRouter:
    """Make the routes of the console."""
    routes = APIRouter(tags=["console"])
    found = served_files(files("headgate.server") / "console")

    @routes.get("/", include_in_schema=False)
    async def page() -> Response:
        """Give the page."""
        return given("index.html")

    @routes.get("/console/{path:path}", include_in_schema=False)
    async def part(path: str) -> Response:
        """Give a file that the page needs."""
        return given(path)

    @routes.post("/completions", **examples.COMPLETIONS)
    async def complete(request: Request) -> Json:
        """Say how a statement can go on between the text before the cursor and the text after it."""
        if kind_of(request) != "application/json":
            raise UserError("bad-content-type", "a text to complete is JSON", hint="Content-Type: application/json")
        async with office.bodies.whole(request, office.limits.statement_bytes) as body:
            before, after = await office.read(texts_of, bytes(body))
        known = await office.look(completions, before, office.engine.catalog, after)
        candidates = [asdict(one) for one in known.candidates[:CANDIDATES]]
        return Json({"typed": known.typed, "candidates": candidates})

    def given(path: str) -> Response:
        if path not in found:
            raise UserError("no-such-page", f'the console has no file "{path[:100]}"')
        return Response(
            found[path],
            media_type=TYPES[path.rpartition(".")[2]],
            headers={"Content-Security-Policy": POLICY, "Cross-Origin-Opener-Policy": "same-origin"},
        )

    return routes


def served_files(folder: Traversable, below: str = "") -> dict[str, bytes]:
    """Return the files of a folder that are served, by their path in it."""
    found: dict[str, bytes] = {}
    for one in folder.iterdir():
        if one.is_dir():
            found |= served_files(one, f"{below}{one.name}/")
        elif one.name.rpartition(".")[2] in TYPES:
            found[f"{below}{one.name}"] = one.read_bytes()
    return found


def texts_of(body: bytes) -> tuple[str, str]:
    """Return the text before the cursor and the text after it: {"before": "SELECT ", "after": ";"}."""
    wrong = UserError("bad-body", "a text to complete is JSON", hint='{"before": "SELECT ", "after": ""}')
    said = members(body, wrong, needs=set(), takes={"before", "after"})
    before, after = said.get("before"), said.get("after", "")
    if not isinstance(before, str) or not isinstance(after, str):
        raise wrong
    return before, after
