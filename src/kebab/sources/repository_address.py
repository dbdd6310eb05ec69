"""What the address of a git repository tells: its host and place, and where a line of it stands on the web."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote, urlsplit

SCP_LIKE = re.compile(r"[\w.+-]+@(?P<host>[\w.-]+):(?P<path>.+)")


def source_url(repository: str | None, commit: str | None, path: str, lines: tuple[int, int] | None) -> str | None:
    """Where lines of a file stand on the web, for the hosts whose addresses are known."""
    host, place = host_and_place(repository or "")
    blob = {"github.com": "blob", "gitlab.com": "-/blob"}.get(host)
    if blob is None or commit is None:
        return None
    fragment = f"#L{lines[0]}-L{lines[1]}" if lines else ""
    return f"https://{host}/{place.strip('/').removesuffix('.git')}/{blob}/{commit}/{quote(path)}{fragment}"


def same_repository(one: str, other: str) -> bool:
    """With or without .git, a slash at the end, a name and password, by ssh or https."""
    (host, place), (other_host, other_place) = host_and_place(one), host_and_place(other)
    return host == other_host and _plain(place) == _plain(other_place)


def _plain(place: str) -> str:
    return place.strip("/").removesuffix(".git").casefold()


@lru_cache(maxsize=1 << 6)
def host_and_place(url: str) -> tuple[str, str]:
    scp = SCP_LIKE.fullmatch(url)
    parts = urlsplit(url)
    host, place = (scp["host"], scp["path"]) if scp else (parts.hostname or "", parts.path)
    return host.lower(), place


def on_github(repository: str | None) -> tuple[str, str] | None:
    """Owner and project, of a repository there."""
    host, place = host_and_place(repository or "")
    parts = place.strip("/").removesuffix(".git").split("/")
    return (parts[0], parts[1]) if host == "github.com" and len(parts) == 2 and all(parts) else None
