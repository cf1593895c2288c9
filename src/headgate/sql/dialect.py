"""Spark SQL as we read and print it: what sqlglot would print as something else is taken as it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark

VERBATIM: dict[str, str | None] = {
    "FROM_UNIXTIME": "STRING",
    "FROM_UTC_TIMESTAMP": "TIMESTAMP",
    "GET_JSON_OBJECT": "STRING",
    "INSTR": "INT",
    "LISTAGG": "STRING",
    "PARSE_JSON": "VARIANT",
    "PERCENTILE_CONT": "DOUBLE",
    "PERCENTILE_DISC": None,
    "SORT_ARRAY": None,
    "SPACE": "STRING",
    "STRING_AGG": "STRING",
    "TO_CHAR": "STRING",
    "TO_NUMBER": None,
    "TO_UNIX_TIMESTAMP": "BIGINT",
    "TO_UTC_TIMESTAMP": "TIMESTAMP",
    "TO_VARCHAR": "STRING",
    "UNIX_DATE": "INT",
}
"""Functions that are taken as they stand, with the type of their values where it is always one."""

WITH_FORMAT: dict[str, str | None] = {
    "DATE_FORMAT": "STRING",
    "TO_DATE": "DATE",
    "TO_TIMESTAMP": "TIMESTAMP",
    "UNIX_TIMESTAMP": "BIGINT",
}
"""Functions that are taken as they stand if a format is given: sqlglot does not keep each letter of one."""

OF_THREE = ("MAX_BY", "MIN_BY")
"""Functions that are taken as they stand with three arguments: sqlglot would lose the third."""

TYPES = VERBATIM | WITH_FORMAT


def _as_it_stands(name: str) -> Callable[[list[Any]], exp.Expression]:
    return lambda args: exp.Anonymous(this=name, expressions=args)


def _unless(name: str, most: int) -> Callable[[list[Any], Any], exp.Expression]:
    """Reads a call as sqlglot does if it has no more arguments, and as it stands otherwise."""
    typed = Spark.Parser.FUNCTIONS[name]
    with_dialect = "dialect" in typed.__code__.co_varnames

    def read(args: list[Any], dialect: Any) -> exp.Expression:
        if len(args) > most:
            return exp.Anonymous(this=name, expressions=args)
        tree: exp.Expression = typed(args, dialect=dialect) if with_dialect else typed(args)
        return tree

    return read


def _annotated(annotator: Any, call: exp.Anonymous) -> exp.Anonymous:
    kind = TYPES.get(call.name.upper())
    annotator._set_type(call, exp.DataType.build(kind or "UNKNOWN"))
    return call


class SparkSql(Spark):
    """Spark's SQL, in which some functions are taken as they stand."""

    EXPRESSION_METADATA: ClassVar[dict[Any, Any]] = {
        **Spark.EXPRESSION_METADATA,
        exp.Anonymous: {"annotator": _annotated},
    }

    class Parser(Spark.Parser):
        """Reads calls of functions."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {
            **Spark.Parser.FUNCTIONS,
            **{name: _as_it_stands(name) for name in VERBATIM},
            **{name: _unless(name, 1) for name in WITH_FORMAT},
            **{name: _unless(name, 2) for name in OF_THREE},
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parse
            for name, parse in Spark.Parser.FUNCTION_PARSERS.items()
            if name not in VERBATIM and name not in OF_THREE
        }

    class Generator(Spark.Generator):
        """Prints types of times by their own names."""

        TYPE_MAPPING: ClassVar[dict[Any, str]] = {**Spark.Generator.TYPE_MAPPING, exp.DataType.Type.TIME: "TIME"}
