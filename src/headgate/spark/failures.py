"""Errors of others in our words: those of Spark, of Java and its drivers, and of the user's own functions.

Every border of the engine (an epoch, a source, a sink, a function of the user's) translates errors by this module
alone. `reason_of` is the one place that finds the line that matters: what was refused, and the innermost cause if that
says more, without a stack.

    [FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/3.parquet: it is not a Parquet file
    org.postgresql.util.PSQLException: ERROR: relation "totals" has no column "n"
    KeyError: 'unit'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession

from headgate.errors import Place, Several, UserError

T = TypeVar("T")

LONGEST = 500
"""How many letters of another program's text are shown."""

DEEPEST = 20
"""How many causes of causes are looked at."""

OF_ALL = ("disk-failed", "spark-gone")
"""Codes of errors that are not of one query, source or sink: nothing can go on."""

CALL = re.compile(r"^An error occurred while calling \S+?\.?$")
OF_A_TASK = re.compile(r"^.*?most recent failure: Lost task .*?\): ", re.DOTALL)
OF_SPARK = re.compile(r"^org\.apache\.spark\.[\w.$]+: ")
CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\] ")
NOTHING_SAID = ("Job aborted", "Writing job aborted", "Task failed while writing rows", "[TASK_WRITE_FAILED]")
"""How Spark begins the text of a failure whose cause says what it was."""


NO_MEMORY = (
    "UNABLE_TO_ACQUIRE_MEMORY",
    "SparkOutOfMemoryError",
    "memory to build hash map",
    "memory to build hash relation",
)
"""What Spark says where a hash table or a buffer does not fit into the memory of its task."""


def failure(error: BaseException, code: str, message: str, *, place: Place | None = None, hint: str = "") -> UserError:
    """Any error as one of ours. An error that is ours already stays as it is."""
    if isinstance(error, UserError):
        return error
    return UserError(code, message, place=place, detail=sentence(error), hint=hint)


def reason_of(error: BaseException) -> str:
    """What went wrong, in one line."""
    if isinstance(error, UserError):
        parts = [error.message, error.detail]
    else:
        texts = [_shortened(text) for text in _texts(error)]
        telling = [text for text in texts if text and not text.startswith(NOTHING_SAID)] or [
            text for text in texts if text
        ]
        parts = [*telling[:1], *telling[-1:]] or [type(error).__name__]
        if (parts[-1].partition(": ")[2] or parts[-1]) in parts[0]:  # it says nothing new
            parts = parts[:1]
    line = ": ".join(part.rstrip(".") for part in parts if part)
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."


def sentence(error: BaseException) -> str:
    """What went wrong, as the detail of an error of ours."""
    text = reason_of(error)
    return text if text.endswith((".", "?", "!")) else f"{text}."


def raise_all(failures: Sequence[UserError]) -> None:
    """Raise nothing, one error, or several in one, as there are."""
    if failures:
        raise failures[0] if len(failures) == 1 else Several(failures)


def concerns_all(error: BaseException) -> bool:
    """True if an error is not of one query, source or sink alone, so that nothing can go on."""
    return isinstance(error, UserError) and any(one.code in OF_ALL for one in error.each())


def check_alive(session: SparkSession, error: BaseException) -> None:
    """Raise `spark-gone` if an error means that Spark's process has ended, and with it everything that it runs."""
    if isinstance(error, UserError | PySparkException) or not isinstance(error, Py4JError | OSError | EOFError):
        return
    jvm: Any = getattr(session, "_jvm", None)  # over Spark Connect there is none here
    if jvm is None:
        return
    try:
        jvm.java.lang.System.nanoTime()
    except Exception:
        raise UserError(
            "spark-gone",
            "Spark's process has ended, and nothing can go on",
            detail=sentence(error),
            hint="Start again: with --directory everything goes on where it was. If memory ran out: "
            "HEADGATE_DRIVER_MEMORY=4g.",
        ) from error


def called(function: Callable[..., T], *arguments: Any, code: str, message: str, hint: str = "") -> T:
    """Call a function of the user's. Whatever it raises, `sys.exit()` too, is a failure of that function alone."""
    try:
        return function(*arguments)
    except (KeyboardInterrupt, UserError):
        raise
    except BaseException as error:
        raise failure(error, code, message, hint=hint) from error


def lacks_memory(error: BaseException) -> bool:
    """Say whether a task failed because Spark had no memory left for what it holds at once."""
    return any(word in text for text in (str(error), *_texts(error)) for word in NO_MEMORY)


def condition(error: BaseException) -> str:
    """Spark's name for an error, such as FAILED_READ_FILE.NO_HINT; nothing if it has none."""
    found = CONDITION.search(reason_of(error)) if isinstance(error, PySparkException | Py4JJavaError) else None
    return found[1] if found else ""


def parameters(error: BaseException) -> dict[str, str]:
    """What Spark names in an error: columns, files, expressions."""
    try:
        return dict(error.getMessageParameters() or {}) if isinstance(error, PySparkException) else {}
    except Exception:
        return {}


def _texts(error: BaseException) -> list[str]:
    """What an error says, and after it each of its causes."""
    try:
        if isinstance(error, Py4JJavaError):
            return _of_java(error.java_exception)
        if isinstance(error, CapturedException):
            causes = _texts(error._cause) if error._cause is not None else []
            return [error._desc or "", *(causes if error._origin is None else _of_java(error._origin)[1:])]
    except Exception:  # it is the JVM that says it, and it may be the JVM that is gone
        return [str(getattr(error, "errmsg", "")) or type(error).__name__]
    text = str(error)
    if isinstance(error, PySparkException | Py4JError):
        causes = re.findall(r"^Caused by: (.*)$", text, re.MULTILINE)
        return [text, *causes]
    named = type(error).__name__
    return [f"{named}: {text}" if text.strip() else named]


def _of_java(thrown: Any) -> list[str]:
    """What a Java exception says, and after it each of its causes."""
    found: list[str] = []
    while thrown is not None and len(found) < DEEPEST:
        found.append(str(thrown.toString()))
        thrown = thrown.getCause()
    return found


def _shortened(text: str) -> str:
    """The line of a text that says what went wrong. Of a traceback of a Python worker it is the last one."""
    text = OF_A_TASK.sub("", text.partition("\n\nJVM stacktrace:")[0])
    before, traced, trace = text.partition("Traceback (most recent call last):")
    if traced:
        raised = [line for line in trace.splitlines() if line.strip() and not line.startswith((" ", "\t"))]
        if raised:
            return raised[0].strip()
        text = before
    lines = [line.strip().removeprefix(": ") for line in text.splitlines()]
    line = next((line for line in lines if line and not CALL.match(line)), "")
    return OF_SPARK.sub("", line).partition(" SQLSTATE:")[0]
