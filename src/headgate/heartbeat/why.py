"""Why a query has come no further: which source holds it back, since when, by which bound, and what would release it.

A query is released when the first tuple that is known to wait is answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape

from headgate.heartbeat.bound_text import when
from headgate.heartbeat.causes import cause_of
from headgate.heartbeat.clocks import base
from headgate.heartbeat.held import held_back
from headgate.heartbeat.instants import in_words
from headgate.heartbeat.model import TimeModel
from headgate.heartbeat.releases import releases
from headgate.heartbeat.stream_clock import StreamClock
from headgate.heartbeat.waiting import Standing
from headgate.scope import EVERYTHING, Scope, Scopes
from headgate.ticks import Tick, TimeDomain


@dataclass(frozen=True, slots=True)
class Input:
    """One stream that a query reads."""

    stream: str
    complete: str
    """Up to when it is complete."""

    state: str
    """speaking, silent, finished, paused, ..., and of how many sources."""

    waiting: int
    """How many tuples of the stream the query has not answered yet. They are those of all sources, even where the query
    sees only some.
    """

    of: str = ""
    """The groups for which the query waits, where these are not all sources."""


@dataclass(frozen=True, slots=True, repr=False)
class Why:
    """Why a query has come no further. Its text is for people; the fields are for programs."""

    query: str
    complete: str
    """Up to when its answers are complete."""

    held_by: str
    """The stream that holds it back, and the source where the stream has many; empty if nothing waits."""

    since_s: float | None
    """How many seconds ago that source was last heard of; None: never."""

    cause: str
    """Why that source is not complete further."""

    releases: tuple[str, ...]
    """What would release the query."""

    inputs: tuple[Input, ...]
    groups: Mapping[str, str] = field(default_factory=dict)
    """If the query runs by groups of sources: up to when the answers of each group are complete."""

    reflects: str = ""
    """The input that its answers reflect, in words; empty if that is not known."""

    adapted: tuple[str, ...] = ()
    """What was adapted for the query lately: when, what, and by which figures."""

    trouble: str = ""
    """The error with which it stands still, and what to do; empty if it does not."""

    skipped: int = 0
    """How many rows were left out because they could not be evaluated (ON ERROR SKIP)."""

    def __str__(self) -> str:
        lines = [f'query "{self.query}" is complete up to {self.complete}']
        lines += [f"its answers reflect {self.reflects}"] if self.reflects else []
        lines += [f"  {line}" if number else f"it stands still: {line}" for number, line in enumerate(self._trouble())]
        if self.skipped:
            rows = "row was" if self.skipped == 1 else "rows were"
            lines.append(
                f"{self.skipped} {rows} left out, because they could not be evaluated: see ERRORS({self.query})"
            )
        if self.held_by:
            since = "" if self.since_s is None else f", last heard of {self.since_s:.1f} s ago"
            lines += [f"held back by {self.held_by}{since}", f"  because {self.cause}"]
            lines += [
                f"  {'released by' if number == 0 else 'or by      '} {one}" for number, one in enumerate(self.releases)
            ]
        elif not self.trouble:
            lines.append("nothing holds it back")
        width = max((len(one.stream) for one in self.inputs), default=0)
        for one in self.inputs:
            waits = f", {'up to ' if one.of else ''}{one.waiting} tuples wait" if one.waiting else ""
            lines.append(f"  {one.stream:<{width}}  complete up to {one.complete}, {one.state}{waits}")
        lines += [f"  group {group}: complete up to {upto}" for group, upto in self.groups.items()]
        lines += self.adapted
        return "\n".join(lines)

    def _trouble(self) -> list[str]:
        return self.trouble.splitlines()

    def __repr__(self) -> str:
        held = "stands still" if self.trouble else f"held back by {self.held_by}" if self.held_by else "not held back"
        return f"Why({self.query}: complete up to {self.complete}, {held})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def explain(
    model: TimeModel,
    query: str,
    streams: Iterable[str],
    reached: Tick | None,
    waiting: Mapping[str, int],
    now_us: int,
    scopes: Scopes | None = None,
) -> Why:
    """Why a query has come no further. `reached` is how far it is, `waiting` how many tuples of each stream lie beyond
    that. `scopes` are the sources that the query, or the part of it that is least far, can see.
    """
    scopes = scopes or {}
    names = list(dict.fromkeys(map(base, streams)))
    clocks = [model.clocks[name] for name in names]
    domain = next((clock.domain for clock in clocks if clock.domain is not None), TimeDomain.INTEGER)
    standings = {
        clock.name: model.waiting.standing(clock.name, now_us, names, scope=scopes.get(clock.name)) for clock in clocks
    }
    inputs = tuple(
        _input(model, clock, standings[clock.name], waiting.get(clock.name, 0), domain, scopes.get(clock.name))
        for clock in clocks
    )
    complete = in_words(reached, domain)
    held = held_back(model, names, now_us, scopes) if any(waiting.values()) else None
    holder = held.holder() if held is not None else None
    if held is None or holder is None:
        return Why(query, complete, "", None, "", (), inputs)
    standing = standings[holder.name]
    since_s = None if standing.heard_us is None else (now_us - standing.heard_us) / 1e6
    cause = cause_of(model, holder, standing, names, domain, now_us)
    found = tuple(release.text for release in releases(held))
    return Why(query, complete, _called(holder, standing) + _group(holder, standing), since_s, cause, found, inputs)


def _called(clock: StreamClock, standing: Standing) -> str:
    """The stream, and the source that holds a query back where it is known."""
    if not clock.many or standing.cohort is None or standing.member is None:
        return clock.name
    kind = clock.table.kind_of[standing.cohort]
    source = clock.table.source_at(standing.cohort, standing.member)
    if source is None:
        return str(kind)
    among = f"one of {standing.speaking} that speak" if standing.heard_us is not None else "which has not spoken yet"
    return f"{clock.name} SOURCE '{source}' ({among})"


def _group(clock: StreamClock, standing: Standing) -> str:
    """The group of the source that holds a query back."""
    if standing.cohort is None or standing.member is None:
        return "" if standing.of is None or standing.of == EVERYTHING else f", of {standing.of}"
    source = clock.table.source_at(standing.cohort, standing.member)
    if clock.groups is None or source is None:
        return ""
    return f", of group {next(group for group in clock.groups.scopes() if source in group)}"


def _input(
    model: TimeModel, clock: StreamClock, standing: Standing, waiting: int, domain: TimeDomain, scope: Scope | None
) -> Input:
    if clock.finished:
        state = "finished" if clock.domain is not None else "fixed"
    elif clock.paused:
        state = "paused"
    elif not clock.external:
        state = "stamped by the engine"
    elif not clock.tuples:
        state = "silent, nothing ever came" if standing.silent else "nothing came yet"
    else:
        state = "silent" if standing.silent else "speaking"
        if clock.many:
            forgotten = f", {clock.table.forgotten} forgotten" if clock.table.forgotten else ""
            state += f" ({standing.speaking} of {len(clock.table.sources)} sources{forgotten})"
    if not clock.finished and model.enabling.can_answer(clock.name):
        state += f", heartbeat from the clock {when(model.declarations.enabling(clock.name))}"
    if clock.late_given_up:
        state += f", {clock.late_given_up} tuples late because the TIMEOUT had given up their source"
    known = [tick for tick in (standing.complete, clock.promises.limit(scope)) if tick is not None]
    complete = "the end" if clock.finished else in_words(max(known, default=None), domain)
    waited_for = clock.waited_for(scope)
    of = "" if waited_for is None or waited_for == EVERYTHING else str(waited_for)
    return Input(clock.name, complete, f"{state}, waited for {of}" if of else state, waiting, of)
