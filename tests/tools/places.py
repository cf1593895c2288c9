"""Where tests find files: cases, fixtures, golden files, the project itself."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
CASES = TESTS / "cases"
FIXTURES = TESTS / "fixtures"
GOLDEN = TESTS / "golden"
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"
