"""Checks filters against the stored documents, so that a filter that no document passes is reported."""

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
    """The request with document ids in `doc`, and notices about unknown tags, languages and formats.

    Raises NotFound for an unknown source, document or format.
    """
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
    """The request with normalised formats, and a notice for each that no document has. NotFound for unknown formats."""
    from kebab.parsing import file_types, registry

    wanted = tuple(map(file_types.format_named, request.format))
    missing = [format_ for format_ in wanted if format_ not in here]
    for format_ in missing:
        if not registry.is_known_format(format_):
            raise NotFound(
                f"There is no format {storable(format_)}.", hint=f"Formats here: {', '.join(here) or 'none yet'}."
            )
    return request._replace(format=wanted), [
        Says.UNKNOWN_FORMAT.notice(format_, more=_here("Formats", here)) for format_ in missing
    ]


def _with_parents(tag: str) -> list[str]:
    """A tag and its parent tags: for `a/b/c` also `a` and `a/b`, because a filter by these finds it too."""
    parts = tag.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]


def _here(what: str, known: Sequence[str]) -> str:
    return f" {what} here: {', '.join(known)}." if known else ""


_NO_DOCUMENT = {
    "lang": Says.UNKNOWN_LANG,
    "formats": Says.UNKNOWN_FORMAT,
    "types": Says.UNMATCHED_TYPE,
    "sources": Says.UNMATCHED_SOURCE,
    "path_glob": Says.UNMATCHED_PATH,
    "trust_min": Says.UNMATCHED_TRUST,
    "after": Says.UNMATCHED_AFTER,
    "before": Says.UNMATCHED_BEFORE,
}
"""The notice for each filter that no document passes."""


class _Suspect(NamedTuple):
    """A filter that may be the reason why nothing is found."""

    alone: SearchFilters
    notice: Notice
    """The notice to show if no document passes `alone`."""
    is_reason: bool = True
    """Whether the notice explains an empty answer by itself."""


def unmatched_filters(filters: SearchFilters, count: Callable[[SearchFilters], int]) -> list[Notice]:
    """Notices about why no document passes these filters; empty if a document passes, or if there are no documents.

    `count` returns how many documents pass given filters.
    """
    place = filters.place
    if filters == place or count(filters) or not count(place):
        return []
    found = [
        suspect
        for suspect in _suspects(filters)
        if not count(suspect.alone._replace(library=place.library, library_version=place.library_version))
    ]
    explained = any(suspect.is_reason for suspect in found)
    notices = list(dict.fromkeys(suspect.notice for suspect in found))
    return notices if explained else [*notices, Says.UNMATCHED_FILTER.notice()]


def _suspects(filters: SearchFilters) -> Iterator[_Suspect]:
    """Each filter by itself. Each tag of `tags_any` is also checked alone, because a misspelt one is easily missed."""
    for tag in filters.tags_any:
        yield _Suspect(SearchFilters(tags_any=(tag,)), Says.UNKNOWN_TAG.notice(tag), is_reason=False)
        yield _Suspect(SearchFilters(tags_any=filters.tags_any), Says.UNKNOWN_TAG.notice(tag))
    for tag in filters.tags_all:
        yield _Suspect(SearchFilters(tags_any=(tag,)), Says.UNKNOWN_TAG.notice(tag))
    for name, says in _NO_DOCUMENT.items():
        value = getattr(filters, name)
        if value:
            written = " or ".join(value) if isinstance(value, tuple) else value
            yield _Suspect(SearchFilters(**{name: value}), says.notice(written))
    # An exclusion may exclude every document or, if misspelt, none.
    for path in filters.exclude_paths:
        yield _Suspect(SearchFilters(exclude_paths=(path,)), Says.ALL_EXCLUDED_BY_PATH.notice(path))
        yield _Suspect(SearchFilters(path_glob=path), Says.NONE_EXCLUDED_BY_PATH.notice(path), is_reason=False)
    for tag in filters.exclude_tags:
        yield _Suspect(SearchFilters(exclude_tags=(tag,)), Says.ALL_EXCLUDED_BY_TAG.notice(tag))
        yield _Suspect(SearchFilters(tags_any=(tag,)), Says.NONE_EXCLUDED_BY_TAG.notice(tag), is_reason=False)
