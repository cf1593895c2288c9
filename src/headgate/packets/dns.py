"""DNS messages in packets: the header of all of them at once, names and addresses of each by dpkt.

A message is what UDP carries from or to port 53 (DNS) or 5353 (mDNS). DNS over TCP comes in pieces of a byte stream and
is not decoded.
"""

from __future__ import annotations

from socket import AF_INET, AF_INET6, inet_ntop
from typing import Any, NamedTuple

import dpkt
import numpy as np

from headgate.packets.headers import UDP, Headers, Rows

PORTS = (53, 5353)
HEADER = 12


class Message(NamedTuple):
    """What only the whole of a message says, by the names of its fields."""

    dns_query: str | None
    dns_type: int | None
    dns_addresses: list[str]


def decoded(headers: Headers) -> tuple[Rows, dict[str, Any]]:
    """The packets that hold a DNS message, and its fields by name. What is no message is noted as a problem."""
    ports = np.isin(headers.fields["src_port"], PORTS) | np.isin(headers.fields["dst_port"], PORTS)
    rows = np.flatnonzero(ports & (headers.fields["protocol"] == UDP) & (headers.payload_at >= 0))
    have = headers.payload_end[rows] - headers.payload_at[rows]
    rows = headers.refuse("the DNS header is cut off after {have} of {need} bytes", rows, have < HEADER, have, HEADER)
    found: dict[str, Any] = {}
    if headers.wanted.intersection(Message._fields):
        messages = [_message(headers, row) for row in rows.tolist()]
        wrong = np.array([message is None for message in messages], bool)
        nothing = np.zeros(len(rows), np.int64)
        rows = headers.refuse("the DNS message cannot be decoded", rows, wrong, nothing, 0)
        whole = [message for message in messages if message is not None]
        found = {name: [getattr(message, name) for message in whole] for name in Message._fields}
    here = headers.payload_at[rows]
    flags = headers.u16[here + 2].astype(np.int64)
    found |= {
        "dns_id": headers.u16[here].astype(np.int64),
        "dns_response": flags >> 15,
        "dns_opcode": flags >> 11 & 15,
        "dns_rcode": flags & 15,
        "dns_answers": headers.u16[here + 6].astype(np.int64),
    }
    return rows, found


def _message(headers: Headers, row: int) -> Message | None:
    """The message in a packet; None if it is none, or is cut off."""
    content = headers.records.data[headers.payload_at[row] : headers.payload_end[row]].tobytes()
    try:
        message = dpkt.dns.DNS(content)
        query = message.qd[0] if message.qd else None
        answers = [answer.rdata for answer in message.an if answer.type in (dpkt.dns.DNS_A, dpkt.dns.DNS_AAAA)]
        addresses = [inet_ntop(AF_INET if len(address) == 4 else AF_INET6, address) for address in answers]
    except (dpkt.Error, ValueError, IndexError, OSError, RecursionError):
        return None
    return Message(None, None, addresses) if query is None else Message(query.name, query.type, addresses)
