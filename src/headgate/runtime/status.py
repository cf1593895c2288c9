"""What a running engine says of itself to those outside: a small file in its directory, replaced as a whole.

{"at": "2026-01-31T12:00:00+00:00", "queries": {"alerts": {"query": "alerts", "held_by": "pressure", ..., "text": "..."}},
 "traces": {"alerts": {"streams": ["pressure"], ...}},
 "troubles": {"streams": {}, "queries": {}, "sinks": {"alerts": "table cannot be written: ..."}}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headgate.catalog import unknown
from headgate.errors import UserError
from headgate.heartbeat.why import Why
from headgate.runtime.trace import Traces

FILE = "status.json"


def write(
    directory: Path, reasons: Mapping[str, Why], traces: Mapping[str, Traces] | None = None,
    troubles: Mapping[str, Mapping[str, str]] | None = None,
) -> None:  # fmt: skip
    queries = {name: {**asdict(reason), "text": str(reason)} for name, reason in reasons.items()}
    traced = {name: one.to_json() for name, one in (traces or {}).items()}
    staged = directory / f".{FILE}.staged"
    said = {"at": datetime.now(UTC).isoformat(), "queries": queries, "traces": traced, "troubles": troubles or {}}
    staged.write_text(json.dumps(said))
    staged.rename(directory / FILE)


def read(directory: Path, query: str) -> tuple[dict[str, Any], float]:
    """Why a query has come no further, as a running engine last said it, and how many seconds ago that was."""
    status, ago_s = _status(directory)
    return _of(query, status["queries"]), ago_s


def read_traces(directory: Path, query: str) -> tuple[Traces, float]:
    """The last heartbeats of a query, as a running engine last told of them, and how many seconds ago that was."""
    status, ago_s = _status(directory)
    _of(query, status["queries"])
    if "traces" not in status:
        raise UserError(
            "no-traces", f'the engine that left word in "{directory}" told nothing of heartbeats', hint="Start it anew."
        )
    return Traces.from_json(_of(query, status["traces"])), ago_s


def _status(directory: Path) -> tuple[dict[str, Any], float]:
    try:
        status = json.loads((directory / FILE).read_text())
    except OSError:
        raise UserError(
            "no-engine", f'no engine has left word in "{directory}"',
            detail="An engine with a directory of its own says there, while it runs, how its queries are.",
            hint=f"headgate run SCRIPT --directory {directory}",
        ) from None  # fmt: skip
    return status, (datetime.now(UTC) - datetime.fromisoformat(status["at"])).total_seconds()


def _of(query: str, known: Mapping[str, Any]) -> Any:
    found = {name.lower(): name for name in known}
    if query.lower() not in found:
        raise unknown("query", query, known)
    return known[found[query.lower()]]
