"""The console in a real Chromium: what a person does on a first visit, and when things break.

What only this file can catch: a page that does not run, that a browser's policy forbids, that loses its way when the
server is killed, or that shows what is not so. The scenes follow each other on one page and one server, whose epochs
run in DuckDB. `HEADGATE_SCREENSHOTS=docs/images` has the pictures of the docs taken.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright
from tools.places import ROOT

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
PATIENCE = 30_000
TOKEN = "a-token-of-a-test"
SCREENSHOTS = os.environ.get("HEADGATE_SCREENSHOTS")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: make test-browser installs one")
expect.set_options(timeout=PATIENCE)


class Server:
    """A server process on a directory, which can be killed and started again on the same port."""

    def __init__(self, directory: Path, token: str | None = None) -> None:
        self.directory = directory
        self.token = token
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it runs."""
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
        environment = {**os.environ, "PYTHONPATH": paths}
        environment.pop("HEADGATE_TOKEN", None)
        if self.token is not None:
            environment["HEADGATE_TOKEN"] = self.token
        command = [sys.executable, "-m", "tools.duck_server", str(self.directory), str(self.port)]
        self.process = subprocess.Popen(command, env=environment)
        until(self.ready, f"the server does not come up: {self.process.poll()}")

    def ready(self) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/ready").status_code == 200
        return False

    def kill(self) -> None:
        """Kill it as a machine that fails does."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(30)


def until(true: Callable[[], Any], otherwise: str) -> None:
    end = time.monotonic() + PATIENCE / 1000
    while not true():
        assert time.monotonic() < end, otherwise
        time.sleep(0.05)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, headless=True)
        yield found
        found.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp("console") / "state")
    found.start()
    yield found
    found.kill()


@pytest.fixture(scope="module")
def page(browser: Browser, server: Server) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    found = context.new_page()
    found.set_default_timeout(PATIENCE)
    complaints: list[str] = []
    found.on("pageerror", lambda error: complaints.append(str(error)))
    found.on("console", lambda said: complaints.append(said.text) if "Content Security Policy" in said.text else None)
    asked: list[str] = []
    found.on("request", lambda request: asked.append(request.url))
    found.goto(server.url)
    yield found
    context.close()
    assert complaints == []
    assert all(url.startswith((server.url, "data:")) for url in asked), asked


def picture(page: Page, name: str) -> None:
    """Take a picture for the docs if pictures are asked for."""
    if SCREENSHOTS:
        page.wait_for_timeout(400)
        page.screenshot(path=str(ROOT / SCREENSHOTS / f"{name}.png"))


def results(server: Server, query: str) -> int:
    found: int = httpx.get(f"{server.url}/queries/{query}").json()["results"]
    return found


def test_first_visit(page: Page) -> None:
    expect(page.get_by_role("heading", name="Nothing is registered yet")).to_be_visible()
    expect(page.locator("#connection")).to_have_text("live")
    picture(page, "console-first-visit")


def test_the_example_answers_live(page: Page, server: Server) -> None:
    page.get_by_role("button", name="Run the example").click()
    expect(page.locator(".query")).to_have_count(3)
    expect(page.locator("#welcome")).to_be_hidden()
    page.locator(".query[data-name=merged]").click()
    page.get_by_role("tab", name="Results").click()
    expect(page.locator("#results-table tbody tr").nth(20)).to_be_visible()
    before = page.locator("#results-note").inner_text()
    expect(page.locator("#results-note")).not_to_have_text(before)
    expect(page.locator("#results-table thead")).to_contain_text("feed")
    expect(page.locator("#results-chart canvas")).to_be_visible()
    picture(page, "console-results")


def test_a_silenced_source_is_named(page: Page) -> None:
    page.get_by_role("tab", name="Plan").click()
    expect(page.locator(".node.stream")).to_have_count(3)
    page.get_by_role("button", name="silence rain").click()
    expect(page.locator("#why")).to_contain_text("held back by rain")
    expect(page.locator(".query[data-name=merged] .state")).to_have_text("waits for rain")
    expect(page.locator(".node.stream[data-held] .title")).to_have_text("rain")
    expect(page.locator(".waiting", has_text="wait").first).to_be_visible()
    picture(page, "console-plan")
    if SCREENSHOTS:
        page.emulate_media(color_scheme="dark")
        picture(page, "console-dark")
        page.emulate_media(color_scheme="light")


def test_a_bound_is_changed_and_answers_come(page: Page, server: Server) -> None:
    page.locator(".node.stream", has=page.locator(".title", has_text="rain")).click()
    expect(page.locator("#details h2")).to_have_text("rain")
    before = results(server, "merged")
    page.get_by_label("Timeout, of all streams").fill("1 SECOND")
    page.get_by_label("Timeout, of all streams").press("Enter")
    expect(page.locator(".notice code")).to_have_text("TIMEOUT 1 SECOND;")
    until(lambda: results(server, "merged") > before + 20, "no answers come")
    expect(page.locator("#why")).not_to_contain_text("held back by rain,")
    page.get_by_role("button", name="Close").first.click()


def test_a_graph_is_a_query_over_a_system_stream(page: Page, server: Server) -> None:
    page.locator(".query[data-name=merged]").click()
    page.get_by_role("button", name="+ results a second").click()
    card = page.locator(".card")
    expect(card.locator("code")).to_have_text(
        "SELECT ISTREAM(rate AS value) FROM SYSTEM.queries [NOW] WHERE query = 'merged'"
    )
    expect(card.locator("canvas")).to_be_visible()
    expect(card.locator(".bar .faint")).to_have_text(re.compile(r"^\d"))
    if SCREENSHOTS:
        page.wait_for_timeout(8_000)
    picture(page, "console-graphs")
    name = str(card.get_attribute("data-query"))
    assert name in httpx.get(f"{server.url}/status").json()["queries"]
    expect(page.locator(".query")).to_have_count(3)
    card.get_by_role("button", name="Close the graph").click()
    until(lambda: name not in httpx.get(f"{server.url}/status").json()["queries"], "the query stays")


def test_a_mistake_is_shown_at_its_place(page: Page) -> None:
    page.get_by_role("tab", name="Editor").click()
    text = page.get_by_label("CQL", exact=True)
    text.fill("CREATE QUERY q AS SELECT gate FROM rian [NOW];")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text('no-such-stream: stream "rian" does not exist')
    expect(page.get_by_role("alert")).to_contain_text('Did you mean "rain"?')
    expect(page.locator(".backdrop mark")).to_have_text("rian")
    picture(page, "console-editor")
    text.fill("")
    text.press_sequentially("SELECT * FROM ra")
    expect(page.locator("#completions li").first).to_contain_text("rain")
    text.press("Enter")
    expect(text).to_have_value("SELECT * FROM rain")
    expect(page.get_by_role("alert")).to_be_hidden()
    text.fill("SHOW QUERIES;")
    text.press("Control+Enter")
    expect(page.locator("#answers table tbody tr")).to_have_count(3)


def test_the_page_goes_on_when_the_server_was_killed(page: Page, server: Server) -> None:
    page.get_by_role("tab", name="Results").click()
    expect(page.locator("#results")).to_have_attribute("data-live", "live")
    server.kill()
    expect(page.locator("#connection")).to_have_attribute("data-state", "lost")
    server.start()
    expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator("#results")).to_have_attribute("data-live", "live")
    before = page.locator("#results-note").inner_text()
    expect(page.locator("#results-note")).not_to_have_text(before)


def test_keys_alone_will_do(page: Page) -> None:
    page.get_by_role("tab", name="Results").focus()
    page.keyboard.press("Alt+1")
    expect(page.locator("#picture")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("losses")
    expect(page.locator(".query")).to_have_count(1)
    page.locator("#filter").fill("")
    page.locator("#query-list").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    expect(page.locator('.query[aria-selected="true"] .name')).to_have_text("losses")


def test_two_hundred_queries_and_hostile_names_on_a_phone(page: Page, browser: Browser, server: Server) -> None:
    said = httpx.get(f"{server.url}/status").json()
    hostile = "<img src=x onerror=alert(1)>"
    one = said["queries"]["merged"]
    said["queries"] = {hostile: one, **{f"query_{number:03}": one for number in range(199)}}

    def status(route: Route) -> None:
        route.fulfill(status=200, content_type="application/json", body=json.dumps(said))

    context = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True, color_scheme="light")
    phone = context.new_page()
    phone.on("dialog", lambda dialog: pytest.fail("a name was run as a script"))
    phone.route("**/status", status)
    phone.goto(server.url)
    phone.get_by_role("tab", name="Queries").click()
    expect(phone.locator("#count")).to_have_text("200")
    assert 3 < phone.locator(".query").count() < 30
    expect(phone.locator(".query .name").first).to_have_text(hostile)
    picture(phone, "console-phone-queries")
    phone.get_by_label("Filter queries").fill("query_19")
    expect(phone.locator("#count")).to_have_text("9 of 200")
    phone.locator(".query").first.click()
    phone.get_by_role("tab", name="Plan").click()
    expect(phone.locator(".node").first).to_be_visible()
    assert phone.evaluate("document.documentElement.scrollWidth") <= 360
    picture(phone, "console-phone")
    context.close()


def test_text_changes_a_hundred_times_a_second_move_nothing(browser: Browser, server: Server) -> None:
    """The layout shifts that the browser counts stay at zero while the list is drawn with new figures."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    still = context.new_page()
    still.goto(server.url)
    expect(still.locator(".query")).to_have_count(3)
    expect(still.locator(".node").first).to_be_visible()
    shift = still.evaluate(
        """async () => {
          let shift = 0;
          new PerformanceObserver((list) => { for (const one of list.getEntries()) shift += one.value; })
            .observe({ type: "layout-shift" });
          const { refresh } = await import("/console/state.js");
          for (let turn = 0; turn < 100; turn++) {
            refresh();
            await new Promise((done) => setTimeout(done, 10));
          }
          return shift;
        }"""
    )
    assert shift < 0.01
    context.close()


def test_a_token_is_asked_for(browser: Browser, tmp_path: Path) -> None:
    server = Server(tmp_path / "state", TOKEN)
    server.start()
    context = browser.new_context()
    try:
        asking = context.new_page()
        answer = asking.goto(server.url)
        assert answer is not None
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert not re.search(r"unsafe|\*|http", policy)
        field = asking.get_by_role("textbox", name="Token")
        field.fill("wrong")
        field.press("Enter")
        expect(asking.locator("dialog")).to_contain_text("It did not take the one it was given")
        asking.get_by_role("textbox", name="Token").fill(TOKEN)
        asking.get_by_role("textbox", name="Token").press("Enter")
        expect(asking.locator("#connection")).to_have_text("live")
        assert asking.evaluate("localStorage.length") == 0
        assert httpx.get(f"{server.url}/status").status_code == 401
        assert httpx.get(f"{server.url}/console/../status").status_code == 401
        assert httpx.get(f"{server.url}/console/%2e%2e/app.py").status_code == 404
        foreign = httpx.get(server.url, headers={"Origin": "http://elsewhere.example"})
        assert foreign.json()["code"] == "foreign-origin"
    finally:
        context.close()
        server.kill()
