"""`headgate top` without a terminal: the picture as text, keys as functions, a real server and a real directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.duck_engine import engine_on_duckdb, without_spark
from tools.served import served

from headgate import UserError
from headgate.top import Directory, Look, QueryLine, Server, View, chosen, keys_in, looked, panel_of, picture, pressed

LOOK = Look(
    tuple(QueryLine(f"q{n:03d}", "17", float(n), None, 0.5, n, "held" if n % 2 else "ok", "s") for n in range(200)),
    (("s", "17", "speaking"),),
)


@pytest.mark.parametrize("width, height", [(80, 24), (200, 50), (80, 10)])
def test_a_picture_fits_and_has_what_is_selected(width: int, height: int) -> None:
    lines = picture(LOOK, View("q150", panel="why"), "because", width, height).plain.rstrip("\n").split("\n")
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert any(line.startswith("q150") for line in lines)
    assert any("quit" in line for line in lines)
    assert ("held back by" in "".join(lines)) == (width == 200)


def test_one_picture_has_all_queries() -> None:
    assert picture(LOOK, View(), "", 80).plain.count("\nq") == 201


def test_data_cannot_reach_the_terminal() -> None:
    line = QueryLine("a\x1b[2J", "-", None, None, None, 0, "ok", "")
    assert "\x1b" not in picture(Look((line,)), View(), "\x1b[31m", 80).plain


def test_keys() -> None:
    assert keys_in("\x1b[A\x1b[Bj\x1b\r") == ["up", "down", "j", "escape", "enter"]
    view = View()
    for key in ["down", "down", "end", "up"]:
        view = pressed(view, key, LOOK)
    assert view.selected == "q198"
    for key in [*"/q00", "enter"]:
        view = pressed(view, key, LOOK)
    assert not view.over
    assert len(chosen(LOOK, view)) == 10
    for key in ["s", "s", "r"]:
        view = pressed(view, key, LOOK)
    assert (view.sort, next(one.name for one in chosen(LOOK, view))) == ("behind", "q009")
    assert pressed(view, "w", LOOK).panel == "why"
    assert pressed(pressed(view, "w", LOOK), "w", LOOK).panel == ""
    assert pressed(view, "q", LOOK).over


def test_a_server_and_a_directory(tmp_path: Path) -> None:
    with without_spark(), engine_on_duckdb(tmp_path) as engine:
        engine.execute("CREATE STREAM a (v INT); CREATE STREAM b (v INT);")
        engine.execute("CREATE QUERY j AS SELECT a.v FROM a [RANGE 9] AS a, b [RANGE 9] AS b WHERE a.v = b.v;")
        engine.push("a", [(1, {"v": 1}), (9, {"v": 2})])
        engine.push("b", [(3, {"v": 1})])
        engine.step()
        engine._running.write_status()
        with served(engine, token="secret") as asking:
            server = Server(str(asking.base_url), "secret")
            look = looked(server, Look())
            with pytest.raises(UserError, match="401"):
                Server(str(asking.base_url)).look()
            assert "2  " in panel_of(server, look, View("j", panel="trace"))
            assert "SELECT" in panel_of(server, look, View("j", panel="plan"))
        assert (look.away, look.queries[0].held_by, look.queries[0].behind) == ("", "b", 6.0)
        assert "held back by b" in panel_of(server, look, View("j", panel="why"))
        away = looked(server, look)
        assert away.queries == look.queries
        assert "does not answer" in away.away
        there = Directory(tmp_path).look()
        assert (there.queries[0].held_by, there.queries[0].behind) == ("b", 6.0)


def test_an_address_that_is_none() -> None:
    with pytest.raises(UserError, match="no address"):
        Server("file:///etc/passwd")
