"""Asking an endpoint that the user named: one way of sending, one set of limits, errors in our words.

Nothing is sent anywhere unless a setting names a model behind an endpoint (`embedding.model`, `ask.model`).
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from math import inf
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from kebab.core.addresses import masked_address
from kebab.core.deadline import at_most
from kebab.core.errors import ConfigError, ModelUnreachable, TextRefused
from kebab.timed_http import TimeBudget, TimedOpener

_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Answers after which the same request may succeed."""
_ABOUT_THE_TEXT = frozenset({400, 413, 422})
"""Answers that say of a request, and so of a text in it, that it will not be taken."""
_STEP = 1 << 16
_LONGEST_EXCUSE_S = 5.0
"""How long an answer that is an error is read."""
_LONGEST_ANSWER = 1 << 28


class Passing(Exception):
    """A failure after which trying again makes sense."""

    def __init__(self, error: ModelUnreachable, wait_s: float | None = None, *, by_server: bool = False) -> None:
        """`by_server`: it was reached, and says that something went wrong there."""
        super().__init__(error.message)
        self.error = error
        self.wait_s = wait_s
        self.by_server = by_server


class Endpoint(NamedTuple):
    """Where to send requests for one section of the settings, whose names the errors speak of."""

    address: str
    key: str
    timeout_s: float
    section: str
    meanwhile: str
    """What the user can do while it does not answer."""
    too_long: str
    """What to change when a text is too long for the model."""

    @property
    def key_variable(self) -> str:
        return f"KEBAB_{self.section.upper()}_API_KEY"

    def opened(self, body: dict[str, Any], *, accept: str = "application/json") -> Any:
        """The response to a request, to be closed by whoever asked: its body comes as it is read, all of it within the
        time limit.
        """
        headers = {"Content-Type": "application/json", "Accept": accept}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        try:
            request = urllib.request.Request(self.address, json.dumps(body).encode(), headers, method="POST")
            opener = _DIRECT if urlsplit(self.address).hostname in _HERE else _OPENER
            return opener.open(request, TimeBudget(at_most(self.timeout_s)))
        except urllib.error.HTTPError as error:
            raise self._refused(error) from error
        except (OSError, HTTPException, ValueError) as error:  # time-outs, hosts that cannot be
            raise self.unreachable(error) from error

    def asked(self, body: dict[str, Any]) -> Any:
        """What it answers, read as JSON."""
        try:
            with self.opened(body) as response:
                said = read_all(response)
        except (OSError, HTTPException, ValueError) as error:  # an answer that breaks off
            raise self.unreachable(error) from error
        try:
            return json.loads(said)
        except (ValueError, RecursionError) as error:
            raise ModelUnreachable(
                f"{self.address} did not answer with JSON.", hint=f"Check {self.section}.endpoint."
            ) from error

    def unreachable(self, error: Exception) -> Passing:
        reason = " ".join(str(getattr(error, "reason", error)).split())
        return Passing(
            ModelUnreachable(
                f"{self.address} cannot be reached: {reason}.",
                hint=f"Start the server or correct {self.section}.endpoint; {self.meanwhile}.",
            )
        )

    def _refused(self, error: urllib.error.HTTPError) -> Exception:
        said = _said(error)
        if error.code in (401, 403):
            return ModelUnreachable(
                f"{self.address} refused the key (status {error.code}){said}.",
                hint=f"Set {self.key_variable} to a valid one.",
            )
        kind = TextRefused if error.code in _ABOUT_THE_TEXT else ModelUnreachable
        failure = kind(
            f"{self.address} answered with status {error.code}{said}.",
            hint=f"Check {self.section}.model and {self.section}.endpoint; {self.too_long} when a text is too long for the model.",
        )
        return Passing(failure, _retry_after(error), by_server=error.code == 500) if error.code in _PASSING else failure


def endpoint(
    section: str, address: str, path: str, key: str, timeout_s: float, *, meanwhile: str, too_long: str
) -> Endpoint:
    """Checked: an address that is none, or a key that cannot be one, is an error before anything is sent."""
    address = address.rstrip("/")
    if not address.startswith(("http://", "https://")):
        raise ConfigError(
            f"{section}.endpoint = {masked_address(address)!r} is not an address.",
            hint="It begins with http:// or https://.",
        )
    if masked_address(address) != address:
        raise ConfigError(
            f"{section}.endpoint has no name or password in it.", hint=f"Give a key as KEBAB_{section.upper()}_API_KEY."
        )
    key = key.strip()
    made = Endpoint(address if address.endswith(path) else address + path, key, timeout_s, section, meanwhile, too_long)
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(
            f"{section}.api_key has characters that no key has.", hint=f"Set {made.key_variable} to a valid one."
        )
    return made


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the texts and the key to an address that nobody named."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = TimedOpener(_NoRedirect)
# What is meant for this machine does not go through a proxy, whatever the environment says.
_DIRECT = TimedOpener(_NoRedirect, urllib.request.ProxyHandler({}))
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


def read_all(response: Any, ends: float = inf) -> bytes:
    """Its body; an OSError when it breaks off or does not come in time."""
    parts, length = [], 0
    while part := response.read1(_STEP):
        parts.append(part)
        length += len(part)
        if length > _LONGEST_ANSWER:
            raise ValueError("the answer has no end")
        if time.monotonic() > ends:
            raise TimeoutError("timed out")
    if response.length:
        raise ConnectionError(f"the answer breaks off {response.length:,} bytes before its end")
    return b"".join(parts)


def _retry_after(error: urllib.error.HTTPError) -> float | None:
    value = error.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None


def _said(error: urllib.error.HTTPError) -> str:
    """What the server says about it, on one line and not without end."""
    try:
        with error:
            text = read_all(error.fp, time.monotonic() + _LONGEST_EXCUSE_S)[:2000].decode("utf-8", "replace")
    except (OSError, HTTPException, ValueError):
        return ""
    try:
        said = json.loads(text).get("error", text)
        text = said.get("message", text) if isinstance(said, dict) else str(said)
    except (ValueError, AttributeError):
        pass
    line = " ".join(text.split())[:200]
    return f": {line.rstrip('.')}" if line else ""
