"""Families that headgate finds: queries that differ in constants run as one program, and each as if it were alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headgate import Engine
from headgate.catalog.entries import Query
from headgate.cql import shapes
from headgate.cql.definitions import with_own_plan
from headgate.engine import found
from headgate.engine.core import Core
from headgate.errors import UserError
from headgate.schedule import family

pytestmark = pytest.mark.spark

DEFINED = "CREATE STREAM ticks (symbol STRING, price DOUBLE)"
NOW = "SELECT ISTREAM symbol, price FROM ticks [NOW] WHERE symbol = '{symbol}' AND price > {least}"
FLOWING = "SELECT * FROM ticks WHERE symbol = '{symbol}' AND price > {least}"
RANGE = "SELECT symbol, SUM(price) AS total FROM ticks [RANGE 3] WHERE symbol = '{symbol}' GROUP BY symbol HAVING COUNT(*) > {least}"
COUNTED = "SELECT COUNT(*) AS n FROM ticks [RANGE 2] WHERE symbol = '{symbol}' AND price > {least}"
ROWS = "SELECT MAX(price) AS most FROM ticks [ROWS 2] WHERE symbol = '{symbol}' AND price > {least}"
OTHERS = "SELECT symbol, MAX(price) AS most FROM ticks [RANGE 2] WHERE symbol <> '{symbol}' GROUP BY symbol"
"""Those of one symbol are equal: members that differ in nothing."""
ABOVE = (
    "SELECT ISTREAM t.price FROM ticks [NOW] t, (SELECT symbol, AVG(price) AS mean FROM ticks [RANGE 3] GROUP BY symbol) m "
    "WHERE t.symbol = m.symbol AND t.price * 2 > m.mean + {least}"
)
EVERY = (NOW, FLOWING, RANGE, COUNTED, ROWS, OTHERS, ABOVE)

Results = dict[str, list[tuple[Any, ...]]]


def core(engine: Engine) -> Core:
    return engine._core


def families(engine: Engine) -> dict[str, int]:
    """The families that run, with the number of their members."""
    return {query.name: len(query.members) for query in core(engine).programs() if query.hidden}  # type: ignore[attr-defined]


def register(engine: Engine, text: str, first: int, last: int, more: str = "") -> None:
    for n in range(first, last + 1):
        made = text.format(symbol="AB"[n % 2], least=n)
        engine.execute(f"CREATE QUERY q{n} AS {made} {more.format(n=n)}")


def play(engine: Engine, first: int, last: int) -> None:
    """The ticks of some instants: A rises by one at every instant, B falls."""
    for at in range(first, last + 1):
        engine.push("ticks", [(at, ("A", float(at))), (at, ("B", 10.0 - at))])
        engine.advance(at)


def answers(engine: Engine) -> Results:
    return {
        query.name: sorted((one.at, one.sign, *one.row.values()) for one in query.results())
        for query in engine.queries()
    }


def both(spark: SparkSession, work: Callable[[Engine], Results]) -> tuple[Results, Results]:
    """What comes of some work with families and without."""
    found = []
    for setting in ("on", "off"):
        with Engine(spark) as engine:
            engine.execute(f"SET families = '{setting}'; {DEFINED}")
            found.append(work(engine))
    return found[0], found[1]


@pytest.mark.parametrize("text", EVERY)
def test_members_answer_what_they_would_answer_alone(spark: SparkSession, text: str) -> None:
    expected: list[dict[str, int]] = []

    def work(engine: Engine) -> Results:
        register(engine, text, 0, 4)
        play(engine, 1, 3)
        expected.append(families(engine))
        register(engine, text, 5, 6)
        engine.execute("DROP QUERY q1")
        play(engine, 4, 6)
        return answers(engine)

    together, alone = both(spark, work)
    assert together == alone
    assert list(together) == ["q0", "q2", "q3", "q4", "q5", "q6"]
    assert any(together.values())
    assert expected == [{"family of q0": 5}, {}]


def test_a_family_is_made_of_queries_that_differ_in_constants_only(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(DEFINED)
        register(engine, NOW, 0, 2)
        assert families(engine) == {}  # so few run alone
        engine.execute("CREATE QUERY x AS SELECT ISTREAM symbol FROM ticks [NOW] WHERE symbol = 'A' AND price > 1")
        assert families(engine) == {}
        register(engine, NOW, 3, 3)
        assert families(engine) == {"family of q0": 4}
        engine.execute("SET families = 'off'")
        register(engine, NOW, 4, 4)
        engine.execute("SET families = 'on'; CREATE QUERY y AS " + NOW.format(symbol="B", least="7.5"))
        assert families(engine) == {"family of q0": 5}  # 7 and 7.5 are both compared as DOUBLE
        assert [query.name for query in engine.queries()] == ["q0", "q1", "q2", "x", "q3", "q4", "y"]


def test_a_script_makes_a_family_of_queries_that_are_alike_with_the_first(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"CREATE QUERY q{n} AS {NOW.format(symbol='A', least=n)}" for n in range(4)]
    alone: list[str] = []

    def noted(query: Query) -> Query:
        alone.append(query.name)
        return with_own_plan(query)

    monkeypatch.setattr(found, "with_own_plan", noted)
    for scripts in ([";".join(texts)], texts):
        with Engine(spark) as engine:
            engine.execute(DEFINED)
            for script in scripts:
                engine.execute(script)
            assert families(engine) == {"family of q0": 4}
    assert alone == ["q0", "q1", "q2"]


def test_queries_with_other_windows_or_types_of_constants_are_not_alike() -> None:
    other = (
        "CREATE QUERY a AS SELECT k FROM s [RANGE 5] WHERE v > 1",
        "CREATE QUERY b AS SELECT k FROM s [RANGE 6] WHERE v > 1",
        "CREATE QUERY c AS SELECT k FROM s [RANGE 5] WHERE v > 1.5",
        "CREATE QUERY d AS SELECT k FROM s [RANGE 5] WHERE v > 'x'",
    )
    assert len(set(map(shapes.without_constants, other))) == len(other)
    assert shapes.without_constants(other[0]) == shapes.without_constants(
        "CREATE QUERY z AS SELECT k FROM s [RANGE 5] WHERE v > 22"
    )


def test_a_script_tells_which_lengths_its_statements_have() -> None:
    texts = [
        f"CREATE QUERY q{n} AS SELECT k FROM s [RANGE {length} SECONDS SLIDE 2 SECONDS] WHERE v > {n}"
        for n, length in enumerate((5, 60, 5))
    ]
    other = "CREATE QUERY a AS SELECT k FROM s [RANGE {} SECONDS SLIDE {} SECONDS] WHERE v > 1"
    script = shapes.Script(";".join([*texts, other.format(1, 3), other.format("1.5", 2)]))
    found = script.alike(texts[0])
    assert (found.same, found.similar, found.lengths()) == (2, 3, {(5,), (60,)})
    alone = script.alike(other.format(1, 3))
    assert (alone.same, alone.similar, alone.lengths()) == (1, 1, set())
    many = shapes.Script(";".join(other.format(n, 2) for n in range(1, 11)))
    assert (many.alike(other.format(1, 2)).similar, many.alike(other.format(1, 2)).lengths()) == (1, set())


def test_lengths_that_a_family_may_list() -> None:
    assert shapes.may_be_listed({(n, 7, n) for n in range(8)})
    assert not shapes.may_be_listed({(n,) for n in range(9)})
    assert shapes.may_be_listed({(1, 5), (2, 6), (3, 6), (4, 5)})  # 4 lengths of one window, 2 of the other
    assert not shapes.may_be_listed({(1, 5), (2, 6), (3, 7)})
    assert not shapes.may_be_listed({(1, 5), (2,)})


def test_a_query_of_the_shape_that_comes_later_is_a_row(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(DEFINED)
        register(engine, NOW, 0, 3)
        play(engine, 1, 2)
        programs = len(core(engine).workspaces.known)
        register(engine, NOW, 4, 30)
        assert families(engine) == {"family of q0": 31}
        assert len(core(engine).workspaces.known) == programs  # Spark was asked about nothing
        for n in range(29):
            engine.execute(f"DROP QUERY q{n}")
        play(engine, 3, 3)
        assert families(engine) == {"family of q0": 2}
        engine.execute("DROP QUERY q29; DROP QUERY q30")
        assert families(engine) == {}
        play(engine, 4, 4)


def test_a_windowed_query_that_comes_later_begins_another_family(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(DEFINED)
        register(engine, RANGE, 0, 3)
        play(engine, 1, 2)
        register(engine, RANGE, 4, 7)
        assert families(engine) == {"family of q0": 4, "family of q4": 4}


def test_everything_that_takes_the_name_of_a_query_works_for_a_member(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(DEFINED)
        early = None
        heard: dict[str, list[float]] = {"q0": [], "q2": []}
        for n in range(4):
            register(engine, NOW, n, n)
            early = engine.query("q0") if early is None else early
        engine.query("q0").on_change(lambda some: heard["q0"].extend(one.row["price"] for one in some))
        engine.query("q2").on_change(lambda some: heard["q2"].extend(one.row["price"] for one in some))
        play(engine, 1, 4)
        query = engine.query("q2")
        assert early is engine.query("q0")
        assert heard == {"q0": [1.0, 2.0, 3.0, 4.0], "q2": [3.0, 4.0]}
        assert (query.complete, query.count, query.kind, query.streams()) == (4, 2, "stream", ["ticks"])
        assert query.why().query == "q2"
        said = query.explain()
        assert "member 3 of family of q0" in said
        assert "one of 4 queries" in said
        assert "CROSS JOIN" in said
        (listing,) = engine.execute("SHOW QUERIES")
        assert [row[0] for row in listing.rows] == ["q0", "q1", "q2", "q3"]  # type: ignore[union-attr]
        engine.execute("WHY q2; DESCRIBE q2")
        engine.execute("ALTER QUERY q2 AS SELECT ISTREAM price FROM ticks [NOW] WHERE price < 6")
        assert families(engine) == {"family of q0": 3}
        play(engine, 5, 5)
        assert [one.row for one in engine.query("q2").results()] == [{"price": 5.0}, {"price": 5.0}]
        engine.execute("ALTER QUERY q2 AS " + NOW.format(symbol="A", least=5))
        assert families(engine) == {"family of q0": 4}
        play(engine, 6, 6)
        assert [one.row["price"] for one in engine.query("q2").results()] == [6.0]
        with pytest.raises(UserError, match="no-such-query"):
            engine.query("family of q0")


def test_members_go_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    def work(setting: str) -> Results:
        directory = tmp_path / setting
        with Engine(spark, directory) as engine:
            engine.execute(f"SET families = '{setting}'; {DEFINED}")
            register(engine, NOW, 0, 5)
            play(engine, 1, 2)
            engine.execute("DROP QUERY q5")
            register(engine, NOW, 6, 6)
        with Engine(spark, directory) as engine:
            assert families(engine) == ({"family of q0": 6} if setting == "on" else {})
            register(engine, NOW, 0, 1)  # a script may say once more what it has registered
            play(engine, 3, 4)
            engine.execute("DROP QUERY q1; CREATE QUERY q5 AS " + NOW.format(symbol="A", least=0))
            engine._running.checkpoint()
        with Engine(spark, directory) as engine:
            assert families(engine) == ({"family of q0": 6} if setting == "on" else {})
            play(engine, 5, 6)
            return answers(engine)

    together, alone = work("on"), work("off")
    assert together == alone
    assert [at for at, *_ in together["q5"]] == [5, 6]


@pytest.mark.parametrize("text", [FLOWING, RANGE])
def test_other_members_go_on_after_a_restart(spark: SparkSession, tmp_path: Path, text: str) -> None:
    def work(setting: str) -> Results:
        directory = tmp_path / setting
        with Engine(spark, directory) as engine:
            engine.execute(f"SET families = '{setting}'; {DEFINED}")
            register(engine, text, 0, 4)
            play(engine, 1, 2)
        with Engine(spark, directory) as engine:
            engine.execute("DROP QUERY q2")
            play(engine, 3, 5)
            for query in core(engine).programs():
                for fragment in query.fragments:
                    if fragment.program.synopses and not fragment.inputs.by_arrival:
                        fragment.move_state()
        with Engine(spark, directory) as engine:
            play(engine, 6, 7)
            return answers(engine)

    assert work("on") == work("off")


def test_members_with_sinks_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark, tmp_path / "engine") as engine:
        engine.execute(DEFINED)
        register(engine, NOW, 0, 5, "INTO parquet OPTIONS ('path' = '" + str(tmp_path) + "/out{n}')")
        assert families(engine) == {"family of q0": 6}
        play(engine, 1, 3)
        engine.step()
        with pytest.raises(UserError, match="results-elsewhere"):
            engine.query("q0").results()
        assert not list((tmp_path / "engine" / "queries" / "family%20of%20q0" / "results").iterdir())
    with Engine(spark, tmp_path / "engine") as engine:
        play(engine, 4, 5)
        engine.step()
        assert engine.query("q2").delivered == 5
    found = {n: sorted(pq.read_table(tmp_path / f"out{n}", columns=["price"])["price"].to_pylist()) for n in (0, 1, 2)}
    assert found == {0: [1.0, 2.0, 3.0, 4.0, 5.0], 1: [5.0, 6.0, 7.0, 8.0, 9.0], 2: [3.0, 4.0, 5.0]}


def test_members_see_their_streams_from_the_beginning_if_they_ask_for_it(spark: SparkSession) -> None:
    def work(engine: Engine) -> Results:
        play(engine, 1, 2)
        for n in range(6):
            engine.execute(f"CREATE QUERY q{n} FROM BEGINNING AS " + NOW.format(symbol="A", least=n))
        engine.execute("CREATE QUERY x AS " + NOW.format(symbol="A", least=0))
        play(engine, 3, 4)
        engine.execute("CREATE QUERY y FROM BEGINNING AS " + NOW.format(symbol="A", least=1))
        assert engine.query("y").membership is None  # it sees more than the family will
        play(engine, 5, 5)
        engine.execute("DROP QUERY y")  # what is still kept differs
        return answers(engine)

    together, alone = both(spark, work)
    assert together == alone
    assert [at for at, *_ in together["q0"]] == [1, 2, 3, 4, 5]


def test_tuples_ahead_of_the_heartbeat_are_answered_as_they_come(spark: SparkSession) -> None:
    """A query that handles each tuple by itself does not wait, nor does a family of such queries."""

    def work(engine: Engine) -> Results:
        register(engine, FLOWING, 0, 4)
        engine.push("ticks", [(5, ("A", 9.0)), (3, ("A", 8.0))])
        engine.step()
        early = answers(engine)
        assert early["q0"] == [(3, "+", "A", 8.0), (5, "+", "A", 9.0)]
        register(engine, FLOWING, 5, 5)  # it sees what came before it, too
        engine.execute("CREATE QUERY x AS " + FLOWING.format(symbol="A", least=1))
        engine.push("ticks", [(4, ("A", 7.0)), (6, ("B", 7.5))])
        engine.step()
        engine.advance(9)
        register(engine, FLOWING, 6, 6)
        play(engine, 10, 11)
        return answers(engine)

    together, alone = both(spark, work)
    assert together == alone
    assert len(together["x"]) == 5


def test_queries_that_a_value_can_make_fail_run_alone(spark: SparkSession) -> None:
    """Whatever one of them meets with, the others go on."""
    text = "SELECT ISTREAM CAST(symbol AS INT) AS number FROM ticks [NOW] WHERE symbol = '{symbol}' AND price > 0"
    with Engine(spark) as engine:
        engine.execute(DEFINED)
        for n, symbol in enumerate(("1", "2", "3", "A")):
            engine.execute(f"CREATE QUERY q{n} AS {text.format(symbol=symbol)}")
        assert families(engine) == {}
        engine.push("ticks", [(1, ("2", 5.0)), (1, ("A", 5.0))])
        with pytest.raises(UserError, match='query "q3" failed'):
            engine.advance(1)
        assert [(one.at, one.row) for one in engine.query("q1").results()] == [(1, {"number": 2})]


def test_a_family_that_fails_stands_still_with_all_members(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails all the same is told of once, and all members say why they have come no further."""

    def broken(until: int) -> None:
        raise RuntimeError("no room")

    with Engine(spark) as engine:
        engine.execute(DEFINED)
        register(engine, NOW, 0, 3)
        engine.execute("CREATE QUERY other AS SELECT ISTREAM symbol FROM ticks [NOW]")
        fragment = engine.query("q0").fragments[0]
        monkeypatch.setattr(fragment, "prepare", broken)
        with pytest.raises(UserError) as raised:
            play(engine, 1, 1)
        assert "family of q0" in raised.value.render()
        assert engine.query("q3").failed
        assert engine.query("q3").trouble is not None
        assert set(engine.troubles()["queries"]) == {"q0", "q1", "q2", "q3"}
        assert len(engine.query("other").results()) == 2
        monkeypatch.undo()
        engine.execute("DROP QUERY q3")  # and the family is tried again at once
        play(engine, 2, 2)
        assert [one.at for one in engine.query("q0").results()] == [1, 2]
        assert engine.query("q0").trouble is None


