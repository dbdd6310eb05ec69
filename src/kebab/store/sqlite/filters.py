"""Turns SearchFilters into SQL, for every kind of search, so that a filter means the same everywhere.

The SQL selects the ids of the permitted documents. A ranked query contains it in an IN (…) after its MATCH, so SQLite
selects these documents once and ranks only their chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from kebab.core.search import TRUST_LEVELS, SearchFilters
from kebab.core.text import storable

PERSONAL = "d.source_id NOT IN (SELECT id FROM sources WHERE kind = 'library')"


class DocumentFilter(NamedTuple):
    sql: str
    """SELECT d.id FROM documents d …, or empty if there are no filters."""
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
    trusted = TRUST_LEVELS[TRUST_LEVELS.index(filters.trust_min) :] if filters.trust_min else ()
    listed = {
        "d.doc_type": filters.types,
        "d.format": filters.formats,
        "d.trust_level": trusted,
        "d.doc_id": filters.docs,
        "d.doc_id NOT": filters.exclude_docs,
    }
    conditions += [f"{column} {one_of(values)}" for column, values in listed.items() if values]
    compared = {"d.lang =": filters.lang, "d.date >=": filters.after, "d.date <": filters.before}
    conditions += [f"{comparison} {bind(value)}" for comparison, value in compared.items() if value]
    if filters.path_glob:
        conditions.append(_path(bind(filters.path_glob), filters.path_glob))
    conditions += [f"NOT {_path(bind(pattern), pattern)}" for pattern in filters.exclude_paths]
    if filters.exclude_tags:
        excluded = f"SELECT document_id FROM document_tags WHERE {any_tag('tag', filters.exclude_tags)}"
        conditions.append(f"d.id NOT IN ({excluded})")
    conditions.append(_of_library(filters, bind) if filters.library is not None else PERSONAL)
    where = f"WHERE {' AND '.join(conditions)}"
    return DocumentFilter(f"SELECT d.id FROM documents d {' '.join(joins)} {where}", bindings)


def _of_library(filters: SearchFilters, bind: Callable[[str], str]) -> str:
    version = "" if filters.library_version is None else f" AND v.tag = {bind(filters.library_version)}"
    this_one = f" AND l.library_id = {bind(filters.library)}" if filters.library else ""
    return f"""d.id IN (SELECT ld.document_id FROM libraries l
               JOIN library_versions v ON v.library = l.id AND NOT v.in_making{version}{this_one}
               JOIN library_documents ld ON ld.version = v.id)"""


def _tag(column: str, bound: str) -> str:
    """Returns a condition for a tag and the tags nested below it: `propulsion` includes `propulsion/liquid`.

    The character after `/` is `0`, so the nested tags are a range, for which SQLite can use the index of tags.
    """
    return f"({column} = {bound} OR ({column} >= {bound} || '/' AND {column} < {bound} || '0'))"


def _either(conditions: Sequence[str]) -> str:
    """Joins conditions with OR as a balanced tree, because SQLite refuses a chain of a thousand ORs as too deep."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return f"({_either(conditions[:middle])} OR {_either(conditions[middle:])})"


def _path(bound: str, pattern: str) -> str:
    """Returns a condition for a glob, a file, or a folder with everything below it."""
    if set("*?[") & set(pattern):
        return f"path_matches({bound}, d.path)"
    return f"(d.path = {bound} OR substr(d.path, 1, length(rtrim({bound}, '/')) + 1) = rtrim({bound}, '/') || '/')"


# --- libraries

# Chunks of libraries have row ids below zero. Each library has its own range, so that a search in a library only
# compares row ids. Libraries have their own text index, so that they do not change the bm25 of the user's own chunks.
OWN = "chunks_fts"
LIBRARIES = "library_fts"
TEXT_INDEXES = (OWN, LIBRARIES)
STRETCH = 40
"""Bits of a library's range: the chunks of the library in row n have ids between -(n + 1) << 40 and -n << 40."""
_NO_LIBRARY = SearchFilters()


def is_library_alone(filters: SearchFilters) -> bool:
    """Whether the library is the only condition on documents."""
    return filters.library is not None and filters._replace(library=None, library_version=None, kinds=()) == _NO_LIBRARY


def library_condition(filters: SearchFilters) -> tuple[str, dict[str, Any]]:
    """Returns the condition for rows of the text index of libraries, and its bindings.

    It selects the range of one library, without the documents that only versions not asked for have. A source owns only
    documents of its own version, so the condition reads only the sources of versions not asked for.
    """
    bindings: dict[str, Any] = {}
    this_one, within, is_asked_for = "", "true", "NOT v.in_making"
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
    others = f"SELECT 1 {versions} AND NOT ({is_asked_for})"  # usually empty, which saves looking up any row
    return (
        f"AND {within} AND (NOT EXISTS ({others}) OR +library_fts.rowid NOT IN ({elsewhere})){_kinds(filters)}",
        bindings,
    )


def _kinds(filters: SearchFilters) -> str:
    """Returns the condition for code only or for info only. Both use the rows of code, which have an index."""
    if set(filters.kinds) in ({"code"}, {"info"}):
        negation = "" if "code" in filters.kinds else "NOT "
        return f" AND +library_fts.rowid {negation}IN (SELECT id FROM chunks WHERE kind = 'code' AND id < 0)"
    return ""
