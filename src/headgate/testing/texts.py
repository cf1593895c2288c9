"""Compiles query texts that have no expected output, with assumptions for what they leave undefined."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Query, Stream, View
from headgate.compile import compile_script
from headgate.cql.script import parse
from headgate.delta.lower import lower
from headgate.sql import Column, backquoted
from headgate.sql.functions import AGGREGATES
from headgate.testing.cases import Case
from headgate.testing.runner import script
from headgate.ticks import TimeDomain


def assumptions_of(case: Case) -> list[str]:
    """Compiles a case without running it; returns the assumptions that it needed.

    Published texts name streams, columns and aggregates that they do not define: each is assumed as it is used.
    """
    text = case.query
    for schema in (*case.streams.values(), *case.relations.values()):
        for column in schema:
            if not column.isidentifier():  # such as x-pos
                written = backquoted(column).replace("\\", r"\\")
                text = re.sub(rf"(?<![\w`]){re.escape(column)}(?![\w`])", written, text)
    catalog = Catalog()
    compile_script(script(replace(case, query="Select 1")).rpartition(";\n")[0], catalog)
    assumed = _assume(parse(text)[-1], catalog)
    (definition,) = compile_script(text, catalog)
    assert isinstance(definition, Query | View)
    lower(definition.plan)
    return assumed


def _assume(tree: exp.Expression, catalog: Catalog) -> list[str]:
    """Define the streams, columns and aggregates that a text uses without defining them."""
    tables = {table.name: table.alias or table.name for table in tree.find_all(exp.Table)}
    missing = [table for table in tables if not catalog.has_source(table)]
    assumed = []
    for found in tree.find_all(exp.In):  # (a, b) NOT IN (Rel)
        relation = found.expressions[0].name if len(found.expressions) == 1 else ""
        if isinstance(found.this, exp.Tuple) and relation and not catalog.has_source(relation):
            width = len(found.this.expressions)
            columns_there = tuple(Column(f"c{number + 1}", "DOUBLE") for number in range(width))
            catalog.add(Stream(relation, columns_there, TimeDomain.INTEGER))
            assumed.append(f"a stream {relation} of {width} columns")
    known = {
        column.name.lower() for stream in catalog.streams.values() for column in stream.columns if stream.name in tables
    }
    defined = {alias.alias.lower() for alias in tree.find_all(exp.Alias)} | {"timestamp", "element_time"}
    defined -= {column.name.lower() for alias in tree.find_all(exp.Alias) for column in alias.this.find_all(exp.Column)}
    defined.add("current_time")
    columns: dict[str, dict[str, None]] = {table: {} for table in missing}
    for column in tree.find_all(exp.Column):
        if isinstance(column.this, exp.Star) or catalog.has_source(column.name):
            continue
        owners = [table for table in missing if column.table.lower() in (table.lower(), tables[table].lower())]
        if not column.table and column.name.lower() not in known | defined:
            owners = missing[:1]
            if not missing and next(iter(tables)).lower() in catalog.streams:
                stream = catalog.stream(next(iter(tables)))
                widened = replace(stream, columns=(*stream.columns, Column(column.name, "DOUBLE")))
                catalog.streams[stream.name.lower()] = widened
                known.add(column.name.lower())
                assumed.append(f"a column {column.name} of {stream.name}")
        for owner in owners:
            columns[owner][column.name] = None
    for table, names_read in columns.items():
        wanted = {read.lower(): read for read in names_read or ["value"]}
        catalog.add(Stream(table, tuple(Column(read, "DOUBLE") for read in wanted.values()), TimeDomain.INTEGER))
        assumed.append(f"a stream {table} ({', '.join(wanted.values())})")
    for select in tree.find_all(exp.Select):
        if select.args.get("group"):
            calls = {call.name for item in select.expressions for call in item.find_all(exp.Anonymous)}
            outside = sorted(
                call for call in calls if call.lower() not in catalog.functions and call.lower() not in AGGREGATES
            )
            catalog.aggregates |= {call.lower() for call in outside}
            assumed += [f"an aggregate {call}" for call in outside]
    return assumed
