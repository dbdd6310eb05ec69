"""Orders versions by their names, and finds the indexed one that fits the version a project uses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from kebab.core.libraries import Library

_NUMBERS = re.compile(
    r"(?<!\d)(?:(?P<many>\d+(?:\.\d+)+|\d+(?:_\d+)+(?!\d|[._]\d)|\d+(?:-\d+){2,}(?!\d|[-._]\d))|(?P<one>\d+))", re.ASCII
)
"""Matches 1.2.3, 1_2_3 and 2024-01-31, each with one kind of separator: py3_1.2 is not 3.1.2."""
_STAGES = {
    "dev": -9, "snapshot": -8, "nightly": -7, "canary": -6, "next": -5, "a": -4, "alpha": -4, "b": -3, "beta": -3,
    "m": -2, "milestone": -2, "c": -1, "rc": -1, "pre": -1, "preview": -1,
    "final": 0, "ga": 0, "release": 0, "stable": 0, "p": 1, "patch": 1, "post": 1, "sp": 1,
}  # fmt: skip
"""Words that may follow the numbers: negative ones come before the release, 0 is the release, positive ones follow."""
_STAGE = re.compile(
    rf"[-._]?({'|'.join(sorted(_STAGES, key=len, reverse=True))})(?![a-z])(?:\.?(\d+(?:\.\d+)*)|[-_](\d+)(?!\.?\d))?",
    re.ASCII,
)
_STARTS_WITH_NUMBERS = re.compile(r"(?:.*[@/])?v?", re.DOTALL)
_ANY = re.compile(r"\d\.[x*](?![a-z0-9])", re.ASCII)
_SAYS_NOTHING = frozenset({"", "v", "ver", "version", "r", "rel", "release", "releases"})
_LONGEST = 200
"""Characters. A longer name is no version."""
_MOST_DIGITS = 18
"""Limit of digits in one number, because Python refuses to read very long numbers."""
_NOT_IN_NAMES = re.compile(r"[-_.]+")
_MAJOR_OF_GO = re.compile(r"(?:/|\.)v\d+$", re.ASCII)


class Choice(NamedTuple):
    """The version that is searched, and why."""

    version: str | None
    """None: the default branch."""
    reason: str = ""
    """Empty if the version was named, or the default branch is searched because none was."""


def latest_first(names: Iterable[str]) -> list[str]:
    """The names, the latest version first. Names that are no version come last."""
    return sorted(names, key=lambda name: (_order(name) or _NONE, name), reverse=True)


def ordered(library: Library) -> Library:
    """The library with its default version first, then its tags from the latest down."""
    by_name = {version.name: version for version in library.versions}
    names = latest_first(name for name in by_name if name is not None)
    first = [by_name[None]] if None in by_name else []
    return library._replace(versions=(*first, *(by_name[name] for name in names)))


def choose(wanted: str, indexed: Iterable[str], package: str = "") -> Choice:
    """The indexed version that fits the wanted one: the same, else the nearest lower one, else the default branch. If
    tags name packages, only the tags of `package` count.
    """
    names = _of_package(package, list(indexed))
    shown = shortened(wanted)
    if (same := same_version(wanted, names)) is not None:
        return Choice(same, f"{shown} exactly")
    order = _order(wanted)
    if order is None:
        return Choice(None, f"{shown} is not indexed: the default branch")
    lower = {name: found for name in names if (found := _order(name)) is not None and found < order}
    if lower:
        nearest = max(lower, key=lambda name: (lower[name], -len(name), name))
        return Choice(nearest, f"{shown} is not indexed: {nearest} is the nearest below it")
    return Choice(None, f"{shown} is not indexed, nor anything below it: the default branch")


def same_version(wanted: str, indexed: Iterable[str]) -> str | None:
    """The indexed name of the wanted version, or None. For 1.2 that may be v1.2.0; 2.0 does not count as 2.x."""
    names = list(indexed)
    for text in (wanted, wanted.strip()):
        if text in names:
            return text
    asked = _read(wanted)
    if asked is None:
        return None
    same = [
        name
        for name in names
        if (found := _read(name)) is not None and found.order == asked.order
        if found.package == asked.package or not found.package or not asked.package
    ]
    return min(same, key=lambda name: (len(name), name), default=None)


def shortened(version: str) -> str:
    """The version cut to 60 characters, for use in a sentence."""
    return version if len(version) <= 60 else f"{version[:60]}…"


def likeness(package: str, library_id: str, title: str) -> int | None:
    """How likely a package of a lock file is this library: 0 if owner and project match, 1 if the name matches, 2 if
    only the last part of the name matches, None if nothing does.

    @types/widget does not match widget, because it has versions of its own.
    """
    _, owner, project = library_id.split("/", 2)
    names = {_plain(name) for name in _names_of(package)}
    if names & {_plain(f"{owner}/{project}"), _plain(f"@{owner}/{project}")}:
        return 0
    if names & {_plain(project), _plain(title)}:
        return 1
    if package.startswith("@types/"):
        return None
    return 2 if _plain(project) in {name.rpartition("/")[2] for name in names} else None


def _names_of(package: str) -> set[str]:
    """The names of a package. A Go module (github.com/acme/widget/v2, gopkg.in/yaml.v3) is also named by its path
    without the host, and without the major version at the end.
    """
    host, slash, path = package.partition("/")
    if not slash or "." not in host or host.startswith("@"):
        return {package}
    return {package, path, _MAJOR_OF_GO.sub("", path)}


def _of_package(package: str, tags: list[str]) -> list[str]:
    """The tags of this package in a repository of several packages, else the tags that name no package, else all."""
    if not package:
        return tags
    names = {_plain(part) for name in _names_of(package) for part in (name.lstrip("@"), name.rpartition("/")[2])}
    own = [tag for tag in tags if (found := _read(tag)) is not None and found.package and found.package in names]
    plain = [tag for tag in tags if (found := _read(tag)) is None or not found.package]
    return own or plain or tags


def _plain(name: str) -> str:
    return _NOT_IN_NAMES.sub("-", name.casefold())


class _Order(NamedTuple):
    """The sort key of a version: v1.2.0, 1.2 and widget-1.2.0 are equal; 1.2-rc.1 is lower."""

    numbers: tuple[int, ...]
    stage: int
    stage_numbers: tuple[int, ...]
    is_plain: bool
    """Whether no unknown text follows the numbers and the stage: 1.2.3-arm64 is lower than 1.2.3."""
    rest: str


class _Version(NamedTuple):
    package: str
    """The name before the numbers; empty if it is only a word such as `v` or `release`."""
    order: _Order


_NONE = _Order((), -100, (), False, "")


def _order(name: str) -> _Order | None:
    version = _read(name)
    return version.order if version else None


def _read(name: str) -> _Version | None:
    """Parses the name of a version; None if it is no version."""
    text = _without_build(name.strip().casefold())
    match = None if len(text) > _LONGEST or _ANY.search(text) else _version_numbers(text)
    if match is None:
        return None
    stage = _STAGE.match(text, match.end())
    numbers = _whole_numbers(match[0])
    stage_numbers = _whole_numbers(stage[2] or stage[3] or "") if stage else ()
    if numbers is None or stage_numbers is None:
        return None
    rest = text[(stage or match).end() :].strip("-._ ")
    before = _plain(text[: match.start()]).strip("-@/ ")
    package = before.removesuffix("@v").removesuffix("/v").removesuffix("-v")
    order = _Order(numbers, _STAGES[stage[1]] if stage else 0, stage_numbers, not rest, rest)
    return _Version("" if package in _SAYS_NOTHING else package, order)


def _without_build(text: str) -> str:
    """The text without its build: 2.1.0+cu118 becomes 2.1.0. The + in c++-1.2 belongs to the name, so it stays."""
    digit = re.search(r"\d", text, re.ASCII)
    plus = text.find("+", digit.end()) if digit else -1
    return text if plus < 0 else text[:plus]


def _version_numbers(text: str) -> re.Match[str] | None:
    """Finds the numbers of the version. Numbers such as 2.17.1 count before single ones, because names contain numbers
    too (log4j-2.17.1); of several, those at the beginning count, else the last.
    """
    many: list[re.Match[str]] = []
    single: list[re.Match[str]] = []
    first = _STARTS_WITH_NUMBERS.match(text)
    start, position = first.end() if first else 0, 0
    while (match := _NUMBERS.search(text, position)) is not None:
        stage = _STAGE.match(text, match.end())
        position = (stage or match).end()  # skips the numbers of a stage, such as 1.2 in 2.0-rc.1.2
        if match["many"]:
            many.append(match)
        elif not text[position : position + 1].isalnum():
            single.append(match)
    for found in (many, single):
        if found:
            return next((match for match in found if match.start() == start), found[-1])
    return None


def _whole_numbers(text: str) -> tuple[int, ...] | None:
    """The numbers without zeros at the end, since 1.2 is 1.2.0; None if one is too long."""
    parts = re.findall(r"\d+", text, re.ASCII)
    if any(len(part) > _MOST_DIGITS for part in parts):
        return None
    numbers = [int(part) for part in parts]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
