"""Runs notebooks in a kernel of Jupyter, as a front end does: pictures that are updated are replaced where they stand."""

from __future__ import annotations

import os
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

import headgate
from tools.places import ROOT


def run(notebook: NotebookNode, monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    """Run all cells; an error in one of them is raised. No cell may take longer than that."""
    package = os.path.dirname(os.path.dirname(headgate.__file__))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([package, str(ROOT / "tests")]))
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    client = NotebookClient(notebook, timeout=seconds, kernel_name="python3", resources={"metadata": {"path": ROOT}})
    client.execute()


def notebook_of(*cells: str) -> NotebookNode:
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])


def shown(cell: NotebookNode) -> list[dict[str, Any]]:
    """What a cell shows, by kind of content."""
    return [dict(output["data"]) for output in cell["outputs"] if "data" in output]
