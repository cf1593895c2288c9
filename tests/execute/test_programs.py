"""The program of a fragment by the size of the epoch, and when a double turns up that it does not sum."""

from __future__ import annotations

import pytest

from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.delta.lower import lower
from headgate.execute.programs import SINGLE_TASK_ROWS, TINY_ROWS, Programs


def programs(query: str) -> Programs:
    catalog = Catalog()
    define(f"CREATE STREAM s (k INT, v DOUBLE); CREATE QUERY q AS {query}", catalog)
    plan = catalog.query("q").plan
    return Programs(lower(plan), lower(plan, tiny=True))


SUMS = "SELECT k, SUM(v) AS total FROM s [RANGE 10] GROUP BY k"


def test_an_epoch_runs_by_the_program_for_its_size() -> None:
    found = programs(SUMS)
    assert found.for_rows(TINY_ROWS) is found.tiny
    assert found.for_rows(TINY_ROWS, tiny=False) is found.single_task
    assert found.for_rows(TINY_ROWS + 1) is found.single_task
    assert found.for_rows(SINGLE_TASK_ROWS) is found.single_task
    assert found.for_rows(SINGLE_TASK_ROWS + 1) is found.parallel
    assert [one.in_one_task for one in (found.tiny, found.single_task, found.parallel)] == [True, True, False]


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
