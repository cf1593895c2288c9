"""Errors, in two families: mistakes that the user can mend, and our own broken invariants.

A `UserError` has a stable kebab-case code, one line, the place in the user's text, a detail and a hint; `render`
gives the text that the command line prints. It never carries a stack trace, nor a password. `Broken` means that
headgate is wrong, not the user.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headgate import masking
from headgate.masking import masked

AROUND = 100
"""How many characters before and after the place are shown of a very long line."""


@dataclass(frozen=True, slots=True)
class Place:
    """A span of the user's text: offsets into `text`, end exclusive."""

    text: str
    start: int
    end: int
    origin: str = ""

    @property
    def line(self) -> int:
        """The number of the line on which the span begins, counted from 1."""
        return self.text.count("\n", 0, self.start) + 1

    def caret(self) -> str:
        """The line of the span, with carets under it; secrets in it are masked."""
        text, start, end = masking.at(self.text, self.start, self.end)
        begin = text.rfind("\n", 0, start) + 1
        stop = text.find("\n", start)
        stop = stop if stop >= 0 else len(text)
        first, last = (max(begin, start - AROUND), min(stop, max(end, start + 1) + AROUND, start + 2 * AROUND))
        if stop - begin <= 3 * AROUND:
            first, last = begin, stop
        cut, begin = "..." if first > begin else "", first
        line = text[begin:last] + ("..." if last < stop else "")
        width = max(1, min(end, last) - start)
        number = str(self.line)
        where = f"  --> {self.origin}:{number}\n" if self.origin else ""
        blank = "".join("\t" if letter == "\t" else " " for letter in line[: start - begin])
        return f"{where}  {number} | {cut}{line}\n  {' ' * len(number)} | {' ' * len(cut)}{blank}{'^' * width}"


class HeadgateError(Exception):
    """Any error that headgate raises by itself."""


class UserError(HeadgateError):
    """A mistake in the query, the data or the set-up that the user can mend."""

    def __init__(
        self, code: str, message: str, *, place: Place | None = None, detail: str = "", hint: str = ""
    ) -> None:
        message, detail, hint = masked(message), masked(detail), masked(hint)
        super().__init__(f"{code}: {message}. {detail}" if detail else f"{code}: {message}")
        self.code = code
        self.message = message
        self.place = place
        self.detail = detail
        self.hint = hint

    def each(self) -> list[UserError]:
        """The errors it consists of."""
        return [self]

    def render(self) -> str:
        """The text that is shown to the user: code and message, the place, detail and hint."""
        lines = [f"{self.code}: {self.message}"]
        if self.place is not None:
            lines.append(self.place.caret())
        if self.detail:
            lines.append(f"detail: {self.detail}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class Several(UserError):
    """Several errors, of different queries, sources or sinks, that came up in one turn of the engine."""

    def __init__(self, errors: Sequence[UserError]) -> None:
        self.errors = [one for error in errors for one in error.each()]
        first = self.errors[0]
        super().__init__(first.code, first.message, place=first.place, detail=first.detail, hint=first.hint)

    def each(self) -> list[UserError]:
        """All errors it consists of."""
        return self.errors

    def render(self) -> str:
        """The texts of all errors, with a blank line between them."""
        return "\n\n".join(error.render() for error in self.errors)


class NotYet(UserError):
    """Valid CQL that headgate does not answer yet: refused by name, never answered wrongly."""

    def __init__(self, what: str, *, place: Place | None = None, hint: str = "") -> None:
        super().__init__("not-yet", f"{what} is not in headgate yet", place=place, hint=hint)


class Broken(HeadgateError):
    """One of our own invariants does not hold: please report it with the script that shows it."""


def report(error: BaseException) -> str:
    """The text for an unexpected exception: what it says, whose fault it is, and how to see its stack trace."""
    said = masked(first_line(error))
    what = f"{type(error).__name__}: {said}" if said else type(error).__name__
    if isinstance(error, OSError):
        return (
            f"system-error: the operating system refuses something\ndetail: {what}\nhint: --debug shows where it "
            "happens."
        )
    return (
        f"unexpected: {what[:500]}\ndetail: This is a defect of headgate, not of your script.\n"
        "hint: --debug shows where it comes from; please report that, with the script."
    )


def first_line(error: BaseException) -> str:
    """The first line of an exception's text that is not blank; nothing if there is none."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")


def nearest(name: str, known: Iterable[str], alike: float = 0.6) -> str:
    """A hint that names the known word nearest to `name`, or nothing if none is so much alike."""
    spelled = {word.lower(): word for word in known}
    close = difflib.get_close_matches(name.lower(), spelled, n=1, cutoff=alike)
    return f'Did you mean "{spelled[close[0]]}"?' if close else ""


def quoted(names: Iterable[str]) -> str:
    """Names for a message: each in double quotes, with commas between them."""
    return ", ".join(f'"{name}"' for name in names)


def unknown(kind: str, name: str, known: Iterable[str], place: Place | None = None) -> UserError:
    """The error for a name that does not exist, with the names that do."""
    names = sorted(known)
    detail = f"There are {quoted(names)}." if names else f"No {kind} is defined."
    return UserError(
        f"no-such-{kind}", f'{kind} "{name}" does not exist', place=place, detail=detail, hint=nearest(name, names)
    )
