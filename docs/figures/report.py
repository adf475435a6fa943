"""Draw the picture of the report in the README: the demo's network, in light and in dark.

    python docs/figures/report.py

It runs `vertibayes demo` in a temporary folder, opens the page in Debian's Chromium, sets what is
known, and writes `report.png` and `report-dark.png` beside this file. The demo draws its records
with a fixed seed, so that the pictures change with the page alone.
"""

from __future__ import annotations

import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from vertibayes.cli.demo import run_demo
from vertibayes.report.page.render import write_report

HERE = Path(__file__).parent
CHROMIUM = "/usr/bin/chromium"
COLOURS = 256  # of the picture: the page has few
SIZE = {"width": 1400, "height": 860}


def main() -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        results = Path(folder) / "demo"
        run_demo(results, records=5000, sites=3, seed=0)
        address = write_report(results).as_uri()
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for scheme, name in (("light", "report.png"), ("dark", "report-dark.png")):
            take(browser, address, scheme, HERE / name)
        browser.close()


def take(browser: Browser, address: str, scheme: str, path: Path) -> None:
    """Write a picture of the network beside What if, with few colours."""
    page = browser.new_page(viewport=SIZE, reduced_motion="reduce")
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(address)
    page.get_by_label("Set CVP").select_option(label="HIGH")
    page.get_by_role("button", name="Sort: set and changed first").click()
    page.mouse.move(0, 0)  # nothing is underlined
    page.evaluate("document.querySelector('.network-tools').scrollIntoView()")
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(COLOURS).save(path, optimize=True)
    page.close()


if __name__ == "__main__":
    main()
