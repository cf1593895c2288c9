"""Measures what statements from outside cost others: a running query alone and beside attackers, and registering.

Attackers are processes that send heavy statements over HTTP as fast as they are answered. A row is pushed, the engine
answers it, and that is timed: what matters is the ratio of the two, which says what attackers can do to others.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import median, quantiles
from urllib.request import Request, urlopen

from pyspark.sql import SparkSession
from rich.console import Console

from headgate.bench.layout import empty_table
from headgate.engine import Engine
from headgate.heartbeat.clock import ManualClock
from headgate.server.listener import opened
from headgate.server.serving import Serving, outside

NAME = "attackers"
ATTACKERS = 10
WARM_UP, TIMED = 150, 150
REGISTERED = 40
"""So many queries are registered in each way, in one text."""

SCRIPT = """
CREATE STREAM s (k INT, v INT);
CREATE QUERY q AS SELECT k, SUM(v) AS v, COUNT(*) AS n FROM s [RANGE 60] GROUP BY k;
"""
HEAVY = [
    "EXPLAIN SELECT a0.v FROM s [NOW] AS a0"
    + "".join(f" LEFT JOIN s [NOW] AS a{n} ON a0.k = a{n}.k" for n in range(1, 8)),
    "EXPLAIN SELECT a0.v FROM " + ", ".join(f"s [RANGE {n + 1}] AS a{n}" for n in range(24)),
    "EXPLAIN SELECT COUNT(*) AS c FROM s [NOW] GROUP BY CUBE(" + ", ".join(f"v + {n}" for n in range(14)) + ")",
    "SELECT frobnicated FROM s [NOW] WHERE k = '" + "x" * 60_000 + "'",
    "EXPLAIN SELECT " + ", ".join(f"v + {n} AS c{n}" for n in range(3_000)) + " FROM s [NOW]",
]


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of turns alone and beside attackers, how many texts these sent, and of registering a query."""

    alone: Sequence[float]
    beside: Sequence[float]
    sent: int
    registering: dict[str, float]


def steps() -> int:
    """How many turns are run in all."""
    return WARM_UP + 2 * TIMED


def measured(spark: SparkSession, done: Callable[[], None]) -> Cost:
    """Run turns alone, beside attackers, and alone once more; then register queries in both ways."""
    with Engine(spark, clock=ManualClock()) as engine:
        engine.execute(SCRIPT)
        with engine.serve(opened("127.0.0.1", 0), Serving(outside(()))) as listener:
            say(listener.url, "SHOW QUERIES")
            turns = iter(range(steps()))

            def some(count: int) -> list[float]:
                return [_turn(engine, at, done) for at in islice(turns, count)]

            some(WARM_UP)
            alone = some(TIMED // 2)
            command = [sys.executable, "-m", __name__, listener.url]
            attackers = [
                subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, stdin=subprocess.PIPE)
                for n in range(ATTACKERS)
            ]
            try:
                for one in attackers:
                    assert one.stdout is not None
                    one.stdout.readline()
                beside = some(TIMED)
            finally:
                sent = sum(_sent(one) for one in attackers)
            alone += some(TIMED - TIMED // 2)
            registering = _registering(engine, listener.url)
    return Cost(alone, beside, sent, registering)


def _sent(attacker: subprocess.Popen[bytes]) -> int:
    """End an attacker, and return how many texts were answered."""
    said = attacker.communicate(b"\n", timeout=120)[0]
    return int(said.split()[-1])


def _turn(engine: Engine, at: int, done: Callable[[], None]) -> float:
    rows = [(at, (row % 50, row)) for row in range(200)]
    began = time.perf_counter()
    engine.push("s", rows)
    engine.advance(at)
    took = time.perf_counter() - began
    done()
    return took


def _registering(engine: Engine, url: str) -> dict[str, float]:
    """Seconds for a query of an operator's text, and of one that comes over HTTP; in turns, the best of five."""
    best: dict[str, float] = {}
    for turn in range(5):
        for number, way in enumerate(("the operator's", "over HTTP")):
            factor = 2 * turn + number + 2  # no plan of one way can be taken by the other
            text = "".join(
                f"CREATE QUERY q{n} AS SELECT k + {n} AS k, v * {factor} AS v FROM s [RANGE {n + 1}] WHERE v > k;"
                for n in range(REGISTERED)
            )
            began = time.perf_counter()
            if way == "over HTTP":
                assert say(url, text) == ""
            else:
                engine.execute(text)
            took = (time.perf_counter() - began) / REGISTERED
            engine.execute("".join(f"DROP QUERY q{n};" for n in range(REGISTERED)))
            best[way] = min(best.get(way, took), took)
    return best


def say(url: str, cql: str) -> str:
    """Send statements; returns the code of the error, if there is one."""
    body = json.dumps({"cql": cql}).encode()
    asked = Request(f"{url}/statements", body, {"Content-Type": "application/json"})
    try:
        with urlopen(asked, timeout=120) as answer:
            answer.read()
        return ""
    except urllib.error.HTTPError as refused:
        return str(json.loads(refused.read())["code"])


def attack(url: str, number: int) -> None:
    """Send heavy statements until a line comes in, then say how many were answered."""
    from select import select

    sent = 0
    print("ready", flush=True)
    while not select([sys.stdin], [], [], 0)[0]:
        say(url, HEAVY[(number + sent) % len(HEAVY)])
        sent += 1
    print(sent, flush=True)


def at_most(seconds: Sequence[float]) -> float:
    """How long all but one of a hundred take at the most."""
    return quantiles(seconds, n=100)[98]


def show(console: Console, cost: Cost) -> None:
    """Prints the ratios."""
    table = empty_table(f"A turn of a running query beside {ATTACKERS} attackers", "", "median", "99 of 100 within")
    for name, seconds in (("alone", cost.alone), ("beside attackers", cost.beside)):
        table.add_row(name, f"{median(seconds) * 1000:.0f} ms", f"{at_most(seconds) * 1000:.0f} ms")
    ratios = median(cost.beside) / median(cost.alone), at_most(cost.beside) / at_most(cost.alone)
    table.add_row("ratio", *(f"{one:.2f}" for one in ratios))
    console.print(table)
    console.print(f"{cost.sent} heavy texts were answered meanwhile.")
    own, other = cost.registering["the operator's"], cost.registering["over HTTP"]
    console.print(
        f"Registering a query, {REGISTERED} in a text: {own * 1000:.1f} ms by the operator, {other * 1000:.1f} ms over "
        f"HTTP, {other / own:.2f} times as long."
    )


if __name__ == "__main__":
    attack(sys.argv[1], int(sys.argv[2]))
