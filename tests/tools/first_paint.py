"""`python -m tools.first_paint [LOADS]`: how long the console takes to its first paint, while its example runs.

A server whose epochs run in DuckDB and a Chromium without a window. Prints milliseconds from the start of the request.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median

from playwright.sync_api import sync_playwright
from server.test_console import CHROMIUM, FLAGS, Server

PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
ANSWERED = "performance.getEntriesByType('navigation')[0].responseStart"


def main(loads: int) -> None:
    """Load the page so many times, each time in a new context, with an empty cache."""
    server = Server(Path(tempfile.mkdtemp()) / "state")
    server.start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, headless=True)
            example = browser.new_page()
            example.goto(server.url)
            example.get_by_role("button", name="Run the example").click()
            example.locator(".query").nth(2).wait_for()
            found = []
            for _ in range(loads):
                page = browser.new_context().new_page()
                page.goto(server.url)
                page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
                found.append(page.evaluate(f"{PAINT} - {ANSWERED}"))
                page.context.close()
            print(f"first paint after the server answered: median {median(found):.0f} ms, slowest {max(found):.0f} ms")
            browser.close()
    finally:
        server.kill()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
