"""The tuples of a case on their way to an engine, out of order, and those that its logs have taken."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from headgate.engine import Engine
from headgate.testing.cases import Case, Row
from tools.random_queries import RELATIONS

Entry = tuple[int, Row, str]


class Arrivals:
    """Tuples overtake each other by up to three ticks. Changes of relations do not, and come before them."""

    def __init__(self, case: Case, chance: random.Random) -> None:
        self.case = case
        delayed = [
            (entry[0] + (chance.randint(0, 3) if name in case.streams else -1), place, name, entry)
            for name, entries in case.input.items()
            for place, entry in enumerate(entries)
        ]
        delayed.sort(key=lambda one: (one[0], one[2], one[1]))
        self.coming: list[tuple[str, Entry]] = [(name, entry) for _, _, name, entry in delayed]
        self.came: dict[str, list[Entry]] = {name: [] for name in case.input}
        """By stream and relation, in the order of the log. Tuples that were late are not in it."""

    def push(self, engine: Engine, count: int) -> None:
        """Let the next tuples come to an engine."""
        for name, entry in self.coming[:count]:
            pushed = [(entry[0], entry[1])] if name in self.case.streams else [entry]
            if engine.push(name, pushed):
                self.came[name].append(entry)
            else:
                assert name in self.case.streams, "changes of relations are never late here"
        del self.coming[:count]

    def push_relations(self, engine: Engine, upto: int) -> None:
        """Let the changes of relations come up to an instant that is to be complete: they must not be late."""
        relations = [one for one in self.coming if one[0] in RELATIONS and one[1][0] <= upto]
        self.coming = relations + [one for one in self.coming if one not in relations]
        self.push(engine, len(relations))

    def prefix(self, counts: Mapping[str, int], upto: int) -> Case:
        """The case over the first tuples of each stream, as many as `counts` says, cut at an instant."""
        first = {
            name: [entry for entry in self.came[name][:count] if entry[0] <= upto] for name, count in counts.items()
        }
        return replace(self.case, input=first, horizon=upto)
