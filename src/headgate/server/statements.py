"""Carries out statements from outside, one text at a time, in a thread of its own.

A text is planned in another process first (`planning`), where it may take so much time and memory and no more. What is
refused there, and what is answered there, never gets to the engine. What can be carried out is planned once more by the
engine, which takes no longer than it took there, in pieces between which rows and epochs have their turn.

A request waits for a limited time. A text that has not begun by then is not carried out. One that has begun cannot be
taken back half-way: the answer says so, and the text goes on to its end. Each statement is durable before the next, so
the answer to a text that fails has what the statements before the mistake have done.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from headgate.errors import Place, UserError
from headgate.permissions import Permissions
from headgate.planning.planner import Planner, Planning, Step
from headgate.planning.state import State
from headgate.server.answers import answer_of
from headgate.server.limits import Limits
from headgate.server.served import Served
from headgate.server.turns import Job, Turns

ORIGIN = "request"
"""Where the text stands, in errors."""

PIECE_SECONDS = 0.1
"""Statements that took so long to plan are carried out in one go. Then others have their turn."""

GIVE_WAY_SECONDS = 0.001
MOST_TRIES = 5
"""So often is a text planned anew because something else changes what it was planned for."""

logger = logging.getLogger("headgate.statements")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a text: the answers of its statements, and the error of the one that failed."""

    answers: list[dict[str, Any]]
    error: UserError | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """The answer to EXPLAIN, which was made where the statement was planned."""

    text: str


class Clerk:
    """Carries out texts for requests."""

    def __init__(self, engine: Served, allowed: Permissions, limits: Limits) -> None:
        self.engine = engine
        self.allowed = allowed
        self.limits = limits
        self.turns = Turns(limits.statements_waiting)
        self.busy = False
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="headgate-statements")
        self.planner = Planner(limits.planning)
        self.planner.start()

    def stop(self) -> None:
        """Carry out nothing more."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        self.planner.close()

    async def carry_out(self, cql: str, client: str = "") -> Outcome:
        """Carry out a text in the client's turn, and wait for it no longer than a request may."""
        job = Job(client, cql, asyncio.get_running_loop().create_future())
        waiting = len(self.turns)
        refused = self.turns.add(job)
        if refused is not None:
            refused.done.set_exception(
                UserError("busy", f"{waiting} texts wait already", hint="Send it again a little later.")
            )
        self._go_on()
        try:
            outcome: Outcome = await asyncio.wait_for(asyncio.shield(job.done), self.limits.statement_seconds)
            return outcome
        except TimeoutError:
            raise self._overdue(begun=not job.give_up()) from None
        finally:
            job.give_up()
            self.turns.remove(job)

    def _go_on(self) -> None:
        """Take the next text, if nobody has one."""
        if self.busy or (job := self.turns.take()) is None:
            return
        self.busy = True
        work = asyncio.get_running_loop().run_in_executor(self.pool, self._carried_out, job)
        work.add_done_callback(lambda done: self._ended(job, done))

    def _ended(self, job: Job, work: asyncio.Future[Outcome]) -> None:
        self.busy = False
        if work.cancelled():
            job.done.cancel()
        elif not job.done.done():
            error = work.exception()
            job.done.set_result(work.result()) if error is None else job.done.set_exception(error)
            job.done.exception()  # whoever waited may be gone
        self._go_on()

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

    def _carried_out(self, job: Job) -> Outcome:
        found: list[Any] = []
        error: UserError | None = None
        try:
            self._carry_out(job, found)
        except UserError as refused:
            error = refused
        answers: list[dict[str, Any]] = []
        try:
            for one in found:
                explained = {"kind": "explanation", "text": one.text} if isinstance(one, Explained) else None
                answers.append(explained or answer_of(one, self.engine.catalog, self.limits))
        except UserError as refused:
            error = error or refused
        self.engine.wake()
        kinds = [f"{answer.get('did', 'answered')} {answer['kind']}" for answer in answers]
        logger.info("statements", extra={"fields": {"answers": kinds, "error": None if error is None else error.code}})
        return Outcome(answers, error)

    def _carry_out(self, job: Job, found: list[Any]) -> None:
        """Plan a text and carry out what can be, again and again until nothing is left of it."""
        start, tries = 0, 0
        while tries < MOST_TRIES:
            text = job.cql[start:]
            state = self._state()
            planning = Planning()
            steps = self.planner.steps(planning, text, state, self.allowed, ORIGIN)
            try:
                end, current = self._do(job, text, steps, state, found)
            except UserError as error:
                raise moved(error, text, job.cql, start) from None
            finally:
                deque(steps, maxlen=0)  # the rest of them, of which nothing becomes
            if not job.begin():
                return
            if current and planning.error is not None:
                raise moved(planning.error, text, job.cql, start)
            if current and planning.whole:
                return
            start, tries = start + end, tries + (end == 0)
        raise UserError("busy", "what the text reads is changed all the time", hint="Send it again a little later.")

    def _state(self) -> State:
        with self.engine.turn:
            return State.of(self.engine.catalog)

    def _do(self, job: Job, text: str, steps: Iterable[Step], state: State, found: list[Any]) -> tuple[int, bool]:
        """Carry out statements as they are planned for a state. Returns how far that went, and whether it is all.

        It ends early where something else has changed what they were planned for, and where nobody waits any more.
        """
        done = 0
        for piece in pieces(steps):
            if not job.begin():
                return done, False
            start, end = piece[0].start, piece[-1].end
            if piece[0].explanation is not None:
                found.append(Explained(piece[0].explanation))
                done = end
                continue
            with self.engine.turn:
                if not State.of(self.engine.catalog).same(state):
                    return done, False
                try:
                    self.engine.execute(text[start:end], ORIGIN, allow=self.allowed, answers=found)
                except UserError as error:
                    raise moved(error, text[start:end], text, start) from None
                state = State.of(self.engine.catalog)
            done = end
            time.sleep(GIVE_WAY_SECONDS)
        return done, True


def pieces(steps: Iterable[Step]) -> Iterator[list[Step]]:
    """Statements one after the other that are carried out in one go; one that is answered already is by itself."""
    piece: list[Step] = []
    for step in steps:
        if piece and step.explanation is not None:
            yield piece
            piece = []
        piece.append(step)
        if step.explanation is not None or sum(one.seconds for one in piece) > PIECE_SECONDS:
            yield piece
            piece = []
    if piece:
        yield piece


def moved(error: UserError, part: str, whole: str, start: int) -> UserError:
    """An error with its place in the whole text instead of in a part of it that stands behind `start`."""
    place = error.place
    if place is not None and place.text == part and part != whole:
        error.place = Place(whole, start + place.start, start + place.end, place.origin)
    return error
