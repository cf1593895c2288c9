"""The profiler: figures over a given clock, in bounded memory; and what an engine tells it."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from headgate import Engine, ManualClock
from headgate.errors import UserError
from headgate.log.statistics import Values
from headgate.observe.profile import MOST_ADAPTATIONS, MOST_SUBJECTS, Adaptations, Profile, Subject
from headgate.observe.profile_table import lines
from headgate.observe.series import BUCKETS, WIDTHS_US, Amounts, Series

SECOND = 1_000_000
FRAGMENT = Subject("fragment", "answer", query="q")


def test_amounts_of_lately_are_those_of_the_last_minute() -> None:
    series = Series()
    for second in range(600):
        series.add(Amounts(epochs=1, rows_in=10, rows_out=2), second * SECOND)
    amounts, span_us = series.recent(600 * SECOND)
    assert (amounts.rows_in, amounts.rows_out) == (600, 120)
    assert span_us == 60 * SECOND
    assert series.whole.rows_in == 6_000


def test_coarser_buckets_lie_behind_the_fine_ones() -> None:
    series = Series()
    series.add(Amounts(rows_in=7), 0)
    assert series.recent(30 * SECOND) == (Amounts(rows_in=7), 30 * SECOND)
    assert series.recent(600 * SECOND) == (Amounts(rows_in=7), 600 * SECOND)  # by quarters of a minute
    assert series.recent(7_200 * SECOND)[0] == Amounts(rows_in=7)  # by four minutes
    assert series.recent(100_000 * SECOND) == (Amounts(rows_in=7), 0)  # long ago: no rate


def test_a_series_has_a_fixed_number_of_buckets() -> None:
    series = Series()
    for second in range(100_000):
        series.add(Amounts(rows_in=1), second * SECOND)
    held = [len(level) for level in series._levels]
    assert held == [BUCKETS] * len(WIDTHS_US)
    assert series.whole.rows_in == 100_000


def test_a_clock_that_goes_back_loses_nothing() -> None:
    series = Series()
    series.add(Amounts(rows_in=1), 10 * SECOND)
    series.add(Amounts(rows_in=1), 3 * SECOND)
    assert series.recent(10 * SECOND)[0].rows_in == 2


def test_figures_say_rates_selectivity_and_time_for_a_row() -> None:
    profile = Profile()
    profile.record(FRAGMENT, 0, Amounts(1, 100, 20, 5_000), state_rows=40, state_bytes=800)
    profile.record(FRAGMENT, SECOND, Amounts(1, 100, 30, 3_000))
    (figures,) = profile.figures(2 * SECOND)
    assert (figures.rate_in, figures.rate_out) == (100.0, 25.0)
    assert (figures.selectivity, figures.us_per_row) == (0.25, 40.0)
    assert (figures.state_rows, figures.state_bytes) == (40, 800)
    assert [bucket.amounts.rows_out for bucket in profile.history(FRAGMENT, 2 * SECOND)] == [20, 30]


def test_values_hold_for_all_rows_or_are_not_said() -> None:
    profile, stream = Profile(), Subject("stream", "s")
    profile.record(stream, 0, Amounts(rows_in=3, columns=(("v", Values(3, 1, 2, 9)), ("w", Values(3, 0, 1, 1)))))
    profile.record(stream, 1, Amounts(rows_in=2, columns=(("v", Values(2, 0, -5, 4)),)))
    found = profile.of(stream, 2)
    assert found is not None
    assert found.columns == {"v": Values(5, 1, -5, 9)}


def test_what_was_not_heard_of_for_longest_is_forgotten() -> None:
    profile = Profile()
    for number in range(MOST_SUBJECTS + 1):
        profile.record(Subject("stream", f"s{number}"), number, Amounts(rows_in=1))
    assert profile.of(Subject("stream", "s0"), MOST_SUBJECTS) is None
    assert len(profile.figures(MOST_SUBJECTS)) == MOST_SUBJECTS


def test_adaptations_are_kept_by_query_and_bounded() -> None:
    adaptations = Adaptations()
    for number in range(MOST_ADAPTATIONS + 5):
        adaptations.note(number, "scheduling", "q" if number % 2 else "r", f"order {number}", "figures")
    assert adaptations.count == MOST_ADAPTATIONS + 5
    assert len(adaptations.of()) == MOST_ADAPTATIONS
    assert {one.query for one in adaptations.of("q")} == {"q"}
    (first, *_), now_us = adaptations.of("r"), 3 * SECOND
    assert lines([], [first], now_us) == ["adapted 3.0 s ago, scheduling: order 6 (by figures)"]


@pytest.mark.spark
def test_an_engine_profiles_what_its_epochs_do(spark: SparkSession) -> None:
    with Engine(spark, clock=ManualClock()) as engine:
        engine.execute(
            "CREATE STREAM s (k STRING, v INT); CREATE QUERY big AS SELECT ISTREAM(k, v) FROM s [NOW] WHERE v >= 8;"
            "CREATE QUERY sums AS SELECT k, SUM(v) AS v FROM s [RANGE 100] GROUP BY k"
        )
        engine.push("s", [(n, {"k": "a" if n % 2 else "b", "v": n}) for n in range(10)])
        engine.advance(20)
        found = {str(one.subject): one for one in engine.profile()}
        assert (found["s"].rows_in, found["s"].columns["v"]) == (10, Values(10, 0, 0, 9))
        assert (found["big.answer"].rows_in, found["big.answer"].rows_out) == (10, 2)
        assert found["big.answer"].selectivity == 0.2
        assert found["big.answer"].us_per_row is not None
        assert found["sums.answer"].waiting == 0
        engine.push("s", [(30, {"k": "a", "v": None})])
        by_query = {str(one.subject): one for one in engine.profile("sums")}
        assert "big.answer" not in by_query
        assert by_query["sums.answer"].waiting == 1
        assert by_query["s"].columns["v"] == Values(11, 1, 0, 9)
        (listing,) = engine.execute("SHOW PROFILE FOR sums")
        assert "sums.answer" in str(listing)
        assert "nothing was adapted" in str(listing)
        with pytest.raises(UserError, match="does not exist"):
            engine.execute("SHOW PROFILE FOR sum")
        engine.execute("DROP QUERY big")
        assert not [one for one in engine.profile() if one.subject.query == "big"]
        engine.execute("SET profile = 'off'")
        engine.advance(40)
        assert {str(one.subject): one for one in engine.profile()}["sums.answer"].rows_in == 10
        (listing,) = engine.execute("SHOW PROFILE")
        assert "SET profile = 'on'" in str(listing)


@pytest.mark.spark
def test_what_came_before_a_restart_has_no_rate(spark: SparkSession, tmp_path: object) -> None:
    with Engine(spark, str(tmp_path)) as engine:
        engine.execute("CREATE STREAM s (v INT); CREATE QUERY q AS SELECT ISTREAM(v) FROM s [NOW]")
        engine.push("s", [(n, {"v": n}) for n in range(10)])
        engine.advance(10)
    with Engine(spark, str(tmp_path)) as engine:
        assert engine.profile() == []
        engine.push("s", [(11, {"v": 11})])
        assert [one.rows_in for one in engine.profile()] == [1]
