"""The questions of the yardstick, each in CQL, as a batch query of Spark, for Structured Streaming and for Flink.

All read streams `a` and `b` of (k, v, ts); for Structured Streaming and Flink, `et` is the timestamp as their event
time. All answer with the same columns, in which `t` is the instant of a result; CQL gives it as `_time`.
"""

from __future__ import annotations

from dataclasses import dataclass

STREAMS = ("a", "b")


@dataclass(frozen=True, slots=True)
class Compared:
    """How results are compared: which columns say which result it is, and which are computed.

    `identity` is compared exactly, `values` up to rounding.
    """

    identity: tuple[str, ...]
    values: tuple[str, ...] = ()
    netted: bool = False
    """ISTREAM leaves out a result that equals the one before it of the same key."""

    every_change: bool = False
    """CQL also answers when tuples leave the window, and once for simultaneous tuples; others answer each arrival."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One question for all engines."""

    name: str
    question: str
    streams: tuple[str, ...]
    cql: str
    batch: str
    native: str | None
    """None: Structured Streaming cannot express it."""

    flink: str
    columns: str
    """The columns of the results, as Flink declares them."""

    compared: Compared
    settings: str = ""
    windowed: bool = False
    """Results are out when a window is over, so that those of the last windows can be missing."""


def windows(name: str, question: str, length_s: int, slide_s: int) -> Workload:
    """Count, sum and average by key in windows of this length and slide."""
    length, slide = length_s * 1_000, slide_s * 1_000
    aggregates = "COUNT(*) AS n, SUM(v) AS s, AVG(v) AS m"
    if length == slide:
        batch = f"SELECT k, (ts DIV {slide} + 1) * {slide} AS t, {aggregates} FROM a GROUP BY k, ts DIV {slide}"
        in_flink = f"TUMBLE(TABLE a, DESCRIPTOR(et), INTERVAL '{length_s}' SECONDS)"
    else:
        last = length // slide - 1
        batch = (
            f"SELECT k, (w + 1) * {slide} AS t, {aggregates} "
            f"FROM a LATERAL VIEW EXPLODE(SEQUENCE(ts DIV {slide}, ts DIV {slide} + {last})) AS w GROUP BY k, w"
        )
        in_flink = f"HOP(TABLE a, DESCRIPTOR(et), INTERVAL '{slide_s}' SECONDS, INTERVAL '{length_s}' SECONDS)"
    return Workload(
        name,
        question,
        ("a",),
        f"SELECT ISTREAM(k, {aggregates}) FROM a [RANGE {length} SLIDE {slide}] GROUP BY k",
        batch,
        f"SELECT k, window.end AS t, {aggregates} FROM a "
        f"GROUP BY k, window(et, '{length_s} seconds', '{slide_s} seconds')",
        f"SELECT k, window_end AS t, {aggregates} FROM TABLE({in_flink}) GROUP BY k, window_start, window_end",
        "k INT, t TIMESTAMP(3), n BIGINT, s DOUBLE, m DOUBLE",
        Compared(("k", "t"), ("n", "s", "m"), netted=True),
        settings="SET range = 'half-open';",
        windowed=True,
    )


def average(name: str, question: str, length: int, *, beside: bool) -> Workload:
    """The average of a key's last tuples at every change, or beside each arriving tuple."""
    frame = f"PARTITION BY k ORDER BY ts RANGE BETWEEN {length} PRECEDING AND CURRENT ROW"
    flink_frame = (
        f"PARTITION BY k ORDER BY et RANGE BETWEEN INTERVAL '{length // 1_000}' SECONDS PRECEDING AND CURRENT ROW"
    )
    own = "v, " if beside else ""
    means = f"SELECT k, AVG(v) AS m FROM a [RANGE {length}] GROUP BY k"
    return Workload(
        name,
        question,
        ("a",),
        f"SELECT ISTREAM(x.k, x.v, r.m) FROM a [NOW] x, ({means}) r WHERE x.k = r.k"
        if beside
        else f"SELECT ISTREAM(k, AVG(v) AS m) FROM a [RANGE {length}] GROUP BY k",
        f"SELECT k, {own}ts AS t, AVG(v) OVER ({frame}) AS m FROM a",
        None,
        f"SELECT k, {own}ts AS t, AVG(v) OVER ({flink_frame}) AS m FROM a",
        f"k INT, {'v DOUBLE, ' if beside else ''}t BIGINT, m DOUBLE",
        Compared(("k", "v", "t"), ("m",)) if beside else Compared(("k", "t"), ("m",), netted=True, every_change=True),
    )


def join(name: str, question: str, within: int) -> Workload:
    """The pairs of tuples of two streams with the same key, not further apart than this.

    The batch query cuts time into buckets of twice that; a tuple of `b` belongs to at most two of them.
    """
    columns = "x.k, x.v AS xv, y.v AS yv"
    wide = 2 * within
    near = "x.et BETWEEN y.et - INTERVAL {0} AND y.et + INTERVAL {0}"
    streamed = f"SELECT {columns}, GREATEST(x.ts, y.ts) AS t FROM a x JOIN b y ON x.k = y.k AND {near}"
    return Workload(
        name,
        question,
        ("a", "b"),
        f"SELECT ISTREAM({columns}) FROM a [RANGE {within}] x, b [RANGE {within}] y WHERE x.k = y.k",
        f"SELECT {columns}, GREATEST(x.ts, y.ts) AS t FROM (SELECT *, ts DIV {wide} AS w FROM a) x JOIN "
        f"(SELECT *, EXPLODE(SEQUENCE((ts - {within}) DIV {wide}, (ts + {within}) DIV {wide})) AS w FROM b) y "
        f"ON x.k = y.k AND x.w = y.w AND ABS(x.ts - y.ts) <= {within}",
        streamed.format(f"{within} MILLISECONDS"),
        streamed.format(f"'{within / 1_000:.3f}' SECONDS"),
        "k INT, xv DOUBLE, yv DOUBLE, t BIGINT",
        Compared(("k", "xv", "yv", "t")),
    )


SELECTION = Workload(
    "selection",
    "selection, 10 % pass",
    ("a",),
    "SELECT ISTREAM(k, v) FROM a [NOW] WHERE v < 10",
    "SELECT k, v, ts AS t FROM a WHERE v < 10",
    "SELECT k, v, ts AS t FROM a WHERE v < 10",
    "SELECT k, v, ts AS t FROM a WHERE v < 10",
    "k INT, v DOUBLE, t BIGINT",
    Compared(("k", "v", "t")),
)

WORKLOADS = (
    windows("W1", "W1: tumbling 10 s: count, sum, average by key", 10, 10),
    windows("W2", "W2: the last 60 s every 10 s: the same", 60, 10),
    average("W3", "W3: average of the last 60 s of the key, at every change", 60_000, beside=False),
    average("W3p", "W3': each tuple beside the average of the last 60 s of its key", 60_000, beside=True),
    join("W4", "W4: join of two streams by key within 1 s", 1_000),
    SELECTION,
)
