"""Completes what is typed at the prompt: commands of the shell here, statements as `editing.completion` does it."""

from __future__ import annotations

from headgate.catalog.catalog import Catalog
from headgate.editing import completion
from headgate.editing.completion import Candidate, Completions, catalog_names, matching
from headgate.editing.entries import split
from headgate.shell.commands import COMMANDS, command_named


def completions(before: str, catalog: Catalog, after: str = "") -> Completions:
    """The candidates between the text before the cursor and the text after it, in the order they are offered."""
    line = before[before.rfind("\n") + 1 :].lstrip()
    entries, rest = split(before)
    if not rest and entries and entries[-1].is_command and line.startswith("\\"):
        return in_command(line, catalog)
    return completion.completions(before, catalog, after)


def in_command(line: str, catalog: Catalog) -> Completions:
    """Candidates inside a command that begins with a backslash."""
    word, _, given = line.partition(" ")
    if " " not in line:
        return Completions(word, matching(word, (Candidate(f"\\{name}", "command") for name in COMMANDS)))
    names: list[Candidate] = []
    match command_named(word[1:]):
        case "push" if " " not in given:
            names = [
                *catalog_names("stream", catalog.streams.values()),
                *catalog_names("relation", catalog.relations.values()),
            ]
        case "explain":
            names = catalog_names("query", catalog.queries.values())
    return Completions(given, matching(given, names))
