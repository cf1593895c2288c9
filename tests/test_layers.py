"""Who may import what: one order over all packages, and no Spark in the compiler or the time manager."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import headgate

SOURCE = Path(headgate.__file__).parent

LAYERS = """
    masking errors texts paths ticks sql scope table permissions settings
    consistency
    log
    spark
    plan
    packets
    catalog
    gsql
    cql
    editing
    heartbeat
    delta
    explain
    compile
    planning
    sources
    execute
    check
    deliver
    observe
    schedule
    server
    engine
    demo testing shell bench top
    cli
"""
"""From the bottom to the top. A module imports from lines above its own, and from its own package."""

WITHOUT_SPARK = (
    "consistency",
    "plan",
    "catalog",
    "gsql",
    "cql",
    "heartbeat",
    "delta",
    "log",
    "explain",
    "compile",
    "planning",
    "editing",
)


BORDER = ("spark/statements.py",)
"""The modules that hand texts to Spark."""

TAKES_TEXT = ("sql", "selectExpr", "expr", "where")
"""Methods and functions of Spark that read SQL."""


def rank_of() -> dict[str, int]:
    return {name: rank for rank, line in enumerate(LAYERS.strip().splitlines()) for name in line.split()}


def imported(file: Path) -> set[str]:
    """The modules that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "headgate":
            found |= {f"headgate.{alias.name}" for alias in node.names if alias.name != "__version__"}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def package_of(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def files() -> list[Path]:
    return sorted(file for file in SOURCE.rglob("*.py") if file.parent != SOURCE or file.stem != "__init__")


def test_packages_import_in_one_order() -> None:
    ranks = rank_of()
    shared = LAYERS.split()[: len(LAYERS.strip().splitlines()[0].split())]
    wrong = []
    for file in files():
        own = package_of(file)
        assert own in ranks, f"{own} has no place in the order"
        for module in imported(file):
            other = module.split(".")[1] if module.startswith("headgate.") else None
            if other is None or other == own or (own in shared and other in shared):
                continue
            if other not in ranks or ranks[other] >= ranks[own]:
                wrong.append(f"{file.relative_to(SOURCE)} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_shared_words_import_each_other_in_one_order() -> None:
    shared = LAYERS.strip().splitlines()[0].split()
    for place, name in enumerate(shared):
        later = {f"headgate.{other}" for other in shared[place:]}
        own = SOURCE / name
        for file in sorted(own.glob("*.py")) if own.is_dir() else [own.with_suffix(".py")]:
            assert not later & imported(file) - {f"headgate.{name}"}, file


def test_compiler_and_heartbeats_import_no_spark() -> None:
    for file in files():
        if package_of(file) in WITHOUT_SPARK:
            assert not [name for name in imported(file) if name.startswith(("pyspark", "headgate.spark"))], file


def test_sqlglot_stays_in_cql_and_testing() -> None:
    """And in the four modules of the plan that look into the text of expressions."""
    looking = ("rewrites/substitution.py", "chains.py", "comparisons.py", "distances.py", "prefilter.py")
    reading = {SOURCE / "plan" / name for name in looking}
    for file in files():
        if package_of(file) in ("sql", "cql", "testing"):
            continue
        if file not in reading:
            assert not [name for name in imported(file) if name.startswith("sqlglot")], file


def calls(file: Path) -> list[ast.Call]:
    """The calls in a file that have arguments."""
    return [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call) and node.args]


def test_texts_reach_spark_in_one_module() -> None:
    """mypy sees to it that they are `Sql` there. What measures Spark, or tests without it, has texts of its own."""
    for file in files():
        if package_of(file) in (*WITHOUT_SPARK, "sql", "bench", "testing") or str(file.relative_to(SOURCE)) in BORDER:
            continue
        for call in calls(file):
            of_numpy = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "np"
            called = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
            assert called not in TAKES_TEXT or of_numpy, f"{file}:{call.lineno}: {ast.unparse(call)}"


def test_only_the_package_sql_makes_sql_of_other_texts() -> None:
    """By `cast`, by `Sql` over something else than a literal or an f-string, and by printing a tree for Spark."""
    for file in files():
        if package_of(file) in ("sql", "testing"):
            continue
        for call in calls(file):
            if ast.unparse(call.func) == "Sql":
                wrong = not isinstance(call.args[0], ast.Constant | ast.JoinedStr)
            elif isinstance(call.func, ast.Attribute) and call.func.attr == "sql":
                wrong = any(isinstance(argument, ast.Constant) and argument.value == "spark" for argument in call.args)
            else:
                wrong = ast.unparse(call.args[0]) == "Sql"
            assert not wrong, f"{file}:{call.lineno}: {ast.unparse(call)}"


def test_explain_and_help_load_no_spark(tmp_path: Path) -> None:
    script = tmp_path / "q.cql"
    script.write_text("CREATE STREAM s (a INT); CREATE QUERY q AS SELECT * FROM s [RANGE 5];")
    for arguments in (["--help"], ["explain", str(script)]):
        code = f"import sys; from headgate.cli import app; app({arguments!r}, standalone_mode=False); assert 'pyspark' not in sys.modules"
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
