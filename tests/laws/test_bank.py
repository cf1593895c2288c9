"""The bank's own books, without Spark, and a small bank on it: see `bank`. The large one is `make test-bank`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from tools.bank import Auditor, Load, Transfers, play
from tools.bank_pictures import Pictures


def test_balances_computed_at_once_are_those_of_one_transfer_after_the_other() -> None:
    drawn = Transfers.drawn(300, 5, 1)
    legs = list(
        zip(drawn.at.tolist(), drawn.debtor.tolist(), drawn.creditor.tolist(), drawn.amount.tolist(), strict=True)
    )
    balances: dict[int, int] = {}
    expected = []
    for instant in sorted({at for at, *_ in legs}):
        before = dict(balances)
        for _, debtor, creditor, amount in (leg for leg in legs if leg[0] == instant):
            balances[debtor] = balances.get(debtor, 0) - amount
            balances[creditor] = balances.get(creditor, 0) + amount
        for account, balance in balances.items():
            if before.get(account) != balance:
                expected += [(instant, account, 1, balance)]
                expected += [(instant, account, -1, before[account])] if account in before else []
    assert sorted(zip(*(column.tolist() for column in drawn.changes()), strict=True)) == sorted(expected)


@pytest.mark.parametrize("in_time", [False, True])
def test_the_auditor_finds_what_is_missing_and_what_is_there_twice(tmp_path: Path, in_time: bool) -> None:
    expected = Transfers.drawn(300, 5, 2).changes()

    def audited(rows: list[int]) -> list[str]:
        at = (
            pa.array(expected.at[rows] * 1_000 + 1_767_225_600_000_000, pa.timestamp("us", tz="UTC"))
            if in_time
            else pa.array(expected.at[rows])
        )
        sign = np.where(expected.sign[rows] > 0, "+", "-")
        pq.write_table(
            pa.table(
                {"_time": at, "_change": sign, "account": expected.account[rows], "balance": expected.balance[rows]}
            ),
            tmp_path / "1.parquet",
        )
        auditor = Auditor(tmp_path, in_time)
        auditor.look()
        auditor.judge(expected)
        return auditor.complaints

    everything = list(range(len(expected.at)))
    assert audited(everything) == []
    assert any("the total is" in complaint for complaint in audited(everything[:-1]))
    assert any("instead of" in complaint for complaint in audited([*everything, 7]))


def test_pictures_are_judged_by_the_transfers_up_to_their_instant(tmp_path: Path) -> None:
    drawn = Transfers(*(np.array(column, np.int64) for column in ([1, 2], [0, 1], [1, 2], [10, 5])))

    def judged(*lines: str) -> Pictures:
        (tmp_path / "pictures").write_text("\n".join(lines), encoding="utf-8")
        pictures = drawn.pictures(tmp_path / "pictures")
        pictures.look()
        return pictures

    first = '{"at": 1, "balances": {"0": -10, "1": 10}, "total": [0]}'
    second = '{"at": 2, "balances": {"0": -10, "1": 5, "2": 5}, "total": [0]}'
    half = '{"early": {"debits": 1, "credits": 0}, "sum": -10, "total": [-10]}'
    right = judged(first, second, half, first[:20])
    assert not right.complaints
    assert (right.settled, right.early, right.one_sided, right.instants) == (2, 1, 1, {1, 2})
    assert "not those of this instant" in judged(first.replace('"at": 1', '"at": 2')).complaints[0]
    assert "the total is [7]" in judged(first.replace("[0]", "[7]")).complaints[0]
    assert "the total is -10" in judged(half.replace('"sum": -10', '"sum": -9')).complaints[0]


@pytest.mark.spark
def test_a_small_bank_survives_a_kill(tmp_path: Path) -> None:
    load = Load(
        transfers=3_000, accounts=20, files=4, kills=1, between_kills_s=(1.0, 4.0), from_start=0.0, last_s=300.0
    )
    assert play(load, tmp_path, Console(quiet=True)) == []
