"""Sends requests to model endpoints that the user configured, with the same limits and errors for all of them.

Nothing is sent unless a setting names a model at an endpoint (`embedding.model`, `rerank.model`, `ask.model`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from math import inf
from typing import Any, NamedTuple

from kebab.core.addresses import masked_address
from kebab.core.deadline import at_most
from kebab.core.errors import ConfigError, ModelUnreachable, TextRefused
from kebab.http_client import Response, opened

_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed later."""
_ABOUT_THE_TEXT = frozenset({400, 413, 422})
"""Statuses that mean that the server refuses the text in the request."""
_LONGEST_EXCUSE_S = 5.0
"""The time limit for reading the body of an error response."""
_LONGEST_ANSWER = 1 << 28


class Passing(Exception):
    """A temporary failure: the same request may succeed later."""

    def __init__(self, error: ModelUnreachable, wait_s: float | None = None, *, by_server: bool = False) -> None:
        """`wait_s`: when to try again, if the server said so. `by_server`: the server reported an internal error."""
        super().__init__(error.message)
        self.error = error
        self.wait_s = wait_s
        self.by_server = by_server


class Endpoint(NamedTuple):
    """The endpoint of one section of the settings. Error messages name settings of this section."""

    address: str
    key: str
    timeout_s: float
    section: str
    meanwhile: str
    """For error messages: what the user can do while the endpoint does not answer."""
    too_long: str
    """For error messages: what to change when a text is too long for the model."""

    @property
    def key_variable(self) -> str:
        return f"KEBAB_{self.section.upper()}_API_KEY"

    @contextmanager
    def opened(
        self, body: dict[str, Any], *, accept: str = "application/json", stop: Callable[[], bool] | None = None
    ) -> Iterator[Response]:
        """Sends a request and returns the response, whose body is received while the caller reads it."""
        headers = {"Content-Type": "application/json", "Accept": accept}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        request = opened(
            "POST",
            self.address,
            headers=headers,
            content=json.dumps(body).encode(),
            seconds=at_most(self.timeout_s),
            stop=stop,
        )
        with ExitStack() as stack:
            try:
                response = stack.enter_context(request)
            except OSError as error:
                raise self.unreachable(error) from error
            if not 200 <= response.status < 300:
                raise self._refused(response)
            yield response

    def asked(self, body: dict[str, Any]) -> Any:
        """Sends a request and returns the response, parsed as JSON."""
        try:
            with self.opened(body) as response:
                said = _body(response)
        except OSError as error:  # an answer that breaks off
            raise self.unreachable(error) from error
        try:
            return json.loads(said)
        except (ValueError, RecursionError) as error:
            raise ModelUnreachable(
                f"{self.address} did not answer with JSON.", hint=f"Check {self.section}.endpoint."
            ) from error

    def unreachable(self, error: OSError) -> Passing:
        reason = " ".join(str(error).split())
        return Passing(
            ModelUnreachable(
                f"{self.address} cannot be reached: {reason}.",
                hint=f"Start the server or correct {self.section}.endpoint; {self.meanwhile}.",
            )
        )

    def _refused(self, response: Response) -> Exception:
        status, said = response.status, _excuse(response)
        if status in (401, 403):
            return ModelUnreachable(
                f"{self.address} refused the key (status {status}){said}.",
                hint=f"Set {self.key_variable} to a valid one.",
            )
        kind = TextRefused if status in _ABOUT_THE_TEXT else ModelUnreachable
        failure = kind(
            f"{self.address} answered with status {status}{said}.",
            hint=f"Check {self.section}.model and {self.section}.endpoint; "
            f"{self.too_long} when a text is too long for the model.",
        )
        if status not in _PASSING:
            return failure
        wait = response.headers.get("Retry-After", "")
        return Passing(failure, float(wait) if wait.isdecimal() else None, by_server=status == 500)


def endpoint(
    section: str, address: str, path: str, key: str, timeout_s: float, *, meanwhile: str, too_long: str
) -> Endpoint:
    """Creates an Endpoint. Raises ConfigError for an invalid address or key, before anything is sent."""
    address = address.rstrip("/")
    if not address.startswith(("http://", "https://")):
        raise ConfigError(
            f"{section}.endpoint = {masked_address(address)!r} is not an address.",
            hint="It begins with http:// or https://.",
        )
    if masked_address(address) != address or "?" in address:
        raise ConfigError(
            f"{section}.endpoint has no name, password or query in it.",
            hint=f"Give a key as KEBAB_{section.upper()}_API_KEY.",
        )
    key = key.strip()
    made = Endpoint(address if address.endswith(path) else address + path, key, timeout_s, section, meanwhile, too_long)
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(
            f"{section}.api_key has characters that no key has.", hint=f"Set {made.key_variable} to a valid one."
        )
    return made


def _body(response: Response, seconds: float = inf) -> bytes:
    parts, length = [], 0
    for part in response.parts(seconds):
        parts.append(part)
        length += len(part)
        if length > _LONGEST_ANSWER:
            raise OSError("the answer has no end")
    return b"".join(parts)


def _excuse(response: Response) -> str:
    """The server's message about an error, on one short line."""
    try:
        text = _body(response, _LONGEST_EXCUSE_S)[:2000].decode("utf-8", "replace")
    except OSError:
        return ""
    try:
        said = json.loads(text).get("error", text)
        text = said.get("message", text) if isinstance(said, dict) else str(said)
    except (ValueError, AttributeError):
        pass
    line = " ".join(text.split())[:200]
    return f": {line.rstrip('.')}" if line else ""
