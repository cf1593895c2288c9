"""The inlet of a stream: sorts what arrives into its log and its dead letters, and tells the heartbeats.

A row that is no tuple is never lost in silence: it is counted by its verdict (see `verdict`), and kept as a dead letter
unless the user's policy is to drop what is late or to refuse the batch. The log holds the stream's columns, `_t`
(timestamp in ticks) and `_s` (order of arrival). The dead letters are a stream of their own, `LATE(s)`, with the
stream's columns and

    _reason      late | far-future | no-timestamp | before-origin | check-failed | malformed
    _behind      by how many ticks it was late, or too far in the future
    _timestamp   its own
    _raw         the row as text, if it could not be read or a file has it without a timestamp
    _t, _s       when it was found to be dead, as an instant of the stream; and the order of arrival

A tuple's source is its value in the column after SOURCE BY, as text; none counts as the source "". Without SOURCE BY
the stream has one source, None.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headgate.catalog.entries import Relation, Stream
from headgate.errors import UserError
from headgate.heartbeat.admission import Admission
from headgate.heartbeat.arrival_order import ArrivalOrder
from headgate.heartbeat.arrivals import NEVER, Arrivals, Ticks, of_rows
from headgate.heartbeat.clock import Clock
from headgate.heartbeat.future import KNOWN
from headgate.log.journal import Journal
from headgate.log.log import Log
from headgate.plan.needs import Need
from headgate.sources.letters import Unread, dead_schema, letters, malformed
from headgate.sources.low_part import narrowed, partial_aggregates, without_unneeded
from headgate.sources.rows import Read, Rows
from headgate.sources.rows import ticks as ticks
from headgate.sources.verdict import (
    ALIKE,
    CHECK_FAILED,
    FAR_FUTURE,
    HEARTBEAT,
    LATE,
    TUPLE,
    UNNEEDED,
    UNTIMELY,
    Limits,
    Verdicts,
    promises,
    source_texts,
    ticks_of,
    tops,
    verdicts,
)
from headgate.ticks import Tick, TimeDomain

ROWS_WRITTEN = 1_000

BATCHES_KEPT = 1_000
"""Of how many batches it is remembered when they came."""

LOW_PARTS_KEPT = 8
"""Of how many low parts it is remembered up to when tuples came under them."""


class Heartbeats(Protocol):
    """What an inlet asks of the time manager, and what it tells it."""

    @property
    def order(self) -> ArrivalOrder:
        """The instants of streams in arrival order."""

    def admission(self, stream: str) -> Admission:
        """Which timestamps of the stream are late, and what is known of its timestamps."""

    def future_limit(self, stream: str, date_us: int | None, now_us: int, tops: Ticks | None = None) -> Tick | None:
        """Timestamps beyond this lie too far in the future; None: there is no limit. `tops` are the largest timestamps
        of a batch, in falling order: several together confirm each other.
        """

    def arrived(
        self,
        stream: str,
        arrivals: Arrivals,
        now_us: int,
        late: Ticks | None = None,
        heartbeats: Mapping[Any, Tick] | None = None,
    ) -> None:
        """Take a batch: tuples, late ones included but none from the far future; how many of each source were late;
        and heartbeats that sources sent.
        """


class Arrived(NamedTuple):
    """When a batch came, in microseconds on the engine's clock."""

    upto: Tick
    """The largest of its timestamps."""

    began_us: int
    """When it began to be read."""

    taken_us: int
    """When it was in the log."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What the heartbeats learn of a batch of rows."""

    arrivals: Arrivals
    late: Ticks
    """How many of the tuples were late, for each of the sources that spoke."""

    promises: Mapping[Any, Tick]
    """Heartbeats that sources sent, each up to when."""

    def written(self) -> dict[str, Any]:
        """The batch for the journal. Large batches are kept as sums: single rows add little to bounds by tuples."""
        seen = self.arrivals
        said = {"sources": list(seen.sources), "late": self.late.tolist(), "promises": list(self.promises.items())}
        for part in ("counts", "smallest", "largest", "behind"):
            said[part] = getattr(seen, part).tolist()
        for part, most in (("rows", ROWS_WRITTEN), ("sample", None)):
            pair = getattr(seen, part)
            if pair is not None and (most is None or len(pair[0]) <= most):
                said[part] = [pair[0].tolist(), pair[1].tolist()]
        return said

    @staticmethod
    def read(said: Mapping[str, Any]) -> Batch:
        """A batch from the journal."""
        counts, smallest, largest, behind = (
            np.array(said[part], np.int64) for part in ("counts", "smallest", "largest", "behind")
        )
        rows = (np.array(said["rows"][0], np.intp), np.array(said["rows"][1], np.int64)) if "rows" in said else None
        sample = (
            (np.array(said["sample"][0], np.int64), np.array(said["sample"][1], np.int64)) if "sample" in said else None
        )
        arrivals = Arrivals(said["sources"], counts, smallest, largest, behind, rows, sample)
        return Batch(arrivals, np.array(said["late"], np.int64), dict(said["promises"]))


