"""The system streams: what the engine says about itself as streams that any query can read in FROM.

`TABLE` is the one list of them. It feeds the binder, DESCRIBE, SHOW SYSTEM STREAMS, the shell's completion, the tables
of docs/system-streams.md (`python -m headgate.catalog.system` prints them) and the engine, which writes the rows
(`engine.system`). All of them are stamped by the engine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from headgate.catalog.entries import Stream
from headgate.errors import Place, UserError, nearest, quoted
from headgate.sql import Column, checked_type
from headgate.ticks import TimeDomain

PREFIX = "SYSTEM."


@dataclass(frozen=True, slots=True)
class SystemColumn:
    """A column of a system stream, and what it means."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True, slots=True)
class SystemStream:
    """A system stream: when it has rows, what a row is about, and its columns."""

    short: str
    rows: Literal["samples", "events"]
    about: str
    columns: tuple[SystemColumn, ...]

    @property
    def name(self) -> str:
        return PREFIX + self.short

    def entry(self) -> Stream:
        """The stream as the catalog has streams."""
        columns = tuple(Column(column.name, checked_type(column.type)) for column in self.columns)
        return Stream(self.name, columns, TimeDomain.TIMESTAMP, stamped="internal")


def _columns(*rows: tuple[str, str, str]) -> tuple[SystemColumn, ...]:
    return tuple(SystemColumn(*row) for row in rows)


_STREAM = ("stream", "STRING", "its name")
_FRAGMENT = ("fragment", "STRING", "its name, which no other fragment has")
_QUERY = ("query", "STRING", "the query that it belongs to; null if queries share it")
_HEARTBEAT = (
    ("heartbeat", "TIMESTAMP", "the instant up to which it is complete; null if unknown, or not a TIMESTAMP"),
    ("heartbeat_tick", "BIGINT", "that instant as a number: microseconds since 1970, or integer time; null if unknown"),
)
_COMPLETE = (
    ("complete", "TIMESTAMP", "the instant up to which it has answered; null if there is none, or not a TIMESTAMP"),
    ("complete_tick", "BIGINT", "that instant as a number: microseconds since 1970, or integer time"),
)
_BEHIND = (
    "behind_seconds",
    "DOUBLE",
    "how far that instant is behind the date of the sample; null if unknown, or not a TIMESTAMP",
)
_WAITING = ("waiting", "BIGINT", "tuples of users' streams that have come and are not answered yet")
_PROFILED = (
    ("rows_in", "BIGINT", "rows that it took lately, by the profiler"),
    ("rows_out", "BIGINT", "rows that it put out lately"),
    ("rate_in", "DOUBLE", "rows that it took a second, lately"),
    ("rate_out", "DOUBLE", "rows that it put out a second, lately"),
    ("selectivity", "DOUBLE", "rows out for each row in; null while it took none"),
    ("seconds", "DOUBLE", "how long it worked lately"),
    ("us_per_row", "DOUBLE", "microseconds for each row in; null while that is unknown"),
    ("state_rows", "BIGINT", "rows of its synopses (state)"),
    ("state_bytes", "BIGINT", "bytes of its synopses"),
)
_TROUBLE = ("trouble", "STRING", "the error that holds it up now; null if none does")

