"""What GSQL has and headgate does not: refused by name, with what to write instead."""

from __future__ import annotations

from headgate.errors import Place, UserError

REFUSED = {
    "CLOSING_WHEN": (
        "CLOSING_WHEN",
        "Groups end with the value of their ordered key. State that lives longer needs a window: CREATE QUERY ... AS "
        "SELECT ... FROM s [RANGE 1 HOUR] GROUP BY ..., in CQL.",
    ),
    "CLEANING_WHEN": ("CLEANING_WHEN", "Sample with SAMPLE 10 PERCENT in CQL, and read that as a view."),
    "CLEANING_BY": ("CLEANING_BY", "Sample with SAMPLE 10 PERCENT in CQL, and read that as a view."),
    "FILTER_JOIN": (
        "FILTER_JOIN",
        "Use INNER_JOIN, which equates ordered attributes, or a join of windows in CQL: s [RANGE 10 SECONDS].",
    ),
    "WATCHLIST_JOIN": (
        "WATCHLIST_JOIN",
        "CREATE RELATION for the list, and join with it in CQL: FROM s [NOW], watched WHERE ....",
    ),
    "SLACK": ("SLACK in MERGE", "Say how late tuples of a stream may be: DISORDER OF stream 10."),
    "SUCH": ("SUCH THAT", "Write the condition in WHERE or HAVING."),
    "OPERATOR_VIEW": ("OPERATOR_VIEW", "Read a source of Spark: CREATE STREAM ... FROM format OPTIONS (...)."),
    "UNPACK_FCNS": ("UNPACK_FCNS", "Fields come by their names from the source of a stream."),
    "TABLE": ("a TABLE schema", "CREATE RELATION name (columns), and join with it in CQL."),
    "STREAM": (
        "a STREAM schema",
        "Write PROTOCOL name { fields } and CREATE STREAM name; the schema of a query follows from the query.",
    ),
    "FTA": ("FTA { ... }", "Write its query alone."),
}
"""By word: what it is called, and what to write instead."""

PROPERTIES = {
    "nonrepeating": (
        "nonrepeating without an order",
        "Write (increasing) or (decreasing) beside it: no plan can tell from it alone when a value is past.",
    ),
    "increasing_in_group": (
        "an order within a group",
        "Read each source by itself: CREATE STREAM ... SOURCE BY the attribute that names the group.",
    ),
    "decreasing_in_group": (
        "an order within a group",
        "Read each source by itself: CREATE STREAM ... SOURCE BY the attribute that names the group.",
    ),
    "banded_decreasing": ("banded_decreasing", "Only attributes that increase may be out of order by a band."),
}
"""Ordering properties of fields that no plan can use."""


def refused(what: str, hint: str, place: Place) -> UserError:
    """The error for a construct of GSQL that headgate does not have."""
    return UserError("not-yet", f"{what} is not in headgate's GSQL", place=place, hint=hint)