def test_the_first_members_may_have_begun(spark: SparkSession) -> None:
    """Queries that have answered go on alone; those that come after them are a family."""

    def work(engine: Engine) -> Results:
        register(engine, NOW, 0, 1)
        play(engine, 1, 2)
        register(engine, NOW, 2, 6)
        assert families(engine) in ({"family of q2": 5}, {})
        play(engine, 3, 5)
        return answers(engine)

    together, alone = both(spark, work)
    assert together == alone


def test_rows_of_members_that_have_gone_do_not_pile_up(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family, "MOST_GONE", 0)
    with Engine(spark, tmp_path) as engine:
        engine.execute(DEFINED)
        register(engine, FLOWING, 0, 3)
        for at in range(1, 6):
            engine.execute("DROP QUERY q3; CREATE QUERY q3 AS " + FLOWING.format(symbol="A", least=0))
            play(engine, at, at)
        log = engine.query("q0").membership.family.rows.log  # type: ignore[union-attr]
        assert sum(chunk.rows for chunk in log.chunks) < 12
    with Engine(spark, tmp_path) as engine:
        play(engine, 6, 6)
        found = answers(engine)
    assert [at for at, *_ in found["q3"]] == [5, 6]
    assert [at for at, *_ in found["q0"]] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("text", [NOW, FLOWING])
