"""What a person or a program may ask for: the one set of search options behind CLI, bulk lines, Python, HTTP and MCP."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kebab.core.errors import UsageError
from kebab.core.libraries import SNIPPET_KINDS
from kebab.core.search import DOC_TYPES, DUPLICATES, FUSIONS, MATCHES, MODES, SORTS, TRUST_LEVELS, SearchFilters

if TYPE_CHECKING:
    from datetime import datetime

MAX_K = 1000
MAX_NEIGHBOURS = 5
_UNITS = {"day": 1, "week": 7, "month": 30, "year": 365, "d": 1, "w": 7, "m": 30, "y": 365}
_RELATIVE = re.compile(r"(\d{1,6})\s*(day|week|month|year|d|w|m|y)s?(?:\s+ago)?", re.IGNORECASE)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?")
_PLACE = re.compile(r"(?P<id>/[^/@\s]+/[^/@\s]+)(?:[/@](?P<version>.*)|\s*)", re.DOTALL)
ALIASES = {
    "top": "k",
    "tag": "tags_any",
    "tags": "tags_all",
    "path_glob": "path",
    "types": "type",
    "sources": "source",
    "docs": "doc",
    "formats": "format",
    "exclude_paths": "exclude_path",
    "exclude_tags": "exclude_tag",
}
LISTS = frozenset({"tags_any", "tags_all", "type", "format", "source", "doc", "exclude_path", "exclude_tag"})
_TAGS = frozenset({"tags_any", "tags_all", "exclude_tag"})
_LOWER_CASE = frozenset({"mode", "type", "format", "lang", "trust_min", "match", "sort", "fusion", "duplicates"})
SWITCHES = frozenset({"full_text", "highlight", "explain", "type_ahead", "group"})
NUMBERS = {"threshold": (0.0, 2.0), "min_score": (0.0, 1.0)}
"""And between what they lie: a minimum that no score can reach is a slip, not an empty answer."""
CHOICES = {
    "mode": MODES,
    "match": MATCHES,
    "fusion": FUSIONS,
    "sort": SORTS,
    "duplicates": DUPLICATES,
    "trust_min": TRUST_LEVELS,
    "type": DOC_TYPES,
    "snippet_type": SNIPPET_KINDS,
}
_ANY_NUMBER = 10**9
WHOLE_NUMBERS = {
    "k": (1, MAX_K),
    "offset": (0, _ANY_NUMBER),
    "per_doc": (1, _ANY_NUMBER),
    "max_tokens": (1, _ANY_NUMBER),
    "neighbours": (0, MAX_NEIGHBOURS),
}
"""The least and the most each may be."""


class SearchRequest(NamedTuple):
    """None means: as the settings say."""

    query: str = ""
    mode: str | None = None
    k: int | None = None
    offset: int = 0
    cursor: str | None = None
    tags_any: tuple[str, ...] = ()
    tags_all: tuple[str, ...] = ()
    type: tuple[str, ...] = ()
    format: tuple[str, ...] = ()
    lang: str | None = None
    path: str | None = None
    trust_min: str | None = None
    source: tuple[str, ...] = ()
    doc: tuple[str, ...] = ()
    after: str | None = None
    before: str | None = None
    exclude_path: tuple[str, ...] = ()
    exclude_tag: tuple[str, ...] = ()
    library: str | None = None
    """/owner/project or /owner/project/version: its documentation instead of what was ingested."""
    snippet_type: str | None = None
    """Of a library: code or info."""
    match: str | None = None
    fusion: str | None = None
    sort: str = "relevance"
    per_doc: int | None = None
    duplicates: str | None = None
    threshold: float | None = None
    min_score: float | None = None
    max_tokens: int | None = None
    full_text: bool = False
    highlight: bool = True
    explain: bool = False
    type_ahead: bool = False
    group: bool = False
    neighbours: int = 0

    @classmethod
    def from_options(cls, options: Mapping[str, Any], defaults: SearchRequest | None = None) -> SearchRequest:
        """Checked; an unknown name or value is an error that lists what is valid."""
        values: dict[str, Any] = {} if defaults is None else defaults._asdict()
        for given, value in options.items():
            name = ALIASES.get(given, given)
            if name not in cls._fields:
                from difflib import get_close_matches

                close = get_close_matches(given, [*cls._fields, *ALIASES], n=1)
                hint = f"Did you mean {close[0]}?" if close else f"Options: {', '.join(cls._fields)}."
                raise UsageError(f"There is no search option {given!r}.", hint=hint)
            if value is not None:
                values[name] = _checked(name, value)
        return cls(**values)

    def filters(self) -> SearchFilters:
        return SearchFilters(
            tags_any=self.tags_any,
            tags_all=self.tags_all,
            types=self.type,
            formats=self.format,
            lang=self.lang,
            path_glob=self.path,
            trust_min=self.trust_min,
            sources=self.source,
            docs=self.doc,
            after=absolute_date(self.after, "after") if self.after else None,
            before=absolute_date(self.before, "before") if self.before else None,
            exclude_paths=self.exclude_path,
            exclude_tags=self.exclude_tag,
            **self._of_library(),
        )

    def _of_library(self) -> dict[str, Any]:
        if self.library is None:
            return {}
        library_id, version = split_library(self.library)
        return {
            "library": library_id,
            "library_version": version or "",
            "kinds": (self.snippet_type,) if self.snippet_type else (),
        }


def split_library(library: str) -> tuple[str, str | None]:
    """/owner/project and the version behind it, after a slash or an @; the version is verbatim and may contain both."""
    match = _PLACE.fullmatch(library.lstrip())
    if match is None:
        raise UsageError(f"{library!r} is no library id.", hint="It looks like /owner/project or /owner/project/v1.2.")
    version: str | None = match["version"]
    return match["id"], version if version and not version.isspace() else None


def join_library(library_id: str, version: str | None) -> str:
    """What split_library splits into these two again, whatever the version is called."""
    return library_id if version is None else f"{library_id}/{version}"


def _checked(name: str, value: Any) -> Any:
    if name in LISTS:
        given = value
        items = value.split(",") if isinstance(value, str) else value
        if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
            raise UsageError(f"{name} takes a text or a list of texts, not {value!r}.", hint='For example ["a", "b"].')
        value = tuple(item.strip() for item in items if item.strip())
        # A comma at the end of a text is a slip; an empty text by itself is a filter that would be lost.
        if (len(value) < len(items) and not isinstance(given, str)) or (not value and isinstance(given, str)):
            raise UsageError(f"{name} is empty.", hint="Name a value, or leave the option out.")
        if name in _LOWER_CASE:
            value = tuple(item.lower() for item in value)
        if name in _TAGS:
            value = tuple(item.lstrip("#").rstrip("/") or item for item in value)  # as Obsidian writes them
    elif name in SWITCHES:
        if not isinstance(value, bool):
            raise UsageError(f"{name} takes true or false, not {value!r}.", hint="Write it without quotes.")
    elif name in WHOLE_NUMBERS:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON does not tell 10.0 from 10
        if not isinstance(value, int) or isinstance(value, bool):
            raise UsageError(f"{name} takes a whole number, not {value!r}.", hint="For example 10.")
        fewest, largest = WHOLE_NUMBERS[name]
        if not fewest <= value <= largest:
            raise UsageError(f"{name} = {value} is out of range.", hint=f"Allowed: {fewest} to {largest}.")
    elif name in NUMBERS:
        if not isinstance(value, int | float) or isinstance(value, bool) or value != value:
            raise UsageError(f"{name} takes a number, not {value!r}.", hint="For example 0.02.")
        least, most = NUMBERS[name]
        if not least <= value <= most:
            raise UsageError(f"{name} = {value} is out of range.", hint=f"Allowed: {least:g} to {most:g}.")
    elif not isinstance(value, str):
        raise UsageError(f"{name} takes a text, not {value!r}.", hint="Write it in quotes.")
    elif not value.strip() and name != "query":
        raise UsageError(f"{name} is empty.", hint="Name a value, or leave the option out.")
    elif name in _LOWER_CASE:
        value = value.lower()
    for item in (value if name in LISTS else (value,)) if name in CHOICES else ():
        if item not in CHOICES[name]:
            raise UsageError(f"{name} = {item!r} is not known.", hint=f"Valid: {', '.join(CHOICES[name])}.")
    return value


def absolute_date(text: str, option: str, now: datetime | None = None) -> str:
    """An ISO date as it is; "1 week", "3 days", "2 months ago" counted back from now."""
    from datetime import UTC, datetime, timedelta

    text = text.strip()
    if _ISO_DATE.fullmatch(text):
        try:
            return datetime.fromisoformat(text).isoformat()[: max(10, len(text))]
        except ValueError:
            pass
    relative = _RELATIVE.fullmatch(text)
    if relative is None:
        raise UsageError(
            f"--{option} {text!r} is not a date.", hint='Write 2026-01-31, or "2 weeks", "3 months", "1 year".'
        )
    try:
        then = (now or datetime.now(UTC)) - timedelta(days=int(relative[1]) * _UNITS[relative[2].lower()])
    except OverflowError:
        return "0001-01-01"
    return then.date().isoformat()
