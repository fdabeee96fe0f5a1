"""Tests in a real browser: headless Chromium, driven by playwright. `make test-browser` brings both."""

import os
import shutil
from importlib.resources import files

import pytest
from playwright.sync_api import sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def chromium():
    """The browser; without one the tests fail, they never skip."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not path:
        pytest.exit("there is no chromium: run `make test-browser`, or set CHROMIUM to its path", returncode=1)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium):
    """Opens an address in a context of its own: `visit(address, color_scheme="dark")`.

    At the end of the test no page may have logged an error, asked another host or opened a dialog.
    """
    contexts, complaints = [], []

    def open_page(address, *, allowed=(), **settings):
        context = chromium.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("console", lambda line: line.type in ("error", "warning") and complaints.append(line.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))
        hosts = ("file:", "data:", "blob:", *allowed)
        page.on("request", lambda asked: asked.url.startswith(hosts) or complaints.append(f"asked {asked.url}"))
        page.goto(address)
        return page

    open_page.complaints = complaints
    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="session")
def serious_faults():
    """What axe-core finds of serious faults in a page, with the elements that have them."""
    source = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")

    def find(page):
        page.evaluate(source)  # not as a script element, which the page's own policy refuses
        found = page.evaluate("async () => (await axe.run()).violations")
        return [
            (each["id"], [node["html"] for node in each["nodes"]][:3])
            for each in found
            if each["impact"] in ("serious", "critical")
        ]

    return find
