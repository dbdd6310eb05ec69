"""Files and facts from the web, fetched only when a command names them: an llms.txt or an archive by its address, the
stars of a repository.
"""

from __future__ import annotations

import json
import re
import time
from base64 import b64encode
from contextlib import suppress
from netrc import NetrcParseError, netrc
from typing import NamedTuple
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from kebab.core.addresses import shown_address, without_credentials, without_password
from kebab.core.errors import SourceError
from kebab.http_client import Response, opened

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 5
_QUIET_SECONDS = 30.0
"""The longest pause of a download before it counts as broken off."""
_MOST_FACT_BYTES = 4 << 20


PASSWORD_HINT = "A password is not kept: put it into ~/.netrc, or run kb lib add with it in the address again."


class FetchLimits(NamedTuple):
    """Limits of one download."""

    seconds: float
    megabytes: float


class RepositoryFacts(NamedTuple):
    stars: int | None
    description: str | None


def fetch(url: str, limits: FetchLimits) -> bytes:
    """The bytes at an http or https address; SourceError if they cannot be fetched, take too long or are too large.

    A name and password in the address are sent to its host only, never to the target of a redirect.
    """
    ends = time.monotonic() + limits.seconds
    address, authorization = without_password(checked_web_address(url)), _authorization(url)
    try:
        for redirects_left in range(_MOST_REDIRECTS, -1, -1):
            with opened(
                "GET",
                address,
                headers={"Accept": "*/*", **authorization},
                seconds=ends - time.monotonic(),
                quiet_seconds=_QUIET_SECONDS,
            ) as response:
                if 200 <= response.status < 300:
                    return _body(response, url, limits)
                location = response.headers.get("Location")
                if response.status not in _REDIRECTS or location is None or not redirects_left:
                    raise _refused(url, response.status, response.reason)
            before, following = urlsplit(address), urlsplit(urljoin(address, location))
            if following.scheme not in ("http", "https"):
                raise _refused(url, response.status, "and leads to something that is not on the web")
            if (before.scheme, _host(before)) != (following.scheme, _host(following)):
                authorization = {}
            address = without_password(following.geturl())
    except (OSError, ValueError) as error:
        if time.monotonic() >= ends:
            message, hint = f"took longer than {limits.seconds:g} seconds", "Raise the setting library.fetch_seconds."
        else:
            reason = without_credentials(str(error), url).rstrip(".")
            message, hint = f"could not be fetched: {reason}", "Check the address and the network."
        raise SourceError(f"{_shown(url)} {message}.", hint=hint) from error
    raise AssertionError("unreachable")


def _body(response: Response, url: str, limits: FetchLimits) -> bytes:
    parts, length = [], 0
    for part in response.parts():
        length += len(part)
        parts.append(part)
        if length > limits.megabytes * 2**20:
            hint = "Raise the setting library.fetch_mb."
            raise SourceError(f"{_shown(url)} is larger than {limits.megabytes:g} MB.", hint=hint)
    return b"".join(parts)


def _refused(url: str, status: int, reason: str) -> SourceError:
    hint = PASSWORD_HINT if status in (401, 403) else "Check the address."
    return SourceError(f"{_shown(url)} answered {status} {without_credentials(reason, url)}.", hint=hint)


def repository_facts(owner: str, project: str, api: str, seconds: float) -> RepositoryFacts:
    """The stars and the description of a repository on GitHub; `api` is the address of its API."""
    address = f"{api.rstrip('/')}/repos/{quote(owner, safe='')}/{quote(project, safe='')}"
    said = fetch(address, FetchLimits(seconds, _MOST_FACT_BYTES / 2**20))
    try:
        found = json.loads(said)
        stars, description = found.get("stargazers_count"), found.get("description")
    except (ValueError, AttributeError, RecursionError) as error:
        hint = "Leave out --fetch-metadata, or give --stars."
        raise SourceError(f"{_shown(address)} did not answer what was expected.", hint=hint) from error
    text = " ".join(description.split()) if isinstance(description, str) else ""
    return RepositoryFacts(stars if type(stars) is int and stars >= 0 else None, text or None)


def checked_web_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if a password with a slash is in its place
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable() and " " not in url
    except ValueError:
        is_one = False
    if not is_one:
        hint = "For example: https://docs.example.org/llms.txt"
        raise SourceError(f"{_shown(url)!r} is not an address on the web.", hint=hint)
    return url


def _authorization(url: str) -> dict[str, str]:
    """The Authorization header with the name and password of an address or of ~/.netrc; empty without them."""
    parts = urlsplit(url)
    name, password = unquote(parts.username or ""), unquote(parts.password or "")
    if parts.username is None:
        name, password = _in_netrc(parts)
    if not name and not password:
        return {}
    return {"Authorization": f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"}


def _in_netrc(parts: SplitResult) -> tuple[str, str]:
    """The name and password that the user keeps for this host, as git and curl read them; empty without any."""
    with suppress(OSError, NetrcParseError, UnicodeDecodeError):
        if found := netrc().authenticators(parts.hostname or ""):
            return found[0], found[2] or ""
    return "", ""


def _host(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _shown(url: str) -> str:
    """The address without name, password and query, which may contain a key."""
    return re.split(r"[?#]", shown_address(url), maxsplit=1)[0]
