"""The program of a fragment by the size of the epoch, and when a double turns up that it does not sum."""

from __future__ import annotations

import pytest

from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.delta.lower import Way, lower
from headgate.execute.programs import SINGLE_TASK_ROWS, TINY_ROWS, Programs


def programs(query: str) -> Programs:
    """The programs of a query that takes nothing for granted of the numbers it reads."""
    catalog = Catalog()
    define(f"CREATE STREAM s (k INT, v DOUBLE); CREATE QUERY q AS {query}", catalog)
    plan = catalog.query("q").plan
    way = Way(denied=None)
    return Programs(lower(plan, way=way), lower(plan, tiny=True, way=way))


def few() -> int:
    return 2


def many() -> int:
    return 4


SUMS = "SELECT k, SUM(v) AS total FROM s [RANGE 10] GROUP BY k"


def test_an_epoch_runs_by_the_program_for_its_size() -> None:
    found = programs(SUMS)
    assert found.for_rows(TINY_ROWS, few) is found.tiny
    assert found.for_rows(TINY_ROWS, few, tiny=False) is found.single_task
    assert found.for_rows(TINY_ROWS + 1, few) is found.single_task
    assert found.for_rows(SINGLE_TASK_ROWS, few) is found.single_task
    assert found.for_rows(SINGLE_TASK_ROWS + 1, few) is found.parallel
    assert [one.in_one_task for one in (found.tiny, found.single_task, found.parallel)] == [True, True, False]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT MAX(v) AS most FROM s [ROWS 3]",
        "SELECT k FROM s [RANGE 5 ON k]",
        "SELECT k FROM (ISTREAM(SELECT k FROM s WHERE v > 1)) [ROWS 3]",
    ],
)
def test_with_many_tasks_a_window_over_all_rows_is_cut_into_ranges(query: str) -> None:
    found = programs(query)
    assert found.by_ranges is not None
    assert found.for_rows(SINGLE_TASK_ROWS + 1, many) is found.by_ranges
    assert found.for_rows(SINGLE_TASK_ROWS + 1, few) is found.parallel
    assert found.for_rows(SINGLE_TASK_ROWS, many) is found.single_task
    kept = [synopsis.name for synopsis in found.by_ranges.program.synopses]
    assert kept == [synopsis.name for synopsis in found.program.synopses]
    assert "PARTITION BY _block" in found.by_ranges.program.output()
    assert "PARTITION BY _block" not in found.program.output()


def test_with_many_tasks_a_sum_over_everything_is_cut_into_ranges() -> None:
    found = programs("SELECT COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 10]")
    assert found.by_ranges is not None
    assert "PARTITION BY _range" in found.by_ranges.program.output()
    beyond = found.summing_every_double()  # the bands of doubles are beside these sums
    assert beyond.by_ranges is None


@pytest.mark.parametrize(
    "query",
    [
        SUMS,
        "SELECT SUM(CAST(k AS DECIMAL(10, 2))) AS total FROM s [RANGE 10]",
        "SELECT COUNT(*) AS n, COUNT(DISTINCT k) AS several FROM s [RANGE 10]",
        "SELECT k FROM s [PARTITION BY k ROWS 3]",
        "SELECT k FROM (ISTREAM(SELECT DISTINCT a.k FROM s [RANGE 5] a, s [NOW] b WHERE a.k = b.k)) [ROWS 3]",
    ],
)
def test_what_tasks_share_already_or_what_is_dear_to_read_is_not_cut(query: str) -> None:
    assert programs(query).by_ranges is None


@pytest.mark.parametrize("query", [SUMS, "SELECT MAX(v) AS most FROM s [ROWS 3]", "SELECT ISTREAM(k) FROM s [NOW]"])
def test_all_sizes_keep_equal_synopses(query: str) -> None:
    found = programs(query)
    names = [{synopsis.name for synopsis in one.program.synopses} for one in (found.tiny, found.single_task)]
    assert names == [{synopsis.name for synopsis in found.program.synopses}] * 2


def test_programs_that_sum_every_double_keep_more_and_never_give_way_again() -> None:
    found = programs(SUMS)
    assert not found.sums_every_double
    beyond = found.summing_every_double()
    assert beyond.sums_every_double
    kept = [{synopsis.name for synopsis in one.program.synopses} for one in (found, beyond)]
    assert kept[0] < kept[1]
    assert programs("SELECT ISTREAM(k) FROM s [NOW]").sums_every_double


def test_programs_without_panes_keep_running_sums_in_all_sizes() -> None:
    found = programs("SELECT k, SUM(v) AS total FROM s [RANGE 10 SLIDE 5] GROUP BY k")
    assert [synopsis.name for synopsis in found.program.synopses] == ["panes_1"]
    sums = found.without_panes()
    assert sums is not None
    for sized in (sums.parallel, sums.single_task, sums.tiny):
        assert [synopsis.name for synopsis in sized.program.synopses] == ["sums_1"]
    assert sums.without_panes() is None
    kept = {synopsis.name for synopsis in sums.summing_every_double().program.synopses}
    assert "wild_sums_1" in kept
    assert not any("panes" in name for name in kept)
    assert programs(SUMS).without_panes() is None
