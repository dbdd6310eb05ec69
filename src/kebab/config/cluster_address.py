"""Addresses of knowledge bases in a cluster: qdrant://HOST:PORT/NAME, or with several servers HOST:PORT,HOST:PORT."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from kebab.core.errors import UsageError

_PORT = 6333
_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}"


class Node(NamedTuple):
    """A server of a cluster."""

    host: str
    port: int = _PORT

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class ClusterAddress(NamedTuple):
    """A knowledge base in a Qdrant cluster. str() returns its address."""

    nodes: tuple[Node, ...]
    """Every server can answer any request. If one does not answer, the next one is asked."""
    name: str
    """The prefix of the names of its collections."""
    tls: bool = False

    def __str__(self) -> str:
        return f"qdrant://{','.join(map(str, self.nodes))}/{self.name}{'?tls=true' if self.tls else ''}"


def cluster_address(url: str) -> ClusterAddress:
    """Parses an address, or raises UsageError. It must not contain a key, because Kebab displays addresses."""

    shown = url.partition("?")[0]  # the part after ? may contain a key

    def wrong(message: str) -> UsageError:
        return UsageError(
            message,
            hint="An address looks like this: qdrant://127.0.0.1:6333/notes, or …/notes?tls=true; several servers: "
            "host,host:port.",
        )

    if "@" in url:
        raise UsageError(
            "The address of a cluster has no user name or key in it.", hint="Give the key as KEBAB_STORE_API_KEY."
        )
    try:
        parts = urlsplit(url)
        nodes = tuple(map(_node, parts.netloc.split(",")))
        options = parse_qs(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise wrong(f"{shown!r} is not the address of a cluster.") from error
    name, tls = parts.path.strip("/"), options.pop("tls", ["false"])[-1].lower()
    if parts.scheme != "qdrant":
        raise wrong(f"There is no store of the kind {parts.scheme or shown!r}: only a file, or qdrant://…")
    if parts.fragment or options or tls not in ("true", "false"):
        raise wrong(f"What follows {shown!r} is not understood: only ?tls=true is.")
    if not re.fullmatch(_NAME, name):
        raise wrong(f"{shown!r} must end in a name of letters, digits, - and _ for the knowledge base.")
    return ClusterAddress(nodes, name, tls == "true")


def _node(text: str) -> Node:
    """Parses HOST or HOST:PORT, or raises ValueError."""
    parts = urlsplit(f"//{text}")
    if not parts.hostname or parts.port == 0:
        raise ValueError(text)
    return Node(parts.hostname, _PORT if parts.port is None else parts.port)
