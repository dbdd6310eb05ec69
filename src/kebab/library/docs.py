"""Chooses the version of a library, and the snippets that fit into a budget of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kebab.analysis.orders import reads_like_orders
from kebab.core.errors import KebabError, NotFound, SourceError, StillIndexing
from kebab.core.libraries import Library, LibrarySnippet, LibraryVersion
from kebab.core.notices import Notice
from kebab.core.text import estimate_tokens
from kebab.library.formatters import BETWEEN_PARTS, snippet_text
from kebab.library.versions import Choice, choose, latest_first, likeness, same_version, shortened

if TYPE_CHECKING:
    from kebab.config.settings import Settings
    from kebab.sources.lock_files import LockedPackage

DEFAULT_TOKENS = 5000


class LibraryDocs(NamedTuple):
    """A page of documentation from one version of a library."""

    library: Library
    version: str | None
    """None: the default branch."""
    reason: str | None
    """Why this version, if it is not the one that was named."""
    page: int
    rules: tuple[str, ...]
    """The rules that fit into half of the budget of tokens."""
    snippets: tuple[LibrarySnippet, ...]
    notices: tuple[Notice, ...]
    truncated: bool
    """Whether the budget ended the page and another one follows."""

    @property
    def suspicious_rules(self) -> bool:
        return any(map(reads_like_orders, self.rules))


def chosen_version(library: Library, named: str | None, project: str | None) -> Choice:
    """The named version, else the one in the project's lock file, else the default branch; an error if it is not
    searchable.
    """
    if named is not None:
        choice = _named(library, named)
    elif project is not None:
        choice = _locked(library, Path(project).expanduser())
    else:
        choice = Choice(None)
    if choice.version is None and not library.is_searchable:
        raise not_searchable(library, library.versions[0] if library.versions else None)
    return choice


def _named(library: Library, named: str) -> Choice:
    if named in library.tags:
        return Choice(named)
    if (same := same_version(named, library.tags)) is not None:
        return Choice(same, f"{named} is {same} here")
    known = next((version for version in library.versions if version.name == named), None)
    if known is not None:
        raise not_searchable(library, known)
    raise no_version(library, named)


def _locked(library: Library, project: Path) -> Choice:
    from kebab.sources.lock_files import locked_packages  # loads a TOML parser

    package = _package_of(library, locked_packages(project))
    if package is None:
        return Choice(None, "No lock file of the project names this library: the default branch")
    if package.version is None:
        return Choice(None, f"{package.file} names {package.name} without a version: the default branch")
    choice = choose(package.version, library.tags, package.name)
    return choice._replace(reason=f"{package.file} has {package.name} {shortened(package.version)}: {choice.reason}")


def _package_of(library: Library, packages: Sequence[LockedPackage]) -> LockedPackage | None:
    """The package that is most likely this library. Of several, one with a version is preferred, then one in the first
    lock file, then the most direct requirement, then the latest version.
    """
    likely: list[tuple[tuple[int, bool, int, int], LockedPackage]] = []
    files = list(dict.fromkeys(package.file for package in packages))
    for package in packages:
        like = likeness(package.name, library.library_id, library.title)
        if like is not None:
            likely.append(((like, package.version is None, files.index(package.file), package.depth), package))
    if not likely:
        return None
    best, first = min(likely, key=lambda one: one[0])
    equal = {package.version: package for rank, package in likely if rank == best and package.name == first.name}
    latest = latest_first(version for version in equal if version is not None)
    return equal[latest[0]] if latest else first


def not_searchable(library: Library, version: LibraryVersion | None) -> KebabError:
    """The error for a version that cannot be searched."""
    what = f"{library.library_id}/{version.name}" if version is not None and version.name else library.library_id
    go_on = f"Go on with: kb lib refresh {library.library_id}"
    if version is not None and version.state == "failed":
        return SourceError(f"{what} could not be indexed: {version.error or 'no reason is known'}", hint=go_on)
    return StillIndexing(
        f"{what} is not indexed yet.", hint=f"If no other process is indexing it now: {go_on[0].lower()}{go_on[1:]}"
    )


def no_version(library: Library, version: str) -> NotFound:
    known = ", ".join(library.tags) or "only the default branch"
    add = f" Add it with: kb lib add {library.repository} --version {version}" if library.repository else ""
    return NotFound(f"{library.library_id} has no version {version}.", hint=f"Indexed: {known}.{add}")


def refuse_other_organisations(library_id: str, settings: Settings) -> None:
    if library_id.count("/") == 2 and not is_allowed(library_id, settings):
        raise SourceError(
            f"{library_id} is not of an organisation that is allowed here.",
            hint=f"library.organisations allows: {settings.library.organisations}.",
        )


def is_allowed(library_id: str, settings: Settings) -> bool:
    allowed = {name.strip().casefold() for name in settings.library.organisations.split(",") if name.strip()}
    return not allowed or library_id.split("/")[1].casefold() in allowed


def rules_within(rules: Sequence[str], tokens: int) -> tuple[tuple[str, ...], int]:
    """The first rules that fit into half of the budget, and the tokens that remain."""
    kept: list[str] = []
    used = 0
    for rule in rules:
        used += estimate_tokens(rule)
        if used > tokens / 2:
            break
        kept.append(rule)
    return tuple(kept), max(1, tokens - sum(map(estimate_tokens, kept)))


def _shown_tokens(snippet: LibrarySnippet) -> int:
    """Tokens of a snippet as shown with its headings, or of its passage if that has more: programs get the passage."""
    return max(snippet.tokens, estimate_tokens(f"{snippet_text(snippet)}{BETWEEN_PARTS}", code=snippet.kind == "code"))


def page_of(found: Iterable[LibrarySnippet], tokens: int, page: int) -> tuple[list[LibrarySnippet], bool]:
    """The whole snippets of a page (at least one, even if it exceeds the budget), and whether another page follows.
    Reads no more of `found` than it needs.
    """
    current: list[LibrarySnippet] = []
    number, used = 1, 0
    for snippet in found:
        size = _shown_tokens(snippet)
        if current and used + size > tokens:
            if number == page:
                return current, True
            current, number, used = [], number + 1, 0
        current.append(snippet)
        used += size
    return (current if number == page else []), False
