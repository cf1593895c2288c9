"""Traces for people: a table with a line for each heartbeat, and one that says where time goes."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headgate.observe.trace import PARTS, Traces

BAR = 24
"""How many characters wide a bar is that stands for all of the time."""


AGE_WORDS = {
    "ingest": "ingest",
    "heartbeat": "waiting for the heartbeat",
    "loop": "waiting for the loop",
    "planning": "planning",
    "job": "job",
    "commit": "commit",
    "delivery": "delivery",
}
"""The parts of the age of an answer for people to read."""


def shown(traces: Traces, last: int) -> RenderableType:
    """Return tables of the last heartbeats and of where time goes. The last fragment has the name of the query."""
    query, slowest = traces.fragments[-1], traces.slowest()
    if slowest is None:
        return Text(f'query "{query}" has had no heartbeat yet')
    most = (
        f"Most time goes at {slowest.stop}: {slowest.share:.0%} of it, "
        f"{seconds(slowest.waited_us)} s of waiting and {seconds(slowest.worked_us)} s of work a heartbeat."
    )
    tables = [_heartbeats(query, traces, last), _shares(traces), *([ages(traces)] if traces.ages() else [])]
    reflects = [Text(f"The answers so far reflect {traces.reflects}.")] if traces.reflects else []
    return Group(*(part for table in tables for part in (table, Text())), Text(most), *reflects)


def _heartbeats(query: str, traces: Traces, last: int) -> Table:
    """Return when each stop was through, in seconds since the trace began; the stop that took longest is marked."""
    shown = traces.kept[-last:]
    table = Table(
        title=f"heartbeats of {query}, and seconds until each stop was through", title_justify="left", box=None
    )
    table.add_column("", justify="right", style="dim")
    table.add_column("up to", no_wrap=True)
    for stop in traces.way:
        table.add_column(stop, justify="right", no_wrap=True)
    table.add_column("rows", justify="right")
    for trace in shown:
        steps = {step.stop: step for step in trace.steps()}
        longest = max(steps.values(), key=lambda step: step.took_us).stop
        cells = []
        for stop in traces.way:
            marked = stop == longest and steps[stop].took_us > 0
            cells.append(Text(seconds(steps[stop].at_us) if stop in steps else "-", style="bold red" if marked else ""))
        rows = sum(steps[stop].rows for stop in traces.fragments[-1:] if stop in steps)
        table.add_row(str(trace.id), traces.instant(trace), *cells, str(rows))
    return table


def _shares(traces: Traces) -> Table:
    table = Table(title=f"where time goes, over {len(traces.traces)} heartbeats", title_justify="left", box=None)
    for heading, side in (("at", "left"), ("waiting", "right"), ("work", "right"), ("share", "right"), ("", "left")):
        table.add_column(heading, justify=side)  # type: ignore[arg-type]
    for one in traces.shares():
        bar = Text("█" * round(one.share * BAR), style="red" if one == traces.slowest() else "blue")
        waited, worked = (
            f"{seconds(length_us)} s" if length_us else "-" for length_us in (one.waited_us, one.worked_us)
        )
        table.add_row(one.stop, waited, worked, f"{one.share:.0%}", bar)
    return table


def ages(traces: Traces) -> Table:
    """Return what the age of answers consists of, from when their tuples began to be read until the sink had them."""
    found = traces.ages()
    whole = [sum(age.values()) for age in found]
    table = Table(title=f"the age of answers, over {len(found)} heartbeats", title_justify="left", box=None)
    for heading, side in (("spent on", "left"), ("mean", "right"), ("p90", "right"), ("share", "right"), ("", "left")):
        table.add_column(heading, justify=side)  # type: ignore[arg-type]
    for part in PARTS:
        mine = [age[part] for age in found]
        share = sum(mine) / max(sum(whole), 1)
        bar = Text("█" * round(share * BAR), style="blue")
        table.add_row(AGE_WORDS[part], f"{seconds(_mean(mine))} s", f"{seconds(_p90(mine))} s", f"{share:.0%}", bar)
    table.add_row("all of it", f"{seconds(_mean(whole))} s", f"{seconds(_p90(whole))} s", "", "")
    return table


def _mean(lengths_us: Sequence[int]) -> int:
    return sum(lengths_us) // len(lengths_us)


def _p90(lengths_us: Sequence[int]) -> int:
    return sorted(lengths_us)[int(0.9 * (len(lengths_us) - 1))]


def seconds(length_us: int) -> str:
    """Return a length of time in seconds, as text."""
    return f"{length_us / 1_000_000:.3f}"
