"""Labels: what is claimed to be consistent is, whatever the order in which stages run. Without rows, files or Spark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.consistency.events import Event, Range, Taken
from headgate.consistency.flow import Flow
from headgate.consistency.heeding import Multiset, QueueScan, input_prefix, still_shown, update_complete

PLANS: tuple[dict[str, tuple[str, ...]], ...] = (
    {"answer": ("s", "t")},
    {"o1": ("s", "t"), "answer": ("o1", "t")},
    {"o1": ("s", "t"), "o2": ("t",), "answer": ("o1", "o2")},
    {"o1": ("s",), "o2": ("o1", "t"), "o3": ("o1",), "answer": ("o2", "o3", "s")},
    {"o1": ("s",), "o2": ("o1",), "o3": ("o2", "t"), "answer": ("o3", "o1", "t")},
)


class Paths:
    """What really is in the output of each stage: how many tuples of each stream came to it on each path.

    A model of its own, which knows nothing of labels: the output of a stage is its inputs as it last took them.
    """

    def __init__(self, stages: dict[str, tuple[str, ...]]) -> None:
        self.stages = stages
        self.outputs: dict[int, dict[tuple[str, ...], int]] = {}
        self.held: dict[str, dict[tuple[str, ...], int]] = {
            stage: {(stage, *path): 0 for path in self._paths(stage)} for stage in stages
        }

    def _paths(self, stage: str) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = []
        for origin in self.stages[stage]:
            found += [(origin, *path) for path in self._paths(origin)] if origin in self.stages else [(origin,)]
        return found

    def run(self, stage: str, taken: Taken, version: int) -> None:
        for origin, events in taken.events.items():
            last = events[-1]
            if origin in self.stages:
                self.held[stage] |= {(stage, *path): count for path, count in self.outputs[last.version].items()}
            else:
                self.held[stage][stage, origin] = last.seen[origin]
        self.outputs[version] = dict(self.held[stage])

    def prefix(self, answer: str) -> dict[str, int] | None:
        """The prefix that the answer reflects; None if a stream has not got equally far on all paths."""
        found: dict[str, set[int]] = {}
        for path, count in self.held[answer].items():
            found.setdefault(path[-1], set()).add(count)
        if any(len(counts) > 1 for counts in found.values()):
            return None
        return {stream: counts.pop() for stream, counts in found.items()}


steps = st.lists(
    st.tuples(st.sampled_from(["arrive", "run", "run", "run", "token"]), st.integers(0, 9), st.booleans()), max_size=60
)


@given(st.sampled_from(PLANS), steps)
def test_an_answer_is_consistent_exactly_if_its_labels_say_so(
    plan: dict[str, tuple[str, ...]], drawn: list[tuple[str, int, bool]]
) -> None:
    multiset, paths = Multiset(), Paths(plan)
    flow = Flow(plan, multiset)
    scan, version = QueueScan(flow), 0
    for what, number, changed in drawn:
        if what == "arrive":
            stream = flow.streams[number % len(flow.streams)]
            flow.arrive(stream, flow.came[stream] + 1 + number // 5)
        elif what == "run":
            stage = list(plan)[number % len(plan)]
            taken = flow.take(stage)
            if taken is not None:
                version += 1
                paths.run(stage, taken, version)
                flow.put_out(stage, taken, version, changed or taken.changes)
        for stream in flow.streams:
            assert multiset.first(stream) == scan.first(stream)
            assert set(multiset.ranges(stream)) == set(scan.ranges(stream))
        claimed = input_prefix(flow.reflects, multiset)
        truth = paths.prefix(flow.answer)
        if claimed:
            assert truth == flow.reflects
            assert update_complete(flow.shown, multiset), "the stronger level has the weaker one"
        else:
            assert truth is None
        assert update_complete(still_shown(flow.shown, scan), scan) == update_complete(flow.shown, multiset)
        if flow.at_rest:
            assert claimed
            assert flow.reflects == flow.came


@given(st.sampled_from(PLANS), steps)
def test_what_a_token_confirms_is_a_prefix(
    plan: dict[str, tuple[str, ...]], drawn: list[tuple[str, int, bool]]
) -> None:
    paths, flow, version, injected = Paths(plan), Flow(plan), 0, 0
    for what, number, _ in [*drawn, *[("run", place, True) for _ in range(60) for place in range(len(plan))]]:
        if what == "arrive":
            stream = flow.streams[number % len(flow.streams)]
            flow.arrive(stream, flow.came[stream] + 1)
        elif what == "token":
            injected = flow.inject()
        else:
            stage = list(plan)[number % len(plan)]
            taken = flow.take(stage)
            if taken is not None:
                version += 1
                paths.run(stage, taken, version)
                flow.put_out(stage, taken, version, changed=True)
                if stage == flow.answer and taken.token is not None:
                    assert paths.prefix(stage) == flow.confirmed == flow.reflects
    assert flow.arrived == list(range(1, injected + 1)), "every token comes out, in order"


def test_a_stage_waits_behind_a_token_until_all_inputs_have_it() -> None:
    flow = Flow({"o1": ("s",), "answer": ("o1", "s")})
    flow.arrive("s", 1)
    flow.inject()
    flow.arrive("s", 2)
    taken = flow.take("answer")
    assert taken is not None
    assert [event.seen for event in taken.events["s"]] == [{"s": 1}]
    assert taken.token is None
    flow.put_out("answer", taken, 1, changed=True)
    assert flow.take("answer") is None, "the second tuple is behind the token"
    first = flow.take("o1")
    assert first is not None
    assert first.token == 1
    flow.put_out("o1", first, 2, changed=True)
    both = flow.take("answer")
    assert both is not None
    assert both.token == 1
    flow.put_out("answer", both, 3, changed=True)
    assert flow.confirmed == {"s": 1}
    assert flow.take("answer") is not None


def test_passive_parts_are_needed() -> None:
    """Figure 4: a2 made the join put out a2 b2; b2 is passive in it, and still under way to a1 b2."""
    multiset = Multiset()
    multiset.entered(Event({"b": Range(1, 2)}, {"b": 2}))
    by_active_parts_alone = {"a": 2, "b": 1}
    assert input_prefix(by_active_parts_alone, multiset), "which would be wrong"
    assert not input_prefix({"a": 2, "b": 2}, multiset)


def test_an_event_that_stands_for_many_tuples_begins_with_the_first() -> None:
    """One number for a whole chunk, the largest, would claim that the first four tuples are through."""
    multiset = Multiset()
    multiset.entered(Event({"s": Range(2, 5)}, {"s": 5}))
    assert not input_prefix({"s": 4}, multiset)
    assert input_prefix({"s": 2}, multiset)


def test_update_complete_allows_holes() -> None:
    """The fourth tuple is under way and has changed nothing yet; the fifth is through."""
    multiset = Multiset()
    multiset.entered(Event({"s": Range(3, 4)}, {"s": 4}))
    assert update_complete({"s": [Range(0, 3), Range(4, 5)]}, multiset)
    assert not input_prefix({"s": 5}, multiset)
    assert not update_complete({"s": [Range(0, 3), Range(3, 5)]}, multiset)