class Inlet:
    """Takes the rows of a stream or relation, wherever they come from, into its log or its dead letters."""

    def __init__(
        self,
        stream: Stream | Relation,
        schema: pa.Schema,
        directory: Path,
        heartbeats: Heartbeats,
        journal: Journal | None = None,
        folder: str | None = None,
        recorded: Callable[[int], None] = lambda now_us: None,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.heartbeats = heartbeats
        self.recorded = recorded
        """Called with the instant at which a batch came, when the journal is read after a restart."""
        self.wake = wake
        """Called when a batch has come: whoever waits for rows looks again."""
        self.journal = journal or Journal()
        self.folder = folder = folder or stream.name.lower()
        self.shape(stream, schema)
        self.log = Log(directory / "streams" / folder, self.journal, f"log streams/{folder}")
        self.dead = Log(directory / "dead" / folder, self.journal, f"log dead/{folder}")
        self.subject = f"inlet {folder}"
        self.counts: Counter[str] = Counter()
        """How many rows were no tuples, by verdict; heartbeats that sources sent are counted as "heartbeats"."""
        self.arrivals = 0
        self.began_us: int | None = None
        """When whoever takes the next batch began to read it; None: when it is taken."""
        self.lately: deque[Arrived] = deque(maxlen=BATCHES_KEPT)
        """The batches with tuples that have come last, for traces."""
        self.entered: Tick = NEVER
        """The last timestamp that was given on entry."""
        self.dropped = False
        """True if the stream was dropped: what is still under way must not be taken."""
        self.position: dict[str, Any] = {}
        """Where the source of the stream goes on after a restart: numbers and words that the source chooses."""
        self.low: Need | None = None
        """What the log keeps of tuples that come now; None: all of it."""
        self.reduced: dict[Need, Tick] = {}
        """What the log kept of tuples that came before, and the largest timestamp of those."""
        self.journal.introduce(self.subject, self.apply)

    def shape(self, stream: Stream | Relation, schema: pa.Schema) -> None:
        """Change what rows look like from now on."""
        self.stream = stream
        self.rows = Rows(stream, schema)
        self.dead_schema = dead_schema(stream, schema)

    @property
    def source(self) -> str | None:
        """The column that names the source of a tuple; None if the stream has one source."""
        return self.stream.source if isinstance(self.stream, Stream) else None

    @property
    def stamped(self) -> str:
        """Who stamps the tuples: their source ("external"), or the engine on entry."""
        return self.stream.stamped if isinstance(self.stream, Stream) else "external"

    @property
    def policy(self) -> str:
        """What becomes of late tuples. A relation always keeps them: it would stay wrong without one of its changes."""
        return self.stream.late if isinstance(self.stream, Stream) else "keep"

    def limits(self, clock: Clock) -> Limits:
        """Which timestamps are taken now.

        A fixed relation knows no time, and tuples that are stamped on entry are never late.
        """
        name, domain = self.stream.name, self.stream.domain
        if domain is None:
            return Limits()
        admission = self.heartbeats.admission(name)
        limits = Limits(domain.origin, first_open=admission.first_open)
        if self.stamped != "external":
            return limits
        ahead = self.heartbeats.future_limit(name, clock.date_us(), clock.now_us())
        limits = replace(limits, apart=admission.closed_by_source)
        limits = limits if admission.closed is None else replace(limits, closed=admission.closed)
        return limits if ahead is None else replace(limits, ahead=ahead)

    @property
    def nothing_arrived(self) -> bool:
        """True if no tuple came yet and no heartbeat was promised: dead letters are then stamped like the first tuple
        that comes.
        """
        return self.stream.domain is not None and self.heartbeats.admission(self.stream.name).unheard

    def limits_for(self, limits: Limits, tops: Ticks, clock: Clock) -> Limits:
        """The limits once a batch is known by its largest timestamps, in falling order. To be asked once a batch, if at
        all.
        """
        ahead = self.heartbeats.future_limit(self.stream.name, clock.date_us(), clock.now_us(), tops)
        return replace(limits, ahead=Limits().ahead if ahead is None else ahead)

    def needs_second_look(self, found: Mapping[str, int]) -> bool:
        """True if a batch must be judged by its own timestamps too (`limits_for`), given its rows by verdict."""
        if self.stamped != "external" or self.stream.domain is None:
            return False
        return bool(found.get(FAR_FUTURE)) or not (
            found.get(TUPLE, 0) + found.get(UNNEEDED, 0) < KNOWN or self.heartbeats.admission(self.stream.name).settled
        )

    def stamps(self, count: int, clock: Clock) -> Ticks:
        """Timestamps for rows that are stamped on entry: the order of arrival, or the date, which never goes back."""
        if self.stamped == "latent":
            first = self.heartbeats.order.reserve(count)
            return np.arange(first, first + count, dtype=np.int64)
        date_us = clock.date_us()
        now = clock.now_us() if date_us is None else date_us
        self.entered = max(self.entered, now, self.heartbeats.admission(self.stream.name).first_open)
        return np.full(count, self.entered, np.int64)

    # what the journal knows of it

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make rows, dead letters, counts and the source's position durable in one step at the end, or not at all.

        No heartbeat is given meanwhile, so the limits by which a row was judged hold until it is in the log.
        """
        before = dict(self.position)
        try:
            with self.journal.together():
                yield
        except BaseException:
            self.position = before
            raise

    def record(self, found: Mapping[str, int], batch: Batch, rows: int, clock: Clock) -> None:
        """Record a batch of so many rows in the journal, with its rows that are no tuples by verdict; tell the
        heartbeats.
        """
        now_us, counts = (
            clock.now_us(),
            {verdict: count for verdict, count in found.items() if verdict != TUPLE and count},
        )
        what = {
            "arrivals": self.arrivals + rows,
            "entered": self.entered,
            "latent": self.heartbeats.order.last,
            "counts": counts,
            "position": self.position,
            "now": now_us,  # the position as it is in the end
        }
        said = {"heard": batch.written()} if self.journal.durable and self.stream.domain is not None else {}

        began_us, self.began_us = self.began_us, None

        def then() -> None:
            self._apply(what, batch)
            if batch.arrivals.total:
                taken_us = clock.now_us()
                upto = int(batch.arrivals.largest.max())
                self.lately.append(Arrived(upto, taken_us if began_us is None else min(began_us, taken_us), taken_us))
            self.wake()

        self.journal.record(self.subject, {**what, **said}, then=then)

    def apply(self, what: dict[str, Any]) -> None:
        """Apply a fact of the journal after a restart: what was recorded of a batch."""
        if "now" in what:
            self.recorded(what["now"])
        if "low" in what:
            self.low = None if what["low"] is None else Need.read(what["low"])
            self.reduced = {Need.read(need): upto for need, upto in what.get("reduced", self._reduced())}
        if "arrivals" in what:
            self._apply(what, Batch.read(what["heard"]) if "heard" in what else None)

    def _apply(self, what: dict[str, Any], batch: Batch | None) -> None:
        self.arrivals, self.entered, self.position = what["arrivals"], what["entered"], dict(what["position"])
        self.heartbeats.order.skip_to(what["latent"])
        for verdict, count in what["counts"].items():
            self.counts["heartbeats" if verdict == HEARTBEAT else verdict] += count
        if batch is not None:
            if self.low is not None and batch.arrivals.total:
                self._note_reduced(self.low, int(batch.arrivals.largest.max()))
            self.tell(batch, what["now"])

    def state(self) -> dict[str, Any]:
        """All that `apply` has learnt, as one fact."""
        counts = {HEARTBEAT if verdict == "heartbeats" else verdict: count for verdict, count in self.counts.items()}
        return {
            "arrivals": self.arrivals,
            "entered": self.entered,
            "latent": self.heartbeats.order.last,
            "counts": counts,
            "position": dict(self.position),
            "low": None if self.low is None else self.low.written(),
            "reduced": self._reduced(),
        }

    # what the log keeps

    def keep_only(self, low: Need | None) -> None:
        """Keep no more of the tuples that come from now on than this; None: all of it."""
        if low != self.low:
            self.journal.record(self.subject, {"low": None if low is None else low.written()})

    def reduced_upto(self, need: Need) -> Tick | None:
        """The largest timestamp of tuples of which the log may not have all that a new query needs; None if it has all.

        A new query sees its streams from behind an instant on, and there may be tuples in the log that stand for some
        from before and some from behind it.
        """
        return max((upto for low, upto in self.reduced.items() if low.coarse or not low.covers(need)), default=None)

    def _note_reduced(self, low: Need, upto: Tick) -> None:
        """Note that tuples came of which only this was kept. Of many low parts the oldest become one, which holds no
        more than each of them.
        """
        self.reduced[low] = max(upto, self.reduced.get(low, upto))
        if len(self.reduced) > LOW_PARTS_KEPT:
            (one, first), (other, second), *rest = self.reduced.items()
            self.reduced = {one.common(other): max(first, second), **dict(rest)}

    def _reduced(self) -> list[tuple[dict[str, Any], Tick]]:
        return [(low.written(), upto) for low, upto in self.reduced.items()]

    # rows pushed from Python

    def push(self, rows: Iterable[Any], clock: Clock) -> int:
        """Take rows from memory; how many went to the log."""
        return self.push_counted(rows, clock)[TUPLE]

    def push_counted(self, rows: Iterable[Any] | Read, clock: Clock) -> Counter[str]:
        """Take rows from memory and count them by verdict."""
        with self.together():
            return self.take_table(*self.rows.table(rows, self.arrivals), clock)

    def take_reads(self, reads: Sequence[Read], clock: Clock) -> list[Counter[str]]:
        """Take the rows of several pushes as one batch; of each, how many rows there are of each verdict."""
        tables, unread, place = list[pa.Table](), list[tuple[int, str]](), self.arrivals
        for read in reads:
            table, bad = read.numbered(place)
            tables.append(self._with_new_columns(table))
            unread += bad
            place += read.count
        with self.together():
            found = self._take(pa.concat_tables(tables).combine_chunks(), unread, clock)
        ends = np.cumsum([table.num_rows for table in tables])[:-1]
        return [_counted(own, len(read.unread)) for own, read in zip(np.split(found, ends), reads, strict=True)]

    def _with_new_columns(self, table: pa.Table) -> pa.Table:
        """Rows that were read before the stream got another column, with nulls there."""
        if table.schema.equals(self.rows.schema):
            return table
        known = set(table.column_names)
        for one in self.rows.schema:
            if one.name not in known:
                table = table.append_column(one, pa.nulls(table.num_rows, one.type))
        return table.select(self.rows.schema.names)

    def take_table(self, table: pa.Table, unread: Unread, clock: Clock) -> Counter[str]:
        """Take a table with the log's columns, and rows that could not be read; how many rows there are of each
        verdict.

        A column `_row`, if there is one, is the text of each row.
        """
        with self.together():
            return _counted(self._take(table, unread, clock), len(unread))

    def _take(self, table: pa.Table, unread: Unread, clock: Clock) -> Verdicts:
        """Sort a table into log and dead letters; the verdict on each of its rows."""
        with self.together():
            limits = self.limits(clock)
            if self.stamped != "external":
                stamps = pa.array(self.stamps(table.num_rows, clock))
                table = table.set_column(table.schema.get_field_index("_t"), "_t", stamps)
            found = verdicts(self.stream, table, limits)
            if self.needs_second_look(Counter(found.tolist())):
                timed = table.filter(pa.array(found != CHECK_FAILED))
                limits = self.limits_for(limits, tops(self.stream, timed), clock)
                found = verdicts(self.stream, table, limits)
            own = ticks_of(table.column("_t").combine_chunks())[found == TUPLE]
            if self.nothing_arrived and own.size:
                limits = replace(limits, first_open=int(own.min()))
            if unread or len(own) < len(found):
                dead = self.letters(table, found, limits)
                self.refuse(dead)
                self.keep_letters(pa.concat_tables([dead, self._malformed(unread, limits)]))
            kept = without_unneeded(self.low, table, found)
            tuples = table if (kept == TUPLE).all() else table.filter(pa.array(kept == TUPLE))
            tuples = narrowed(self.low, tuples, self.stream.row_columns())
            tuples = tuples.select(self.rows.schema.names).cast(self.rows.schema)
            written = partial_aggregates(self.low, self.stream, tuples)
            alike = tuples.num_rows - written.num_rows
            self.log.pass_over(int((kept == UNNEEDED).sum()) + alike, int(own.max(initial=NEVER)))
            self.log.append(written)
            counts = _counted(kept, len(unread)) + Counter({ALIKE: alike})
            self.record(counts, self._batch(table, found), table.num_rows + len(unread), clock)
        return found

    def unreadable(self, text: str, clock: Clock) -> None:
        """Keep one dead letter with this text: something that holds rows cannot be read at all."""
        with self.together():
            self.keep_letters(self._malformed([(self.arrivals, text)], self.limits(clock)))
            nothing = self.rows.schema.empty_table()
            self.record({"malformed": 1}, self._batch(nothing, np.array([], str)), 1, clock)

    def letters(self, table: pa.Table, found: Verdicts, limits: Limits) -> pa.Table:
        """The rows that are neither tuples nor heartbeats, as dead letters."""
        return letters(self.stream, self.dead_schema, table, found, limits)

    def _malformed(self, unread: Unread, limits: Limits) -> pa.Table:
        """Dead letters for rows of which only the text is known."""
        return malformed(self.dead_schema, unread, limits)

    def _batch(self, table: pa.Table, found: Verdicts) -> Batch:
        timely = np.isin(found, (TUPLE, LATE))
        tuples = table.filter(pa.array(timely))
        sources, positions = self._sources(tuples)
        arrivals = of_rows(sources, positions, ticks_of(tuples.column("_t").combine_chunks()))
        late = np.bincount(positions[found[timely] == LATE], minlength=len(sources)).astype(np.int64)
        return Batch(arrivals, late, self._promises(table, timely | (found == HEARTBEAT)))

    def _promises(self, table: pa.Table, heeded: NDArray[np.bool_]) -> dict[Any, Tick]:
        carried = promises(self.stream, table)
        heeded = heeded & (carried > NEVER)
        sources, positions = self._sources(table.filter(pa.array(heeded)))
        upto = np.full(len(sources), NEVER)
        np.maximum.at(upto, positions, carried[heeded])
        return {source: tick for source, tick in zip(sources, upto.tolist(), strict=True) if tick > NEVER}

    def _sources(self, table: pa.Table) -> tuple[list[Any], NDArray[np.intp]]:
        """The sources of a table's rows, each once, and for each row which of them it is from."""
        if self.source is None:
            return [None], np.zeros(table.num_rows, np.intp)
        named = source_texts(self.source, table).dictionary_encode()
        return named.dictionary.to_pylist(), named.indices.to_numpy(zero_copy_only=False).astype(np.intp)

    # what becomes of rows, wherever they come from

    def refuse(self, letters: pa.Table) -> None:
        """Raise an error if the policy is to fail and there are untimely tuples among these dead letters."""
        untimely = letters.filter(pc.is_in(letters["_reason"], pa.array(UNTIMELY)))
        if self.policy != "fail" or not untimely.num_rows:
            return
        name = self.stream.name
        (worst,) = untimely.sort_by([("_behind", "descending")]).slice(0, 1).to_pylist()
        in_time = self.stream.domain is TimeDomain.TIMESTAMP
        far = timedelta(microseconds=worst["_behind"]) if in_time else f"{worst['_behind']} ticks"
        whose = (
            "" if self.source is None else f' of source "{"" if worst[self.source] is None else worst[self.source]}"'
        )
        if worst["_reason"] == LATE:
            said, mended = f"lies {far} behind what is complete already", f"a larger bound, DISORDER OF {name}"
        else:
            said, mended = f"lies {far} beyond the limit", f"a later limit, FUTURE OF {name}"
        raise UserError(
            "late-tuple",
            f'stream "{name}" got {_numbered(Counter(untimely["_reason"].to_pylist()))}, and is to fail then',
            detail=f"The worst{whose} {said}. Nothing of the batch was taken.",
            hint=f"LATE OF {name} KEEP, or {mended}.",
        )

    def keep_letters(self, letters: pa.Table) -> None:
        """Keep dead letters, except those that the policy drops."""
        if self.policy == "drop":
            letters = letters.filter(pc.invert(pc.is_in(letters["_reason"], pa.array(UNTIMELY))))
        self.dead.append(letters.select(self.dead_schema.names))

    def tell(self, batch: Batch, now_us: int) -> None:
        """Tell the time manager of a batch whose rows are in the log. A fixed relation has no time."""
        if self.stream.domain is not None:
            self.heartbeats.arrived(self.stream.name, batch.arrivals, now_us, batch.late, batch.promises)


def _counted(found: Verdicts, unread: int) -> Counter[str]:
    """How many rows there are of each verdict."""
    kinds, rows = np.unique(found, return_counts=True)
    counts = Counter({str(kind): int(count) for kind, count in zip(kinds, rows, strict=True)})
    return counts + Counter(malformed=unread)


def _numbered(reasons: Mapping[str, int]) -> str:
    """How many untimely tuples of each kind, in words."""
    texts = {LATE: "late {}", FAR_FUTURE: "{} from the far future"}
    found = [(reasons[reason], text) for reason, text in texts.items() if reasons.get(reason)]
    return " and ".join(f"{rows} {text.format('tuple' if rows == 1 else 'tuples')}" for rows, text in found)