def test_queries_come_and_go_while_the_engine_runs(spark: SparkSession, text: str) -> None:
    """Wherever an epoch is, a member misses nothing behind the instant from which it sees its streams."""
    with Engine(spark) as engine:
        engine.execute(DEFINED)
        register(engine, text, 0, 3)
        running = threading.Thread(target=engine.run)
        running.start()
        try:
            last = 60
            for at in range(1, last + 1):
                engine.push("ticks", [(at, ("A", 99.0 + at))])
                engine.punctuate("ticks", at)
                if at % 3 == 0 and at < 50:
                    engine.execute(f"CREATE QUERY c{at} AS " + text.format(symbol="A", least=at))
                if at % 9 == 0 and at < 50:
                    engine.execute(f"DROP QUERY c{at - 3}")
            wait = threading.Event()
            for _ in range(600):
                if all(query.complete == last for query in engine.queries()):
                    break
                wait.wait(0.1)
        finally:
            engine.stop()
            running.join()
        for query in engine.queries():
            instants = sorted(one.at for one in query.results())
            if query.name.startswith("q") and int(query.name[1:]) % 2:
                assert instants == []  # it looks at B
            else:
                assert instants == list(range(instants[0], last + 1)), query.name
        assert len(core(engine).members) > 4


# windows of several lengths

