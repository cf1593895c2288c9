"""The real planning process: what it says of texts, what ends it, and that the next text does not notice."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.attacks import HEAVY
from tools.served import until

from headgate.catalog.catalog import Catalog
from headgate.compile import compile_script
from headgate.permissions import EVERYTHING, permissions
from headgate.planning.limits import PlanLimits
from headgate.planning.planner import Planned, Planner
from headgate.planning.process import _ended
from headgate.planning.state import NOTHING, State, apply, changes

DEFINED = """
CREATE STREAM s (k STRING, n INT, at TIMESTAMP) TIMESTAMP BY at;
CREATE RELATION r (k STRING, n INT);
CREATE VIEW v AS SELECT k, n FROM s [RANGE 5 MINUTES] WHERE n > 1;
CREATE FUNCTION f (a INT) RETURN a + 1;
CREATE QUERY q AS SELECT k, f(n) AS n FROM v;
CREATE QUERY i AS SELECT ISTREAM(k) FROM s [NOW];
CREATE GROUP g OF q;
"""
LONG = "SELECT " + ", ".join(f"n + {number} AS c{number}" for number in range(30_000)) + " FROM s [NOW]"
"""A text that nobody refuses for what it says, and that takes half a minute."""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    catalog = Catalog()
    compile_script(DEFINED, catalog)
    return catalog


@pytest.fixture(scope="module")
def planner() -> Iterator[Planner]:
    planner = Planner()
    yield planner
    planner.close()


def plan(planner: Planner, text: str, catalog: Catalog, limits: PlanLimits | None = None) -> Planned:
    before = planner.limits
    planner.limits = limits or before
    try:
        return planner.plan(text, State.of(catalog), EVERYTHING)
    finally:
        planner.limits = before


def code(planned: Planned) -> str | None:
    return None if planned.error is None else planned.error.code


# what is said


def test_what_can_be_carried_out_and_what_is_answered(planner: Planner, catalog: Catalog) -> None:
    text = "EXPLAIN SELECT f(n) AS n FROM v; CREATE VIEW w AS SELECT n FROM v; -- a remark\n SELECT n FROM w"
    found = plan(planner, text, catalog)
    assert found.error is None
    assert found.whole
    assert [text[one.start : one.end] for one in found.steps] == [
        "EXPLAIN SELECT f(n) AS n FROM v",
        "CREATE VIEW w AS SELECT n FROM v",
        "SELECT n FROM w",
    ]
    assert [one.explanation is not None for one in found.steps] == [True, False, False]
    assert "stream s" in (found.steps[0].explanation or "")
    assert "w" not in catalog.views


def test_errors_have_their_place_in_the_whole_text(planner: Planner, catalog: Catalog) -> None:
    text = "SHOW QUERIES;\nSELECT nothing FROM v"
    found = plan(planner, text, catalog)
    assert len(found.steps) == 1
    assert found.error is not None
    assert found.error.place is not None
    assert (found.error.code, found.error.place.line, found.error.place.text) == ("no-such-column", 2, text)
    assert text[found.error.place.start : found.error.place.end] == "nothing"


def test_a_text_in_cql_that_cannot_be_read_is_refused_as_a_whole(planner: Planner, catalog: Catalog) -> None:
    found = plan(planner, "SELECT n FROM v; SELECT (", catalog)
    assert (found.steps, code(found)) == ((), "syntax")


def test_gsql_is_planned(planner: Planner, catalog: Catalog) -> None:
    found = plan(planner, "SET dialect = 'gsql'; SELECT k FROM s WHERE n > 1; SELECT x FROM s; SHOW QUERIES", catalog)
    assert len(found.steps) == 2
    assert found.error is not None
    assert found.error.place is not None
    assert found.error.place.text.startswith("SET dialect")


def test_names_that_are_taken_are_left_to_the_engine(planner: Planner, catalog: Catalog) -> None:
    found = plan(planner, "CREATE QUERY q AS SELECT n FROM v; SHOW QUERIES", catalog)
    assert (len(found.steps), found.error) == (2, None)


def test_what_a_text_may_use(planner: Planner, catalog: Catalog) -> None:
    text = "CREATE STREAM z (n INT) FROM csv OPTIONS ('path' = '/etc')"
    found = planner.plan(text, State.of(catalog), permissions(()))
    assert code(found) == "not-allowed"


@pytest.mark.parametrize(
    "text",
    [
        "SHOW QUERIES",
        "DESCRIBE q",
        "SNAPSHOT q",
        "SNAPSHOT g",
        "WHY i",
        "DROP GROUP g; DROP QUERY q",
        "ALTER QUERY i AS SELECT ISTREAM(n) FROM s [NOW]",
        "CREATE GROUP h OF q",
    ],
)
def test_of_queries_as_much_is_known_as_is_needed(planner: Planner, catalog: Catalog, text: str) -> None:
    assert plan(planner, text, catalog).error is None


@pytest.mark.parametrize("text", ["SNAPSHOT i", "SNAPSHOT nothing", "DROP QUERY q"])
def test_of_queries_what_is_wrong_is_known(planner: Planner, catalog: Catalog, text: str) -> None:
    assert plan(planner, text, catalog).error is not None


# what it knows


def test_only_what_has_changed_is_told() -> None:
    catalog, elsewhere = Catalog(), Catalog()
    compile_script(DEFINED, catalog)
    first = State.of(catalog)
    apply(changes(NOTHING, first), elsewhere)
    compile_script("DROP GROUP g; DROP QUERY q; CREATE VIEW w AS SELECT n FROM v; SET time_unit = '1 minute'", catalog)
    second = State.of(catalog)
    some = changes(first, second)
    assert [(table, key, entry is None) for table, key, entry in some.entries] == [
        ("views", "w", False),
        ("queries", "q", True),
        ("groups", "g", True),
    ]
    apply(some, elsewhere)
    assert elsewhere.settings == catalog.settings
    assert set(elsewhere.queries) == {"i"}
    assert changes(second, State.of(catalog)).entries == ()
    assert second.same(State.of(catalog))
    assert not second.same(first)


# limits


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_texts_are_refused_by_name(planner: Planner, catalog: Catalog, name: str) -> None:
    found = plan(planner, HEAVY[name], catalog, PlanLimits(statement_seconds=1))
    assert code(found) in ("too-large", "too-deep", "too-long-to-plan", "syntax", "no-such-column", None)
    assert (found.error is None) == (name in ("deep brackets",))
    assert found.error is None or found.error.place is not None


def test_what_takes_too_long(planner: Planner, catalog: Catalog) -> None:
    limits = PlanLimits(statement_seconds=1, bytes=2**33)
    found = plan(planner, LONG, catalog, limits)
    assert code(found) == "too-long-to-plan"
    assert plan(planner, "EXPLAIN SELECT n FROM v", catalog).error is None


def test_all_of_a_text_has_a_limit(planner: Planner, catalog: Catalog) -> None:
    text = "EXPLAIN SELECT k, COUNT(*) AS c FROM v GROUP BY k;" * 1_000
    found = plan(planner, text, catalog, PlanLimits(text_seconds=1))
    assert code(found) == "too-long-to-plan"
    assert 0 < len(found.steps) < 1_000
    assert found.error is not None
    assert found.error.place is not None
    assert found.error.place.start == found.steps[-1].end + 1


def test_what_takes_too_much_memory(planner: Planner, catalog: Catalog) -> None:
    limits = PlanLimits(statement_seconds=30, bytes=2**26)
    found = plan(planner, LONG, catalog, limits)
    assert code(found) == "too-large"
    assert found.error is not None
    assert "64 MB" in found.error.message


def test_answers_that_are_too_long(planner: Planner, catalog: Catalog) -> None:
    text = "EXPLAIN SELECT k, COUNT(*) AS c FROM v GROUP BY k;" * 20
    assert code(plan(planner, text, catalog, PlanLimits(answer_bytes=5_000))) == "too-large"


def test_every_end_has_a_name() -> None:
    ends = [_ended(status) for status in (0, signal.SIGXCPU, signal.SIGALRM, signal.SIGSEGV, signal.SIGKILL, 3 << 8)]
    assert ends == ["well", "time", "time", "memory", "memory", "time"]


# ends


def children(process: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def in_the_middle(planner: Planner, catalog: Catalog, kill_parent: bool) -> Planned:
    """Kill a process in the middle of its work."""
    found: list[Planned] = []
    limits = PlanLimits(statement_seconds=60, text_seconds=60, bytes=2**33)
    asking = threading.Thread(target=lambda: found.append(plan(planner, LONG, catalog, limits)))
    plan(planner, "SHOW QUERIES", catalog)
    process = planner.process
    assert process is not None
    asking.start()
    until(lambda: children(process))
    child = children(process)[0]
    os.kill(process if kill_parent else child, signal.SIGKILL)
    asking.join(60)
    if kill_parent:
        os.kill(child, signal.SIGKILL)
    return found[0]


def test_a_child_that_is_killed(planner: Planner, catalog: Catalog) -> None:
    process = planner.process
    assert code(in_the_middle(planner, catalog, kill_parent=False)) == "too-large"
    assert plan(planner, "EXPLAIN SELECT n FROM v", catalog).error is None
    assert process in (None, planner.process), "the process itself goes on"


def test_a_process_that_is_killed_is_started_again(planner: Planner, catalog: Catalog) -> None:
    found = in_the_middle(planner, catalog, kill_parent=True)
    assert (code(found), found.steps) == ("not-planned", ())
    until(lambda: planner.process is not None)
    again = plan(planner, "EXPLAIN SELECT n FROM v", catalog)
    assert again.error is None, again.error.render()


def test_what_the_process_has(planner: Planner, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_TOKEN", "s3cret")
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    own = Planner()
    try:
        assert plan(own, "SHOW QUERIES", catalog).error is None
        about = Path(f"/proc/{own.process}")
        said = (about / "environ").read_bytes()
        assert b"s3cret" not in said
        assert {one.split(b"=")[0] for one in said.split(b"\0") if one} <= {
            *(b"LANG", b"LC_ALL", b"LC_CTYPE", b"TZ", b"PYTHONPATH", b"MALLOC_ARENA_MAX")
        }
        assert {one.name for one in (about / "fd").iterdir()} == {"0", "1", "2"}
        assert os.getpriority(os.PRIO_PROCESS, own.process or 0) > os.getpriority(os.PRIO_PROCESS, 0)
    finally:
        own.close()
        os.close(reading)
        os.close(writing)
    assert own.process is None


def test_the_process_ends_with_whoever_started_it(catalog: Catalog) -> None:
    own = Planner()
    plan(own, "SHOW QUERIES", catalog)
    started = own._process
    assert started is not None
    assert started.stdin is not None
    started.stdin.close()
    assert started.wait(30) == 0
    own.close()


def test_one_that_is_closed_plans_nothing(catalog: Catalog) -> None:
    own = Planner()
    own.close()
    assert code(plan(own, "SHOW QUERIES", catalog)) == "not-planned"
    assert own.process is None
