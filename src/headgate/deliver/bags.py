"""The rows of a relation, from the changes that led to it: computed by Arrow, equal rows as often as they are there.

Rows are compared as Spark compares them: nulls are equal to each other, NaN to NaN, and 0.0 to -0.0. Columns of arrays,
structs and maps are compared by codes, numbers that are equal for equal values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ABOUT = ("_time", "_change")
"""The columns of a result that do not belong to the row."""


def net(tables: Sequence[pa.Table], before: pa.Table | None = None) -> pa.Table | None:
    """The rows that are left of changes to those that were there before, in the order in which they first came; None
    without any tables.
    """
    if not tables:
        return before
    changes = pa.concat_tables(tables, promote_options="default").combine_chunks()
    rows, signs = _rows(changes), _signs(changes)
    if before is not None:
        rows = pa.concat_tables([before, rows], promote_options="default").combine_chunks()
        signs = np.concatenate([np.ones(before.num_rows, signs.dtype), signs])
    return _left(rows, signs)


def sorted_rows(rows: pa.Table) -> pa.Table:
    """The rows in the order of their columns, as far as these can be ordered."""
    kinds = zip(rows.column_names, rows.schema.types, strict=True)
    by = [(name, "ascending") for name, kind in kinds if not pa.types.is_nested(kind) and not pa.types.is_null(kind)]
    return rows.sort_by(by) if by else rows


def difference(some: pa.Table | None, others: pa.Table | None) -> pa.Table | None:
    """The rows of a table that another does not have, each as often as it is there more often; None if there are
    none.
    """
    if some is None or others is None:
        return some
    both = pa.concat_tables([some, others], promote_options="default").combine_chunks()
    left = _left(both, np.repeat([1, -1], [some.num_rows, others.num_rows]))
    return left if left.num_rows else None


def correction(now: pa.Table | None, before: pa.Table | None, at: pa.Scalar) -> pa.Table | None:
    """The changes at one instant that lead from a relation with the changes `before` to one with those of `now`; None
    if there are none.
    """
    known = [table for table in (now, before) if table is not None]
    if not known:
        return None
    both = pa.concat_tables(known, promote_options="default").combine_chunks()
    signs = np.concatenate([_signs(table) * (1 if table is now else -1) for table in known])
    came, went = _left(_rows(both), signs), _left(_rows(both), -signs)
    times, kind = both.schema.field("_time"), both.schema.field("_change")
    made = [
        rows.add_column(0, times, pa.repeat(at, rows.num_rows)).add_column(
            1, kind, pa.repeat(pa.scalar(sign, kind.type), rows.num_rows)
        )
        for rows, sign in ((went, "-"), (came, "+"))
    ]
    changes = pa.concat_tables(made).select(both.column_names)
    return changes if changes.num_rows else None


def _rows(changes: pa.Table) -> pa.Table:
    return changes.select([name for name in changes.column_names if name not in ABOUT])


def _signs(changes: pa.Table) -> np.ndarray:
    came = pc.equal(changes.column("_change"), "+").to_numpy(zero_copy_only=False)
    return np.where(came.astype(bool), 1, -1)


def _left(rows: pa.Table, counts: np.ndarray) -> pa.Table:
    """The rows whose counts together are above zero, as often as that, in the order in which they first came."""
    keys = [f"_key{place}" for place in range(rows.num_columns)]
    compared = [*map(_comparable, rows.columns), counts.astype(np.int64), np.arange(rows.num_rows)]
    grouped = pa.table(compared, names=[*keys, "_n", "_row"]).group_by(keys, use_threads=False)
    counted = grouped.aggregate([("_n", "sum"), ("_row", "min")])
    counted = counted.filter(pc.greater(counted.column("_n_sum"), 0)).sort_by("_row_min")
    return rows.take(np.repeat(counted.column("_row_min").to_numpy(), counted.column("_n_sum").to_numpy()))


def _comparable(column: pa.ChunkedArray) -> pa.Array:
    """A column that can be grouped by, with equal values where the column has equal ones."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # of no chunks, or of more than one array can hold
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), pa.scalar(np.nan, array.type), array)
        return pc.if_else(pc.equal(array, pa.scalar(0.0, array.type)), pa.scalar(0.0, array.type), array)
    return _codes(array) if pa.types.is_nested(array.type) else array


def _codes(array: pa.Array) -> pa.Array:
    """A number for each value: the same for equal values of any type, and one for null."""
    if pa.types.is_map(array.type):
        entries = pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)]))
        array = array.cast(entries)
    if pa.types.is_struct(array.type):
        there = array.is_valid()
        fields = [_words(field) for field in array.flatten()]
        text = pc.binary_join_element_wise(*fields, "") if fields else pa.array([""] * len(array))
        array = pc.if_else(there, text, pa.scalar(None, pa.string()))
    elif pa.types.is_nested(array.type):
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
        lists = pa.LargeListArray.from_arrays(ends, _words(array.flatten()))
        array = pc.if_else(array.is_valid(), pc.binary_join(lists, ""), pa.scalar(None, pa.string()))
    else:
        array = _comparable(array)
    coded = pc.dictionary_encode(array, null_encoding="encode")
    return coded.indices.cast(pa.int64())


def _words(array: pa.Array) -> pa.Array:
    """The codes as words that can be put one behind the other."""
    return pc.binary_join_element_wise(_codes(array).cast(pa.string()), "", ",")
