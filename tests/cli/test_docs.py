"""What the documentation says is so: its CQL is parsed, bound and compiled, its Python is run, the weather example
too.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from unittest.mock import MagicMock, patch

import pytest
from pyspark.sql import SparkSession
from tools.duck_engine import engine_on_duckdb, without_spark
from tools.places import ROOT

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Query
from headgate.cql.definitions import Explanation, define
from headgate.delta.lower import lower
from headgate.engine import Engine
from headgate.observe.live import LiveView, Notebook
from headgate.packets.fields import FIELDS


def blocks(file: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / file).read_text(encoding="utf-8"), re.DOTALL)


def test_every_example_of_the_language_page_compiles() -> None:
    catalog = Catalog()
    for block in blocks("docs/cql.md", "cql"):
        for definition in define(block, catalog):
            if isinstance(definition, Explanation):
                assert (
                    definition.query.resolved
                    == "ISTREAM(SELECT sensor FROM readings [RANGE UNBOUNDED] WHERE celsius > 30)"
                )
    assert len(catalog.queries) >= 18
    for query in catalog.queries.values():
        lower(query.plan)


def test_every_example_of_the_page_on_constraints_compiles() -> None:
    catalog = Catalog()
    declaring, using, *rest = blocks("docs/constraints.md", "cql")
    define(declaring, catalog)
    queries = [query for query in define(using, catalog) if isinstance(query, Query)]
    kept = [str(one) for query in queries for one in lower(query.plan).state()]
    assert all("limited by constraint" in one or one.startswith("violations_of_") for one in kept)
    (shown,) = blocks("docs/constraints.md", "text")
    assert set(shown.splitlines()) <= set(kept)
    for block in rest:
        define(block, catalog)
    assert set(catalog.constraints) == {"known", "one_by_one"}


def test_every_example_of_the_page_on_gsql_compiles() -> None:
    catalog = Catalog()
    for block in blocks("docs/gsql.md", "gsql"):
        define(block, catalog)
    assert len(catalog.queries) >= 19
    for query in catalog.queries.values():
        lower(query.plan)


def test_every_example_of_the_page_on_system_streams_runs() -> None:
    with without_spark(), engine_on_duckdb() as engine:
        for block in blocks("docs/system-streams.md", "cql"):
            engine.execute(block)
        engine.step()
        assert len(engine.catalog.queries) == 5
        assert not any(engine.troubles().values())


def test_every_example_of_the_page_on_sources_compiles() -> None:
    catalog = Catalog()
    for block in blocks("docs/sources.md", "cql"):
        define(block, catalog)
    assert len(catalog.streams) == 8
    page = (
        (ROOT / "docs/sources.md")
        .read_text(encoding="utf-8")
        .partition("| fields | stand in |")[2]
        .partition("\n\n")[0]
    )
    shown = {name: kind or "INT" for name, kind in re.findall(r"`([a-z_0-9]+)`(?: ([A-Z<>]+))?", page)}
    assert {name: shown.get(name) for name in FIELDS} == {name: field.type for name, field in FIELDS.items()}


def test_the_page_on_network_monitoring_shows_the_queries_of_the_example() -> None:
    catalog = Catalog()
    for block in blocks("docs/network-monitoring.md", "cql"):
        define(block, catalog)
    example = Catalog()
    define((ROOT / "examples/network/network.cql").read_text(encoding="utf-8"), example)
    assert catalog.queries.keys() - example.queries.keys() == {"links"}
    for name, query in example.queries.items():
        assert catalog.queries[name].resolved == query.resolved


def test_every_example_of_the_page_on_time_compiles() -> None:
    catalog = Catalog()
    for block in blocks("docs/time.md", "cql"):
        define(block, catalog)
    assert set(catalog.streams) == {"temperature", "pressure", "clicks"}


@pytest.mark.spark
def test_every_example_of_the_language_page_runs(spark: SparkSession, tmp_path: Path) -> None:
    """Not only compiled: each query goes through an epoch on Spark, over rows that reach most of them."""
    for name, text in (("orders", "id,amount,at\n1,2.50,2026-01-01T00:00:01\n"), ("sites", "sensor,site\na,Oslo\n")):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "1.csv").write_text(text, encoding="utf-8")
    with Engine(spark) as engine:
        for block in blocks("docs/cql.md", "cql"):
            engine.execute(block.replace("'in/", f"'{tmp_path}/in/").replace("'out/", f"'{tmp_path}/out/"))
        engine.poll()
        engine.push("readings", [("a", 31.5, "2026-01-01T00:00:01"), ("b", 20.0, "2026-01-01T00:00:02")])
        engine.push("readings", [("roof", 30.5, "2026-01-01T00:00:03")])
        engine.push("doors", [("a", True, "2026-01-01T00:00:01")])
        engine.push("temperature", [("a", 31.5, "2026-01-01T00:00:01")])
        engine.push("bids", [(1, ("old lamp", 150)), (2, ("vase", 20))])
        engine.push("packets", [(1, "a", 40, 1, 64), (6, "a", 40, 900, 64), (70, "b", 40, 1500, 63)])
        engine.push("backup", [(2, "a", 1)])
        engine.push("messages", [(1, ("a", "3")), (2, ("a", "three"))])
        engine.push("owners", [("a", "me", "upsert", "2026-01-01T00:00:00")])
        engine.push("staff", [("a", "you", "+", "2026-01-01T00:00:00")])
        engine.push("subscribers", [("a", 25.0, "+", "2026-01-01T00:00:00")])
        engine.push("watchers", [(1, "a", 5, "+", "2026-01-01T00:00:00")])
        engine.advance("2026-01-01T00:02:00")
        engine.advance(120)
        (asked,) = blocks("docs/cql.md", "sql")
        (snapshot,) = engine.execute(asked)
        assert f"{snapshot}\n" in blocks("docs/cql.md", "text")
        answered = {query.name for query in engine.queries() if query.count}
        assert all(query.complete is not None for query in engine.queries())
    silent = {query.name for query in engine.queries()} - answered
    others = {"cellar", "attic", "garage"}
    assert silent == {"q3", "q11", "q15", "q16", "q20", "stats", "above", "at_slide", "hourly"} | others, (
        "those that slide further, sample too little, ask for more than there is or for other sensors"
    )


def test_the_readme_shows_the_weather_example() -> None:
    shown, live = blocks("README.md", "sql")
    assert shown in (ROOT / "examples/weather/weather.cql").read_text(encoding="utf-8")
    assert len(define(live, Catalog())) == 2


@pytest.mark.spark
def test_the_readmes_python_prints_what_it_says(spark: SparkSession) -> None:
    (code,) = blocks("README.md", "python")
    said = re.search(r"prints\n\n```\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert said is not None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    assert printed.getvalue() == said[1]


def test_the_page_on_notebooks_shows_what_a_view_draws() -> None:
    pushed, made = blocks("docs/notebook.md", "python")
    (picture,) = blocks("docs/notebook.md", "text")
    with without_spark(), engine_on_duckdb() as engine:
        engine.execute(
            """CREATE STREAM bids (item STRING, price INT);
            CREATE QUERY best AS SELECT item, MAX(price) AS price FROM bids [RANGE 10] GROUP BY item"""
        )
        with patch.object(Engine, "start"):
            exec(pushed, {"engine": engine})
        engine.step()
        with patch("headgate.observe.live.screen", lambda: Notebook(None, MagicMock())):
            said: dict[str, LiveView] = {}
            exec(made, {"engine": engine}, said)
        assert f"{said['view'].picture}\n" == picture
        (listing,) = engine.execute("SHOW BOUNDS")
        assert "<table>" in listing._repr_html_()  # type: ignore[union-attr]


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
