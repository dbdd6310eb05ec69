"""Files and facts from the web, fetched only because somebody named them: an llms.txt or an archive by its address, the stars of a
repository when they are asked for.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from base64 import b64encode
from http.client import HTTPException, HTTPMessage
from typing import IO, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

from kebab.core.errors import SourceError
from kebab.timed_http import TimeBudget, TimedOpener

_STEP = 1 << 16
_QUIET_SECONDS = 30.0
"""How long nothing may come before it counts as broken off."""
_MOST_FACT_BYTES = 4 << 20
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://[^\s'\"]+")
_END_OF_AUTHORITY = re.compile(r"[/?#\\]")
_SHORTEST_SECRET = 4
"""What is shorter is part of many words; taking it out would leave nothing to read."""


class FetchLimits(NamedTuple):
    """For whatever comes over the network."""

    seconds: float
    megabytes: float


class RepositoryFacts(NamedTuple):
    stars: int | None
    description: str | None


def fetch(url: str, limits: FetchLimits) -> bytes:
    """What lies at an http or https address; SourceError when it does not come, takes too long, or is too large.

    A name and password in the address are sent to that host, and to no other that it may lead to.
    """
    deadline = TimeBudget(limits.seconds, _QUIET_SECONDS)
    request = _request(checked_web_address(url))
    parts, length = [], 0
    try:
        with _OPENER.open(request, deadline) as answer:
            while part := answer.read(_STEP):
                length += len(part)
                parts.append(part)
                if length > limits.megabytes * 2**20:
                    raise SourceError(f"{_shown(url)} is larger than {limits.megabytes:g} MB.", hint="Raise the setting library.fetch_mb.")
    except urllib.error.HTTPError as error:
        error.close()
        reason = without_credentials(str(error.reason), url)
        raise SourceError(f"{_shown(url)} answered {error.code} {reason}.", hint="Check the address.") from error
    except (OSError, HTTPException, ValueError) as error:
        if deadline.is_over:
            raise SourceError(
                f"{_shown(url)} took longer than {limits.seconds:g} seconds.", hint="Raise the setting library.fetch_seconds."
            ) from error
        reason = without_credentials(str(getattr(error, "reason", None) or error), url).rstrip(".")
        raise SourceError(f"{_shown(url)} could not be fetched: {reason}.", hint="Check the address and the network.") from error
    return b"".join(parts)


def repository_facts(owner: str, project: str, api: str, seconds: float) -> RepositoryFacts:
    """What GitHub says of a repository; `api` is the address its answers come from."""
    address = f"{api.rstrip('/')}/repos/{quote(owner, safe='')}/{quote(project, safe='')}"
    said = fetch(address, FetchLimits(seconds, _MOST_FACT_BYTES / 2**20))
    try:
        found = json.loads(said)
        stars, description = found.get("stargazers_count"), found.get("description")
    except (ValueError, AttributeError, RecursionError) as error:
        raise SourceError(
            f"{_shown(address)} did not answer what was expected.", hint="Leave out --fetch-metadata, or give --stars."
        ) from error
    return RepositoryFacts(
        stars if type(stars) is int and stars >= 0 else None,
        " ".join(description.split()) if isinstance(description, str) and description.strip() else None,
    )


def checked_web_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # ValueError where a password with a slash stands in its place
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable() and " " not in url
    except ValueError:
        is_one = False
    if not is_one:
        raise SourceError(f"{_shown(url)!r} is not an address on the web.", hint="For example: https://docs.example.org/llms.txt")
    return url


class _OnTheWeb(urllib.request.HTTPRedirectHandler):
    """A redirect may lead to another page, never to a file of this machine, and takes a password no further than the host it is for."""

    max_redirections = 5

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if urlsplit(newurl).scheme not in ("http", "https"):
            raise urllib.error.HTTPError(req.full_url, code, "and leads to something that is not on the web", headers, fp)
        parts = urlsplit(newurl)
        following = super().redirect_request(req, fp, code, msg, headers, _without_user(parts))
        if following is not None and (parts.scheme, _host(parts)) == (req.type, req.host):
            following.unredirected_hdrs.update(req.unredirected_hdrs)
        return following


_OPENER = TimedOpener(_OnTheWeb)


def _request(url: str) -> urllib.request.Request:
    parts = urlsplit(url)
    request = urllib.request.Request(_without_user(parts), headers={"User-Agent": "kebab", "Accept": "*/*"})
    name_and_password, given, _ = parts.netloc.rpartition("@")
    if given:
        name, _, password = name_and_password.partition(":")
        coded = b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {coded}")
    return request


def _without_user(parts: SplitResult) -> str:
    return parts._replace(netloc=_host(parts)).geturl()


def _host(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def shown_address(url: str) -> str:
    """Without the name and password it may have in it.

    Where a password may reach beyond the first slash, nobody can say where it ends: then only the scheme is shown.
    """
    scheme, found, rest = url.partition("://")
    if not found:
        return url
    end = _END_OF_AUTHORITY.search(rest)
    authority, path = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    if "@" in path and (":" in authority or "@" in authority):
        return f"{scheme}://…"
    return f"{scheme}://{authority.rpartition('@')[2]}{path}"


def without_credentials(text: str, url: str) -> str:
    """What a program said about an address: neither this one's name and password nor those of another that it names."""
    text = _ADDRESS.sub(lambda found: shown_address(found[0]), text.replace(url, shown_address(url)))
    given = urlsplit(url).netloc.rpartition("@")[0] if "://" in url else ""
    secrets = {part for whole in (given, unquote(given)) for part in re.split(r"[:@]", whole) if len(part) >= _SHORTEST_SECRET}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "…")
    return text


def _shown(url: str) -> str:
    """Without a name and password, and without what follows the path: it may be a key."""
    return re.split(r"[?#]", shown_address(url), maxsplit=1)[0]
