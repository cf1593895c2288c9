"""The prompt: reads entries from a terminal and hands them to the worker.

What comes of them, and the results of queries, is printed above the line being typed.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from headgate.shell.commands import named
from headgate.shell.entries import Entry, split
from headgate.shell.words import KEYWORDS, words

if TYPE_CHECKING:
    from headgate.shell.worker import Worker

PROMPT = "headgate> "
STYLE = Style.from_dict(
    {
        "keyword": "bold",
        "string": "ansigreen",
        "number": "ansicyan",
        "comment": "ansibrightblack",
        "command": "ansimagenta",
        "prompt": "ansiblue",
        "bottom-toolbar": "noreverse ansibrightblack",
    }
)


def history(directory: Path) -> History:
    """The history on disk, or one for this session where nothing can be written."""
    file = directory / "history"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))


def converse(worker: Worker, kept: History) -> None:
    """Read and hand over until the user leaves; then everything handed over has been carried out.

    One event loop for all prompts: what is printed between two of them has somewhere to go.
    """
    with patch_stdout():
        asyncio.run(read_on(session(worker, kept), worker.hand))
        if worker.entries.qsize():
            print("carrying out what was typed; Ctrl-C leaves at once")
        worker.finish()


async def read_on(prompts: PromptSession[str], hand: Callable[[Entry], None]) -> None:
    def leave() -> None:
        if prompts.app.is_running:
            prompts.app.exit(exception=EOFError())

    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, leave)
    while True:
        try:
            text = await prompts.prompt_async()
        except KeyboardInterrupt:  # Ctrl-C gives up the line, not the shell
            continue
        except EOFError:
            return
        entries, _ = split(text)
        for entry in entries:
            if is_quit(entry):
                return
            hand(entry)


def is_quit(entry: Entry) -> bool:
    return entry.is_command and named(entry.text[1:]) == "quit"


def session(worker: Worker, kept: History) -> PromptSession[str]:
    return PromptSession(
        [("class:prompt", PROMPT)],
        multiline=True,
        prompt_continuation=lambda width, line, wrapped: " " * (width - 3) + ". ",
        key_bindings=keys(),
        history=kept,
        completer=CqlCompleter(worker),
        complete_while_typing=False,
        lexer=CqlLexer(),
        style=STYLE,
        bottom_toolbar=lambda: f" {worker.status()}   \\help, Ctrl-D to leave",
        refresh_interval=0.5,
        reserve_space_for_menu=6,
    )


def keys() -> KeyBindings:
    """Enter hands over what is whole; within a statement it begins a new line."""
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        _, begun = split(buffer.text)
        if buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None
        elif begun:
            buffer.newline(copy_margin=True)
        else:
            buffer.validate_and_handle()

    return bindings


class CqlCompleter(Completer):
    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        from headgate.shell.completion import completions

        found = completions(document.text_before_cursor, self.worker.catalog(), document.text_after_cursor)
        for candidate in found.candidates:
            yield Completion(candidate.text, -len(found.typed), display_meta=candidate.kind)


class CqlLexer(Lexer):
    """Colours for what the words are; lines are cut out of the whole text, for a string may span several."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines: list[StyleAndTextTuples] = [[]]
        for word in words(document.text):
            style = colour(word.kind, word.upper)
            for number, part in enumerate(word.text.split("\n")):
                if number:
                    lines.append([])
                lines[-1].append((style, part))
        return lambda number: lines[number] if number < len(lines) else []


def colour(kind: str, spelled: str) -> str:
    match kind:
        case "word":
            return "class:keyword" if spelled in KEYWORDS else ""
        case "open":
            return "class:comment" if spelled.startswith("/*") else "class:string"
        case "string" | "number" | "comment":
            return f"class:{kind}"
        case _:
            return ""
