"""Which fragment runs next, over fragments that only say what they do."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.schedule.selection import depth_first


class Made:
    """A fragment with a number of epochs that wait, over others; asking its streams gives one more epoch, or none."""

    def __init__(self, story: list[str], name: str, waiting: int = 0, below: Sequence[Made] = ()) -> None:
        self.story, self.name, self.waiting, self.below = story, name, waiting, below
        self.reader: Made | None = None
        self.streams: str | None = None
        """What can be asked."""
        self.answers = False
        for one in below:
            one.reader = self

    def has_input(self) -> bool:
        return self.waiting > 0

    def can_ask(self) -> bool:
        return self.streams is not None

    def ask(self) -> bool:
        self.story.append(f"ask {self.streams}")
        self.waiting += self.answers
        return self.answers

    def run(self) -> None:
        self.story.append(f"run {self.name}")
        self.waiting -= 1
        if self.reader is not None:
            self.reader.waiting += 1


def asking(made: Made, streams: str, answers: bool = False) -> Made:
    made.streams, made.answers = streams, answers
    return made


def everything(made: Made) -> list[Made]:
    return [one for below in made.below for one in everything(below)] + [made]


def run(answer: Made) -> None:
    for made in depth_first(answer, {one: one.below for one in everything(answer)}):
        made.run()


def test_forward_what_a_part_puts_out_goes_to_its_reader_before_anything_else_runs() -> None:
    story: list[str] = []
    one, two = Made(story, "one", 1), Made(story, "two", 1)
    run(Made(story, "answer", below=[one, two]))
    assert story == ["run one", "run answer"], "and then control goes back to who delivers"
    assert two.waiting, "its turn comes the next time"


def test_a_part_with_more_input_waits_until_its_reader_has_run() -> None:
    story: list[str] = []
    one = Made(story, "one", 3)
    run(Made(story, "answer", below=[one]))
    assert story == ["run one", "run answer"]
    assert one.waiting == 2


def test_backtrack_from_the_answer_through_parts_to_the_streams() -> None:
    story: list[str] = []
    deep = asking(Made(story, "deep"), "s", answers=True)
    run(Made(story, "answer", below=[Made(story, "part", below=[deep])]))
    assert story == ["ask s", "run deep", "run part", "run answer"]


def test_streams_are_asked_once_and_the_next_input_is_tried() -> None:
    story: list[str] = []
    one, two = asking(Made(story, "one"), "s"), asking(Made(story, "two"), "t", answers=True)
    answer = asking(Made(story, "answer", below=[one, two]), "u")
    run(answer)
    assert story == ["ask s", "ask t", "run two", "run answer"]
    story.clear()
    run(answer)
    assert story == ["ask s", "ask t", "run two", "run answer"], "u is asked only when nothing else helps"


def test_a_part_that_two_read_goes_on_to_the_first_of_them() -> None:
    story: list[str] = []
    shared = Made(story, "shared", 1)
    one, two = Made(story, "one"), Made(story, "two")
    answer = Made(story, "answer")
    reads = {shared: [], one: [shared], two: [shared], answer: [one, two]}
    for made in depth_first(answer, reads):
        made.run()
        (one if made is shared else answer).waiting += made is not answer
    assert story == ["run shared", "run one", "run answer"]


def test_nothing_to_do_ends_at_once() -> None:
    story: list[str] = []
    run(asking(Made(story, "answer", below=[Made(story, "one")]), "s"))
    assert story == ["ask s"]
