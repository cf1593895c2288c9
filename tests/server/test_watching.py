"""What a server says of itself: status, metrics, logs. Epochs run in DuckDB."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tools.duck_engine import engine_on_duckdb, without_spark
from tools.places import DOCS
from tools.served import say, served

from headgate import Engine
from headgate.observe.logs import configure
from headgate.observe.rates import Rates

SCRIPT = """
CREATE STREAM a (k STRING, v INT, at TIMESTAMP) TIMESTAMP BY at;
CREATE STREAM b (k STRING, v INT, at TIMESTAMP) TIMESTAMP BY at;
CREATE QUERY sums AS SELECT a.k, a.v, b.v AS w FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE] WHERE a.k = b.k;
CREATE QUERY plain AS SELECT ISTREAM(k, v) FROM a [NOW] WHERE v > 1;
"""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with without_spark(), engine_on_duckdb(tmp_path) as engine:
        engine.execute(SCRIPT)
        yield engine


def fill(engine: Engine) -> None:
    """Feed `a` alone: the join waits for `b`, `plain` does not."""
    rows = [{"k": "x", "v": at, "at": f"2026-01-31T12:00:{at:02d}Z"} for at in range(10)]
    engine.push("a", [*rows, {"k": "x", "v": "?", "at": "2026-01-31T12:00:00Z"}])
    engine.push("b", [{"k": "x", "v": 7, "at": "2026-01-31T12:00:03Z"}])
    engine.punctuate("a", "2026-01-31T12:00:09Z")
    engine.step()


def test_tuples_that_no_query_needs_are_no_dead_letters(tmp_path: Path) -> None:
    with without_spark(), engine_on_duckdb(tmp_path) as engine:
        engine.execute(f"SET low_level = 'on'; {SCRIPT}; DROP QUERY sums")
        fill(engine)
        with served(engine) as asking:
            said = asking.get("/status").json()["streams"]["a"]
        assert engine.counts("a")["unneeded"] == 2
        assert (said["taken"], said["dead"]) == (10, {"malformed": 1})


def test_the_status_is_a_picture_of_the_plan(engine: Engine) -> None:
    fill(engine)
    with served(engine) as asking:
        said = asking.get("/status").json()
    a, join = said["streams"]["a"], said["queries"]["sums"]
    assert (a["taken"], a["dead"], a["connector"]) == (10, {"malformed": 1}, None)
    assert a["columns"] == {"k": "STRING", "v": "INT", "at": "TIMESTAMP"}
    assert join["why"]["held_by"] == "b"
    assert "held back by b" in join["why"]["text"]
    (name,) = join["fragments"]
    fragment = said["fragments"][name]
    assert set(fragment["reads"]) == {"a", "b"}
    assert fragment["reads"]["a"] > 0, "rows wait on this edge"
    assert fragment["queries"] == ["sums"]
    assert name in said["logs"]["a"]["read_by"]
    assert said["logs"]["a"]["rows"] == 10
    assert json.dumps(fragment["plan"]).count('"operator": "stream') == 2
    assert join["sink"]["kind"] == "memory"
    plain = said["queries"]["plain"]
    assert (plain["results"], plain["why"]["held_by"]) == (8, "")
    assert said["running"] is False, "it is stepped by hand"
    assert said["settings"]["heartbeats"] == "query"


def test_metrics_keep_the_conventions(engine: Engine) -> None:
    fill(engine)
    with served(engine) as asking:
        say(asking, "SELECT nonsense")
        answer = asking.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    families = list(text_string_to_metric_families(answer.text))
    ours = [one for one in families if one.name.startswith("headgate_")]
    assert len(ours) > 20
    for one in ours:
        assert one.documentation.endswith("."), one.name
        assert re.fullmatch(r"headgate(_[a-z]+)+", one.name)
        assert not re.search(r"_(milliseconds|ms|us|kb|mb)\b", one.name), "base units only"
        if one.type == "counter":
            assert all(sample.name.endswith("_total") for sample in one.samples)
        labels = {label for sample in one.samples for label in sample.labels}
        assert labels <= {
            "stream",
            "reason",
            "log",
            "fragment",
            "query",
            "kind",
            "version",
            "method",
            "route",
            "status",
            "le",
        }
    values = {
        (one.name, *dict(sorted(one.labels.items())).values()): one.value
        for family in families
        for one in family.samples
    }
    assert values["headgate_stream_tuples_total", "a"] == 10
    assert values["headgate_stream_dead_letters_total", "malformed", "a"] == 1
    assert values["headgate_query_results_total", "plain"] == 8
    assert values["headgate_query_held_back", "sums"] == 1
    assert values["headgate_query_held_back", "plain"] == 0
    assert values["headgate_stream_heartbeat_timestamp_seconds", "b"] == pytest.approx(1769860802.999999)
    assert values["headgate_http_requests_total", "POST", "/statements", "400"] == 1
    assert not [key for key in values if "SELECT" in str(key)]


def test_labels_are_bounded(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.server.metrics.NAMES", 2)
    engine.execute("CREATE STREAM c (v INT); CREATE STREAM d (v INT);")
    with served(engine) as asking:
        for number in range(30):
            asking.get(f"/nowhere/{number}")
        text = asking.get("/metrics").text
    assert 'headgate_unlisted{kind="stream"} 2.0' in text
    assert 'stream="c"' not in text
    assert 'headgate_http_requests_total{method="GET",route="none",status="404"} 30.0' in text


def test_the_dashboard_asks_for_metrics_that_are_there(engine: Engine) -> None:
    board = json.loads((DOCS / "grafana.json").read_text())
    with served(engine) as asking:
        asking.get("/status")
        families = list(text_string_to_metric_families(asking.get("/metrics").text))
    known = {one.name for one in families} | {sample.name for one in families for sample in one.samples}
    known |= {f"{one.name}_total" for one in families if one.type == "counter"}
    texts = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    texts += [one["query"]["query"] for one in board["templating"]["list"] if one["type"] == "query"]
    asked = {name for text in texts for name in re.findall(r"\b(?:headgate|process)_[a-z_]+", text)}
    assert len(asked) > 15
    assert asked <= known
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(set(numbers)) == len(numbers)
    for panel in board["panels"]:
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
        assert panel["type"] in ("stat", "timeseries")
        assert panel["datasource"]["uid"] == "${datasource}"


def test_rates() -> None:
    rates = Rates()
    assert rates.sample({"a": 0, "b": 5}, 0) == {}
    assert rates.sample({"a": 10, "b": 5}, 2_000_000) == {"a": 5.0, "b": 0.0}
    assert rates.sample({"a": 10, "b": 0, "c": 9}, 4_000_000) == {"a": 2.5}, "b began anew, c is new"
    for second in range(5, 30):
        found = rates.sample({"a": 10 + 3 * (second - 4)}, second * 1_000_000)
    assert found == {"a": 3.0}, "the average over the last seconds"
    assert len(rates._samples) < 20


def test_logs_are_lines_of_json_and_keep_secrets(engine: Engine) -> None:
    written = io.StringIO()
    loggers = [logging.getLogger(name) for name in ("headgate", "uvicorn")]
    before = [(one.handlers, one.propagate, one.level) for one in loggers]
    try:
        configure("json", "info", written)
        with served(engine, token="a-token-of-a-test") as asking:
            asking.headers["Authorization"] = "Bearer a-token-of-a-test"
            say(asking, "CREATE STREAM x (a INT) TIMESTAMP BY a FROM csv OPTIONS ('path' = '/hidden');")
            asking.get("/streams/of-secret-name")
        logging.getLogger("headgate.engine").warning("a query failed\nbadly")
    finally:
        for one, (handlers, propagate, level) in zip(loggers, before, strict=True):
            one.handlers, one.propagate = handlers, propagate
            one.setLevel(level)
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [line["message"] for line in lines] == ["statements", "request", "request", "a query failed\nbadly"]
    assert lines[0]["error"] == "not-allowed"
    assert (lines[1]["route"], lines[1]["status"], lines[1]["client"]) == ("/statements", 403, "127.0.0.1")
    for secret in ("a-token", "hidden", "of-secret-name"):
        assert secret not in written.getvalue()
