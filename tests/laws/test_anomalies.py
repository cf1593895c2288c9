"""The anomalies of WhiteWater's examples (section 3): each occurs at level 'none', and at no level above it.

An operator of the paper is a stage here, and what it puts out for one run is there at once. So the result of one update
comes in pieces where it comes through several stages, and the paper's schedules say which stage runs when.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from tools.duck_engine import engine_on_duckdb, without_spark

from headgate.engine import Engine
from headgate.explain import tree

STREAMS = "CREATE STREAM l (v STRING) DISORDER 1000; CREATE STREAM r (w STRING) DISORDER 1000;"

ABOVE = [
    ("update-complete", "heeding"),
    ("input-prefix", "heeding-scan"),
    ("input-prefix", "tokens"),
    ("synchronized", "heeding"),
]


class Scheduled:
    """A query whose stages run when the test says so."""

    def __init__(self, engine: Engine, text: str, level: str, method: str) -> None:
        self.engine = engine
        engine.execute(
            f"{STREAMS} SET consistency = '{level}'; SET consistency_method = '{method}';"
            f"CREATE QUERY q AS {text} EMIT EARLY"
        )
        self.query = engine.query("q")
        assert self.query.early_answers is not None
        assert self.query.early_answers.stages is not None
        self.query.early_answers.stages.pace = self._pace
        self.allowed: set[str] = set()

    def _pace(self, stages: Sequence[str]) -> list[str]:
        return [name for name in stages if name in self.allowed]

    def stage(self, word: str) -> str:
        """The stage in whose plan a word stands."""
        (found,) = [one.part.name for one in self.query.fragments if one.part.log and word in tree(one.part.plan)]
        return found

    def run(self, *stages: str) -> set[str]:
        """Let some stages run in one turn; return the rows that the early answer shows."""
        self.allowed = set(stages)
        self.engine.step()
        return self.shown()

    def rest(self) -> set[str]:
        """Let all stages run until nothing is under way."""
        self.allowed = {one.part.name for one in self.query.fragments}
        for _ in range(10):
            self.engine.step()
        return self.shown()

    def shown(self) -> set[str]:
        early = self.query.early()
        assert early is not None
        rows: list[str] = []
        for one in early.results:
            pair = "".join(map(str, one.row.values()))
            rows.append(pair) if one.sign == "+" else rows.remove(pair)
        return set(rows)


@contextmanager
def scheduled(text: str, level: str, method: str = "heeding") -> Iterator[Scheduled]:
    with without_spark(), engine_on_duckdb() as engine:
        yield Scheduled(engine, text, level, method)


# Figure 1: an update of one stream meets two tuples of the other, and the answer shows only one of the pairs

FIGURE_1 = (
    "SELECT l.v, r.w FROM l [RANGE 100], r [RANGE 100] WHERE l.v < 'b' "
    "UNION ALL SELECT l.v, r.w FROM l [RANGE 100], r [RANGE 100] WHERE l.v >= 'b'"
)


def figure_1(one: Scheduled) -> set[str]:
    one.engine.push("l", [(1, ("a",)), (1, ("b",))])
    one.engine.push("r", [(1, ("k",))])
    assert one.rest() == {"ak", "bk"}
    one.engine.push("r", [(1, ("l",))])
    one.run(one.stage("<"))
    return one.run("answer")


def test_figure_1_part_of_an_update_is_shown() -> None:
    with scheduled(FIGURE_1, "none") as one:
        assert figure_1(one) == {"ak", "bk", "al"}, "as if b had been there for k and not for l"
        assert one.rest() == {"ak", "bk", "al", "bl"}


@pytest.mark.parametrize("level, method", ABOVE)
def test_figure_1_an_update_is_shown_whole(level: str, method: str) -> None:
    with scheduled(FIGURE_1, level, method) as one:
        assert figure_1(one) == {"ak", "bk"}
        assert one.rest() == {"ak", "bk", "al", "bl"}


# Figure 2: two paths from one stream to one join, of which one lags

FIGURE_2 = (
    "SELECT o1.v, o2.n FROM (SELECT l.v, r.w FROM l [RANGE 100], r [RANGE 100]) o1, "
    "(SELECT w, COUNT(*) AS n FROM r [RANGE 100] GROUP BY w) o2 WHERE o1.w = o2.w"
)


def figure_2(one: Scheduled) -> set[str]:
    one.engine.push("l", [(1, ("a",)), (1, ("b",))])
    one.engine.push("r", [(1, ("k",))])
    assert one.rest() == {"a1", "b1"}
    one.engine.push("r", [(1, ("k",))])
    one.run(one.stage("COUNT"))
    return one.run("answer")


def test_figure_2_one_path_lags_behind_the_other() -> None:
    with scheduled(FIGURE_2, "none") as one:
        assert figure_2(one) == {"a2", "b2"}, "k is counted twice, and joined once"
        one.rest()
        assert len(one.query.early().results) != 2  # type: ignore[union-attr]


@pytest.mark.parametrize("level, method", ABOVE)
def test_figure_2_both_paths_or_none(level: str, method: str) -> None:
    with scheduled(FIGURE_2, level, method) as one:
        assert figure_2(one) == {"a1", "b1"}
        assert one.rest() == {"a2", "b2"}
        early = one.query.early()
        assert early is not None
        assert early.tuples == {"l": 2, "r": 2}


# Figure 4: a tuple is shown that is passive in a result, while what it actively leads to is delayed

FIGURE_4 = (
    "SELECT l.v, r.w FROM l [RANGE 100], r [RANGE 100] WHERE l.v < 'b' "
    "UNION ALL SELECT l.v, r.w FROM l [RANGE 100], r [RANGE 100] WHERE l.v >= 'b'"
)


def figure_4(one: Scheduled) -> set[str]:
    """l has a, then b; r has 1, then 2. The pair of b and 2 is derived from b, that of a and 2 would be from 2."""
    one.engine.push("l", [(1, ("a",))])
    one.engine.push("r", [(1, ("1",))])
    assert one.rest() == {"a1"}
    second = one.stage(">=")
    one.engine.push("r", [(1, ("2",))])
    one.run(second)  # 2 finds nothing, and waits in the state of the second join
    one.run("answer")
    one.engine.push("l", [(1, ("b",))])
    one.run(second)  # b finds 1 and 2
    return one.run("answer")


def test_figure_4_a_passive_tuple_is_still_under_way() -> None:
    with scheduled(FIGURE_4, "none") as one:
        assert figure_4(one) == {"a1", "b1", "b2"}, "2 is there for b, and not for a"
        assert one.rest() == {"a1", "a2", "b1", "b2"}


@pytest.mark.parametrize("level, method", ABOVE)
def test_figure_4_a_passive_tuple_is_waited_for(level: str, method: str) -> None:
    with scheduled(FIGURE_4, level, method) as one:
        assert figure_4(one) == {"a1"}
        assert one.rest() == {"a1", "a2", "b1", "b2"}


def test_what_is_marked_is_shown_and_has_no_label() -> None:
    with without_spark(), engine_on_duckdb() as engine:
        engine.execute("SET inconsistent = 'mark'")
        one = Scheduled(engine, FIGURE_2, "input-prefix", "heeding")
        assert figure_2(one) == {"a2", "b2"}
        early = one.query.early()
        assert early is not None
        assert not early.consistent
        assert not early.tuples
        one.rest()
        early = one.query.early()
        assert early is not None
        assert early.consistent
        assert early.tuples == {"l": 2, "r": 2}


def test_what_is_marked_is_told_of_and_so_is_that_it_is_consistent() -> None:
    with without_spark(), engine_on_duckdb() as engine:
        engine.execute("SET inconsistent = 'mark'")
        one = Scheduled(engine, FIGURE_1, "input-prefix", "heeding")
        heard: list[tuple[bool, int]] = []
        one.query.on_early(lambda answer: heard.append((answer.consistent, len(answer.added))))
        engine.push("l", [(1, ("a",))])
        one.rest()
        engine.push("r", [(1, ("k",))])
        one.run(one.stage("<"))
        one.run("answer")
        assert heard == [(False, 1)], "k is under way on the other path, on which it changes nothing"
        one.rest()
        assert heard == [(False, 1), (True, 0)]


def test_what_is_printed_says_whether_it_is_consistent(capsys: pytest.CaptureFixture[str]) -> None:
    with without_spark(), engine_on_duckdb(default_sink="console") as engine:
        engine.execute("SET inconsistent = 'mark'")
        one = Scheduled(engine, FIGURE_1, "input-prefix", "heeding")
        figure_1(one)
        one.rest()
    printed = capsys.readouterr().out.splitlines()
    assert printed[-3:] == [
        "q ? ~ 1 + v=a, w=l",
        "q ~ 1 + v=b, w=l",
        "q ~ is consistent: the first 2 tuples of l and the first 2 tuples of r, up to 1",
    ]
