"""What CQL says of time is what the catalog remembers; nonsense is refused with its place. No Spark, no engine."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.as_sql import sql

from headgate.catalog.catalog import Catalog
from headgate.catalog.declarations import Counter, Estimation, Grouping, Party, Sensors
from headgate.catalog.entries import Query, Stream, View
from headgate.catalog.skew import Bound
from headgate.compile import explanation
from headgate.cql.definitions import BoundsAsked, Definition, Listing, Setting, WhyAsked, define
from headgate.delta.lower import lower
from headgate.errors import UserError
from headgate.explain import tree
from headgate.settings import listed as listed_settings
from headgate.sql import Column, Sql
from headgate.ticks import UNLIMITED, TimeDomain

STREAMS = """
CREATE STREAM a (v INT, at TIMESTAMP) TIMESTAMP BY at;
CREATE STREAM b (v INT, at TIMESTAMP) TIMESTAMP BY at;
CREATE STREAM Fleet (car STRING, at TIMESTAMP) TIMESTAMP BY at SOURCE BY car;
CREATE STREAM n (v INT);
CREATE STREAM m (v INT);
CREATE STREAM entered (v INT) TIMESTAMP INTERNAL;
CREATE STREAM queued (v INT) TIMESTAMP LATENT;
CREATE RELATION staff (k INT, at TIMESTAMP) TIMESTAMP BY at;
CREATE RELATION sites (k INT) FROM csv OPTIONS ('path' = 'in');
CREATE VIEW seen AS SELECT v FROM a;
"""
SECOND = 1_000_000


def known(text: str = "") -> Catalog:
    catalog = Catalog()
    define(STREAMS, catalog)
    define(text, catalog)
    return catalog


def only(text: str, catalog: Catalog) -> Definition:
    (definition,) = define(text, catalog)
    return definition


# bounds pair by pair


def test_a_set_of_bounds_between_two_streams() -> None:
    catalog = known(
        "SKEW FROM a TO b (AFTER 2 SECONDS WITHIN 5 SECONDS), (AFTER 3 TUPLES WITHIN 0), (WITHIN 10 SECONDS)"
    )
    bounds = (Bound(5 * SECOND, after_us=2 * SECOND), Bound(0, tuples=3), Bound(10 * SECOND))
    assert catalog.declarations.skews == {(Party("a"), Party("b")): bounds}


@pytest.mark.parametrize(
    ("text", "pair", "bound"),
    [
        ("skew from A to B (within 5)", (Party("a"), Party("b")), Bound(5 * SECOND)),
        ("SKEW FROM n TO m (AFTER 2 WITHIN 5)", (Party("n"), Party("m")), Bound(5, after_us=2 * SECOND)),
        ("SKEW FROM n TO m (WITHIN 5 MINUTES)", (Party("n"), Party("m")), Bound(300)),
        ("SKEW FROM a TO b (WITHIN 5 TICKS)", (Party("a"), Party("b")), Bound(5)),
        ("SKEW FROM a TO b (AFTER 0.5 MILLISECONDS WITHIN 0)", (Party("a"), Party("b")), Bound(0, after_us=500)),
        ("SKEW FROM a TO b (AFTER 1 TUPLE WITHIN 50,000)", (Party("a"), Party("b")), Bound(50_000 * SECOND, tuples=1)),
        ("SKEW FROM a TO fleet SOURCE 'x' (WITHIN 0)", (Party("a"), Party("Fleet", "x")), Bound(0)),
        (
            "SKEW FROM fleet SOURCE 'x' TO fleet SOURCE 'y' (WITHIN 0)",
            (Party("Fleet", "x"), Party("Fleet", "y")),
            Bound(0),
        ),
        ("SKEW FROM fleet TO fleet (WITHIN 0)", (Party("Fleet"), Party("Fleet")), Bound(0)),
        ("SKEW FROM a TO staff (WITHIN 0)", (Party("a"), Party("staff")), Bound(0)),
    ],
)
def test_skew(text: str, pair: tuple[Party, Party], bound: Bound) -> None:
    declared = known(text).declarations
    assert declared.skews == {pair: (bound,)}
    assert not declared.disorders


@pytest.mark.parametrize(
    ("text", "party", "bounds"),
    [
        ("DISORDER OF a 5 SECONDS", Party("a"), (Bound(5 * SECOND + 1),)),
        ("DISORDER OF n 5", Party("n"), (Bound(6),)),
        ("DISORDER OF n 0", Party("n"), (Bound(1),)),
        ("DISORDER OF fleet SOURCE 'x' 5 SECONDS", Party("Fleet", "x"), (Bound(5 * SECOND + 1),)),
        ("DISORDER OF n (WITHIN 5), (AFTER 2 TUPLES WITHIN 0)", Party("n"), (Bound(5), Bound(0, tuples=2))),
        ("SKEW FROM n TO n (WITHIN 5)", Party("n"), (Bound(5),)),
        ("SKEW FROM fleet SOURCE 'x' TO fleet SOURCE 'x' (WITHIN 0)", Party("Fleet", "x"), (Bound(0),)),
    ],
)
def test_disorder_is_of_a_source_with_itself(text: str, party: Party, bounds: tuple[Bound, ...]) -> None:
    declared = known(text).declarations
    assert declared.disorders == {party: bounds}
    assert not declared.skews


def test_a_later_declaration_replaces_the_earlier_one_of_the_same_pair() -> None:
    catalog = known("SKEW FROM a TO b (WITHIN 5); SKEW FROM b TO a (WITHIN 1); SKEW FROM a TO b (WITHIN 0)")
    assert catalog.declarations.skews == {
        (Party("a"), Party("b")): (Bound(0),),
        (Party("b"), Party("a")): (Bound(SECOND),),
    }


def test_latency_is_of_the_engines_clock() -> None:
    catalog = known("LATENCY OF n 2; LATENCY OF fleet SOURCE 'x' 10 MILLISECONDS")
    assert catalog.declarations.latencies_us == {Party("n"): 2 * SECOND, Party("Fleet", "x"): 10_000}


# streams


def test_clauses_of_a_stream() -> None:
    catalog = known()
    stream = only(
        "CREATE STREAM s (car STRING, at TIMESTAMP, mark BOOLEAN) TIMESTAMP BY at SOURCE BY CAR HEARTBEAT BY mark "
        "DISORDER 5 LATENCY 1 LATE DROP FUTURE 1 HOUR FROM memory",
        catalog,
    )
    assert isinstance(stream, Stream)
    assert (stream.stamped, stream.source, stream.heartbeat, stream.late) == ("external", "car", "mark", "drop")
    assert stream.ahead == 3600 * SECOND
    assert catalog.declarations.disorders == {Party("s"): (Bound(5 * SECOND + 1),)}
    assert catalog.declarations.latencies_us == {Party("s"): SECOND}
    described = only("DESCRIBE s", catalog)
    assert isinstance(described, Listing)
    assert [row[2] for row in described.rows] == ["source", "timestamp", "heartbeat"]


@pytest.mark.parametrize(
    ("clauses", "stamped", "domain"),
    [
        ("TIMESTAMP INTERNAL", "internal", TimeDomain.TIMESTAMP),
        ("TIMESTAMP LATENT", "latent", TimeDomain.ARRIVAL),
        ("", "external", TimeDomain.INTEGER),
    ],
)
def test_who_stamps(clauses: str, stamped: str, domain: TimeDomain) -> None:
    stream = only(f"CREATE STREAM s (v INT) {clauses} FROM {'memory' if not clauses else 'csv'}", Catalog())
    assert isinstance(stream, Stream)
    assert (stream.stamped, stream.domain, stream.timestamp) == (stamped, domain, None)


@pytest.mark.parametrize(("kind", "instant"), [("INT", "BIGINT"), ("TIMESTAMP", "DATE"), ("TIMESTAMP", "BOOLEAN")])
def test_heartbeats_are_instants_or_marks(kind: str, instant: str) -> None:
    stream = only(f"CREATE STREAM s (at {kind}, beat {instant}) TIMESTAMP BY at HEARTBEAT BY beat", Catalog())
    assert isinstance(stream, Stream)
    assert stream.heartbeat == "beat"


def test_a_stream_that_is_refused_declares_nothing() -> None:
    catalog = known("DISORDER OF n 5")
    for text in ("CREATE STREAM n (v INT) DISORDER 7", "CREATE STREAM s (v INT) DISORDER 7 LATENCY 5 TICKS"):
        with pytest.raises(UserError):
            define(text, catalog)
    assert catalog.declarations.disorders == {Party("n"): (Bound(6),)}
    assert "s" not in catalog.streams


def test_late_and_future_change_the_stream() -> None:
    catalog = known("LATE OF a FAIL; FUTURE OF a 1 DAY; FUTURE OF n UNLIMITED; LATE OF queued DROP")
    assert (catalog.stream("a").late, catalog.stream("a").ahead) == ("fail", 86_400 * SECOND)
    assert catalog.stream("n").ahead == UNLIMITED
    assert catalog.stream("queued").late == "drop"
    define("LATE OF a KEEP", catalog)
    assert catalog.stream("a").late == "keep"


def test_what_is_dropped_is_forgotten() -> None:
    catalog = known(
        "DROP VIEW seen; DISORDER OF a 5; LATENCY OF a 5; SKEW FROM b TO a (WITHIN 5); ESTIMATE OF a; DISORDER OF staff 1;"
        "ENVIRONMENT sensors (DEVIATION 1) OF a, staff; DROP STREAM a; DROP RELATION staff"
    )
    assert catalog.declarations == Catalog().declarations


# environments, estimation, groups


def test_sensors_with_and_without_a_rate() -> None:
    catalog = known(
        "ENVIRONMENT sensors (DEVIATION 2 SECONDS) OF a; ENVIRONMENT Sensors (rate 0.9 SECONDS PER SECOND, deviation 1) OF b;"
        "ENVIRONMENT sensors (DEVIATION 2, RATE 10 PER MINUTE) OF n; ENVIRONMENT sensors (DEVIATION 0, RATE 10) OF m"
    )
    assert catalog.declarations.sensors == {
        Party("a"): Sensors(2 * SECOND),
        Party("b"): Sensors(SECOND, Fraction(900_000)),
        Party("n"): Sensors(2, Fraction(1, 6)),
        Party("m"): Sensors(0, Fraction(10)),
    }


def test_members_of_an_environment_may_be_single_sources() -> None:
    catalog = known("ENVIRONMENT sensors (DEVIATION 2 SECONDS) OF fleet SOURCE 'x', 'y', a")
    assert list(catalog.declarations.sensors) == [Party("Fleet", "x"), Party("Fleet", "y"), Party("a")]


def test_an_environment_without_members_is_that_of_all_who_carry_timestamps() -> None:
    catalog = Catalog()
    define("CREATE STREAM n (v INT); CREATE STREAM e (v INT) TIMESTAMP INTERNAL; CREATE RELATION r (v INT)", catalog)
    define("ENVIRONMENT global_counter (PROCESSING 1 MILLISECOND TO 5 SECONDS)", catalog)
    assert catalog.declarations.counters == dict.fromkeys((Party("n"), Party("r")), Counter(1_000, 5 * SECOND))


@pytest.mark.parametrize(
    ("options", "estimation"),
    [
        ("", Estimation()),
        ("(HORIZON 10 SECONDS)", Estimation(horizon_us=10 * SECOND)),
        ("(WINDOW 500 TUPLES, WEIGHT 0.25)", Estimation(window_us=None, window_tuples=500, weight=0.25)),
        ("(WINDOW 1 MINUTE)", Estimation(window_us=60 * SECOND)),
        ("(window unlimited, fixed)", Estimation(window_us=None, adaptive=False)),
        ("(CONFIDENCE 0.99, WEIGHT 0)", Estimation(confidence=0.99, weight=0.0)),
    ],
)
def test_estimation(options: str, estimation: Estimation) -> None:
    assert known(f"DISORDER OF fleet 1; ESTIMATE OF fleet {options}").declarations.estimations == {"Fleet": estimation}


def test_groups() -> None:
    assert known("GROUPS OF fleet 16").declarations.groupings == {"Fleet": Grouping(count=16)}
    sets = known("GROUPS OF fleet ('x', 'y'), ('z')").declarations.groupings
    assert sets == {"Fleet": Grouping(sets=(("x", "y"), ("z",)))}


# settings and questions


def test_settings_of_time() -> None:
    catalog = known("SET clock_unit = '10 milliseconds'; SET estimation = 'off'; TIMEOUT 3")
    assert (catalog.settings.clock_unit_us, catalog.settings.estimation) == (10_000, "off")
    listed = {name: value for name, value, _ in listed_settings(catalog.settings)}
    assert (listed["clock_unit"], listed["estimation"], listed["timeout"]) == ("0.01 seconds", "off", "3 seconds")


@pytest.mark.parametrize(
    "word", ["skew", "disorder", "latency", "environment", "estimate", "groups", "late", "future", "timeout"]
)
def test_every_statement_is_a_setting_of_its_name(word: str) -> None:
    rest = {
        "skew": "FROM a TO b (WITHIN 1)",
        "environment": "sensors (DEVIATION 1) OF a",
        "estimate": "OF a",
        "groups": "OF fleet 3",
        "late": "OF a KEEP",
        "timeout": "3",
    }.get(word, "OF a 1")
    for written in (word, word.upper()):
        assert only(f"{written} {rest}", known()) == Setting(word)


def test_questions_are_passed_on() -> None:
    catalog = known("CREATE QUERY Top AS SELECT * FROM a")
    assert define("SHOW BOUNDS; WHY top", catalog) == [BoundsAsked(), WhyAsked("Top")]


def test_the_words_of_time_are_still_names() -> None:
    text = "CREATE STREAM late (v INT); CREATE STREAM groups (v INT); why: SELECT v FROM late; skew (w): SELECT v FROM groups"
    catalog = known(text)
    assert {"late", "groups"} < set(catalog.streams)
    assert {"why", "skew"} < set(catalog.views)
    query = only("late UNION groups", catalog)
    assert isinstance(query, Query)


# streams in order of arrival


@pytest.mark.parametrize(
    ("stream", "kind"),
    [("a", "TIMESTAMP"), ("n", "BIGINT"), ("entered", "TIMESTAMP"), ("queued", "BIGINT"), ("LATE(a)", "TIMESTAMP")],
)
def test_the_time_of_an_element_is_of_its_streams_kind(stream: str, kind: str) -> None:
    query = only(f"SELECT ELEMENT_TIME FROM {stream} [ROWS 5]", known())
    assert isinstance(query, Query)
    assert query.plan.columns == (Column("ELEMENT_TIME", sql(kind)),)
    assert ("TIMESTAMP_MICROS(_t)" in lower(query.plan).output()) is (kind == "TIMESTAMP")


@pytest.mark.parametrize("window", ["NOW", "ROWS 5", "RANGE 5", "RANGE 5 TICKS SLIDE 2", "RANGE UNBOUNDED"])
def test_windows_over_the_order_of_arrival_count_arrivals(window: str) -> None:
    query = only(f"SELECT COUNT(*) AS n FROM queued [{window}]", known())
    assert isinstance(query, Query)
    program = lower(query.plan)
    assert program.domain is TimeDomain.ARRIVAL
    assert "seconds" not in explanation(query, known())


# late tuples


def test_late_tuples_are_a_stream_with_what_is_known_of_them() -> None:
    catalog = known()
    late = catalog.late_of(catalog.stream("fleet"))
    assert (late.name, late.domain, late.timestamp, late.source) == ("late(Fleet)", TimeDomain.TIMESTAMP, None, "car")
    assert [(column.name, column.type) for column in late.columns] == [
        ("car", "STRING"),
        ("at", "TIMESTAMP"),
        ("_reason", "STRING"),
        ("_behind", "BIGINT"),
        ("_timestamp", "TIMESTAMP"),
        ("_raw", "STRING"),
    ]
    assert Column("_timestamp", Sql("BIGINT")) in catalog.late_of(catalog.stream("n")).columns


def test_late_tuples_are_read_like_any_stream() -> None:
    query = only("SELECT * FROM late(fleet)", known())
    assert isinstance(query, Query)
    assert query.resolved == "ISTREAM(SELECT * FROM late(fleet) [RANGE UNBOUNDED])"
    assert [column.name for column in query.plan.columns] == ["car", "at", "reason", "behind", "timestamp", "raw"]
    assert "stream late(Fleet)" in tree(query.plan)
    assert lower(query.plan).streams() == ("late(Fleet)",)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x._reason, COUNT(*) AS n, MAX(x._behind) AS worst FROM LATE(a) [RANGE 1 HOUR] AS x GROUP BY x._reason",
        "SELECT a.v, late._behind FROM a [NOW], LATE(a) [ROWS 3] WHERE a.v = late.v",
        "SELECT * FROM LATE(a) [PARTITION BY _reason ROWS 1] x JOIN LATE(b) [NOW] y ON x.v = y.v",
        "SELECT v, ELEMENT_TIME, _timestamp FROM LATE(n) [RANGE 5]",
        "SELECT v FROM a [NOW] WHERE v IN (SELECT v FROM LATE(a) [RANGE 5 MINUTES])",
        "SELECT DISTINCT _raw FROM LATE(queued) [ROWS 10]",
        "ISTREAM(LATE(a))",
    ],
)
def test_queries_over_late_tuples_compile(text: str) -> None:
    query = only(text, known())
    assert isinstance(query, Query)
    assert "late(" in explanation(query, known())


def test_a_stream_whose_late_tuples_are_read_stays() -> None:
    catalog = known("CREATE VIEW missed AS SELECT v FROM LATE(n)")
    assert isinstance(catalog.views["missed"], View)
    with pytest.raises(UserError, match="still-read"):
        define("DROP STREAM N", catalog)
    define("DROP VIEW missed; DROP STREAM N", catalog)


# nonsense


@pytest.mark.parametrize(
    ("text", "code", "underlined", "hint"),
    [
        ("SKEW FROM a TO b (WITHIN -5)", "bad-bound", "-5", ""),
        ("SKEW FROM a TO b (AFTER -5 SECONDS WITHIN 5)", "bad-bound", "-5 SECONDS", ""),
        (
            "SKEW FROM a TO b (AFTER 5 TICKS WITHIN 5)",
            "bad-bound",
            "5 TICKS",
            "Write 5 SECONDS, or another unit of time.",
        ),
        ("SKEW FROM a TO b (AFTER 1 WITHIN 5), (AFTER 2 WITHIN 5)", "bad-bound", "(AFTER 2 WITHIN 5)", ""),
        ("SKEW FROM a TO b (WITHIN 5), (WITHIN 4)", "bad-bound", "(WITHIN 4)", ""),
        ("SKEW FROM a TO b (WITHIN 5), (AFTER 0 TUPLES WITHIN 4)", "bad-bound", "(AFTER 0 TUPLES WITHIN 4)", ""),
        ("SKEW FROM a TO b (AFTER 1.5 TUPLES WITHIN 5)", "bad-bound", "1.5 TUPLES", ""),
        ("SKEW FROM a TO b (WITHIN 3 TUPLES)", "bad-bound", "3 TUPLES", ""),
        ("SKEW FROM a TO b (WITHIN 99999999999 WEEKS)", "bad-bound", "99999999999 WEEKS", ""),
        ("SKEW FROM a TO flee (WITHIN 5)", "no-such-stream", "flee", 'Did you mean "Fleet"?'),
        ("SKEW FROM a TO n (WITHIN 5)", "time-domains-differ", "n", ""),
        (
            "SKEW FROM a SOURCE 'x' TO b (WITHIN 5)",
            "no-source-column",
            "'x'",
            "Say SOURCE BY which column in CREATE STREAM.",
        ),
        ("SKEW FROM a TO seen (WITHIN 5)", "wrong-kind", "seen", "Name one of those."),
        ("DISORDER OF n 1.5", "not-whole-ticks", "1.5", "Write 1 or 2."),
        (
            "DISORDER OF sites 5",
            "needs-no-bounds",
            "sites",
            "They are for timestamps that the source gives: TIMESTAMP BY.",
        ),
        (
            "DISORDER OF entered 5",
            "needs-no-bounds",
            "entered",
            "They are for timestamps that the source gives: TIMESTAMP BY.",
        ),
        (
            "ESTIMATE OF queued",
            "needs-no-bounds",
            "queued",
            "They are for timestamps that the source gives: TIMESTAMP BY.",
        ),
        (
            "CREATE STREAM s (v INT) TIMESTAMP LATENT DISORDER 5",
            "needs-no-bounds",
            "5",
            "They are for timestamps that the source gives: TIMESTAMP BY.",
        ),
        ("CREATE STREAM s (v INT) TIMESTAMP LATENT FUTURE 5", "needs-no-bounds", "5", ""),
        ("CREATE STREAM s (v INT, w STRING) TIMESTAMP BY v HEARTBEAT BY w", "wrong-type", "w", ""),
        ("CREATE STREAM s (v INT, w DATE) TIMESTAMP BY v HEARTBEAT BY w", "wrong-type", "w", ""),
        ("CREATE STREAM s (v INT, w INT) HEARTBEAT BY w", "no-timestamp-column", "w", ""),
        ("CREATE STREAM s (v INT) LATE DROP LATE KEEP", "syntax", "LATE", ""),
        ("LATENCY OF a 5 TICKS", "bad-bound", "5 TICKS", "Write 5 SECONDS, or another unit of time."),
        ("TIMEOUT 5 TICKS", "bad-bound", "5 TICKS", "Write 5 SECONDS, or another unit of time."),
        ("TIMEOUT -5", "bad-bound", "-5", ""),
        ("ENVIRONMENT sensor (DEVIATION 5)", "no-such-environment", "sensor", 'Did you mean "sensors"?'),
        ("ENVIRONMENT sensors (DEVIATION 5)", "time-domains-differ", "sensors", "Say which are meant: OF a."),
        ("ENVIRONMENT sensors (DEVIATON 5) OF a", "no-such-parameter", "DEVIATON", 'Did you mean "DEVIATION"?'),
        ("ENVIRONMENT sensors (DEVIATION 5) OF a, n", "time-domains-differ", "n", ""),
        (
            "ENVIRONMENT sensors (DEVIATION 5, RATE 0) OF a",
            "bad-bound",
            "0",
            "Leave it out if the clocks may stand still.",
        ),
        ("ENVIRONMENT global_counter (PROCESSING 5 TO 1) OF n", "bad-bound", "1", "Write the shorter length first."),
        (
            "ENVIRONMENT global_counter (PROCESSING 1 TO 5) OF a",
            "time-domains-differ",
            "global_counter",
            "ENVIRONMENT sensors is for clocks.",
        ),
        (
            "ENVIRONMENT global_counter (PROCESSING 1 TICK TO 5) OF n",
            "bad-bound",
            "1 TICK",
            "Write 1 SECONDS, or another unit of time.",
        ),
        ("ESTIMATE OF a (WEIGHT 1.5)", "bad-bound", "1.5", ""),
        ("ESTIMATE OF a (WEIGHT -0.5)", "bad-bound", "-0.5", ""),
        ("ESTIMATE OF a (CONFIDENCE 1)", "bad-bound", "1", "Write 0.99."),
        ("ESTIMATE OF a (CONFIDENCE 0)", "bad-bound", "0", "Write 0.99."),
        ("ESTIMATE OF a (WINDOW 5)", "bad-bound", "5", "Write 5 TUPLES or 5 SECONDS."),
        ("ESTIMATE OF a (HORIZON 5 TICKS)", "bad-bound", "5 TICKS", "Write 5 SECONDS, or another unit of time."),
        ("GROUPS OF a 5", "no-source-column", "a", "Say SOURCE BY which column in CREATE STREAM."),
        ("GROUPS OF fleet 0", "bad-bound", "0", ""),
        ("GROUPS OF fleet ('x'), ('y', 'x')", "bad-bound", "'x'", ""),
        ("LATE OF a KEPT", "syntax", "KEPT", 'Did you mean "KEEP"?'),
        ("LATE OF seen KEEP", "wrong-kind", "seen", "Name a stream that it reads."),
        ("FUTURE OF a -5", "bad-bound", "-5", ""),
        ("SET clock_unit = 'soon'", "bad-setting", "clock_unit", "Write '1 minute'."),
        ("SET time_unit = '0 seconds'", "bad-setting", "time_unit", "Write '1 minute'."),
        ("CREATE QUERY top AS SELECT * FROM a; WHY tpo", "no-such-query", "tpo", 'Did you mean "top"?'),
        (
            "SELECT * FROM queued [RANGE 5 SECONDS]",
            "order-has-no-unit",
            "[RANGE 5 SECONDS]",
            "Write ROWS 5, or 5 TICKS, which counts arrivals.",
        ),
        ("SELECT * FROM queued, n", "time-domains-differ", "queued", ""),
        ("SELECT * FROM LATE(sites)", "wrong-kind", "sites", ""),
        ("SELECT * FROM LATE(seen)", "wrong-kind", "seen", "Name a stream that it reads."),
    ],
)
def test_nonsense_is_refused_where_it_stands(text: str, code: str, underlined: str, hint: str) -> None:
    catalog = known()
    with pytest.raises(UserError) as raised:
        define(text, catalog)
    error = raised.value
    assert error.place is not None, error.render()
    assert (error.code, error.place.text[error.place.start : error.place.end], error.hint) == (
        code,
        underlined,
        hint,
    ), error.render()
    assert catalog.declarations == Catalog().declarations


def test_mixed_kinds_of_time_are_named() -> None:
    with pytest.raises(UserError, match="TIMESTAMP time and streams with no time but the order of arrival"):
        define("SELECT * FROM queued, entered", known())


WORDS = [
    "SKEW",
    "FROM",
    "TO",
    "DISORDER",
    "OF",
    "LATENCY",
    "ENVIRONMENT",
    "ESTIMATE",
    "GROUPS",
    "LATE",
    "FUTURE",
    "TIMEOUT",
    "WHY",
    "SHOW BOUNDS",
    "a",
    "b",
    "n",
    "fleet",
    "queued",
    "staff",
    "sites",
    "seen",
    "sensors",
    "global_counter",
    "SOURCE",
    "'x'",
    "(",
    ")",
    ",",
    "AFTER",
    "WITHIN",
    "5",
    "0.5",
    "-",
    "SECONDS",
    "TICKS",
    "TUPLES",
    "UNLIMITED",
    "DEVIATION",
    "RATE",
    "PER",
    "PROCESSING",
    "WINDOW",
    "WEIGHT",
    "FIXED",
    "KEEP",
    "1e9",
    "CREATE STREAM s (v INT)",
    "TIMESTAMP",
    "LATENT",
    "BY",
    "v",
    ";",
    "SELECT * FROM",
]
FORMS: list[list[Any]] = [
    ["SKEW FROM", "{}", "TO", "{}", "(", "AFTER", "{}", "{}", "WITHIN", "{}", ")"],
    ["DISORDER OF", "{}", "{}", "{}"],
    ["ENVIRONMENT", "{}", "(", "{}", "{}", "{}", ",", "{}", "{}", ")", "OF", "{}"],
    ["ESTIMATE OF", "{}", "(", "{}", "{}", "{}", ")"],
    ["GROUPS OF", "{}", "{}"],
    ["CREATE STREAM s (v INT)", "TIMESTAMP", "{}", "{}", "{}", "{}"],
    ["SELECT * FROM", "LATE", "(", "{}", ")", "{}"],
]


@st.composite
def sentences(draw: st.DrawFn) -> str:
    """One of the forms with any words in its gaps, or any words at all."""
    form = draw(st.sampled_from([*FORMS, ["{}"] * 8]))
    return " ".join(draw(st.sampled_from(WORDS)) if word == "{}" else word for word in form)


@settings(max_examples=400, deadline=None)
@given(sentences())
def test_anything_said_of_time_is_answered(text: str) -> None:
    try:
        define(text, known())
    except UserError as error:
        assert error.place is not None, f"{text}\n{error.render()}"
        assert error.render()


# what is declared can be taken back


DECLARED = {
    "SKEW FROM a TO b": "(WITHIN 5)",
    "SKEW FROM fleet TO fleet": "(WITHIN 5)",
    "SKEW FROM n TO n": "(WITHIN 5)",
    "SKEW FROM fleet SOURCE 'x' TO a": "(WITHIN 5)",
    "SKEW FROM CLOCK TO a": "(WITHIN 5)",
    "DISORDER OF a": "5",
    "DISORDER OF fleet SOURCE 'x'": "5",
    "LATENCY OF a": "5",
    "LATENCY OF fleet SOURCE 'x'": "5",
    "ESTIMATE OF a": "(FIXED)",
    "GROUPS OF fleet": "3",
    "LATE OF a": "FAIL",
    "FUTURE OF a": "1 DAY",
    "HEARTBEAT OF a": "ON DEMAND WITHIN 5",
    "HEARTBEAT": "EVERY 5",
    "TIMEOUT": "5",
}
"""Declarations as they are named, each with what it says."""


def everything(catalog: Catalog) -> tuple[Any, ...]:
    return catalog.declarations, catalog.settings, catalog.streams


@pytest.mark.parametrize("named", DECLARED)
def test_what_is_declared_is_taken_back_by_the_same_words(named: str) -> None:
    catalog, before = known(f"{named} {DECLARED[named]}"), known()
    assert everything(catalog) != everything(before)
    assert only(f"DROP {named}", catalog) == Setting(named.split()[0].lower(), taken_back=True)
    assert everything(catalog) == everything(before)
    with pytest.raises(UserError, match="nothing-declared"):
        define(f"DROP {named}", catalog)
    word, _, rest = named.partition(" ")
    define(f"drop {word} if exists {rest}", catalog)
    assert everything(catalog) == everything(before)


def test_only_what_is_named_is_taken_back() -> None:
    everyone = ";".join(f"{named} {says}" for named, says in DECLARED.items())
    for named in DECLARED:
        catalog, without = known(everyone), known(";".join(f"{n} {says}" for n, says in DECLARED.items() if n != named))
        define(f"DROP {named}", catalog)
        assert everything(catalog) == everything(without), named


def test_members_leave_an_environment() -> None:
    catalog = known(
        "ENVIRONMENT sensors (DEVIATION 5) OF a, b, fleet SOURCE 'x', 'y'; DROP ENVIRONMENT sensors OF b, fleet SOURCE 'y'"
    )
    assert list(catalog.declarations.sensors) == [Party("a"), Party("Fleet", "x")]
    define("DROP ENVIRONMENT sensors OF fleet", catalog)
    assert list(catalog.declarations.sensors) == [Party("a")], "a stream that is no member stands for its sources"
    with pytest.raises(UserError, match="nothing-declared"):
        define("DROP ENVIRONMENT global_counter", catalog)
    define("DROP ENVIRONMENT sensors", catalog)
    assert not catalog.declarations.sensors


def test_what_is_declared_is_named_where_something_else_was_meant() -> None:
    catalog = known("DISORDER OF a 5; DISORDER OF fleet SOURCE 'x' 5")
    with pytest.raises(UserError) as refused:
        define("DROP DISORDER OF fleet", catalog)
    assert "Declared are DISORDER OF a, OF Fleet SOURCE 'x'." in refused.value.render()
    assert "^^^" in refused.value.render()


@pytest.mark.parametrize(
    "text",
    [
        "DISORDER OF n (WITHIN 5), (AFTER 1000000000000 TUPLES WITHIN 0)",
        "DISORDER OF n (WITHIN 5), (AFTER 10001 TUPLES WITHIN 0)",
        "SKEW FROM a TO b (AFTER 400 DAYS WITHIN 0)",
        "LATENCY OF a 1000000 DAYS",
        "TIMEOUT 60 WEEKS",
        "GROUPS OF fleet 1000000000",
        "ESTIMATE OF a (HORIZON 9999 DAYS)",
        "HEARTBEAT OF a EVERY 9999 DAYS WITHIN 5",
        "ENVIRONMENT global_counter (PROCESSING 1 SECOND TO 9999 DAYS) OF n",
    ],
)
def test_absurd_numbers_are_refused_with_their_place(text: str) -> None:
    catalog = known()
    with pytest.raises(UserError, match="bad-bound") as refused:
        define(text, catalog)
    assert "^" in refused.value.render()
    assert everything(catalog) == everything(known())
