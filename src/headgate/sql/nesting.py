"""Reads nested texts on several stacks, one after the other, so that Python's limit of recursion stays as it is.

A level of nesting takes a parser some two dozen calls, and Python allows a thread a thousand. So every few levels the
parser goes on in a thread of its own, while the one before waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from headgate.sql.dialect import SparkSql

T = TypeVar("T")

LEVELS = 16
"""So many levels of nesting are read on one stack."""

MOST_LEVELS = 640
"""Beyond so many it is a `RecursionError` all the same: that many stacks are enough for all that is allowed."""


def on_own_stack(work: Callable[[], T]) -> T:
    """Do some work in a thread that has done nothing else, and wait for it."""
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="headgate-nested", daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


class NestedParser(SparkSql.Parser):
    """Spark's parser, for texts that are nested deeper than one stack allows."""

    _level = 0

    def _nested(self, parse: Callable[[], Any]) -> Any:
        if self._level >= MOST_LEVELS:
            raise RecursionError("nested too deep to be read")
        self._level += 1
        try:
            return parse() if self._level % LEVELS else on_own_stack(parse)
        finally:
            self._level -= 1

    def _parse_unary(self) -> Any:
        return self._nested(super()._parse_unary)

    def _parse_select(self, *args: Any, **options: Any) -> Any:
        return self._nested(lambda: super(NestedParser, self)._parse_select(*args, **options))


class Nested(SparkSql):
    """Spark's dialect, with a parser for nested texts."""

    Parser = NestedParser
