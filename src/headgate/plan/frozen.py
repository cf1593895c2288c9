"""What plans are made of: frozen dataclasses that remember their hash.

Plans are keys wherever something is made once for each node, and a node is as deep as everything below it: without a
memory, each look-up would walk the whole tree.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


def _only_fields(node: Any) -> dict[str, Any]:
    """What another process is told of a node: no hash, which is another one there, and nothing else it remembers."""
    return {field.name: node.__dict__[field.name] for field in fields(node)}


@dataclass_transform(frozen_default=True)
def frozen(cls: type[T]) -> type[T]:
    made = dataclass(frozen=True)(cls)
    computed: Any = made.__hash__

    def remembered(self: Any) -> int:
        known = self.__dict__.get("_hash")
        if known is None:
            known = self.__dict__["_hash"] = computed(self)
        return int(known)

    made.__hash__ = remembered  # type: ignore[method-assign]
    made.__getstate__ = _only_fields  # type: ignore[method-assign, assignment]
    return made
