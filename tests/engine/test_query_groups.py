"""Groups of queries: their results reach a sink together, up to one instant, whatever happens on the way."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tools import crashes
from tools.postgres_server import Server

from headgate import Engine, UserError, read_commits
from headgate.deliver.outbox import Outbox
from headgate.deliver.sinks.file_group import FileGroupSink
from headgate.server.metrics import engine_metrics

pytestmark = pytest.mark.spark

BANK = """
CREATE STREAM debits (account STRING, amount INT, at BIGINT) TIMESTAMP BY at;
CREATE STREAM credits (account STRING, amount INT, at BIGINT) TIMESTAMP BY at;
DISORDER OF debits 2; DISORDER OF credits 2;
CREATE QUERY balances AS SELECT account, SUM(amount) AS balance FROM
  (SELECT account, -amount AS amount FROM debits [RANGE UNBOUNDED]
   UNION ALL SELECT account, amount FROM credits [RANGE UNBOUNDED]) AS moves GROUP BY account;
CREATE QUERY paid AS SELECT SUM(amount) AS paid FROM debits [RANGE UNBOUNDED];
CREATE QUERY got AS SELECT SUM(amount) AS got FROM credits [RANGE UNBOUNDED];
"""
"""Each transfer is a debit and a credit at one instant. What was paid is what was got at every instant."""

QUERIES = ("balances", "paid", "got")
ROUNDS = 6
END = 4 * ROUNDS + 10

Bags = dict[str, Counter[tuple[Any, ...]]]


def group(path: Path, options: str = "") -> str:
    return f"CREATE GROUP board OF balances, paid, got INTO parquet OPTIONS ('path' = '{path}'{options})"


def play(engine: Engine, first: int = 0, last: int = ROUNDS) -> None:
    """Transfers of some rounds, out of order: the debits of a round are computed before the credits come.

    What the engine has taken already is not sent again.
    """
    for number in range(first, last):
        legs = [(f"a{(number + n) % 3}", 10 * number + n, 4 * number + at) for n, at in enumerate((1, 3, 2))]
        for stream, accounts in (("debits", 3), ("credits", 4)):
            if engine.counts(stream)["taken"] <= 3 * number:
                engine.push(stream, [(f"a{(number + n) % accounts}", *leg[1:]) for n, leg in enumerate(legs)])
            engine.step()


def counted(rows: Sequence[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """Changes or rows as a bag, counted one by one."""
    bag: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        own = tuple(value for name, value in row.items() if not name.startswith("_"))
        bag[own] += -1 if row.get("_change") == "-" else 1
    return bag


def pictures(path: Path, current: bool = False) -> list[tuple[Any, Bags]]:
    """The rows of each query after each commit, for somebody who follows the commits."""
    bags: Bags = {name: Counter() for name in QUERIES}
    found = []
    for commit in read_commits(path):
        assert set(commit.by_query) == set(QUERIES)
        assert sorted(commit.files) == sorted(file for files in commit.by_query.values() for file in files)
        for name, files in commit.by_query.items():
            changed = counted([row for file in files for row in pq.read_table(file).to_pylist()])
            if not current:
                changed.update(bags[name])
            bags[name] = Counter({row: n for row, n in changed.items() if n})
        assert all(n > 0 for bag in bags.values() for n in bag.values())
        found.append((commit.complete, dict(bags)))
    return found


def adds_up(bags: Bags) -> bool:
    """Whether the sum of all balances is zero, and what was paid is what was got."""
    zero = sum(balance * n for (_, balance), n in bags["balances"].items()) == 0
    return zero and set(bags["paid"]) == set(bags["got"])


def shown(engine: Engine) -> Bags:
    snapshot = engine.snapshot("board")
    return {name: Counter(tuple(row.values()) for row in snapshot[name]) for name in snapshot}


# files


@pytest.mark.parametrize("options", ["", ", 'deliver' = 'current'"])
def test_every_commit_is_one_instant_of_all_queries(spark: SparkSession, tmp_path: Path, options: str) -> None:
    current = bool(options)
    with Engine(spark) as engine:
        engine.execute(BANK + group(tmp_path / "out", options))
        for number in range(ROUNDS):
            play(engine, number, number + 1)
            if engine.group("board").complete is not None:
                complete, bags = pictures(tmp_path / "out", current)[-1]
                assert complete == engine.group("board").delivered == engine.group("board").complete
                assert bags == shown(engine)
        engine.advance(END)
        found = pictures(tmp_path / "out", current)
        assert (found[-1][0], found[-1][1]) == (END, shown(engine))
        assert engine.query("paid").results(), "they are kept as well"
        assert engine.group("board").guarantee.startswith("exactly once")
    assert all(adds_up(bags) for _, bags in found)
    if current:
        assert len(found) <= 2, "older commits of current rows go"
        assert len(list((tmp_path / "out" / "paid").glob("*.parquet"))) <= 2
    else:
        assert len(found) > 3


def survived(spark: SparkSession, where: Path, every: int | None) -> tuple[list[tuple[Any, Bags]], int]:
    """Let an engine die after every so many steps. Return what the folder of the group holds in the end, and how often
    it died.
    """
    deaths = 0
    while True:
        with crashes.mortal(every) as death:
            engine = None
            try:
                engine = Engine(spark, where / "state", partitions=1)
                engine.execute(BANK + group(where / "out"))
                play(engine)
                engine.advance(END)
                engine.step()
                death.strike_at = None
                engine.close()
                return pictures(where / "out"), deaths
            except crashes.Dead:
                if engine is not None:
                    engine._core.lock.release()
        if (where / "out" / "_commits").exists():
            assert all(adds_up(bags) for _, bags in pictures(where / "out"))
        deaths += 1
        assert deaths < 100, "it gets nowhere"
        every = None if every is None else every + 1 + deaths % 5


@pytest.mark.parametrize("every", [60, 110])
def test_dying_at_any_step_leaves_one_instant_of_all_queries(spark: SparkSession, tmp_path: Path, every: int) -> None:
    undisturbed, _ = survived(spark, tmp_path / "undisturbed", None)
    found, deaths = survived(spark, tmp_path / "dying", every)
    assert deaths > 3
    assert all(adds_up(bags) for _, bags in found)
    assert found[-1] == undisturbed[-1]
    changes = [
        counted([row for commit in read_commits(tmp_path / how / "out") for row in _rows(commit.by_query[name])])
        for how in ("undisturbed", "dying")
        for name in QUERIES
    ]
    assert changes[:3] == changes[3:]


def _rows(files: Sequence[Path]) -> list[dict[str, Any]]:
    return [
        {**row, "at": row["_time"], "sign": row["_change"]} for file in files for row in pq.read_table(file).to_pylist()
    ]


def test_a_group_is_there_after_a_restart_until_it_is_dropped(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark, tmp_path / "state") as engine:
        engine.execute(BANK + group(tmp_path / "out"))
        play(engine, 0, 3)
        folder = engine.group("board").outbox.directory
    for _ in range(2):  # from the journal's checkpoint both times; the second engine does nothing
        with Engine(spark, tmp_path / "state") as engine:
            (listing,) = engine.execute("SHOW GROUPS")
            assert listing.rows == (("board", "balances, paid, got", "parquet"),)  # type: ignore[union-attr]
            assert engine.execute(group(tmp_path / "out")), "what stands in the directory is passed over"
    with Engine(spark, tmp_path / "state") as engine:
        play(engine, 3)
        engine.advance(END)
        assert pictures(tmp_path / "out")[-1] == (END, shown(engine))
        for statement in ("DROP QUERY paid", "ALTER QUERY paid AS SELECT SUM(amount) AS paid FROM debits [NOW]"):
            with pytest.raises(UserError, match=r'cannot be .* while it belongs to a group. It is one of "board"'):
                engine.execute(statement)
        engine.execute("DROP GROUP board; DROP QUERY paid")
        engine.step()
        assert not folder.exists()
    with Engine(spark, tmp_path / "state") as engine:
        assert engine.execute("SHOW GROUPS")[0].rows == ()  # type: ignore[union-attr]
        assert [query.name for query in engine.queries()] == ["balances", "got"]
    commits = [commit.number for commit in read_commits(tmp_path / "out")]
    assert commits == list(range(1, len(commits) + 1))


def test_a_group_that_comes_later_delivers_what_was_there_before(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark) as engine:
        engine.execute(BANK)
        play(engine)
        engine.execute(group(tmp_path / "out"))
        engine.step()
        ((complete, bags),) = pictures(tmp_path / "out")
        assert (complete, bags) == (engine.group("board").complete, shown(engine))
        engine.punctuate("debits", END)
        engine.punctuate("credits", END)
        engine.run(until=lambda: engine.group("board").delivered == END)
        assert pictures(tmp_path / "out")[-1] == (END, shown(engine))


def test_members_of_a_found_family_and_queries_by_groups_of_sources_go_out_together(
    spark: SparkSession, tmp_path: Path
) -> None:
    with Engine(spark) as engine:
        engine.execute(
            "CREATE STREAM s (k STRING, v INT, at INT) TIMESTAMP BY at SOURCE BY k; GROUPS OF s ('k0'), ('k1');"
            "CREATE STREAM t (k STRING, v INT, at INT) TIMESTAMP BY at;"
            "CREATE QUERY parts AS SELECT k, SUM(v) AS v FROM s [RANGE 50] GROUP BY k"
        )
        for n in range(5):
            engine.execute(f"CREATE QUERY q{n} AS SELECT SUM(v) AS v FROM t [RANGE 9] WHERE k = 'k{n}' GROUP BY k")
        assert any(query.hidden for query in engine._core.programs())
        assert len(engine.query("parts").answers) > 1
        options = f"'path' = '{tmp_path / 'out'}', 'parts.reflects' = 'true'"
        engine.execute(f"CREATE GROUP g OF q1, q3, q4, parts INTO parquet OPTIONS ({options})")
        engine.push("s", [("k0", 1, 1), ("k0", 2, 5), ("k1", 7, 1), ("k1", 9, 3)])
        engine.push("t", [(f"k{n}", n, 1) for n in range(4)])
        engine.punctuate("s", 6, "k0")
        engine.punctuate("s", 2, "k1")
        engine.punctuate("t", 9)
        engine.step()
        engine.step()
        assert engine.group("g").delivered == 2
        (*_, last) = read_commits(tmp_path / "out")
        assert last.complete == 2
        found = {name: pq.read_table(list(files)).to_pylist() for name, files in last.by_query.items() if files}
        assert found["q1"] == [{"_time": 1, "_change": "+", "v": 1}]
        assert found["q3"] == [{"_time": 1, "_change": "+", "v": 3}]
        assert counted(found["parts"]) == Counter([("k0", 1), ("k1", 7)])
        assert {row["_reflects"] for row in found["parts"]} == {'{"s": {"tuples": 4, "complete": 2}}'}
        assert "q4" not in found


def test_a_folder_of_another_group_is_refused_or_replaced(spark: SparkSession, tmp_path: Path) -> None:
    for options, taken in (("", False), ("", True), (", 'existing' = 'replace'", False)):
        with Engine(spark) as engine:
            engine.execute(BANK)
            if taken:
                with pytest.raises(UserError, match="sink-taken"):
                    engine.execute(group(tmp_path / "out", options))
                assert engine.execute("SHOW GROUPS")[0].rows == ()  # type: ignore[union-attr]
                continue
            engine.execute(group(tmp_path / "out", options))
            play(engine, 0, 3)
            engine.advance(END)
            assert pictures(tmp_path / "out")[-1] == (END, shown(engine))
            listed = {file for commit in read_commits(tmp_path / "out") for file in commit.files}
            assert set((tmp_path / "out").glob("*/*.parquet")) == listed


def test_a_sink_that_fails_is_told_and_tried_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    with Engine(spark) as engine:
        engine._core.loop.tell = told.append
        engine.execute(BANK + group(tmp_path / "out"))
        with monkeypatch.context() as patched:
            patched.setattr(FileGroupSink, "_check_claim", lambda self: (tmp_path / "gone").read_bytes())
            play(engine, 0, 2)
            assert engine.troubles()["sinks"].keys() == {"board"}
        assert told[0].startswith('the sink of group "board" takes no results, which wait and are tried again')
        engine.advance(END)
        engine.run_once()
        assert not engine.troubles()["sinks"]
        assert pictures(tmp_path / "out")[-1][1] == shown(engine)


def test_queries_that_are_printed_are_kept_for_their_group(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in `headgate run`. Queries of one shape that are printed run as a family, which keeps nothing."""
    defined = "CREATE STREAM s (k STRING, v INT);" + "".join(
        f"CREATE QUERY q{n} AS SELECT SUM(v) AS v FROM s [RANGE 9] WHERE k = 'k{n}' GROUP BY k;" for n in range(5)
    )
    made = f"CREATE GROUP g OF q1, q4 INTO json OPTIONS ('path' = '{tmp_path / 'out'}')"
    with Engine(spark, tmp_path / "state", default_sink="console") as engine:
        engine.execute(f"{defined} {made}; CREATE GROUP named OF q2, q3")
        engine.push("s", [(1, (f"k{n}", n)) for n in range(5)])
        engine.advance(1)
        assert engine.snapshot("named")["q3"] == [{"v": 3}]
        with pytest.raises(UserError, match='results of query "q0" were printed'):
            engine.execute("CREATE GROUP late OF q0")
    with Engine(spark, tmp_path / "state", default_sink="console") as engine:
        engine.push("s", [(2, ("k4", 10)), (2, ("k0", 7))])
        engine.advance(2)
        assert engine.snapshot("g", "named")["q4"] == [{"v": 14}]
    printed = capsys.readouterr().out
    assert "q0" in printed
    assert not any(f"q{n}" in printed for n in range(1, 5))
    assert sum(commit.rows for commit in read_commits(tmp_path / "out")) == 4


