"""Carries out statements from outside, one text at a time, in a thread of its own.

A request waits for a limited time. A text that has not begun by then is not carried out. One that has begun cannot be
taken back half-way: the answer says so, and the text goes on to its end. Each statement is durable before the next, so
the answer to a text that fails has what the statements before the mistake have done.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from headgate.errors import UserError
from headgate.permissions import Permissions
from headgate.server.answers import answer_of
from headgate.server.limits import Limits
from headgate.server.served import Served

ORIGIN = "request"
"""Where the text stands, in errors."""

logger = logging.getLogger("headgate.statements")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a text: the answers of its statements, and the error of the one that failed."""

    answers: list[dict[str, Any]]
    error: UserError | None = None


class Clerk:
    """Carries out texts for requests."""

    def __init__(self, engine: Served, allowed: Permissions, limits: Limits) -> None:
        self.engine = engine
        self.allowed = allowed
        self.limits = limits
        self.waiting = 0
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="headgate-statements")

    async def carry_out(self, cql: str) -> Outcome:
        """Carry out a text, and wait for it no longer than a request may."""
        if self.waiting > self.limits.statements_waiting:
            raise UserError("busy", f"{self.waiting} texts wait already", hint="Send it again a little later.")
        self.waiting += 1
        try:
            work = self.pool.submit(self._carried_out, cql)
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(work)), self.limits.statement_seconds)
        except TimeoutError:
            raise self._overdue(begun=not work.cancel()) from None
        finally:
            self.waiting -= 1

    def _overdue(self, begun: bool) -> UserError:
        after = f"after {self.limits.statement_seconds:g} s"
        if begun:
            return UserError(
                "still-running",
                f"the statements are not done {after}, and go on",
                hint="GET /status shows what they have done. Send no second copy before they have ended.",
            )
        return UserError(
            "not-begun",
            f"others are still carried out {after}",
            detail="Nothing of the text was carried out.",
            hint="Send it again later.",
        )

    def _carried_out(self, cql: str) -> Outcome:
        found: list[Any] = []
        error: UserError | None = None
        try:
            self.engine.execute(cql, ORIGIN, allow=self.allowed, answers=found)
        except UserError as refused:
            error = refused
        answers: list[dict[str, Any]] = []
        try:
            for one in found:
                answers.append(answer_of(one, self.engine.catalog, self.limits))
        except UserError as refused:
            error = error or refused
        self.engine.wake()
        kinds = [f"{answer.get('did', 'answered')} {answer['kind']}" for answer in answers]
        logger.info("statements", extra={"fields": {"answers": kinds, "error": None if error is None else error.code}})
        return Outcome(answers, error)