LONG = (3, 1, 2, 3, 2)
"""The lengths of the windows of five queries."""

LENGTHS = (
    "SELECT symbol, SUM(price) AS total FROM ticks [RANGE {length}] WHERE symbol = '{symbol}' GROUP BY symbol "
    "HAVING COUNT(*) > {least}",
    "SELECT COUNT(*) AS n FROM ticks [RANGE {length} SLIDE 2] WHERE symbol = '{symbol}' AND price > {least}",
    "SELECT * FROM ticks [ROWS {length}] WHERE symbol = '{symbol}' AND price > {least}",
    "SELECT symbol, price FROM ticks [PARTITION BY symbol ROWS {length} RANGE {length}] WHERE price > {least}",
    "SELECT ISTREAM t.price, m.mean FROM ticks [RANGE {length}] t, (SELECT symbol, AVG(price) AS mean "
    "FROM ticks [RANGE {length}] GROUP BY symbol) m WHERE t.symbol = m.symbol AND t.price > {least}",
)


def of_lengths(text: str, lengths: Sequence[int], first: int = 0) -> list[str]:
    """A query for each length, with constants of its own."""
    return [
        f"CREATE QUERY q{n} AS {text.format(symbol='AB'[n % 2], least=n % 3, length=length)}"
        for n, length in enumerate(lengths, first)
    ]


