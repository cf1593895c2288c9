"""What a text may do: an attacker's list, and what honest texts may still say.

What only this file can catch: a way out of SQL, out of the granted connectors, or out of the granted folders.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from headgate.catalog.catalog import Catalog
from headgate.cql.definitions import define
from headgate.engine import Engine
from headgate.errors import UserError
from headgate.permissions import permissions

STREAMS = "CREATE STREAM s (k STRING, x INT, at TIMESTAMP) TIMESTAMP BY at;"

ALWAYS = [
    "SELECT REFLECT('java.lang.System', 'exit', 1) AS q FROM s",
    "SELECT java_method('java.lang.System', 'getenv') AS q FROM s",
    "SELECT TRY_REFLECT('java.lang.System', 'load', '/x.so') AS q FROM s",
    "SELECT rEfLeCt('java.lang.System', 'exit', 1) AS q FROM s",
    "SELECT `reflect`('java.lang.System', 'exit', 1) AS q FROM s",
    "SELECT system.builtin.reflect('java.lang.System', 'exit', 1) AS q FROM s",
    "SELECT builtin.`REFLECT`('java.lang.System', 'exit', 1) AS q FROM s",
    "SELECT reflect/* hidden */('java.lang.System', 'exit', 1) AS q FROM s",
    "SELECT reflect -- hidden\n ('java.lang.System', 'exit', 1) AS q FROM s",
    "SELECT UPPER(CONCAT(k, reflect('java.lang.System', 'exit'))) AS q FROM s",
    "SELECT x FROM s WHERE reflect('java.lang.System', 'exit') = 'x'",
    "SELECT k, COUNT(*) AS n FROM s [NOW] GROUP BY k HAVING MAX(reflect('a', 'b')) = 'x'",
    "SELECT k, COUNT(*) AS n FROM s [NOW] GROUP BY k, reflect('a', 'b')",
    "SELECT COUNT(*) FILTER (WHERE reflect('a', 'b') = 'x') AS n FROM s [NOW]",
    "SELECT SUM(LENGTH(reflect('a', 'b'))) OVER (PARTITION BY k ORDER BY x) AS n FROM s [NOW]",
    "SELECT x FROM s [NOW] ORDER BY reflect('a', 'b') LIMIT 1",
    "SELECT TRANSFORM(ARRAY(1), y -> reflect('a', 'b')) AS q FROM s",
    "SELECT x FROM s [NOW] LATERAL VIEW EXPLODE(ARRAY(reflect('a', 'b'))) t AS z",
    "SELECT x FROM s [NOW] a WHERE EXISTS (SELECT 1 FROM s [NOW] b WHERE b.k = reflect('a', 'b'))",
    "SELECT x FROM (SELECT x, reflect('a', 'b') AS q FROM s [NOW]) AS inner_one",
    "SELECT x, (SELECT MAX(reflect('a', 'b')) FROM s [NOW]) AS q FROM s [NOW]",
    "WITH w AS (SELECT reflect('a', 'b') AS q FROM s [NOW]) SELECT q FROM w",
    "CREATE VIEW v AS SELECT reflect('a', 'b') AS q FROM s",
    "CREATE FUNCTION f(a STRING) RETURN reflect(a, 'exit')",
    "CREATE FUNCTION f(a STRING) RETURN `reflect`(a, 'exit')",
    "CREATE QUERY q AS SELECT a.x FROM s [NOW] a JOIN s [NOW] b ON a.k = b.k AND reflect('a', 'b') = 'c'",
    "SELECT x FROM s [NOW] UNION ALL SELECT LENGTH(reflect('a', 'b')) FROM s [NOW]",
    "EXPLAIN SELECT reflect('a', 'b') AS q FROM s",
    "SELECT IDENTIFIER('reflect')('java.lang.System', 'exit') AS q FROM s",
    "SELECT IDENTIFIER('x') AS q FROM s",
    "SELECT INPUT_FILE_NAME() AS q FROM s",
    "SELECT CURRENT_USER AS q FROM s",
    "SELECT current_user() AS q FROM s",
    "SELECT SESSION_USER() AS q FROM s",
    "SELECT USER() AS q FROM s",
    "SELECT VERSION() AS q FROM s",
    "SELECT CURRENT_CATALOG() AS q FROM s",
    "SELECT CURRENT_DATABASE() AS q FROM s",
    "SELECT FROM_PROTOBUF(CAST(k AS BINARY), 'M', '/etc/passwd') AS q FROM s",
    "SELECT FROM_AVRO(CAST(k AS BINARY), '{}', MAP('avroSchemaUrl', '/etc/passwd')) AS q FROM s",
    "SELECT FROM_AVRO(CAST(k AS BINARY), '{}', MAP(CONCAT('avroSchema', 'Url'), '/etc/passwd')) AS q FROM s",
    "SELECT FROM_XML(k, 'a INT', MAP('rowValidationXSDPath', '/etc/passwd')) AS q FROM s",
    "SELECT * FROM text.`/etc/passwd`",
    "SELECT * FROM parquet.`/data/in`",
    "SELECT * FROM read_files('/etc/passwd')",
    "SELECT * FROM TABLE(read_files('/etc/passwd'))",
    "SELECT * FROM PYTHON_WORKER_LOGS()",
    "SELECT * FROM s [NOW] LATERAL VIEW PYTHON_WORKER_LOGS() t AS z",
    "SELECT @@version AS q FROM s",
    "INSERT INTO s SELECT * FROM s",
    "ADD JAR '/tmp/evil.jar'",
    "CREATE FUNCTION f AS 'com.evil.Udf' USING JAR '/tmp/evil.jar'",
    "SET spark.sql.variable.substitute = true",
    "EXECUTE IMMEDIATE 'SELECT 1'",
    "DECLARE VARIABLE x INT",
    "SELECT " + "(" * 5000 + "x" + ")" * 5000 + " AS q FROM s",
    "SELECT " + "NOT " * 5000 + "TRUE AS q FROM s",
    "SELECT CAST(NULL AS " + "ARRAY<" * 500 + "INT" + ">" * 500 + ") AS q FROM s",
    "SELECT `SPAR\u212a_PARTITION_ID`() AS q FROM s",
]
"""Refused whoever says it."""

ALLOWED = "from:csv={here}/in, into:json={here}/out, kafka=broker:9092, webhook=https://example.org/hooks, jdbc=jdbc:postgresql:db, pcap={here}/in, interface=eth1"

OUTSIDE = [
    *(
        f"CREATE STREAM t (time TIMESTAMP) TIMESTAMP BY time FROM {format} OPTIONS ({options})"
        for format, options in [
            ("pcap", "'path' = '/var/captures'"),
            ("pcap", "'path' = '{here}/in', 'files' = '[\"/etc/passwd\"]'"),
            ("interface", "'interface' = 'eth0'"),
            ("interface", "'interface' = 'eth1', 'spool' = '/etc'"),
        ]
    ),
    *(
        f"CREATE STREAM t (a INT) TIMESTAMP BY a FROM {format} OPTIONS ({options})"
        for format, options in [
            ("csv", "'path' = '/etc'"),
            ("csv", "'path' = '{here}/in/../secret'"),
            ("csv", "'path' = '{here}/in/../../etc/passwd'"),
            ("csv", "'path' = '{here}/inner'"),
            ("csv", "'path' = '{here}'"),
            ("csv", "'path' = 'file:/etc'"),
            ("csv", "'path' = 'file:///etc'"),
            ("csv", "'path' = 'FILE:/etc'"),
            ("csv", "'path' = 'file://host{here}/in'"),
            ("csv", "'path' = 'hdfs://host{here}/in'"),
            ("csv", "'path' = 'http://example.org/x'"),
            ("csv", "'path' = '{here}/in/link'"),
            ("csv", "'path' = '{here}/in/*'"),
            ("csv", "'path' = '{here}/{{in,secret}}'"),
            ("csv", "'path' = '{here}/in,/etc'"),
            ("csv", "'path' = '{here}/in/\\\\x'"),
            ("csv", "'path' = 'in'"),
            ("csv", "'path' = ''"),
            ("csv", "'PATH' = '/etc'"),
            ("csv", "'path' = '{here}/in', 'paths' = '[\"/etc\"]'"),
            ("csv", "'path' = '{here}/in', 'cleanSource' = 'archive', 'sourceArchiveDir' = '/tmp'"),
            ("csv", "'path' = '{here}/in', 'badRecordsPath' = '/tmp'"),
            ("CSV", "'path' = '/etc'"),
            ("json", "'path' = '{here}/in'"),
            ("text", "'path' = '{here}/in'"),
            ("xml", "'path' = '{here}/in', 'rowTag' = 'a'"),
            ("socket", "'host' = 'localhost', 'port' = '22'"),
            ("rate", "'rowsPerSecond' = '1000000'"),
            ("`org.apache.spark.sql.execution.datasources.text.TextFileFormat`", "'path' = '/etc'"),
            ("kafka", "'kafka.bootstrap.servers' = 'elsewhere:9092', 'subscribe' = 't'"),
            ("kafka", "'kafka.bootstrap.servers' = 'broker:9092,elsewhere:9092', 'subscribe' = 't'"),
            ("kafka", "'kafka.bootstrap.servers' = 'broker:9092', 'subscribe' = 't', 'kafka.sasl.jaas.config' = 'x'"),
            (
                "kafka",
                "'kafka.bootstrap.servers' = 'broker:9092', 'subscribe' = 't', 'kafka.ssl.keystore.location' = '/etc/x'",
            ),
        ]
    ),
    "CREATE STREAM t (a INT) TIMESTAMP BY a FROM kafka OPTIONS ('kafka.bootstrap.servers' = 'broker:9092', 'subscribe' = 't') "
    "VALUE AS avro OPTIONS ('avroSchemaUrl' = '/etc/passwd')",
    "CREATE RELATION r (a INT) FROM jdbc OPTIONS ('url' = 'jdbc:postgresql:db', 'dbtable' = 't', 'sessionInitStatement' = 'DROP TABLE t')",
    "CREATE RELATION r (a INT) FROM jdbc OPTIONS ('url' = 'jdbc:postgresql:db?socketFactory=x', 'dbtable' = 't')",
    "CREATE RELATION r (a INT) FROM jdbc OPTIONS ('url' = 'jdbc:h2:mem:x;INIT=RUNSCRIPT', 'dbtable' = 't')",
    "CREATE RELATION r (a INT) FROM jdbc OPTIONS ('url' = 'jdbc:postgresql:db', 'dbtable' = 't', 'driver' = 'com.evil.Driver')",
    *(
        f"CREATE QUERY q AS SELECT x FROM s [NOW] INTO {sink} OPTIONS ({options})"
        for sink, options in [
            ("json", "'path' = '/etc/cron.d'"),
            ("json", "'path' = '{here}/in'"),
            ("csv", "'path' = '{here}/in'"),
            ("parquet", "'path' = '{here}/out'"),
            ("callback", "'function' = 'os:system'"),
            ("webhook", "'url' = 'https://evil.org/hooks'"),
            ("webhook", "'url' = 'http://example.org/hooks'"),
            ("webhook", "'url' = 'https://example.org:8443/hooks'"),
            ("webhook", "'url' = 'https://example.org/hooks/../admin'"),
            ("webhook", "'url' = 'https://example.org/hooks%2f..'"),
            ("webhook", "'url' = 'https://example.org/hookshot'"),
            ("webhook", "'url' = 'https://example.org@evil.org/hooks'"),
            ("webhook", "'url' = 'https://example.org.evil.org/hooks'"),
            ("webhook", "'url' = 'https://example.org/hooks', 'header.Host' = 'inside'"),
            ("webhook", "'url' = 'https://example.org/hooks', 'header.Content-Length' = '0'"),
            ("webhook", "'url' = 'https://example.org/hooks', 'header.Transfer-Encoding' = 'chunked'"),
            ("kafka", "'kafka.bootstrap.servers' = 'elsewhere:9092', 'topic' = 't'"),
            ("jdbc", "'url' = 'jdbc:postgresql:other', 'dbtable' = 't'"),
            ("jdbc", "'url' = 'jdbc:postgresql:db', 'dbtable' = 't', 'createTableOptions' = '; DROP TABLE t'"),
            ("delta", "'path' = '{here}/out'"),
        ]
    ),
    "SELECT some_function_of_the_session(x) AS q FROM s",
    "SELECT `ｒｅｆｌｅｃｔ`('java.lang.System', 'exit') AS q FROM s",
]
"""Refused where only some connectors and places are allowed; {here} is a folder."""

HONEST = [
    "CREATE STREAM t (time TIMESTAMP) TIMESTAMP BY time FROM pcap OPTIONS ('path' = '{here}/in/captures')",
    "CREATE STREAM t (time TIMESTAMP) TIMESTAMP BY time FROM interface OPTIONS ('interface' = 'eth1', 'promiscuous' = 'true')",
    "CREATE STREAM t (a INT) TIMESTAMP BY a FROM csv OPTIONS ('path' = '{here}/in', 'header' = 'true', 'SEP' = ';')",
    "CREATE STREAM t (a INT) TIMESTAMP BY a FROM csv OPTIONS ('path' = '{here}/in/deeper/../deeper')",
    "CREATE STREAM t (a INT) TIMESTAMP BY a FROM csv OPTIONS ('path' = 'file:{here}/in')",
    "CREATE STREAM t (a INT) TIMESTAMP BY a FROM memory",
    "CREATE STREAM t (a INT) TIMESTAMP BY a FROM kafka OPTIONS ('kafka.bootstrap.servers' = 'broker:9092', 'subscribe' = 't') VALUE AS json",
    "CREATE QUERY q AS SELECT x FROM s [NOW] INTO json OPTIONS ('path' = '{here}/out/q')",
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
