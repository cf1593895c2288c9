"""Who may import what: the compiler and the heartbeats work without Spark, and stay that way."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import headgate

SOURCE = Path(headgate.__file__).parent
WITHOUT_SPARK = ("cql", "plan", "delta", "heartbeat")


def imported(file: Path) -> set[str]:
    """The modules a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_compiler_and_heartbeats_import_no_spark() -> None:
    forbidden = ("pyspark", "headgate.engine", "headgate.runtime", "headgate.sources", "headgate.sinks", "headgate.log")
    for folder in WITHOUT_SPARK:
        for file in sorted((SOURCE / folder).rglob("*.py")):
            assert not [name for name in imported(file) if name.startswith(forbidden)], file


def test_sqlglot_stays_in_cql_and_testing() -> None:
    """And in the two modules of the plan that look into the text of expressions."""
    for file in sorted(SOURCE.rglob("*.py")):
        if file.relative_to(SOURCE).parts[0] in ("cql", "testing"):
            continue
        if file not in (SOURCE / "plan" / "rewrites" / "substitution.py", SOURCE / "plan" / "chains.py"):
            assert not [name for name in imported(file) if name.startswith("sqlglot")], file


def test_explain_and_help_load_no_spark(tmp_path: Path) -> None:
    script = tmp_path / "q.cql"
    script.write_text("CREATE STREAM s (a INT); CREATE QUERY q AS SELECT * FROM s [RANGE 5];")
    for arguments in (["--help"], ["explain", str(script)]):
        code = f"import sys; from headgate.cli import app; app({arguments!r}, standalone_mode=False); assert 'pyspark' not in sys.modules"
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
