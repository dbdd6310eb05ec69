"""SearchFilters → a filter of Qdrant's. One builder for documents and chunks, so that a filter means the same
everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kebab.core.path_glob import path_matches
from kebab.core.search import TRUST_LEVELS, SearchFilters
from kebab.core.text import storable
from kebab.store.qdrant.collection import Collection, Filter
from kebab.store.qdrant.libraries import searched_versions
from kebab.store.qdrant.payloads import day_number
from kebab.store.qdrant.schema import Schema
from kebab.store.qdrant.terms import LIBRARIES, OWN
from kebab.store.tags import folded

Condition = dict[str, Any]


def corpus_of(filters: SearchFilters) -> str:
    return OWN if filters.library is None else LIBRARIES


class FilterBuilder:
    """Some filters have to be looked up first: which paths a glob means, which versions of a library are searched."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def of_chunks(self, filters: SearchFilters, *, among_libraries: bool = True) -> Filter:
        """`among_libraries`: whether there may be some, which one's own have to be told from."""
        conditions = self._of_documents(filters, self._schema.chunks, among_libraries=among_libraries)
        if filters.kinds:
            conditions.append(one_of("kind", filters.kinds))
        return {"must": conditions}

    def of_documents(self, filters: SearchFilters) -> Filter:
        return {"must": self._of_documents(filters, self._schema.documents)}

    def _of_documents(
        self, filters: SearchFilters, collection: Collection, *, among_libraries: bool = True
    ) -> list[Condition]:
        must = [*_plain(filters), *(self._library(filters) if among_libraries or filters.library is not None else ())]
        if filters.exclude_tags:
            must.append(none_of("tagged", map(folded, filters.exclude_tags)))
        if filters.exclude_docs:
            must.append(none_of("doc", filters.exclude_docs))
        patterns = ((filters.path_glob, True), *((pattern, False) for pattern in filters.exclude_paths))
        for pattern, wanted in patterns:
            if not pattern:
                continue
            if set("*?[") & set(pattern):
                paths, are_meant = _meant_by(pattern, collection.values("within", {"must": must}))
            else:
                paths, are_meant = [pattern, pattern.rstrip("/") + "/"], True
            must.append((one_of if wanted == are_meant else none_of)("within", paths))
        return must

    def _library(self, filters: SearchFilters) -> list[Condition]:
        if filters.library is None:
            return [one_of("corpus", [OWN])]
        return [one_of("versions", searched_versions(self._schema.catalog, filters.library, filters.library_version))]


def one_of(key: str, values: Iterable[str]) -> Condition:
    return {"key": key, "match": {"any": [storable(value) for value in values]}}


def none_of(key: str, values: Iterable[str]) -> Condition:
    """A condition among others. As `must_not` of the whole filter beside a single other condition, the server (1.16)
    forgets it where both say the same: what must be so and must not be so is then taken for what must.
    """
    return {"must_not": [one_of(key, values)]}


def _plain(filters: SearchFilters) -> list[Condition]:
    conditions = [one_of("tagged", [folded(tag)]) for tag in filters.tags_all]
    chosen = {
        "tagged": tuple(map(folded, filters.tags_any)),
        "source": filters.sources,
        "type": filters.types,
        "format": filters.formats,
        "lang": (filters.lang,) if filters.lang else (),
        "trust": TRUST_LEVELS[TRUST_LEVELS.index(filters.trust_min) :] if filters.trust_min else (),
        "doc": filters.docs,
    }
    conditions += [one_of(key, values) for key, values in chosen.items() if values]
    days = {sign: day_number(date) for sign, date in (("gte", filters.after), ("lt", filters.before)) if date}
    return [*conditions, *([{"key": "day", "range": days}] if days else [])]


def _meant_by(pattern: str, values: Iterable[str]) -> tuple[list[str], bool]:
    """The paths it means among those that are there; or, where these are fewer, those it does not mean (False)."""
    paths = [value for value in values if not value.endswith("/")]
    fitting = [path for path in paths if path_matches(pattern, path)]
    if 2 * len(fitting) <= len(paths):
        return fitting, True
    chosen = set(fitting)
    return [path for path in paths if path not in chosen], False
