"""Posts results to an address, in batches of JSON.

    POST /alerts HTTP/1.1
    Content-Type: application/json
    Idempotency-Key: 5f3a.../12/0

    {"query": "alerts", "number": 12, "part": 0, "last": true, "complete": "2026-11-01T12:00:05+00:00",
     "rows": [{"_time": "2026-11-01T12:00:03.000000Z", "_change": "+", "sensor": "a", "celsius": 91.5}]}

Any answer but 2xx is a failure; the engine tries again. Within a run only what was not accepted is posted again. The
key begins with the query's identity, so it is another for another engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from http.client import HTTPException
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pyspark.sql import SparkSession

from headgate.catalog import sinks
from headgate.catalog.entries import Connector
from headgate.deliver.sinks import shape
from headgate.deliver.sinks.sink import Delivery
from headgate.deliver.sinks.writer import identity
from headgate.errors import UserError
from headgate.spark.failures import failure
from headgate.spark.session import let_go, own_session

ROWS = 1_000
BATCH_BYTES = 1_000_000
TIMEOUT_SECONDS = 10
SHOWN = 200


class WebhookSink:
    """Posts each delivery to an address over HTTP, in batches of JSON."""

    guarantee = sinks.SINKS["webhook"].guarantee
    wants_empty = False

    def __init__(self, query: str, connector: Connector, session: SparkSession, directory: Path) -> None:
        self.connector = connector
        self.session = own_session(session)
        self.writer = identity(directory)
        self.staging = directory / ".webhook"
        self.rows = int(connector.options.get("rows", ROWS))
        self.timeout_seconds = int(connector.options.get("timeout", TIMEOUT_SECONDS))
        self.headers = {
            name.removeprefix("header."): value
            for name, value in connector.options.items()
            if name.startswith("header.")
        }
        self.accepted: tuple[int, int] = (0, 0)
        """A delivery, and how many of its batches were accepted."""

    def deliver(self, delivery: Delivery) -> None:
        """Post the batches of a delivery that were not accepted yet in this run."""
        files, _ = shape.write_parts(
            self.session, delivery, self.connector, self.staging, "json", {"ignoreNullFields": "false"}
        )
        done = self.accepted[1] if self.accepted[0] == delivery.number else 0
        pending: list[bytes] | None = None
        part = 0
        for part, batch in enumerate(batches(files, self.rows)):  # one behind, to know which is the last
            if pending is not None and part > done:
                self._post(delivery, part - 1, pending, last=False)
            pending = batch
        if pending is not None and part >= done:
            self._post(delivery, part, pending, last=True)

    def _post(self, delivery: Delivery, part: int, rows: list[bytes], *, last: bool) -> None:
        complete = delivery.complete.isoformat() if isinstance(delivery.complete, datetime) else delivery.complete
        about = {"query": delivery.query, "number": delivery.number, "part": part, "last": last, "complete": complete}
        body = json.dumps(about).encode()[:-1] + b', "rows": [' + b",".join(rows) + b"]}"
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": f"{self.writer}/{delivery.number}/{part}",
            **self.headers,
        }
        url = self.connector.options["url"]
        try:
            with build_opener(_NoRedirects).open(Request(url, body, headers), timeout=self.timeout_seconds):
                pass
        except HTTPError as error:
            raise UserError(
                "sink-refused", f'"{url}" answered {error.code} {error.reason}', detail=_beginning(error)
            ) from error
        except (URLError, HTTPException, OSError, ValueError) as error:
            cause = error.reason if isinstance(error, URLError) and isinstance(error.reason, OSError) else error
            if isinstance(cause, TimeoutError):
                raise UserError(
                    "sink-unreachable", f'"{url}" has not answered within {self.timeout_seconds} s'
                ) from error
            raise failure(cause, "sink-unreachable", f'"{url}" cannot be reached') from error
        self.accepted = (delivery.number, part + 1)

    def delivered(self) -> int | None:
        """Unknown: the other side is not asked."""
        return None

    def close(self) -> None:
        """Release Spark's session."""
        let_go(self.session)


def _beginning(answer: HTTPError) -> str:
    """The first line of what was answered: it may say why."""
    try:
        lines = answer.read(SHOWN).decode(errors="replace").strip().splitlines()
    except (HTTPException, OSError, ValueError):
        return ""
    return lines[0] if lines else ""


class _NoRedirects(HTTPRedirectHandler):
    """Refuses redirects: urllib would follow them with a GET and lose the rows."""

    def redirect_request(self, *_: object) -> None:
        """Follow no redirect: the answer is an error then."""
        return


def batches(files: list[Path], most_rows: int) -> Iterator[list[bytes]]:
    """The lines of files, in batches of at most `most_rows` rows and about BATCH_BYTES; one batch is in memory at a
    time.
    """
    lines = chain.from_iterable(map(_lines, files))
    while batch := list(islice(lines, 1)):
        size = len(batch[0])
        while len(batch) < most_rows and size < BATCH_BYTES and (line := next(lines, None)) is not None:
            batch.append(line)
            size += len(line)
        yield batch


def _lines(path: Path) -> Iterator[bytes]:
    file: BinaryIO
    with path.open("rb") as file:
        for line in file:
            yield line.rstrip(b"\n")
