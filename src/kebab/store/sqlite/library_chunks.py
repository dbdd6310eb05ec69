"""Which rows of `chunks` belong to libraries: below zero, each library in a stretch of its own. So a search in a
library looks at nothing else, by comparing numbers alone; and one's own chunks have a text index of their own, in which
libraries do not count.
"""

from __future__ import annotations

from typing import Any

from kebab.core.search import SearchFilters
from kebab.core.text import storable

OWN = "chunks_fts"
LIBRARIES = "library_fts"
TEXT_INDEXES = (OWN, LIBRARIES)
STRETCH = 40
"""Bits. The chunks of the library in row n lie between -(n + 1) << 40 and -n << 40."""
_NO_LIBRARY = SearchFilters()


def is_library_alone(filters: SearchFilters) -> bool:
    """Whether nothing else is asked of the documents."""
    return filters.library is not None and filters._replace(library=None, library_version=None, kinds=()) == _NO_LIBRARY


def library_condition(filters: SearchFilters) -> tuple[str, dict[str, Any]]:
    """For a query of the text index of libraries: the stretch of one of them, without what only its other versions
    have. A source owns nothing but documents of its version, so those of the versions that are asked for need not be
    looked at.
    """
    bindings: dict[str, Any] = {}
    this_one, within = "", "true"
    is_asked_for = "NOT v.in_making"
    if filters.library:
        bindings["library"] = storable(filters.library)
        this_one = "AND l.library_id = :library"
        within = f"""library_fts.rowid > (SELECT -((id + 1) << {STRETCH}) FROM libraries WHERE library_id = :library)
            AND library_fts.rowid < (SELECT -(id << {STRETCH}) FROM libraries WHERE library_id = :library)"""
    if filters.library_version is not None:
        bindings["library_version"] = storable(filters.library_version)
        is_asked_for = "NOT v.in_making AND v.tag = :library_version"
    versions = f"FROM libraries l JOIN library_versions v ON v.library = l.id {this_one}"
    elsewhere = f"""SELECT c.id {versions} AND NOT ({is_asked_for})
            JOIN documents d ON d.source_id = v.source_id JOIN chunks c ON c.document_id = d.id
            WHERE NOT EXISTS (SELECT 1 FROM library_documents ld WHERE ld.document_id = d.id AND ld.version IN (
                SELECT v.id {versions} AND {is_asked_for}))"""
    others = f"SELECT 1 {versions} AND NOT ({is_asked_for})"  # mostly there are none: then no row need be looked up
    return (
        f"AND {within} AND (NOT EXISTS ({others}) OR +library_fts.rowid NOT IN ({elsewhere})){_kinds(filters)}",
        bindings,
    )


def _kinds(filters: SearchFilters) -> str:
    """A snippet is code, or else info; there is an index of the code."""
    if set(filters.kinds) in ({"code"}, {"info"}):
        negation = "" if "code" in filters.kinds else "NOT "
        return f" AND +library_fts.rowid {negation}IN (SELECT id FROM chunks WHERE kind = 'code' AND id < 0)"
    return ""
