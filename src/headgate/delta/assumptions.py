"""What a program takes for granted of the numbers that it reads, so that its sums are shorter.

    complete   no value of a column is null: it need not be counted apart from the rows
    small      every value is smaller than 2^18: of the parts of a double (`exact`) the first is always 0
    fitting    every value fits, by its size: it need not be looked at

A program is first made as if all of this held. Chunks know the range of their numbers (`log.statistics`), so before an
epoch it is known which assumptions the chunks that it reads break. Then the program is made again without those. It
goes on with the synopses that are there: sums that were not kept were 0, and counts were those of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.delta import exact
from headgate.log.chunk import Chunk
from headgate.log.statistics import Values, merged
from headgate.plan.nodes import Node, Scan

Kind: TypeAlias = Literal["complete", "small", "fitting"]

SAID: dict[Kind, str] = {
    "complete": "is never null",
    "small": f"is smaller than 2^{exact.UNITS[0]}",
    "fitting": f"is from 2^{exact.LEAST} to 2^{exact.MOST} in size",
}


@dataclass(frozen=True, slots=True, order=True)
class Assumption:
    """Something that is taken for granted of a column of a base stream or relation."""

    stream: str
    column: str
    kind: Kind

    def __str__(self) -> str:
        return f"{self.column} of {self.stream} {SAID[self.kind]}"

    def holds(self, values: Values | None) -> bool:
        """True if it holds for every row of which these values are known."""
        if values is None:
            return False
        if self.kind == "complete":
            return values.complete
        if values.nulls == values.rows:
            return True
        if values.exponent is None or values.least is None or values.largest is None:
            return False
        if self.kind == "small":
            return values.exponent <= exact.UNITS[0]
        least = 2.0**exact.LEAST
        return values.exponent <= exact.MOST and (values.least >= least or values.largest <= -least)


def broken(assumed: Iterable[Assumption], chunks: Callable[[str], Iterable[Chunk]]) -> frozenset[Assumption]:
    """The assumptions that do not hold for all chunks which an epoch reads; `chunks` gives those of a stream."""
    known = {stream: merged(chunk.statistics for chunk in chunks(stream)) for stream in {one.stream for one in assumed}}
    return frozenset(
        one for one in assumed if not ((all_of := known[one.stream]) and one.holds(all_of.values(one.column)))
    )


def origins(node: Node, column: str) -> frozenset[tuple[str, str]] | None:
    """The columns of base streams that a column of a node hands on unchanged, null where they are null; None if the
    column is computed.
    """
    if isinstance(node, Scan):
        written = {one.name.lower(): one.name for one in node.columns}
        return frozenset({(node.stream, written[column.lower()])}) if column.lower() in written else None
    found: list[frozenset[tuple[str, str]] | None] = []
    for child, carried in zip(node.children, node.carried, strict=True):
        value = carried.get(column.lower())
        if value is not None:
            found.append(origins(child, value.column) if value.column is not None else None)
    if not found or any(one is None for one in found):
        return None
    return frozenset(pair for one in found if one is not None for pair in one)
