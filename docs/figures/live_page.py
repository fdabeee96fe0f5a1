"""The live page and a report as people see them, for docs/live-page.md and docs/report.md. Needs Chromium.

python docs/figures/live_page.py
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from smoothlime import explain
from smoothlime.app.live.demo import loans

HERE = Path(__file__).parent
WIDE, HIGH = 1180, 760


def main():
    """Write live_page.png and report.png."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": WIDE, "height": HIGH})
        run = [sys.executable, "-m", "smoothlime", "demo", "--no-browser"]
        with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as server:
            try:
                page.goto(re.match(r"http://\S+", server.stdout.readline())[0])
                page.wait_for_function("() => document.querySelector('#pairs:not(.waiting) svg')")
                page.screenshot(path=HERE / "live_page.png")
            finally:
                server.terminate()
        subject = loans()
        around = {"background": subject.rows, "sigma": 0.5, "fixed": subject.fixed, "target": subject.target}
        e = subject.labelled(explain(subject.model, subject.rows[:40], **around))
        e.to_html(Path(folder) / "report.html", title="Loans in May", keys=subject.keys[:40])
        page.goto((Path(folder) / "report.html").as_uri())
        page.locator("section").first.scroll_into_view_if_needed()
        page.evaluate("() => document.querySelector('section').scrollIntoView()")
        page.screenshot(path=HERE / "report.png")
        browser.close()


if __name__ == "__main__":
    main()
