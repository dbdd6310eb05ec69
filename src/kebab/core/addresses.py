"""Removes user names, passwords and keys from URLs before they are stored or shown."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://[^\s'\"]+")
_END_OF_AUTHORITY = re.compile(r"[/?#\\]")
_KEY_IN_QUERY = re.compile(r"([?&;][^=&;#\s]*(?:auth|key|pass|secret|sig|token)[^=&;#\s]*=)[^&;#\s]+", re.IGNORECASE)
_SHORTEST_SECRET = 4
"""Shorter secrets are not replaced, because they occur inside many ordinary words."""


def without_password(address: str) -> str:
    """The URL without its password, and without its user name unless it is ssh: elsewhere that may be a token."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return shown_address(address)
    user, given, host = parts.netloc.rpartition("@")
    kept = f"{user.partition(':')[0]}@" if parts.scheme == "ssh" else ""
    return address.replace(parts.netloc, kept + host, 1) if given else address


def masked_address(text: str) -> str:
    """The URL with … in place of its user name, password and keys."""
    text = _without_keys(text)
    shown = shown_address(text)
    return text if shown == text else shown.replace("://", "://…@", 1)


def shown_address(url: str) -> str:
    """The URL without user name and password, and with … in place of keys in its query.

    Where a password might contain a slash, its end is unknown, so only the scheme is returned.
    """
    scheme, found, rest = url.partition("://")
    if not found:
        return url
    end = _END_OF_AUTHORITY.search(rest)
    authority, path = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    if "@" in path and (":" in authority or "@" in authority):
        return f"{scheme}://…"
    return _without_keys(f"{scheme}://{authority.rpartition('@')[2]}{path}")


def _without_keys(url: str) -> str:
    return _KEY_IN_QUERY.sub(r"\1…", url)


def without_credentials(text: str, url: str) -> str:
    """A program's output without the user name and password of `url`, or of any other URL in the output."""
    text = _ADDRESS.sub(lambda found: shown_address(found[0]), text.replace(url, shown_address(url)))
    given = urlsplit(url).netloc.rpartition("@")[0] if "://" in url else ""
    secrets = {
        part for whole in (given, unquote(given)) for part in re.split(r"[:@]", whole) if len(part) >= _SHORTEST_SECRET
    }
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "…")
    return text
