"""IPv4 addresses in SQL: functions that every query knows, written in SQL themselves.

IP_NUMBER('10.0.0.1')   167772161: the order and the bits of an address; null for any other text
IP_TEXT(167772161)      '10.0.0.1'
"""

from __future__ import annotations

from headgate.catalog.entries import Function
from headgate.sql import Sql

_PARTS = " + ".join(
    Sql(f"TRY_CAST(SPLIT_PART(ip, '.', {place}) AS BIGINT) * {1 << 8 * (4 - place)}") for place in (1, 2, 3, 4)
)
_BYTES = ", ".join(Sql(f"CAST(number DIV {1 << 8 * (4 - place)} % 256 AS STRING)") for place in (1, 2, 3, 4))

FUNCTIONS = {
    function.name: function
    for function in (
        Function("ip_number", ("ip",), _PARTS),
        Function("ip_text", ("number",), f"CONCAT_WS('.', {_BYTES})"),
    )
}
"""By name in lower case. A function of the user's own that has the name goes first."""
