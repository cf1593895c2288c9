"""What the tests of clusters run: one script over generated input, a few epochs, its results as lines. A process of its
own.

    python cluster_program.py MASTER FOLDER [TRAP]

MASTER is a Spark master, or "connect:" and one for which a Spark Connect server is started. With a TRAP, the first task
of the last epoch of query "totals" makes the file TRAP, with its process id in it, and waits to be killed; the attempt
that comes after it finds the file and goes on.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from headgate import Engine

SENSORS = 20
EPOCHS = 2
ROWS_AN_EPOCH = 4_000
SCRIPT = """
CREATE STREAM readings (at BIGINT, sensor INT, v DOUBLE) TIMESTAMP BY at FROM parquet OPTIONS ('path' = '{folder}/readings');
CREATE RELATION places (sensor INT, place STRING) FROM csv OPTIONS ('path' = '{folder}/places.csv', 'header' = 'true');
CREATE QUERY placed AS SELECT ISTREAM(place, v) FROM readings [NOW], places WHERE readings.sensor = places.sensor AND v > 98;
"""
TOTALS = """
CREATE QUERY totals AS SELECT sensor, n, watched(total) AS w
FROM (SELECT sensor, COUNT(*) AS n, SUM(v) AS total FROM readings [RANGE 100 SLIDE 100] GROUP BY sensor)
"""


def write_input(folder: Path, epoch: int) -> None:
    """The rows of an epoch, in two files: sensors take turns, timestamps come ten rows at a time."""
    (folder / "readings").mkdir(parents=True, exist_ok=True)
    numbers = np.arange(epoch * ROWS_AN_EPOCH, (epoch + 1) * ROWS_AN_EPOCH)
    table = pa.table(
        {
            "at": numbers // 10,
            "sensor": (numbers % SENSORS).astype(np.int32),
            "v": (numbers * 7919 % 10_000) / 100,
        }
    )
    for half in range(2):
        pq.write_table(
            table.slice(half * ROWS_AN_EPOCH // 2, ROWS_AN_EPOCH // 2), folder / "readings" / f"{epoch}-{half}.parquet"
        )
    (folder / "places.csv").write_text(
        "sensor,place\n" + "".join(f"{sensor},p{sensor % 7}\n" for sensor in range(SENSORS))
    )


def watched(trap: str) -> Callable[[float], float]:
    """A function in Python that marks a value. It stands behind the shuffle: who kills its worker destroys shuffle
    files as well.
    """
    armed = trap + ".armed"

    def mark(v: float) -> float:
        if trap and os.path.exists(armed) and not os.path.exists(trap):
            with open(armed, "w") as file:
                file.write(str(os.getpid()))
            os.rename(armed, trap)
            time.sleep(120)
            raise RuntimeError("nobody killed this task")
        return -v

    return mark


def played(spark: SparkSession, folder: Path, trap: str = "") -> dict[str, list[str]]:
    """Each query's results. Within an instant they have no order, so they are put into one that two runs can be
    compared by.
    """
    with Engine(spark, folder / "engine", partitions=2) as engine:
        engine.register_function("watched", watched(trap), "DOUBLE")
        write_input(folder, 0)
        engine.execute(SCRIPT.format(folder=folder) + TOTALS)
        for epoch in range(EPOCHS):
            write_input(folder, epoch)
            if trap and epoch == EPOCHS - 1:
                Path(trap + ".armed").touch()
            engine.poll()
            engine.advance((epoch + 1) * ROWS_AN_EPOCH // 10 - 1)
        return {
            query.name: sorted(json.dumps([result.at, result.sign, result.row]) for result in query.results())
            for query in engine.queries()
        }


def main(master: str, folder: str, trap: str = "") -> None:
    from headgate.spark.session import started

    behind = master.removeprefix("connect:")
    spark = started(master) if behind == master else SparkSession.builder.remote(behind).getOrCreate()
    found = played(spark, Path(folder), trap)
    Path(folder, "results.json").write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