# a database


def into_database(server: Server, options: str) -> str:
    return f"CREATE GROUP board OF balances, paid, got INTO jdbc OPTIONS ('url' = '{server.url}', 'user' = 'tester', {options})"


IN_ONE_TRANSACTION = """BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT 'balances', COALESCE(SUM(balance), 0) FROM {0}balances;
SELECT 'paid', COALESCE(SUM(paid), 0) FROM {0}paid;
SELECT 'got', COALESCE(SUM(got), 0) FROM {0}got;
SELECT 'complete', COUNT(DISTINCT complete) FROM headgate_deliveries WHERE target LIKE '{0}%';
COMMIT"""


def test_whoever_reads_all_tables_in_one_transaction_finds_one_instant(
    spark: SparkSession, postgres: Server, tmp_path: Path
) -> None:
    """While the engine runs, and is started again on its directory in between."""
    tables = ", ".join(f"'{name}.dbtable' = 'b1_{name}'" for name in QUERIES)
    create = into_database(postgres, f"'deliver' = 'current', 'balances.key' = 'account', {tables}")
    over, found, failed = threading.Event(), list[dict[str, str]](), list[BaseException]()

    def look() -> None:
        try:
            while not over.is_set():
                there = postgres.ask("SELECT COUNT(*) FROM pg_tables WHERE tablename LIKE 'b1_%'")
                if there == [["3"]]:
                    rows = postgres.ask(IN_ONE_TRANSACTION.format("b1_"))
                    found.append({row[0]: row[1] for row in rows if len(row) == 2})
        except BaseException as error:
            failed.append(error)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for first in range(0, ROUNDS, 3):
            with Engine(spark, tmp_path / "state") as engine:
                engine.execute(BANK + create)
                play(engine, first, first + 3)
        with Engine(spark, tmp_path / "state") as engine:
            engine.advance(END)
            snapshot = engine.snapshot("board")
    finally:
        over.set()
        looking.join()
    assert not failed
    assert len({one["paid"] for one in found}) > 2
    for one in found:
        assert (one["balances"], one["complete"]) == ("0", "1")
        assert one["paid"] == one["got"]
    assert postgres.ask("SELECT account, balance FROM b1_balances ORDER BY account") == [
        [row["account"], str(row["balance"])] for row in sorted(snapshot["balances"], key=lambda row: row["account"])
    ]
    assert postgres.ask("SELECT DISTINCT complete FROM headgate_deliveries WHERE target LIKE 'b1_%'") == [[str(END)]]


