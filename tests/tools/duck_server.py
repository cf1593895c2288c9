"""`python -m tools.duck_server DIRECTORY PORT`: a server as `headgate serve` starts it, whose epochs run in DuckDB.

It starts in a second and needs no JVM. HEADGATE_TOKEN is its token, if it is set.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from headgate import Engine
from headgate.server.limits import Limits
from headgate.server.listener import opened
from headgate.server.serving import Serving, outside
from tools.duck_engine import without_spark
from tools.no_spark import NoSpark


def main(directory: Path, port: int) -> None:
    """Serve until the process is ended."""
    serving = Serving(outside(()), Limits(status_seconds=0.1))
    socket = opened("127.0.0.1", port, os.environ.get("HEADGATE_TOKEN"))
    with without_spark(), Engine(NoSpark(), directory) as engine, engine.serve(socket, serving):  # type: ignore[arg-type]
        engine.run(until=lambda: False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
