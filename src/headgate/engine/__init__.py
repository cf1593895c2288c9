"""One engine: what it consists of, and what can be done with it.

engine              the façade that users see
core                the objects that one engine consists of
registry            carries out statements: streams, relations and queries come, change and go
stream_statements   what programs say about time
running             takes queries forward, by hand or until stopped
inspection          answers how things stand
facts, statements   what the journal remembers of an engine
recovery            goes on after a restart
"""

from headgate.engine.engine import Engine

__all__ = ["Engine"]
