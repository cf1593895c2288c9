"""What CQL adds to SQL's syntax trees: windows, relation-to-stream operators, definitions. Nodes for sqlglot, nothing else."""

from __future__ import annotations

from sqlglot import exp


class StreamWindow(exp.Expression):
    """`[...]` behind a stream: kind is NOW, RANGE, ROWS or UNBOUNDED."""

    arg_types = {
        "kind": True, "amount": False, "unit": False, "slide": False, "slide_unit": False, "partition": False,
        "range": False, "range_unit": False, "on": False,
    }  # fmt: skip


class StreamOf(exp.Expression):
    """`ISTREAM(list)` inside a select list, or `ISTREAM(query)` around a query (then `query` is set).

    `every` (with its unit) and `at_slide` say at which instants RSTREAM speaks: `... EVERY 1 SECOND`, `... EMIT AT SLIDE`.
    """

    arg_types = {
        "kind": True, "expressions": False, "distinct": False, "query": False, "every": False, "every_unit": False,
        "at_slide": False,
    }  # fmt: skip


class WindowedQuery(exp.Expression):
    """`(query) [window]` as a whole query."""

    arg_types = {"this": True, "window": True}


class CreateStream(exp.Expression):
    arg_types = {
        "this": True, "columns": True, "timestamp": False, "source_by": False, "disorder": False, "disorder_unit": False,
        "format": False, "options": False,
    }  # fmt: skip


class CreateRelation(exp.Expression):
    arg_types = {
        "this": True, "columns": True, "timestamp": False, "change": False, "key": False, "format": False, "options": False,
    }  # fmt: skip


class CreateView(exp.Expression):
    """A query by name; `kind` is STREAM or RELATION where the user said which it must be."""

    arg_types = {"this": True, "columns": False, "query": True, "kind": False}


class PendingView(exp.Expression):
    """`vquery : query`, whose name comes with the next `vtable : register ...`."""

    arg_types = {"query": True}


class NamePendingView(exp.Expression):
    arg_types = {"this": True, "columns": True, "kind": True}


class Drop(exp.Expression):
    arg_types = {"this": True, "kind": True, "if_exists": False}


class Show(exp.Expression):
    """`SHOW STREAMS` and the like; `DESCRIBE name` has `this`."""

    arg_types = {"this": False, "kind": False}


class CreateQuery(exp.Expression):
    arg_types = {"this": True, "query": True, "format": False, "options": False}


class CreateFunction(exp.Expression):
    """A scalar function given by an expression over its parameters."""

    arg_types = {"this": True, "parameters": False, "body": True}


class SetOption(exp.Expression):
    arg_types = {"this": True, "value": True}


class Disorder(exp.Expression):
    arg_types = {"this": True, "amount": True, "unit": False}


class Timeout(exp.Expression):
    arg_types = {"amount": True, "unit": False}


class Explain(exp.Expression):
    arg_types = {"this": True}
