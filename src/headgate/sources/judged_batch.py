"""A batch that is judged and not in the log yet: what a Spark job has written by verdict, and files of the source that
are taken as they are.

    .arriving/judged/sealed/_verdict=tuple/part-00000.parquet
    .arriving/judged/sealed/_verdict=late/part-00000.parquet
    .arriving/whole/00000105553116266496.parquet

The footers of the files say how many rows there are of each verdict, and in which range of time. Where a stream holds
many sources, sums over their names and the timestamps say it of each of them.

Rows are judged beside epochs, so heartbeats may be given before the batch is taken. Then the files that hold tuples
which are late by now are judged anew, in memory:

    .arriving/judged/sealed/_verdict=late/again-part-00000.parquet
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from headgate.heartbeat.arrivals import NEVER, Arrivals, Ticks, of_one
from headgate.heartbeat.clock import Clock
from headgate.heartbeat.future import TOPS, largest_of
from headgate.log import statistics
from headgate.log.checksum import writing
from headgate.log.chunk import Chunk, described, span
from headgate.plan.needs import Need
from headgate.sources.as_they_are import instants
from headgate.sources.inlet import Batch, Inlet
from headgate.sources.low_part import TABLE_ROWS, Reduced, partial_aggregates, partial_fields, with_partials
from headgate.sources.plain_json import UNCLEAR
from headgate.sources.rows import Rows
from headgate.sources.verdict import (
    ALIKE,
    FAR_FUTURE,
    HEARTBEAT,
    LATE,
    MALFORMED,
    TUPLE,
    UNNEEDED,
    UNTIMELY,
    Limits,
    sends_heartbeats,
    verdicts,
)
from headgate.spark.staging import address
from headgate.spark.statements import run
from headgate.sql import BIGINT, FOREVER, STRING, Column, Sql, ddl, literal, name
from headgate.ticks import Tick, TimeDomain

BUCKETS_AN_OCTAVE = 16
"""How finely a sample tells distances apart: to one part in sixteen of their logarithm to the base of two."""


ACCEPTED = (TUPLE, UNNEEDED)
"""The verdicts on tuples that are neither late nor heartbeats."""

OWN_INSTANTS = {TUPLE: "_t", UNNEEDED: "_t", LATE: "_timestamp", HEARTBEAT: "_timestamp"}
"""The column in which rows have their own timestamps, by verdict."""

HEARD = "heard"
"""Not a verdict: the folder with the timestamps, places and sources of tuples, if those were put together before they
were written. The heartbeats hear these in place of the tuples.
"""

SUMS = {"tuples": "sum", "late": "sum", "smallest": "min", "largest": "max", "upto": "max"}
"""What the heartbeats hear of a source, and how parts of it are put together."""

SUMMED = ("own_count", "late_count", "own_min", "own_max", "upto_max")

SPELLED_ALIKE = ("STRING", "TINYINT", "SMALLINT", "INT", "BIGINT")
"""Types whose values Spark and Arrow write as the same text."""

SOURCE_ROWS = 2**20
"""How many rows are summed up by source at a time."""


class Outdated(Exception):
    """The stream was dropped, or got another column, while a batch of it was judged: the batch cannot be taken."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the rows of a batch were judged by."""

    shape: Rows
    """What the rows of the stream looked like."""

    limits: Limits
    stamp: Tick | None = None
    """The instant of rows that are stamped on entry."""

    low: Need | None = None
    """What the log has to keep of the tuples; None: all of it."""


