"""What a text may do: an attacker's list, and what honest texts may still say.

What only this file can catch: a way out of SQL, out of the granted connectors, or out of the granted folders.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from tools.attacks import ALLOWED, ALWAYS, OUTSIDE

from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.engine import Engine
from headgate.errors import UserError
from headgate.permissions import permissions

STREAMS = "CREATE STREAM s (k STRING, x INT, at TIMESTAMP) TIMESTAMP BY at;"

HONEST = [
    "CREATE STREAM t (time TIMESTAMP) TIMESTAMP BY time FROM pcap OPTIONS ('path' = '{here}/in/captures')",
    "CREATE STREAM t (time TIMESTAMP) TIMESTAMP BY time FROM interface OPTIONS ('interface' = 'eth1', 'promiscuous' = 'true')",
    "CREATE STREAM t (a INT) TIMESTAMP BY a FROM csv OPTIONS ('path' = '{here}/in', 'header' = 'true', 'SEP' = ';')",
    "CREATE STREAM t (a INT) TIMESTAMP BY a FROM csv OPTIONS ('path' = '{here}/in/deeper/../deeper')",
    "CREATE STREAM t (a INT) TIMESTAMP BY a FROM csv OPTIONS ('path' = 'file:{here}/in')",
    "CREATE STREAM t (a INT) TIMESTAMP BY a FROM csv OPTIONS ('path' = 'file://{here}/in')",
    "CREATE STREAM t (a INT) TIMESTAMP BY a FROM memory",
    "CREATE STREAM t (a INT) TIMESTAMP BY a FROM kafka OPTIONS ('kafka.bootstrap.servers' = 'broker:9092', 'subscribe' = 't') VALUE AS json",
    "CREATE QUERY q AS SELECT x FROM s [NOW] INTO json OPTIONS ('path' = '{here}/out/q')",
    "CREATE QUERY q AS SELECT x FROM s [NOW] INTO json OPTIONS ('path' = 'file:/../..{here}/out/q')",
    "CREATE QUERY q AS SELECT x FROM s [NOW] INTO console",
    "CREATE QUERY q AS SELECT x FROM s [NOW] INTO webhook OPTIONS ('url' = 'https://EXAMPLE.org/hooks/a', 'header.X-Key' = 'k')",
    "CREATE QUERY q AS SELECT x FROM s [NOW] INTO jdbc OPTIONS ('url' = 'jdbc:postgresql:db', 'dbtable' = 't')",
    "CREATE FUNCTION double(a INT) RETURN 2 * a; SELECT double(x) AS q, UPPER(k) AS u, known(x) AS n FROM s",
]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for folder in ("in/deeper", "out", "secret", "inner"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "in" / "link").symlink_to("/etc")
    return tmp_path


def catalog(allow: str | None) -> Catalog:
    made = Catalog()
    define(STREAMS, made)
    made.permissions = permissions(allow)
    made.outside.add("known")
    return made


@pytest.mark.parametrize("text", ALWAYS, ids=lambda text: text[:60])
@pytest.mark.parametrize("allow", [None, "nothing"])
def test_refused_whoever_says_it(text: str, allow: str | None) -> None:
    with pytest.raises(UserError):
        define(text, catalog(allow))


@pytest.mark.parametrize("text", OUTSIDE, ids=lambda text: text[:100])
def test_refused_where_not_granted(text: str, here: Path) -> None:
    with pytest.raises(UserError) as refused:
        define(
            text.replace("{here}", str(here)).replace("{{", "{").replace("}}", "}"), catalog(ALLOWED.format(here=here))
        )
    assert refused.value.code in ("not-allowed", "bad-option", "no-such-function"), refused.value.render()


@pytest.mark.parametrize("text", HONEST, ids=lambda text: text[:100])
def test_granted(text: str, here: Path) -> None:
    define(text.replace("{here}", str(here)), catalog(ALLOWED.format(here=here)))


@pytest.mark.parametrize(
    "table", ["t", "sales.t", 'db.sales."A table"', "`a`.`b-c`", "[dbo].[t]", "Größe", "a.b.c.d", "t$1"]
)
def test_names_of_tables(table: str) -> None:
    text = f"CREATE QUERY q AS SELECT x FROM s [NOW] INTO jdbc OPTIONS ('url' = 'jdbc:postgresql:db', 'dbtable' = '{table}')"
    define(text, catalog("jdbc=jdbc:postgresql:db"))


@pytest.mark.parametrize(
    "url, allowed",
    [
        ("jdbc:postgresql://host:5432/db", True),
        ("jdbc:mysql://host/db", True),
        ("jdbc:postgresql://host/db?socketFactory=x", False),
        ("jdbc:h2:mem:x;INIT=RUNSCRIPT", False),
        ("jdbc:postgresql://host/db&x=y", False),
        ("jdbc:derby:memory:x;create=true", False),
    ],
)
def test_any_database_means_no_parameters(url: str, allowed: bool) -> None:
    text = f"CREATE QUERY q AS SELECT x FROM s [NOW] INTO jdbc OPTIONS ('url' = '{url}', 'dbtable' = 't')"
    if allowed:
        define(text, catalog("jdbc"))
    else:
        with pytest.raises(UserError, match="not-allowed"):
            define(text, catalog("jdbc"))


def test_an_operator_may_read_a_query_of_a_database() -> None:
    text = (
        "CREATE RELATION r (a INT) FROM jdbc OPTIONS ('url' = 'jdbc:postgresql:db', 'dbtable' = '(SELECT 1 AS a) AS t')"
    )
    define(text, catalog(None))


@pytest.mark.parametrize("text", OUTSIDE, ids=lambda text: text[:100])
def test_an_operator_may(text: str, here: Path) -> None:
    """Most of it is an operator's daily bread."""
    said = text.replace("{here}", str(here)).replace("{{", "{").replace("}}", "}")
    try:
        define(said, catalog(None))
    except UserError as error:
        assert error.code != "not-allowed"


