"""The web pages without a browser: their content, their states, and that no text of the user becomes markup."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from starlette.testclient import TestClient
from tests.interfaces.http.live_parts import LiveParts
from tests.interfaces.http.page_corpus import ATTACK, HOSTILE_FILE, PageCorpus, make_corpus

import kebab
from kebab.config.loading import load_settings
from kebab.interfaces.http.safety import SESSION_COOKIE, Rules
from kebab.interfaces.http.server import make_app
from kebab.interfaces.service import Service
from kebab.knowledge_base import KnowledgeBase

TOKEN = "a-token-of-32-letters-and-digits"
HTML = {"Accept": "text/html"}
_TAG = re.compile(r"<[^>]*>")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> PageCorpus:
    return make_corpus(tmp_path_factory.mktemp("pages"))


def client_of(db: Path, *, allow_write: bool = False, **rules: Any) -> TestClient:
    service = Service(
        KnowledgeBase(load_settings(flags={"store.path": str(db)}), paths_on_disk=False), allow_write=allow_write
    )
    return TestClient(
        make_app(service, Rules("127.0.0.1", **rules)),
        base_url="http://127.0.0.1",
        headers=HTML,
        follow_redirects=False,
    )


@pytest.fixture(scope="module")
def pages(corpus: PageCorpus) -> Iterator[TestClient]:
    with client_of(corpus.db) as client:
        yield client


Get = Callable[..., str]


@pytest.fixture
def get(pages: TestClient) -> Get:
    """A function that returns the page at an address, and checks that only our own parts of it run code."""

    def page(address: str, status: int = 200) -> str:
        response = pages.get(address)
        assert response.status_code == status, response.text[:2000]
        assert response.headers["content-type"] == "text/html; charset=utf-8"
        assert LiveParts(response.text).found == []
        return response.text

    return page


def text_of(html: str) -> str:
    return " ".join(unescape(_TAG.sub(" ", html)).split())


def links(html: str, inside: str = "") -> list[str]:
    return [unescape(found) for found in re.findall(rf'<a [^>]*href="([^"]*)"[^>]*>[^<]*{inside}', html)]


# --- search


def test_a_hit_shows_its_title_snippet_and_citation(get: Get) -> None:
    html = get("/?q=brown+wire&mode=lexical")
    hit = html[html.index('<li class="hit">') :]
    text = text_of(hit)
    for fact in ("Guide to lamps", "Wiring", "guide.md:L", "markdown", "2026-02-03", "#lamps"):
        assert fact in text
    assert "<b>wire</b>" in hit
    assert '<ol class="hits" start="1">' in html


def test_a_snippet_has_16_words_and_marks_them(get: Get) -> None:
    """Matches are in `<b>`, an ellipsis is where the text was cut, and there are 16 words."""
    html = get("/?q=middle+sentence&mode=lexical")
    snippet = re.search(r'<p class="snippet" dir="auto">(.*?)</p>', html)
    assert snippet is not None
    assert "<b>sentence</b>" in snippet[1]
    words = text_of(snippet[1].replace("<b>", "").replace("</b>", "")).strip("…").split()
    assert len(words) == 16
    assert "…" in snippet[1]


def test_the_link_of_a_hit_opens_its_lines(get: Get) -> None:
    html = get("/?q=dry+cloth&mode=lexical&source=notes")
    address = links(html, "Guide to lamps")[0]
    assert address.endswith("#cited")
    uri = parse_qs(urlsplit(address).query)["uri"][0]
    assert re.fullmatch(r"notes:guide\.md#L\d+-L\d+", uri)
    assert '<p class="cited"' in get(address) or 'class="cited"' in get(address)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("type=code", "lamp.py"),
        ("type=pdf", ""),
        ("tag=lamps", "guide.md"),
        ("lang=ko", ""),
        ("after=2026-02-03&before=2026-02-04", "guide.md"),
    ],
)
def test_filters_narrow_the_list(get: Get, parameters: str, expected: str) -> None:
    html = get(f"/?q=lamp&mode=lexical&{parameters}")
    found = set(re.findall(r'<code class="citation">([^:<]*)', html))
    assert found == ({f"scripts/{expected}" if expected.endswith(".py") else expected} if expected else set())


def test_the_search_form_keeps_the_query_and_its_filters(get: Get) -> None:
    html = get("/?q=lamp&mode=lexical&type=code&tag=lamps&lang=en&source=notes&after=1+year&explain=true&sort=date")
    assert 'value="lamp"' in html
    assert 'value="lexical" checked' in html
    for chosen in ("code", "en", "notes", "date"):
        assert f'<option value="{chosen}" selected>' in html
    assert 'name="tag" list="tags" value="lamps"' in html
    assert 'name="after" list="dates" value="1 year"' in html
    assert 'name="explain" value="true" checked' in html
    assert '<details class="filters" open>' in html
    html = get("/?q=lamp&per_doc=1&cursor=&exclude_tag=a&exclude_tag=b")
    assert re.findall(r'<input type="hidden" name="(\w+)" value="(\w+)">', html) == [
        ("per_doc", "1"),
        ("exclude_tag", "a"),
        ("exclude_tag", "b"),
    ]


def test_without_hits_the_page_suggests_spellings_and_filters_to_drop(get: Get) -> None:
    html = get("/?q=zepelin&mode=lexical")
    assert "/?mode=lexical&q=zeppelin" in links(html, "zeppelin") or "/?q=zeppelin&mode=lexical" in links(
        html, "zeppelin"
    )
    html = get("/?q=zeppelin&mode=lexical&type=code&lang=en")
    assert "No passage found" in html
    assert links(html, "without type code") == ["/?q=zeppelin&mode=lexical&lang=en"]
    assert links(html, "without any filter") == ["/?q=zeppelin"]


def test_the_next_page_continues_the_list(get: Get) -> None:
    html = get("/?q=ledger&mode=lexical&k=3&duplicates=show")
    (more,) = links(html, "More passages")
    following = get(more)
    assert '<ol class="hits" start="4">' in following
    assert links(following, "From the beginning") == ["/?q=ledger&mode=lexical&k=3&duplicates=show"]


def test_a_stale_cursor_shows_an_error_with_a_link_to_the_first_page(get: Get) -> None:
    html = get("/?q=lamp&cursor=0123456789abcdef.auto.any.30.2", 409)
    assert 'data-code="stale_cursor"' in html
    assert links(html, "Search again") == ["/?q=lamp"]


def test_the_page_explains_hits_if_requested(get: Get) -> None:
    assert "Why it is here" not in get("/?q=lamp&mode=lexical")
    html = get("/?q=lamp&mode=lexical&explain=true")
    assert "By words: number 1" in text_of(html)
    assert "How this list was made" in html


@pytest.mark.parametrize(
    ("address", "status", "words"),
    [
        ("/?q=x&source=nowhere", 404, "There is no source nowhere."),
        ("/?q=x&type=song", 400, "Valid: pdf, markdown, code, note."),
        ("/?q='raw AND'", 400, ""),
        ("/?q=x&nonsense=1", 400, "There is no search option 'nonsense'."),
        ("/?q=x&mode=vector", 409, ""),
    ],
)
def test_an_invalid_query_is_reported_beside_the_form(get: Get, address: str, status: int, words: str) -> None:
    html = get(address, status)
    assert 'role="alert"' in html
    assert words in text_of(html)
    assert '<form id="search"' in html


def test_an_empty_database_says_how_to_begin(tmp_path: Path) -> None:
    with kebab.open(tmp_path / "empty.sqlite") as made:
        made.ingest_text("x", title="x")
        made.remove_source(made.sources()[0].name)
    with client_of(tmp_path / "empty.sqlite") as client:
        for address in ("/", "/status"):
            assert "kb ingest FOLDER" in client.get(address).text
        assert "kb lib add" in client.get("/libraries").text


def test_the_address_for_the_list_alone_returns_the_list_of_the_page(pages: TestClient, get: Get) -> None:
    alone = get("/results?q=lamp&mode=lexical")
    assert "<html" not in alone
    strip = re.compile(r"\d+ ms")
    assert strip.sub("", alone.strip()) in strip.sub("", get("/?q=lamp&mode=lexical"))
    assert 'class="hit"' in get("/results?q=zeppel&mode=lexical&type_ahead=true")


def test_a_query_is_escaped_in_the_page(get: Get) -> None:
    html = get(f"/?q={quote(chr(34) + '>' + ATTACK)}")
    assert f'value="{chr(38)}#34;{chr(38)}gt;{chr(38)}lt;img' in html


def test_names_titles_tags_and_snippets_are_escaped(get: Get) -> None:
    """The fixture `get` checks that nothing is active; this test checks that the attacks really are on the page."""
    html = get("/?q=quokka&mode=lexical")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "&lt;b onmouseover=alert(1)&gt;" in html
    html = get("/?q=platypus&mode=lexical")
    assert "&lt;img src=x onerror=alert(1)&gt;.md:L1" in html
    reader = get(links(html, "A platypus")[0])
    assert HOSTILE_FILE in text_of(reader)


# --- reader


def test_markdown_is_rendered_and_the_cited_blocks_are_marked(get: Get) -> None:
    html = get("/read?uri=guide.md%23L14-L20")
    cited = re.findall(r'<(\w+)(?: id="cited")? class="cited"', html) + re.findall(
        r'<(\w+) class="cited"(?: id="cited")?', html
    )
    assert "pre" in cited
    assert "p" in cited
    assert html.count('id="cited"') == 1
    assert "<em>brown</em>" in html
    assert "<th>Wire</th>" in html
    assert "A lamp gives light.<br>" in html
    assert "nobody sees" not in html
    wiring = html.index("Wiring</h3>")
    assert 'class="cited"' not in html[:wiring].split('<article class="prose"')[1].rsplit("<h3", 1)[0]


def test_an_item_of_a_tight_list_and_a_row_of_a_table_can_be_cited(get: Get) -> None:
    lines = {line.strip(): number for number, line in enumerate((get_text(get) or "").split("\n"), 1)}
    item = lines["- another tight item"]
    html = get(f"/read?uri=guide.md%23L{item}-L{item}")
    assert re.search(r'<li[^>]*class="cited"[^>]*>another tight item', html)
    assert not re.search(r'<li[^>]*class="cited"[^>]*>one tight', html)
    row = lines["| blue  | neutral |"]
    assert re.search(r'<tr[^>]*class="cited"[^>]*>\s*<td>blue', get(f"/read?uri=guide.md%23L{row}-L{row}"))


def get_text(get: Get) -> str:
    html = get("/read?uri=guide.md&view=source")
    return "\n".join(
        unescape(line.removesuffix("\n")) for line in re.findall(r"<code>(.*?)</code></li>", html, re.DOTALL)
    )


def test_the_source_has_numbered_lines_and_marks_the_cited_ones(get: Get) -> None:
    html = get("/read?uri=guide.md%23L10-L12&view=source")
    assert re.findall(r'<li id="L(\d+)" class="cited">', html) == ["10", "11", "12"]
    assert '<li id="L10" class="cited"><span id="cited">' in html
    html = get("/read?uri=scripts/lamp.py%23L4-L6")
    assert '<ol class="lines code" start="1">' in html
    assert "&lt;b&gt;{lamp}&lt;/b&gt;" in html


def test_the_reader_shows_exactly_the_indexed_lines(corpus: PageCorpus, get: Get) -> None:
    assert get_text(get) == (corpus.notes / "guide.md").read_text().removesuffix("\n")


def test_links_lead_to_the_web_or_to_indexed_documents(get: Get) -> None:
    html = get("/read?uri=guide.md")
    assert "/read?uri=notes:rules.md#h-switching" in links(html)
    assert 'id="h-switching"' in get("/read?uri=notes:rules.md")
    assert "https://example.org/lamps" in links(html)
    assert "mailto:a@example.org" in links(html)
    assert '<span class="dead-link" title="Not indexed: missing.md">nothing</span>' in html
    assert "[image: a lamp]" in html


def test_hostile_markdown_is_harmless(get: Get) -> None:
    html = get("/read?uri=hostile.md")
    article = html[html.index('<article class="prose"') :]
    assert [link for link in links(article) if not link.startswith("#")] == []
    assert "&lt;iframe" in article
    assert 'data-language="' not in article.split("<pre")[-1].split("><code>")[0]


def test_a_page_of_a_pdf_is_read_with_its_neighbours(get: Get) -> None:
    html = get("/?q=zeppelin&mode=lexical")
    html = get(next(link for link in links(html) if "report.pdf" in link))
    assert "The zeppelin was sold in spring." in html
    assert "Page 2 of 3" in html
    assert 'id="cited"' in html
    assert "Page 3 of 3" in get(next(link for link in links(html, "After")))
    assert "Page 1 of 3" in get("/read?uri=report.pdf")


def test_a_long_document_is_read_in_parts(get: Get) -> None:
    html = get("/read?uri=long.txt%23L1500-L1501")
    assert '<ol class="lines" start="1001">' in html
    assert "Part 2 of 3" in html
    assert "entry 2001 " in get(links(html, "After")[0])
    assert "entry 1 " in get(links(html, "← Before")[0])


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/read", 400),
        ("/read?uri=nowhere.md", 404),
        ("/read?uri=guide.md%23L900-L901", 404),
        ("/read?uri=report.pdf%23page=9", 404),
        ("/read?uri=/etc/passwd", 404),
        ("/read?uri=../../../../etc/passwd%23L1-L2", 404),
        ("/read?uri=file:///etc/passwd", 404),
        ("/read?doc_id=x&lines=a-b", 400),
        ("/read?uri=guide.md&view=hologram", 400),
        ("/library?id=/no/library", 404),
        ("/library", 400),
        ("/nowhere", 404),
        ("/static/kebab.css", 404),
        ("/static/..%2f..%2fapp.py", 404),
    ],
)
def test_an_unknown_document_gives_an_error_page(get: Get, address: str, status: int) -> None:
    html = get(address, status)
    assert 'role="alert"' in html
    assert "root:" not in html


def test_the_reader_never_reads_the_disk(corpus: PageCorpus, get: Get) -> None:
    """A document that is on the disk but not indexed cannot be read by any name."""
    (corpus.notes / "secret.md").write_text("not indexed")
    for name in ("secret.md", str(corpus.notes / "secret.md"), "notes:secret.md", "./secret.md"):
        get(f"/read?uri={quote(name)}", 404)
    get(f"/read?uri={quote(str(corpus.notes / 'guide.md'))}", 404)


def test_a_document_is_read_by_id_with_lines_or_a_page(corpus: PageCorpus, get: Get) -> None:
    with kebab.open(corpus.db) as knowledge_base:
        guide, report = (knowledge_base.document(path)[0].doc_id for path in ("guide.md", "report.pdf"))
    assert 'class="cited"' in get(f"/read?doc_id={guide}&lines=14-16")
    assert "Page 2 of 3" in get(f"/read?doc_id={report}&page=2")


def test_the_reader_links_back_to_the_results(pages: TestClient) -> None:
    address = "/read?uri=guide.md"
    with_back = pages.get(address, headers={"Referer": "http://127.0.0.1/?q=lamp&type=markdown"}).text
    assert links(with_back, "← Results") == ["/?q=lamp&type=markdown"]
    for elsewhere in ("http://elsewhere.example/?q=lamp", "http://[", "http://[]/?q=lamp"):
        without_back = pages.get(address, headers={"Referer": elsewhere})
        assert (without_back.status_code, links(without_back.text, "← Results")) == (200, [])


# --- libraries


def test_a_library_is_found_by_name_and_its_page_answers_a_question(get: Get) -> None:
    html = get("/libraries?name=widget")
    assert "/library?id=/acme/widget" in links(html, "Widget")
    html = get("/library?id=/acme/widget&q=create+a+dial")
    text = text_of(html)
    assert "Widget" in text
    assert "dial = widget.create(" in text
    assert "```" not in text
    assert 'data-language="python"' in html
    assert "README.md:L" in text
    reader = get(links(html, "Create a dial")[0])
    assert 'id="cited"' in reader
    assert "README.md" in reader


def test_text_that_reads_like_orders_is_flagged(get: Get) -> None:
    html = get("/library?id=/acme/widget&q=previous+instructions&type=info")
    assert "Suspicious:" in html
    assert "Ignore all previous instructions" in html


def test_library_docs_can_be_limited_to_code_or_prose(get: Get) -> None:
    assert "<pre" in get("/library?id=/acme/widget&q=dial&type=code")
    assert "<pre" in get("/library?id=/acme/widget&q=dial&version=&type=")  # as the form sends it, with nothing chosen
    assert "<pre" not in get("/library?id=/acme/widget&q=dial&type=info")
    assert 'role="alert"' in get("/library?id=/acme/widget&q=dial&type=song", 400)
    assert 'role="alert"' in get("/library?id=/acme/widget&q=dial&version=v9", 404)


def test_each_version_of_a_library_is_searched_separately(upstream: Any, tmp_path: Path) -> None:
    upstream.commit(
        {
            "README.md": "# Gauge\n\n## Read\n\nCall `old_read` for the value.\n\nSee [more](docs/more.md).\n",
            "docs/more.md": "# More\n",
        },
        "v1.0",
    )
    upstream.commit(
        {"README.md": "# Gauge\n\n## Read\n\nCall `new_read` for the value.\n\nSee [more](docs/more.md).\n"}, "v2.0"
    )
    with kebab.open(tmp_path / "gauge.sqlite") as knowledge_base:
        knowledge_base.libraries.add(upstream.url, library_id="/acme/gauge", versions=["v1.0", "v2.0"], embed=False)
    with client_of(tmp_path / "gauge.sqlite") as client:
        form = client.get("/library?id=/acme/gauge").text
        assert re.findall(r'<option value="([^"]*)"[^>]*>(?:default|v)', form) == ["", "v2.0", "v1.0"]
        old = client.get("/library?id=/acme/gauge&version=v1.0&q=read+value").text
        assert "old_read" in old
        assert "new_read" not in old
        assert '<option value="v1.0" selected>' in old
        reader = client.get(links(old, "Read")[0]).text
        assert "old_read" in reader
        assert "/read?uri=/acme/gauge/v1.0:docs/more.md" in links(reader, "more")
        assert "More" in client.get("/read?uri=/acme/gauge/v1.0:docs/more.md").text
        assert "new_read" in client.get("/library?id=/acme/gauge&q=read+value").text


def test_names_of_libraries_are_escaped(get: Get) -> None:
    assert "&lt;script&gt;alert(1)&lt;/script&gt; widget" in get("/libraries")
    assert "&lt;img src=x" in get("/library?id=/evil/widget&q=dial")


# --- status and ingest


def test_the_status_page_shows_sources_and_libraries(get: Get) -> None:
    text = text_of(get("/status"))
    for fact in ("Documents 8", "notes", "/acme/widget", "This server only reads."):
        assert fact in text


def test_a_button_on_the_status_page_ingests_all_sources(corpus: PageCorpus, tmp_path: Path) -> None:
    note = tmp_path / "own" / "first.md"
    note.parent.mkdir()
    note.write_text("# First\n\nA marmot.\n")
    with kebab.open(tmp_path / "own.sqlite") as knowledge_base:
        knowledge_base.ingest(note.parent)
    note.write_text("# First\n\nA marmot and an axolotl.\n")
    with client_of(tmp_path / "own.sqlite", allow_write=True) as client:
        assert "Bring all sources up to date" in client.get("/status").text
        refused = client.post("/status/ingest", headers={"Origin": "http://elsewhere.example"})
        assert refused.status_code == 403
        started = client.post("/status/ingest", data={}, headers={"Origin": "http://127.0.0.1"})
        assert (started.status_code, started.headers["location"]) == (303, "/status")
        with client.stream("GET", "/api/v1/ingest/1/events") as events:
            assert "event: done" in "".join(events.iter_text())
        page = text_of(client.get("/status").text)
        assert "1 updated" in page
        assert "axolotl" in client.get("/?q=axolotl").text


def test_a_read_only_server_cannot_start_an_ingest_from_the_page(pages: TestClient) -> None:
    assert pages.post("/status/ingest", headers={"Origin": "http://127.0.0.1"}).status_code == 403


# --- login


def test_a_browser_without_the_token_is_asked_for_it(corpus: PageCorpus) -> None:
    with client_of(corpus.db, token=TOKEN) as client:
        turned = client.get("/?q=lamp&mode=lexical")
        assert turned.status_code == 303
        login = turned.headers["location"]
        assert parse_qs(urlsplit(login).query)["next"] == ["/?q=lamp&mode=lexical"]
        typing = client.get("/results?q=lamp").headers[
            "location"
        ]  # the script goes there, and afterwards to a whole page
        assert parse_qs(urlsplit(typing).query)["next"] == ["/?q=lamp"]
        assert client.get("/api/v1/status").status_code == 401
        assert client.get("/", headers={"Accept": "*/*"}).json()["code"] == "unauthorized"
        page = client.get(login).text
        assert "lamp" in page  # the address to go on with
        assert "Documents" not in page
        assert client.get(re.findall(r'href="(/static/[^"]*\.css)"', page)[0]).status_code == 200
        wrong = client.post("/login", data={"token": TOKEN + "x", "next": "/"})
        assert wrong.status_code == 401
        assert "set-cookie" not in wrong.headers
        right = client.post("/login", data={"token": TOKEN, "next": "/?q=lamp"}, headers={"Origin": "http://127.0.0.1"})
        assert (right.status_code, right.headers["location"]) == (303, "/?q=lamp")
        cookie = right.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert TOKEN not in cookie
        assert "Guide to lamps" in client.get("/?q=lamp").text
        out = client.post("/logout", headers={"Origin": "http://127.0.0.1"})
        assert out.headers["location"] == "/login"
        client.cookies.delete(SESSION_COOKIE)
        assert client.get("/").status_code == 303


def test_cookies_of_other_servers_on_this_machine_do_not_log_out(corpus: PageCorpus) -> None:
    """Regression: all ports share their cookies, and a malformed one hid those after it."""
    session = Rules("127.0.0.1", TOKEN).session
    with client_of(corpus.db, token=TOKEN) as client:
        for other in ('prefs={"a": 1}; ', "a b=c; ", "a[b]=1; ", 'x="a; ', "=; "):
            assert client.get("/", headers={"cookie": f"{other}{SESSION_COOKIE}={session}"}).status_code == 200


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/\n/x", "x"]
)
def test_logging_in_never_redirects_to_another_site(corpus: PageCorpus, elsewhere: str) -> None:
    with client_of(corpus.db, token=TOKEN) as client:
        assert client.post("/login", data={"token": TOKEN, "next": elsewhere}).headers["location"] == "/"


def test_without_a_token_the_login_page_redirects(pages: TestClient) -> None:
    assert pages.get("/login").headers["location"] == "/"
    assert "Log out" not in pages.get("/").text


# --- the whole


def test_style_and_script_are_cacheable_and_their_names_contain_a_digest(pages: TestClient) -> None:
    html = pages.get("/").text
    files = re.findall(r'"(/static/[^"]+)"', html)
    assert len(files) == 3
    for file in files:
        response = pages.get(file)
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert re.fullmatch(r"/static/kebab\.[0-9a-f]{12}\.(css|js|svg)", file)


def test_the_search_page_with_style_and_script_is_small(pages: TestClient) -> None:
    """The page with all that it loads has at most 50 kB, compressed."""
    answers = [
        pages.get("/?q=lamp"),
        *(pages.get(file) for file in re.findall(r'"(/static/[^"]+)"', pages.get("/").text)),
    ]
    assert sum(len(gzip.compress(answer.content, 4)) for answer in answers) <= 50 * 1000
    assert all(answer.headers.get("content-encoding") == "gzip" for answer in answers if len(answer.content) > 1400)


def test_every_page_has_a_strict_content_security_policy(pages: TestClient) -> None:
    for address in (
        "/",
        "/?q=lamp",
        "/read?uri=guide.md",
        "/libraries",
        "/library?id=/acme/widget",
        "/status",
        "/nowhere",
    ):
        response = pages.get(address)
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert LiveParts(response.text).found == []


def test_the_response_to_a_defect_has_the_security_headers(
    corpus: PageCorpus, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Regression: only the error page with unexpected text lacked the headers, and the defect was printed twice."""
    monkeypatch.setattr(KnowledgeBase, "count_documents", lambda _self: 1 // 0)
    with client_of(corpus.db) as client:
        for address, words in (("/?q=x", "<strong>Something unexpected"), ("/api/v1/health", '"code": "internal"')):
            response = client.get(address)
            assert (response.status_code, words in response.text) == (500, True)
            assert response.headers["content-security-policy"].startswith("default-src 'none'")
            assert capfd.readouterr().err.count("Traceback") == 1


def test_requests_that_do_not_accept_html_get_errors_as_json(pages: TestClient) -> None:
    assert pages.get("/nowhere", headers={"Accept": "*/*"}).json()["code"] == "not_found"
    assert pages.get("/api/v1/search").json()["code"] == "usage"