class JudgedBatch:
    """Rows that a Spark job has judged and written, and files that are taken as they are; `take` moves them to the
    log.
    """

    def __init__(
        self,
        session: SparkSession,
        inlet: Inlet,
        directory: Path | None,
        whole: Sequence[Chunk],
        judged: Judged,
        folder: Path,
    ) -> None:
        self.session = session
        self.inlet = inlet
        self.directory = directory
        """What the job wrote; None if there was none."""
        self.whole = list(whole)
        """Files of the source, which hold nothing but tuples."""
        self.judged = judged
        self.folder = folder
        """Where files that are judged anew are written."""
        self._batch: Batch | None = None
        self.alike = 0
        """How many tuples others in the files stand for."""
        folders = [] if directory is None else sorted(directory.glob("_verdict=*"))
        self.files = {folder.name.removeprefix("_verdict="): sorted(folder.glob("*.parquet")) for folder in folders}
        self.footers = {verdict: [pq.read_metadata(file) for file in files] for verdict, files in self.files.items()}
        self.spans: list[tuple[int, int] | None] = []
        """The ranges of the timestamps of tuples before they were put together."""
        if HEARD in self.files:
            heard, kept = (sum(footer.num_rows for footer in self.footers.get(kind, ())) for kind in (HEARD, TUPLE))
            self.alike = heard - kept

    @property
    def accepted(self) -> tuple[str, ...]:
        """The folders that have the timestamps of all tuples that are not late."""
        return (HEARD, UNNEEDED) if HEARD in self.files else ACCEPTED

    @property
    def own_instants(self) -> dict[str, str]:
        """The column in which rows have their own timestamps, by folder: of what the heartbeats hear."""
        return {(HEARD if HEARD in self.files and kind == TUPLE else kind): own for kind, own in OWN_INSTANTS.items()}

    def counts(self) -> Counter[str]:
        """How many rows there are, by verdict."""
        found = Counter({kind: sum(footer.num_rows for footer in footers) for kind, footers in self.footers.items()})
        del found[HEARD]
        return found + Counter({TUPLE: sum(chunk.rows for chunk in self.whole), ALIKE: self.alike})

    def put_together(self) -> None:
        """Keep one tuple in place of all those that queries do not tell apart (see `low_part`). What the heartbeats
        learn is known before.
        """
        low = self.judged.low
        if low is None or low.told is None or sends_heartbeats(self.inlet.stream) or HEARD in self.files:
            return
        self.batch()
        self.spans = [span(footer, "_t") for footer in self.footers.get(TUPLE, [])]
        with writing(self.folder):
            self.alike = sum(self._put_together(file, low) for file in self.files.get(TUPLE, []))
        self._written(TUPLE, self.files.get(TUPLE, []))

    def _put_together(self, file: Path, low: Need) -> int:
        """Put tuples of a file together, some of its rows at a time; how many of them go."""
        own = pq.ParquetFile(file)
        partial = partial_fields(low, own.schema_arrow)
        schema, reduced = pa.schema([*own.schema_arrow, *partial]), file.with_suffix(".reduced")
        left = 0
        with pq.ParquetWriter(reduced, schema, write_statistics=statistics.told(schema)) as writer:
            for part in own.iter_batches(TABLE_ROWS):
                rows = with_partials(partial_aggregates(low, self.inlet.stream, pa.table(part)), partial)
                writer.write_table(rows.cast(schema))
                left += rows.num_rows
        if left == own.metadata.num_rows:
            reduced.unlink()
            return 0
        reduced.rename(file)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)  # Hadoop's checksum of what it was before
        return own.metadata.num_rows - left

    def unclear(self) -> list[int]:
        """The places of rows that must be read again, as text."""
        found = list[int]()
        for file in self.files.get(MALFORMED, ()):
            for rows in pq.ParquetFile(file).iter_batches(columns=["_raw", "_s"]):
                found += rows.filter(pc.equal(rows.column("_raw"), UNCLEAR)).column("_s").to_pylist()
        return found

    def untimely(self) -> pa.Table:
        """The tuples that the policy covers: why they are untimely, by how much, and their source."""
        columns = ["_reason", "_behind", *([self.inlet.source] if self.inlet.source is not None else [])]
        schema = pa.schema([self.inlet.dead_schema.field(column) for column in columns])
        files = [file for verdict in UNTIMELY for file in self.files.get(verdict, ())]
        found = [pq.ParquetFile(file).read(columns).select(columns).cast(schema) for file in files]
        return pa.concat_tables([schema.empty_table(), *found])

    def tops(self, limits: Limits) -> Ticks:
        """The largest timestamps, or heartbeats that rows carry, in falling order. If some lie beyond the limit, only
        those.
        """
        if self.files.get(FAR_FUTURE):
            return limits.ahead + np.minimum(self._largest(FAR_FUTURE, "_behind"), int(FOREVER) - max(limits.ahead, 0))
        found = largest_of(np.concatenate([self._largest(verdict, "_t") for verdict in self.accepted]))
        for chunk in sorted(self.whole, key=lambda chunk: chunk.high, reverse=True):
            if len(found) == TOPS and chunk.high <= found[-1]:
                break  # nor has any chunk behind it a larger one
            found = _larger(found, instants([chunk]))
        return found

    def _largest(self, verdict: str, column: str) -> Ticks:
        files = (pq.ParquetFile(file).iter_batches(columns=[column]) for file in self.files.get(verdict, ()))
        return _larger(np.array([], np.int64), (part.column(0) for parts in files for part in parts))

    def letters(self) -> list[Path]:
        """The files of dead letters that the policy keeps."""
        dropped = (*ACCEPTED, HEARD, HEARTBEAT, *(UNTIMELY if self.inlet.policy == "drop" else ()))
        return [file for verdict, files in self.files.items() if verdict not in dropped for file in files]

    def take(self, clock: Clock, name: str | None = None) -> int:
        """Move the rows to the log and the dead letters; how many are tuples. `name` is that of their chunks.

        The journal's turn is held: no heartbeat is given until the rows are in the log.
        """
        if self.inlet.dropped or self.inlet.rows is not self.judged.shape:
            raise Outdated(f'stream "{self.inlet.stream.name}" has changed')
        low, now = self.judged.low, self.inlet.low
        if low is not None and (now is None or not low.covers(now)):
            raise Reduced  # a query has come meanwhile that needs more
        self._catch_up(clock)
        if self.inlet.policy == "fail":
            self.inlet.refuse(self.untimely())
        batch, counts = self.batch(), self.counts()
        if self.inlet.nothing_arrived and batch.arrivals.total:
            for file in self.letters():
                _stamp(file, int(batch.arrivals.smallest.min()))
        self.inlet.dead.adopt(self.letters())
        reached = _range([span(footer, "_t") for verdict in self.accepted for footer in self.footers.get(verdict, ())])
        self.inlet.log.pass_over(counts[UNNEEDED] + self.alike, NEVER if reached is None else reached[1])
        chunks = self.inlet.log.adopt(self.files.get(TUPLE, []), name)
        chunks += self.inlet.log.adopt_as_they_are(self.whole)
        self.inlet.record(counts, batch, counts.total(), clock)
        return sum(chunk.rows for chunk in chunks) + counts[UNNEEDED] + self.alike

    def _catch_up(self, clock: Clock) -> None:
        """Heed the heartbeats that were given since the rows were judged.

        What was promised to be complete must stay as it is: tuples that lie there now are late, and tuples and dead
        letters that the engine itself stamps get a later instant.
        """
        now, before, stamp = self.inlet.limits(clock), self.judged.limits, self.judged.stamp
        if stamp is not None and stamp < now.first_open:
            if self.alike:
                raise Reduced  # what the heartbeats learn is to be found out anew
            self._stamp_all(ACCEPTED, int(self.inlet.stamps(1, clock)[0]))
            self._batch = None
        if now.first_open > before.first_open:
            self._stamp_all(self.files.keys() - {*ACCEPTED, HEARD, HEARTBEAT}, now.first_open)
        if (now.closed, now.apart) != (before.closed, before.apart):
            self._find_late(replace(now, ahead=Limits().ahead))

    def _stamp_all(self, verdicts: Iterable[str], instant: Tick) -> None:
        """Give all rows of some verdicts the same instant."""
        for verdict in verdicts:
            for file in self.files.get(verdict, ()):
                _stamp(file, instant)
            self._written(verdict, self.files.get(verdict, []))

    def _written(self, verdict: str, files: list[Path]) -> None:
        """Note which files hold the rows of a verdict now."""
        self.files[verdict], self.footers[verdict] = files, [pq.read_metadata(file) for file in files]

    def _find_late(self, limits: Limits) -> None:
        """Judge anew, by limits that have moved, the files in which tuples may be late now."""
        latest = max([limits.closed, *limits.apart.values()])
        if self.judged.low is not None:
            ranges = [span(footer, "_t") for verdict in self.accepted for footer in self.footers.get(verdict, ())]
            if any(low <= latest for low, _ in filter(None, [*ranges, *self.spans])):
                raise Reduced  # a dead letter has to be whole
        tuples = self.files.get(TUPLE, [])
        spans = {file: span(footer, "_t") for file, footer in zip(tuples, self.footers.get(TUPLE, []), strict=True)}
        touched = [file for file, found in spans.items() if found is not None and found[0] <= latest]
        chunks = [chunk for file in touched if (chunk := described(file)) is not None]
        chunks += [chunk for chunk in self.whole if chunk.low <= latest]
        if not chunks:
            return
        again = [self._judged_again(chunk, limits) for chunk in chunks]
        self.whole = [chunk for chunk in self.whole if chunk not in chunks]
        left = [file for file in tuples if file not in touched]
        self._written(TUPLE, left + [kept for kept, _ in again])
        self._written(LATE, self.files.get(LATE, []) + [late for _, late in again])
        self._batch = None

    def _judged_again(self, chunk: Chunk, limits: Limits) -> tuple[Path, Path]:
        """Judge the tuples of a file anew; the files of those that still are, and of those that are late."""
        inlet = self.inlet
        folders = [(self.directory or self.folder / "again") / f"_verdict={verdict}" for verdict in (TUPLE, LATE)]
        kept, late = (folder / f"again-{chunk.path.name}" for folder in folders)
        with writing(self.folder):
            for folder in folders:
                folder.mkdir(parents=True, exist_ok=True)
            own = chunk.schema()
            carried = [own.field("_upto")] if "_upto" in own.names else []
            letters = pa.schema([*inlet.dead_schema, *carried])
            with (
                pq.ParquetWriter(kept, own, write_statistics=statistics.told(own)) as of_tuples,
                pq.ParquetWriter(late, letters) as of_letters,
            ):
                for rows in chunk.parts():
                    in_log = rows.select(inlet.rows.schema.names).cast(inlet.rows.schema)
                    found = verdicts(inlet.stream, in_log, limits)
                    dead = pa.array(found == LATE)
                    of_tuples.write_table(rows.filter(pc.invert(dead)).cast(own))
                    behind = inlet.letters(in_log, found, limits)
                    for field in carried:
                        behind = behind.append_column(field, rows.filter(dead)[field.name])
                    of_letters.write_table(behind)
            chunk.path.unlink()
        return kept, late

    def last(self) -> int | None:
        """The largest place of a row in the order of arrival; None if there are no rows."""
        places = [span(footer, "_s") for footers in self.footers.values() for footer in footers]
        return max((last for _, last in filter(None, places)), default=None)

    def batch(self) -> Batch:
        """What the heartbeats learn of it: from the footers alone, or by source."""
        if self._batch is None:
            self._batch = self._summed_up()
        return self._batch

    def _summed_up(self) -> Batch:
        heard = any(self.files.get(verdict) for verdict in self.own_instants)
        batch = self._by_source() if self.inlet.source is not None and heard else self._from_footers()
        stream = self.inlet.stream
        if stream.domain is None or not batch.arrivals.total:
            return batch
        with self.inlet.journal.turn:
            admission = self.inlet.heartbeats.admission(stream.name)
        if not admission.wants_sample:
            return batch
        reference = admission.largest
        sample = self._sample(int(batch.arrivals.largest.max()) if reference is None else reference)
        return replace(batch, arrivals=replace(batch.arrivals, sample=sample))

    def _from_footers(self) -> Batch:
        """Sum up the files, each as one run of tuples: only whole files are compared with those that came before. What
        a task wrote of tuples is one run, needed or not.
        """
        late = self.footers.get(LATE, [])
        runs: dict[str, list[tuple[pq.FileMetaData, str]]] = {}
        for verdict in (*self.accepted, LATE):
            for file, footer in zip(self.files.get(verdict, ()), self.footers.get(verdict, ()), strict=True):
                alone = verdict == LATE or self.judged.low is None
                runs.setdefault(f"{verdict} {file.name}" if alone else _task(file), []).append(
                    (footer, self.own_instants[verdict])
                )
        ranges = [_range([span(footer, column) for footer, column in run]) for run in runs.values()]
        places = [_range([span(footer, "_s") for footer, _ in run]) for run in runs.values()]
        ranges += [(chunk.low, chunk.high) for chunk in self.whole]
        places += [(chunk.first, chunk.first + chunk.rows - 1) for chunk in self.whole]
        rows = sum(footer.num_rows for run in runs.values() for footer, _ in run)
        rows += sum(chunk.rows for chunk in self.whole)
        arrivals = _of_runs(rows, [*filter(None, ranges)], [*filter(None, places)])
        promised: list[Tick] = []
        if sends_heartbeats(self.inlet.stream):
            found = [span(footer, "_upto") for verdict in OWN_INSTANTS for footer in self.footers.get(verdict, ())]
            promised = [high for _, high in filter(None, found)]
        return Batch(
            arrivals, np.array([sum(footer.num_rows for footer in late)]), {None: max(promised)} if promised else {}
        )

    def _by_source(self) -> Batch:
        """Sum up by source. The order within the batch is not known, so no tuple counts as behind another of it."""
        sums = self._sums_in_memory() if self._source_type() in SPELLED_ALIKE else self._sums_by_spark()
        promising = sums.filter(pc.is_valid(sums["upto"]))
        promises = dict(zip(promising["source"].to_pylist(), promising["upto"].to_pylist(), strict=True))
        spoke = sums.filter(pc.greater(sums["tuples"], 0))
        tuples, late, smallest, largest = (
            spoke[column].to_numpy() for column in ("tuples", "late", "smallest", "largest")
        )
        arrivals = Arrivals(spoke["source"].to_pylist(), tuples, smallest, largest, np.zeros(len(tuples), np.int64))
        return Batch(arrivals, late, promises)

    def _source_type(self) -> str:
        return next(column.type.upper() for column in self.inlet.stream.columns if column.name == self.inlet.source)

    def _sums_in_memory(self) -> pa.Table:
        """The sums by source from two or three columns of the files, without a job."""
        source, promised = self.inlet.source or "", ["_upto"] if sends_heartbeats(self.inlet.stream) else []
        parts = []
        for verdict, column in self.own_instants.items():
            for file in self.files.get(verdict, ()):
                for rows in pq.ParquetFile(file).iter_batches(SOURCE_ROWS, columns=[source, column, *promised]):
                    own = rows.column(column).cast(pa.int64())
                    nothing = pa.nulls(len(own), pa.int64())
                    said = {
                        "source": rows.column(source).cast(pa.string()).fill_null(""),
                        "own": nothing if verdict == HEARTBEAT else own,
                        "late": own if verdict == LATE else nothing,
                        "upto": rows.column("_upto").cast(pa.int64()) if promised else nothing,
                    }
                    sums = (
                        pa.table(said)
                        .group_by("source")
                        .aggregate(
                            [("own", "count"), ("late", "count"), ("own", "min"), ("own", "max"), ("upto", "max")]
                        )
                    )
                    parts.append(sums.select(["source", *SUMMED]).rename_columns(["source", *SUMS]))
        together = pa.concat_tables(parts).group_by("source").aggregate(list(SUMS.items()))
        return together.select(["source", *(f"{name}_{how}" for name, how in SUMS.items())]).rename_columns(
            ["source", *SUMS]
        )

    def _sums_by_spark(self) -> pa.Table:
        """The sums by source by one aggregation of Spark, which alone knows how it spells such values."""
        stream = self.inlet.stream
        in_time = stream.domain is TimeDomain.TIMESTAMP
        own, kind = (Sql("UNIX_MICROS(_timestamp)"), Sql("TIMESTAMP")) if in_time else (Sql("_timestamp"), BIGINT)
        ours = (("_timestamp", kind), ("_t", BIGINT), ("_upto", BIGINT), ("_verdict", STRING))
        schema = ddl([*stream.columns, *(Column(*one) for one in ours)])
        assert self.directory is not None
        heartbeat, late = literal(HEARTBEAT), literal(LATE)
        verdicts = ", ".join(map(literal, OWN_INSTANTS))
        return run(
            self.session,
            f"""SELECT source, COUNT_IF(_verdict <> {heartbeat}) AS tuples, COUNT_IF(_verdict = {late}) AS late,
                MIN(own) FILTER (WHERE _verdict <> {heartbeat}) AS smallest,
                MAX(own) FILTER (WHERE _verdict <> {heartbeat}) AS largest, MAX(_upto) AS upto
            FROM (SELECT COALESCE(CAST({name(self.inlet.source or "")} AS STRING), '') AS source,
                COALESCE({own}, _t) AS own, _upto, _verdict FROM {{rows}}
                WHERE _verdict IN ({verdicts}))
            GROUP BY source""",
            rows=self.session.read.schema(schema).parquet(address(self.directory)),
        ).toArrow()

    def _sample(self, reference: Tick) -> tuple[Ticks, Ticks]:
        """Timestamps, each for all that are about as far from the reference, and how many they are.

        The one of a bucket is the farthest in it, so that no tuple is taken to be nearer than it is.
        """
        buckets: dict[int, tuple[Tick, int]] = {}
        for own in self._instants():
            below = own < reference
            distances = np.maximum(np.abs(own.astype(np.float64) - reference), 0.5)  # the reference itself: bucket -16
            codes = 2 * np.ceil(BUCKETS_AN_OCTAVE * np.log2(distances)).astype(np.int64) + below
            found, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
            lows, highs = np.full(len(found), np.iinfo(np.int64).max), np.full(len(found), np.iinfo(np.int64).min)
            np.minimum.at(lows, places, own)
            np.maximum.at(highs, places, own)
            farthest = np.where(found % 2, lows, highs)
            for code, tick, count in zip(found.tolist(), farthest.tolist(), counts.tolist(), strict=True):
                before, seen = buckets.get(code, (tick, 0))
                buckets[code] = (min if code % 2 else max)(before, tick), seen + count
        ticks = np.array([tick for tick, _ in buckets.values()], np.int64)
        return ticks, np.array([count for _, count in buckets.values()], np.int64)

    def _instants(self) -> Iterator[Ticks]:
        """The timestamps of tuples, late ones too, in ticks, piece by piece."""
        for verdict in (*self.accepted, LATE):
            for file in self.files.get(verdict, ()):
                for rows in pq.ParquetFile(file).iter_batches(columns=[self.own_instants[verdict]]):
                    yield rows.column(0).cast(pa.int64()).to_numpy(zero_copy_only=False)
        for stamps in instants(self.whole):
            yield stamps.to_numpy(zero_copy_only=False)


