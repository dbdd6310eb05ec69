"""The one table of search options. The request, `kb search`, bulk lines, HTTP parameters, MCP arguments, their JSON
Schemas and the reference all come from it.
"""

# Without `from __future__ import annotations`: the table below is made of the annotations themselves.

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, NamedTuple

from kebab.core.checking import by_name, checked, checked_argument, empty, from_text, repeated, unknown
from kebab.core.errors import UsageError
from kebab.core.libraries import SNIPPET_KINDS
from kebab.core.search import (
    DEFAULT_K,
    DOC_TYPES,
    DUPLICATES,
    FUSIONS,
    MATCHES,
    MAX_K,
    MODES,
    MOST_RERANKED,
    RERANKED,
    RRF_K,
    SORTS,
    TRUST_LEVELS,
    SearchFilters,
)

MAX_NEIGHBOURS = 5
_ANY_NUMBER = 10**9
_UNITS = {"day": 1, "week": 7, "month": 30, "year": 365, "d": 1, "w": 7, "m": 30, "y": 365}
_RELATIVE = re.compile(r"(\d{1,6})\s*(day|week|month|year|d|w|m|y)s?(?:\s+ago)?", re.IGNORECASE)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?")
_LIBRARY_PLACE = re.compile(r"(?P<id>/[^/@\s]+/[^/@\s]+)(?:[/@](?P<version>.*)|\s*)", re.DOTALL)

