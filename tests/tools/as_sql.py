"""Texts of tests as SQL: what a test says is taken for what it is."""

from __future__ import annotations

from typing import cast

from headgate.sql import Sql


def sql(text: str) -> Sql:
    """The text, which mypy is told to be SQL."""
    return cast(Sql, text)
