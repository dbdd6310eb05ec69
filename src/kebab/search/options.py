"""The search options as other programs see them: JSON Schemas for OpenAPI and MCP, and values read out of an address or
a form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kebab.core.errors import UsageError
from kebab.core.search import DUPLICATES
from kebab.search.request import (
    ALIASES,
    CHOICES,
    LISTS,
    MAX_NEIGHBOURS,
    NUMBERS,
    SWITCHES,
    WHOLE_NUMBERS,
    SearchRequest,
)

_BLANK = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space as Python has it, written out: in the regular expressions of other languages \\s is something else."""
SOMETHING = f"[^{_BLANK}]"
LIBRARY = rf"^[{_BLANK}]*/[^/@{_BLANK}]+/[^/@{_BLANK}]+([{_BLANK}]*|[/@][\s\S]*)$"
"""As split_library has it: a version is verbatim, whatever is in it."""
_DATE = r"^\s*([1-9]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])|\d{1,6}\s*([dD]ays?|[wW]eeks?|[mM]onths?|[yY]ears?)(\s+ago)?)\s*$"
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
_SOMETHING: dict[str, Any] = {"minLength": 1, "pattern": SOMETHING}
_FORMS: dict[str, dict[str, Any]] = {
    "after": {"pattern": _DATE},
    "before": {"pattern": _DATE},
    "library": {"pattern": LIBRARY},
    "query": {},
}


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of each option, by its name."""
    return {name: {**_schema(name), "description": _SENTENCES[name]} for name in SearchRequest._fields}


def json_schemas() -> dict[str, dict[str, Any]]:
    """The same for options in a JSON object, where null means: not given, and a list may be one text, parted by commas."""
    return {name: schema if name == "query" else _or_null(name, schema) for name, schema in schemas().items()}


def _or_null(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    if name in LISTS:
        one = f"({'|'.join(CHOICES[name])})" if name in CHOICES else ""
        text = {"type": "string", "pattern": f"^{one}(,{one})*$" if one else rf"[^,{_BLANK}]"}
        return {
            "anyOf": [{key: schema[key] for key in ("type", "items")}, text, {"type": "null"}],
            "description": schema["description"],
        }
    choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **choices}


def _schema(name: str) -> dict[str, Any]:
    choice = {"enum": list(CHOICES[name])} if name in CHOICES else {}
    if name in LISTS:
        return {"type": "array", "items": {"type": "string", **(choice or _SOMETHING)}}
    if name in SWITCHES:
        return {"type": "boolean", "default": SearchRequest._field_defaults[name]}
    if name in WHOLE_NUMBERS:
        least, most = WHOLE_NUMBERS[name]
        return {"type": "integer", "minimum": least, "maximum": most}
    if name in NUMBERS:
        return {"type": "number", "minimum": NUMBERS[name][0], "maximum": NUMBERS[name][1]}
    return {"type": "string", **(choice or _FORMS.get(name, _SOMETHING))}


def typed(given: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Options whose values are texts, as in an address: each as often as it was given. A name that is none of ours
    stays a text.
    """
    read: dict[str, Any] = {}
    for written, texts in given.items():
        name = ALIASES.get(written, written)
        if len(texts) > 1 and name not in LISTS:
            raise UsageError(f"{name} is given {len(texts)} times.", hint="Give it once.")
        read[written] = _value(name, list(texts))
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
        return int(_number(name, text, _WHOLE, "a whole number", "10"))
    if name in NUMBERS:
        return float(_number(name, text, _DECIMAL, "a number", "0.02"))
    return text


_WHOLE = re.compile(r"[+-]?[0-9]{1,12}")
_DECIMAL = re.compile(r"[+-]?([0-9]{1,12}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?")
_TRUE, _FALSE = frozenset({"true", "1", "on", "yes"}), frozenset({"false", "0", "off", "no"})


def _number(name: str, text: str, form: re.Pattern[str], words: str, example: str) -> str:
    """As it is written; Python would also take 1_000 and NaN for numbers."""
    if not form.fullmatch(text.strip()):
        raise UsageError(f"{name} takes {words}, not {text!r}.", hint=f"For example {name}={example}.")
    return text.strip()
