"""Pictures of the console for the documentation: of the demonstration, with payments arriving.

    python tools/console_pictures.py docs/_static

Needs Playwright's package and Debian's chromium.
"""

import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

SIZE = {"width": 1280, "height": 800}
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@contextmanager
def demonstration() -> Iterator[str]:
    """The link by which one signs in, while payments arrive."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "eqsep", "demo", "--serve", "--port", "0", "--out"]
        out = str(Path(folder) / "demo")
        with subprocess.Popen([*command, out], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            links = (re.search(r"http://\S+", line) for line in process.stdout)
            yield next(link[0] for link in links if link)
            process.send_signal(signal.SIGINT)


def promote(page: Page, name: str, column: str) -> None:
    """Preview the name of the largest group that a column drives most."""
    group = page.locator(f"section.card:has(header:has-text('driven by {column}'))").first
    group.get_by_role("combobox").fill(name)
    group.get_by_role("button", name="Preview").click()
    page.locator("#names").wait_for()


def learn(page: Page) -> None:
    """Apply what is previewed."""
    page.keyboard.press("Enter")
    page.locator("#given-title").wait_for()
    page.wait_for_load_state("networkidle")


def take(page: Page, link: str, folder: Path) -> None:
    """All pictures, in the order of the work."""

    def picture(name: str) -> None:
        page.wait_for_timeout(400)
        page.mouse.move(0, 0)
        path = folder / f"console_{name}.png"
        page.screenshot(path=path)
        Image.open(path).convert("RGB").quantize(160).save(path, optimize=True)  # a third as large

    page.goto(link)
    page.wait_for_url("**/inbox")
    models = page.url.removesuffix("/inbox")
    time.sleep(30)  # let some arrive
    page.goto(f"{models}/groups")
    promote(page, "skimming", "distance_km")
    learn(page)
    promote(page, "money mule", "amount")
    picture("groups")
    learn(page)
    page.goto(f"{models}/inbox")
    page.keyboard.press("j")
    page.keyboard.press("x")
    picture("inbox")
    page.locator(".alarms .open:not(:has(.times))").first.click()  # an incident of one alarm
    page.emulate_media(color_scheme="dark")
    picture("alarm")
    page.emulate_media(color_scheme="light")


if __name__ == "__main__":
    with demonstration() as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=OPTIONS)
        take(browser.new_page(viewport=SIZE), link, Path(sys.argv[1]))
        browser.close()
