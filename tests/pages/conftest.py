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
#: Windows stay open for the next test, as each takes a third of a second; what they say, and what they ask for.
_windows, _said, _asked = [], [], []


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
            _windows.clear()


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


def _window(**options):
    context = _browser().new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    context.set_default_timeout(5_000)
    page = context.new_page()
    page.on("console", lambda line: _said.append(line.text) if line.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: _said.append(str(error)))
    page.on("request", lambda request: _asked.append(request.url))
    return page


@pytest.fixture
def visit():
    """Opens a file at a state, in a window of its own: ``visit(path, "#state", color_scheme="dark", ...)``.

    When the test ends, the console must hold no error or warning, violations of the content-security policy included,
    and nothing but the files must have been asked for.
    """
    usual, others, own = [], [], ["data:", "blob:"]
    _said.clear()
    _asked.clear()

    def opened(path, state="", **options):
        if options:
            others.append(page := _window(**options))
        else:
            if len(usual) == len(_windows):
                _windows.append(_window())
            usual.append(page := _windows[len(usual)])
        own.append(address := path.resolve().as_uri() if path else "about:blank")
        page.goto(address + state)
        if path and options.get("java_script_enabled", True):
            page.wait_for_selector("html[data-drawn]")
        return page

    yield opened
    for page in usual:
        page.context.clear_permissions()
        page.goto("about:blank")
    for page in others:
        page.context.close()
    assert not _said
    assert not [address for address in _asked if not address.startswith(tuple(own))]


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
