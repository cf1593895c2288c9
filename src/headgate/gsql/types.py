"""The types of GSQL: the type of SQL that holds each, what an operator gives, what stands for a missing value."""

from __future__ import annotations

import ipaddress
import re

TYPES = {
    "bool": "BOOLEAN",
    "ushort": "INT",
    "int": "INT",
    "uint": "BIGINT",
    "llong": "BIGINT",
    "ullong": "BIGINT",
    "float": "DOUBLE",
    "string": "STRING",
    "v_str": "STRING",
    "timeval": "TIMESTAMP",
    "ip": "STRING",
    "ipv6": "STRING",
}
"""By GSQL type: the type of SQL. Unsigned numbers need a wider one; addresses are texts, as people write them."""

NUMBERS = ("bool", "ushort", "int", "uint", "llong", "ullong", "float")
"""The types of numbers: of two that meet, the later one counts."""

MISSING = {
    "bool": "FALSE",
    "float": "0.0",
    "string": "''",
    "v_str": "''",
    "timeval": "TIMESTAMP_MICROS(0)",
    "ip": "'0.0.0.0'",
    "ipv6": "'::'",
} | dict.fromkeys(("ushort", "int", "uint", "llong", "ullong"), "0")
"""What GSQL, which has no nulls, puts where an outer join or a rolled-up group has no value."""

FROM_SQL = {
    "BOOLEAN": "bool",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INT": "int",
    "BIGINT": "llong",
    "FLOAT": "float",
    "DOUBLE": "float",
    "STRING": "string",
    "TIMESTAMP": "timeval",
}


def gsql_type(sql: str) -> str:
    """The GSQL type of a column of a stream or view that was defined in CQL; `other` if GSQL has none like it."""
    return FROM_SQL.get(sql, "float" if sql.startswith("DECIMAL") else "other")


def constant_kind(text: str) -> str:
    """The type of a number, or of what DEFINE gives."""
    if text.upper() in ("TRUE", "FALSE"):
        return "bool"
    if re.fullmatch(r"-?\d+", text):
        return "int" if abs(int(text)) < 2**31 else "llong"
    return "float" if re.fullmatch(r"-?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?", text) else "string"


def wider(one: str, other: str) -> str:
    """The type of arithmetic with values of two types."""
    if one not in NUMBERS or other not in NUMBERS:
        return one if one != "other" else other
    found = NUMBERS[max(NUMBERS.index(one), NUMBERS.index(other))]
    return "int" if found == "bool" else found


def mergeable(one: str, other: str) -> bool:
    """Whether streams can be merged in which an attribute has these types: equal ones, or whole numbers of any size."""
    whole = NUMBERS[1:-1]
    return one == other or (one in whole and other in whole)


def address_number(text: str) -> int | None:
    """An IPv4 address as a number; None if it is none."""
    try:
        return int(ipaddress.IPv4Address(text))
    except ValueError:
        return None


def ipv6_text(text: str) -> str | None:
    """An IPv6 address as sources write it, in its shortest form; None if it is none."""
    try:
        return str(ipaddress.IPv6Address(text))
    except ValueError:
        return None
