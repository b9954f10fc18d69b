"""A page that refits: its size, and how long it takes to write, to open and to refit, beside Python's fit.

    python benchmarks/page.py
    python benchmarks/page.py --models 50 --votes 20000   # a quick look: nothing is written

It needs playwright and a chromium on the path. The first refit of a page is not yet optimised by the browser; the
median of further ones is what readers see as they change one thing after another.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from statistics import median

from harness import asked_sizes, save
from playwright.sync_api import sync_playwright

import jaxeval

FULL = (300, 2_000_000)
REFITS = 10
#: Anchors one model after another; each is a refit, whose time the page tells.
TOLD = "document.querySelector('.panel.what-if .told').textContent"


def main() -> None:
    """Prints what it finds; a whole run writes it."""
    asked = asked_sizes(__doc__, models=FULL[0], votes=FULL[1])
    battles = jaxeval.simulate_battles(asked.votes, asked.models, seed=0)
    fit = jaxeval.fit_bradley_terry(battles)
    start = time.perf_counter()
    for _ in range(REFITS):
        fit = jaxeval.fit_bradley_terry(battles)
    python_fit = (time.perf_counter() - start) / REFITS
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        path = Path(folder) / "page.html"
        start = time.perf_counter()
        jaxeval.page(fit, path, battles=battles)
        write = time.perf_counter() - start
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        start = time.perf_counter()
        page.goto(path.as_uri())
        page.locator(".panel.board tbody tr").first.wait_for()
        opened = time.perf_counter() - start
        page.get_by_role("tab", name="What if").click()
        page.locator(".panel.what-if tbody tr").first.wait_for()
        took = [_milliseconds(page.evaluate(TOLD))]
        leave = page.locator(".panel.what-if").get_by_role("group", name="Models", exact=True)
        for k in range(REFITS):
            before = page.evaluate(TOLD)
            leave.locator("select").select_option(index=k + 1)
            leave.get_by_role("button", name="Leave out").click()
            page.wait_for_function(f"before => {TOLD} !== before", arg=before)
            took.append(_milliseconds(page.evaluate(TOLD)))
        found = {
            "models": asked.models, "votes": asked.votes, "page_kb": path.stat().st_size / 1e3,
            "write_seconds": write, "open_seconds": opened, "first_refit_ms": took[0],
            "later_refit_ms": median(took[1:]), "python_fit_ms": 1e3 * python_fit,
        }  # fmt: skip
        browser.close()
    print(found)
    if (asked.models, asked.votes) == FULL:
        save("page", found)


def _milliseconds(told: str) -> float:
    """Of "Fitted 1,000 votes between 3 models in 12 ms."."""
    return float(told.split(" in ")[1].split(" ms")[0])


if __name__ == "__main__":
    main()
