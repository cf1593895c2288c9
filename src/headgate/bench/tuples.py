"""Random tuples in order of time, for measurements that push or write them a second at a time."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from headgate.sources.inlet import ticks

COLUMNS = "k STRING, v DOUBLE, at TIMESTAMP"
SCHEMA = pa.schema([("k", pa.string()), ("v", pa.float64()), ("at", pa.timestamp("us", "UTC"))])
START_US = ticks(datetime(2026, 1, 1, tzinfo=UTC))
SECOND_US = 1_000_000


def tuples(rows: int, keys: int, first_us: int, span_us: int) -> pa.Table:
    """Tuples from an instant on; timestamps are odd, so that none falls on the border of two windows."""
    chance = np.random.default_rng(first_us)
    instants = START_US + first_us + 2 * np.sort(chance.integers(0, span_us // 2, rows)) + 1
    names = [f"k{key}" for key in chance.integers(0, keys, rows)]
    return pa.table([names, chance.random(rows), instants.astype("datetime64[us]")], schema=SCHEMA)
