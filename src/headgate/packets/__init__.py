"""Packets as rows: captures in files and live interfaces, decoded column by column.

    fields      the fields that a stream may declare, by name
    records     where the packets of a capture file are: pcap and pcapng
    headers     Ethernet, IPv4, IPv6, TCP, UDP and ICMP, for many packets at once
    dns         DNS messages, by dpkt
    columns     from headers to the columns of a batch, and the text of packets that cannot be decoded
    ring        the kernel's ring of packets of a live interface
    spool       what a live interface has sent, on disk until it is in the log
    sources     both as data sources of Spark

Only `sources` knows Spark. Everything else is NumPy and Arrow, and is tested without a JVM.
"""
