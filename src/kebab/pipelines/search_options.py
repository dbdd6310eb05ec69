"""The search options as other programs see them: JSON Schemas for OpenAPI and MCP, and values read out of an address or a form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kebab.core.errors import UsageError
from kebab.core.search import DUPLICATES
from kebab.pipelines.search_request import (
    ALIASES,
    CHOICES,
    LISTS,
    MAX_NEIGHBOURS,
    NUMBERS,
    SWITCHES,
    WHOLE_NUMBERS,
    SearchRequest,
)

MAX_QUERY = 10_000
"""Characters; nobody types more, and a text is better ingested than asked for."""
FILTERS = (
    "tags_any",
    "tags_all",
    "type",
    "format",
    "lang",
    "path",
    "trust_min",
    "source",
    "after",
    "before",
    "exclude_path",
    "exclude_tag",
)
"""Those of the options that say which documents may be in a list."""
_DATE = r"^\s*(\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])|\d{1,6}\s*([dD]ays?|[wW]eeks?|[mM]onths?|[yY]ears?)(\s+ago)?)\s*$"
_LIBRARY = r"^/[^/@\s]+/[^/@\s]+([/@][^/@\s]+)?$"
_SENTENCES = {
    "query": 'What to look for. "A phrase", prefix*, AND, OR and NOT in capitals mean what they say; in single quotes it is raw FTS5.',
    "mode": "hybrid: by words and by meaning (the default); lexical: by words; vector: by meaning.",
    "k": "How many hits (setting search.default_k).",
    "offset": "Leave out this many hits.",
    "cursor": "Where the page before ended: its next_cursor.",
    "tags_any": "Documents with any of these tags.",
    "tags_all": "Documents with all of these tags.",
    "type": "Documents of these types.",
    "format": "Finer than type: md, txt, py, …",
    "lang": "Language of the document: en, ko, ja, zh, …",
    "path": "Paths like 'docs/**/*.md'; * stops at a slash.",
    "trust_min": "Documents trusted at least as much.",
    "source": "Only these sources.",
    "doc": "Only these documents, by id or path.",
    "after": "Not older than 2026-01-31, or '2 weeks'.",
    "before": "Older than 2026-01-31, or '1 year'.",
    "exclude_path": "Leave out these paths.",
    "exclude_tag": "Leave out documents with these tags.",
    "library": "/owner/project or /owner/project/version: its documentation instead of what was ingested.",
    "snippet_type": "Of a library: examples only, or prose only.",
    "match": "All words, any of them, or all first and any when that gives too few (auto).",
    "fusion": "How hybrid mixes: rrf, by rank, or convex, by score.",
    "sort": "By relevance, or the newest first.",
    "per_doc": "At most this many hits of one document.",
    "duplicates": f"Passages with nearly the same text: {' or '.join(DUPLICATES)} them.",
    "threshold": "Least raw RRF score; first on both sides is 0.033. Only hybrid with rrf has one.",
    "min_score": "Least score, 0 to 1, in every mode.",
    "max_tokens": "Whole hits up to about this many tokens.",
    "full_text": "The whole passage in text, not only a snippet.",
    "highlight": "Whether to mark what matched.",
    "explain": "Why each hit is where it is.",
    "type_ahead": "The last word may be half typed.",
    "group": "Hits of one document together, documents in the order of their best hits.",
    "neighbours": f"This many passages before and after each hit too, {MAX_NEIGHBOURS} at most.",
}
_SOMETHING: dict[str, Any] = {"minLength": 1, "pattern": r"\S"}
_FORMS: dict[str, dict[str, Any]] = {
    "after": {"pattern": _DATE},
    "before": {"pattern": _DATE},
    "library": {"pattern": _LIBRARY},
    "query": {"maxLength": MAX_QUERY},
}


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of each option, by its name."""
    return {name: {**_schema(name), "description": _SENTENCES[name]} for name in SearchRequest._fields}


def _schema(name: str) -> dict[str, Any]:
    choice = {"enum": list(CHOICES[name])} if name in CHOICES else {}
    if name in LISTS:
        return {"type": "array", "items": {"type": "string", "minLength": 1, **choice}}
    if name in SWITCHES:
        return {"type": "boolean", "default": SearchRequest._field_defaults[name]}
    if name in WHOLE_NUMBERS:
        least, most = WHOLE_NUMBERS[name]
        return {"type": "integer", "minimum": least, "maximum": most}
    if name in NUMBERS:
        return {"type": "number", "minimum": NUMBERS[name][0], "maximum": NUMBERS[name][1]}
    return {"type": "string", **(choice or _FORMS.get(name, _SOMETHING))}


def typed(given: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Options whose values are texts, as in an address: each as often as it was given. What is given empty is not given."""
    read: dict[str, Any] = {}
    for written, texts in given.items():
        name = ALIASES.get(written, written)
        values = [text for text in texts if text.strip()] if name != "query" else list(texts)
        if not values:
            continue
        if len(values) > 1 and name not in LISTS:
            raise UsageError(f"{name} is given {len(values)} times.", hint="Give it once.")
        read[written] = _value(name, values)
    return read


def _value(name: str, values: list[str]) -> Any:
    if name in LISTS:
        return values if len(values) > 1 else values[0]
    (text,) = values
    if name in SWITCHES:
        if text.lower() not in _TRUE | _FALSE:
            raise UsageError(f"{name} takes true or false, not {text!r}.", hint=f"For example {name}=true.")
        return text.lower() in _TRUE
    if name in WHOLE_NUMBERS:
        return _number(name, text, int, "a whole number", "10")
    if name in NUMBERS:
        return _number(name, text, float, "a number", "0.02")
    return text


_TRUE, _FALSE = frozenset({"true", "1", "on", "yes"}), frozenset({"false", "0", "off", "no"})


def _number(name: str, text: str, kind: type[int] | type[float], words: str, example: str) -> float:
    try:
        return kind(text)
    except ValueError as error:
        raise UsageError(f"{name} takes {words}, not {text!r}.", hint=f"For example {name}={example}.") from error
