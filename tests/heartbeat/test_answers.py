"""What SHOW BOUNDS and WHY answer: every line of CQL declares what it stands beside, and every state has its reason."""

from __future__ import annotations

import numpy as np
import pytest

from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.heartbeat.arrivals import of_one
from headgate.heartbeat.in_force import all_rows, in_force
from headgate.heartbeat.manager import Heartbeats
from headgate.scope import Scope

SECOND = 1_000_000

MANY = "CREATE STREAM s (v INT, d STRING, at BIGINT) TIMESTAMP BY at SOURCE BY d;"
FAST = "CREATE STREAM fast (v INT, at BIGINT) TIMESTAMP BY at;"
ODD = "CREATE STREAM `my ``stream` (v INT, d STRING, at TIMESTAMP) TIMESTAMP BY at SOURCE BY d;"
ALL = MANY + FAST + ODD + "CREATE STREAM `select` (v INT, at TIMESTAMP) TIMESTAMP BY at;"


def heartbeats_of(text: str) -> Heartbeats:
    catalog = Catalog()
    define(text, catalog)
    heartbeats = Heartbeats(catalog.declarations)
    for stream in catalog.streams.values():
        heartbeats.define(stream, now_us=0)
    return heartbeats


def say(heartbeats: Heartbeats, name: str, stamp: int, source: str | None = None) -> None:
    heartbeats.arrived(name, of_one(np.array([stamp]), source), 0)


def said(heartbeats: Heartbeats, *streams: str) -> str:
    return str(heartbeats.explain("q", streams, None, dict.fromkeys(streams, 1), 5 * SECOND))


APART = "ENVIRONMENT sensors (DEVIATION 5) OF s SOURCE 'a'; ENVIRONMENT sensors (DEVIATION 50, RATE 1) OF s SOURCE 'b';"

DECLARED = [
    "SKEW FROM s TO s (WITHIN 9), (AFTER 2 SECONDS WITHIN 3), (AFTER 4 TUPLES WITHIN 1);",
    "SKEW FROM s TO s (WITHIN 9); DISORDER OF s 0; DISORDER OF s SOURCE 'a' (WITHIN 0); LATENCY OF s SOURCE 'a' 3 SECONDS;",
    "ENVIRONMENT sensors (DEVIATION 5) OF s, fast;" + APART,
    "ENVIRONMENT global_counter (PROCESSING 0 TO 2) OF s, fast;",
    "SKEW FROM fast TO s SOURCE 'a' (WITHIN 9); SKEW FROM s TO fast (WITHIN 2); GROUPS OF s ('a', 'b');",
    r"DISORDER OF `my ``stream` SOURCE 'o\'bri\\en' 5 SECONDS; SKEW FROM `my ``stream` TO `select` (WITHIN 4 MINUTES);",
]


@pytest.mark.parametrize("declared", DECLARED)
def test_every_line_of_cql_declares_what_it_stands_beside(declared: str) -> None:
    found = [
        one for one in in_force(heartbeats_of(ALL + declared).model) if one.cql and one.because.startswith("declared")
    ]
    assert found
    again = heartbeats_of(ALL + "".join(one.cql for one in found)).model.declarations
    for one in found:
        sender, receiver = one.sender.party, one.receiver.party
        assert sender is not None
        assert receiver is not None
        known = again.skews[sender, receiver] if one.others else again.disorders[sender]
        assert known == one.bounds


def test_sources_that_differ_in_their_environment_are_told_apart_by_it() -> None:
    rows = all_rows(heartbeats_of(MANY + APART).model)
    assert ("s with deviation 5", "s with deviation 5", "up to 10 behind") in [row[:3] for row in rows]
    assert not [row for row in rows if row[-1]], "of whom to declare it has no name"


