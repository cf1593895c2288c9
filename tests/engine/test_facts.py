"""Facts of the engine: every kind is read back as it was written, also as earlier versions wrote it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from tools.places import FIXTURES

from headgate.engine.facts import (
    KINDS,
    SUBJECT,
    AggregateRegistered,
    EngineFact,
    Finished,
    HeartbeatsSaved,
    MemberJoined,
    MemberLeft,
    ParameterChanged,
    Paused,
    Punctuated,
    Resumed,
    SensorsDeclared,
    Statement,
    SystemClosed,
    SystemOpened,
    read_fact,
)
from headgate.engine.statements import remembered_statements
from headgate.errors import UserError
from headgate.log.journal import facts
from headgate.sql import Sql

ON_DISK: list[tuple[EngineFact, str]] = [
    (
        Statement("CREATE QUERY q AS SELECT 1", ("SELECT 1",), 5, "q", "q.2", 3),
        '{"statement": {"cql": "CREATE QUERY q AS SELECT 1", "said": ["SELECT 1"], "now": 5, "query": "q",'
        ' "folder": "q.2", "groups": 3}}',
    ),
    (
        Statement("CREATE GROUP g OF q", ("CREATE GROUP g OF q",), 5, folder="g", group="g"),
        '{"statement": {"cql": "CREATE GROUP g OF q", "said": ["CREATE GROUP g OF q"], "now": 5, "query": null,'
        ' "folder": "g", "groups": 0, "group": "g"}, "v": 2}',
    ),
    (
        Statement("select t from P", ("select t from P",), 5, "q1", "q1", language="gsql"),
        '{"statement": {"cql": "select t from P", "said": ["select t from P"], "now": 5, "query": "q1",'
        ' "folder": "q1", "groups": 0, "group": null, "language": "gsql"}, "v": 3}',
    ),
    (ParameterChanged("q", "least", 61, Sql("100")), '{"parameter": ["q", "least", 61, "100"]}'),
    (MemberJoined("q", "family of q", 3, None), '{"joined": ["q", "family of q", 3, null]}'),
    (
        MemberJoined("q", "family of q", 3, 7, ((5, 1), (60, 1))),
        '{"joined": ["q", "family of q", 3, 7, [[5, 1], [60, 1]]], "v": 2}',
    ),
    (MemberLeft("family of q", 3), '{"left": ["family of q", 3]}'),
    (SensorsDeclared("s", {"a": 3}, Fraction(1, 3)), '{"sensors": ["s", {"a": 3}, "1/3"]}'),
    (SensorsDeclared("s", {"a": 3}), '{"sensors": ["s", {"a": 3}, null]}'),
    (AggregateRegistered("spread"), '{"aggregate": "spread"}'),
    (SystemOpened("SYSTEM.late", "system%2Elate", 5), '{"system": ["SYSTEM.late", "system%2Elate", 5]}'),
    (SystemClosed("SYSTEM.late"), '{"unread": "SYSTEM.late"}'),
    (HeartbeatsSaved({"kinds": []}, 5), '{"heartbeats": {"kinds": []}, "now": 5}'),
    (Paused("s", 5), '{"told": ["pause", "s"], "now": 5}'),
    (Resumed("s", 5), '{"told": ["resume", "s"], "now": 5}'),
    (Finished("s", "a", 5), '{"told": ["finish", "s", "a"], "now": 5}'),
    (Punctuated("s", None, 17, 5), '{"told": ["punctuated", "s", null, 17], "now": 5}'),
]


@pytest.mark.parametrize(("fact", "text"), ON_DISK)
def test_a_fact_has_these_words_on_disk(fact: EngineFact, text: str) -> None:
    assert fact.to_json() == json.loads(text)
    assert read_fact(json.loads(text)) == fact


def test_every_kind_is_shown_here() -> None:
    assert {type(fact) for fact, _ in ON_DISK} == set(KINDS.values())


@pytest.mark.parametrize("directory", ["directory-1", "directory-2"])
def test_facts_of_earlier_versions_mean_what_they_did(directory: str) -> None:
    known = [what for subject, what in facts(FIXTURES / directory / "journal") if subject == SUBJECT]
    assert known
    for what in known:
        again = read_fact(what).to_json()
        if "statement" in what:  # the first version knew no groups
            what = {"statement": {"groups": 0, **what["statement"]}}
        assert again == what


def test_directory_2_has_every_kind_that_there_was() -> None:
    known = [what for subject, what in facts(FIXTURES / "directory-2" / "journal") if subject == SUBJECT]
    assert {type(read_fact(what)) for what in known} == set(KINDS.values()) - {
        MemberJoined,
        MemberLeft,
        ParameterChanged,
        SystemOpened,
        SystemClosed,
    }


@pytest.mark.parametrize(
    "what", ['{"rate": 5}', '{"told": ["clear", "s"], "now": 5}', '{"aggregate": "f", "v": 2}', "{}"]
)
def test_what_a_later_version_wrote_is_refused(what: str) -> None:
    with pytest.raises(UserError) as refused:
        read_fact(json.loads(what))
    assert refused.value.code == "other-version"


def test_statements_of_a_directory_are_read_without_an_engine(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    for file in (FIXTURES / "directory-2" / "journal").iterdir():
        (tmp_path / "journal" / file.name).write_bytes(file.read_bytes())
    found = remembered_statements(tmp_path)
    assert "CREATE STREAM u (k STRING, x INT)" in found
    assert [cql for cql in found if "QUERY altered" in cql] == [
        "CREATE QUERY altered AS SELECT ISTREAM(k, v) FROM large WHERE v > 2"
    ]
