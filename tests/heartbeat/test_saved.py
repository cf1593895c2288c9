"""What the time manager knows, saved as JSON and read again: it goes on giving the same heartbeats."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pytest

from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.errors import UserError
from headgate.heartbeat.arrivals import of_rows
from headgate.heartbeat.manager import Heartbeats

SCRIPT = """
CREATE STREAM declared (k STRING, at BIGINT) TIMESTAMP BY at SOURCE BY k;
CREATE STREAM learnt (k STRING, at BIGINT) TIMESTAMP BY at SOURCE BY k;
CREATE STREAM single (k STRING, at BIGINT) TIMESTAMP BY at;
CREATE STREAM stamped (k STRING) TIMESTAMP LATENT;
CREATE RELATION r (k STRING, at BIGINT) TIMESTAMP BY at;
SKEW FROM declared TO single (AFTER 2 SECONDS WITHIN 5), (AFTER 3 TUPLES WITHIN 2);
DISORDER OF declared (AFTER 1 SECOND WITHIN 3), (WITHIN 9);
LATENCY OF declared 1 SECOND;
GROUPS OF declared ('a', 'b'), ('c', 'd');
ESTIMATE OF learnt (HORIZON 2 SECONDS, CONFIDENCE 0.9);
TIMEOUT 10 SECONDS;
"""


def managed() -> tuple[Heartbeats, Catalog]:
    catalog = Catalog()
    define(SCRIPT, catalog)
    heartbeats = Heartbeats(catalog.declarations)
    heartbeats.model.clocks.timeout_us = catalog.settings.timeout_us
    for stream in (*catalog.streams.values(), *catalog.relations.values()):
        heartbeats.define(stream, 0)  # type: ignore[arg-type]
    return heartbeats, catalog


def happen(heartbeats: Heartbeats, random: Random, now_us: int) -> None:
    stream = random.choice(("declared", "learnt", "single", "r"))
    many = stream in ("declared", "learnt")
    sources = ["a", "b", "c", "d", "e"] if many else [None]
    positions = np.array([random.randrange(len(sources)) for _ in range(20)], np.intp)
    ticks = np.array([now_us // 100_000 + random.randrange(8) for _ in range(20)], np.int64)
    heartbeats.arrived(stream, of_rows(sources, positions, ticks), now_us)
    if random.random() < 0.2:
        heartbeats.punctuated("single", None, now_us // 100_000 - 3, now_us)
    if random.random() < 0.1 and many:
        heartbeats.model.intake.late(stream, ["a"], np.array([2]))
    heartbeats.order.reserve(3)


STREAMS = ("declared", "learnt", "single", "stamped", "r")


def said(heartbeats: Heartbeats, now_us: int) -> list[object]:
    each = [heartbeats.complete([stream], now_us) for stream in STREAMS]
    return [
        *each,
        heartbeats.complete(["declared", "single"], now_us),
        heartbeats.stream("single").promised(),
        heartbeats.order.last,
    ]


@pytest.mark.parametrize("seed", range(8))
def test_it_goes_on_as_if_nothing_had_happened(seed: int) -> None:
    random = Random(seed)
    heartbeats, catalog = managed()
    now_us = 0
    for _ in range(random.randrange(1, 40)):
        now_us += random.randrange(400_000)
        happen(heartbeats, random, now_us)
        if random.random() < 0.3:
            heartbeats.promise("single", heartbeats.complete(["single"], now_us) or 0)
    again, _ = managed()
    again.restore(json.loads(json.dumps(heartbeats.save())), catalog)
    for _ in range(30):
        assert said(again, now_us) == said(heartbeats, now_us)
        now_us += random.randrange(3_000_000)
        state = random.getstate()
        happen(heartbeats, random, now_us)
        random.setstate(state)
        happen(again, random, now_us)
    assert json.dumps(again.save()) == json.dumps(heartbeats.save())


def test_what_another_version_saved_is_refused() -> None:
    heartbeats, catalog = managed()
    state = heartbeats.save()
    state["generator"] |= {"is": "Reactor"}
    with pytest.raises(UserError, match="another version"):
        heartbeats.restore(state, catalog)


NEW = {
    "Cohort": ("steps", "pauses"),
    "Generator": ("guessed",),
    "Estimator": ("top", "top_fresh", "seen", "seen_fresh", "since_outlier"),
    "Timeline": ("pace", "first_us", "newest_at", "gave_up", "late_given_up"),
}
"""What was not saved by the first versions."""


def without_news(value: Any) -> Any:
    match value:
        case {"is": kind}:
            return {key: without_news(one) for key, one in value.items() if key not in NEW.get(kind, ())}
        case dict():
            return {key: without_news(one) for key, one in value.items()}
        case list():
            return [without_news(one) for one in value]
    return value


def test_what_was_saved_before_margins_and_pauses_were_known_still_opens() -> None:
    random, (heartbeats, catalog) = Random(1), managed()
    for number in range(60):
        happen(heartbeats, random, number * 100_000)
    again, _ = managed()
    again.restore(without_news(json.loads(json.dumps(heartbeats.save()))), catalog)
    assert again.model.clocks.generator.towards == heartbeats.model.clocks.generator.towards, (
        "what was learnt is kept apart again"
    )
    for number in range(60, 120):
        happen(again, random, number * 100_000)
    assert again.complete(["learnt", "single"], 12_000_000) is not None
    assert json.dumps(again.save())
