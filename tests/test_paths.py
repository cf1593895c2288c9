"""Paths as users write them: what is judged is what sinks and readers open."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.catalog.entries import Connector
from headgate.check import missing
from headgate.deliver.sinks import files
from headgate.errors import UserError
from headgate.paths import for_spark, local, real
from headgate.permissions import within

SPELLINGS = [
    "{here}/data/in",
    "{here}/data/./in//",
    "{here}/data/other/../in",
    "{here}/link/../in",
    "file:{here}/data/in",
    "file://{here}/data/in",
    "file:/..{here}/data/in",
    "file:/../..{here}/link/../in",
    "data/in",
    "./data/../data/in",
]
NONE = [
    "file:in",
    "file://host/in",
    "file://localhost/in",
    "FILE:/in",
    "File:///in",
    "file:",
    "file://",
    "file:////in",
    "a\0b",
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data/in, and with a link from whose target `..` leads elsewhere than from itself."""
    for folder in ("data/in", "data/other", "in"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "data" / "other")
    (tmp_path / "data" / "in" / "1.txt").write_text("granted\n")
    (tmp_path / "in" / "1.txt").write_text("another\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("text", SPELLINGS)
def test_what_is_judged_is_what_a_sink_opens(text: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = text.format(here=here)
    assert within("json", path, f"{here}/data")
    assert not within("json", path, f"{here}/in")
    monkeypatch.setattr(files, "own_session", lambda session: session)
    nothing: Any = None
    sink = files.FileSink("q", Connector("json", {"path": path}), nothing, here / "state")
    assert sink.folder == here / "data" / "in"
    assert (here / "data" / "in" / "_commits" / "writer.json").exists()
    assert missing(path) is None


@pytest.mark.spark
def test_what_is_judged_is_what_spark_opens(spark: SparkSession, here: Path) -> None:
    for text in SPELLINGS:
        path = text.format(here=here)
        if path.startswith(("/", "file:")):  # Spark's own working folder is another one here
            assert spark.read.text(for_spark(path)).collect()[0].value == "granted", text
    strange = here / "data" / "in" / "%2e%2e" / "in"
    strange.mkdir(parents=True)
    (strange / "1.txt").write_text("strange\n")
    assert spark.read.text(for_spark(str(strange))).collect()[0].value == "strange", "a % stands for itself"


@pytest.mark.parametrize("text", NONE)
def test_what_names_no_folder(text: str) -> None:
    for read in (local, real, for_spark):
        with pytest.raises(UserError, match="bad-path"):
            read(text)
    assert not within("json", text, "/")


def test_addresses_of_other_storage_stay_as_they_are() -> None:
    for address in ("s3a://bucket/in/../x", "hdfs://host:8020/in", "abfss://a@b/c"):
        assert for_spark(address) == address
    assert for_spark("in/*.json") == "in/*.json"
    assert for_spark("file:///in/{a,b}") == "file:/in/{a,b}"
    assert for_spark("file:///in/x") == "file:/in/x"


def test_a_link_that_changes_later_changes_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink writes below the folder that the path led to when it was opened."""
    monkeypatch.setattr(files, "own_session", lambda session: session)
    nothing: Any = None
    sink = files.FileSink("q", Connector("json", {"path": f"{here}/link"}), nothing, here / "state")
    os.unlink(here / "link")
    (here / "link").symlink_to(here / "in")
    assert sink.folder == here / "data" / "other"
