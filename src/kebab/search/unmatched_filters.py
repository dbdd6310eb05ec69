"""Which filters no document passes: what an empty answer says of its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kebab.core.search import Notice, SearchFilters

_TOGETHER = Notice("unmatched_filter", "No document passes all of the filters together.")


class _Suspect(NamedTuple):
    alone: SearchFilters
    """What passes no document when the notice is true."""
    notice: Notice
    is_reason: bool = True
    """Whether that explains an empty answer by itself."""


def unknown_tag(tag: str) -> Notice:
    return Notice("unknown_tag", f"No document has the tag {tag}. See: kb list tags")


def unknown_lang(lang: str, known: Sequence[str] = ()) -> Notice:
    return Notice(
        "unknown_lang", f"No document is in {lang}." + (f" Languages here: {', '.join(known)}." if known else "")
    )


def unknown_format(formats: Sequence[str], known: Sequence[str] = ()) -> Notice:
    named = " or ".join(formats)
    return Notice(
        "unknown_format",
        f"No document is of the format {named}." + (f" Formats here: {', '.join(known)}." if known else ""),
    )


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
    return [*dict.fromkeys(suspect.notice for suspect in found), *([] if explained else [_TOGETHER])]


def _suspects(filters: SearchFilters) -> Iterator[_Suspect]:
    """Each filter by itself. Of several values one of which is enough, each tag is named, because a slip in one is
    easily missed.
    """
    for tag in filters.tags_any:
        yield _Suspect(SearchFilters(tags_any=(tag,)), unknown_tag(tag), is_reason=False)
        yield _Suspect(SearchFilters(tags_any=filters.tags_any), unknown_tag(tag))
    for tag in filters.tags_all:
        yield _Suspect(SearchFilters(tags_any=(tag,)), unknown_tag(tag))
    if filters.lang:
        yield _Suspect(SearchFilters(lang=filters.lang), unknown_lang(filters.lang))
    if filters.formats:
        yield _Suspect(SearchFilters(formats=filters.formats), unknown_format(filters.formats))
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


def _unmatched(what: str) -> Notice:
    return Notice("unmatched_filter", f"No document {what}.")
