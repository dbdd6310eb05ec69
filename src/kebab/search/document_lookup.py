"""Documents as people name them: by id, path, SOURCE:path, or a path on disk; and filters checked against what is
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kebab.core.errors import Ambiguous, NotFound
from kebab.core.records import DocumentRecord
from kebab.core.search import Notice
from kebab.core.text import storable
from kebab.search.request import SearchRequest, join_library
from kebab.search.unmatched_filters import unknown_format, unknown_lang, unknown_tag

if TYPE_CHECKING:
    from kebab.core.store_ports import Catalog

_SHOWN = 5


def checked_filters(request: SearchRequest, catalog: Catalog) -> tuple[SearchRequest, list[Notice]]:
    """Documents by their ids, and a word on every filter that no document can pass: that is a mistake, not an empty
    answer.
    """
    wanted_tags = {*request.tags_any, *request.tags_all}
    names = [source.name for source in catalog.sources()]
    for name in request.source:
        if name not in names:
            raise NotFound(f"There is no source {name}.", hint=f"Sources: {', '.join(names) or 'none yet'}.")
    request = request._replace(doc=tuple(find_document(catalog, key).doc_id for key in request.doc))
    known = {above for tag in catalog.tags() for above in _with_parents(tag.tag.casefold())} if wanted_tags else set()
    missing = sorted(tag for tag in wanted_tags if tag.casefold() not in known)
    notices = [unknown_tag(tag) for tag in missing]
    languages = catalog.languages() if request.lang else []
    if request.lang and request.lang not in languages:
        notices.append(unknown_lang(request.lang, languages))
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
    return request._replace(format=wanted), [unknown_format([format_], here) for format_ in missing]


def _with_parents(tag: str) -> list[str]:
    """`a/b/c` stands below `a/b` and `a`, and is found by either."""
    parts = tag.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]


def find_document(catalog: Catalog, key: str) -> DocumentRecord:
    """By what the catalog knows, else as a path on disk that lies in a known source."""
    try:
        return catalog.find_document(key)
    except NotFound:
        found = _on_disk(catalog, key) if catalog.paths_on_disk else None
        if found is None:
            raise
        return found


def find_cited_document(catalog: Catalog, path: str) -> DocumentRecord:
    """The same, or one of a library: the citations of its snippets name the path in it."""
    try:
        return find_document(catalog, path)
    except NotFound:
        found = _in_a_library(catalog, path)
        if found is None:
            raise
        return found


def _on_disk(catalog: Catalog, key: str) -> DocumentRecord | None:
    try:
        absolute = Path(key).expanduser().resolve()
    except (OSError, ValueError, RuntimeError):
        return None
    for source in catalog.sources():
        root = Path(source.root or "")
        if source.kind == "folder" and root in absolute.parents:
            return catalog.find_document(f"{source.name}:{absolute.relative_to(root).as_posix()}")
        if source.kind == "file" and root == absolute:
            return catalog.find_document(f"{source.name}:{root.name}")
    return None


def _in_a_library(catalog: Catalog, path: str) -> DocumentRecord | None:
    """What two versions have word for word is one document."""
    found = catalog.in_libraries(path)
    if len({record.doc_id for record in found.values()}) > 1:
        places = [f"{join_library(library_id, tag or None)}:{storable(path)}" for library_id, tag in found]
        some = ", ".join(places[:_SHOWN]) + (" …" if len(places) > _SHOWN else "")
        raise Ambiguous(
            f"{storable(path)} is in {len(places)} versions of libraries: {some}.", hint="Name one of them so."
        )
    return next(iter(found.values()), None)
