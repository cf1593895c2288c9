"""From the columns of a streaming source to those of the stream, as SQL: by name with a cast, or decoded from `value`.

A row that does not fit is not lost: its text stands in `_raw`, and the verdict calls it malformed.

    SELECT _decoded.sensor, _decoded.celsius, CASE ... END AS _raw
    FROM (SELECT FROM_JSON(_text, 'sensor STRING, celsius DOUBLE, _raw STRING', MAP(...)) AS _decoded, _text FROM ...)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headgate.catalog import Column, Connector
from headgate.delta.sql import name
from headgate.errors import UserError, nearest, quoted
from headgate.sources.inlet import Inlet

CORRUPT = "_raw"
AVRO = {
    "BOOLEAN": "boolean", "TINYINT": "int", "SMALLINT": "int", "INT": "int", "BIGINT": "long", "FLOAT": "float",
    "DOUBLE": "double", "STRING": "string", "BINARY": "bytes", "DATE": {"type": "int", "logicalType": "date"},
    "TIMESTAMP": {"type": "long", "logicalType": "timestamp-micros"},
    "TIMESTAMP_NTZ": {"type": "long", "logicalType": "local-timestamp-micros"},
}  # fmt: skip
"""Types of columns as Spark itself writes them to Avro."""


def with_columns(rows: DataFrame, inlet: Inlet, payload: Connector | None) -> DataFrame:
    """The stream's columns and `_raw`, from the rows as the source has them."""
    match payload.format if payload is not None else None:
        case None:
            return by_name(rows, inlet)
        case "avro":
            return _from_avro(rows, inlet, payload.options if payload is not None else {})
        case _:
            assert payload is not None
            return _from_text(rows, inlet, payload)


def by_name(rows: DataFrame, inlet: Inlet, beside: Sequence[str] = (), *, absent: bool = False) -> DataFrame:
    """A value that is there and cannot be cast makes the row malformed; so one bad row does not stop the stream.

    Columns `beside` the stream's own stay as they are. A column that is `absent` is an error, or null where it may be.
    """
    sparks = _schema(rows, inlet)
    selected, failed = [], []
    for column in inlet.stream.columns:
        field = next((field for field in rows.schema.fields if field.name.lower() == column.name.lower()), None)
        if field is None and absent:
            selected.append(f"CAST(NULL AS {column.type}) AS {name(column.name)}")
            continue
        if field is None:
            known = [field.name for field in rows.schema.fields if field.name != CORRUPT]
            raise UserError(
                "no-such-column", f'column "{column.name}" of stream "{inlet.stream.name}" does not exist in its source',
                detail=f"Its columns are {quoted(known)}.", hint=nearest(column.name, known) or _hint(known),
            )  # fmt: skip
        own = name(field.name)
        if field.dataType == sparks[column.name].dataType:
            selected.append(f"{own} AS {name(column.name)}")
        else:
            selected.append(f"TRY_CAST({own} AS {column.type}) AS {name(column.name)}")
            failed.append(f"({own} IS NOT NULL AND TRY_CAST({own} AS {column.type}) IS NULL)")
    reasons = [CORRUPT] if CORRUPT in rows.columns else []
    if failed:
        reasons.append(f"IF({' OR '.join(failed)}, TO_JSON(STRUCT(*)), NULL)")
    raw = f"COALESCE({', '.join([*reasons, 'CAST(NULL AS STRING)'])}) AS {CORRUPT}"
    return rows.selectExpr(*selected, raw, *beside)


def _hint(known: list[str]) -> str:
    return "VALUE AS json decodes columns from the values." if "value" in known else ""


def _schema(rows: DataFrame, inlet: Inlet) -> StructType:
    return rows.sparkSession.createDataFrame([], _declared(inlet.stream.columns)).schema


def _declared(columns: tuple[Column, ...]) -> str:
    return ", ".join(f"{name(column.name)} {column.type}" for column in columns)


def _value(rows: DataFrame, inlet: Inlet) -> str:
    if "value" not in rows.columns:
        raise UserError(
            "no-such-column", f'VALUE AS needs a column "value", and the source of stream "{inlet.stream.name}" has none',
            detail=f"Its columns are {quoted(rows.columns)}.",
        )  # fmt: skip
    return "CAST(value AS STRING)"


def _from_text(rows: DataFrame, inlet: Inlet, payload: Connector) -> DataFrame:
    """JSON or CSV, one record a value. Spark would take the first of several in an array and say nothing of the others."""
    text = _value(rows, inlet)
    options = {**payload.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    schema = f"{_declared(inlet.stream.columns)}, {CORRUPT} STRING"
    decoded = f"FROM_{payload.format.upper()}(_text, {literal(schema)}, {_map(options)}) AS _decoded"
    several = "WHEN _text RLIKE '^\\\\s*\\\\[' THEN _text" if payload.format == "json" else ""
    raw = f"CASE WHEN _decoded IS NULL THEN COALESCE(_text, '') {several} ELSE _decoded.{CORRUPT} END AS {CORRUPT}"
    columns = [f"_decoded.{name(column)}" for column in inlet.stream.row_columns()]
    return rows.selectExpr(f"{text} AS _text").selectExpr(decoded, "_text").selectExpr(*columns, raw)


def _from_avro(rows: DataFrame, inlet: Inlet, options: Mapping[str, str]) -> DataFrame:
    """Spark gives a record of nothing but nulls for what is no record of the schema."""
    _value(rows, inlet)
    schema = next((value for key, value in options.items() if key.lower() == "avroschema"), None) or avro_schema(inlet)
    others = {key: value for key, value in options.items() if key.lower() != "avroschema"} | {"mode": "PERMISSIVE"}
    decoded = rows.selectExpr(f"FROM_AVRO(value, {literal(schema)}, {_map(others)}) AS _decoded", "BASE64(value) AS _text")
    fields = decoded.selectExpr("_decoded.*").columns
    nothing = " AND ".join(f"_decoded.{name(field)} IS NULL" for field in fields)
    return by_name(decoded.selectExpr("_decoded.*", f"IF({nothing}, COALESCE(_text, ''), NULL) AS {CORRUPT}"), inlet)


def avro_schema(inlet: Inlet) -> str:
    """The schema by which Spark writes such columns: each may be null, in the order in which they are declared."""
    fields = [{"name": column.name, "type": [_avro_type(column, inlet), "null"]} for column in inlet.stream.columns]
    return json.dumps({"type": "record", "name": "topLevelRecord", "fields": fields})


def _avro_type(column: Column, inlet: Inlet) -> object:
    if column.type in AVRO:
        return AVRO[column.type]
    raise UserError(
        "no-avro-schema", f'column "{column.name}" of stream "{inlet.stream.name}" is {column.type}',
        detail="Which type it has in Avro is not evident.", hint="VALUE AS avro OPTIONS ('avroSchema' = '{...}')",
    )  # fmt: skip


def literal(text: str) -> str:
    return "'" + re.sub(r"(['\\])", r"\\\1", text) + "'"


def _map(options: Mapping[str, str]) -> str:
    return f"MAP({', '.join(f'{literal(key)}, {literal(value)}' for key, value in options.items())})"
