"""The example notebook, run from its first cell to its last in a kernel of Jupyter."""

from __future__ import annotations

import nbformat
import pytest
from tools.notebooks import run, shown
from tools.places import ROOT

pytestmark = pytest.mark.spark


def test_the_example_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.read(ROOT / "examples/notebook/live.ipynb", 4)
    assert not any(cell.get("outputs") for cell in notebook["cells"]), "it is kept without outputs"
    run(notebook, monkeypatch, 600)
    code = {cell["source"]: shown(cell) for cell in notebook["cells"] if cell["cell_type"] == "code"}

    def of(beginning: str) -> str:
        (found,) = (outputs for source, outputs in code.items() if source.startswith(beginning))
        (output,) = found
        return str(output["text/plain"]) + str(output["text/html"])

    assert ">mean</td>" in of("from headgate import Engine")
    mean = of('engine.query("mean").live')
    assert "this view is over: 5 seconds are over" in mean
    assert ">cellar</td><td" in mean
    held = of("raining.clear()")
    assert "held back by rain, last heard of" in held
    assert "this view is over: 4 seconds are over" in held
    assert "held back by rain" in of('engine.query("wet").why()')
    assert "this view is over: stopped" in of("raining.set()\nwith")
    assert ">cellar</td>" in of("engine.snapshot")
    assert "Engine(2 streams, 2 queries, closed)" in of("engine.close()")
