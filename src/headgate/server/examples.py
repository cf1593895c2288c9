"""What OpenAPI says of each route: the bodies that it takes and gives, with examples.

The examples are one story, in the order of `STORY`; a test sends every request of it and compares the answers.
"""

from __future__ import annotations

from typing import Any

from fastapi import Response

ERROR = {
    "type": "object",
    "required": ["code", "message", "detail", "hint"],
    "properties": {
        "code": {"type": "string", "description": "Stable, in kebab-case."},
        "message": {"type": "string"},
        "place": {"type": "object", "description": "Where in the text or body: line, column, start, end, caret."},
        "detail": {"type": "string"},
        "hint": {"type": "string"},
    },
}
REFUSED = {
    "code": "no-such-stream",
    "message": 'stream "sale" does not exist',
    "place": {
        "line": 1,
        "column": 36,
        "start": 35,
        "end": 39,
        "caret": "  --> request:1\n  1 | CREATE QUERY q AS SELECT shop FROM sale [NOW];\n"
        "    |                                    ^^^^",
    },
    "detail": 'There are "sales".',
    "hint": 'Did you mean "sales"?',
    "answers": [],
}

CQL = (
    "CREATE STREAM sales (shop STRING, amount INT); "
    "CREATE QUERY large AS SELECT ISTREAM(shop, amount) FROM sales [NOW] WHERE amount > 10;"
)
CREATED = {
    "answers": [
        {"kind": "stream", "name": "sales", "did": "created"},
        {"kind": "query", "name": "large", "did": "created"},
    ]
}
MISTAKEN = "CREATE QUERY q AS SELECT shop FROM sale [NOW];"
ROWS = [{"_time": 1, "shop": "a", "amount": 12}, {"_time": 2, "shop": "b", "amount": 7}]
TAKEN = {"taken": 2, "dead": {}, "heartbeat": 1}
PROMISE = {"to": 2}
PROMISED = {"heartbeat": 2}
PAGE = {
    "position": "5f3a09c1e2b44d0f-1",
    "more": False,
    "complete": 2,
    "rows": [{"_time": 1, "shop": "a", "amount": 12}],
}
EVENT = (
    'id: 5f3a09c1e2b44d0f-1\nevent: results\ndata: {"position":"5f3a09c1e2b44d0f-1","complete":2,'
    '"rows":[{"_time":1,"shop":"a","amount":12}]}\n\n'
)
WHY_SAID: dict[str, Any] = {
    "kind": "why",
    "query": "large",
    "complete": "2",
    "held_by": "",
    "since_s": None,
    "cause": "",
    "releases": [],
    "inputs": [{"stream": "sales", "complete": "2", "state": "speaking", "waiting": 0, "of": ""}],
    "groups": {},
    "reflects": "the first 2 tuples of sales, up to 2",
    "adapted": [],
    "trouble": "",
    "skipped": 0,
    "text": 'query "large" is complete up to 2\nits answers reflect the first 2 tuples of sales, up to 2\n'
    "nothing holds it back\n  sales  complete up to 2, speaking",
}
DROPPED = {"answers": [{"kind": "query", "name": "large", "did": "dropped"}]}

TYPED = {"before": "SELECT am", "after": " FROM sales [NOW];"}
OFFERED = {"typed": "am", "candidates": [{"text": "amount", "kind": "column INT"}]}

STORY = (
    ("POST", "/statements", {"cql": CQL}, CREATED),
    ("POST", "/statements", {"cql": MISTAKEN}, REFUSED),
    ("POST", "/completions", TYPED, OFFERED),
    ("POST", "/streams/sales", ROWS, TAKEN),
    ("POST", "/streams/sales/heartbeat", PROMISE, PROMISED),
    ("GET", "/queries/large/results", None, PAGE),
    ("GET", "/queries/large/why", None, WHY_SAID),
    ("DELETE", "/queries/large", None, DROPPED),
)
"""Requests with their bodies and answers. Positions differ in what names the results."""


def _route(answer: Any, kind: str = "application/json", body: dict[str, Any] | None = None) -> dict[str, Any]:
    """What a decorator of a route is told: the answer, the errors, and the body if there is one."""
    errors = {"description": "A refusal.", "content": {"application/json": {"schema": ERROR, "example": REFUSED}}}
    said: dict[str, Any] = {
        "responses": {200: {"description": "Done.", "content": {kind: {"example": answer}}}, "4XX": errors}
    }
    if kind != "application/json":
        said["response_class"] = Response
    if body is not None:
        said["openapi_extra"] = {"requestBody": {"required": True, "content": body}}
    return said


PUSH = _route(
    TAKEN,
    body={
        "application/json": {"schema": {"type": "array", "items": {}}, "example": ROWS},
        "application/x-ndjson": {
            "schema": {"type": "string"},
            "example": '{"_time": 1, "shop": "a", "amount": 12}\n{"_time": 2, "shop": "b", "amount": 7}\n',
        },
        "text/csv": {"schema": {"type": "string"}, "example": "_time,shop,amount\n1,a,12\n2,b,7\n"},
    },
)
HEARTBEAT = _route(
    PROMISED,
    body={
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["to"],
                "properties": {"to": {"type": ["integer", "string"]}, "source": {"type": "string"}},
            },
            "example": PROMISE,
        }
    },
)
STATEMENTS = _route(
    CREATED,
    body={
        "application/json": {
            "schema": {"type": "object", "required": ["cql"], "properties": {"cql": {"type": "string"}}},
            "example": {"cql": CQL},
        },
        "application/sql": {"schema": {"type": "string"}, "example": CQL},
    },
)
COMPLETIONS = _route(
    OFFERED,
    body={
        "application/json": {
            "schema": {
                "type": "object",
                "required": ["before"],
                "properties": {"before": {"type": "string"}, "after": {"type": "string"}},
            },
            "example": TYPED,
        }
    },
)
QUERY = _route({"name": "large", "kind": "stream", "complete": 2, "results": 1, "position": PAGE["position"]})
EXPLAIN = _route({"query": "large", "text": "query large (stream)\n\n-- with all defaults\n..."})
WHY = _route(WHY_SAID)
TRACE = _route({"query": "large", "heartbeats": [{"id": 1, "instant": "2", "took_us": 412000, "stops": {}}]})
DROP = _route(DROPPED)
RESULTS = _route(PAGE)
ERRORS = _route(
    {
        "position": PAGE["position"],
        "more": False,
        "complete": 2,
        "rows": [
            {
                "_time": 2,
                "row": '{"shop":"b","amount":"seven"}',
                "expression": "CAST(amount AS INT)",
                "operator": "select list",
                "error": '[CAST_INVALID_INPUT] The value \'seven\' of the type "STRING" cannot be cast to "INT"',
            }
        ],
    }
)
EARLY = _route(
    {
        "partial": True,
        "complete": 2,
        "upto": 5,
        "consistent": True,
        "tuples": {"sales": 4},
        "left_out": 0,
        "rows": [{"_time": 5, "shop": "a", "amount": 30}],
    }
)
LIVE = _route(EVENT, "text/event-stream")
STATUS = _route(
    {
        "version": "0.1.0",
        "running": True,
        "streams": {"sales": {"taken": 2, "taken_rate": 0.2, "heartbeat": 2, "silent": False}},
        "queries": {"large": {"complete": 2, "results": 1, "why": {"held_by": ""}}},
    }
)
METRICS = _route('headgate_stream_tuples_total{stream="sales"} 2.0\n', "text/plain")
HEALTH = _route({"status": "ok"})
READY = _route({"status": "ready"})
