"""Secrets are shown nowhere: which option names are secret, where values end, and that places still point at it."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tools.duck_engine import engine_on_duckdb, killed, without_spark
from tools.served import say, served

from headgate import Engine
from headgate.catalog.entries import Query
from headgate.deliver.sinks import webhook
from headgate.errors import Place, UserError, report
from headgate.masking import SPARK, at, is_secret, masked
from headgate.observe.logs import JsonLines, TextLines
from headgate.spark.session import own_session

LEAK = "hunter2"
STREAM = "CREATE STREAM s (k STRING, x INT);"
SINK = (
    "INTO webhook OPTIONS ('url' = 'https://ann:hunter2@example.org/h?token=hunter2', "
    "'header.Authorization' = 'Bearer hunter2', 'header.X-Key' = 'hunter2', \"header.Accept\" = 'text/plain')"
)
QUERY = f"CREATE QUERY q AS SELECT ISTREAM(k, x) FROM s [NOW] WHERE k <> 'jdbc:x://ann:{LEAK}@h/db' {SINK};"


@pytest.mark.parametrize(
    "name",
    """password user_password PASSWORD kafka.ssl.keystore.password kafka.sasl.jaas.config token api_key apiKey
    fs.s3a.secret.key fs.s3a.access.key header.Authorization header.X-Anything header.Cookie credentials""".split(),
)
def test_secret_options(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", "path url key user dbtable header header.Accept topic deliver sep".split())
def test_options_that_are_shown(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    "text, shown",
    [
        ("OPTIONS ('password' = 'hunter2', 'path' = 'x')", "OPTIONS ('password' = '***', 'path' = 'x')"),
        ("OPTIONS (password = hunter2)", "OPTIONS (password = ***)"),
        ('OPTIONS ("password" = "hunter2")', 'OPTIONS ("password" = "***")'),
        ("'password'='it''s hunter2'", "'password'='***'"),
        (r"'password' = 'hunter2\'s', 'x' = 'y'", r"'password' = '***', 'x' = 'y'"),
        ("'password' /* here */ = -- so\n 'hunter2'", "'password' /* here */ = -- so\n '***'"),
        ("'password' = 'hunter2", "'password' = '***'"),
        ("'password' = 'hunter2\\", "'password' = '***'"),
        ("'kafka.sasl.jaas.config' = 'a required password=\"hunter2\";'", "'kafka.sasl.jaas.config' = '***'"),
        (
            'org.apache.Plain required username="a" password="hunter2";',
            'org.apache.Plain required username="a" password="***";',
        ),
        ("'url' = 'jdbc:postgresql://ann:hunter2@h/db'", "'url' = 'jdbc:postgresql://ann:***@h/db'"),
        (
            "'url' = 'jdbc:postgresql://h/db?user=ann&password=hunter2'",
            "'url' = 'jdbc:postgresql://h/db?user=ann&password=***'",
        ),
        (
            "'url' = 'jdbc:sqlserver://h;user=a;password=hunter2;x=y'",
            "'url' = 'jdbc:sqlserver://h;user=a;password=***;x=y'",
        ),
        ("'url' = 'jdbc:oracle:thin:ann/hunter2@h'", "'url' = 'jdbc:oracle:thin:***@h'"),
        ("no suitable driver for jdbc:x://a:hunter2@h", "no suitable driver for jdbc:x://a:***@h"),
        ("SET token_period = '5 SECONDS'", "SET token_period = '5 SECONDS'"),
        ("SELECT token, password FROM s WHERE `token` = 'a'", "SELECT token, password FROM s WHERE `token` = 'a'"),
        ("SELECT token = other FROM s", "SELECT token = other FROM s"),
        ("'password'", "'password'"),
        ("'password' =", "'password' ="),
        ("", ""),
    ],
)
def test_what_is_masked(text: str, shown: str) -> None:
    assert masked(text) == shown
    assert masked(shown) == shown


def test_a_place_points_at_the_same_words() -> None:
    text = "CREATE QUERY q\nINTO jdbc OPTIONS ('password' = 'a very long hunter2', 'wrong' = 'x', 'token' = 'y')"
    for word in ("INTO", "'wrong'", "'x'", "'token'", "CREATE"):
        start = text.index(word)
        shown, begin, end = at(text, start, start + len(word))
        assert shown[begin:end] == word
        line, carets = Place(text, start, start + len(word)).caret().splitlines()
        assert line[carets.index("^") :].startswith(word)
        assert carets.count("^") == len(word)
    secret = text.index("very")
    error = UserError("wrong", "this is wrong", place=Place(text, secret, secret + 4), detail=f"'password' = '{LEAK}'")
    assert LEAK not in error.render() + str(error) + repr(error)
    assert "very" not in error.render()
    assert "^" in error.render()


def test_long_texts_are_masked_in_linear_time() -> None:
    began = time.monotonic()
    for text in (
        "password" * 8_000,
        "'" * 64_000,
        "a." * 32_000 + "password",
        "://" * 20_000,
        "&" * 64_000 + "token",
        "/*" * 30_000 + "token",
    ):
        masked(text)
    assert time.monotonic() - began < 10


def test_what_is_logged() -> None:
    record = logging.LogRecord("headgate", logging.ERROR, "", 1, "wrong: 'password' = 'hunter2'", (), None)
    try:
        raise ValueError("jdbc:x://a:hunter2@h")
    except ValueError as error:
        record.exc_info = (type(error), error, error.__traceback__)
        assert LEAK not in report(error)
    for lines in (JsonLines(), TextLines()):
        assert LEAK not in lines.format(record)
    assert json.loads(JsonLines().format(record))["message"] == "wrong: 'password' = '***'"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setattr(webhook, "own_session", lambda session: session)
    with without_spark(), engine_on_duckdb(tmp_path / "state") as engine:
        yield engine


def test_nothing_that_is_shown_has_a_secret(engine: Engine, tmp_path: Path) -> None:
    engine.execute(STREAM)
    with served(engine, allow=("webhook",)) as asking:
        answers = [say(asking, QUERY)]
        answers += [
            say(asking, text)
            for text in ("SHOW QUERIES;", "WHY q;", f"EXPLAIN SELECT k FROM s [NOW] WHERE k <> 'x://a:{LEAK}@h';")
        ]
        answers += [
            asking.get(path) for path in ("/status", "/metrics", "/queries/q", "/queries/q/explain", "/queries/q/why")
        ]
        wrong = [
            QUERY.replace("QUERY q", "QUERY p")
            .replace("'header.Accept'", "wrong")
            .replace('"header.Accept"', "'wrong'"),
            QUERY.replace("QUERY q", "QUERY p").replace("ISTREAM(k", "ISTREAM(nothing"),
            f"CREATE QUERY p AS SELECT k FROM s [NOW] INTO jdbc OPTIONS ('url' = 'x://a:{LEAK}@h', 'dbtable' = 't', 'password' = '{LEAK}')",
            f"CREATE QUERY p AS SELECT k FROM s [NOW] INTO webhook OPTIONS ('header.X-Key' = '{LEAK}",
        ]
        refused = [say(asking, text) for text in wrong]
    assert [one.status_code for one in answers] == [200] * len(answers)
    assert all(400 <= one.status_code < 500 for one in refused), [one.text for one in refused]
    assert not [one.text for one in (*answers, *refused) if LEAK in one.text]
    assert "***" in asking_text(engine)
    query = engine.query("q")
    for shown in (
        repr(query),
        str(query),
        query._repr_html_(),
        repr(query.definition),
        query.definition._repr_html_(),
        query.explain(),
    ):
        assert LEAK not in shown
    running = engine.catalog.queries["q"]
    assert isinstance(running, Query)
    assert running.connector is not None
    assert running.connector.options["header.X-Key"] == LEAK, "the sink needs the words themselves"
    with killed(engine, tmp_path / "state") as later:
        again = later.catalog.queries["q"]
        assert again.connector is not None
        assert again.connector.options["header.Authorization"] == f"Bearer {LEAK}", "and so does the next start"


def asking_text(engine: Engine) -> str:
    """What the status says of the query."""
    return engine.overview().queries["q"].text


def test_a_masked_text_is_no_statement(engine: Engine) -> None:
    """What the console or SHOW has shown has lost its secrets; to take it would replace them by asterisks."""
    engine.execute(STREAM + QUERY)
    with pytest.raises(UserError, match="masked: a secret is masked here") as refused:
        engine.execute(f"ALTER QUERY q AS {asking_text(engine)}")
    assert refused.value.place is not None


@pytest.mark.spark
def test_spark_shows_no_secrets(spark: SparkSession) -> None:
    session: Any = own_session(spark)
    given = {"password": LEAK, "url": f"jdbc:x://a:{LEAK}@h", "kafka.sasl.jaas.config": LEAK, "dbtable": "t"}
    conf = session._jsparkSession.sessionState().conf()
    shown = conf.redactOptions(session._jvm.PythonUtils.toScalaMap(given)).toString()
    assert LEAK not in shown
    assert "t" in shown
    assert session._jvm.java.util.regex.Pattern.compile(SPARK) is not None
