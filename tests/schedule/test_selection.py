"""Which fragment runs next, on made-up fragments: what depth-first selection does in which order."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.schedule.selection import Operator, Origin, depth_first


class Source:
    """A source that enables somebody when it is asked, or nobody."""

    def __init__(self, story: list[str], name: str, enables: Made | None = None) -> None:
        self.story, self.name, self.enables = story, name, enables

    def ask(self) -> bool:
        self.story.append(f"ask {self.name}")
        if self.enables is None:
            return False
        self.enables.waiting.append(True)
        return True


class Made:
    """A fragment with a list of what waits: of each, whether anything is put out when it is taken."""

    def __init__(self, story: list[str], name: str, waiting: Sequence[bool] = (), below: Sequence[Made] = ()) -> None:
        self.story, self.name, self.waiting, self.below = story, name, list(waiting), below
        self.reader: Operator | None = None
        self.sources: list[Source] = []
        for one in below:
            one.reader = self

    def more(self) -> bool:
        return bool(self.waiting)

    def run(self) -> bool:
        self.story.append(f"run {self.name}")
        put_out = self.waiting.pop(0)
        if put_out and isinstance(self.reader, Made):
            self.reader.waiting.append(True)
        return put_out

    def operators(self) -> Sequence[Operator]:
        return self.below

    def origins(self) -> Sequence[Origin]:
        return self.sources


def test_forward_what_a_part_puts_out_goes_to_its_reader_before_anything_else_runs() -> None:
    story: list[str] = []
    one, two = Made(story, "one", [True]), Made(story, "two", [True])
    depth_first(Made(story, "answer", below=[one, two]))
    assert story == ["run one", "run answer"], "and then control goes back to who delivers"
    assert two.waiting, "its turn comes the next time"


def test_encore_a_part_that_puts_nothing_out_runs_as_long_as_it_has_input() -> None:
    story: list[str] = []
    depth_first(Made(story, "answer", below=[Made(story, "one", [False, False, True, True])]))
    assert story == ["run one", "run one", "run one", "run answer"]


def test_backtrack_from_the_answer_through_parts_to_the_sources() -> None:
    story: list[str] = []
    deep = Made(story, "deep")
    answer = Made(story, "answer", below=[Made(story, "part", below=[deep])])
    deep.sources = [Source(story, "s", enables=deep)]
    depth_first(answer)
    assert story == ["ask s", "run deep", "run part", "run answer"]


def test_a_source_is_asked_once_and_the_next_input_is_tried() -> None:
    story: list[str] = []
    one, two = Made(story, "one"), Made(story, "two")
    one.sources, two.sources = [Source(story, "s")], [Source(story, "t", enables=two)]
    answer = Made(story, "answer", below=[one, two])
    answer.sources = [Source(story, "u")]
    depth_first(answer)
    assert story == ["ask s", "ask t", "run two", "run answer"]
    story.clear()
    depth_first(answer)
    assert story == ["ask s", "ask t", "run two", "run answer"], "u is asked only when nothing else helps"


def test_nothing_to_do_ends_at_once() -> None:
    story: list[str] = []
    answer = Made(story, "answer", below=[Made(story, "one")])
    answer.sources = [Source(story, "s")]
    depth_first(answer)
    assert story == ["ask s"]
