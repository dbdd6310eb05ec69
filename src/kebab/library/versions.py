"""Versions by their names: which of two is later, and which of those that are indexed is the one a project uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kebab.core.libraries import Library

_NUMBERS = re.compile(r"(?<![\d.])(\d+(?:\.\d+)*)")
_BEFORE_RELEASE = re.compile(r"^[-._]?(?:a|b|c|rc|alpha|beta|pre|preview|dev|next|canary|snapshot|m|milestone)(?![a-z])[-._]?(\d*)")
_NOT_IN_NAMES = re.compile(r"[-_.]+")


class Choice(NamedTuple):
    """The version that is searched, and why."""

    version: str | None
    """None: the default branch."""
    reason: str


def latest_first(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (_order(name) or _NONE, name), reverse=True)


def ordered(library: Library) -> Library:
    """With its default version first, then from the latest down."""
    by_name = {version.name: version for version in library.versions}
    names = latest_first(name for name in by_name if name is not None)
    first = [by_name[None]] if None in by_name else []
    return library._replace(versions=(*first, *(by_name[name] for name in names)))


def choose(wanted: str, indexed: Iterable[str]) -> Choice:
    """The same version; else the nearest lower one; else the default branch."""
    names = list(indexed)
    order = _order(wanted)
    if order is None:
        same = [name for name in names if name == wanted]
        return Choice(same[0], f"{wanted} exactly") if same else Choice(None, f"{wanted} is not indexed: the default branch")
    known = {name: found for name in names if (found := _order(name)) is not None}
    exact = [name for name, found in known.items() if found == order]
    if exact:
        return Choice(min(exact, key=len), f"{wanted} exactly")
    lower = {name: found for name, found in known.items() if found < order}
    if lower:
        nearest = max(lower, key=lambda name: lower[name])
        return Choice(nearest, f"{wanted} is not indexed: {nearest} is the nearest below it")
    return Choice(None, f"{wanted} is not indexed, nor anything below it: the default branch")


def same_version(wanted: str, indexed: Iterable[str]) -> str | None:
    """The one that means the same: 1.2 and v1.2.0."""
    order = _order(wanted)
    return next((name for name in indexed if order is not None and _order(name) == order), None)


def close_id(wanted: str, known: Sequence[str]) -> str | None:
    """The library that was probably meant: the same in other letters, by its last part alone, or with a slip in it."""
    plain = wanted.strip().casefold()
    for library_id in known:
        if plain.lstrip("/") in (library_id.casefold().lstrip("/"), library_id.casefold().rpartition("/")[2]):
            return library_id
    from difflib import get_close_matches

    by_plain = {library_id.casefold(): library_id for library_id in known}
    close = get_close_matches(plain if plain.startswith("/") else f"/{plain}", by_plain, n=1, cutoff=0.75)
    return by_plain[close[0]] if close else None


def same_name(package: str, library_id: str, title: str) -> bool:
    """Whether a package of a lock file is this library: by its title or the last part of its id, or by the whole of a Go module's path."""
    project = library_id.rpartition("/")[2]
    wanted = _plain(package)
    return wanted in {_plain(title), _plain(project)} or _plain(package.rpartition("/")[2]) == _plain(project)


def _plain(name: str) -> str:
    return _NOT_IN_NAMES.sub("-", name.casefold())


_Order = tuple[tuple[int, ...], bool, tuple[str, int]]
_NONE: _Order = ((), False, ("", 0))


def _order(name: str) -> _Order | None:
    """v1.2.0, 1.2 and widget-1.2.0 are the same; what precedes a release comes before it."""
    match = _NUMBERS.search(name)
    if match is None:
        return None
    numbers = tuple(int(part) for part in match[1].split("."))
    while numbers and numbers[-1] == 0:
        numbers = numbers[:-1]
    before = _BEFORE_RELEASE.match(name[match.end() :].casefold())
    if before is None:
        return numbers, True, ("", 0)
    return numbers, False, (before[0].strip("-._0123456789"), int(before[1] or 0))
