"""What stages have put out early, from what, and whether it still fits behind what is settled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.deliver.bags import difference
from headgate.execute.fragment import Fragment
from headgate.log.chunk import Chunk
from headgate.plan.nodes import Scan, sources
from headgate.ticks import Tick


@dataclass(eq=False, slots=True)
class Version:
    """What a stage has put out early, and from what."""

    stage: Fragment
    until: Tick
    """It is right up to here, if what it was computed from is."""

    taken: Mapping[str, int] = field(default_factory=dict)
    """How many tuples it comes from, of each stream that the stage reads itself."""

    inputs: Mapping[str, Version] = field(default_factory=dict)
    """What the stages that it reads had put out."""

    chunks: Sequence[Chunk] = ()
    table: pa.Table | None = None
    """The rows; None if there are none, or so many that they lie in `chunks` alone."""

    def right_up_to(self) -> Tick:
        """Return the instant up to which it is the output over the tuples that were taken."""
        return min([self.until, *(one.right_up_to() for one in self.inputs.values())])

    def fits(self) -> bool:
        """Say whether it still fits behind what is settled: all tuples that were settled since had been taken."""
        return fits(self.stage, self.taken) and all(one.fits() for one in self.inputs.values())

    def all_chunks(self) -> Iterator[Chunk]:
        """Give the chunks that it needs."""
        yield from self.chunks
        for one in self.inputs.values():
            yield from one.all_chunks()


def fits(fragment: Fragment, taken: Mapping[str, int]) -> bool:
    """Say whether all tuples up to where a fragment is settled are among those that were taken of its streams."""
    logs, after = fragment.inputs.logs, fragment.after
    return not any(
        chunk.low <= after
        for stream in fragment.program.streams()
        for chunk in logs[stream].chunks
        if chunk.arrived > taken.get(stream, 0)
    )


def synchronized(answer: Fragment, reflects: Mapping[str, int], readers: Mapping[str, Fragment]) -> Tick:
    """Return the last instant that all streams have reached, each within so many tuples; relations need not."""
    streams = {source.name for source in sources(answer.part.plan) if isinstance(source, Scan)}
    logs = [readers[name].inputs.logs[name].up_to(count) for name, count in reflects.items() if name in streams]
    ends = [answer.after if (newest := log.newest()) is None else newest for log in logs]
    return max(min(ends, default=answer.after), answer.after)


def rows_of(files: Sequence[Path]) -> pa.Table | None:
    """Return the rows in files; None if there are none."""
    tables = [table for file in files if (table := pq.read_table(file)).num_rows]
    return pa.concat_tables(tables, promote_options="default") if tables else None


def same(one: Version, other: Version) -> bool:
    """Say whether two outputs of a stage are known to have the same rows."""
    if one.table is None or other.table is None:
        return all(version.table is None and not version.chunks for version in (one, other))
    if one.table.num_rows != other.table.num_rows:
        return False
    return difference(one.table, other.table) is None