@pytest.mark.parametrize("said", ["parquet=", "=x", "par quet", "csv=/data/*", "csv=/data/../x", "rate=3", "from:"])
def test_what_is_no_permission(said: str) -> None:
    with pytest.raises(UserError) as refused:
        permissions(said)
    assert refused.value.code == "bad-permission"


@pytest.mark.spark
def test_what_was_allowed_when_it_was_said_stays(spark: SparkSession, here: Path) -> None:
    text = f"{STREAMS} CREATE QUERY q AS SELECT x FROM s [NOW] INTO json OPTIONS ('path' = '{here}/out')"
    with Engine(spark, here / "state") as engine:
        engine.execute(text)
    with Engine(spark, here / "state", allow="nothing") as engine:
        assert [query.name for query in engine.queries()] == ["q"]
        engine.execute(text)  # the script again: registered already
        with pytest.raises(UserError, match="not-allowed"):
            engine.execute(f"CREATE QUERY p AS SELECT x FROM s [NOW] INTO json OPTIONS ('path' = '{here}/out/p')")
        engine.execute("CREATE QUERY p AS SELECT x FROM s [NOW]")


@pytest.mark.spark
def test_one_text_can_be_allowed_less(spark: SparkSession) -> None:
    with Engine(spark) as engine:
        engine.execute(STREAMS)
        with pytest.raises(UserError, match="not-allowed"):
            engine.execute(
                "CREATE QUERY q AS SELECT x FROM s [NOW] INTO callback OPTIONS ('function' = 'os:system')",
                allow="nothing",
            )
        assert engine.catalog.permissions == permissions(None)


@pytest.mark.spark
def test_functions_from_outside_must_be_deterministic(spark: SparkSession) -> None:
    chance = udf(lambda value: value, "int").asNondeterministic()
    with Engine(spark) as engine:
        engine.execute(STREAMS)
        with pytest.raises(UserError, match="not-deterministic"):
            engine.register_function("chance", chance)
        engine.spark.udf.register("chance_of_the_session", chance)
        with pytest.raises(UserError, match="not-deterministic") as refused:
            engine.execute("SELECT x, chance_of_the_session(x) AS q FROM s [NOW]")
        assert refused.value.place is not None
        assert refused.value.place.start == 10
