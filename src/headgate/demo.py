"""`headgate demo`: three simulated feeds on local Spark, three continuous queries, results shown as they come.

`arrivals` computes beforehand what each feed delivers and when. One thread pushes it at that time, and in another one
the engine runs. `turns` looks at the engine twice a second, and yields a turn: what can be seen then. A screen or plain
lines show the turns. `summary` counts what was seen, and says how far behind their heartbeats (watermarks) the answers
came. The feeds keep to the disorder they declare; late tuples come from one feed that was silent for a while. The demo
does not measure speed: `headgate bench` does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from math import sin
from random import Random
from statistics import fmean
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headgate.deliver.sinks.sink import Result
from headgate.engine import Engine
from headgate.observe.trace import Traces
from headgate.spark.session import SHORT_LIVED, started

SCRIPT = """\
-- water at the gates of a canal; the clock of downstream runs 3 s behind, rain will go silent for a while
CREATE STREAM upstream   (gate STRING, flow DOUBLE, at TIMESTAMP) TIMESTAMP BY at DISORDER 500 MILLISECONDS;
CREATE STREAM downstream (gate STRING, flow DOUBLE, at TIMESTAMP) TIMESTAMP BY at DISORDER 1 SECOND;
CREATE STREAM rain       (gate STRING, mm   DOUBLE, at TIMESTAMP) TIMESTAMP BY at DISORDER 1 SECOND;
TIMEOUT 2 SECONDS;

CREATE QUERY averages AS
  SELECT ISTREAM(gate, ROUND(AVG(flow), 1) AS flow, COUNT(*) AS readings)
  FROM upstream [RANGE 10 SECONDS SLIDE 2 SECONDS] GROUP BY gate;

CREATE QUERY losses AS
  SELECT ISTREAM(u.gate, ROUND(u.flow - d.flow, 1) AS lost, u.at AS above, d.at AS below)
  FROM upstream [RANGE 500 MILLISECONDS] AS u, downstream [RANGE 500 MILLISECONDS] AS d
  WHERE u.gate = d.gate AND u.flow - d.flow > 5;

CREATE QUERY merged AS
  SELECT ISTREAM(*) FROM (
    SELECT 'upstream' AS feed, gate, flow AS value FROM upstream [NOW]
    UNION ALL SELECT 'downstream', gate, flow FROM downstream [NOW]
    UNION ALL SELECT 'rain', gate, mm FROM rain [NOW]);
"""

TURN_S = 0.5
PUSH_S = 0.1
"""Tuples that come within so many seconds are pushed together."""

SPOKEN_BEFORE = timedelta(seconds=1.5)
"""How long the feeds have delivered before the first turn, so that none seems silent at the start."""

WARM_UP = timedelta(seconds=10)
QUICK = timedelta(seconds=0.6)
"""The engine is warm once a step for all queries takes no longer than this."""


@dataclass(frozen=True, slots=True)
class Feed:
    """How a feed behaves: each tuple travels for a random time up to `disorder_s`, so that later ones overtake it."""

    per_second: int
    disorder_s: float
    clock_behind_s: float = 0.0


FEEDS = {"upstream": Feed(6, 0.5), "downstream": Feed(6, 1.0, clock_behind_s=3.0), "rain": Feed(4, 1.0)}
SILENT = "rain"
OUTAGE = (0.4, 0.75)
"""Beginning and end of the silent feed's outage, as parts of the whole time."""

KEPT_BACK = 2
"""How many tuples of its outage the silent feed delivers afterwards; it never sends the others."""

GATES = {"north": (42.0, 1.0), "middle": (38.0, 2.0), "south": (35.0, 6.0)}
"""The flow through each gate, and how much of it is lost on the way downstream."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One tuple of a feed, and when it arrives."""

    comes: datetime
    feed: str
    gate: str
    value: float
    at: datetime
    """The timestamp, by the feed's own clock."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One result of a query, and when it came."""

    came: datetime
    query: str
    result: Result


