"""Every mistake a user can make in a script, with the whole text of the error, in one golden file.

`PYTHONPATH=tests python tests/cql/test_errors.py` writes the file anew; read the difference before committing it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from pyspark.sql import SparkSession
from tools.places import CASES, GOLDEN
from tools.random_texts import mutated, random_words, statements

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Connector
from headgate.compile import compile_script
from headgate.deliver.sinks.sink import Delivery
from headgate.deliver.sinks.webhook import WebhookSink
from headgate.delta.lower import lower
from headgate.engine import Engine
from headgate.errors import NotYet, UserError
from headgate.testing.cases import Case, read
from headgate.testing.reference import evaluate
from headgate.testing.runner import epoch_ends, script

ERRORS = GOLDEN / "errors.txt"
WHEN_RUNNING = "==== when something runs\n\n"

STREAMS = """CREATE STREAM pos_speed (vehicle INT, speed INT, segment INT, at TIMESTAMP) TIMESTAMP BY at;
CREATE STREAM ticks (k STRING, v INT);
CREATE VIEW per_segment AS SELECT segment, AVG(speed) AS mean FROM pos_speed [RANGE 5 MINUTES] GROUP BY segment;
"""

FOR_EACH = """CREATE RELATION watched (vehicle INT, faster INT);
CREATE RELATION dated (vehicle INT, op STRING, at TIMESTAMP) TIMESTAMP BY at CHANGE BY op;
CREATE RELATION lasting (vehicle INT, seconds INT CHECK (seconds IN (10, 60)), part DOUBLE, none INT CHECK (none IN (0, 1)),
  n INT CHECK (n IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17)));
