"""The bank in pictures: what its queries show at one moment, read again and again until the process is killed.

Two queries show the accounts and their total, early and settled; both keep their results in the engine's directory.

    settled   a snapshot of both queries: each account has the balance that it has at the snapshot's instant, and the
              total is zero
    early     what is settled and the early answers beyond it. One leg of a transfer may be there without the other; but
              where both queries reflect the same tuples, the total is the sum of the accounts

`run` is the process that runs the engine and writes pictures into a file, one a line. `Pictures` judges them.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate import Engine, UserError

QUERIES = """
CREATE VIEW legs AS SELECT account, -amount AS amount FROM debits UNION ALL SELECT account, amount FROM credits;
CREATE QUERY accounts AS SELECT account, SUM(amount) AS balance FROM legs GROUP BY account EMIT EARLY;
CREATE QUERY total AS SELECT SUM(amount) AS total FROM legs EMIT EARLY;
"""

FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)
"""The first instant of TIMESTAMP time."""

PAUSE_S = 0.1


# the process that is killed


def run(script: Path, directory: Path, pictures: Path, once: bool) -> None:
    """Run an engine, until it is killed or until its input is read, while a thread takes pictures."""
    from headgate.spark.session import started

    with Engine(started(), directory) as engine, pictures.open("a", encoding="utf-8") as file:
        engine.execute(script.read_text(encoding="utf-8"), str(script))
        over = threading.Event()
        viewer = threading.Thread(target=_view, args=(engine, file, over))
        viewer.start()
        try:
            engine.run_once() if once else engine.run()
        finally:
            over.set()
            viewer.join()


def _view(engine: Engine, file: Any, over: threading.Event) -> None:
    """Write down pictures, with a pause as long as they take; a last one when the run is over."""
    ending = False
    while not ending:
        ending, began = over.is_set(), time.monotonic()
        for picture in (settled(engine), early(engine)):
            if picture is not None:
                file.write(json.dumps(picture) + "\n")
        file.flush()
        over.wait(max(PAUSE_S, time.monotonic() - began))


def settled(engine: Engine) -> dict[str, Any] | None:
    """Both queries at the last instant at which they are complete; None if there is none."""
    try:
        picture = engine.snapshot("accounts", "total")
    except UserError as error:
        assert error.code == "nothing-complete"
        return None
    at = picture.at if isinstance(picture.at, int) else (picture.at - FIRST_DAY).total_seconds() * 1_000
    balances = {str(row["account"]): row["balance"] for row in picture["accounts"]}
    return {"at": at, "balances": balances, "total": [row["total"] or 0 for row in picture["total"]]}


def early(engine: Engine) -> dict[str, Any] | None:
    """Both queries as of their early answers; None if one has none, or if they reflect different tuples."""
    try:
        picture = engine.snapshot("accounts", "total", early=True)
    except UserError as error:
        assert error.code in ("nothing-complete", "not-one-input")
        return None
    return {
        "early": {stream: one.tuples for stream, one in picture.reflects.items()},
        "sum": sum(row["balance"] for row in picture["accounts"]),
        "total": [row["total"] or 0 for row in picture["total"]],
    }


# what is judged


@dataclass(slots=True)
class Pictures:
    """Reads the pictures that processes have written down, and never again what it has read."""

    file: Path
    at: NDArray[np.int64]
    account: NDArray[np.int64]
    amount: NDArray[np.int64]
    """Both legs of all transfers: when, whose and how much."""

    read: int = 0
    settled: int = 0
    early: int = 0
    one_sided: int = 0
    """Early pictures with one leg of a transfer and not the other."""

    instants: set[int] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)

    def look(self) -> None:
        """Judge what is new. The last line may be cut short by the kill."""
        if not self.file.exists():
            return
        with self.file.open("rb") as file:
            file.seek(self.read)
            lines = file.read()
        self.read += len(lines)
        for line in lines.split(b"\n"):
            try:
                picture = json.loads(line)
            except ValueError:
                continue
            self._judge_early(picture) if "early" in picture else self._judge_settled(picture)

    def _judge_early(self, picture: dict[str, Any]) -> None:
        self.early += 1
        total = sum(picture["total"])
        self.one_sided += total != 0
        if picture["sum"] != total:
            self.complaints.append(f"early, over {picture['early']}: {picture['sum']} in all, and the total is {total}")

    def _judge_settled(self, picture: dict[str, Any]) -> None:
        self.settled += 1
        self.instants.add(picture["at"])
        if sum(picture["balances"].values()) or picture["total"] != [0]:
            self.complaints.append(f"settled at {picture['at']}: the total is {picture['total']}")
        moved = self.at <= picture["at"]
        balances = np.zeros(int(self.account.max()) + 1, np.int64)
        np.add.at(balances, self.account[moved], self.amount[moved])
        expected = {str(one): int(balances[one]) for one in np.unique(self.account[moved])}
        if picture["balances"] != expected:
            self.complaints.append(f"settled at {picture['at']}: the balances are not those of this instant")


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), "--once" in sys.argv)
