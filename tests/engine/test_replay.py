"""What is remembered of a statement can be read again, and then means the same."""

import json
import re
from pathlib import Path

import pytest

from headgate.catalog.catalog import Catalog
from headgate.compile import compile_statements
from headgate.cql.definitions import Setting
from headgate.engine.registry import ANSWERS
from headgate.engine.statements import Statements, refuse_unreadable, words_again
from headgate.errors import UserError

ROOT = Path(__file__).parents[2]


def remembered(script: str, catalog: Catalog, origin: str = "") -> list[str]:
    """Carry out a script as an engine does, as far as it is right; gives the words that would be remembered."""
    statements, words = Statements(), list[str]()
    steps = compile_statements(script, catalog, origin)
    while True:
        before = catalog.state()
        try:
            one = next(steps, None)
        except UserError:
            break
        if one is None:
            break
        unchanged = isinstance(one.definition, Setting) and catalog.state() == before
        if isinstance(one.definition, ANSWERS) or unchanged:
            continue
        statement = statements.of(one.statement, one.definition, 0, one.language)
        refuse_unreadable(statement, one, before, catalog)
        statements.add(statement, one.definition)
        words.append(statement.cql)
    again = Catalog()
    again.permissions = None
    for statement in statements.all:
        list(compile_statements(words_again(statement, again), again, language=statement.language))
    for kind in ("stream", "relation", "view", "query", "group", "function", "constraint"):
        assert list(again.of_kind(kind)) == sorted(catalog.of_kind(kind), key=list(again.of_kind(kind)).index)
    return words


def scripts() -> list[tuple[str, str]]:
    """Every script of the cases, the examples and the docs, with the name of its file."""
    found = []
    for name in ("cql", "found", "gsql"):
        for line in (ROOT / f"tests/cases/{name}.jsonl").read_text().splitlines():
            if line.strip():
                found.append((f"cases/{name}", json.loads(line)))
    texts = [(name, _script(case)) for name, case in found]
    for page in sorted((ROOT / "docs").glob("*.md")):
        blocks = re.findall(r"^```(?:sql|gsql)?\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        texts += [(page.name, block) for block in blocks]
    texts += [(path.name, path.read_text()) for path in sorted((ROOT / "examples").rglob("*.*ql"))]
    return texts