def test_a_transaction_that_fails_changes_no_table(spark: SparkSession, postgres: Server, tmp_path: Path) -> None:
    tables = ", ".join(f"'{name}.dbtable' = 'b2_{name}'" for name in QUERIES)
    with Engine(spark, tmp_path / "state") as engine:
        engine.execute(BANK + into_database(postgres, tables))
        play(engine, 0, 2)
        before = [postgres.ask(f"SELECT COUNT(*) FROM b2_{name}") for name in QUERIES]
        postgres.ask("ALTER TABLE b2_got RENAME COLUMN got TO gotten")  # the last of the tables refuses its rows
        play(engine, 2, 4)
        assert [postgres.ask(f"SELECT COUNT(*) FROM b2_{name}") for name in QUERIES] == before
        assert 'column "got"' in engine.troubles()["sinks"]["board"]
    postgres.ask("ALTER TABLE b2_got RENAME COLUMN gotten TO got")
    with Engine(spark, tmp_path / "state") as engine:
        play(engine, 4)
        engine.advance(END)
        engine.step()
        for name in QUERIES:
            rows = postgres.ask(f'SELECT "_time", "_change" FROM b2_{name} ORDER BY "_time", "_change" DESC')
            assert rows == [[str(one.at), one.sign] for one in engine.query(name).results()]


