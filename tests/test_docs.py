"""What the documentation says is so: its CQL is parsed, bound and compiled, its Python is run, the weather example too."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.catalog import Catalog
from headgate.cql.definitions import Explanation, define
from headgate.delta.lower import lower

ROOT = Path(__file__).parent.parent


def blocks(file: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / file).read_text(encoding="utf-8"), re.DOTALL)


def test_every_example_of_the_language_page_compiles() -> None:
    catalog = Catalog()
    for block in blocks("docs/cql.md", "cql"):
        for definition in define(block, catalog):
            if isinstance(definition, Explanation):
                assert definition.query.resolved == "ISTREAM(SELECT sensor FROM readings [RANGE UNBOUNDED] WHERE celsius > 30)"
    assert len(catalog.queries) >= 18
    for query in catalog.queries.values():
        lower(query.plan)


def test_the_readme_shows_the_weather_example() -> None:
    (shown,) = blocks("README.md", "sql")
    assert shown in (ROOT / "examples/weather/weather.cql").read_text(encoding="utf-8")


@pytest.mark.spark
def test_the_readmes_python_prints_what_it_says(spark: SparkSession) -> None:
    (code,) = blocks("README.md", "python")
    said = re.search(r"prints\n\n```\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert said is not None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    assert printed.getvalue() == said[1]


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
