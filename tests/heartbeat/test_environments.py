"""The two example environments of the paper, end to end: sources that keep to them, on Spark, with a clock moved by
hand.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from headgate import Bound, Engine, ManualClock, Party, UserError

pytestmark = pytest.mark.spark

SECOND = 1_000_000
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Sent(NamedTuple):
    arrives_us: int
    stream: str
    timestamp: int


def drawn_from_a_counter(seed: int) -> list[Sent]:
    """Two sources draw tokens, work on one at a time, and send it: a in 10 ms to 1 s, b in 200 ms to 2 s, latencies up
    to 300 ms.
    """
    chance = random.Random(seed)
    free_us = {"a": 0, "b": 0}
    sent = []
    for token in range(1, 41):
        source = min(free_us, key=lambda name: free_us[name])
        begin_us = max(free_us[source], max((us for us in free_us.values() if us <= free_us[source]), default=0))
        least_us, most_us = (10_000, SECOND) if source == "a" else (200_000, 2 * SECOND)
        free_us[source] = begin_us + chance.randint(least_us, most_us)
        sent.append(Sent(free_us[source] + chance.randint(0, 300_000), source, token))
    return sorted(sent)


def played(engine: Engine, clock: ManualClock, sent: list[Sent], steps: int) -> None:
    """Push every tuple when it arrives; take the queries as far as they go now and then."""
    for number, (arrives_us, stream, timestamp) in enumerate(sent):
        clock.move_by(max(arrives_us - clock.now_us(), 0))
        instant = (
            timestamp if engine.catalog.stream(stream).timestamp is None else NOON + timedelta(microseconds=timestamp)
        )
        engine.push(stream, [(instant, (timestamp,))] if isinstance(instant, int) else [(timestamp, instant)])
        if number % (len(sent) // steps) == 0:
            engine.step()
    engine.step()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_global_counter_needs_no_timeout(spark: SparkSession, seed: int) -> None:
    clock = ManualClock()
    with Engine(spark, clock=clock) as engine:
        engine.execute(
            "CREATE STREAM a (v INT) LATENCY 300 MILLISECONDS; CREATE STREAM b (v INT) LATENCY 300 MILLISECONDS;"
            "ENVIRONMENT global_counter (PROCESSING 10 MILLISECONDS TO 1 SECOND) OF a;"
            "ENVIRONMENT global_counter (PROCESSING 200 MILLISECONDS TO 2 SECONDS) OF b;"
            "CREATE QUERY merged AS SELECT v FROM a UNION ALL SELECT v FROM b"
        )
        assert engine.query("merged").progress().startswith("needs no timeout")
        sent = drawn_from_a_counter(seed)
        played(engine, clock, sent, steps=5)
        assert engine.late("a") == engine.late("b") == {}
        before = engine.query("merged").complete
        assert before > 20
        clock.move_by(int(2.3 * SECOND))
        engine.step()
        assert engine.query("merged").complete == 40, "the last token becomes the heartbeat, though all are silent"
        assert [result.row["v"] for result in engine.query("merged").results()] == list(range(1, 41))


def deviating(seed: int) -> list[Sent]:
    """Two sensors read 50 times within about ten seconds, by clocks up to 2 s and 1 s off; latencies up to 200 ms."""
    chance = random.Random(seed)
    off_us = {"a": 2 * SECOND, "b": SECOND}
    sent = []
    for number in range(50):
        stream = chance.choice("ab")
        emitted_us = 5 * SECOND + number * 200_000
        # b's clock drifts ahead and is set back, a's stays behind: neither leaves its deviation
        deviation = -off_us[stream] if stream == "a" else (number * 50_000) % off_us[stream]
        sent.append(Sent(emitted_us + chance.randint(0, 200_000), stream, emitted_us + deviation))
    return sorted(sent)


SENSORS = (
    "CREATE STREAM a (v BIGINT, at TIMESTAMP) TIMESTAMP BY at LATENCY 200 MILLISECONDS;"
    "CREATE STREAM b (v BIGINT, at TIMESTAMP) TIMESTAMP BY at LATENCY 200 MILLISECONDS;"
    "ENVIRONMENT sensors (DEVIATION 2 SECONDS{rate}) OF a; ENVIRONMENT sensors (DEVIATION 1 SECOND{rate}) OF b;"
    "CREATE QUERY merged AS SELECT v FROM a UNION ALL SELECT v FROM b"
)


def test_sensors_need_a_timeout(spark: SparkSession) -> None:
    clock = ManualClock()
    with Engine(spark, clock=clock) as engine:
        engine.execute(SENSORS.format(rate=""))
        assert engine.query("merged").progress().startswith("needs a timeout (none is set)")
        sent = deviating(3)
        played(engine, clock, sent, steps=4)
        clock.move_by(3_600 * SECOND)
        engine.step()
        last = NOON + timedelta(microseconds=max(one.timestamp for one in sent))
        assert engine.late("a") == engine.late("b") == {}
        assert engine.query("merged").complete < last
        assert engine.query("merged").why().held_by in ("a", "b")
        engine.execute("TIMEOUT 30 SECONDS")
        engine.step()
        assert engine.query("merged").complete == last
        assert [result.row["v"] for result in engine.query("merged").results()] == sorted(one.timestamp for one in sent)


def test_sensors_with_a_known_rate_need_none(spark: SparkSession) -> None:
    clock = ManualClock()
    with Engine(spark, clock=clock) as engine:
        engine.execute(SENSORS.format(rate=", RATE 500 MILLISECONDS PER SECOND"))
        assert engine.query("merged").progress().startswith("needs no timeout")
        sent = deviating(4)
        played(engine, clock, sent, steps=4)
        last = NOON + timedelta(microseconds=max(one.timestamp for one in sent))
        assert engine.query("merged").complete < last
        clock.move_by(int(6.3 * SECOND))  # (2 s + 1 s) of deviation at half a second a second, and the latency
        engine.step()
        assert engine.late("a") == engine.late("b") == {}
        assert engine.query("merged").complete == last


def test_a_hundred_sensors_in_one_stream_each_with_its_own_deviation(spark: SparkSession) -> None:
    clock = ManualClock()
    with Engine(spark, clock=clock) as engine:
        engine.execute("CREATE STREAM s (id STRING, v INT) SOURCE BY id; CREATE QUERY q AS SELECT v FROM s")
        engine.sensors("s", {f"d{number}": number for number in range(100)})
        engine.push("s", [(1_000, (f"d{number}", number)) for number in range(100)])
        engine.step()
        held = engine.query("q").complete
        assert 1_000 - 99 - 1 - 100 <= held <= 1_000 - 99, (
            "the least reliable, told apart from the others in sixteen steps"
        )
        assert engine.push("s", [(held + 1, ("d99", 0))]) == 1
        assert "SOURCE 'd9" in engine.query("q").why().held_by


def test_bounds_declared_in_python_are_those_of_cql(spark: SparkSession) -> None:
    clock = ManualClock()
    with Engine(spark, clock=clock) as engine:
        engine.execute("CREATE STREAM a (v INT); CREATE STREAM b (id STRING, v INT) SOURCE BY id")
        engine.disorder("a", Bound(1), Bound(0, tuples=3))
        engine.skew("a", Party("b", "it's"), Bound(5, after_us=2 * SECOND))
        engine.latency("b", timedelta(milliseconds=250))
        shown = str(engine.bounds())
        assert "DISORDER OF a (WITHIN 1), (AFTER 3 TUPLES WITHIN 0);" in shown
        assert "(AFTER 2 SECONDS WITHIN 5);" in shown
        assert "LATENCY OF b 250 MILLISECONDS;" in shown
        with pytest.raises(UserError, match="bad-bound"):
            engine.disorder("a", Bound(-1))
        with pytest.raises(UserError, match="bad-bound"):
            engine.skew("a", "b", Bound(1), Bound(2, after_us=SECOND))
        with pytest.raises(UserError, match="no-such-stream"):
            engine.latency("c", timedelta(seconds=1))
        with pytest.raises(UserError, match="bad-bound"):
            engine.sensors("b", {"x": -1})
