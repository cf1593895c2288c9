"""The commit of epochs: their results and how far their fragments have come, in one line of the journal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headgate.execute.prepared import Written
from headgate.log.chunk import Chunk
from headgate.log.log import Log
from headgate.schedule.query import RunningQuery


def commit(epochs: Sequence[tuple[RunningQuery, Written]]) -> list[int]:
    """Make what epochs of different fragments have written count, all or nothing; return how many rows each has.

    The results of a fragment that gives the answer go to the query's outbox, those of another to the log that its
    readers read. They are there exactly when the fragment has got so far. What a query was computed by before it was
    divided in another way does not count.
    """
    before = [_log(query, written).rows for query, written in epochs]
    pieces = [_pieces(query, written) if written.fragment.output is None else [] for query, written in epochs]
    kept: list[list[Chunk]] = []
    with epochs[0][0].outbox.journal.together():
        for (query, written), some in zip(epochs, pieces, strict=True):
            if written.fragment not in query.fragments:
                kept.append([])
                continue
            kept.append(_put(query, written, some))
            written.fragment.journal.record(written.fragment.subject, _progress(query, written))
    rows = [_log(query, written).rows - count for (query, written), count in zip(epochs, before, strict=True)]
    for (query, written), count, chunks in zip(epochs, rows, kept, strict=True):
        written.fragment.committed(written, count)
        query.notify(chunks)
    return rows


def _log(query: RunningQuery, written: Written) -> Log:
    return query.outbox.log if written.fragment.output is None else written.fragment.output


def _put(query: RunningQuery, written: Written, pieces: list[list[Path]]) -> list[Chunk]:
    """Give the files to the outbox or to the fragment's log; return the chunks that the outbox has of them."""
    fragment = written.fragment
    if fragment.output is not None:
        fragment.output.adopt(written.files)
        return []
    others = [one.after for one in query.answers if one is not fragment]
    after, until = min([written.after, *others]), min([written.until, *others])
    return query.outbox.put(pieces, after, until, query.tuples({fragment: written.tuples}))


def _progress(query: RunningQuery, written: Written) -> dict[str, Any]:
    """Return what the journal is to say of the fragment: of an answer, also from how many tuples all of it comes.

    The fragments that it reads may have advanced without an epoch, of which the journal knows nothing.
    """
    tuples = query.tuples({written.fragment: written.tuples}) if written.fragment.output is None else {}
    return {**written.progress, "tuples": tuples} if tuples and "tuples" in written.progress else written.progress


def _pieces(query: RunningQuery, written: Written) -> list[list[Path]]:
    """Return the files as they are to go out. Splitting a large epoch is a Spark job, and may fail."""
    fragment = written.fragment
    try:
        return query.outbox.split(written.files, fragment.workspaces.large.session, written.in_order)
    except Exception as error:
        raise fragment.failure(error, written.after, written.until) from error