"""
"""Defined besides for the mistakes in families."""

MISTAKES_IN_FAMILIES = [
    f"CREATE QUERIES f FOR EACH ROW OF {rest}"
    for rest in (
        "wached AS SELECT vehicle FROM pos_speed [NOW] WHERE speed > wached.faster",
        "pos_speed AS SELECT vehicle FROM pos_speed [NOW]",
        "per_segment AS SELECT vehicle FROM pos_speed [NOW] WHERE speed > per_segment.mean",
        "watched AS SELECT vehicle FROM pos_speed [NOW] WHERE speed > 100",
        "watched AS SELECT vehicle FROM pos_speed [NOW] WHERE speed > faster",
        "watched AS SELECT vehicle FROM pos_speed [NOW] WHERE speed > watched.fster",
        "watched AS SELECT vehicle FROM pos_speed [NOW] AS watched WHERE speed > watched.faster",
        "watched AS SELECT p.vehicle FROM pos_speed [NOW] p, watched WHERE p.speed > watched.faster",
        "dated AS SELECT vehicle FROM pos_speed [NOW] WHERE at > dated.at",
        "watched AS SELECT vehicle FROM pos_speed [PARTITION BY watched.vehicle ROWS 1]",
        "watched AS SELECT * FROM (SELECT vehicle FROM pos_speed WHERE speed > watched.faster) [RANGE 1 MINUTE]",
        "watched AS SELECT * FROM (SELECT DSTREAM(vehicle) FROM pos_speed [NOW] WHERE speed > watched.faster) AS x",
        "watched AS SELECT segment, COUNT(*) FROM pos_speed [NOW] WHERE speed > watched.faster GROUP BY ROLLUP (segment)",
        "watched AS SELECT segment, COUNT(*) FROM pos_speed [NOW] WHERE speed > watched.faster GROUP BY segment WITH CUBE",
        "watched AS SELECT a.vehicle FROM pos_speed [NOW] a FULL JOIN pos_speed [NOW] b ON a.speed > watched.faster",
        "watched AS SELECT HLL_SKETCH_AGG(vehicle) FROM pos_speed [NOW] WHERE speed > watched.faster",
        "watched AS SELECT (SELECT SUM(v) + watched.faster FROM ticks [NOW]) AS s FROM ticks [NOW] t",
        "watched AS SELECT vehicle FROM pos_speed [NOW] WHERE speed > watched.faster",
        "watched AS SELECT vehicle FROM pos_speed [NOW] WHERE vehicle IN (SELECT vehicle FROM (SELECT vehicle FROM pos_speed "
        "[RANGE 1 HOUR] WHERE speed > watched.faster) AS x)",
        "watched AS SELECT x.vehicle FROM (SELECT vehicle FROM pos_speed [NOW] WHERE speed > watched.faster) AS x "
        "JOIN (SELECT vehicle FROM pos_speed [NOW] WHERE speed < watched.faster) AS y USING (vehicle)",
        "watched INTO console AS SELECT vehicle FROM pos_speed [NOW] WHERE speed > watched.faster INTO console",
        "watched AS SELECT vehicle FROM pos_speed [RANGE watched.faster SECONDS]",
        "lasting AS SELECT vehicle FROM pos_speed [RANGE lasting.part SECONDS]",
        "lasting AS SELECT vehicle FROM pos_speed [RANGE lasting.second SECONDS]",
        "lasting AS SELECT vehicle FROM pos_speed [RANGE seconds SECONDS]",
        "lasting AS SELECT vehicle FROM pos_speed [RANGE lasting.seconds]",
        "lasting AS SELECT v FROM ticks [RANGE lasting.seconds SECONDS SLIDE lasting.none SECONDS]",
        "lasting AS SELECT v FROM ticks [PARTITION BY k ROWS lasting.n RANGE lasting.seconds SECONDS]",
        "lasting AS SELECT LAST(v) AS v FROM ticks [ROWS lasting.n]",
        "lasting AS SELECT a.v FROM ticks [ROWS lasting.n] a FULL JOIN ticks [NOW] b ON a.k = b.k",
        "lasting AS SELECT a.v FROM ticks [NOW] a LEFT JOIN ticks [ROWS lasting.n] b USING (k)",
        "lasting AS SELECT * FROM (SELECT ISTREAM(v) FROM ticks [ROWS lasting.n]) [RANGE 10]",
        "lasting AS SELECT * FROM (SELECT ISTREAM(v) FROM ticks [NOW] WHERE v = lasting.vehicle) [ROWS lasting.n]",
        "lasting AS SELECT COUNT(*) FROM ticks [RANGE 10 ON lasting.n]",
    )
] + [
    "CREATE QUERIES f OF watched AS SELECT vehicle FROM pos_speed [NOW]",
    "CREATE QUERY f FOR EACH ROW OF watched AS SELECT vehicle FROM pos_speed [NOW] WHERE speed > watched.faster",
]

TIMED = """CREATE STREAM fleet (car STRING, at TIMESTAMP) TIMESTAMP BY at SOURCE BY car;
CREATE STREAM entered (v INT) TIMESTAMP INTERNAL;
CREATE STREAM queued (v INT) TIMESTAMP LATENT;
CREATE RELATION sites (v INT) FROM csv OPTIONS ('path' = 'in');
"""
"""Defined besides for the mistakes about time."""

MISTAKES_IN_CHECKS = [
    "CREATE STREAM s (v INT CHECK v > 0)",
    "CREATE STREAM s (v INT CHECK (w > 0), w INT)",
    "CREATE STREAM s (v INT CHECK (v % 2 = 0))",
    "CREATE STREAM s (v INT CHECK (v IN (1, 'a')))",
    "CREATE STREAM s (v DOUBLE CHECK (v > 0))",
    "CREATE STREAM s (v TIMESTAMP CHECK (v > '2026-01-01'))",
    "CREATE RELATION r (name STRING CHECK (name LIKE 'a%'))",
    "CREATE QUERY q AS SELECT v FROM ticks [RANGE ticks.v]",
    "vquery : SELECT v FROM ticks; vtable : register relation x (v INT CHECK (v > 0))",
]

MISTAKES_ON_ERROR = [
    "SELECT k FROM ticks [NOW] ON ERROR",
    "SELECT k FROM ticks [NOW] ON ERROR SKPI",
    "SELECT k FROM ticks [NOW] ON ERROR SKIP EMIT EARLY ON ERROR STOP",
    "CREATE VIEW bad AS SELECT CAST(k AS INT) AS n FROM ticks [NOW] ON ERROR SKIP",
    "SELECT ISTREAM(SELECT k FROM ticks [NOW] ON ERROR SKIP)",
    "SELECT * FROM ERRORS(bad) [NOW]",
    "SELECT * FROM ERRORS(ticks",
    "CREATE QUERY bad AS SELECT CAST(k AS INT) AS n FROM ticks [NOW]; SELECT * FROM ERRORS(bad) [NOW]",
    "CREATE QUERY bad AS SELECT k FROM ticks [NOW] ON ERROR SKIP; SELECT * FROM ERRORS(bad) [NOW]",
    "CREATE QUERY bad AS SELECT CAST(k AS INT) AS n FROM ticks [NOW] ON ERROR SKIP; "
    "CREATE QUERY read AS SELECT * FROM ERRORS(bad) [NOW]; DROP QUERY bad",
    "CREATE QUERY bad AS SELECT CAST(k AS INT) AS n FROM ticks [NOW] ON ERROR SKIP; "
    "CREATE QUERY `errors(bad)` AS SELECT * FROM ERRORS(bad) [NOW]; DROP QUERY `errors(bad)`",
    "CREATE QUERY bad AS SELECT CAST(k AS INT) AS n FROM ticks [NOW] ON ERROR SKIP; SELECT nope FROM ERRORS(bad) [NOW]",
    "SELECT HEADGATE_TRY(v) FROM ticks [NOW]",
]

MISTAKES = [
    *MISTAKES_ON_ERROR,
    "SELECT ISTREAM(AVG(speeed)) FROM pos_speed [RANGE 5 MINUTES]",
    "SELECT * FROM pos_sped",
    "SELCT * FROM pos_speed",
    "SELECT * FORM pos_speed",
    "SELECT * FROM pos_speed [RANGE]",
    "SELECT * FROM pos_speed [RANGE 5 FORTNIGHTS]",
    "SELECT * FROM pos_speed [RNGE 5 MINUTES]",
    "SELECT * FROM pos_speed [ROWS]",
    "SELECT * FROM pos_speed [ROWS 2.5]",
    "SELECT * FROM pos_speed [NOW",
    "SELECT * FROM pos_speed [PARTITION BY vehicel ROWS 1]",
    "SELECT * FROM pos_speed [RANGE 1 MINUTE SLIDE 0 SECONDS]",
    "SELECT * FROM ticks [RANGE 500 MILLISECONDS]",
    "SELECT * FROM per_segment [RANGE 1 MINUTE]",
    "SELECT * FROM (SELECT COUNT(*) AS n FROM ticks) [RANGE 3]",
    "SELECT * FROM ticks SAMPLE 101 PERCENT [NOW]",
    "SELECT * FROM ticks SAMPLE -5 PERCENT",
    "SELECT * FROM ticks SAMPLE 10",
    "SELECT * FROM ticks SAMPLE 10 PERCENT REPEATABLE 7",
    "SELECT * FROM ticks SAMPLE 10 PERCENT REPEATABLE (1.5)",
    "SELECT * FROM ticks [NOW] SAMPLE 10 PERCENT",
    "SELECT * FROM per_segment SAMPLE 10 PERCENT",
    "SELECT * FROM (SELECT COUNT(*) AS n FROM ticks) SAMPLE 10 PERCENT [RANGE 3]",
    "(SELECT * FROM ticks) SAMPLE 10 PERCENT",
    "SELECT vehicle, COUNT(*) FROM pos_speed [NOW]",
    "SELECT vehicle FROM pos_speed [NOW] WHERE COUNT(*) > 1",
    "SELECT SUM(COUNT(*)) FROM pos_speed [NOW]",
    "SELECT COUNT(*) FROM pos_speed [NOW] GROUP BY COUNT(*)",
    "SELECT COUNT(*) FROM pos_speed [NOW] GROUP BY 7",
    "SELECT vehicle FROM pos_speed [NOW] a, pos_speed [NOW] b",
    "SELECT a.vehicle FROM pos_speed [NOW] a, pos_speed [NOW] a",
    "SELECT c.vehicle FROM pos_speed [NOW] a",
    "SELECT c.* FROM pos_speed [NOW] a",
    "SELECT v, vehicle FROM ticks [NOW], pos_speed [NOW]",
    "SELECT RSTREAM(*) FROM pos_speed [RANGE 1 MINUTE]",
    "SELECT ISTREAM(vehicle), speed FROM pos_speed [NOW]",
    "SELECT 1 + ISTREAM(vehicle) FROM pos_speed [NOW]",
    "SELECT 1",
    "SELECT vehicle FROM pos_speed [NOW] WHERE EXISTS (SELECT pos_speed [RANGE 4] WHERE speed > 1)",
    "SELECT vehicle FROM pos_speed [NOW] UNION ALL SELECT vehicle, speed FROM pos_speed [NOW]",
    "SELECT ? FROM pos_speed [NOW]",
    "SELECT 'open FROM pos_speed",
    "SELECT vehicle FROM pos_speed WHERE (speed > 1",
    "CREATE STREAM s (a INTT)",
    "CREATE STREAM s (a INT, a STRING)",
    "CREATE STREAM s (_a INT)",
    "CREATE STREAM s (a INT) TIMESTAMP BY b",
    "CREATE STREAM s (a STRING) TIMESTAMP BY a",
    "CREATE STREAM s (a INT) FROM json OPTIONS ('path' = 'in')",
    "CREATE STREAM s (a INT) TIMESTAMP BY a FROM json OPTIONS ('path' = )",
    "CREATE STREAM s (time TIMESTAMP, src_prt INT) TIMESTAMP BY time FROM pcap OPTIONS ('path' = 'in')",
    "CREATE STREAM s (a INT) TIMESTAMP OF a",
    "CREATE STREAM ticks (a INT)",
    "CREATE VIEW v (a, b) AS SELECT vehicle FROM pos_speed [NOW]",
    "CREATE QUERY q AS SELECT * FROM ticks INTO parket",
    "CREATE QUERY q AS SELECT * FROM ticks INTO parquet",
    "CREATE QUERY q AS SELECT * FROM ticks INTO console OPTIONS ('color' = 'red')",
    "CREATE QUERY q AS SELECT * FROM ticks INTO parquet OPTIONS ('paht' = 'out')",
    "CREATE QUERY q AS SELECT * FROM ticks INTO parquet OPTIONS ('path' = 'out', 'PATH' = 'in')",
    "CREATE QUERY q AS SELECT * FROM ticks INTO parquet OPTIONS ('path' = 's3a://bucket/out')",
    "CREATE QUERY q AS SELECT * FROM ticks INTO parquet OPTIONS ('path' = 'file:out')",
    "CREATE QUERY q AS SELECT v FROM ticks INTO jdbc OPTIONS ('url' = 'x://ann:hunter2@h/db', 'dbtable' = 't', 'password' = 'hunter2')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO parquet OPTIONS ('path' = 'out', 'deliver' = 'upsert')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO json OPTIONS ('path' = 'out', 'deliver' = 'current')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO parquet OPTIONS ('path' = 'out', 'deliver' = 'current', 'existing' = 'append')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO parquet OPTIONS ('path' = 'out', 'deliver' = 'current', 'flush_rows' = '9')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO parquet OPTIONS ('path' = 'out', 'deliver' = 'current', 'ordered' = 'true')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO parquet OPTIONS ('path' = 'out', 'ordered' = 'yes')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO console OPTIONS ('flush_rows' = 'few')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO memory OPTIONS ('flush_rows' = '9')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO parquet OPTIONS ('path' = 'out', 'reflects' = 'yes')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO console OPTIONS ('reflects' = 'true')",
    "CREATE QUERY q AS SELECT ISTREAM(k) FROM ticks [NOW] INTO parquet OPTIONS ('path' = 'out', 'deliver' = 'current')",
    "CREATE QUERY q AS SELECT k, ARRAY(v) AS vs FROM ticks [NOW] INTO csv OPTIONS ('path' = 'out')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO kafka OPTIONS ('topic' = 't')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO kafka OPTIONS ('kafka.bootstrap.servers' = 'localhost:9092', 'topic' = 't', 'key' = 'kk')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO jdbc OPTIONS ('url' = 'jdbc:postgresql:db', 'dbtable' = 't', 'deliver' = 'upserts')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO jdbc OPTIONS ('url' = 'jdbc:postgresql:db', 'dbtable' = 't', 'key' = 'k')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO jdbc OPTIONS ('url' = 'postgresql://db', 'dbtable' = 't')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO jdbc OPTIONS ('url' = 'jdbc:postgresql:db', 'dbtable' = 't; DROP TABLE u')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO webhook OPTIONS ('url' = 'ftp://localhost')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO webhook OPTIONS ('url' = 'http://localhost', 'rows' = 'many')",
    "CREATE QUERY q AS SELECT * FROM ticks [ROWS 1] INTO callback OPTIONS ('function' = 'print me')",
    "CREATE TABLE t (a INT)",
    "CREATE QUERY q SELECT * FROM ticks",
    "CREATE FUNCTION f(x INT) RETURN x + 1; SELECT f(v, v) FROM ticks",
    "SET rnge = 'closed'",
    "SET range = 'open'",
    "SET flush_rows = 0",
    "SET failed_after = 'soon'",
    "SET consistency = 'input-prefx'",
    "SET consistency_method = 'token'",
    "SET inconsistent = 'drop'",
    "SET token_period = 'often'",
    "SET token_period = 'latency'",
    "SET token_period = 'throughput many'",
    "SET time_unit = 'a while'",
    "DISORDER OF tcks 3",
    "DISORDER OF ticks",
    "TIMEOUT 3 TICKS",
    "FROBNICATE the stream",
    "SELECT * FROM pos_speed LEFT JOIN ticks ON v = speed",
    "SELECT vehicle FROM pos_speed WHERE speed IN (SELECT v FROM ticks)",
    "SELECT vehicle FROM pos_speed [NOW] WHERE RANK() OVER (ORDER BY speed) > 1",
    "SELECT vehicle FROM pos_speed ORDER BY speed LIMIT speed",
    "SELECT vehicle FROM pos_speed ORDER BY 4 LIMIT 1",
    "SELECT DISTINCT vehicle FROM pos_speed ORDER BY speed LIMIT 1",
    "SELECT speed, COUNT(*) FROM pos_speed GROUP BY ALL",
    "SELECT vehicle FROM pos_speed WHERE (vehicle, speed) IN (SELECT vehicle FROM pos_speed)",
    "SELECT vehicle FROM pos_speed WHERE speed > (SELECT speed, vehicle FROM pos_speed)",
    "SELECT vehicle FROM pos_speed [NOW] EXCEPT SELECT vehicle, speed FROM pos_speed [NOW]",
    "CREATE STREAM s (a INT) TIMESTAMP BY a FROM jdbc OPTIONS ('url' = 'u')",
    "CREATE STREAM s (a INT) TIMESTAMP BY a FROM kafka OPTIONS ('subscribe' = 'a') VALUE AS jsn",
    "CREATE STREAM s (a INT) TIMESTAMP BY a VALUE AS json",
    "CREATE STREAM s (a INT) FROM kafka OPTIONS ('subscribe' = 'a')",
    "SKEW FROM pos_speed TO ticks (AFTER 2 SECONDS WITHIN 1 SECOND)",
    "SELECT * FROM pos_speed [SIZE 10 MINUTES TIME]",
    "SELECT * FROM pos_speed [NOW], ticks [at now - 10 sec]",
    "SELECT * FROM pos_speed [RANGE 5 TUPLES]",
    "SELECT * FROM pos_speed [RANGE T]",
    "SELECT * FROM pos_speed ROWS 10",
    "SELECT k FROM ticks WHERE k = `OR'",
    "SELECT center-of-mass FROM ticks",
    "SELECT * FROM ticks [RANGE 5 ON k]",
    "SELECT * FROM ticks [RANGE 5 SECONDS ON v]",
    "SELECT * FROM ticks [ROWS 3 SLIDE 0]",
    "SELECT ISTREAM(v) FROM ticks EVERY 5",
    "SELECT RSTREAM(v) FROM ticks [RANGE 5] EVERY 0",
    "SELECT RSTREAM(v) FROM ticks [RANGE 5] EMIT AT SLIDE",
    "SELECT RSTREAM(*) FROM ticks [RANGE 5 SLIDE 2] a, ticks [RANGE 6 SLIDE 3] b EMIT AT SLIDE",
    "SELECT segment, COUNT(*) AS n FROM pos_speed GROUP BY segment EMIT FINAL",
    "SELECT COUNT(*) AS n FROM pos_speed EMIT FINAL",
    "SELECT vehicle FROM pos_speed WHERE speed > 3 EMIT FINAL",
    "SELECT UNIX_SECONDS(at) AS s, COUNT(*) AS n FROM pos_speed [RANGE 5 MINUTES] GROUP BY UNIX_SECONDS(at) EMIT FINAL",
    "SELECT ISTREAM(UNIX_SECONDS(at) AS s) FROM pos_speed GROUP BY UNIX_SECONDS(at) EMIT FINAL",
    "RSTREAM(SELECT UNIX_SECONDS(at) AS s FROM pos_speed GROUP BY UNIX_SECONDS(at)) EMIT FINAL",
    "SELECT a.v FROM ticks a LEFT JOIN ticks b ON a.k = b.k EMIT FINAL",
    "SELECT a.ELEMENT_TIME / 2 AS t, COUNT(*) AS n FROM ticks a, ticks b WHERE a.k = b.k GROUP BY a.ELEMENT_TIME / 2 EMIT FINAL",
    "SELECT HOUR(at) AS h, COUNT(*) AS n FROM pos_speed GROUP BY HOUR(at) EMIT FINAL",
    "CREATE STREAM s (name STRING INCREASING)",
    "CREATE RELATION r (n INT DECREASING)",
    "CREATE STREAM s (n INT UPWARDS)",
    "SELECT ELEMENT_TIME FROM per_segment",
    "SELECT * FROM pos_speed [NOW] JOIN ticks [NOW] USING (speed)",
    "SELECT v FROM ticks [NOW] UNION SELECT speed FROM pos_speed [NOW] ORDER BY segment LIMIT 1",
    "SELECT RANK() OVER w FROM ticks [NOW]",
    "CREATE STREAM s AS SELECT v FROM ticks [NOW]",
    "CREATE RELATION r AS SELECT ISTREAM(v) FROM ticks",
    "vtable : register stream v (a integer)",
    "source : in.txt",
    "CREATE RELATION r (k INT, v INT) KEY (k) FROM csv OPTIONS ('path' = 'in')",
    "CREATE RELATION r (k INT) KEY (j)",
    "DROP STREAM pos_sped",
    "DROP STREAM ticks; CREATE VIEW w AS SELECT v FROM pos_speed",
    "CREATE VIEW w AS SELECT v FROM ticks; DROP STREAM ticks",
    "DROP everything",
    "SHOW streets",
    "DESCRIBE tick",
    "SET state = 'small'",
    "SELECT k, RAND() AS r FROM ticks",
    "SELECT k FROM ticks WHERE CURRENT_TIMESTAMP > TIMESTAMP '2024-01-01'",
    "SELECT vehicle FROM pos_speed WHERE at > 'now'",
    "SELECT CURRENT_TIME FROM ticks [RANGE 5]",
    "SELECT REFLECT('java.lang.System', 'exit', 1) AS r FROM ticks",
    "CREATE FUNCTION f(x INT) RETURN x + RAND()",
    "SELECT AES_ENCRYPT(k, '0000111122223333') AS c FROM ticks",
    "SELECT FROM_XML(k, 'a INT', MAP('rowValidationXSDPath', 'x')) AS c FROM ticks",
    "SELECT v FROM ticks WHERE v",
    "SELECT v FROM ticks WHERE v = 1 OR NOT (v + 1)",
    "SELECT CASE WHEN v = 1 THEN 1 WHEN v THEN 2 END AS c FROM ticks",
    "SELECT IF(k, 1, 2) AS c FROM ticks",
    "SELECT COUNT(*) FILTER (WHERE v) AS n FROM ticks",
    "SELECT DATE_FORMAT(v) AS c FROM ticks",
    "SELECT * FROM",
    "CREATE STERAM s (a INT)",
    "INSER INTO ticks VALUES ('a', 1)",
    "SELECT v FROM ticks [RANGE 1.5]",
    "SELECT v FROM pos_speed [RANGE 5 NANOSECONDS]",
    "SELECT v FROM ticks [RANGE 9223372036854775800]",
    "SELECT speed FROM pos_speed [RANGE 20000000 WEEKS]",
    "SELECT v FROM ticks [ROWS 99999999999999999999999]",
    "CREATE VIEW v (a INTEGER, b) AS SELECT v FROM ticks",
    "SELECT " + " + ".join(["v"] * 250) + " AS s FROM ticks",
    "SELECT " + "(" * 250 + "v" + ")" * 250 + " AS s FROM ticks",
    "CREATE STREAM s (a INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5' SECOND)",
    "CREATE STREAM s (a INT, at TIMESTAMP) WATERMARK FOR at AS at - INTERVAL '5' SECOND",
    "CREATE STREAM s (a INT, PRIMARY KEY (a) NOT ENFORCED)",
    "CREATE STREAM s (a INT) WITH ('connector' = 'kafka')",
    "CREATE MATERIALIZED VIEW v AS SELECT v FROM ticks",
    "CREATE OR REPLACE VIEW v AS SELECT v FROM ticks",
    "CREATE SINK out AS SELECT v FROM ticks",
    "INSERT INTO ticks VALUES ('a', 1)",
    "SELECT * FROM ticks EMIT CHANGES",
    "SELECT * FROM TABLE(TUMBLE(TABLE pos_speed, DESCRIPTOR(at), INTERVAL '1' MINUTE))",
    "SELECT COUNT(*) FROM pos_speed GROUP BY HOP(at, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)",
    "SELECT COUNT(*) FROM pos_speed GROUP BY WINDOW(at, '10 minutes')",
    "SELECT COUNT(*) FROM pos_speed GROUP BY SESSION_WINDOW(at, '10 minutes')",
    "SELECT k, COUNT(*) FROM ticks WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY k",
    "SELECT PROCTIME() FROM ticks",
    "SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY k)",
    "SELECT * FROM ticks, LATERAL TABLE(f(v)) AS t(a)",
    "SELECT * FROM ticks [NOW] t JOIN ticks FOR SYSTEM_TIME AS OF t.at r ON t.v = r.v",
    "SELECT * FROM ticks [RANGE INTERVAL '5' MINUTE]",
    "SELECT * FROM parquet.`/data/in`",
    "SELECT * FROM READ_FILES('/data/in')",
    "CREATE QUERY q AS SELECT v FROM ticks INTO webhook OPTIONS ('url' = 'http://localhost', 'header.Content-Length' = '0')",
    "SET state = 'bounded'; SELECT DISTINCT k FROM ticks",
    "SET state = 'bounded'; SELECT * FROM pos_speed [PARTITION BY vehicle ROWS 1]",
    "SET state = 'bounded'; SELECT ISTREAM(p.vehicle, q.mean) FROM pos_speed p, per_segment q WHERE p.segment = q.segment",
]


MISTAKES_ABOUT_TIME = [
    "SKEW FROM pos_speed TO flet (WITHIN 1)",
    "SKEW pos_speed TO fleet (WITHIN 1)",
    "SKEW FROM pos_speed TO fleet",
    "SKEW FROM pos_speed TO fleet (WITHIN -5)",
    "SKEW FROM pos_speed TO fleet (AFTER -5 SECONDS WITHIN 5)",
    "SKEW FROM pos_speed TO fleet (AFTER 5 TICKS WITHIN 5)",
    "SKEW FROM pos_speed TO fleet (AFTER 5 SECONDS)",
    "SKEW FROM pos_speed TO fleet (AFTER 2.5 TUPLES WITHIN 5)",
    "SKEW FROM pos_speed TO fleet (WITHIN 5 TUPLES)",
    "SKEW FROM pos_speed TO fleet (WITHIN UNLIMITED)",
    "SKEW FROM pos_speed TO fleet (WITHIN 99999999999999 WEEKS)",
    "SKEW FROM pos_speed TO fleet (AFTER 1 SECOND WITHIN 5), (AFTER 2 SECONDS WITHIN 6)",
    "SKEW FROM pos_speed TO fleet (AFTER 1 SECOND WITHIN 5), (AFTER 1000 MILLISECONDS WITHIN 4)",
    "SKEW FROM pos_speed SOURCE 'a' TO fleet (WITHIN 5)",
    "SKEW FROM fleet SOURCE a TO fleet (WITHIN 5)",
    "DISORDER OF per_segment 5 SECONDS",
    "DISORDER OF sites 5 SECONDS",
    "DISORDER OF entered 5 SECONDS",
    "DISORDER OF ticks 1.5",
    "DISORDER OF ticks SOURCE 'a' 1",
    "LATENCY OF queued 5 SECONDS",
    "LATENCY OF ticks 5 TICKS",
    "LATENCY OF ticks",
    "CREATE STREAM s (a INT) TIMESTAMP LATENT DISORDER 5",
    "CREATE STREAM s (a INT) TIMESTAMP INTERNAL LATENCY 5",
    "CREATE STREAM s (a INT) TIMESTAMP INTERNAL FUTURE 5",
    "CREATE STREAM s (a INT) TIMESTAMP INTERNAL TIMESTAMP LATENT",
    "CREATE STREAM s (a INT) TIMESTAMP INTERNL",
    "CREATE STREAM s (a INT) DISORDER -5",
    "CREATE STREAM s (a INT, d STRING) TIMESTAMP BY a SOURCE BY e",
    "CREATE STREAM s (a INT, d STRING) TIMESTAMP BY a HEARTBEAT BY d",
    "CREATE STREAM s (a INT, d INT) HEARTBEAT BY d",
    "CREATE STREAM s (a INT) LATE LOSE",
    "ENVIRONMENT sensrs (DEVIATION 2 SECONDS)",
    "ENVIRONMENT sensors (DEVIATION 2 SECONDS)",
    "ENVIRONMENT sensors (DEVATION 2 SECONDS) OF fleet",
    "ENVIRONMENT sensors (RATE 1) OF fleet",
    "ENVIRONMENT sensors (DEVIATION 2 SECONDS, RATE 0) OF fleet",
    "ENVIRONMENT sensors (DEVIATION 2 SECONDS, RATE 1 PER TICK) OF fleet",
    "ENVIRONMENT sensors (DEVIATION 2 SECONDS, DEVIATION 3 SECONDS) OF fleet",
    "ENVIRONMENT sensors (DEVIATION) OF fleet",
    "ENVIRONMENT sensors (DEVIATION 1 TO 2) OF fleet",
    "ENVIRONMENT sensors (DEVIATION 2 SECONDS) OF fleet, ticks",
    "ENVIRONMENT global_counter (PROCESSING 1 MILLISECOND TO 5 SECONDS) OF fleet",
    "ENVIRONMENT global_counter (PROCESSING 6 SECONDS TO 5 SECONDS) OF ticks",
    "ENVIRONMENT global_counter (PROCESSING 5 SECONDS) OF ticks",
    "ENVIRONMENT global_counter () OF ticks",
    "ESTIMATE OF tick",
    "ESTIMATE OF entered",
    "ESTIMATE OF ticks (WEIGHT 1.5)",
    "ESTIMATE OF ticks (CONFIDENCE 1)",
    "ESTIMATE OF ticks (WINDOW 1000)",
    "ESTIMATE OF ticks (WINDOW 0 TUPLES)",
    "ESTIMATE OF ticks (HORIZON 10 TICKS)",
    "ESTIMATE OF ticks (FIXED 3)",
    "ESTIMATE OF ticks (WIEGHT 0.5)",
    "GROUPS OF ticks 16",
    "GROUPS OF fleet 0",
    "GROUPS OF fleet",
    "GROUPS OF fleet ('a', 'b'), ('b')",
    "LATE OF fleet LOSE",
    "LATE OF fleet KEP",
    "LATE OF per_segment KEEP",
    "FUTURE OF fleet -1 DAY",
    "FUTURE OF queued 1 DAY",
    "FUTURE OF sites 1 DAY",
    "TIMEOUT -3",
    "SET clock_unit = '0 seconds'",
    "SET clock_unit = '0.5 microseconds'",
    "SET estimation = 'of'",
    "WHY topp",
    "CREATE QUERY top AS SELECT * FROM ticks; WHY tpo",
    "SHOW BOUND",
    "HEARTBEAT EVERY 0",
    "HEARTBEAT ALWAYS",
    "HEARTBEAT ON DEMAND WITHIN 5",
    "HEARTBEAT OF fleet NONE WITHIN 5",
    "HEARTBEAT OF queued EVERY 1 SECOND",
    "HEARTBEAT OF entered ON DEMAND WITHIN 1 SECOND",
    "HEARTBEAT OF sites EVERY 1 SECOND",
    "CREATE STREAM s (a INT) HEARTBEAT EVERY 1 SECOND HEARTBEAT NONE",
    "SKEW FROM CLOCK TO ticks (WITHIN 5)",
    "SKEW FROM CLOCK TO fleet (AFTER 5 TUPLES WITHIN 5 SECONDS)",
    "SKEW FROM CLOCK TO fleet SOURCE 'a' (WITHIN 5 SECONDS)",
    "SELECT * FROM queued [RANGE 5 MINUTES]",
    "SELECT RSTREAM(*) FROM queued EVERY 1 SECOND",
    "SELECT * FROM queued, ticks",
    "SELECT * FROM queued, entered",
    "SELECT * FROM LATE(sites)",
    "SELECT * FROM LATE(per_segment)",
    "SELECT * FROM LATE(tcks)",
    "SELECT * FROM LATE(ticks, v)",
    "SELECT * FROM LATE()",
    "SELECT _late FROM LATE(ticks)",
    "CREATE VIEW w AS SELECT v FROM LATE(ticks); DROP STREAM ticks",
    "DROP SKEW FROM pos_speed TO fleet",
    "DISORDER OF fleet SOURCE 'a' 5; DROP DISORDER OF fleet",
    "DROP TIMEOUT",
    "DROP HEARTBEAT OF fleet",
    "DROP ENVIRONMENT sensors OF fleet",
    "DROP ENVIRONMENT sensor OF fleet",
    "DISORDER OF fleet 5; DROP DISORDER OF fleet 5",
    "DROP DISODER OF fleet",
    "DROP LATENCY OF entered",
    "DISORDER OF ticks (WITHIN 5), (AFTER 1000000000000 TUPLES WITHIN 0)",
    "SKEW FROM pos_speed TO fleet (AFTER 400 DAYS WITHIN 0)",
    "GROUPS OF fleet 1000000000",
]


def complaint(mistake: str) -> str:
    catalog = Catalog()
    besides = TIMED if mistake in MISTAKES_ABOUT_TIME else FOR_EACH if mistake in MISTAKES_IN_FAMILIES else ""
    compile_script(STREAMS + besides, catalog)
    try:
        compile_script(mistake, catalog)
    except UserError as error:
        return error.render()
    return "no error"


MISTAKES_IN_SNAPSHOTS = [
    "SNAPSHOT",
    "SNAPSHOT top",
    "SNAPSHOT ticks",
    "SNAPSHOT per_segment",
    "CREATE QUERY top AS SELECT k FROM ticks [RANGE 5]; SNAPSHOT top,",
    "CREATE QUERY top AS SELECT k FROM ticks [RANGE 5]; SNAPSHOT top, tpo",
    "CREATE QUERY top AS SELECT k FROM ticks [RANGE 5]; SNAPSHOT top, Top",
    "CREATE QUERY top AS SELECT k FROM ticks [RANGE 5]; SNAPSHOT top k",
    "CREATE QUERY new AS SELECT ISTREAM(k) FROM ticks [NOW]; SNAPSHOT new",
    "CREATE QUERY out AS SELECT k FROM ticks [NOW] INTO parquet OPTIONS ('path' = 'out'); SNAPSHOT out",
    "CREATE QUERY a AS SELECT k FROM ticks [RANGE 5]; CREATE QUERY b AS SELECT vehicle FROM pos_speed [NOW]; SNAPSHOT a, b",
]

MISTAKES_IN_GROUPS = [
    f"CREATE QUERY top AS SELECT k FROM ticks [RANGE 5]; CREATE QUERY low AS SELECT v FROM ticks [NOW]; {rest}"
    for rest in (
        "CREATE GROUP g",
        "CREATE GROUP g OF",
        "CREATE GROUP g (top, low)",
        "CREATE GROUP top OF top, low",
        "CREATE GROUP g OF top, loww",
        "CREATE GROUP g OF top, top",
        "CREATE GROUP g OF top, ticks",
        "CREATE QUERY new AS SELECT ISTREAM(k) FROM ticks [NOW]; CREATE GROUP g OF new",
        "CREATE QUERY own AS SELECT k FROM ticks [NOW] INTO console; CREATE GROUP g OF own",
        "CREATE QUERY b AS SELECT vehicle FROM pos_speed [NOW]; CREATE GROUP g OF top, b",
        "CREATE GROUP g OF top, low INTO kafka OPTIONS ('topic' = 't')",
        "CREATE GROUP g OF top, low INTO parqet OPTIONS ('path' = 'out')",
        "CREATE GROUP g OF top, low INTO parquet",
        "CREATE GROUP g OF top, low INTO parquet OPTIONS ('path' = 'out', 'flush_rows' = '10')",
        "CREATE GROUP g OF top, low INTO parquet OPTIONS ('path' = 'out', 'partial' = 'true')",
        "CREATE GROUP g OF top, low INTO parquet OPTIONS ('path' = 'out', 'top.path' = 'other')",
        "CREATE GROUP g OF top, low INTO parquet OPTIONS ('path' = 'out', 'low.ordred' = 'true')",
        "CREATE GROUP g OF top, low INTO parquet OPTIONS ('path' = 'out', 'deliver' = 'upserts', 'key' = 'k')",
        "CREATE GROUP g OF top, low INTO jdbc OPTIONS ('url' = 'jdbc:postgresql://localhost/db', 'dbtable' = 't')",
        "CREATE GROUP g OF top, low INTO jdbc OPTIONS ('url' = 'jdbc:postgresql://localhost/db', 'top.dbtable' = 'low')",
        "CREATE GROUP g OF top, low INTO jdbc OPTIONS ('url' = 'jdbc:postgresql://localhost/db', 'top.dbtable' = 'a b')",
        "CREATE GROUP g OF top, low INTO jdbc OPTIONS ('url' = 'jdbc:postgresql://localhost/db', 'topp.key' = 'k')",
        "CREATE GROUP g OF top, low; DROP QUERY low",
        "CREATE GROUP g OF top, low; ALTER QUERY low AS SELECT k FROM ticks [NOW]",
        "CREATE GROUP g OF top, low; CREATE GROUP G OF top",
        "CREATE GROUP g OF top, low; DROP GROUP h",
        "SHOW GROUP",
    )
]

RUNNING: dict[str, Callable[[Engine], object]] = {
    "a row with a column that is not there": lambda engine: engine.push("ticks", [(1, {"kk": 1})]),
    "a row without its timestamp": lambda engine: engine.push("ticks", [("a", 1)]),
    "a change that is none": lambda engine: engine.push("changing", [(1, ("a",), "?")]),
    "a stream that is not there": lambda engine: engine.push("tick", []),
    "a query that is not there": lambda engine: engine.query("top"),
    "a snapshot of what is not complete": lambda engine: engine.execute("SELECT k FROM ticks [NOW]; SNAPSHOT q1"),
    "files without a path": lambda engine: engine.execute("CREATE STREAM f (a INT) TIMESTAMP BY a FROM csv"),
    "a path that is not there": lambda engine: (
        engine.execute("CREATE STREAM g (a INT) TIMESTAMP BY a FROM csv OPTIONS ('path' = 'no/such/folder')"),
        engine.poll(),
    ),
    "a function Spark does not have": lambda engine: engine.execute("SELECT frobnicate(v) FROM ticks"),
    "types that do not go together": lambda engine: engine.execute("SELECT v + ARRAY(1) AS x FROM ticks"),
    "a value that cannot be cast": lambda engine: (
        engine.execute("CREATE QUERY cast_it AS SELECT CAST(k AS INT) AS i FROM ticks [NOW]"),
        engine.push("ticks", [(1, ("not a number", 1))]),
        engine.advance(1),
    ),
    "a folder that another query writes to": lambda engine: [
        (
            engine.execute(
                f"CREATE QUERY {one} AS SELECT v FROM ticks INTO parquet OPTIONS ('path' = '{engine._core.directory}/out')"
            ),
            engine.push("ticks", [(1, ("a", 1))]),
            engine.advance(1),
        )
        for one in ("mine", "yours")
    ],
    "a database without a driver": lambda engine: engine.execute(
        "CREATE QUERY q AS SELECT v FROM ticks INTO jdbc OPTIONS ('url' = 'jdbc:mysql://localhost/db', 'dbtable' = 't')"
    ),
    "a connector that is not there": lambda engine: engine.execute(
        "CREATE QUERY q AS SELECT v FROM ticks INTO delta OPTIONS ('path' = 'out')"
    ),
    "a function that cannot be called": lambda engine: engine.execute(
        "CREATE QUERY q AS SELECT v FROM ticks INTO callback OPTIONS ('function' = 'json:lods')"
    ),
    "a webhook that nobody listens to": lambda engine: WebhookSink(
        "q", Connector("webhook", {"url": "http://127.0.0.1:1/"}), engine.spark, engine._core.directory
    )._post(Delivery("q", 1, 0, 1, 1, (), 0), 0, [], last=True),
    "a case that is none": lambda engine: read(CASES.parent / "cql" / "test_errors.py"),
    "a file of cases that is not there": lambda engine: read(CASES / "none.jsonl"),
    "epochs that are none": lambda engine: epoch_ends(read(CASES / "cql.jsonl")[0], "often"),
    "a case of too many instants": lambda engine: evaluate(replace(read(CASES / "cql.jsonl")[0], horizon=10**9)),
}
"""What can go wrong only when something runs."""


def complaints_of_running(spark: SparkSession) -> str:
    texts = []
    for mistake, make in RUNNING.items():
        with Engine(spark) as engine:
            engine.execute("CREATE STREAM ticks (k STRING, v INT); CREATE RELATION changing (k STRING)")
            try:
                make(engine)
            except UserError as error:
                said = (
                    error.render().replace(str(CASES.parent), "tests").replace(str(engine._core.directory), "directory")
                )
                said = said.replace(str(Path.cwd()), "/here")
                texts.append(f"> {mistake}\n{said}\n\n")
            else:
                texts.append(f"> {mistake}\nno error\n\n")
    return "".join(texts)


MISTAKES_WITH_SYSTEM_STREAMS = [
    "SELECT * FROM SYSTEM.quries [NOW]",
    "SELECT * FROM SYSTEM.queries [NOW] WHERE wating > 3",
    "SELECT * FROM LATE(SYSTEM.late)",
    "DESCRIBE SYSTEM.query",
    "SHOW SYSTEM",
    "CREATE STREAM SYSTEM.mine (v INT)",
    "CREATE STREAM SYSTEM. (v INT)",
    "CREATE RELATION `system.mine` (v INT)",
    "CREATE VIEW SYSTEM.mine AS SELECT * FROM ticks",
    "CREATE QUERY SYSTEM.mine AS SELECT * FROM ticks",
    "ALTER STREAM SYSTEM.late ADD COLUMN v INT",
    "DROP STREAM SYSTEM.late",
    "HEARTBEAT OF SYSTEM.late NONE",
    "SELECT q.query FROM SYSTEM.queries [NOW] q, ticks [NOW] t WHERE q.query = t.k",
    "SET system_interval = 'often'",
]

MISTAKES_IN_CONSTRAINTS = [
    "CONSTRAINT c ON tics CLUSTERED BY k WITHIN 1 TUPLES",
    "CONSTRAINT c ON per_segment CLUSTERED BY segment WITHIN 1 TUPLES",
    "CONSTRAINT c ON ticks CLUSTERED BY kk WITHIN 1 TUPLES",
    "CONSTRAINT c ON ticks CLUSTERED k WITHIN 1 TUPLES",
    "CONSTRAINT c ON ticks CLUSTRED BY k WITHIN 1 TUPLES",
    "CONSTRAINT c ON ticks ORDERED BY v WITHIN -1 TUPLES",
    "CONSTRAINT c ON ticks ORDERED BY v WITHIN 1.5 TUPLES",
    "CONSTRAINT c ON ticks ORDERED BY v WITHIN 99999999999 TUPLES",
    "CONSTRAINT c ON ticks ORDERED BY v WITHIN 5 SECONDS",
    "CONSTRAINT c ON ticks ORDERED BY v WITHIN",
    "CONSTRAINT c ON ticks ORDERED BY v WITHIN 1 TUPLE ON VIOLATION IGNORE",
    "CONSTRAINT c ON ticks (v) REFERENCES tics (v) WITHIN 1 TUPLES",
    "CONSTRAINT c ON ticks (v) REFERENCES ticks (w) WITHIN 1 TUPLES",
    "CONSTRAINT c ON ticks (v) REFERENCES ticks (k) WITHIN 1 TUPLES",
    "CONSTRAINT c ON ticks (v) REFERENCES pos_speed (speed) WITHIN 1 TUPLES",
    "CONSTRAINT c ON ticks ORDERED BY v WITHIN 1 TUPLES; CONSTRAINT d ON ticks ORDERED BY v WITHIN 2 TUPLES",
    "CONSTRAINT c ON ticks ORDERED BY v WITHIN 1 TUPLES; CONSTRAINT C ON ticks CLUSTERED BY v WITHIN 1 TUPLES",
    "CREATE STREAM falls (v INT DECREASING); CONSTRAINT c ON falls ORDERED BY v WITHIN 1 TUPLES",
    "DROP CONSTRAINT c",
    "CONSTRAINT c ON ticks CLUSTERED BY k WITHIN 1 TUPLES; CREATE QUERY q AS SELECT DISTINCT k FROM ticks; "
    "DROP CONSTRAINT c",
    "CONSTRAINT c ON ticks CLUSTERED BY k WITHIN 1 TUPLES; DROP STREAM ticks",
    "CONSTRAINT c ON ticks CLUSTERED BY kk DETECTED",
    "CONSTRAINT c ON ticks CLUSTERED BY k DETECTD",
    "CONSTRAINT c ON ticks CLUSTERED BY k WITHIN 1 TUPLES CONFIDENCE 0.9",
    "CONSTRAINT c ON ticks CLUSTERED BY k DETECTED WITHIN -1 TUPLES",
    "CONSTRAINT c ON ticks CLUSTERED BY k DETECTED WITHIN 5 SECONDS",
    "CONSTRAINT c ON ticks CLUSTERED BY k DETECTED CONFIDENCE",
    "CONSTRAINT c ON ticks CLUSTERED BY k DETECTED CONFIDENCE 1",
    "CONSTRAINT c ON ticks CLUSTERED BY k DETECTED CONFIDENCE -0.5",
    "CONSTRAINT c ON ticks CLUSTERED BY k DETECTED CONFIDENCE '0.9'",
    "CONSTRAINT c ON ticks CLUSTERED BY k DETECTED CONFIDENCE 0.99999999999",
    "CONSTRAINT c ON ticks CLUSTERED BY k DETECTED ON VIOLATION FAIL",
    "CONSTRAINT c ON ticks (v) REFERENCES ticks (v) DETECTED",
    "CONSTRAINT c ON ticks ORDERED BY v WITHIN 1 TUPLES; CONSTRAINT d ON ticks ORDERED BY v DETECTED",
    "CREATE STREAM falls (v INT DECREASING); CONSTRAINT c ON falls ORDERED BY v DETECTED",
    "CONSTRAINT c ON ticks CLUSTERED BY k DETECTED; CREATE QUERY q AS SELECT DISTINCT k FROM ticks; DROP CONSTRAINT c",
    "SET detection = 'maybe'",
]

EVERY_MISTAKE = [
    *MISTAKES_IN_CONSTRAINTS,
    *MISTAKES,
    *MISTAKES_IN_FAMILIES,
    *MISTAKES_IN_CHECKS,
    *MISTAKES_ABOUT_TIME,
    *MISTAKES_IN_SNAPSHOTS,
    *MISTAKES_IN_GROUPS,
    *MISTAKES_WITH_SYSTEM_STREAMS,
]


def golden() -> str:
    return "".join(f"> {mistake}\n{complaint(mistake)}\n\n" for mistake in EVERY_MISTAKE)


def test_every_error_reads_as_in_the_golden_file() -> None:
    assert ERRORS.read_text(encoding="utf-8").partition(WHEN_RUNNING)[0] == golden()


@pytest.mark.spark
def test_every_error_of_running_reads_as_in_the_golden_file(spark: SparkSession) -> None:
    text = complaints_of_running(spark)
    assert "no error" not in text
    assert ERRORS.read_text(encoding="utf-8").partition(WHEN_RUNNING)[2] == text


@pytest.mark.parametrize("mistake", EVERY_MISTAKE)
def test_every_mistake_is_an_error_with_a_place_or_a_hint(mistake: str) -> None:
    text = complaint(mistake)
    assert text != "no error"
    assert "^" in text or "detail:" in text or "hint:" in text


def answered(text: str, catalog: Catalog) -> None:
    """Compiles a text to a plan that can be lowered, or to an error with a code; any other exception fails the test."""
    try:
        compile_script(text, catalog)
        for query in catalog.queries.values():
            lower(query.plan)
    except UserError as error:
        assert error.code
        assert error.place is not None or error.detail, f"{text}\n{error.render()}"
        assert error.render()


def known() -> Catalog:
    catalog = Catalog()
    compile_script(STREAMS, catalog)
    return catalog


@settings(max_examples=200)
@given(random_words)
def test_any_words_are_answered_by_a_plan_or_an_error(text: str) -> None:
    answered(text, known())


@settings(max_examples=250)
@given(statements())
def test_any_sentence_is_answered_by_a_plan_or_an_error(text: str) -> None:
    answered(text, known())


@settings(max_examples=250)
@given(mutated())
def test_any_change_of_a_real_query_is_answered_by_a_plan_or_an_error(changed: tuple[Case, str]) -> None:
    case, text = changed
    catalog = Catalog()
    try:
        compile_script(script(replace(case, query="")).rpartition(";\n")[0], catalog)
    except NotYet:
        return
    answered(text, catalog)


if __name__ == "__main__":
    from headgate.spark.session import started

    ERRORS.write_text(golden() + WHEN_RUNNING + complaints_of_running(started()), encoding="utf-8")
