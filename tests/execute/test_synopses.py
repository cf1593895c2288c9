"""Synopses on disk: the version that counts, and what is left of others. Writing them is Spark's, see test_epochs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.errors import UserError
from headgate.execute.synopses import SynopsisStore, listed_synopses
from headgate.log.chunk import Chunk, sized


def fact(store: SynopsisStore, version: int) -> dict[str, object]:
    """A version with one file, as the journal would have it."""
    folder = store.folder(version)
    file = folder / "_synopsis=sums" / "part-0.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(pa.table({"n": [version]}), file)
    listed = listed_synopses(folder, {"sums": [sized(Chunk(file, 1, 0, 0))]})
    return {"version": version, "synopses": listed, "synopsis_rows": 1, "shapes": {}}


def test_the_journal_says_which_version_counts(tmp_path: Path) -> None:
    store = SynopsisStore(tmp_path)
    assert store.state() == {}, "before the first version there is nothing to say"
    first, second = fact(store, 1), fact(store, 2)
    store.apply(first)
    assert store.state() == first
    store.discard_next()
    assert not store.folder(2).exists()
    assert store.folder(1).exists()
    second = fact(store, 2)
    store.apply(second)
    store.delete_others()
    assert [folder.name for folder in store.folder(2).parent.iterdir()] == ["000000000002"]
    again = SynopsisStore(tmp_path)
    again.apply(store.state())
    assert (again.version, again.rows, again.state()) == (2, 1, second)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    store = SynopsisStore(tmp_path)
    store.apply(fact(store, 1))
    store.check()
    (chunk,) = store.files["sums"]
    chunk.path.unlink()
    with pytest.raises(UserError, match=r"part-0\.parquet"):
        store.check()
