"""An animation of the console: from the inbox to a verdict that is learnt, in the demonstration.

    python tools/console_gif.py docs/_static/console.gif

Needs Playwright's package, Pillow and Debian's chromium.
"""

import io
import re
import shutil
import sys
import time
from pathlib import Path

from console_pictures import OPTIONS, demonstration, learn
from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Page, sync_playwright

SIZE = {"width": 1200, "height": 740}
WIDTH = 900  # of the animation, in pixels
CAPTION = 34  # the height of the line below each picture
COLOURS = 200
KIND = "skimming"


class Film:
    """Pictures of a page, each with its seconds and a line on what it shows."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.frames: list[Image.Image] = []
        self.durations: list[int] = []

    def shoot(self, seconds: float, caption: str) -> None:
        """Add a picture of the page as it is now."""
        shot = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        shot = shot.resize((WIDTH, WIDTH * shot.height // shot.width), Image.Resampling.LANCZOS)
        frame = Image.new("RGB", (WIDTH, shot.height + CAPTION), "#18202b")
        frame.paste(shot)
        font = ImageFont.load_default(size=17)
        ImageDraw.Draw(frame).text((14, shot.height + 6), caption, fill="white", font=font)
        self.frames.append(frame)
        self.durations.append(round(1000 * seconds))

    def save(self, path: Path) -> None:
        """Write all pictures with one palette, so that only what changes is written again."""
        tall = Image.new("RGB", (WIDTH, sum(frame.height for frame in self.frames)))
        for i, frame in enumerate(self.frames):
            tall.paste(frame, (0, i * frame.height))
        palette = tall.quantize(COLOURS, dither=Image.Dither.NONE)
        first, *rest = (f.quantize(palette=palette, dither=Image.Dither.NONE) for f in self.frames)
        first.save(path, save_all=True, append_images=rest, duration=self.durations, loop=0)


def take(page: Page, link: str) -> Film:
    """The loop of an analyst: find an incident, look at it, preview a verdict, give it."""
    film = Film(page)
    page.goto(link)
    page.wait_for_url("**/inbox")
    time.sleep(20)  # let some arrive
    page.goto(page.url)
    before = page.locator("#total").inner_text()
    film.shoot(2.2, "Alarms of one card that follow each other are one incident")
    lines = page.locator("tr[data-id]", has_text="distance_km")
    sizes = lines.locator("[data-alarms]").all()
    n_alarms = [int(size.get_attribute("data-alarms") or 0) for size in sizes]
    longest = lines.nth(n_alarms.index(max(n_alarms)))
    longest.hover()
    film.shoot(0.8, "Open one of a kind that the model has not seen")
    longest.locator(".open").click()
    page.wait_for_url(re.compile("/incidents/"))
    film.shoot(1.8, "Each alarm has its reasons: far away, abroad")
    page.keyboard.press("n")
    for part in (KIND[:3], KIND[3:]):
        page.keyboard.type(part)
        film.shoot(0.5, "Give the kind a name")
    page.keyboard.press("Enter")
    page.locator("#names").wait_for()
    page.wait_for_timeout(300)
    film.shoot(2.8, "The preview shows what would change: nothing is learnt yet")
    learn(page)
    page.wait_for_timeout(500)
    film.shoot(2.2, "Applied: the model has learnt it, and one key takes it back")
    page.keyboard.press("i")
    page.wait_for_url("**/inbox*")
    after = page.locator("#total").inner_text()
    film.shoot(2.6, f"Before: {before}. Now: {after}; new ones arrive")
    return film


if __name__ == "__main__":
    with demonstration() as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=OPTIONS)
        film = take(browser.new_page(viewport=SIZE), link)
        film.save(Path(sys.argv[1]))
        browser.close()