@pytest.mark.parametrize("text", LENGTHS)
@pytest.mark.parametrize("in_one_script", [True, False])
def test_members_with_windows_of_several_lengths_answer_what_they_would_answer_alone(
    spark: SparkSession, text: str, in_one_script: bool
) -> None:
    expected: list[dict[str, int]] = []

    def work(engine: Engine) -> Results:
        texts = of_lengths(text, LONG)
        for script in [";".join(texts)] if in_one_script else texts:
            engine.execute(script)
        expected.append(families(engine))
        play(engine, 1, 3)
        engine.execute("DROP QUERY q1")
        play(engine, 4, 6)
        return answers(engine)

    together, alone = both(spark, work)
    assert together == alone
    assert list(together) == ["q0", "q2", "q3", "q4"]
    assert any(together.values())
    assert together["q0"] != together["q2"]
    assert expected == [{"family of q0": 5}, {}]


def test_a_family_lists_the_lengths_of_the_script_that_makes_it(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(DEFINED)
        engine.execute(";".join(of_lengths(LENGTHS[0], (2, 3, 3, 5))))
        engine.execute(";".join(of_lengths(LENGTHS[0], (5, 4, 3), 4)))
        assert families(engine) == {"family of q0": 6}  # q5 has a length that is not listed
        assert engine.query("q5").membership is None
        said = engine.query("q3").explain()
        assert "its constants are B, 0, 5" in said
        for length in (2, 3, 5):
            assert f"[RANGE {length}]" in said
        engine.execute("DROP QUERY q0")
        engine.execute(";".join(of_lengths(LENGTHS[0], (2,), 7)))  # no other member has that length any more
        assert families(engine) == {"family of q0": 6}
        play(engine, 1, 2)
        engine.execute(";".join(of_lengths(LENGTHS[0], (2, 3, 2, 3), 8)))  # the family has begun
        assert families(engine) == {"family of q0": 6, "family of q8": 4}


def test_queries_before_a_family_bring_their_lengths(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(DEFINED)
        for text in of_lengths(LENGTHS[0], (7, 7, 6)):
            engine.execute(text)
        engine.execute(";".join(of_lengths(LENGTHS[0], (2, 3, 2), 3)))
        assert families(engine) == {"family of q0": 6}


def test_windows_with_the_same_lengths_are_one_constant(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(DEFINED)
        engine.execute(";".join(of_lengths(LENGTHS[4], range(1, 9))))
        assert families(engine) == {"family of q0": 8}
        assert "its constants are 1.0, 5\n" in engine.query("q4").explain()


@pytest.mark.parametrize("lengths", [[9] * 5, [*range(1, 10)] * 4])
def test_one_length_or_too_many_make_a_family_for_each(spark: SparkSession, tmp_path: Path, lengths: list[int]) -> None:
    """What the journal says of such a family is what it said before families listed lengths."""
    with Engine(spark, tmp_path) as engine:
        engine.execute(DEFINED)
        engine.execute(";".join(of_lengths(LENGTHS[0], lengths)))
        found = families(engine)
        assert sum(found.values()) == len(lengths)
        assert len(found) == len(set(lengths))
        facts = [one.to_json() for one in engine._running.registry.found.facts()]
    assert all(len(one["joined"]) == 4 and "v" not in one for one in facts)


def test_few_queries_of_many_lengths_are_several_families(spark: SparkSession) -> None:
    expected: list[dict[str, int]] = []

    def work(engine: Engine) -> Results:
        engine.execute(";".join(of_lengths(LENGTHS[0], [*range(1, 10)] * 2)))
        expected.append(families(engine))
        play(engine, 1, 4)
        return answers(engine)

    together, alone = both(spark, work)
    assert together == alone
    assert len(together) == 18
    assert expected == [{"family of q0": 8, "family of q4": 8}, {}]


def test_a_mistake_in_the_length_of_a_window_is_told_as_without_families(spark: SparkSession) -> None:
    said = []
    for setting in ("on", "off"):
        with Engine(spark) as engine:
            engine.execute(f"SET families = '{setting}'; {DEFINED}")
            for wrong in ("0", "99999999999999999999", "1.5"):
                texts = of_lengths("SELECT * FROM ticks [ROWS {length}] WHERE price > {least}", (1, 2, 3, 4, 5))
                texts[2] = texts[2].replace("ROWS 3", f"ROWS {wrong}")
                try:
                    engine.execute(";".join(texts))
                    said.append((setting, wrong, "right"))
                except UserError as error:
                    said.append((setting, wrong, error.render()))
                play(engine, 1, 2)
                said.append((setting, wrong, str(answers(engine))))
                for query in engine.queries():
                    engine.execute(f"DROP QUERY {query.name}")
    half = len(said) // 2
    assert [one[1:] for one in said[:half]] == [one[1:] for one in said[half:]]


@pytest.mark.parametrize("text", [LENGTHS[0], LENGTHS[2]])
def test_a_family_of_several_lengths_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path, text: str) -> None:
    """Its program is the same also if the members that had a length have gone."""

    def work(setting: str) -> Results:
        directory = tmp_path / setting
        with Engine(spark, directory) as engine:
            engine.execute(f"SET families = '{setting}'; {DEFINED}; " + ";".join(of_lengths(text, (1, 4, 2, 4, 2, 3))))
            play(engine, 1, 3)
            engine.execute("DROP QUERY q0")
            for query in core(engine).programs():
                for fragment in query.fragments:
                    if fragment.program.synopses:
                        fragment.move_state()
        for first in (4, 6):
            with Engine(spark, directory) as engine:
                assert list(families(engine).values()) == ([5] if setting == "on" else [])
                play(engine, first, first + 1)
                engine._running.checkpoint()
        with Engine(spark, directory) as engine:
            if setting == "on":
                said = engine.query("q2").explain()
                assert all(f"[{text.split('[')[1].split(' ')[0]} {length}]" in said for length in (1, 2, 3, 4))
            play(engine, 8, 9)
            return answers(engine)

    together, alone = work("on"), work("off")
    assert together == alone
    assert any(together.values())
