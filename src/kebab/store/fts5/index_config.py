"""How a text index is built, and the version that follows from it."""

from __future__ import annotations

import json
from hashlib import sha256

TOKENIZE = "porter unicode61 remove_diacritics 2"
ANALYSIS_VERSION = 2
"""Raised whenever the terms of the same text change, so that an index built before is noticed."""


def fts_config(korean_analysis: str) -> dict[str, object]:
    return {
        "tokenize": TOKENIZE,
        "columns": ["chunk_id", "doc_id", "heading_path", "text", "title", "cjk"],
        "korean": korean_analysis,
        "analysis": ANALYSIS_VERSION,
    }


def lexical_index_version(config: dict[str, object], schema: int) -> str:
    """`schema`: of the store that keeps it."""
    digest = sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:8]
    return f"lex:{schema}:{digest}"
