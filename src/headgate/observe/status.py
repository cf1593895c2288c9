"""The status of a running engine for other processes: a small file in its directory, replaced as a whole.

{"at": "2026-01-31T12:00:00+00:00", "process": 4711,
 "queries": {"alerts": {"query": "alerts", "held_by": "pressure", ..., "text": "..."}},
 "traces": {"alerts": {"streams": ["pressure"], ...}},
 "troubles": {"streams": {}, "queries": {}, "sinks": {"alerts": "table cannot be written: ..."}}, "crc": "5f0d0a2e"}
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headgate.errors import UserError, unknown
from headgate.heartbeat.why import Why
from headgate.log.checksum import sealed, unsealed
from headgate.observe.trace import Traces

FILE = "status.json"
OLD_S = 10
"""After how many seconds a status counts as old."""


def write(
    directory: Path,
    reasons: Mapping[str, Why],
    traces: Mapping[str, Traces] | None = None,
    troubles: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Replace the status: why each query has come no further, its traces, and what has failed."""
    queries = {name: {**asdict(reason), "text": str(reason)} for name, reason in reasons.items()}
    told = {name: {"reflects": reason.reflects} for name, reason in reasons.items() if reason.reflects}
    traced = {name: one.to_json() | told.get(name, {}) for name, one in (traces or {}).items()}
    staged = directory / f".{FILE}.staged"
    at = datetime.now(UTC).isoformat()
    said = {"at": at, "process": os.getpid(), "queries": queries, "traces": traced, "troubles": troubles or {}}
    staged.write_text(sealed(said))
    staged.rename(directory / FILE)


@dataclass(frozen=True, slots=True)
class Said:
    """The last status of an engine, how old it is, and whether the engine still runs."""

    status: dict[str, Any]
    ago_s: float
    running: bool

    def note(self) -> str:
        """Return a warning that the status is old; nothing if the engine runs and has just written it."""
        if not self.running:
            return f"no engine runs there any more; the last one said this {self.ago_s:.0f} s ago"
        return f"the engine said so {self.ago_s:.0f} s ago, and nothing since" if self.ago_s > OLD_S else ""


def last(directory: Path) -> Said:
    """Return the last status of the engine that works, or worked, in a directory."""
    return _said(directory)


def read(directory: Path, query: str) -> tuple[dict[str, Any], Said]:
    """Return why a query has come no further, by the last status of the engine."""
    said = _said(directory)
    held = said.status.get("troubles", {}).get("quarantine", {})
    why = next((why for name, why in held.items() if name.lower() == f"query {query}".lower()), None)
    if why is not None:
        raise UserError("in-quarantine", f'query "{query}" is in quarantine', detail=why)
    return _of(query, said.status["queries"]), said


def read_traces(directory: Path, query: str) -> tuple[Traces, Said]:
    """Return the last heartbeats of a query, by the last status of the engine."""
    said = _said(directory)
    _of(query, said.status["queries"])
    if "traces" not in said.status:
        raise UserError(
            "no-traces", f'the engine that left word in "{directory}" told nothing of heartbeats', hint="Start it anew."
        )
    return Traces.from_json(_of(query, said.status["traces"])), said


def working(directory: Path) -> int | None:
    """Return the process of the engine that works in a directory; None if none does."""
    try:
        with (directory / "lock").open() as lock:
            process = int(lock.read().strip() or 0)
            try:  # a number says little: after a restart another process may have it
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return process
            except OSError:  # nothing can be locked there
                return process if process and _alive(process) else None
    except (OSError, ValueError):
        pass
    return None


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _said(directory: Path) -> Said:
    process = working(directory)
    try:
        status = unsealed((directory / FILE).read_bytes(), directory / FILE)
    except OSError:
        status = None
    if process is not None and (status is None or status.get("process", process) != process):
        raise UserError(
            "engine-starting",
            f'the engine in "{directory}" is starting, and has not said anything yet',
            detail=f"It is process {process}.",
            hint="Ask again in some seconds.",
        )
    if status is None:
        raise UserError(
            "no-engine",
            f'no engine has left word in "{directory}"',
            detail="An engine with a directory of its own says there, while it runs, how its queries are.",
            hint=f"headgate run SCRIPT --directory {directory}",
        )
    return Said(status, (datetime.now(UTC) - datetime.fromisoformat(status["at"])).total_seconds(), process is not None)


def _of(query: str, known: Mapping[str, Any]) -> Any:
    found = {name.lower(): name for name in known}
    if query.lower() not in found:
        raise unknown("query", query, known)
    return known[found[query.lower()]]
