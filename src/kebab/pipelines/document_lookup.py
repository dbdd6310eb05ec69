"""Documents as people name them: by id, path, SOURCE:path, or a path on disk; and filters checked against what is there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from kebab.core.errors import NotFound
from kebab.core.records import DocumentRecord, SourceRecord, TagRecord
from kebab.core.search import Notice
from kebab.core.text import storable
from kebab.pipelines.search_request import SearchRequest


class Catalog(Protocol):
    def sources(self) -> Sequence[SourceRecord]: ...
    def tags(self) -> Sequence[TagRecord]: ...
    def languages(self) -> Sequence[str]: ...
    def find_document(self, key: str) -> DocumentRecord: ...


def checked_filters(request: SearchRequest, catalog: Catalog) -> tuple[SearchRequest, list[Notice]]:
    """Documents by their ids, and a word on every filter that no document can pass: that is a mistake, not an empty answer."""
    wanted_tags = {*request.tags_any, *request.tags_all}
    names = [source.name for source in catalog.sources()]
    for name in request.source:
        if name not in names:
            raise NotFound(f"There is no source {name}.", hint=f"Sources: {', '.join(names) or 'none yet'}.")
    request = request._replace(doc=tuple(find_document(catalog, key).doc_id for key in request.doc))
    known = {above for tag in catalog.tags() for above in _with_parents(tag.tag.casefold())} if wanted_tags else set()
    missing = sorted(tag for tag in wanted_tags if tag.casefold() not in known)
    notices = [Notice("unknown_tag", f"No document has the tag {tag}. See: kb list tags") for tag in missing]
    languages = catalog.languages() if request.lang else []
    if request.lang and request.lang not in languages:
        notices.append(Notice("unknown_lang", f"No document is in {request.lang}. Languages here: {', '.join(languages) or 'none'}."))
    return request, notices


def _with_parents(tag: str) -> list[str]:
    """`a/b/c` stands below `a/b` and `a`, and is found by either."""
    parts = tag.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]


def find_document(catalog: Catalog, key: str) -> DocumentRecord:
    """By what the catalog knows, else as a path on disk that lies in a known source."""
    try:
        return catalog.find_document(key)
    except NotFound:
        try:
            absolute = Path(key).expanduser().resolve()
        except (OSError, ValueError, RuntimeError):
            raise NotFound(f"No document {storable(key)} is indexed.", hint="See what is there with: kb list docs") from None
        for source in catalog.sources():
            root = Path(source.root or "")
            if source.kind == "folder" and root in absolute.parents:
                return catalog.find_document(f"{source.name}:{absolute.relative_to(root).as_posix()}")
            if source.kind == "file" and root == absolute:
                return catalog.find_document(f"{source.name}:{root.name}")
        raise
