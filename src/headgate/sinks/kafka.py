"""Results into a topic, a record each."""

from __future__ import annotations


class KafkaSink:
    def __init__(self, *a):
        raise NotImplementedError
