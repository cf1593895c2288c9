"""From the columns of a streaming source to those of the stream, as SQL: by name with a cast, or decoded from `value`.

A row that does not fit is not lost: its text stands in `_raw`, and the verdict calls it malformed. Where the text of a
row is at hand, it stands in `_row` as well, for rows that can be read and have no timestamp.

    SELECT _decoded.sensor, _decoded.celsius, CASE ... END AS _raw
    FROM (SELECT FROM_JSON(_text, 'sensor STRING, celsius DOUBLE, _raw STRING', MAP(...)) AS _decoded, _text FROM ...)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from pyspark.sql import DataFrame

from headgate.catalog.entries import Connector
from headgate.errors import UserError, nearest, quoted
from headgate.sources.inlet import Inlet
from headgate.spark.session import columns_of
from headgate.spark.statements import selected
from headgate.sql import EMPTY, STRING, Column, Sql, ddl, listed, literal, name

CORRUPT = Sql("_raw")
ROW = Sql("_row")
TEXT, FIELDS = Sql("_text"), Sql("_decoded.*")
FROM_TEXT = {"json": Sql("FROM_JSON"), "csv": Sql("FROM_CSV")}
BLANKS = " \t\n\x0b\f\r"
NOTHING_MORE: Mapping[str, Sql] = MappingProxyType({})
AVRO = {
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INT": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "STRING": "string",
    "BINARY": "bytes",
    "DATE": {"type": "int", "logicalType": "date"},
    "TIMESTAMP": {"type": "long", "logicalType": "timestamp-micros"},
    "TIMESTAMP_NTZ": {"type": "long", "logicalType": "local-timestamp-micros"},
}
"""Types of columns as Spark itself writes them to Avro."""


def with_columns(
    rows: DataFrame, inlet: Inlet, payload: Connector | None, kept: Mapping[str, Sql] = NOTHING_MORE
) -> DataFrame:
    """The stream's columns, `_raw` and `_row` from the rows of a source, and the columns in `kept`, by name."""
    if payload is None:
        return by_name(rows, inlet, kept)
    value = _value(rows, inlet)
    others = [f"{expression} AS {name(column)}" for column, expression in kept.items()]
    if payload.format == "avro":
        return _from_avro(rows, inlet, payload.options)
    if (
        payload.format == "csv"
        and next((v for k, v in payload.options.items() if k.lower() == "header"), "").lower() == "true"
    ):
        raise UserError(
            "bad-option",
            f'the values of stream "{inlet.stream.name}" are CSV, one line each, and have no header',
            detail="The fields of a value are the columns of the stream, in their order.",
            hint="Leave 'header' out.",
        )
    return decoded(selected(rows, f"{value} AS _text", *others), inlet, payload.format, payload.options, list(kept))


def by_name(rows: DataFrame, inlet: Inlet, kept: Mapping[str, Sql] = NOTHING_MORE) -> DataFrame:
    """The stream's columns taken by name, whatever their case. A value that cannot be cast makes its row malformed, so
    that one bad row does not stop the stream.
    """
    sparks = columns_of(rows.sparkSession, ddl(inlet.stream.columns))
    taken, failed = list[Sql](), list[Sql]()
    own_columns = [field.name for field in rows.schema.fields if field.name not in (CORRUPT, "_metadata")]
    instant = Sql("FALSE")
    for column in inlet.stream.columns:
        field = next((field for field in rows.schema.fields if field.name.lower() == column.name.lower()), None)
        if field is None:
            raise UserError(
                "no-such-column",
                f'column "{column.name}" of stream "{inlet.stream.name}" does not exist in its source',
                detail=f"Its columns are {quoted(own_columns)}.",
                hint=nearest(column.name, own_columns) or _hint(own_columns),
            )
        own = name(field.name)
        instant = f"{own} IS NULL" if column.name == inlet.stream.timestamp else instant
        if field.dataType == sparks[column.name].dataType:
            taken.append(f"{own} AS {name(column.name)}")
        else:
            taken.append(f"TRY_CAST({own} AS {column.type}) AS {name(column.name)}")
            failed.append(f"({own} IS NOT NULL AND TRY_CAST({own} AS {column.type}) IS NULL)")
    whole = f"TO_JSON(STRUCT({listed(own_columns)}))"
    unfit = f"IF({' OR '.join(failed)}, {whole}, NULL)" if failed else Sql("CAST(NULL AS STRING)")
    of_text = CORRUPT in rows.columns
    raw = f"COALESCE({CORRUPT}, {unfit}) AS {CORRUPT}" if of_text else f"{unfit} AS {CORRUPT}"
    row = f"IF({instant}, {whole}, NULL) AS {ROW}" if of_text else f"CAST(NULL AS STRING) AS {ROW}"
    others = (f"{expression} AS {name(column)}" for column, expression in kept.items())
    return selected(rows, *taken, raw, row, *others)


def _hint(known: list[str]) -> str:
    return "VALUE AS json decodes columns from the values." if "value" in known else ""


def _value(rows: DataFrame, inlet: Inlet) -> Sql:
    if "value" not in rows.columns:
        raise UserError(
            "no-such-column",
            f'VALUE AS needs a column "value", and the source of stream "{inlet.stream.name}" has none',
            detail=f"Its columns are {quoted(rows.columns)}.",
        )
    return Sql("CAST(value AS STRING)")