_BLANK = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space as Python has it, written out: in the regular expressions of other languages \\s is something else."""
SOMETHING = f"[^{_BLANK}]"
LIBRARY = rf"^[{_BLANK}]*/[^/@{_BLANK}]+/[^/@{_BLANK}]+([{_BLANK}]*|[/@][\s\S]*)$"
"""As split_library reads it: any text is a version."""
_DATE = (
    r"^\s*([1-9]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])"
    r"|\d{1,6}\s*([dD]ays?|[wW]eeks?|[mM]onths?|[yY]ears?)(\s+ago)?)\s*$"
)


class Option(NamedTuple):
    """The rules and help of a search option."""

    help: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    pattern: str | None = None
    """The pattern of a text, in JSON Schemas."""
    lower_case: bool = False
    """Upper and lower case are the same; always so where there are choices."""
    is_filter: bool = False
    """Whether it says which documents may be in a list."""
    cli_help: str = ""
    """The sentence on the command line, if it differs."""
    flags: tuple[str, ...] = ()
    """The flags on the command line, if they are not the name with dashes."""
    metavar: str | None = None
    flag_value: int | None = None
    """On the command line, what the option means without a value."""


_Text = str | None
_Whole = int | None
_Number = float | None
_Texts = tuple[str, ...]
_KINDS: dict[Any, type] = {str: str, _Text: str, int: int, _Whole: int, _Number: float, bool: bool, _Texts: list}


class SearchRequest(NamedTuple):
    """The options of one search. None means: as the settings say."""

    query: Annotated[
        str,
        Option(
            'What to look for. "A phrase", prefix*, AND, OR and NOT in capitals mean what they say; '
            "in single quotes it is raw FTS5."
        ),
    ] = ""
    mode: Annotated[
        _Text,
        Option(
            "hybrid: by words and by meaning (the default); lexical: by words; vector: by meaning.",
            choices=MODES,
            metavar="MODE",
        ),
    ] = None
    k: Annotated[
        _Whole,
        Option(
            "How many hits (setting search.default_k).",
            least=1,
            most=MAX_K,
            aliases=("top",),
            cli_help=f"How many hits (setting search.default_k, {DEFAULT_K}).",
            flags=("-k", "--k", "--top"),
        ),
    ] = None
    offset: Annotated[
        int,
        Option("Leave out this many hits.", 0, _ANY_NUMBER, cli_help="Leave out this many from the beginning."),
    ] = 0
    cursor: Annotated[
        _Text,
        Option(
            "Where the page before ended: its next_cursor.", cli_help="Go on where a response with next_cursor ended."
        ),
    ] = None
    tags_any: Annotated[
        _Texts,
        Option(
            "Documents with any of these tags.",
            aliases=("tag",),
            is_filter=True,
            cli_help="Documents with this tag; repeat it for any of several.",
            flags=("--tag",),
        ),
    ] = ()
    tags_all: Annotated[
        _Texts,
        Option(
            "Documents with all of these tags.", aliases=("tags",), is_filter=True, flags=("--tags",), metavar="A,B"
        ),
    ] = ()
    type: Annotated[
        _Texts,
        Option(
            "Documents of these types.",
            choices=DOC_TYPES,
            aliases=("types",),
            is_filter=True,
            cli_help="pdf, markdown, code or note; may be repeated.",
        ),
    ] = ()
    format: Annotated[
        _Texts,
        Option(
            "Finer than type: md, txt, py, …",
            aliases=("formats",),
            lower_case=True,
            is_filter=True,
            cli_help="Finer than --type: md, txt, py, …",
        ),
    ] = ()
    lang: Annotated[_Text, Option("Language of the document: en, ko, ja, zh, …", lower_case=True, is_filter=True)] = (
        None
    )
    path: Annotated[
        _Text,
        Option(
            "Paths like 'docs/**/*.md'; * stops at a slash.",
            aliases=("path_glob",),
            is_filter=True,
            cli_help="'docs/**/*.md'; * stops at a slash.",
            metavar="GLOB",
        ),
    ] = None
    trust_min: Annotated[
        _Text,
        Option(
            "Documents trusted at least as much.",
            choices=TRUST_LEVELS,
            is_filter=True,
            cli_help="primary, secondary or generated.",
        ),
    ] = None
    source: Annotated[
        _Texts,
        Option(
            "Only these sources.",
            aliases=("sources",),
            is_filter=True,
            cli_help="Only this source; see kb list sources.",
        ),
    ] = ()
    doc: Annotated[
        _Texts,
        Option("Only these documents, by id or path.", aliases=("docs",), cli_help="Only this document.", metavar="ID"),
    ] = ()
    after: Annotated[
        _Text,
        Option(
            "Not older than 2026-01-31, or '2 weeks'.",
            pattern=_DATE,
            is_filter=True,
            cli_help="Not older: 2026-01-31, or '2 weeks'.",
            metavar="DATE",
        ),
    ] = None
    before: Annotated[
        _Text,
        Option(
            "Older than 2026-01-31, or '1 year'.",
            pattern=_DATE,
            is_filter=True,
            cli_help="Older than: 2026-01-31, or '1 year'.",
            metavar="DATE",
        ),
    ] = None
    exclude_path: Annotated[
        _Texts, Option("Leave out these paths.", aliases=("exclude_paths",), is_filter=True, metavar="GLOB")
    ] = ()
    exclude_tag: Annotated[
        _Texts,
        Option(
            "Leave out documents with these tags.",
            aliases=("exclude_tags",),
            is_filter=True,
            cli_help="Leave out documents with this tag.",
        ),
    ] = ()
    library: Annotated[
        _Text,
        Option(
            "/owner/project or /owner/project/version: its documentation instead of what was ingested.",
            pattern=LIBRARY,
            cli_help="The documentation of this library instead of what was ingested.",
            metavar="/OWNER/PROJECT[/VERSION]",
        ),
    ] = None
    snippet_type: Annotated[
        _Text,
        Option(
            "Of a library: examples only, or prose only.",
            choices=SNIPPET_KINDS,
            cli_help="Of a library: code or info.",
        ),
    ] = None
    match: Annotated[
        _Text,
        Option(
            "All words, any of them, or all first and any when that gives too few (auto).",
            choices=MATCHES,
            cli_help="all words, any of them, or auto: all first, any when that gives too few.",
        ),
    ] = None
    fusion: Annotated[
        _Text,
        Option(
            "How hybrid mixes: rrf, by rank, or convex, by score.",
            choices=FUSIONS,
            cli_help="How hybrid mixes: rrf, by rank, or convex, by score (setting search.hybrid_fusion, rrf).",
        ),
    ] = None
    rerank: Annotated[
        _Whole,
        Option(
            f"Put this many of the best passages in order with a cross-encoder, {RERANKED} for example; 0: none "
            "(setting search.rerank).",
            least=0,
            most=MOST_RERANKED,
            cli_help=f"Put the best N passages, {RERANKED} if N is left out, in order with a cross-encoder: better and "
            "slower; 0: do not (setting search.rerank).",
            metavar="[N]",
            flag_value=RERANKED,
        ),
    ] = None
    sort: Annotated[
        str,
        Option("By relevance, or the newest first.", choices=SORTS, cli_help="relevance or date (newest first)."),
    ] = "relevance"
    per_doc: Annotated[_Whole, Option("At most this many hits of one document.", 1, _ANY_NUMBER)] = None
    duplicates: Annotated[
        _Text,
        Option(
            f"Passages with nearly the same text: {' or '.join(DUPLICATES)} them.",
            choices=DUPLICATES,
            cli_help="Passages with nearly the same text: fold them under the best one, or show each (setting, fold).",
            metavar="HOW",
        ),
    ] = None
    threshold: Annotated[
        _Number,
        Option(
            f"Least raw RRF score; first on both sides is {2 / (RRF_K + 1):.3f}. Only hybrid with rrf has one.",
            least=0.0,
            most=2.0,
        ),
    ] = None
    min_score: Annotated[_Number, Option("Least score, 0 to 1, in every mode.", 0.0, 1.0)] = None
    max_tokens: Annotated[_Whole, Option("Whole hits up to about this many tokens.", 1, _ANY_NUMBER)] = None
    full_text: Annotated[
        bool,
        Option("The whole passage in text, not only a snippet.", cli_help="The whole passage, not only a snippet."),
    ] = False
    highlight: Annotated[
        bool, Option("Whether to mark what matched.", cli_help="No marks on what matched.", flags=("--no-highlight",))
    ] = True
    explain: Annotated[bool, Option("Why each hit is where it is.")] = False
    type_ahead: Annotated[bool, Option("The last word may be half typed.")] = False
    group: Annotated[bool, Option("Hits of one document together, documents in the order of their best hits.")] = False
    neighbours: Annotated[
        int,
        Option(
            f"This many passages before and after each hit too, {MAX_NEIGHBOURS} at most.",
            least=0,
            most=MAX_NEIGHBOURS,
            cli_help=f"The N passages before and after each hit too; {MAX_NEIGHBOURS} at most.",
            metavar="N",
        ),
    ] = 0

    @classmethod
    def from_options(cls, options: Mapping[str, Any], defaults: "SearchRequest | None" = None) -> "SearchRequest":
        """A checked request; the error for an unknown name or value lists the valid ones. `defaults` has the values of
        options that are not given.
        """
        given = by_name(options, OPTIONS, ALIASES, refuse=unknown_option)
        values = {name: _checked_option(name, value) for name, value in given.items()}
        return (defaults or cls())._replace(**values)

    def filters(self) -> SearchFilters:
        """The filters that these options say. A filter's name is that of its option, or an alias of it."""
        values = {
            name: getattr(self, ALIASES.get(name, name))
            for name in SearchFilters._fields
            if ALIASES.get(name, name) in OPTIONS
        }
        values |= {name: absolute_date(values[name], name) for name in ("after", "before") if values[name]}
        if self.library is not None:
            library_id, version = split_library(self.library)
            kinds = (self.snippet_type,) if self.snippet_type else ()
            values |= {"library": library_id, "library_version": version or "", "kinds": kinds}
        return SearchFilters(**values)


