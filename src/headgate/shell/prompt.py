"""The prompt: reads entries from a terminal and gives them to the worker.

Results and messages are printed above the line that is being typed.
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

from headgate.editing.entries import Entry, split
from headgate.editing.words import KEYWORDS, words
from headgate.shell.commands import command_named

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
    """The history of typed lines: on disk, or for this session only where nothing can be written."""
    file = directory / "history"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))


def run_prompt(worker: Worker, kept: History) -> None:
    """Reads entries and gives them to the worker until the user leaves; returns when all of them are executed.

    There is one event loop for all prompts, so that output between two of them can be printed.
    """
    with patch_stdout():
        asyncio.run(read_entries(session(worker, kept), worker.submit))
        if worker.entries.qsize():
            print("carrying out what was typed; Ctrl-C leaves at once")
        worker.finish()


async def read_entries(prompts: PromptSession[str], hand: Callable[[Entry], None]) -> None:
    """Reads entries from the prompt until the user leaves."""

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
    r"""Whether an entry is the command `\quit`."""
    return entry.is_command and command_named(entry.text[1:]) == "quit"


def session(worker: Worker, kept: History) -> PromptSession[str]:
    """The prompt with its keys, history, completion, colours and status line."""
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
    """Key bindings: Enter submits a complete entry, and begins a new line inside a statement."""
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
    """Connects `completion` to the prompt."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """The completions at the cursor."""
        from headgate.shell.completion import completions

        found = completions(document.text_before_cursor, self.worker.catalog(), document.text_after_cursor)
        for candidate in found.candidates:
            yield Completion(candidate.text, -len(found.typed), display_meta=candidate.kind)


class CqlLexer(Lexer):
    """Colours the text; it reads the whole text before it cuts it into lines, because a string may span several."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """A function that gives the coloured parts of a line."""
        lines: list[StyleAndTextTuples] = [[]]
        for word in words(document.text):
            style = colour(word.kind, word.upper)
            for number, part in enumerate(word.text.split("\n")):
                if number:
                    lines.append([])
                lines[-1].append((style, part))
        return lambda number: lines[number] if number < len(lines) else []


def colour(kind: str, spelled: str) -> str:
    """The style for a word of this kind."""
    match kind:
        case "word":
            return "class:keyword" if spelled in KEYWORDS else ""
        case "open":
            return "class:comment" if spelled.startswith("/*") else "class:string"
        case "string" | "number" | "comment":
            return f"class:{kind}"
        case _:
            return ""
