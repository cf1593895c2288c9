"""Settings: every field has a row, every row can be set and shown, and the page says what the table says."""

from __future__ import annotations

from dataclasses import fields

import pytest
from tools.places import DOCS

from headgate.errors import UserError
from headgate.settings import TABLE, Settings, changed, listed, page


def test_every_field_has_one_row() -> None:
    assert sorted(row.field for row in TABLE.values()) == sorted(field.name for field in fields(Settings))


def test_a_default_that_is_shown_can_be_set_again() -> None:
    for name, value, _ in listed(Settings()):
        if TABLE[name].read is not None:
            assert changed(Settings(), name.upper(), value) == Settings()


@pytest.mark.parametrize("name", [row.name for row in TABLE.values() if row.read is not None])
def test_a_value_that_means_nothing_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="bad-setting"):
        changed(Settings(), name, "-")


def test_the_page_is_the_table() -> None:
    """`python -m headgate.settings > docs/settings.md` writes it anew."""
    assert (DOCS / "settings.md").read_text(encoding="utf-8") == page()
