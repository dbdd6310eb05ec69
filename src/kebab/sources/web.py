"""Files and facts from the web, fetched only because somebody named them: an llms.txt or an archive by its address, the stars of a
repository when they are asked for.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from http.client import HTTPException, HTTPMessage
from typing import IO, NamedTuple
from urllib.parse import quote, urlsplit

from kebab.core.errors import SourceError

_STEP = 1 << 16
_QUIET_SECONDS = 30.0
"""How long nothing may come before it counts as broken off."""
_MOST_FACT_BYTES = 4 << 20


class FetchLimits(NamedTuple):
    """For whatever comes over the network."""

    seconds: float
    megabytes: float


class RepositoryFacts(NamedTuple):
    stars: int | None
    description: str | None


def fetch(url: str, limits: FetchLimits) -> bytes:
    """What lies at an http or https address; SourceError when it does not come, takes too long, or is too large."""
    checked_web_address(url)
    ends = time.monotonic() + limits.seconds
    request = urllib.request.Request(url, headers={"User-Agent": "kebab", "Accept": "*/*"})
    parts, length = [], 0
    try:
        with _OPENER.open(request, timeout=min(_QUIET_SECONDS, limits.seconds)) as answer:
            while part := answer.read(_STEP):
                length += len(part)
                parts.append(part)
                if length > limits.megabytes * 2**20:
                    raise SourceError(f"{_shown(url)} is larger than {limits.megabytes:g} MB.", hint="Raise the setting library.fetch_mb.")
                if time.monotonic() > ends:
                    raise SourceError(
                        f"{_shown(url)} took longer than {limits.seconds:g} seconds.", hint="Raise the setting library.fetch_seconds."
                    )
    except urllib.error.HTTPError as error:
        error.close()
        raise SourceError(f"{_shown(url)} answered {error.code} {error.reason}.", hint="Check the address.") from error
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise SourceError(
            f"{_shown(url)} could not be fetched: {str(reason).rstrip('.')}.", hint="Check the address and the network."
        ) from error
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
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable() and " " not in url
    except ValueError:
        is_one = False
    if not is_one:
        raise SourceError(f"{url!r} is not an address on the web.", hint="For example: https://docs.example.org/llms.txt")
    return url


class _OnTheWeb(urllib.request.HTTPRedirectHandler):
    """A redirect may lead to another page, never to a file of this machine."""

    max_redirections = 5

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if urlsplit(newurl).scheme not in ("http", "https"):
            raise urllib.error.HTTPError(req.full_url, code, "and leads to something that is not on the web", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_OPENER = urllib.request.build_opener(_OnTheWeb)


def _shown(url: str) -> str:
    """Without a name and password, and without what follows the path: it may be a key."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
