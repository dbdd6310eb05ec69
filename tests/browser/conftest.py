"""A real Chromium and a real `kb serve`, one of each for all tests here. `scripts/test browser` installs what they
need.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, sync_playwright
from tests.interfaces.http.page_corpus import PageCorpus, make_corpus
from tests.serving import serving

TOKEN = "a-token-of-32-letters-and-digits"
AXE = Path(sys.prefix) / "browser-tools" / "node_modules" / "axe-core" / "axe.min.js"
# Without a network, and as root in a container; what a desktop browser does in the background is not wanted here.
SWITCHES = """--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update
    --disable-sync""".split()
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective + " " + event.blockedURI));
"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "Chromium is not installed: run scripts/test browser"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=SWITCHES)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def axe() -> str:
    assert AXE.is_file(), "axe-core is not installed: run scripts/test browser"
    return AXE.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> PageCorpus:
    return make_corpus(tmp_path_factory.mktemp("pages"))


@contextmanager
def address_of(db: Path, *options: str, **environment: str) -> Iterator[str]:
    """Of a `kb serve` that runs until the tests are over. It must end cleanly."""
    with serving(db, *options, home=db.parent, env=environment) as running:
        yield running.url.rstrip("/")
        assert running.stop(20) == 0


@pytest.fixture(scope="session")
def server(corpus: PageCorpus) -> Iterator[str]:
    with address_of(corpus.db, "--allow-write") as address:
        yield address


@pytest.fixture(scope="session")
def guarded(corpus: PageCorpus) -> Iterator[str]:
    """One that wants a token."""
    with address_of(corpus.db, KEBAB_SERVE_TOKEN=TOKEN) as address:
        yield address


Open = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser, server: str) -> Iterator[Open]:
    """Opens an address in a browser window of its own. Whatever a test did: no dialog, no error, nothing the policy had
    to stop.
    """
    contexts: list[BrowserContext] = []
    pages: list[Page] = []
    wrong: list[str] = []

    def dialog(shown: Dialog) -> None:
        wrong.append(f"dialog {shown.message}")
        shown.dismiss()

    def open_page(address: str = "/", *, at: str = server, **options: Any) -> Page:
        context = browser.new_context(base_url=at, **{"viewport": {"width": 1100, "height": 800}, **options})
        context.set_default_timeout(10_000)
        context.add_init_script(WATCH)
        contexts.append(context)
        page = context.new_page()
        page.on("dialog", dialog)
        page.on("pageerror", lambda error: wrong.append(f"error {error}"))
        page.on(
            "request", lambda request: wrong.extend([] if request.url.startswith(at) else [f"request {request.url}"])
        )
        page.on("console", lambda message: wrong.extend([message.text] if "Security Policy" in message.text else []))
        pages.append(page)
        page.goto(address)
        return page

    yield open_page
    for page, context in zip(pages, contexts, strict=True):
        wrong += page.evaluate("window.violations || []")
        context.close()
    assert wrong == []
