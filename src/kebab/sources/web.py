"""Files and facts from the web, fetched only because somebody named them: an llms.txt or an archive by its address, the
stars of a repository when they are asked for.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from base64 import b64encode
from contextlib import suppress
from http.client import HTTPException, HTTPMessage
from netrc import NetrcParseError, netrc
from typing import IO, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

from kebab.core.addresses import shown_address, without_credentials, without_password
from kebab.core.errors import SourceError
from kebab.timed_http import TimeBudget, TimedOpener

_STEP = 1 << 16
_QUIET_SECONDS = 30.0
"""How long nothing may come before it counts as broken off."""
_MOST_FACT_BYTES = 4 << 20


PASSWORD_HINT = "A password is not kept: put it into ~/.netrc, or run kb lib add with it in the address again."


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
                    raise SourceError(
                        f"{_shown(url)} is larger than {limits.megabytes:g} MB.",
                        hint="Raise the setting library.fetch_mb.",
                    )
    except urllib.error.HTTPError as error:
        error.close()
        reason = without_credentials(str(error.reason), url)
        hint = PASSWORD_HINT if error.code in (401, 403) else "Check the address."
        raise SourceError(f"{_shown(url)} answered {error.code} {reason}.", hint=hint) from error
    except (OSError, HTTPException, ValueError) as error:
        if deadline.is_over:
            raise SourceError(
                f"{_shown(url)} took longer than {limits.seconds:g} seconds.",
                hint="Raise the setting library.fetch_seconds.",
            ) from error
        reason = without_credentials(str(getattr(error, "reason", None) or error), url).rstrip(".")
        raise SourceError(
            f"{_shown(url)} could not be fetched: {reason}.", hint="Check the address and the network."
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
        _ = parts.port  # ValueError where a password with a slash stands in its place
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable() and " " not in url
    except ValueError:
        is_one = False
    if not is_one:
        raise SourceError(
            f"{_shown(url)!r} is not an address on the web.", hint="For example: https://docs.example.org/llms.txt"
        )
    return url


class _OnTheWeb(urllib.request.HTTPRedirectHandler):
    """A redirect may lead to another page, never to a file of this machine, and takes a password no further than the
    host it is for.
    """

    max_redirections = 5

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if urlsplit(newurl).scheme not in ("http", "https"):
            raise urllib.error.HTTPError(
                req.full_url, code, "and leads to something that is not on the web", headers, fp
            )
        parts = urlsplit(newurl)
        following = super().redirect_request(req, fp, code, msg, headers, without_password(newurl))
        if following is not None and (parts.scheme, _host(parts)) == (req.type, req.host):
            following.unredirected_hdrs.update(req.unredirected_hdrs)
        return following


_OPENER = TimedOpener(_OnTheWeb)


def _request(url: str) -> urllib.request.Request:
    parts = urlsplit(url)
    request = urllib.request.Request(without_password(url), headers={"User-Agent": "kebab", "Accept": "*/*"})
    name, password = (
        (unquote(parts.username), unquote(parts.password or "")) if parts.username is not None else _in_netrc(parts)
    )
    if name or password:
        coded = b64encode(f"{name}:{password}".encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {coded}")
    return request


def _in_netrc(parts: SplitResult) -> tuple[str, str]:
    """The name and password that the user keeps for this host, as git and curl read them; empty without any."""
    with suppress(OSError, NetrcParseError, UnicodeDecodeError):
        if found := netrc().authenticators(parts.hostname or ""):
            return found[0], found[2] or ""
    return "", ""


def _host(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _shown(url: str) -> str:
    """Without a name and password, and without what follows the path: it may be a key."""
    return re.split(r"[?#]", shown_address(url), maxsplit=1)[0]