TABLE: dict[str, SystemStream] = {
    stream.short: stream
    for stream in (
        SystemStream(
            "streams",
            "samples",
            "each stream and relation of the users",
            _columns(
                _STREAM,
                ("kind", "STRING", "`stream` or `relation`"),
                ("connector", "STRING", "what it is read from; null if rows are pushed"),
                ("taken", "BIGINT", "tuples that went to its log since it was created"),
                ("rate", "DOUBLE", "tuples a second over the last ten seconds; null in the first sample"),
                ("dead", "BIGINT", "dead letters since it was created"),
                ("kept_rows", "BIGINT", "rows that its log still keeps"),
                ("kept_bytes", "BIGINT", "bytes that its log still keeps"),
                *_HEARTBEAT,
                _BEHIND,
                ("silent", "BOOLEAN", "whether nothing came for the timeout, so that nobody waits for it"),
                _TROUBLE,
            ),
        ),
        SystemStream(
            "sources",
            "samples",
            "each source of each stream of the users; those that are furthest behind, and one row for the rest",
            _columns(
                _STREAM,
                ("source", "STRING", "the value of its SOURCE BY column; null for a stream's only source, or the rest"),
                ("sources", "BIGINT", "how many sources the row stands for"),
                ("last", "TIMESTAMP", "the largest timestamp that it sent; null if none, or not a TIMESTAMP"),
                ("last_tick", "BIGINT", "that timestamp as a number"),
                ("late", "BIGINT", "late tuples since the stream was created"),
            ),
        ),
        SystemStream(
            "queries",
            "samples",
            "each query of the users",
            _columns(
                ("query", "STRING", "its name"),
                ("kind", "STRING", "`stream` or `relation`: what it gives"),
                *_COMPLETE,
                _BEHIND,
                _WAITING,
                ("held_by", "STRING", "the stream or source that holds it back; null if none does"),
                ("results", "BIGINT", "results so far; null for one that runs as a member of a family"),
                ("rate", "DOUBLE", "results a second over the last ten seconds; null in the first sample"),
                ("epochs", "BIGINT", "epochs (micro-batches) since the engine was started"),
                ("age_seconds", "DOUBLE", "mean age of its last answers; null while there are none"),
                ("sink", "STRING", "where its results go"),
                ("undelivered", "BIGINT", "results that wait for the sink"),
                ("sink_trouble", "STRING", "why the sink takes nothing now; null if it does"),
                _TROUBLE,
            ),
        ),
        SystemStream(
            "fragments",
            "samples",
            "each fragment of the users' queries",
            _columns(
                _FRAGMENT,
                _QUERY,
                ("queries", "BIGINT", "how many queries it leads to"),
                *_COMPLETE,
                ("epochs", "BIGINT", "epochs (micro-batches) since the engine was started"),
                _WAITING,
                ("failed", "BOOLEAN", "whether it stands still because of an error"),
                *_PROFILED,
            ),
        ),
        SystemStream(
            "operators",
            "samples",
            "each operator of a fragment that the profiler has figures of",
            _columns(
                ("operator", "STRING", "the input that it reads, the synopsis that it keeps, or a step of the program"),
                _FRAGMENT,
                _QUERY,
                *_PROFILED,
            ),
        ),
        SystemStream(
            "heartbeats",
            "events",
            "a heartbeat (watermark) of a stream of the users that has moved",
            _columns(
                ("stream", "STRING", "its name; null in a row that sums up several"),
                *_HEARTBEAT,
                ("moves", "BIGINT", "how many moves, seen turn by turn, the row sums up"),
            ),
        ),
        SystemStream(
            "late",
            "events",
            "tuples that were not taken: late ones and other dead letters",
            _columns(
                ("stream", "STRING", "the stream that they came on; null in a row that sums up several"),
                ("source", "STRING", "the source of late tuples; null if the stream has one, or it is not known"),
                ("reason", "STRING", "`late`, or another reason as in LATE(s); null in a row that sums up several"),
                ("tuples", "BIGINT", "how many tuples the row sums up"),
            ),
        ),
        SystemStream(
            "errors",
            "events",
            "a failure of a stream, query or sink",
            _columns(
                ("kind", "STRING", "`stream`, `query` or `sink`; null in a row that sums up several"),
                ("name", "STRING", "the stream or query; null in a row that sums up several"),
                ("code", "STRING", "the error's code; null if it has none"),
                ("message", "STRING", "the error in one line"),
                ("failures", "BIGINT", "how many failures the row sums up"),
            ),
        ),
    )
}


def entries() -> dict[str, Stream]:
    """All system streams as the catalog has streams, by name in lower case."""
    return {stream.name.lower(): stream.entry() for stream in TABLE.values()}


def is_system(name: str) -> bool:
    """True if this is, or would be, the name of a system stream."""
    return name.lower().startswith(PREFIX.lower())


def short_name(name: str) -> str:
    """The name by which FROM knows what it reads: of a system stream, the part behind the dot."""
    return name[len(PREFIX) :] if is_system(name) else name


def unknown_system(name: str, place: Place | None) -> UserError:
    """The error for a system stream that does not exist."""
    known = [stream.name for stream in TABLE.values()]
    return UserError(
        "no-such-stream",
        f'system stream "{name}" does not exist',
        place=place,
        detail=f"There are {quoted(known)}.",
        hint=nearest(PREFIX + name[len(PREFIX) :].lower(), known),
    )


def only_read(name: str, place: Place | None) -> UserError:
    """The error for a statement that would make, change or feed a system stream."""
    return UserError(
        "system-stream",
        f'"{name}" belongs to the engine',
        place=place,
        detail="Names that begin with SYSTEM are those of system streams. Queries can read them, and nothing else.",
        hint="Choose another name, or read the stream in FROM.",
    )


def refuse_if_system(name: str, place: Place | None) -> None:
    """Refuse a name that only system streams have."""
    if is_system(name):
        raise only_read(name, place)


def page(streams: Iterable[SystemStream] = tuple(TABLE.values())) -> str:
    """The tables of docs/system-streams.md."""
    lines: list[str] = []
    for stream in streams:
        when = "in every sample" if stream.rows == "samples" else "as it happens"
        lines += [f"### {stream.name}", "", f"One row, {when}, for {stream.about}.", ""]
        lines += ["| column | type | meaning |", "| --- | --- | --- |"]
        lines += [f"| `{column.name}` | {column.type} | {column.meaning} |" for column in stream.columns]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