@dataclass(frozen=True, slots=True)
class StreamState:
    """A stream in a turn: its counts, its last timestamp, its heartbeat (watermark), and whether it is silent."""

    taken: int
    late: int
    last: datetime | None
    heartbeat: datetime | None
    silent: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """What can be seen of the engine at a moment."""

    now: datetime
    streams: dict[str, StreamState]
    complete: dict[str, datetime | None]
    answers: list[Answer]
    """The answers since the last turn, in the order in which they came."""

    ended: bool
    """Whether the feeds have delivered everything."""


def play(console: Console, seconds: int = 24) -> None:
    """Runs the whole demo; the feeds deliver for `seconds` seconds."""
    console.print(SCRIPT, markup=False)
    console.print("starting Spark ...")
    spark = started(java=SHORT_LIVED)
    console.print("warming up Spark: the same queries over a few tuples ...")
    warm_up(spark)
    with Engine(spark) as engine:
        engine.execute(SCRIPT)
        coming = arrivals(now() - SPOKEN_BEFORE, seconds)
        show = on_screen if console.is_terminal else in_lines
        past = show(console, turns(engine, coming))
        late = {feed: [letter["_behind"] / 1e6 for letter in engine.dead_letters(feed)] for feed in FEEDS}
        behind = {query.name: behind_heartbeats(query.traces) for query in engine.queries()}
    console.print()
    for sentence in summary(past, coming, late, behind):
        console.print(sentence, markup=False)


# the feeds


def arrivals(start: datetime, seconds: int) -> list[Arrival]:
    """All tuples of the feeds in the order of arrival; apart from the time of day, every run has the same ones."""
    random = Random(2004)
    tuples = [
        simulated_tuple(random, feed, number, start)
        for feed in FEEDS
        for number in range(seconds * FEEDS[feed].per_second)
    ]
    gone, back = (start + timedelta(seconds=seconds * part) for part in OUTAGE)
    return sorted(with_outage(sorted(tuples, key=arrival_time), gone, back), key=arrival_time)


def simulated_tuple(random: Random, feed: str, number: int, start: datetime) -> Arrival:
    """Makes one tuple of a feed: stamped in order, and delayed by up to the feed's disorder."""
    character = FEEDS[feed]
    sent = start + timedelta(seconds=(number + random.random()) / character.per_second)
    at = sent - timedelta(seconds=character.clock_behind_s)
    gate = random.choice(list(GATES))
    flow, loss = GATES[gate]
    value = {
        "upstream": flow + 3 * sin(at.timestamp() / 5),
        "downstream": flow + 3 * sin(at.timestamp() / 5) - random.uniform(0.5, 1.5) * loss,
        "rain": random.expovariate(2.0),
    }[feed]
    return Arrival(sent + timedelta(seconds=random.uniform(0, character.disorder_s)), feed, gate, round(value, 1), at)


def with_outage(tuples: Iterable[Arrival], gone: datetime, back: datetime) -> Iterator[Arrival]:
    """Removes the tuples of the silent feed between `gone` and `back`, but delivers its first few at `back`."""
    kept = 0
    for arrival in tuples:
        if arrival.feed != SILENT or not gone <= arrival.comes < back:
            yield arrival
        elif kept < KEPT_BACK:
            kept += 1
            yield replace(arrival, comes=back)


def arrival_time(arrival: Arrival) -> datetime:
    """When a tuple arrives."""
    return arrival.comes


# running


def now() -> datetime:
    """The current time."""
    return datetime.now(UTC)


def warm_up(spark: SparkSession) -> None:
    """Runs the queries over other tuples until a step is quick or `WARM_UP` is over: the first epochs are slow."""
    with Engine(spark) as engine:
        engine.execute(SCRIPT)
        start = now()
        push(engine, arrivals(start, seconds=60))
        for second in range(60):
            before = now()
            engine.advance(start + timedelta(seconds=second))
            if now() - before <= QUICK or now() - start > WARM_UP:
                return


