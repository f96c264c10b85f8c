"""Look at every screen of the console in a real browser, and work in it with the keyboard alone.

    npm install axe-core
    python tools/console_tour.py pictures --axe node_modules/axe-core/axe.min.js

The demonstration is served while payments arrive. Each screen is opened at 1400 x 900 and at
390 x 844, light and dark: what overflows, what axe-core calls serious, and what the browser
complains of is printed and ends the run with 1. Then alarms are found, judged and learnt by keys,
in each of the four. All screens are left as pictures. Needs Playwright's package and chromium.
"""

import argparse
import shutil
import sys
import time
from pathlib import Path

from console_pictures import OPTIONS, demonstration
from playwright.sync_api import Browser, Page, sync_playwright

SIZES = ((1400, 900), (390, 844))
SCHEMES = ("light", "dark")
SCREENS = ("inbox", "groups", "judge", "verdicts", "model", "watch")
GRAVE = ("serious", "critical")


class Tour:
    """One browser, and what was found wrong so far."""

    def __init__(self, browser: Browser, models: str, *, pictures: Path, axe: str) -> None:
        self.browser, self.models, self.pictures, self.axe = browser, models, pictures, axe
        self.home = models.rpartition("/m/")[0]
        self.wrong: list[str] = []

    def visit(self, state: object, size: tuple[int, int], scheme: str) -> None:
        """Every screen in one size and colour, then the loop by keys."""
        context = self.browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=scheme,
            storage_state=state,
            bypass_csp=True,  # axe-core comes as a script of ours
        )
        page = context.new_page()
        where = f"{size[0]} {scheme}"
        page.on("pageerror", lambda error: self.wrong.append(f"{where}: {error}"))
        addresses = {name: f"{self.models}/{name}" for name in SCREENS}
        addresses["settings"] = f"{self.home}/settings"
        for name, address in addresses.items():
            page.goto(address)
            page.wait_for_timeout(500)
            self.check(page, f"{where} {name}")
        self.judge_by_keys(page, where)
        context.close()

    def check(self, page: Page, where: str) -> None:
        """A picture, what is wider than the screen, and what axe-core finds."""
        page.screenshot(path=self.pictures / f"{where.replace(' ', '_')}.png")
        beyond = page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth")
        if beyond > 0:
            self.wrong.append(f"{where}: {beyond} pixels too wide")
        if self.axe:
            page.evaluate(self.axe)
            for fault in page.evaluate("axe.run()")["violations"]:
                if fault["impact"] in GRAVE:
                    at = ", ".join(node["target"][0] for node in fault["nodes"][:3])
                    self.wrong.append(f"{where}: {fault['impact']}: {fault['help']} ({at})")

    def judge_by_keys(self, page: Page, where: str) -> None:
        """From the inbox to a verdict that is learnt, without the mouse."""
        page.goto(f"{self.models}/inbox?by=alarm")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/alarms/*")
        self.check(page, f"{where} alarm")
        page.keyboard.press("1")
        page.locator("[data-apply]").wait_for()
        self.check(page, f"{where} preview")
        page.keyboard.press("Enter")
        page.locator("#given-title").wait_for()
        self.check(page, f"{where} learnt")


def main() -> int:
    parser = argparse.ArgumentParser(description="Look at the console as its users do.")
    parser.add_argument("pictures", type=Path, help="the folder of the pictures")
    parser.add_argument("--axe", type=Path, help="axe.min.js of the npm package axe-core")
    parser.add_argument("--wait", type=float, default=45, help="seconds in which payments arrive")
    options = parser.parse_args()
    options.pictures.mkdir(parents=True, exist_ok=True)
    axe = options.axe.read_text("utf-8") if options.axe else ""
    with demonstration() as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=OPTIONS)
        with browser.new_context() as context:
            page = context.new_page()
            page.goto(link)
            page.wait_for_url("**/inbox")
            time.sleep(options.wait)
            tour = Tour(
                browser, page.url.removesuffix("/inbox"), pictures=options.pictures, axe=axe
            )
            for size in SIZES:
                for scheme in SCHEMES:
                    tour.visit(context.storage_state(), size, scheme)
        browser.close()
    print("\n".join(dict.fromkeys(tour.wrong)) or "nothing wrong")
    return 1 if tour.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
