"""Makes Qdrant filters from SearchFilters, and from the AND, OR and NOT of a match expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from kebab.core.paths import path_matches
from kebab.core.search import TRUST_LEVELS, SearchFilters
from kebab.store.fts5.wanted_terms import IndexTerm
from kebab.store.qdrant import codec
from kebab.store.qdrant.collection import Collection, Filter, none_of, one_of
from kebab.store.qdrant.schema import Schema
from kebab.store.qdrant.state import stored_versions
from kebab.store.qdrant.terms import LIBRARIES, OWN
from kebab.store.tags import folded

_TOKEN = re.compile(r'(?P<cjk>cjk : )?"(?P<text>(?:[^"]|"")*)"(?P<star> \*)?|(?P<operator>[()]|AND|OR|NOT)|\s+')
_OPERATORS = ("OR", "AND", "NOT")  # from the loosest to the tightest
_CLAUSES = {"OR": "should", "AND": "must", "NOT": "must"}


def corpus_of(filters: SearchFilters) -> str:
    return OWN if filters.library is None else LIBRARIES


def chunk_filter(schema: Schema, filters: SearchFilters, *, has_libraries: bool = True) -> Filter:
    """The filter for chunks. `has_libraries`: whether chunks of libraries may exist, which must be left out."""
    kinds = [one_of("kind", filters.kinds)] if filters.kinds else []
    return {"must": [*_conditions(schema, schema.chunks, filters, has_libraries), *kinds]}


def document_filter(schema: Schema, filters: SearchFilters) -> Filter:
    return {"must": _conditions(schema, schema.documents, filters, has_libraries=True)}


def _conditions(schema: Schema, collection: Collection, filters: SearchFilters, has_libraries: bool) -> list[Filter]:
    must = _plain_conditions(filters)
    if filters.library is not None:
        versions = stored_versions(schema.catalog, filters.library, filters.library_version, complete=True)
        must.append(one_of("versions", (version.key for version in versions)))
    elif has_libraries:
        must.append(one_of("corpus", [OWN]))
    if filters.exclude_tags:
        must.append(none_of("tagged", map(folded, filters.exclude_tags)))
    if filters.exclude_docs:
        must.append(none_of("doc", filters.exclude_docs))
    for pattern, wanted in ((filters.path_glob, True), *((pattern, False) for pattern in filters.exclude_paths)):
        if not pattern:
            continue
        paths, matching = [pattern, pattern.rstrip("/") + "/"], True
        if set("*?[") & set(pattern):
            paths, matching = _glob_paths(pattern, collection.values("within", {"must": must}))
        must.append((one_of if wanted == matching else none_of)("within", paths))
    return must


def _plain_conditions(filters: SearchFilters) -> list[Filter]:
    chosen = {
        "tagged": tuple(map(folded, filters.tags_any)),
        "source": filters.sources,
        "type": filters.types,
        "format": filters.formats,
        "lang": (filters.lang,) if filters.lang else (),
        "trust": TRUST_LEVELS[TRUST_LEVELS.index(filters.trust_min) :] if filters.trust_min else (),
        "doc": filters.docs,
    }
    conditions = [one_of("tagged", [folded(tag)]) for tag in filters.tags_all]
    conditions += [one_of(key, values) for key, values in chosen.items() if values]
    days = {sign: codec.day_number(date) for sign, date in (("gte", filters.after), ("lt", filters.before)) if date}
    return [*conditions, *([{"key": "day", "range": days}] if days else [])]


def _glob_paths(pattern: str, within: Iterable[str]) -> tuple[list[str], bool]:
    """Returns the stored paths that match, and True; or, if those are fewer, the paths that do not, and False."""
    paths = [value for value in within if not value.endswith("/")]
    matching = [path for path in paths if path_matches(pattern, path)]
    if 2 * len(matching) <= len(paths):
        return matching, True
    return sorted(set(paths) - set(matching)), False


class TermFilter(NamedTuple):
    condition: Filter
    is_exact: bool  # whether every chunk that passes is a match; False for a phrase: its order of words is not checked


def term_filter(
    expression: str, stems: Callable[[str], list[str]], term_id: Callable[[IndexTerm], int]
) -> TermFilter | None:
    """The filter on the terms of a chunk for an expression made by `match_expression`; None if it has no terms."""
    tokens = [token for token in _TOKEN.finditer(expression) if token.lastgroup][::-1]

    def joined(level: int) -> TermFilter | None:
        if level == len(_OPERATORS):
            return operand(tokens.pop())
        operands = [joined(level + 1)]
        while tokens and tokens[-1]["operator"] == _OPERATORS[level]:
            tokens.pop()
            operands.append(joined(level + 1))
        return _joined(_OPERATORS[level], operands)

    def operand(token: re.Match[str]) -> TermFilter | None:
        if token["operator"]:  # an opening bracket
            inside = joined(0)
            tokens.pop()
            return inside
        words = stems(token["text"].replace('""', '"'))
        beginning = len(words) - 1 if token["star"] else None
        terms = [IndexTerm(word, token["cjk"] is not None, place == beginning) for place, word in enumerate(words)]
        has = [{"key": "terms", "match": {"value": number}} for number in dict.fromkeys(map(term_id, terms))]
        return TermFilter({"must": has}, len(words) == 1) if has else None

    return joined(0)


def _joined(operator: str, operands: list[TermFilter | None]) -> TermFilter | None:
    parts = [part for part in operands if part is not None]
    if len(parts) <= 1 or (operator == "NOT" and operands[0] is None):
        return operands[0] if operator == "NOT" else next(iter(parts), None)
    conditions = [part.condition for part in parts]
    combined: Filter = {_CLAUSES[operator]: conditions}
    if operator == "NOT":  # an inexact filter also passes chunks that do not match, so it must not exclude
        combined = {"must": conditions[:1], "must_not": [part.condition for part in parts[1:] if part.is_exact]}
    return TermFilter(combined, all(part.is_exact for part in parts))