def push(engine: Engine, arrived: Sequence[Arrival]) -> None:
    """Pushes tuples into the streams of their feeds."""
    for feed in FEEDS:
        rows = [(arrival.gate, arrival.value, arrival.at) for arrival in arrived if arrival.feed == feed]
        if rows:
            engine.push(feed, rows)


@contextmanager
def running(engine: Engine, coming: Sequence[Arrival]) -> Iterator[None]:
    """In here the engine runs, and the tuples of the feeds are pushed as they come; both in threads."""
    over = threading.Event()

    def feed() -> None:
        for _, together in groupby(coming, key=lambda arrival: round(arrival.comes.timestamp() / PUSH_S)):
            arrived = list(together)
            if over.wait(max(0.0, (arrived[-1].comes - now()).total_seconds())):
                return
            push(engine, arrived)

    threads = [
        threading.Thread(target=feed, name="feeds", daemon=True),
        threading.Thread(target=lambda: engine.run(until=over.is_set), name="engine", daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        engine.wake()
        for thread in threads:
            thread.join()


def turns(engine: Engine, coming: Sequence[Arrival]) -> Iterator[Turn]:
    """Looks at the engine every `TURN_S` seconds while it runs, until all tuples are answered."""
    answers: list[Answer] = []
    for query in engine.queries():
        query.on_change(
            lambda results, name=query.name: answers.extend(Answer(now(), name, result) for result in results)  # type: ignore[misc]
        )

    def turn() -> Turn:
        seen = now()
        arrived = [arrival for arrival in coming if arrival.comes <= seen]
        states = {feed: state(engine, feed, arrived, engine.silent(feed)) for feed in FEEDS}
        complete = {query.name: query.complete for query in engine.queries()}
        given = answers[:]
        del answers[: len(given)]  # the engine goes on adding to it
        return Turn(seen, states, complete, given, len(arrived) == len(coming))

    with running(engine, coming):
        while True:
            began = now()
            latest = turn()
            yield latest
            if latest.ended and all(seen.silent for seen in latest.streams.values()):
                break  # then the heartbeats are at the last tuple of all
            time.sleep(max(0.0, TURN_S - (now() - began).total_seconds()))
    engine.step()
    yield turn()


def state(engine: Engine, feed: str, arrived: Sequence[Arrival], silent: bool) -> StreamState:
    """The state of a stream now."""
    counts = engine.counts(feed)
    last = max((arrival.at for arrival in arrived if arrival.feed == feed), default=None)
    return StreamState(counts["taken"], counts.get("late", 0), last, engine.heartbeat(feed), silent)


def events(before: Turn, after: Turn) -> list[str]:
    """What happened to the feeds between two turns, in words."""
    happened = []
    for feed in FEEDS:
        was, is_now = before.streams[feed], after.streams[feed]
        if is_now.late > was.late:
            happened.append(f"late tuples of {feed}: {is_now.late - was.late}, kept in its dead letters")
        if was.silent and not is_now.silent:
            happened.append(f"{feed} speaks again")
        if is_now.silent and not was.silent and not after.ended:
            happened.append(
                f"{feed} fell silent, its last timestamp is {clock(is_now.last)}; it no longer holds the others back"
            )
    if after.ended and not before.ended:
        happened.append("the feeds have ended; the last tuples are answered once all are taken for silent")
    return happened


# showing


def in_lines(console: Console, course: Iterable[Turn]) -> list[Turn]:
    """Prints plain lines: one for each event and each query that answered, and one for the streams every 2 seconds."""
    past: list[Turn] = []
    stated = datetime.min.replace(tzinfo=UTC)
    for turn in course:
        for event in events(past[-1], turn) if past else ():
            console.print(f"{clock(turn.now)} ** {event}", markup=False)
        if turn.now - stated >= timedelta(seconds=2):
            stated = turn.now
            console.print(
                f"{clock(turn.now)} -- " + " | ".join(state_line(*stream) for stream in turn.streams.items()),
                markup=False,
            )
        for query in turn.complete:
            given = [answer for answer in turn.answers if answer.query == query]
            if given:
                latest = result_line(given[-1].result)
                console.print(
                    f"{clock(turn.now)} {query} +{len(given)}, {progress(turn, query)}: {latest}", markup=False
                )
        past.append(turn)
    return past


def on_screen(console: Console, course: Iterable[Turn]) -> list[Turn]:
    """Shows the turns as one picture that is redrawn in place."""
    past: list[Turn] = []
    with Live(console=console, auto_refresh=False) as live:
        for turn in course:
            past.append(turn)
            live.update(picture(past, answers_shown=min(8, max(1, (console.height - 17) // 3))), refresh=True)
    return past


def picture(past: Sequence[Turn], answers_shown: int) -> RenderableType:
    """The picture after the last turn: a table of the streams, the latest answers of each query, the latest events."""
    turn = past[-1]
    streams = Table(title=f"streams at {clock(turn.now)}", title_justify="left", expand=True)
    for heading in ("", "tuples taken", "last timestamp", "heartbeat", "state", "late"):
        streams.add_column(heading, no_wrap=True)
    for feed, seen in turn.streams.items():
        speaking = Text("silent", "bold red") if seen.silent else Text("speaking", "green")
        streams.add_row(feed, str(seen.taken), clock(seen.last), clock(seen.heartbeat), speaking, str(seen.late))
    return Group(streams, *(answers_of(query, past, answers_shown) for query in turn.complete), *latest_events(past))


def answers_of(query: str, past: Sequence[Turn], shown: int) -> RenderableType:
    """The latest answers of a query, as a table."""
    given = [answer for turn in past for answer in turn.answers if answer.query == query]
    lines = [result_line(answer.result) for answer in given[-shown:]]
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, overflow="ellipsis")
    table.add_row(Text(f"{query}, {progress(past[-1], query)}, {len(given)} answers", "bold"))
    for line in lines + [""] * (shown - len(lines)):
        table.add_row(Text(f"  {line}"))
    return table


def latest_events(past: Sequence[Turn]) -> Iterator[Text]:
    """The last four events."""
    lines = [(after.now, event) for before, after in pairwise(past) for event in events(before, after)]
    for at, event in lines[-4:]:
        yield Text(f"{clock(at)} {event}", "yellow", no_wrap=True, overflow="ellipsis")


def progress(turn: Turn, query: str) -> str:
    """How far a query is complete, and how far behind the clock that is."""
    complete = turn.complete[query]
    if complete is None:
        return "nothing complete yet"
    return f"complete up to {clock(complete)}, {(turn.now - complete).total_seconds():.1f} s behind"


def state_line(feed: str, seen: StreamState) -> str:
    """The state of a stream in a few words."""
    late = f", {seen.late} late" if seen.late else ""
    return (
        f"{feed} {'SILENT' if seen.silent else 'speaks'}: {seen.taken} taken{late}, heartbeat {clock(seen.heartbeat)}"
    )


def result_line(result: Result) -> str:
    """A result in one line."""
    return f"{clock(result.at)} " + " ".join(f"{name}={value_text(value)}" for name, value in result.row.items())


def value_text(value: Any) -> str:
    """A value as text; times as `clock` shows them."""
    return clock(value) if isinstance(value, datetime) else str(value)


def clock(at: datetime | None) -> str:
    """The time of day, to a tenth of a second."""
    return "-" if at is None else f"{at:%H:%M:%S}.{at.microsecond // 100_000}"


# what was seen


def behind_heartbeats(traces: Traces) -> list[float]:
    """By how many seconds answers came later than the heartbeats that allowed them."""
    return [sum(age.values()) / 1e6 - (age["ingest"] + age["heartbeat"]) / 1e6 for age in traces.ages()]


def summary(
    past: Sequence[Turn], coming: Sequence[Arrival], late: dict[str, list[float]], behind: dict[str, list[float]]
) -> list[str]:
    """One sentence for each query, one on how quick the answers were, and one on late tuples.

    `late` has the lateness of each late tuple, by feed; `behind` how far behind their heartbeats answers came, by
    query.
    """
    by_query: dict[str, list[Answer]] = {query: [] for query in past[-1].complete}
    meanwhile = dict.fromkeys(by_query, 0)
    for turn in past:
        for answer in turn.answers:
            by_query[answer.query].append(answer)
            meanwhile[answer.query] += turn.streams[SILENT].silent and not turn.ended
    sentences = []
    for query, given in by_query.items():
        delays = [
            (answer.came - max(map(arrival_time, parts))).total_seconds()
            for answer in given
            if (parts := tuples_behind(answer, coming))
        ]
        mean = f", on average {fmean(delays):.1f} s after the last tuple it is made of had come" if delays else ""
        order = order_sentence(given, coming) if query == "merged" else ""
        sentences.append(
            f"{query}: {len(given)} answers, {meanwhile[query]} of them while {SILENT} was silent{mean}{order}."
        )
    return [*sentences, behind_sentence(behind), lateness_sentence(past[-1].streams, len(coming), late)]


def behind_sentence(behind: dict[str, list[float]]) -> str:
    """A sentence that says how far behind their heartbeats the answers of all queries came."""
    lags = sorted(lag for found in behind.values() for lag in found)
    if not lags:
        return "behind their heartbeats: no answer was followed."
    by_query = ", ".join(f"{query} {fmean(found):.1f} s" for query, found in behind.items() if found)
    nine_in_ten = lags[int(0.9 * (len(lags) - 1))]
    return (
        f"behind their heartbeats: answers came {fmean(lags):.1f} s later on average ({by_query}), nine in ten within "
        f"{nine_in_ten:.1f} s, the slowest after {lags[-1]:.1f} s. The aim is 1 s."
    )


def tuples_behind(answer: Answer, coming: Iterable[Arrival]) -> list[Arrival]:
    """The tuples that went into an answer."""
    at, row = answer.result.at, answer.result.row
    match answer.query:
        case "averages":
            since = at - timedelta(seconds=10)
            return [
                one for one in coming if one.feed == "upstream" and one.gate == row["gate"] and since <= one.at <= at
            ]
        case "losses":
            pair = {("upstream", row["above"]), ("downstream", row["below"])}
            return [one for one in coming if (one.feed, one.at) in pair]
        case _:
            return [one for one in coming if (one.feed, one.at) == (row["feed"], at)]


def order_sentence(merged: Sequence[Answer], coming: Sequence[Arrival]) -> str:
    """A sentence on whether the merged stream is in the order of timestamps, and how disordered the input was."""
    ordered = all(before.result.at <= after.result.at for before, after in pairwise(merged))
    behind = sum(before.at > after.at for before, after in pairwise(coming))
    kept = (
        "they came in the order of their timestamps"
        if ordered
        else "they did NOT come in the order of their timestamps"
    )
    return (
        f"; {kept}, while {behind} of the {len(coming)} tuples had arrived with an earlier timestamp than the "
        "tuple before"
    )


def lateness_sentence(streams: dict[str, StreamState], pushed: int, late: dict[str, list[float]]) -> str:
    """A sentence that counts the tuples that were taken, late and lost."""
    taken = sum(seen.taken for seen in streams.values())
    kept = sum(map(len, late.values()))
    by_feed = [
        f"{len(behind)} of {feed}, up to {max(behind):.1f} s behind its heartbeat"
        for feed, behind in late.items()
        if behind
    ]
    detail = f" ({'; '.join(by_feed)})" if by_feed else ""
    return (
        f"late: of {pushed} tuples {taken} were taken and {kept} are in the dead letters{detail}; "
        f"{pushed - taken - kept} lost."
    )
