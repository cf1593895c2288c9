"""The commit of an epoch: its results and how far its fragment has come, in one line of the journal."""

from __future__ import annotations

from pathlib import Path

from headgate.execute.fragment import Written
from headgate.log.chunk import Chunk
from headgate.schedule.query import RunningQuery


def commit(query: RunningQuery, written: Written) -> int:
    """Make what an epoch has written count; return how many rows that are.

    The results of a fragment that gives the answer go to the query's outbox, those of another to the log that its
    readers read. They are there exactly when the fragment has got so far.
    """
    fragment, outbox = written.fragment, query.outbox
    log = outbox.log if fragment.output is None else fragment.output
    before, kept = log.rows, list[Chunk]()
    pieces = _pieces(query, written) if fragment.output is None else []
    others = [one.after for one in query.answers if one is not fragment]
    with outbox.journal.together():
        if fragment.output is None:
            kept = outbox.put(pieces, min([written.after, *others]), min([written.until, *others]))
        else:
            fragment.output.adopt(written.files)
        fragment.journal.record(fragment.subject, written.progress)
    rows = log.rows - before
    fragment.committed(written, rows)
    query.notify(kept)
    return rows


def _pieces(query: RunningQuery, written: Written) -> list[list[Path]]:
    """Return the files as they are to go out. Splitting a large epoch is a Spark job, and may fail."""
    fragment = written.fragment
    try:
        return query.outbox.split(written.files, fragment.workspace.session)
    except Exception as error:
        raise fragment.failure(error, written.after, written.until) from error
