"""The page as people use it: in Chromium, with a keyboard, on a small screen, in the dark, without a script, and under
attack.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import TOKEN, Open
from tests.interfaces.http.page_corpus import ATTACK, HOSTILE_FILE, SCRIPT, PageCorpus

EVERY_PAGE = {
    "the start": "/",
    "hits": "/?q=lamp",
    "filters and reasons": "/?q=lamp&explain=true&type=markdown",
    "no hit": "/?q=zepelin&type=code",
    "an error": "/?q=x&source=nowhere",
    "rendered": "/read?uri=guide.md%23L14-L20",
    "source": "/read?uri=guide.md%23L14-L20&view=source",
    "code": "/read?uri=scripts/lamp.py%23L4-L6",
    "a page of a PDF": "/read?uri=report.pdf%23page=2",
    "hostile text": "/read?uri=hostile.md",
    "libraries": "/libraries",
    "a library": "/library?id=/acme/widget&q=dial",
    "status": "/status",
    "nothing there": "/nowhere",
}


def hits(page: Page) -> list[str]:
    return list(page.locator(".hit .citation").all_inner_texts())


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.innerText || document.activeElement.id"))


# --- search


def test_answers_come_while_the_user_types(opened: Open) -> None:
    page = opened("/")
    page.locator("#q").press_sequentially("zeppel", delay=30)
    expect(page.locator(".hit .citation")).to_have_text(["report.pdf:p2"])  # the last word is half typed
    expect(page).to_have_url(re.compile(r"/\?q=zeppel$"))
    assert page.title() == "zeppel · Kebab"
    page.locator("#q").fill("platypus")
    expect(page.locator(".hit h2 a")).to_have_text(["A platypus"])
    page.reload()
    expect(page.locator(".hit h2 a")).to_have_text(["A platypus"])
    assert page.locator("#q").input_value() == "platypus"


def test_a_late_answer_does_not_replace_a_newer_one(opened: Open) -> None:
    page = opened("/")
    held: list[Any] = []
    page.route("**/results?q=ze&*", lambda route: held.append(route))  # playwright writes on what it is given
    page.locator("#q").fill("ze")
    page.wait_for_timeout(300)
    assert len(held) == 1
    page.locator("#q").fill("platypus")
    expect(page.locator(".hit h2 a")).to_have_text(["A platypus"])
    held[0].fulfill(status=200, content_type="text/html", body="<p>late</p>")
    page.wait_for_timeout(200)
    expect(page.locator(".hit h2 a")).to_have_text(["A platypus"])


def test_filters_and_modes_answer_at_once(opened: Open) -> None:
    page = opened("/?q=lamp")
    assert len(hits(page)) > 1
    page.get_by_text("Filters").click()
    page.get_by_label("Type").select_option("code")
    expect(page.locator(".hit .citation")).to_have_text([re.compile(r"^scripts/lamp\.py:L")] * 2)
    expect(page).to_have_url(re.compile("type=code"))
    page.get_by_label("Type").select_option("")
    page.get_by_label("Tag").fill("home")
    page.get_by_label("Tag").press("Tab")
    expect(page.locator(".hit .citation").first).to_have_text(re.compile(r"^guide\.md"))
    page.locator("input[value=lexical]").check()
    expect(page).to_have_url(re.compile("mode=lexical"))


def test_an_error_and_an_unreachable_server_are_reported(opened: Open) -> None:
    page = opened("/")
    page.locator("#q").fill("'raw AND'")
    expect(page.locator("#results .error")).to_be_visible()
    page.route("**/results?*", lambda route: route.abort())
    page.locator("#q").fill("lamp")
    expect(page.locator("#results .error")).to_have_text(re.compile("kb serve"))


def test_every_step_works_with_the_keyboard(opened: Open) -> None:
    page = opened("/?q=lamp")
    page.keyboard.press("/")
    assert focused(page) == "q"
    first, second = page.locator(".hit h2 a").all_inner_texts()[:2]
    page.keyboard.press("ArrowDown")
    assert focused(page) == first
    page.keyboard.press("ArrowDown")
    assert focused(page) == second
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert focused(page) == "q"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    assert focused(page) == "q"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/read"))
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile(r"/\?q=lamp"))


# --- reader


@pytest.mark.parametrize("view", ["", "&view=source"])
@pytest.mark.parametrize("script", [True, False])
def test_a_document_opens_at_the_cited_lines(opened: Open, view: str, script: bool) -> None:
    page = opened(f"/read?uri=long.txt%23L1500-L1501{view}#cited", java_script_enabled=script)
    expect(page.locator("#L1500")).to_be_in_viewport()
    assert page.locator("li.cited").all_inner_texts() == [
        f"entry {line} of the very long ledger" for line in (1500, 1501)
    ]


def test_a_hit_opens_with_its_passage_in_view(opened: Open) -> None:
    page = opened("/?q=dry+cloth", viewport={"width": 1100, "height": 300})
    page.locator(".hit h2 a").first.click()
    expect(page.locator("#cited")).to_be_in_viewport()
    expect(page.get_by_text("← Results")).to_have_count(1)
    assert "cited" in str(page.locator("#cited").get_attribute("class"))


def test_a_raw_citation_in_the_address_works(opened: Open) -> None:
    page = opened("/read?uri=long.txt#L1500-L1501")
    expect(page.locator("#L1500.cited")).to_be_in_viewport()


def test_the_citation_is_copied(opened: Open) -> None:
    page = opened("/read?uri=guide.md%23L14-L20")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "guide.md#L14-L20"


def test_the_passage_on_a_page_of_a_pdf_is_marked(opened: Open) -> None:
    page = opened("/?q=zeppelin")
    page.locator(".hit h2 a").first.click()
    expect(page.locator("#cited")).to_contain_text("The zeppelin was sold in spring.")
    page.get_by_text("After →").first.click()
    expect(page.get_by_text("Page 3 of 3").first).to_be_visible()


# --- libraries, status, login


def test_a_library_is_found_asked_and_read(opened: Open) -> None:
    page = opened("/")
    page.get_by_role("link", name="Libraries").click()
    page.locator("#q").fill("widget")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Widget", exact=True).click()
    assert page.get_by_label("Version").input_value() == ""
    page.locator("#q").fill("create a dial")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator(".library-snippet pre").first).to_contain_text('widget.create("dial", size=3)')
    page.get_by_role("link", name="Create a dial").first.click()
    expect(page.locator("#cited")).to_be_in_viewport()


def test_an_ingest_is_started_and_watched(opened: Open, corpus: PageCorpus) -> None:
    for number in range(60):
        (corpus.notes / f"added-{number}.md").write_text(f"# Added {number}\n\nAn okapi, the {number}th.\n")
    page = opened("/status")
    page.get_by_label("make vectors too").uncheck()
    page.get_by_role("button", name="Bring all sources up to date").click()
    expect(page.locator(".state").first).to_have_text("done")
    expect(page.locator(".jobs li").first).to_contain_text("60 added")
    page.goto("/?q=okapi")
    expect(page.locator(".hit").first).to_be_visible()


def test_logging_in_and_out(opened: Open, guarded: str) -> None:
    page = opened("/?q=lamp", at=guarded)
    expect(page).to_have_url(re.compile("/login"))
    page.get_by_label("Token").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/\?q=lamp$"))
    expect(page.locator(".hit").first).to_be_visible()
    assert page.evaluate("document.cookie") == ""
    (cookie,) = page.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url(re.compile("/login$"))
    page.goto("/")
    expect(page).to_have_url(re.compile("/login"))


# --- without a script


def test_everything_works_without_a_script(opened: Open) -> None:
    page = opened("/", java_script_enabled=False)
    page.locator("#q").fill("lamp")
    page.get_by_text("Filters").click()
    page.get_by_label("Type").select_option("markdown")
    page.get_by_role("button", name="Search").click()
    expect(page).to_have_url(re.compile("type=markdown"))
    page.locator(".hit h2 a").first.click()
    expect(page.locator("#cited")).to_be_in_viewport()
    expect(page.get_by_label("Citation")).to_have_value(re.compile(r"#L\d+-L\d+$"))
    expect(page.get_by_role("button", name="Copy")).to_be_hidden()
    page.get_by_role("link", name="Source", exact=True).click()
    expect(page.locator("li.cited").first).to_be_in_viewport()
    page.get_by_role("link", name="Libraries").click()
    page.locator("#q").fill("widget")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name="Widget", exact=True).click()
    page.locator("#q").fill("dial")
    page.get_by_role("button", name="Ask").click()
    expect(page.locator(".library-snippet").first).to_be_visible()
    page.get_by_role("link", name="Status").click()
    page.get_by_role("button", name="Bring all sources up to date").click()
    expect(page.locator(".jobs li").first).to_be_visible()


# --- attacks: the fixture fails on any dialog, request to elsewhere, error, or violation of the policy


@pytest.mark.parametrize(
    "attack", [ATTACK, SCRIPT, f'">{SCRIPT}', "'-alert(1)-'", "{{7*7}}", "</title><script>alert(1)</script>"]
)
def test_a_hostile_query_is_inert(opened: Open, attack: str) -> None:
    page = opened(f"/?q={quote(attack)}")
    assert page.locator("#q").input_value() == attack
    page.locator("#q").fill(attack + " quokka")
    expect(page).to_have_url(re.compile("quokka"))
    expect(page.locator(".hit").first).to_be_visible()
    assert page.title() == f"{attack} quokka · Kebab"
    assert page.locator("main img, main iframe, main script, main svg").count() == 0


def test_hostile_names_titles_tags_and_snippets_are_inert(opened: Open) -> None:
    page = opened("/?q=quokka")
    expect(page.locator(".hit h2 a").first).to_contain_text(SCRIPT)
    expect(page.locator(".hit .snippet").first).to_contain_text("<script>alert(1)</script>")
    page.locator(".hit .tag").first.hover()
    page.locator(".hit .tag").first.click()
    assert parse_qs(urlsplit(page.url).query)["tag"] == ["<b onmouseover=alert(1)>"]
    page.goto("/?q=platypus")
    page.locator(".hit h2 a").first.click()
    expect(page.locator(".path")).to_contain_text(HOSTILE_FILE)
    assert page.locator("main img, main iframe, main script").count() == 0


def test_hostile_markdown_is_inert(opened: Open) -> None:
    page = opened("/read?uri=hostile.md")
    assert page.locator("article img, article iframe, article script, article a").count() == 0
    for words in ("click me", "me too", "data", "entity", "raw"):
        page.locator("article").get_by_text(words, exact=False).first.click()
    assert page.url.endswith("/read?uri=hostile.md")
    page.goto("/read?uri=hostile.md&view=source")
    expect(page.locator(".lines")).to_contain_text(ATTACK)


def test_a_hostile_library_is_inert(opened: Open) -> None:
    page = opened("/libraries")
    expect(page.get_by_role("link", name=f"{SCRIPT} widget")).to_be_visible()
    page.goto("/library?id=/evil/widget&q=dial")
    expect(page.locator("h1")).to_have_text(f"{SCRIPT} widget")
    assert page.locator("main img, main iframe, main script").count() == 0


# --- everyone's screen


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation_on_any_page(opened: Open, axe: str, scheme: str) -> None:
    page = opened("/", color_scheme=scheme)
    found: dict[str, list[str]] = {}
    for name, address in EVERY_PAGE.items():
        page.goto(address)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        page.evaluate(axe)
        result = page.evaluate("axe.run()")
        assert result["passes"], name
        serious = [
            f"{violation['id']}: {violation['nodes'][0]['html'][:200]}"
            for violation in result["violations"]
            if violation["impact"] in ("serious", "critical")
        ]
        if serious:
            found[name] = serious
    assert found == {}


def test_the_login_has_no_serious_barrier(opened: Open, axe: str, guarded: str) -> None:
    page = opened("/login", at=guarded)
    page.evaluate(axe)
    assert [
        one["id"] for one in page.evaluate("axe.run()")["violations"] if one["impact"] in ("serious", "critical")
    ] == []


def test_dark_is_dark_and_light_is_light(opened: Open) -> None:
    def paper(scheme: str) -> int:
        colour = opened("/", color_scheme=scheme).evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    assert paper("dark") < 150 < 600 < paper("light")


def test_at_360_pixels_nothing_is_wider_than_the_screen(opened: Open) -> None:
    page = opened("/", viewport={"width": 360, "height": 740})
    for name, address in EVERY_PAGE.items():
        page.goto(address)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name


def test_answers_do_not_move_the_form(opened: Open) -> None:
    page = opened("/")
    before = page.locator("#search").bounding_box()
    page.locator("#q").fill("lamp")
    expect(page.locator(".hit").first).to_be_visible()
    assert page.locator("#search").bounding_box() == before
