"""What CQL adds to SQL's syntax trees: windows, relation-to-stream operators, definitions. Nodes for sqlglot, nothing
else.
"""

from __future__ import annotations

from sqlglot import exp


class StreamWindow(exp.Expression):
    """`[...]` behind a stream: kind is NOW, RANGE, ROWS or UNBOUNDED."""

    arg_types = {
        "kind": True,
        "amount": False,
        "unit": False,
        "slide": False,
        "slide_unit": False,
        "partition": False,
        "range": False,
        "range_unit": False,
        "on": False,
    }


class StreamOf(exp.Expression):
    """`ISTREAM(list)` inside a select list, or `ISTREAM(query)` around a query (then `query` is set).

    `every` (with its unit) and `at_slide` say at which instants RSTREAM speaks: `... EVERY 1 SECOND`, `... EMIT AT
    SLIDE`."""

    arg_types = {
        "kind": True,
        "expressions": False,
        "distinct": False,
        "query": False,
        "every": False,
        "every_unit": False,
        "at_slide": False,
    }


class WindowedQuery(exp.Expression):
    """`(query) [window]` as a whole query."""

    arg_types = {"this": True, "window": True}


class CreateStream(exp.Expression):
    """`timestamp` is the name of a column, or the word `internal` or `latent`."""

    arg_types = {
        "this": True,
        "columns": True,
        "timestamp": False,
        "source": False,
        "heartbeat": False,
        "enabling": False,
        "disorder": False,
        "latency": False,
        "late": False,
        "future": False,
        "format": False,
        "options": False,
        "payload": False,
        "payload_options": False,
    }


class CreateRelation(exp.Expression):
    arg_types = {
        "this": True,
        "columns": True,
        "timestamp": False,
        "change": False,
        "key": False,
        "format": False,
        "options": False,
        "payload": False,
        "payload_options": False,
    }


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


class Alter(exp.Expression):
    """`this` is the definition that takes the place of the one of that name, or a stream's name, which gets one more
    `column`.
    """

    arg_types = {"this": True, "column": False}


class Show(exp.Expression):
    """`SHOW STREAMS` and the like; `DESCRIBE name` has `this`."""

    arg_types = {"this": False, "kind": False}


class CreateQuery(exp.Expression):
    """`from_beginning`: it reads all that its streams still keep."""

    arg_types = {"this": True, "query": True, "from_beginning": False, "format": False, "options": False}


class CreateFunction(exp.Expression):
    """A scalar function given by an expression over its parameters."""

    arg_types = {"this": True, "parameters": False, "body": True}


class SetOption(exp.Expression):
    arg_types = {"this": True, "value": True}


class Explain(exp.Expression):
    arg_types = {"this": True}


class Why(exp.Expression):
    arg_types = {"this": True}


# what is said of time


class Length(exp.Expression):
    """A number as it was written, its sign included, with a unit of time, TUPLE, or none; or only UNLIMITED."""

    arg_types = {"amount": False, "unit": False}


class Party(exp.Expression):
    """A stream or relation, or some of its sources: `a SOURCE 'x', 'y'`."""

    arg_types = {"this": True, "sources": False}


class Promise(exp.Expression):
    """`(AFTER 2 SECONDS WITHIN 5 SECONDS)`."""

    arg_types = {"after": False, "within": True}


class Parameter(exp.Expression):
    """`NAME`, `NAME value`, `NAME least TO most`, `NAME value PER unit`."""

    arg_types = {"this": True, "value": False, "to": False, "per": False}


class TimeStatement(exp.Expression):
    """What is declared about clocks and delays: the name of the class is that of the setting."""


class Skew(TimeStatement):
    arg_types = {"this": True, "to": True, "promises": True}


class Disorder(TimeStatement):
    """`promises` are a set of them, or one `Length`."""

    arg_types = {"this": True, "promises": True}


class Latency(TimeStatement):
    arg_types = {"this": True, "length": True}


class Environment(TimeStatement):
    arg_types = {"this": True, "parameters": True, "members": False}


class Estimate(TimeStatement):
    arg_types = {"this": True, "parameters": False}


class Groups(TimeStatement):
    """`count` of them, or the sets of sources that they are."""

    arg_types = {"this": True, "count": False, "sets": False}


class Late(TimeStatement):
    arg_types = {"this": True, "policy": True}


class Future(TimeStatement):
    arg_types = {"this": True, "length": True}


class Heartbeat(TimeStatement):
    """`how` is ON DEMAND, EVERY a length, or NONE; without a stream, of all that have none of their own."""

    arg_types = {"this": False, "how": True, "every": False, "within": False}


class Timeout(TimeStatement):
    arg_types = {"length": True}


class TakeBack(exp.Expression):
    """`DROP DISORDER OF a`: `this` is the statement that declared it, without its numbers."""

    arg_types = {"this": True, "if_exists": False}
