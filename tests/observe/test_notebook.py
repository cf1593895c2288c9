"""Live views in a real kernel of Jupyter: they are replaced in place, also from a thread while other cells run."""

from __future__ import annotations

import pytest
from tools.notebooks import notebook_of, run, shown

SETUP = """
from tools.duck_engine import engine_on_duckdb, without_spark

patched = without_spark()
patched.__enter__()
engine = engine_on_duckdb()
engine.execute("CREATE STREAM s (k STRING, v INT);"
               "CREATE QUERY largest AS SELECT k, MAX(v) AS v FROM s [RANGE UNBOUNDED] GROUP BY k")
query = engine.query("largest")
"""

FEED = """
import time

engine.push("s", [(1, ("<i>a</i>", 1)), (2, ("<i>a</i>", 5))])
engine.advance(2)
end = time.monotonic() + 20
while "<i>a</i>  5" not in str(view.picture) and time.monotonic() < end:
    time.sleep(0.05)
time.sleep(0.3)
"""


def test_a_view_in_jupyter(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = notebook_of(
        SETUP,
        "view = query.live(every=0.1)\nview",
        FEED,
        "view",
        "engine.push('s', [(3, ('b', 7))])\nengine.advance(3)\nengine.close()",
        "query",
        "engine",
    )
    run(notebook, monkeypatch, 120)
    _, made, feeding, again, _, query, engine = notebook["cells"]
    (first,), (second,) = shown(made), shown(again)
    assert shown(feeding) == []
    assert first == second, "it stands in two cells, and is replaced in both"
    assert "<td" in first["text/html"]
    assert "&lt;i&gt;a&lt;/i&gt;" in first["text/html"]
    assert "<i>" not in first["text/html"]
    assert first["text/plain"].splitlines()[:4] == [
        "query largest: relation, 4 results in 2 epochs",
        "complete up to 3",
        "nothing holds it back",
        "this view is over: the query has ended",
    ]
    assert first["text/plain"].endswith("k         v\n<i>a</i>  5\nb         7")
    assert "has ended" in shown(query)[0]["text/html"]
    assert "closed" in shown(engine)[0]["text/html"]