OPTIONS: dict[str, Option] = {name: hint.__metadata__[0] for name, hint in SearchRequest.__annotations__.items()}
KINDS = {name: _KINDS[hint.__origin__] for name, hint in SearchRequest.__annotations__.items()}
"""str, int, float, bool, or list for several texts."""
ALIASES = {alias: name for name, option in OPTIONS.items() for alias in option.aliases}
FILTERS = tuple(name for name, option in OPTIONS.items() if option.is_filter)
FILTER_ALIASES = {alias: name for alias, name in ALIASES.items() if name in FILTERS}
_TAGS = ("tags_any", "tags_all", "exclude_tag")


def unknown_option(given: str, *others: str) -> UsageError:
    """`others`: further names that a surface accepts."""
    return unknown(given, OPTIONS, (*ALIASES, *others), "search option")


def _checked_option(name: str, value: Any) -> Any:
    option, kind = OPTIONS[name], KINDS[name]
    lower = option.lower_case or bool(option.choices)
    if kind is list:
        value = [item.lower() if lower else item for item in _items(name, value)]
        if name in _TAGS:
            value = [item.lstrip("#").rstrip("/") or item for item in value]  # as Obsidian writes them
        return tuple(checked(name, value, list, choices=option.choices))
    return checked_argument(name, value.lower() if lower and isinstance(value, str) else value, _schema(name))


