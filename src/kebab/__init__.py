"""Kebab: local-first search with exact citations.

import kebab
with kebab.open("notes.sqlite") as kb:
    kb.ingest("~/notes")
    for hit in kb.search("markdown chunking rules", k=5):
        print(hit.citation.uri, hit.snippet)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kebab._version import __version__

if TYPE_CHECKING:
    from kebab.core.answers import Answer
    from kebab.core.citations import Citation
    from kebab.core.errors import KebabError
    from kebab.core.ports import ChunkContext, Embedder, Retriever
    from kebab.core.search import HitList, RetrievalDetail, SearchFilters, SearchHit, SearchQuery, SearchResponse
    from kebab.core.store_ports import VectorStore
    from kebab.ingest.report import IngestReport
    from kebab.knowledge_base import KnowledgeBase, open_knowledge_base
    from kebab.search.fusion import FusionPolicy
    from kebab.search.hybrid import HybridRetriever
    from kebab.search.lexical import LexicalRetriever
    from kebab.search.vector import VectorRetriever

    open = open_knowledge_base

# Modules are imported on first use, because the command line also imports this package and must start quickly.
_NAMES = {
    "kebab.core.answers": "Answer",
    "kebab.core.citations": "Citation",
    "kebab.core.errors": "KebabError",
    "kebab.core.ports": "ChunkContext Embedder Retriever",
    "kebab.core.search": "HitList RetrievalDetail SearchFilters SearchHit SearchQuery SearchResponse",
    "kebab.core.store_ports": "VectorStore",
    "kebab.ingest.report": "IngestReport",
    "kebab.knowledge_base": "KnowledgeBase open",
    "kebab.search.fusion": "FusionPolicy",
    "kebab.search.hybrid": "HybridRetriever",
    "kebab.search.lexical": "LexicalRetriever",
    "kebab.search.vector": "VectorRetriever",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Answer",
    "ChunkContext",
    "Citation",
    "Embedder",
    "FusionPolicy",
    "HitList",
    "HybridRetriever",
    "IngestReport",
    "KebabError",
    "KnowledgeBase",
    "LexicalRetriever",
    "RetrievalDetail",
    "Retriever",
    "SearchFilters",
    "SearchHit",
    "SearchQuery",
    "SearchResponse",
    "VectorRetriever",
    "VectorStore",
    "__version__",
]  # without open: `from kebab import *` must not hide the built-in function


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kebab' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), "open_knowledge_base" if name == "open" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "open"])
