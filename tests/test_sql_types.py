"""The plugin of mypy that tells SQL from other texts: which lines it takes and which it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api
from tools.places import ROOT

BEGIN = """
from collections.abc import Callable, Iterable, Sequence
from headgate.sql import Sql, literal, name
from headgate.sql.printer import printed

def run(text: Sql) -> None: ...

def lines(
    said: str, sql: Sql, number: int, perhaps: Sql | None, either: Sql | int, unclear: object, truth: bool,
    texts: list[str], parts: list[Sql], pair: tuple[Sql, Sql], mixed: tuple[Sql, str], some: Iterable[Sql],
) -> None:
"""

TAKEN = [
    'run(Sql("TRUE"))',
    'run(Sql(f"_k{number}"))',
    'run(Sql(f"{number}"))',
    'run(f"SELECT {sql} LIMIT {number}")',
    'run(f"SELECT {name(said)} FROM t WHERE a = {literal(said)}")',
    'run(f"{sql} {either}")',
    "run(f\"{sql}{' DESC' if truth else ''}\")",
    "run(f\"{sql}{f' LIMIT {number}' if truth else ''}\")",
    'run(f"{sql if truth else number} AND {sql}")',
    'run(f"({perhaps}) AND {sql}" if perhaps else sql)',
    'run(", ".join(parts))',
    'run(", ".join(pair))',
    'run(", ".join(some))',
    'run(" AND ".join(f"{part} IS NULL" for part in parts))',
    'run(" AND ".join([f"{part} IS NULL" for part in parts]))',
    'run(", ".join(map(name, texts)))',
    'run(", ".join([*parts, "_t", sql]))',
    'run(", ".join([*map(name, texts), *([sql] if truth else [])]))',
    "run(f\"SELECT {', '.join(parts)} FROM t\")",
    "run(sql.join(parts))",
]

REFUSED = [
    'run("TRUE")',
    "run(said)",
    "run(perhaps)",
    'run(f"SELECT {said}")',
    'run(f"SELECT {sql} AS {said}")',
    'run(f"SELECT {sql} AS {unclear}")',
    'run(f"SELECT {sql} AS {perhaps}")',
    'run(f"SELECT {sql!r}")',
    'run(f"SELECT {sql:>10}")',
    'run(f"SELECT {sql} LIMIT {1.5}")',
    "run(f\"{sql}{said if truth else ''}\")",
    "run(f\"{sql}{f' AS {said}' if truth else ''}\")",
    "run(sql + said)",
    'run("SELECT {}".format(sql))',
    'run("SELECT %s" % sql)',
    "run(sql.upper())",
    "run(sql[1:])",
    'run(", ".join(texts))',
    'run(", ".join(mixed))',
    'run(", ".join([*parts, said]))',
    'run(", ".join([*parts, *texts]))',
    'run(", ".join(f"{sql} AS {text}" for text in texts))',
    "run(said.join(parts))",
    "run(Sql(said))",
    'run(Sql(f"SELECT {said}"))',
    'run(Sql(f"SELECT {number} AS {said}"))',
    'run(Sql(f"{said}"))',
    'run(Sql("SELECT " + said))',
    'run(Sql(f"SELECT {sql}"))',
]


def refused(folder: Path, lines: list[str]) -> set[str]:
    """The lines of a function that mypy refuses, with the project's own settings."""
    text = BEGIN + "".join(f"    {line}\n" for line in lines)
    file = folder / "lines.py"
    file.write_text(text)
    out, errors, _ = api.run(
        ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(folder / "cache"), str(file)]
    )
    assert not errors, errors
    written = text.splitlines()
    found = [re.match(r".*lines\.py:(\d+): error: ", line) for line in out.splitlines()]
    return {written[int(one[1]) - 1].strip() for one in found if one is not None}


def test_what_is_sql_and_what_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # where the folders of the settings begin
    assert refused(tmp_path, TAKEN + REFUSED) == set(REFUSED)
