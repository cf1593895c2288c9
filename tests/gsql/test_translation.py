"""The CQL that GSQL amounts to, and every mistake in GSQL with the whole text of the error, in two golden files.

`PYTHONPATH=tests python tests/gsql/test_translation.py` writes them anew; read the difference before committing it.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st
from tools.places import GOLDEN

from headgate.catalog.catalog import Catalog
from headgate.catalog.entries import Query, Stream, View
from headgate.compile import compile_script
from headgate.cql.definitions import Explanation, define
from headgate.cql.readers import files_read, formats
from headgate.errors import UserError
from headgate.gsql.tokens import spans

TRANSLATED = GOLDEN / "gsql.txt"
MISTAKEN = GOLDEN / "gsql_errors.txt"

SCHEMA = """SET dialect = 'gsql';
PROTOCOL base { uint time get_time (increasing, required, snap_len 0); }
PROTOCOL TCP (base) { IP srcIP get_src; IP destIP; ushort destPort; uint len; bool syn; string payload; }
PROTOCOL LOGS { timeval at (banded_increasing 5); string host; float cpu; llong seq (strictly_increasing, nonrepeating); }
PROTOCOL V6 (base) { IPV6 addr; int left (decreasing); }
CREATE STREAM eth0.TCP;
CREATE STREAM eth1.TCP DISORDER 3;
CREATE STREAM LOGS;
CREATE STREAM V6;
CREATE INTERFACE SET both OF eth0, eth1;
SET dialect = 'cql';
CREATE VIEW smoothed AS SELECT time, len * 2 AS len FROM eth0_TCP;
CREATE RELATION owners (host STRING, owner STRING);
SET dialect = 'gsql';
"""

TEXTS = [
    "CREATE STREAM 'h1.lab'.eth2.TCP SOURCE BY srcIP FROM csv OPTIONS ('path' = 'in/tcp')",
    "DEFINE { query_name 'web'; } select time, srcIP, len from eth0.TCP where destPort = 80 or destPort = 443",
    "select time, payload from TCP where str_match_start[payload, 'GET'] and len > 40",
    "select tb, srcIP, count(*) as cnt, sum(len) from eth0.TCP group by time/60 as tb, srcIP having count(*) > 1",
    "DEFINE { query_name 'per_web'; } select tb, count(*) as n, max(srcIP) from web group by time/60 as tb",
    "DEFINE { query_name 'hidden'; visibility 'internal'; } select time, len from [both].TCP",
    "select t, sum(len) from hidden group by time/10 as t",
    "DEFINE { query_name 'm'; } MERGE R.time : S.time FROM eth0.TCP R, eth1.TCP S",
    "select A.time, A.len, B.len INNER_JOIN from eth0.TCP A, eth1.TCP B where A.time = B.time and A.srcIP = B.destIP",
    "select A.time, B.len, A.srcIP, B.payload OUTER_JOIN from eth0.TCP A, eth1.TCP B "
    "where A.time = B.time and A.srcIP = B.srcIP and B.len > 5 and A.len < B.len",
    "select A.time, B.syn LEFT_OUTER_JOIN from web A, m B where A.time/2 = B.time/2 + 1",
    "select A.len, B.time, B.srcIP RIGHT_OUTER_JOIN from web A, m B where A.time = B.time",
    "select tb, srcIP, count(*), sum$(len) from TCP group by time/60 as tb, srcIP supergroup tb having sum(len) * 10 > sum$(len)",
    "select tb, srcIP, destIP, count(*) from eth0.TCP group by time/60 as tb, ROLLUP(srcIP, destIP)",
    "select tb, destPort, syn, count(*) from eth0.TCP group by time/60 as tb, CUBE(destPort, syn)",
    "select tb, destPort, syn, count(*) from eth0.TCP group by time/60 as tb, GROUPING_SETS((destPort), (destPort, syn), ())",
    "select time, len & 7 | 1, len << 2, ~len, -len + 1, (len - 1) - (2 - len), !syn from TCP",
    "select time, srcIP & IP_VAL'255.255.255.0' as net, UINT(srcIP), IP(len) from TCP where srcIP > IP_VAL'10.0.0.0'",
    "select tb, min(srcIP), And_Aggr(len), Or_Aggr(syn), Xor_Aggr(syn), sum(syn), avg(len) from TCP group by time/60 as tb",
    "select time, len from TCP where destPort in [80, 443] and not srcIP in [IP_VAL'1.1.1.1'] and payload <> 'it''s'",
    "DEFINE { query_name 'c'; port '53'; } select time from TCP where destPort = #port and len > HEX'ff' and syn = TRUE",
    "DEFINE { query_name 'p'; } PARAM { least uint = 100; who string = 'a'; } select time, len from eth0.TCP "
    "where len >= $least and payload <> $who",
    "DEFINE { query_name 'h'; } PARAM { uint n = 5; } select tb, srcIP, count(*) from eth0.TCP "
    "group by time/60 as tb, srcIP having count(*) > $n",
    "select at, cpu / 2, host from LOGS where at > TIMEVAL'1400000000.5' and cpu < 0.5 and at < TIMEVAL'2030-01-01 00:00:00'",
    "select part, count(*) from LOGS group by seq/100 as part",
    "select l, count(*) from V6 where addr = IPV6_VAL'::1' group by left/10 as l",
    "select time, my_function(len, 2) from smoothed where my_predicate[len, 'x']",
    "DEFINE { query_name 'kept'; } select time, len from smoothed INTO parquet OPTIONS ('path' = 'out')",
    "EXPLAIN select tb, count(*) from smoothed group by time/60 as tb",
    "-- a comment\nselect time // another\nfrom eth0.TCP /* and one more */",
]

MISTAKES = [
    "selec time from TCP",
    "select time form TCP",
    "select * from TCP",
    "select time from TCP where",
    "select time from TCP where len >",
    "select time, from TCP",
    "select time from TCP extra words",
    "select time from TCP where payload = 'open",
    "select time from TCP where len ? 3",
    "select tme from TCP",
    "select X.time from TCP",
    "select time from UDP",
    "select time from eth9.TCP",
    "select time from eth0.UDP",
    "select time from [nowhere].TCP",
    "select time from TCP, TCP",
    "select host from owners",
    "select len INNER_JOIN from eth0.TCP A, eth1.TCP B where A.time = B.time",
    "select tb, count(*) from TCP group by len/60 as tb",
    "select count(*) from TCP",
    "select tb, count(*) from TCP group by time/60",
    "select tb, len, count(*) from TCP group by time/60 as tb",
    "select tb, count(*) from TCP where count(*) > 1 group by time/60 as tb",
    "select A.time INNER_JOIN from eth0.TCP A, eth1.TCP B where A.len = B.len",
    "select A.time OUTER_JOIN from eth0.TCP A, eth1.TCP B where A.len > 5",
    "select time OUTER_JOIN from eth0.TCP",
    "select A.time, B.time, C.time OUTER_JOIN from eth0.TCP A, eth1.TCP B, m C where A.time = B.time",
    "select time from TCP where len",
    "select time from TCP where len and syn",
    "select time from TCP where payload + 1 > 2",
    "select time from TCP where payload > 2",
    "select time from TCP where len in ['a']",
    "select time from TCP where len in [len]",
    "select time, !len from TCP",
    "select time from TCP where srcIP = IP_VAL'300.1.1.1'",
    "select addr from V6 where addr = IPV6_VAL'nothing'",
    "select addr from V6 where addr > IPV6_VAL'::1'",
    "select t, max(addr) from V6 group by time as t",
    "select time from TCP where len = HEX'xyz'",
    "select time from TCP where len > $least",
    "select time from TCP where destPort = #port",
    "DEFINE { queryname 'x'; } select time from TCP",
    "DEFINE { query_name 'x'; query_name 'y'; } select time from TCP",
    "DEFINE { query_name 'x'; visibility 'exernal'; } select time from TCP",
    "DEFINE { visibility 'internal'; } select time from TCP",
    "DEFINE { query_name 'eth0_TCP'; } select time from TCP",
    "PARAM { least uint = 1; } select time from TCP where len > $least",
    "DEFINE { query_name 'x'; } PARAM { least uint; } select time from TCP where len > $least",
    "DEFINE { query_name 'x'; } PARAM { least nint = 1; } select time from TCP where len > $least",
    "DEFINE { query_name 'x'; } PARAM { least uint = 'a'; } select time from TCP where len > $least",
    "select tb, count(*) from TCP group by time/60 as tb closing_when count(*) = 0",
    "select tb, count(*) from TCP group by time/60 as tb cleaning_when count(*) = 0 cleaning_by len > 1",
    "select A.time FILTER_JOIN(time, 5) from eth0.TCP A, eth1.TCP B where A.time = B.time",
    "select A.time WATCHLIST_JOIN from eth0.TCP A, owners B where A.srcIP = B.host",
    "select A.time from eth0.TCP A JOIN eth1.TCP B where A.time = B.time",
    "select time, @iface from TCP",
    "select time from lib/query",
    "select tb, count(*), first$(len) from TCP group by time/60 as tb",
    "select tb, count(*) from TCP group by time/60 as tb, len supergroup port, tb",
    "select time, sum$(len) from TCP",
    "MERGE R.time FROM eth0.TCP R, eth1.TCP S",
    "MERGE R.time : S.time SLACK 10 FROM eth0.TCP R, eth1.TCP S",
    "MERGE R.len : S.len FROM eth0.TCP R, eth1.TCP S",
    "MERGE S.time : R.time FROM eth0.TCP R, eth1.TCP S",
    "MERGE R.time : S.time FROM eth0.TCP R, V6 S",
    "MERGE R.time : S.time FROM eth0.TCP R, eth1.TCP S, m U",
    "MERGE R.part : S.part FROM V6 R, V6 S",
    "MERGE m.time : m.time FROM m, m",
    "MERGE R.len : S.len FROM web R, web S",
    "select time, len << 1 | 0.5 from TCP",
    "select time from TCP where srcIP = 'gateway'",
    "select time from TCP where srcIP in ['10.0.0.1', 'gateway']",
    "select addr from V6 where addr = IP_VAL'10.0.0.1'",
    "select at from LOGS where at > 5",
    "select at from LOGS where at > TIMEVAL'tomorrow'",
    "select tb, count(*) from LOGS group by at/60 as tb",
    "select time from TCP where len > HEX'1ffffffffffffffff'",
    "select time, A.@iface from eth0.TCP A",
    "DEFINE { query_name 'x'; } PARAM { least uint = 1; least uint = 2; } select time from TCP where len > $least",
    "DEFINE { query_name 'x'; } PARAM { host IP = 'gateway'; } select time from TCP where srcIP = $host",
    "PROTOCOL X { uint time increasing; }",
    "PROTOCOL X { uint time (increasing 5); }",
    "PROTOCOL X (nothing) { uint time (increasing); }",
    "PROTOCOL X { unit time (increasing); }",
    "PROTOCOL X { uint time (incresing); }",
    "PROTOCOL X { uint time (nonrepeating); }",
    "PROTOCOL X { uint time (increasing_in_group); }",
    "PROTOCOL X { uint time (banded_increasing); }",
    "PROTOCOL X { string time (increasing); }",
    "PROTOCOL X { uint time (increasing, decreasing); }",
    "PROTOCOL X { uint time; uint time; }",
    "PROTOCOL X { uint _time; }",
    "PROTOCOL X { }",
    "PROTOCOL TCP { uint time (increasing); }",
    "OPERATOR_VIEW x { }",
    "UNPACK_FCNS { }",
    "STREAM x { uint time; }",
    "CREATE STREAM eth3.UDP",
    "CREATE STREAM eth0.TCP",
    "CREATE STREAM eth3.TCP DISORDR 3",
    "CREATE INTERFACE SET x eth0",
    "ALTER QUERY m SET least = 5",
    "DROP QUERY web",
    "select time, nothing_like_it(len) from TCP",
]


@cache
def first_catalog() -> Catalog:
    catalog = Catalog()
    catalog.outside |= {"my_function", "my_predicate"}
    compile_script(SCHEMA, catalog)
    return catalog


@cache
def catalog_with_queries() -> Catalog:
    catalog = known()
    for text in TEXTS[1:8]:
        define(text, catalog)
    return catalog


def known() -> Catalog:
    return deepcopy(first_catalog())


def golden() -> str:
    catalog, lines = known(), []
    for text in TEXTS:
        for definition in define(text, catalog):
            lines.append(f"> {text}\n{_cql(definition)}\n\n")
    return "".join(lines)


def _cql(definition: object) -> str:
    match definition:
        case Query():
            return definition.text
        case Explanation(query):
            return query.text
        case View():
            return f"a view of {', '.join(column.name for column in definition.plan.columns)}"
        case Stream():
            return repr(definition)
        case _:
            raise AssertionError(definition)


@cache
def complaint(mistake: str) -> str:
    catalog = deepcopy(catalog_with_queries())
    try:
        compile_script(mistake, catalog)
    except UserError as error:
        return error.render()
    return "no error"


def golden_errors() -> str:
    return "".join(f"> {mistake}\n{complaint(mistake)}\n\n" for mistake in MISTAKES)


def test_gsql_becomes_the_cql_of_the_golden_file() -> None:
    assert TRANSLATED.read_text(encoding="utf-8") == golden()


def test_every_error_reads_as_in_the_golden_file() -> None:
    assert MISTAKEN.read_text(encoding="utf-8") == golden_errors()


def test_every_mistake_has_a_place_in_the_users_text() -> None:
    for mistake in MISTAKES:
        text = complaint(mistake)
        assert f"| {mistake[:20]}" in text
        assert "^" in text


@settings(max_examples=60)
@given(
    st.sampled_from(TEXTS), st.integers(0, 200), st.integers(0, 12), st.sampled_from(["", "(", "$", "'", " as ", "["])
)
def test_any_change_of_a_query_is_answered_by_a_query_or_an_error(text: str, place: int, much: int, put: str) -> None:
    catalog = deepcopy(catalog_with_queries())
    try:
        compile_script(text[:place] + put + text[place + much :], catalog)
    except UserError as error:
        assert error.place is not None or error.detail
        assert error.render()


def test_a_script_in_both_languages_is_cut_into_statements() -> None:
    text = "PROTOCOL A { uint t; } PROTOCOL B { uint t; }; DEFINE { query_name ';'; } select t from A; SET x = '}';"
    assert [text[start:end][:10] for start, end in spans(text)] == [
        "PROTOCOL A",
        "PROTOCOL B",
        "DEFINE { q",
        "SET x = '}",
    ]


def test_a_file_ending_in_gsql_is_read_as_gsql() -> None:
    catalog = Catalog()
    text = "PROTOCOL P { uint t (increasing); } CREATE STREAM P; select t from P; SET dialect = 'cql'; SELECT * FROM P [NOW]"
    compile_script(text, catalog, "queries.gsql")
    assert [query.gsql is not None for query in catalog.queries.values()] == [True, False]


def test_connectors_of_gsql_are_found_without_carrying_it_out() -> None:
    text = (
        "CREATE STREAM eth0.TCP FROM csv OPTIONS ('path' = 'in');\n"
        "DEFINE { query_name 'q'; } select time from eth0.TCP INTO parquet OPTIONS ('path' = 'out')"
    )
    assert formats(text, "q.gsql") == {"csv", "parquet"}
    assert [one.path for one in files_read(text, "q.gsql")[0]] == ["in"]


def test_protocols_inherit_fields_and_their_orders() -> None:
    protocol = known().protocols["tcp"]
    assert [one.name for one in protocol.attributes][:3] == ["time", "srcIP", "destIP"]
    assert protocol.timestamp is not None
    assert protocol.timestamp.name == "time"
    logs = known().streams["logs"]
    assert (logs.timestamp, [one.order for one in logs.columns]) == ("at", [None, None, None, "increasing"])


if __name__ == "__main__":
    TRANSLATED.write_text(golden(), encoding="utf-8")
    MISTAKEN.write_text(golden_errors(), encoding="utf-8")
