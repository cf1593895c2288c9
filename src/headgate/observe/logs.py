"""Logs of a server: one line for each event, as text for people or as JSON for programs.

    {"at": "2026-01-31T12:00:00.000Z", "level": "info", "logger": "headgate.http", "message": "request",
     "method": "POST", "route": "/streams/{name}", "status": 200, "seconds": 0.004, "client": "127.0.0.1"}

An event has its own fields in `extra={"fields": {...}}`. Bodies, statements and tokens are never logged.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from headgate.masking import masked

STANDARD = "headgate"


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields that an event has of its own."""
    found = getattr(record, "fields", None)
    return dict(found) if isinstance(found, dict) else {}


def _at(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "at": _at(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return json.dumps(
            {name: masked(one) if isinstance(one, str) else one for name, one in said.items()}, default=str
        )


class TextLines(logging.Formatter):
    """One line for people; what has several lines keeps them."""

    def format(self, record: logging.LogRecord) -> str:
        fields = " ".join(f"{name}={value}" for name, value in fields_of(record).items())
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        line = f"{_at(record)} {level}{record.getMessage()}{' ' + fields if fields else ''}"
        return masked(f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line)


def configure(kind: Literal["text", "json"], level: str = "info", to: TextIO | None = None) -> None:
    """Let the loggers of headgate and of its HTTP server write lines of one kind, to the standard error output."""
    handler = logging.StreamHandler(to or sys.stderr)
    handler.setFormatter(JsonLines() if kind == "json" else TextLines())
    for name in (STANDARD, "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level.upper() if name == STANDARD else "WARNING")