def test_why_names_a_silent_stream_that_others_speak_for() -> None:
    heartbeats = heartbeats_of(
        "CREATE STREAM a (v INT); CREATE STREAM b (v INT); DISORDER OF a 0; DISORDER OF b 0; SKEW FROM a TO b (WITHIN 50);"
    )
    heartbeats.model.clocks.timeout_us = 1_000_000
    heartbeats.arrived("b", of_one(np.array([10])), now_us=0)
    heartbeats.arrived("a", of_one(np.array([200])), now_us=2_000_000)
    found = heartbeats.explain("q", ["a", "b"], 150, {"a": 1, "b": 0}, now_us=2_000_000)
    assert found.held_by == "b"
    assert "it is silent" in found.cause


def test_why_names_no_stream_that_does_not_count() -> None:
    heartbeats = heartbeats_of("CREATE STREAM a (v INT); CREATE STREAM b (v INT);")
    for instant in range(150):
        for name in ("a", "b"):
            heartbeats.arrived(name, of_one(np.array([instant])), now_us=instant)
    heartbeats.arrived("a", of_one(np.array([1_000])), now_us=200)
    found = heartbeats.explain("q", ["b"], 140, {"b": 1}, now_us=200)
    assert found.cause.startswith("its last tuple that counts is stamped 149")


def test_how_sources_were_grouped_is_shown_while_they_are() -> None:
    heartbeats = heartbeats_of(MANY + "SKEW FROM s TO s (WITHIN 9); GROUPS OF s 4;")
    say(heartbeats, "s", 1, "a")
    heartbeats.apply_declarations()
    assert all_rows(heartbeats.model)[-1][-1] == "GROUPS OF s 4;"
    del heartbeats.model.declarations.groupings["s"]
    heartbeats.apply_declarations()
    assert not [row for row in all_rows(heartbeats.model) if row[3] == "grouped"]


def test_a_stream_that_the_engine_stamps_waits_for_the_next_step() -> None:
    heartbeats = heartbeats_of("CREATE STREAM s (v INT) TIMESTAMP INTERNAL")
    say(heartbeats, "s", 1)
    assert "released by the next step" in said(heartbeats, "s")
    latent = heartbeats_of("CREATE STREAM s (v INT) TIMESTAMP LATENT")
    say(latent, "s", latent.order.reserve(1))
    assert "nothing holds it back" in said(latent, "s"), "what has come is complete"


def test_a_source_is_held_to_what_it_said_itself() -> None:
    heartbeats = heartbeats_of(FAST)
    heartbeats.punctuated("fast", None, 100, 0)
    say(heartbeats, "fast", 101)
    assert "it said itself that nothing up to 100 will still come" in said(heartbeats, "fast")


def test_why_names_the_group_that_holds_a_query_back_and_waits_for_no_other() -> None:
    heartbeats = heartbeats_of(MANY + "DISORDER OF s 5; GROUPS OF s ('a', 'b'), ('c');")
    for source, stamp in (("a", 100), ("b", 50), ("c", 10)):
        say(heartbeats, "s", stamp, source)
    assert "held back by s SOURCE 'c' (one of 3 that speak), of group ('c')" in said(heartbeats, "s")
    scopes = {"s": Scope(frozenset("a"))}
    found = str(heartbeats.explain("q", ["s"], None, {"s": 3}, 5 * SECOND, scopes))
    assert "held back by s SOURCE 'b' (one of 2 that speak), of group ('a', 'b')" in found
    assert "complete up to 44, speaking (2 of 3 sources), waited for ('a', 'b'), up to 3 tuples wait" in found


def test_nobody_is_asked_to_declare_what_is_declared() -> None:
    heartbeats = heartbeats_of(MANY + FAST + "SKEW FROM fast TO s (WITHIN 50);")
    say(heartbeats, "fast", 100)
    answer = said(heartbeats, "fast", "s")
    assert "other streams' tuples say no more of it" in answer
    assert "SKEW FROM fast TO s" not in answer


def test_the_end_of_time_has_a_name() -> None:
    heartbeats = heartbeats_of(ODD)
    say(heartbeats, "my `stream", 100, "a")
    heartbeats.finish("my `stream", "a")
    assert "complete up to the end" in said(heartbeats, "my `stream")
