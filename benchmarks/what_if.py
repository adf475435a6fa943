"""How long the page of a run takes to answer what-if, in Chromium.

    python benchmarks/what_if.py RESULTS/report.html [--repeats 20]

Prints the median, least and largest milliseconds of one change of evidence, without the drawing.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median

from playwright.sync_api import sync_playwright

CHROMIUM = "/usr/bin/chromium"
MEASURED = """(repeats) => {
    const model = readModel(document.getElementById("model").textContent);
    const posteriors = engineOf(model), times = [];
    for (let i = 0; i < repeats; i++) {
        const start = performance.now();
        posteriors(new Map([[i % model.nodes.length, 0]]), new Map());
        times.push(performance.now() - start);
    }
    return times;
}"""


def main(page_of_run: Path, repeats: int) -> None:
    with sync_playwright() as drivers:
        browser = drivers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(page_of_run.resolve().as_uri())
        times = page.evaluate(MEASURED, repeats)
        browser.close()
    print(f"{median(times):.2f} ms ({min(times):.2f} to {max(times):.2f})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    main(arguments.page, arguments.repeats)
