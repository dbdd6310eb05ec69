"""SearchFilters → SQL. One builder for every kind of search, so that a filter means the same everywhere.

The result selects the ids of the documents that may answer. A ranked query puts it into an IN (…) beside its MATCH:
SQLite runs it once, keeps the ids, and ranks only chunks of those documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from kebab.core.search import TRUST_LEVELS, SearchFilters
from kebab.core.text import storable

PERSONAL = "d.source_id NOT IN (SELECT id FROM sources WHERE kind = 'library')"


class DocumentFilter(NamedTuple):
    sql: str
    """SELECT d.id FROM documents d …, or empty when there is nothing to filter."""
    bindings: dict[str, str]


def document_filter(filters: SearchFilters) -> DocumentFilter:
    if not filters:
        return DocumentFilter("", {})
    bindings: dict[str, str] = {}
    joins: list[str] = []
    conditions: list[str] = []

    def bind(value: str) -> str:
        name = f"filter{len(bindings)}"
        bindings[name] = storable(value)
        return f":{name}"

    def one_of(values: Iterable[str]) -> str:
        return f"IN ({', '.join(map(bind, values))})"

    def any_tag(column: str, tags: Iterable[str]) -> str:
        return _either([_tag(column, bind(tag)) for tag in tags])

    if filters.tags_any:
        joins.append(
            f"JOIN document_tags any_tag ON any_tag.document_id = d.id AND {any_tag('any_tag.tag', filters.tags_any)}"
        )
    for number, tag in enumerate(dict.fromkeys(filters.tags_all)):
        joins.append(
            f"JOIN document_tags tag{number} ON tag{number}.document_id = d.id AND {any_tag(f'tag{number}.tag', [tag])}"
        )
    if filters.sources:
        joins.append(f"JOIN sources s ON s.id = d.source_id AND s.name {one_of(filters.sources)}")
    if filters.types:
        conditions.append(f"d.doc_type {one_of(filters.types)}")
    if filters.formats:
        conditions.append(f"d.format {one_of(filters.formats)}")
    if filters.lang:
        conditions.append(f"d.lang = {bind(filters.lang)}")
    if filters.path_glob:
        conditions.append(_path(bind(filters.path_glob), filters.path_glob))
    if filters.trust_min:
        conditions.append(f"d.trust_level {one_of(TRUST_LEVELS[TRUST_LEVELS.index(filters.trust_min) :])}")
    if filters.docs:
        conditions.append(f"d.doc_id {one_of(filters.docs)}")
    if filters.after:
        conditions.append(f"d.date >= {bind(filters.after)}")
    if filters.before:
        conditions.append(f"d.date < {bind(filters.before)}")
    conditions += [f"NOT {_path(bind(pattern), pattern)}" for pattern in filters.exclude_paths]
    if filters.exclude_tags:
        excluded = f"SELECT document_id FROM document_tags WHERE {any_tag('tag', filters.exclude_tags)}"
        conditions.append(f"d.id NOT IN ({excluded})")
    if filters.exclude_docs:
        conditions.append(f"d.doc_id NOT {one_of(filters.exclude_docs)}")
    conditions.append(_of_library(filters, bind) if filters.library is not None else PERSONAL)
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    return DocumentFilter(f"SELECT d.id FROM documents d {' '.join(joins)} {where}", bindings)


def _of_library(filters: SearchFilters, bind: Callable[[str], str]) -> str:
    version = "" if filters.library_version is None else f" AND v.tag = {bind(filters.library_version)}"
    this_one = f" AND l.library_id = {bind(filters.library)}" if filters.library else ""
    return f"""d.id IN (SELECT ld.document_id FROM libraries l
               JOIN library_versions v ON v.library = l.id AND NOT v.in_making{version}{this_one}
               JOIN library_documents ld ON ld.version = v.id)"""


def _tag(column: str, bound: str) -> str:
    """The tag or one nested below it, as in Obsidian: `propulsion` means `propulsion/liquid` too. `0` comes right after
    `/`, so this is a range that the index of tags can answer, and no letter of a tag is a wildcard.
    """
    return f"({column} = {bound} OR ({column} >= {bound} || '/' AND {column} < {bound} || '0'))"


def _either(conditions: Sequence[str]) -> str:
    """Halved again and again: SQLite refuses an expression that is nested a thousand deep, which a plain chain of ORs
    would be.
    """
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return f"({_either(conditions[:middle])} OR {_either(conditions[middle:])})"


def _path(bound: str, pattern: str) -> str:
    """A glob; a plain path may also name a folder, and then means all that is below it."""
    if set("*?[") & set(pattern):
        return f"path_matches({bound}, d.path)"
    return f"(d.path = {bound} OR substr(d.path, 1, length(rtrim({bound}, '/')) + 1) = rtrim({bound}, '/') || '/')"


# --- libraries

# Rows of `chunks` that belong to libraries have numbers below zero, each library in a stretch of its own. So a search
# in a library compares numbers alone; and one's own chunks have a text index in which libraries do not count.
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
