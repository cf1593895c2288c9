"""Windows in brackets, and the instants at which RSTREAM puts out its relation: lengths of time in ticks, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headgate.cql.syntax import StreamOf, StreamWindow
from headgate.cql.trees import column_named, types_of
from headgate.errors import NotYet, Place, UserError
from headgate.plan.expressions import NUMERIC
from headgate.plan.nodes import (
    Frame,
    Node,
    Now,
    Range,
    Relation,
    Rows,
    Stream,
    Unbounded,
    Values,
    Window,
    children,
    domain,
    names,
)
from headgate.sql import Sql, checked_literal
from headgate.sql.printer import printed
from headgate.ticks import Tick, TimeDomain

if TYPE_CHECKING:
    from headgate.cql.binder import Binder


MOST_ROWS = 2**31 - 1
"""The largest number that Spark can give to a row."""


def frame(binder: Binder, child: Stream, window: StreamWindow) -> Frame:
    """The frame of a window in brackets: what NOW, RANGE, ROWS, PARTITION BY and SLIDE ask for, checked."""
    arguments, place = window.args, binder.place(window)
    closed = binder.catalog.settings.range == "closed"
    for column in (arguments.get(part) for part in ("amount", "range", "slide")):
        if isinstance(column, exp.Expression):
            raise UserError(
                "bad-window",
                f"the length of a window is a number, and {column.sql('cql')} is a column",
                place=binder.place(column),
                hint="In CREATE QUERIES ... FOR EACH ROW OF it can be one of that relation.",
            )
    match arguments["kind"]:
        case "NOW":
            return Now()
        case "UNBOUNDED":
            return Unbounded()
        case "RANGE" if arguments.get("on") is not None:
            return _value_frame(binder, child, window)
        case "RANGE":
            length = binder.catalog.ticks(arguments["amount"], arguments.get("unit"), domain(child), place)
            return Range(length, _slide(binder, child, window), closed)
        case _:
            count = _whole(arguments["amount"], "ROWS", "rows", place)
            by = tuple(_column_of(binder, child, column) for column in arguments.get("partition") or ())
            span = None
            if arguments.get("range") is not None:
                length = binder.catalog.ticks(arguments["range"], arguments.get("range_unit"), domain(child), place)
                span = Range(length, None, closed).span
            if arguments.get("slide") is None or span is not None or arguments.get("slide_unit") is not None:
                return Rows(count, by, span, _slide(binder, child, window))
            step = _whole(arguments["slide"], "SLIDE", "rows", place)
            if not step or not count:
                raise UserError("bad-window", "ROWS and SLIDE must be more than none", place=place)
            return Rows(count, by, step=step if step > 1 else None)


def _slide(binder: Binder, child: Stream, window: StreamWindow) -> Tick | None:
    if window.args.get("slide") is None:
        return None
    place = binder.place(window)
    slide = binder.catalog.ticks(window.args["slide"], window.args.get("slide_unit"), domain(child), place)
    if slide <= 0:
        raise UserError("bad-window", "SLIDE must be longer than nothing", place=place)
    return slide


def _value_frame(binder: Binder, child: Stream, window: StreamWindow) -> Values:
    """The frame of `[RANGE c ON column]`: the column as a number, TIMESTAMPs in microseconds."""
    place, given = binder.place(window), window.args
    if given.get("slide") is not None:
        raise NotYet("a window ON a column with SLIDE", place=place)
    column = _column_of(binder, child, given["on"])
    kind, value = types_of(child)[column], printed(column_named(column))
    closed = binder.catalog.settings.range == "closed"
    if kind in ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE"):
        length = binder.catalog.ticks(given["amount"], given.get("unit"), TimeDomain.TIMESTAMP, place)
        return Values(column, f"UNIX_MICROS(CAST({value} AS TIMESTAMP))", Sql(f"{length}"), closed)
    if not kind.startswith(NUMERIC):
        raise UserError(
            "wrong-type",
            f'a window ON "{column}" needs a number or a time, and it is {kind}',
            place=binder.place(given["on"]),
        )
    if given.get("unit") is not None:
        raise UserError("wrong-type", f'"{column}" is a number, so the window ON it has no unit of time', place=place)
    return Values(column, value, checked_literal(given["amount"]), closed)


def _whole(amount: str, word: str, what: str, place: Place) -> int:
    if not amount.isdigit():
        raise UserError("bad-window", f"{word} {amount} is not a whole number of {what}", place=place)
    if int(amount) > MOST_ROWS:
        hint = "Write [ROWS UNBOUNDED] if all are meant."
        raise UserError("too-large", f"{word} {amount} is more {what} than can be counted", place=place, hint=hint)
    return int(amount)


def _column_of(binder: Binder, child: Stream, column: exp.Expression) -> str:
    known = {name.lower(): name for name in names(child)}
    if column.name.lower() not in known:
        raise binder.no_such_column(column, "the stream", known.values())
    return known[column.name.lower()]


def rstream_interval(binder: Binder, written: StreamOf, child: Relation, tree: exp.Expression) -> Tick | None:
    """The interval at whose multiples RSTREAM puts out the relation (EVERY, EMIT AT SLIDE); None for every instant."""
    if written.args.get("at_slide"):
        slides = sorted(set(_slides(child)))
        if len(slides) == 1:
            return slides[0]
        detail = "No window below it slides." if not slides else f"Windows below it slide by {slides} ticks."
        raise UserError(
            "no-slide",
            "EMIT AT SLIDE needs one slide that all sliding windows share",
            place=binder.place(tree),
            detail=detail,
            hint="Say EVERY and a length of time instead.",
        )
    if written.args.get("every") is None:
        return None
    every = binder.catalog.ticks(
        written.args["every"], written.args.get("every_unit"), domain(child), binder.place(tree)
    )
    if every <= 0:
        raise UserError("bad-window", "EVERY must be longer than nothing", place=binder.place(tree))
    return every


def _slides(node: Node) -> list[Tick]:
    """The slides of a relation's windows, without those below the streams it reads."""
    if isinstance(node, Window):
        slide = node.frame.slide if isinstance(node.frame, Range | Rows) else None
        return [slide] if slide else []
    return [slide for child in children(node) for slide in _slides(child)]
