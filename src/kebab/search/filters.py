"""Filters checked against what is stored: a filter that no document can pass is a mistake, not an empty answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kebab.core.errors import NotFound
from kebab.core.notices import Notice, Says
from kebab.core.search import SearchFilters
from kebab.core.text import storable
from kebab.search.lookup import find_document
from kebab.search.options import SearchRequest

if TYPE_CHECKING:
    from kebab.core.store_ports import Catalog


def checked_filters(request: SearchRequest, catalog: Catalog) -> tuple[SearchRequest, list[Notice]]:
    """The request with its documents by their ids, and a notice for every filter that no document can pass."""
    wanted_tags = {*request.tags_any, *request.tags_all}
    names = [source.name for source in catalog.sources()]
    for name in request.source:
        if name not in names:
            raise NotFound(f"There is no source {name}.", hint=f"Sources: {', '.join(names) or 'none yet'}.")
    request = request._replace(doc=tuple(find_document(catalog, key).doc_id for key in request.doc))
    known = {above for tag in catalog.tags() for above in _with_parents(tag.tag.casefold())} if wanted_tags else set()
    missing = sorted(tag for tag in wanted_tags if tag.casefold() not in known)
    notices = [Says.UNKNOWN_TAG.notice(tag) for tag in missing]
    languages = catalog.languages() if request.lang else []
    if request.lang and request.lang not in languages:
        notices.append(Says.UNKNOWN_LANG.notice(request.lang, more=_here("Languages", languages)))
    if request.format:
        request, about_formats = _checked_formats(request, catalog.formats())
        notices += about_formats
    return request, notices


def _checked_formats(request: SearchRequest, here: Sequence[str]) -> tuple[SearchRequest, list[Notice]]:
    """What is no format at all is a slip; one that merely is not here, an answer."""
    from kebab.parsing.file_types import format_named
    from kebab.parsing.registry import is_known_format

    wanted = tuple(map(format_named, request.format))
    missing = [format_ for format_ in wanted if format_ not in here]
    for format_ in missing:
        if not is_known_format(format_):
            raise NotFound(
                f"There is no format {storable(format_)}.", hint=f"Formats here: {', '.join(here) or 'none yet'}."
            )
    return request._replace(format=wanted), [
        Says.UNKNOWN_FORMAT.notice(format_, more=_here("Formats", here)) for format_ in missing
    ]


def _with_parents(tag: str) -> list[str]:
    """`a/b/c` stands below `a/b` and `a`, and is found by either."""
    parts = tag.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]


def _here(what: str, known: Sequence[str]) -> str:
    return f" {what} here: {', '.join(known)}." if known else ""


class _Suspect(NamedTuple):
    alone: SearchFilters
    """What passes no document when the notice is true."""
    notice: Notice
    is_reason: bool = True
    """Whether that explains an empty answer by itself."""


def unmatched_filters(filters: SearchFilters, count: Callable[[SearchFilters], int]) -> list[Notice]:
    """`count` says how many documents pass filters. Nothing when some document passes all of them: then it is not for
    the filters.
    """
    everything = SearchFilters(library=filters.library, library_version=filters.library_version)
    if filters == everything or count(filters) or not count(everything):
        return []
    found = [
        suspect
        for suspect in _suspects(filters)
        if not count(suspect.alone._replace(library=everything.library, library_version=everything.library_version))
    ]
    explained = any(suspect.is_reason for suspect in found)
    notices = list(dict.fromkeys(suspect.notice for suspect in found))
    return notices if explained else [*notices, _unmatched("passes all of the filters together")]


def _suspects(filters: SearchFilters) -> Iterator[_Suspect]:
    """Each filter by itself. Of several values one of which is enough, each tag is named, because a slip in one is
    easily missed.
    """
    for tag in filters.tags_any:
        yield _Suspect(SearchFilters(tags_any=(tag,)), Says.UNKNOWN_TAG.notice(tag), is_reason=False)
        yield _Suspect(SearchFilters(tags_any=filters.tags_any), Says.UNKNOWN_TAG.notice(tag))
    for tag in filters.tags_all:
        yield _Suspect(SearchFilters(tags_any=(tag,)), Says.UNKNOWN_TAG.notice(tag))
    if filters.lang:
        yield _Suspect(SearchFilters(lang=filters.lang), Says.UNKNOWN_LANG.notice(filters.lang))
    if filters.formats:
        yield _Suspect(SearchFilters(formats=filters.formats), Says.UNKNOWN_FORMAT.notice(" or ".join(filters.formats)))
    if filters.types:
        yield _Suspect(SearchFilters(types=filters.types), _unmatched(f"is of --type {' or '.join(filters.types)}"))
    if filters.sources:
        yield _Suspect(
            SearchFilters(sources=filters.sources), _unmatched(f"is of --source {' or '.join(filters.sources)}")
        )
    if filters.path_glob:
        yield _Suspect(SearchFilters(path_glob=filters.path_glob), _unmatched(f"matches --path '{filters.path_glob}'"))
    if filters.trust_min:
        yield _Suspect(
            SearchFilters(trust_min=filters.trust_min), _unmatched(f"passes --trust-min {filters.trust_min}")
        )
    if filters.after:
        yield _Suspect(SearchFilters(after=filters.after), _unmatched(f"is as new as --after {filters.after}"))
    if filters.before:
        yield _Suspect(SearchFilters(before=filters.before), _unmatched(f"is older than --before {filters.before}"))
    yield from _exclusions(filters)


def _exclusions(filters: SearchFilters) -> Iterator[_Suspect]:
    """They may leave out everything, or, misspelt, nothing."""
    for path in filters.exclude_paths:
        yield _Suspect(SearchFilters(exclude_paths=(path,)), _unmatched(f"is left by --exclude-path '{path}'"))
        nothing = _unmatched(f"matches --exclude-path '{path}'")
        yield _Suspect(SearchFilters(path_glob=path), nothing, is_reason=False)
    for tag in filters.exclude_tags:
        yield _Suspect(SearchFilters(exclude_tags=(tag,)), _unmatched(f"is left by --exclude-tag {tag}"))
        yield _Suspect(
            SearchFilters(tags_any=(tag,)), _unmatched(f"has the tag of --exclude-tag {tag}"), is_reason=False
        )


_unmatched = Says.UNMATCHED_FILTER.notice
