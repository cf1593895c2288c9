"""The syntax trees that CQL adds to SQL: windows, relation-to-stream operators, and statements.

These are plain nodes for sqlglot.
"""

from __future__ import annotations

from sqlglot import exp


class StreamWindow(exp.Expression):
    """`[...]` behind a stream; `kind` is NOW, RANGE, ROWS or UNBOUNDED.

    Numbers stand as they were written. In a family, `amount`, `range` and `slide` may be columns of the member.
    """

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
    """ISTREAM, DSTREAM or RSTREAM: around a select list, or around a query, which is then in `query`.

    `every` (with its unit) and `at_slide` say at which instants RSTREAM puts out the relation: `... EVERY 1 SECOND`,
    `... EMIT AT SLIDE`.
    """

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
    """CREATE STREAM; `timestamp` is the name of a column, or the word `internal` or `latent`."""

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
    """CREATE RELATION: a stored table that changes over time, with its key and its connector."""

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
    """CREATE VIEW; `kind` is STREAM or RELATION where the user said which of the two it must be."""

    arg_types = {"this": True, "columns": False, "query": True, "kind": False}


class PendingView(exp.Expression):
    """`vquery : query`; the view gets its name by the `vtable : register ...` that follows."""

    arg_types = {"query": True}


class NamePendingView(exp.Expression):
    """`vtable : register ...`, which names the view before it."""

    arg_types = {"this": True, "columns": True, "kind": True}


class CreateConstraint(exp.Expression):
    """`CONSTRAINT c ON s CLUSTERED BY a WITHIN k TUPLES`, `... ORDERED BY a ...`, `... (a) REFERENCES o (b) ...`;
    `DETECTED WITHIN k TUPLES CONFIDENCE p` if k is detected.
    """

    arg_types = {
        "this": True,
        "kind": True,
        "stream": True,
        "column": True,
        "detected": False,
        "within": False,
        "confidence": False,
        "policy": False,
        "other": False,
        "other_column": False,
    }


class Drop(exp.Expression):
    """DROP of a stream, relation, view, query, group, function or constraint."""

    arg_types = {"this": True, "kind": True, "if_exists": False}


class Alter(exp.Expression):
    """ALTER: `this` is a new definition that replaces the old one, or a stream that gets one more `column`."""

    arg_types = {"this": True, "column": False}


class SetParameter(exp.Expression):
    """`ALTER QUERY q SET name = value [FROM instant]`: another value of a parameter from an instant on."""

    arg_types = {"this": True, "parameter": True, "value": True, "since": False}


class Show(exp.Expression):
    """`SHOW STREAMS` and the like, or `DESCRIBE name`, which has the name in `this`.

    `SHOW PROFILE FOR query` has the name of the query in `of`.
    """

    arg_types = {"this": False, "kind": False, "of": False}


class CreateQuery(exp.Expression):
    """CREATE QUERY; with `from_beginning`, it reads everything that its streams still keep.

    CREATE QUERIES is a family: one for each row of the relation that `members` names.
    """

    arg_types = {
        "this": True,
        "query": True,
        "members": False,
        "from_beginning": False,
        "format": False,
        "options": False,
    }


class EarlyAnswers(exp.Expression):
    """EMIT EARLY behind a query; `every_us` is the least pause between two early answers, in microseconds."""

    arg_types = {"every_us": False}


class CreateGroup(exp.Expression):
    """CREATE GROUP: queries whose results go out together, up to one instant."""

    arg_types = {"this": True, "expressions": True, "format": False, "options": False}


class CreateFunction(exp.Expression):
    """CREATE FUNCTION: a scalar function that is an expression over its parameters."""

    arg_types = {"this": True, "parameters": False, "body": True}


class SetOption(exp.Expression):
    """`SET name = value`."""

    arg_types = {"this": True, "value": True}


class Explain(exp.Expression):
    """EXPLAIN and a query; that of a family behind FOR EACH ROW OF the relation that `members` names."""

    arg_types = {"this": True, "members": False}


class Why(exp.Expression):
    """`WHY query`: asks why a query is complete up to where it is, and no further."""

    arg_types = {"this": True}


class Snapshot(exp.Expression):
    """`SNAPSHOT a, b`: asks for the rows of several queries at one instant; `SNAPSHOT EARLY` by their early answers."""

    arg_types = {"expressions": True, "early": False}


# declarations about time


class Length(exp.Expression):
    """A length: a number as it was written, with its sign and its unit (of time, TUPLE or none), or UNLIMITED."""

    arg_types = {"amount": False, "unit": False}


class Party(exp.Expression):
    """A stream or relation, or some of its sources: `a SOURCE 'x', 'y'`."""

    arg_types = {"this": True, "sources": False}


class Promise(exp.Expression):
    """A bound on delay: `(AFTER 2 SECONDS WITHIN 5 SECONDS)`."""

    arg_types = {"after": False, "within": True}


class Parameter(exp.Expression):
    """A parameter of a declaration: `NAME`, `NAME value`, `NAME least TO most` or `NAME value PER unit`."""

    arg_types = {"this": True, "value": False, "to": False, "per": False}


class TimeStatement(exp.Expression):
    """A declaration about clocks, delays or heartbeats."""


class Skew(TimeStatement):
    """SKEW: how far the clocks of two streams, or of a stream and the engine, may be apart."""

    arg_types = {"this": True, "to": True, "promises": True}


class Disorder(TimeStatement):
    """DISORDER: how far out of order the tuples of a stream may come; `promises`, or one `Length`."""

    arg_types = {"this": True, "promises": True}


class Latency(TimeStatement):
    """LATENCY: how long a tuple may be on its way."""

    arg_types = {"this": True, "length": True}


class Environment(TimeStatement):
    """ENVIRONMENT: what is known about clocks and network, from which bounds are computed."""

    arg_types = {"this": True, "parameters": True, "members": False}


class Estimate(TimeStatement):
    """ESTIMATE: how bounds are estimated from the tuples that arrive."""

    arg_types = {"this": True, "parameters": False}


class Groups(TimeStatement):
    """GROUPS: sources of a stream that share one heartbeat; a `count` of groups, or the groups themselves."""

    arg_types = {"this": True, "count": False, "sets": False}


class Late(TimeStatement):
    """LATE: what happens to late tuples of a stream (KEEP, DROP or FAIL)."""

    arg_types = {"this": True, "policy": True}


class Future(TimeStatement):
    """FUTURE: how far ahead of the clock a timestamp may lie."""

    arg_types = {"this": True, "length": True}


class Heartbeat(TimeStatement):
    """HEARTBEAT: how heartbeats (watermarks) are made: ON DEMAND, EVERY a length, or NONE.

    Without a stream, it is for all streams that have no declaration of their own.
    """

    arg_types = {"this": False, "how": True, "every": False, "within": False}


class Timeout(TimeStatement):
    """TIMEOUT: how long a stream may be silent before it no longer holds the others back."""

    arg_types = {"length": True}


class TakeBack(exp.Expression):
    """`DROP DISORDER OF a` and the like: takes a declaration back; `this` is the declaration without its numbers."""

    arg_types = {"this": True, "if_exists": False}