def _items(name: str, value: Any) -> list[str]:
    """A text may hold several, separated by commas; a final comma is ignored. Only commas, or an empty text in a list,
    is an error: the filter would be lost.
    """
    texts = value.split(",") if isinstance(value, str) else value
    items = [item.strip() for item in checked(name, texts, list, may_be_empty=True)]
    kept = [item for item in items if item]
    if (not kept and isinstance(value, str)) or (len(kept) < len(items) and not isinstance(value, str)):
        raise empty(name)
    return kept


def read_texts(given: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Options from texts, as in the query of a URL, with all values of each. Unknown names keep their text."""
    values: dict[str, Any] = {}
    for written, texts in given.items():
        name = ALIASES.get(written, written)
        kind = KINDS.get(name, str)
        if len(texts) > 1 and kind is not list:
            raise repeated(name)
        values[written] = list(texts) if len(texts) > 1 else from_text(texts[0], kind)
    return values


# --- JSON Schemas


def schemas(names: Iterable[str] = OPTIONS) -> dict[str, dict[str, Any]]:
    """The JSON Schema of each option, by its name."""
    return {name: {**_schema(name), "description": OPTIONS[name].help} for name in names}


def json_schemas(names: Iterable[str] = OPTIONS) -> dict[str, dict[str, Any]]:
    """The JSON Schemas of the same options in a JSON object: null means not given, and a list may be one text with
    commas.
    """
    return {name: schema if name == "query" else _or_null(name, schema) for name, schema in schemas(names).items()}


def _schema(name: str) -> dict[str, Any]:
    option, kind = OPTIONS[name], KINDS[name]
    if kind is bool:
        return {"type": "boolean", "default": SearchRequest._field_defaults[name]}
    if kind in (int, float):
        return {"type": "integer" if kind is int else "number", "minimum": option.least, "maximum": option.most}
    text: dict[str, Any] = {"type": "string"}
    if option.choices:
        text["enum"] = list(option.choices)
    elif option.pattern:
        text["pattern"] = option.pattern
    elif name != "query":
        text |= {"minLength": 1, "pattern": SOMETHING}
    return {"type": "array", "items": text} if kind is list else text


def _or_null(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    choices = OPTIONS[name].choices
    if KINDS[name] is list:
        one = f"({'|'.join(choices)})"
        text = {"type": "string", "pattern": f"^{one}(,{one})*$" if choices else rf"[^,{_BLANK}]"}
        return {
            "anyOf": [{key: schema[key] for key in ("type", "items")}, text, {"type": "null"}],
            "description": schema["description"],
        }
    return {**schema, "type": [schema["type"], "null"], **({"enum": [*choices, None]} if choices else {})}


# --- parameters of other operations, as JSON Schemas


def _whole(least: int, most: int, default: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most, "default": default}


OFFSET = _schema("offset")
MAX_TOKENS = _schema("max_tokens")
LIST_LIMIT = _whole(1, 1000, 100)
"""How many documents of a list."""
LIBRARY_LIMIT = _whole(1, 100, 10)
"""How many libraries that have a name."""
TOKENS = _whole(1, 10**6, 5000)
"""The budget for one page of a library's documentation."""
PAGE = _whole(1, 10**6, 1)
SNIPPET_KIND = {"type": "string", "enum": list(SNIPPET_KINDS)}


# --- values with a form of their own


def split_library(library: str) -> tuple[str, str | None]:
    """/owner/project and the version behind it, after a slash or an @; the version is verbatim and may contain both."""
    match = _LIBRARY_PLACE.fullmatch(library.lstrip())
    if match is None:
        raise UsageError(f"{library!r} is no library id.", hint="It looks like /owner/project or /owner/project/v1.2.")
    version: str | None = match["version"]
    return match["id"], version if version and not version.isspace() else None


def join_library(library_id: str, version: str | None) -> str:
    """The text that split_library splits into these two, for any version."""
    return library_id if version is None else f"{library_id}/{version}"


def absolute_date(text: str, option: str, now: datetime | None = None) -> str:
    """An ISO date as it is; "1 week", "3 days", "2 months ago" counted back from now."""
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
