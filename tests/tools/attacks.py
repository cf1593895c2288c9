"""What a text must not do, whoever sends it: an attacker's list, for tests of the language and of the server."""

from __future__ import annotations

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

OVER_HTTP = [
    "CREATE QUERY q AS SELECT x FROM s [NOW] INTO console",
    "CREATE GROUP g OF known_query INTO parquet OPTIONS ('path' = '/tmp')",
    "CREATE FUNCTION f(a INT) RETURNS INT LANGUAGE PYTHON AS 'import os'",
    "CREATE TEMPORARY FUNCTION f AS 'java.lang.Runtime'",
    "CREATE OR REPLACE FUNCTION f USING JAR '/tmp/x.jar'",
    "SET spark.jars = '/tmp/x.jar'",
    "SET `spark.sql.warehouse.dir` = '/tmp'",
    "SET state_directory = '/tmp'",
    "SET epoch_rows = '0'",
    "SET dialect = 'python'",
    "SET dialect = 'gsql'; CREATE STREAM eth0.TCP FROM pcap OPTIONS ('path' = '/etc');",
    "SET dialect = 'gsql'; PROTOCOL base { UINT time get_x '/etc/passwd' (INCREASING); }",
    "LOAD DATA INPATH '/etc/passwd' INTO TABLE t",
    "CREATE TABLE t USING csv LOCATION '/etc'",
    "CREATE STREAM t (a INT) TIMESTAMP BY a FROM `../../etc/passwd`",
    "SELECT * FROM delta.`/data`",
    "SELECT * FROM csv.`/etc/passwd`",
    "SELECT * FROM s [NOW] JOIN parquet.`/data` ON TRUE",
    "REFRESH TABLE t",
    "ADD FILE '/etc/passwd'",
    "ADD ARCHIVE '/tmp/x.zip'",
    "LIST JARS",
    "DESCRIBE FUNCTION EXTENDED reflect",
    "USE CATALOG spark_catalog",
    "SHOW TABLES",
    "CALL system.run('x')",
    "BEGIN SELECT 1; END",
    "SELECT x" + " + x" * 5_000 + " AS n FROM s [NOW]",
    "SELECT " + "CASE WHEN x = 1 THEN " * 500 + "1" + " END" * 500 + " AS n FROM s [NOW]",
    "SELECT x FROM " + "(SELECT x FROM " * 300 + "s [NOW]" + ") AS a" * 300,
    "'",
    "\x00",
    "CREATE QUERY `../../../tmp/evil` AS SELECT x FROM nowhere [NOW]",
]
"""More of it, for a server that allows no connector."""

HEAVY = {
    "grouping sets": "EXPLAIN SELECT COUNT(*) AS c FROM s [NOW] GROUP BY CUBE("
    + ", ".join(f"n + {number}" for number in range(14))
    + ")",
    "many inputs": "EXPLAIN SELECT a0.n FROM " + ", ".join(f"s [NOW] AS a{number}" for number in range(30)),
    "outer joins": "EXPLAIN SELECT a0.n FROM s [NOW] AS a0"
    + "".join(f" FULL JOIN s [NOW] AS a{number} ON a0.n = a{number}.n" for number in range(1, 20)),
    "views that double": "CREATE VIEW d0 AS SELECT n FROM s [NOW];"
    + "".join(
        f"CREATE VIEW d{number + 1} AS SELECT a.n FROM d{number} a, d{number} b WHERE a.n = b.n;"
        for number in range(16)
    ),
    "views on views": "CREATE VIEW c0 AS SELECT n FROM s [NOW];"
    + "".join(f"CREATE VIEW c{number + 1} AS SELECT n + 1 AS n FROM c{number};" for number in range(500)),
    "functions that double": "CREATE FUNCTION twice(a INT) RETURN a + a; SELECT "
    + "twice(" * 40
    + "n"
    + ")" * 40
    + " AS x FROM s [NOW]",
    "a long text beside an unknown column": "SELECT frobnicated FROM s [NOW] WHERE k = '" + "x" * 60_000 + "'",
    "a long number": "SELECT n FROM s [NOW] WHERE n = " + "9" * 5_000,
    "a large exponent": "SELECT n FROM s [RANGE 1e999999999]",
    "many rows": "SELECT n FROM s [NOW] LIMIT " + "9" * 5_000,
    "a long name": "CREATE VIEW `" + "ä" * 300 + "` AS SELECT n FROM s [NOW]",
    "nots": "SELECT CASE WHEN " + "NOT " * 15_000 + "n = 1 THEN 1 END AS x FROM s [NOW]",
    "cases": "SELECT " + "CASE WHEN n = 1 THEN " * 2_000 + "n" + " END" * 2_000 + " AS x FROM s [NOW]",
    "queries in queries": "SELECT * FROM " + "(SELECT * FROM " * 2_000 + "s [NOW]" + ")" * 2_000,
    "unions": " UNION ALL ".join(["SELECT n FROM s [NOW]"] * 2_000),
    "types": "SELECT CAST(n AS " + "ARRAY<" * 2_000 + "INT" + ">" * 2_000 + ") AS x FROM s [NOW]",
    "deep brackets": "EXPLAIN SELECT " + "(" * 190 + "n" + ")" * 190 + " AS x FROM s [NOW]",
    "brackets": "SELECT " + "[" * 30_000,
}
"""Texts that cost much more than they are long, by what is much in them. All but one are refused."""
