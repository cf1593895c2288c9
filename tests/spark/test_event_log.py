"""Spark's own interface and event log: they show how rows are written to a database, and not by which password."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from urllib.request import urlopen
from headgate import Engine
from headgate.spark.session import started

here = sys.argv[1]
log = {"enabled": "true", "dir": f"file:{here}", "compress": "false", "rolling.enabled": "false"}
settings = {f"spark.eventLog.{key}": value for key, value in log.items()}
spark = started("local[2]", {**settings, "spark.ui.enabled": "true", "spark.ui.port": "0"})
url = f"jdbc:derby:memory:x;create=true;password=hunter2"
with Engine(spark) as engine:
    engine.execute("CREATE STREAM s (k STRING, x INT);")
    engine.execute(
        "CREATE QUERY q AS SELECT ISTREAM(k, x) FROM s [NOW] INTO jdbc "
        f"OPTIONS ('url' = '{url}', 'dbtable' = 't', 'user' = 'ann', 'password' = 'hunter2');"
    )
    engine.push("s", [(1, ("a", 1))])
    engine.advance(1)
    engine.step()
    assert engine.query("q").delivered == 1
    about = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}"
    for page in ("environment", "sql?details=true&planDescription=true"):
        shown = urlopen(f"{about}/{page}", timeout=30).read().decode()
        assert len(shown) > 1000
        assert "hunter2" not in shown, page
spark.stop()
"""


@pytest.mark.spark
def test_no_password_is_in_spark_s_event_log(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (log,) = [file for file in tmp_path.iterdir() if file.name.startswith("local-")]
    text = log.read_text(encoding="utf-8", errors="replace")
    assert "jdbc" in text.lower()
    assert "hunter2" not in text
