"""The configuration of a text index, and the version string made from it."""

from __future__ import annotations

import json
from hashlib import sha256

TOKENIZE = "porter unicode61 remove_diacritics 2"
ANALYSIS_VERSION = 2
"""Increased whenever the same text gives other terms, so that Kebab notices an index built before."""


def fts_config(korean_analysis: str) -> dict[str, object]:
    return {
        "tokenize": TOKENIZE,
        "columns": ["chunk_id", "doc_id", "heading_path", "text", "title", "cjk"],
        "korean": korean_analysis,
        "analysis": ANALYSIS_VERSION,
    }


def lexical_index_version(config: dict[str, object], schema: int) -> str:
    """Returns the version of a text index. `schema`: the schema number of the store that has the index."""
    digest = sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:8]
    return f"lex:{schema}:{digest}"
