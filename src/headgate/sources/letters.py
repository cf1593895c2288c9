"""Dead letters as a table: rows that are neither tuples nor heartbeats, with the reason."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.catalog.entries import Relation, Stream
from headgate.sources.verdict import HEARTBEAT, TUPLE, Limits, Verdicts, behind, promises
from headgate.ticks import TimeDomain

Unread: TypeAlias = list[tuple[int, str]]
"""Rows that could not be read: their places in the order of arrival, and what they were."""


def dead_schema(stream: Stream | Relation, schema: pa.Schema) -> pa.Schema:
    """The columns of a stream's dead letters; `schema` are those of its log."""
    instant = pa.timestamp("us", tz="UTC") if stream.domain is TimeDomain.TIMESTAMP else pa.int64()
    own = [schema.field(column) for column in stream.row_columns()]
    why = [("_reason", pa.string()), ("_behind", pa.int64()), ("_timestamp", instant), ("_raw", pa.string())]
    return pa.schema([*own, *(pa.field(*field) for field in why), schema.field("_t"), schema.field("_s")])


def letters(stream: Stream | Relation, schema: pa.Schema, table: pa.Table, found: Verdicts, limits: Limits) -> pa.Table:
    """The rows that are neither tuples nor heartbeats, as dead letters; `schema` is that of these."""
    dead = ~np.isin(found, (TUPLE, HEARTBEAT))
    rows, reasons = table.filter(pa.array(dead)), found[dead]
    own = rows.column("_t").combine_chunks()
    extra = {
        "_reason": pa.array(reasons, pa.string()),
        "_behind": behind(stream, rows, promises(stream, rows), reasons, limits),
        "_timestamp": own.cast(schema.field("_timestamp").type),
        "_raw": pa.nulls(rows.num_rows, pa.string())
        if "_row" not in rows.column_names
        else _texts(rows["_row"], reasons),
        "_t": pa.array(np.full(rows.num_rows, limits.first_open), pa.int64()),
    }
    known = {name: rows[name] for name in rows.column_names} | extra
    return pa.table([known[name] for name in schema.names], schema=schema)


def malformed(schema: pa.Schema, unread: Unread, limits: Limits) -> pa.Table:
    """Dead letters for rows of which only the text is known; `schema` is that of dead letters."""
    known = {
        "_reason": ["malformed"] * len(unread),
        "_raw": [text for _, text in unread],
        "_t": [limits.first_open] * len(unread),
        "_s": [place for place, _ in unread],
    }
    nothing = [None] * len(unread)
    return pa.table([pa.array(known.get(field.name, nothing), field.type) for field in schema], schema=schema)


def _texts(rows: pa.ChunkedArray, reasons: Verdicts) -> pa.Array:
    """The text of rows without a timestamp. The others have everything in their columns."""
    return pc.if_else(pa.array(reasons == "no-timestamp"), rows.combine_chunks(), None)