def test_what_a_database_has_is_not_delivered_again_after_a_crash(
    spark: SparkSession, postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine dies when a transaction has succeeded and the journal does not know of it yet."""
    tables = ", ".join(f"'{name}.dbtable' = 'b3_{name}'" for name in QUERIES)

    def dies(outbox: Outbox, number: int) -> None:
        raise crashes.Dead

    engine = Engine(spark, tmp_path / "state")
    engine.execute(BANK + into_database(postgres, tables))
    play(engine, 0, 2)
    with monkeypatch.context() as patched:
        patched.setattr(Outbox, "_delivered", dies)
        with pytest.raises(crashes.Dead):
            play(engine, 2)
    engine._core.lock.release()
    numbers = "SELECT DISTINCT number FROM headgate_deliveries WHERE target LIKE 'b3_%'"
    ((arrived,),) = postgres.ask(numbers)
    with Engine(spark, tmp_path / "state") as engine:
        assert [one.number for one in engine.group("board").outbox.waiting] == [int(arrived)]
        engine.step()
        play(engine, 2)
        engine.advance(END)
        assert int(postgres.ask(numbers)[0][0]) > int(arrived)
        for name in QUERIES:
            rows = postgres.ask(f'SELECT "_time", "_change" FROM b3_{name} ORDER BY "_time", "_change" DESC')
            assert rows == [[str(one.at), one.sign] for one in engine.query(name).results()]


def test_a_database_that_refuses_is_an_error_of_the_statement(
    spark: SparkSession, postgres: Server, tmp_path: Path
) -> None:
    with Engine(spark) as engine:
        engine.execute(BANK)
        away = into_database(postgres, "'deliver' = 'changes'").replace(f":{postgres.port}/", ":1/")
        with pytest.raises(UserError, match="sink-failed"):
            engine.execute(away)
        assert engine.execute("SHOW GROUPS")[0].rows == ()  # type: ignore[union-attr]
        engine.execute("DROP QUERY got")


def test_the_status_says_how_far_a_group_is(spark: SparkSession, tmp_path: Path) -> None:
    with Engine(spark, tmp_path / "engine") as engine:
        engine.execute(f"{BANK} CREATE GROUP names OF paid, got; {group(tmp_path / 'out')}")
        assert engine.overview().groups["names"].complete is None
        play(engine, last=2)
        engine.advance(END)
        said = engine.overview().to_json()["groups"]
        assert said["names"] == {"queries": ["paid", "got"], "complete": END, "sink": None}
        assert (said["board"]["queries"], said["board"]["complete"]) == (list(QUERIES), END)
        sink = said["board"]["sink"]
        assert (sink["kind"], sink["delivered"], sink["waits"], sink["trouble"]) == ("parquet", END, False, None)
        metrics = {one.name: one.samples for one in engine_metrics(engine.overview())}
        (sample,) = metrics["headgate_group_sink_failed"]
        assert (sample.labels, sample.value) == ({"group": "board"}, 0)
