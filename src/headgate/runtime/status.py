"""What a running engine says of itself to those outside: a small file in its directory, replaced as a whole.

{"at": "2026-01-31T12:00:00+00:00", "queries": {"alerts": {"query": "alerts", "held_by": "pressure", ..., "text": "..."}}}
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

FILE = "status.json"


def write(directory: Path, reasons: Mapping[str, Why]) -> None:
    queries = {name: {**asdict(reason), "text": str(reason)} for name, reason in reasons.items()}
    staged = directory / f".{FILE}.staged"
    staged.write_text(json.dumps({"at": datetime.now(UTC).isoformat(), "queries": queries}, indent=1))
    staged.rename(directory / FILE)


def read(directory: Path, query: str) -> tuple[dict[str, Any], float]:
    """Why a query has come no further, as a running engine last said it, and how many seconds ago that was."""
    try:
        status = json.loads((directory / FILE).read_text())
    except OSError:
        raise UserError(
            "no-engine", f'no engine has left word in "{directory}"',
            detail="An engine with a directory of its own says there, while it runs, how its queries are.",
            hint=f"headgate run SCRIPT --directory {directory}",
        ) from None  # fmt: skip
    known = {name.lower(): found for name, found in status["queries"].items()}
    if query.lower() not in known:
        raise unknown("query", query, status["queries"])
    return known[query.lower()], (datetime.now(UTC) - datetime.fromisoformat(status["at"])).total_seconds()
