"""Pages in a real browser: Debian's chromium, driven by Playwright. Nothing is fetched, and no error is overlooked."""

import os
import shutil
from contextlib import ExitStack
from functools import cache
from importlib.resources import files

import pytest

from jaxeval.pages.document import written_signs

#: Debian's; Playwright's own is on no package index.
CHROMIUM = shutil.which("chromium")
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]  # no sandbox: it refuses to run for root


#: Closes the browser, where there is one.
_open = ExitStack()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """The browser goes with the last of these tests: until then `asyncio` takes its loop for one that runs.

    So `asyncio.run`, which Inspect calls, would be refused in the tests that follow.
    """
    try:
        return (yield)
    finally:
        if nextitem is None or nextitem.path.parent != item.path.parent:
            _open.close()
            _browser.cache_clear()


@cache
def _browser():
    playwright = pytest.importorskip("playwright.sync_api") if os.environ.get("CI") != "true" else _playwright()
    if CHROMIUM is None:
        why = "no chromium: apt-get install chromium"
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    driver = _open.enter_context(playwright.sync_playwright())
    browser = driver.chromium.launch(executable_path=CHROMIUM, args=_FLAGS)
    _open.callback(browser.close)
    return browser


def _playwright():
    import playwright.sync_api

    return playwright.sync_api


@pytest.fixture
def visit():
    """Opens a file at a state, in a window of its own: ``visit(path, "#state", color_scheme="dark", ...)``.

    When the test ends, the console must hold no error or warning, violations of the content-security policy included,
    and nothing but the file must have been asked for.
    """
    contexts, said, asked = [], [], []

    def opened(path, state="", **window):
        window = {"viewport": {"width": 1280, "height": 900}, **window}
        context = _browser().new_context(**window)
        contexts.append(context)
        context.set_default_timeout(5_000)
        address = path.resolve().as_uri() if path else "about:blank"
        page = context.new_page()
        page.on("console", lambda line: said.append(line.text) if line.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        own = (address, "data:", "blob:")
        page.on("request", lambda request: None if request.url.startswith(own) else asked.append(request.url))
        page.goto(address + state)
        if path and window.get("java_script_enabled", True):
            page.wait_for_selector("html[data-drawn]")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not said
    assert not asked


@pytest.fixture
def scripts(visit):
    """An empty window in which the functions of some of the package's scripts can be called."""

    def loaded(*names):
        page = visit(None)
        home = files("jaxeval.pages")
        texts = [home.joinpath(name).read_text(encoding="utf-8") for name in ("packed.js", *names)]
        page.add_script_tag(content="\n".join([written_signs(), *texts]))
        return page

    return loaded