def is_array(text: Sql) -> Sql:
    """Whether a text of JSON is an array, in SQL. It is asked of every row, and a regular expression takes as long as a
    good part of the parsing.
    """
    return f"STARTSWITH(TRIM(LEADING {literal(BLANKS)} FROM {text}), '[')"


def decoded(rows: DataFrame, inlet: Inlet, format: str, options: Mapping[str, str], kept: list[str]) -> DataFrame:
    """The stream's columns decoded from `_text`: JSON or CSV, one record each.

    Spark would take the first of several records in an array and pass over the others; such a row is malformed here.
    """
    declared = inlet.stream.row_columns()
    schema = ddl([*inlet.stream.columns, Column(CORRUPT, STRING)])
    permissive = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}

    def from_text(text: Sql) -> Sql:
        return f"{FROM_TEXT[format]}({text}, {literal(schema)}, {_map(permissive)})"

    found = selected(rows, f"{from_text(TEXT)} AS _decoded", TEXT, *map(name, kept))
    several = EMPTY
    if format == "json":
        several = f"WHEN {is_array(TEXT)} THEN _text"
        found = _respelled(found, declared, from_text, kept)
    raw = f"CASE WHEN _decoded IS NULL THEN COALESCE(_text, '') {several} ELSE _decoded.{CORRUPT} END AS {CORRUPT}"
    columns = [f"_decoded.{name(column)}" for column in declared]
    return selected(found, *columns, raw, f"_text AS {ROW}", *map(name, kept))


def _respelled(
    found: DataFrame, declared: Sequence[str], from_text: Callable[[Sql], Sql], kept: list[str]
) -> DataFrame:
    """The objects decoded again with their keys spelled like the columns: names of columns count without case, keys of
    JSON for Spark do not.

    Only objects in which a column is null are looked at again. A key that is spelled exactly goes before others. An
    object with two other keys for one column is malformed.
    """
    null = " OR ".join(f"_decoded.{name(column)} IS NULL" for column in declared)
    names = f"ARRAY({', '.join(map(literal, declared))})"
    spelled = f"MAP({', '.join(f'{literal(column.lower())}, {literal(column)}' for column in declared)})"
    keys = Sql("JSON_OBJECT_KEYS(_text)")
    other = f"""IF({null}, FILTER({keys}, key -> MAP_CONTAINS_KEY({spelled}, LOWER(key))
        AND NOT ARRAY_CONTAINS({names}, key) AND NOT ARRAY_CONTAINS({keys}, {spelled}[LOWER(key)])), NULL) AS _other"""
    renamed = f"""TO_JSON(TRANSFORM_KEYS(TRY_CAST(TRY_PARSE_JSON(_text) AS MAP<STRING, VARIANT>),
        (key, value) -> IF(ARRAY_CONTAINS(_other, key), {spelled}[LOWER(key)], key)))"""
    ambiguous = Sql("SIZE(ARRAY_DISTINCT(TRANSFORM(_other, key -> LOWER(key)))) < SIZE(_other)")
    again = f"""CASE WHEN _other IS NULL OR SIZE(_other) = 0 THEN _decoded WHEN {ambiguous} THEN NULL
        ELSE {from_text(renamed)} END AS _decoded"""
    others = list(map(name, kept))
    return selected(selected(found, Sql("_decoded"), TEXT, other, *others), again, TEXT, *others)


def _from_avro(rows: DataFrame, inlet: Inlet, options: Mapping[str, str]) -> DataFrame:
    """The stream's columns from Avro. For bytes that are no record of the schema Spark gives a record of nothing but
    nulls.
    """
    schema = next((value for key, value in options.items() if key.lower() == "avroschema"), None) or avro_schema(inlet)
    others = {key: value for key, value in options.items() if key.lower() != "avroschema"} | {"mode": "PERMISSIVE"}
    record = f"FROM_AVRO(value, {literal(schema)}, {_map(others)}) AS _decoded"
    records = selected(rows, record, Sql("BASE64(value) AS _text"))
    fields = selected(records, FIELDS).columns
    nothing = " AND ".join(f"_decoded.{name(field)} IS NULL" for field in fields)
    return by_name(selected(records, FIELDS, f"IF({nothing}, COALESCE(_text, ''), NULL) AS {CORRUPT}"), inlet)


def avro_schema(inlet: Inlet) -> str:
    """The Avro schema by which Spark writes such columns: each may be null, in the order of their declaration."""
    fields = [{"name": column.name, "type": [_avro_type(column, inlet), "null"]} for column in inlet.stream.columns]
    return json.dumps({"type": "record", "name": "topLevelRecord", "fields": fields})


def _avro_type(column: Column, inlet: Inlet) -> object:
    if column.type in AVRO:
        return AVRO[column.type]
    raise UserError(
        "no-avro-schema",
        f'column "{column.name}" of stream "{inlet.stream.name}" is {column.type}',
        detail="Which type it has in Avro is not evident.",
        hint="VALUE AS avro OPTIONS ('avroSchema' = '{...}')",
    )


def _map(options: Mapping[str, str]) -> Sql:
    return f"MAP({', '.join(f'{literal(key)}, {literal(value)}' for key, value in options.items())})"
