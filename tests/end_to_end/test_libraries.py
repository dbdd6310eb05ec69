"""`kb lib` as a user runs it: exact formats, kills, export to another machine, and no network request that was not
asked for.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Upstream
    from tests.end_to_end.conftest import User

GO = "```go\nfunc main() {\n\tdial()\n}\n```"
PAGES = {
    "README.md": "# Widget\n\nGauges for dashboards.\n",
    "docs/guide.md": f"# Guide\n\n## Create a dial\n\nLike this:\n\n{GO}\n\n## Colours\n\nAny CSS colour is accepted.\n",
    "context7.json": json.dumps(
        {"projectTitle": "Widget", "description": "Gauges for dashboards", "rules": ["Always close a gauge"]}
    ),
}


@pytest.fixture
def widget(user: User, upstream: Upstream) -> User:
    upstream.commit(PAGES, tag="v1.0.0")
    user.ask("lib", "add", upstream.url, "--id", "/acme/widget", "--version", "v1.0.0")
    return user


def test_library_texts_are_printed_exactly_without_any_model(widget: User) -> None:
    """Tabs are printed too."""
    found = widget.run("lib", "search", "widget")
    assert found.out == (
        "1. Widget\n   Library ID: /acme/widget\n   Description: Gauges for dashboards\n"
        "   Snippets: 3 | Trust Score: 2.0/10\n   Available Versions: v1.0.0\n"
    )
    docs = widget.run("lib", "docs", "/acme/widget", "create a dial", "--type", "code")
    assert docs.out == (
        "## Library Rules\n- Always close a gauge\n\n*These rules are the library's own words.*\n\n---\n\n### Create a dial\n*Widget > Guide*\n```go\nfunc main() {\n\tdial()\n}\n```\n"
    )
    both = widget.run("lib", "docs", "/acme/widget", "dial OR colour")
    assert "\n\n---\n\n### Colours\n*Widget > Guide*\nAny CSS colour is accepted.\n\n---\n\n### Create" in both.out


def test_nothing_found_is_reported_and_exits_with_0(widget: User) -> None:
    none = widget.run("lib", "search", "zzzz")
    assert (none.code, none.out) == (0, "No libraries found matching your search.\n")
    docs = widget.run("lib", "docs", "/acme/widget", "zzzz")
    assert (docs.code, docs.out) == (
        0,
        "## Library Rules\n- Always close a gauge\n\n*These rules are the library's own words.*\n",
    )
    assert "No snippet was found." in docs.err
    assert "zzzz" not in docs.out


def test_json_answers_are_valid_wire_objects(widget: User) -> None:
    docs = widget.ask("lib", "docs", "/acme/widget", "create a dial")
    assert (docs["library_id"], docs["version"], docs["rules"], docs["page"]) == (
        "/acme/widget",
        None,
        ["Always close a gauge"],
        1,
    )
    code = docs["snippets"][0]
    assert (code["type"], code["language"], code["description"]) == ("code", "go", "Like this:")
    assert code["citation"]["uri"] == "docs/guide.md#L1-L11"
    assert 0 < code["score"] <= 1
    found = widget.ask("lib", "search", "widget")["libraries"]
    assert [(library["library_id"], library["state"], library["total_snippets"]) for library in found] == [
        ("/acme/widget", "indexed", 3)
    ]
    assert widget.ask("list", "libraries") == widget.ask("lib", "list")
    hits = widget.ask("search", "dial", "--library", "/acme/widget/v1.0.0")["hits"]
    assert [hit["doc_path"] for hit in hits] == ["docs/guide.md"]
    assert widget.ask("search", "dial")["hits"] == []


def test_errors_have_their_codes(widget: User) -> None:
    widget.fails("lib", "docs", "/acme/nope", "dial", code="not_found")
    widget.fails("lib", "docs", "/acme/widget/v9", "dial", code="not_found")
    widget.fails("search", "dial", "--library", "/acme/nope", code="not_found")
    widget.fails("lib", "docs", "nope", "dial", code="usage")
    widget.fails("lib", "add", "/nowhere", code="source_error")
    widget.fails("lib", "add", "ext::sh -c touch% /tmp/owned", code="source_error")
    widget.fails("lib", "add", "--id", "nope", str(widget.notes), code="source_error")
    widget.fails("lib", "remove", "/acme/widget", code="usage")
    widget.fails("lib", "export", "/acme/nope", "x.kebab", code="not_found")
    widget.fails("lib", "export", "/acme/widget", "/nowhere/at/all.kebab", code="source_error")
    widget.write("empty/logo.svg", "<svg/>", widget.folder)
    widget.fails("lib", "add", "empty", code="nothing_indexable")


def test_an_exported_library_is_added_on_another_machine(
    widget: User, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from tests.end_to_end.conftest import User

    file = widget.folder / "widget.kebab"
    assert "2 documents in" in widget.run("lib", "export", "/acme/widget", file).out
    widget.fails("lib", "export", "/acme/widget", file, code="usage")
    assert widget.run("lib", "export", "/acme/widget", file, "--force").code == 0
    other = User(tmp_path_factory.mktemp("other"))
    other.ask("lib", "add", file)
    for arguments in (("lib", "search", "widget"), ("lib", "docs", "/acme/widget/v1.0.0", "dial")):
        assert other.run(*arguments).out == widget.run(*arguments).out
    other.check()


@pytest.mark.parametrize("kind", ["git", "folder"])
def test_a_killed_refresh_leaves_the_previous_index_and_the_next_refresh_continues(
    user: User, upstream: Upstream, kind: str
) -> None:
    upstream.commit(PAGES)
    source = upstream.url
    if kind == "folder":
        source = str(upstream.folder)
        upstream.folder.joinpath(".git").rename(upstream.folder.parent / "elsewhere")
    user.ask("lib", "add", source, "--id", "/acme/widget")
    body = "\n\n".join(f"## Part {part}\n\nA dial of words {part}. " + "word " * 300 for part in range(12))
    for number in range(300):
        page = upstream.folder / "docs" / f"{number}.md"
        page.write_text(f"# Page {number}\n\n{body}\n")
    if kind == "git":
        upstream.commit({})
    process = user.start("lib", "refresh", "/acme/widget", "--progress", "json")
    assert process.stderr is not None
    for line in process.stderr:
        if (json.loads(line).get("done") or 0) >= 150:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    user.check()
    assert "\tdial()" in user.run("lib", "docs", "/acme/widget", "create a dial").out
    (library,) = user.ask("lib", "list")["items"]
    assert (library["state"], library["total_snippets"]) == ("indexed", 3)
    report = user.ask("lib", "refresh", "/acme/widget")
    assert 0 < report["added"] < 290, "what was done is not done again"
    assert user.ask("lib", "list")["items"][0]["total_snippets"] > 3000
    user.check()


def test_ctrl_c_ends_adding_with_one_line(user: User, upstream: Upstream) -> None:
    upstream.commit({f"docs/{number}.md": f"# Page {number}\n\n" + "word " * 3000 for number in range(300)})
    process = user.start("lib", "add", upstream.url, "--progress", "json")
    assert process.stderr is not None
    process.stderr.readline()
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in errors


class GitHub(BaseHTTPRequestHandler):
    asked: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = b'{"stargazers_count": 9999, "description": "Gauges"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def github() -> Iterator[str]:
    GitHub.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), GitHub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_stars_are_fetched_only_with_fetch_metadata(user: User, upstream: Upstream, github: str) -> None:
    """git is configured to find a repository on github.com elsewhere, as with a company's mirror."""
    upstream.commit({"docs/a.md": "# A\n\nText.\n"})
    address = "https://github.com/acme/widget"
    (user.home / ".gitconfig").write_text(f'[url "{upstream.url}"]\n\tinsteadOf = {address}\n')
    settings = {"KEBAB_LIBRARY_GITHUB_API": github}
    user.ask("lib", "add", address, env=settings)
    (library,) = user.ask("lib", "list")["items"]
    assert (library["stars"], library["trust_score"], GitHub.asked) == (None, 2.0, [])
    user.ask("lib", "add", address, "--id", "/acme/known", "--fetch-metadata", env=settings)
    known = next(library for library in user.ask("lib", "list")["items"] if library["library_id"] == "/acme/known")
    assert (known["stars"], known["description"], known["trust_score"]) == (9999, "Gauges", 7.0)
    assert GitHub.asked == ["/repos/acme/widget"]
    docs = user.ask("lib", "docs", "/acme/known", "text")
    commit = upstream.git("rev-parse", "HEAD")
    assert docs["snippets"][0]["url"] == f"https://github.com/acme/widget/blob/{commit}/docs/a.md#L1-L3"
    user.fails("lib", "add", upstream.url, "--id", "/acme/x", "--fetch-metadata", code="usage")


def test_an_llms_txt_is_added_by_its_address(user: User, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("site")
    (folder / "llms.txt").write_text("# Widget\n\n> Gauges\n\n## Dials\n\nA dial shows a number.\n")
    server = subprocess.Popen(
        ["python3", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(folder)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={"PYTHONUNBUFFERED": "1", "PATH": "/usr/bin:/bin:/usr/local/bin"},
    )  # fmt: skip
    try:
        assert server.stdout is not None
        address = server.stdout.readline().decode().split("(")[1].split(")")[0]
        user.ask("lib", "add", f"{address}llms.txt")
        assert "A dial shows a number." in user.run("lib", "docs", "/127.0.0.1/llms", "dial").out
        user.fails("lib", "add", f"{address}nothing.zip", code="source_error")
    finally:
        server.kill()
        server.communicate()
