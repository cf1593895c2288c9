"""The time manager is used through its facade: no other package reaches into its state."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import headgate
from headgate.heartbeat.manager import Heartbeats

SOURCE = Path(headgate.__file__).parent

STATE = re.compile(r"heartbeats\.(model|clocks|generator)\b|heartbeat\.(model|stream_clock|source_table|generator)\b")


def test_other_packages_do_not_reach_into_the_state() -> None:
    outside = [file for file in SOURCE.rglob("*.py") if file.parent != SOURCE / "heartbeat"]
    assert len(outside) > 100
    assert not [file for file in outside if STATE.search(file.read_text())]


def test_the_facade_is_small_and_says_what_it_does() -> None:
    public = {name: one for name, one in vars(Heartbeats).items() if not name.startswith("_")}
    assert len(public) <= 20
    assert all(inspect.getdoc(one) for one in public.values())
