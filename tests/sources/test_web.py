"""Fetching files from a server on this machine."""

from __future__ import annotations

import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kebab.core.errors import SourceError
from kebab.sources.git_mirror import FetchLimits
from kebab.sources.origin import checked_web_address, fetch, repository_facts

LIMITS = FetchLimits(10, 1)


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        pages = {
            "/llms.txt": (200, b"# Docs\n", {}),
            "/large.zip": (200, b"x" * (2 << 20), {}),
            "/moved": (302, b"", {"Location": "/llms.txt"}),
            "/to-a-file": (302, b"", {"Location": "file:///etc/passwd"}),
            "/to-ftp": (302, b"", {"Location": "ftp://127.0.0.1/x"}),
            "/round": (302, b"", {"Location": "/round"}),
            "/leaky": (302, b"", {"Location": "ldap://me:secret@127.0.0.1/x"}),
            "/repos/acme/widget": (200, b'{"stargazers_count": 1200, "description": " Gauges\\n for  all "}', {}),
            "/repos/acme/odd": (200, b'{"stargazers_count": "many", "description": 3}', {}),
            "/repos/acme/list": (200, b"[]", {}),
            "/repos/acme/page": (200, b"<html>", {}),
        }
        status, body, headers = pages.get(self.path, (404, b"no", {}))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


class ClosedSite(Site):
    """Requires a password and records its requests. `elsewhere` is another site."""

    elsewhere = ""

    def do_GET(self) -> None:
        sent = self.headers.get("Authorization", "none")
        if self.path.startswith("/leave"):
            self.send_response(302)
            self.send_header("Location", f"{self.elsewhere}/asked")
        elif self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/file")
        elif self.path == "/asked" or sent == "Basic " + b64encode("me:p@ss/wörd".encode()).decode():
            self.send_response(200)
        else:
            self.send_response(401)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent.encode())


class SlowSite(Site):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(100):
            self.wfile.write(b"x")
            self.wfile.flush()
            time.sleep(0.05)


def served(site: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), site)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    yield from served(Site)


@pytest.fixture
def closed_site() -> Iterator[str]:
    """A site that requires a name and password."""
    for site in served(ClosedSite):
        yield site.replace("://", "://me:p%40ss%2Fw%C3%B6rd@")


@pytest.fixture
def slow_site() -> Iterator[str]:
    yield from served(SlowSite)


def test_a_file_is_fetched_through_redirects(site: str) -> None:
    assert fetch(f"{site}/llms.txt", LIMITS) == b"# Docs\n"
    assert fetch(f"{site}/moved", LIMITS) == b"# Docs\n"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/nothing", "answered 404"),
        ("/large.zip", "larger than 1 MB"),
        ("/to-a-file", "not on the web"),
        ("/to-ftp", "not on the web"),
        ("/round", "could not be fetched|answered 302"),
    ],
)
def test_a_failed_fetch_is_an_error_with_its_reason(site: str, path: str, words: str) -> None:
    with pytest.raises(SourceError, match=words) as caught:
        fetch(f"{site}{path}", LIMITS)
    assert caught.value.hint


def test_a_slow_server_is_given_up_in_time(slow_site: str) -> None:
    with pytest.raises(SourceError, match="took longer than"):
        fetch(slow_site, FetchLimits(0.3, 1))


def test_a_refused_connection_is_an_error(site: str) -> None:
    with pytest.raises(SourceError, match="could not be fetched"):
        fetch("http://127.0.0.1:1/llms.txt", LIMITS)


def test_errors_do_not_show_passwords_or_keys(site: str) -> None:
    with pytest.raises(SourceError) as caught:
        fetch(site.replace("//", "//me:secret@") + "/nothing?key=secret", LIMITS)
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "ftp://x/y", "http://", "http://a b/", "x", "", "http://[::1", "http://x/\n"]
)
def test_only_addresses_on_the_web_are_taken(address: str) -> None:
    with pytest.raises(SourceError):
        checked_web_address(address)


def test_stars_and_description_of_a_repository_are_fetched(site: str) -> None:
    assert repository_facts("acme", "widget", site, 10) == (1200, "Gauges for all")
    assert repository_facts("acme", "odd", site, 10) == (None, None)
    for project in ("list", "page"):
        with pytest.raises(SourceError, match="did not answer what was expected"):
            repository_facts("acme", project, site, 10)


@pytest.mark.parametrize("path", ["/file", "/moved"])
def test_name_and_password_of_an_address_are_sent_to_its_host(closed_site: str, path: str) -> None:
    said = fetch(f"{closed_site}{path}", LIMITS).decode()
    assert b64decode(said.removeprefix("Basic ")).decode() == "me:p@ss/wörd"
    with pytest.raises(SourceError, match="answered 401") as caught:
        fetch(f"{closed_site.replace('me:', 'you:')}{path}", LIMITS)
    assert "p%40ss" not in caught.value.message


def test_a_password_with_an_at_sign_is_taken_as_it_is(closed_site: str) -> None:
    assert fetch(f"{closed_site.replace('%40', '@')}/file", LIMITS)


def test_a_password_is_not_sent_on_to_another_host(closed_site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in served(ClosedSite):
        monkeypatch.setattr(ClosedSite, "elsewhere", other)
        assert fetch(f"{closed_site}/leave", LIMITS) == b"none"
        monkeypatch.setattr(ClosedSite, "elsewhere", other.replace("://", "://you:known@"))
        assert fetch(f"{closed_site}/leave", LIMITS) == b"none"


def test_a_password_in_a_redirect_is_not_shown(site: str) -> None:
    with pytest.raises(SourceError) as caught:
        fetch(f"{site}/leaky", LIMITS)
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    "address",
    [
        "ftp://me:secret@x/y",
        "http://me:p/secret@x/y",
        "http://me:secret@x:y/",
        "http://me:secret@[::1",
        "http://me:secret@x/ y",
    ],
)
def test_an_invalid_address_is_shown_without_its_password(address: str) -> None:
    with pytest.raises(SourceError) as caught:
        checked_web_address(address)
    assert "secret" not in caught.value.message