def _task(file: Path) -> str:
    """Which task wrote a file: it is one of those that begin alike."""
    return "-".join(file.stem.partition(".")[0].split("-")[:2])


def _range(ranges: Sequence[tuple[int, int] | None]) -> tuple[int, int] | None:
    """The range that holds several; None if there are none."""
    known = [one for one in ranges if one is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def _larger(found: Ticks, more: Iterable[pa.Array]) -> Ticks:
    """The largest of some values and of more of them, in falling order."""
    for values in more:
        found = largest_of(np.concatenate([found, values.drop_null().to_numpy(zero_copy_only=False)]))
    return found


def _stamp(file: Path, instant: Tick) -> None:
    """Give all dead letters of a file the same instant."""
    letters = pq.ParquetFile(file)
    place, stamped = letters.schema_arrow.get_field_index("_t"), file.with_suffix(".stamped")
    with pq.ParquetWriter(stamped, letters.schema_arrow) as writer:
        for rows in letters.iter_batches():
            stamps = pa.array(np.full(rows.num_rows, instant), pa.int64())
            writer.write_batch(rows.set_column(place, letters.schema_arrow.field(place), stamps))
    stamped.rename(file)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)  # Hadoop's checksum of what it was before


def _of_runs(rows: int, ranges: list[tuple[int, int]], places: list[tuple[int, int]]) -> Arrivals:
    """A summary of runs of tuples of one source: how many tuples, their ranges of time, and those in the order of
    arrival.

    A run is behind another if that one had ended before it began. Nothing is known of runs that overlap.
    """
    if not rows:
        return of_one(np.array([], np.int64))
    (lows, highs), (firsts, lasts) = np.array(ranges, np.int64).T, np.array(places, np.int64).T
    order = np.argsort(lasts)
    largest_so_far = np.maximum.accumulate(highs[order])
    ended = np.searchsorted(lasts[order], firsts)
    behind = np.where(ended > 0, largest_so_far[ended - 1] - lows, 0)
    return Arrivals(
        [None], np.array([rows]), lows.min(keepdims=True), highs.max(keepdims=True), behind.max(keepdims=True).clip(0)
    )
