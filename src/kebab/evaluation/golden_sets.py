"""Golden sets: queries that people have written, as a YAML list or JSON lines, or a judged collection in a folder."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from kebab.core.citations import parse
from kebab.core.spans import LineSpan
from kebab.evaluation.golden_queries import GoldenQuery, GoldenSet, json_lines, read_bytes, refuse_repeated_ids, unsound
from kebab.evaluation.judged_collections import load_collection

_LISTS = ("expected_docs", "expected_chunks", "expected_spans", "must_contain", "forbidden")
_KEYS = ("id", "query", *_LISTS, "group", "unanswerable")


def load_golden_set(path: Path) -> GoldenSet:
    """A file of queries, or a folder with a judged collection. Anything that is not sound is an error that names the
    entry.
    """
    if path.is_dir():
        return load_collection(path)
    data = read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise unsound(path, "is not UTF-8", "Save it as UTF-8.") from error
    kind: Literal["yaml", "jsonl"] = "yaml" if path.suffix.lower() in (".yaml", ".yml") else "jsonl"
    entries = _yaml_entries(text, path) if kind == "yaml" else list(json_lines(text, path))
    queries = tuple(_golden_query(entry, f"entry {number}", path) for number, entry in enumerate(entries, start=1))
    refuse_repeated_ids(queries, path)
    if not queries:
        raise unsound(path, "has no queries", "Begin one with: kb eval suggest")
    return GoldenSet(path.name, kind, sha256(data).hexdigest(), queries)


def _yaml_entries(text: str, path: Path) -> list[Any]:
    import yaml

    from kebab.parsing.safe_yaml import StrictLoader, refuse_excess

    try:
        refuse_excess(text)
        entries = yaml.load(text, StrictLoader)
    except (yaml.YAMLError, ValueError) as error:
        raise unsound(path, f"is no YAML: {' '.join(str(error).split())}", "Correct it there.") from error
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise unsound(path, "is no list", "Each entry begins with: - id: …")
    return entries


def _golden_query(entry: Any, where: str, path: Path) -> GoldenQuery:
    if not isinstance(entry, dict):
        raise unsound(path, f"has no keys in {where}", "Each entry has an id, a query and what is expected.")
    unknown = [str(key) for key in entry if key not in _KEYS]
    if unknown:
        raise unsound(path, f"has an unknown key {unknown[0]} in {where}", f"Keys: {', '.join(_KEYS)}.")
    id, query = entry.get("id"), entry.get("query")
    if isinstance(id, bool) or not isinstance(id, str | int) or not str(id).strip():
        raise unsound(path, f"has no id in {where}", "Give each query its own id.")
    if not isinstance(query, str) or not query.strip():
        raise unsound(path, f"has no query for {id}", "Write what a user would type.")
    lists = {name: _texts(entry.get(name), name, str(id), path) for name in _LISTS}
    group, unanswerable = entry.get("group"), entry.get("unanswerable", False)
    if not isinstance(unanswerable, bool):
        raise unsound(path, f"says neither true nor false for unanswerable of {id}", "Write true or false.")
    for span in lists["expected_spans"]:
        if not _is_span(span):
            raise unsound(
                path,
                f"has a span without lines for {id}: {span}",
                "Write the lines that hold the answer: notes/a.md#L3-L9",
            )
    expected = any(lists[name] for name in ("expected_docs", "expected_chunks", "expected_spans"))
    if unanswerable and (expected or lists["must_contain"]):
        raise unsound(path, f"calls {id} unanswerable and expects something", "Keep one of them.")
    if not unanswerable and not expected and not lists["must_contain"] and not lists["forbidden"]:
        raise unsound(
            path,
            f"expects nothing of {id}",
            "Name expected_docs, expected_chunks or expected_spans, or: unanswerable: true",
        )
    docs = dict.fromkeys(lists.pop("expected_docs"), 1)
    return GoldenQuery(
        str(id), query, docs, **lists, group=None if group is None else str(group), unanswerable=unanswerable
    )


def _is_span(written: str) -> bool:
    span = parse(written)[1]
    return span is not None and not (isinstance(span, LineSpan) and span.start > span.end)


def _texts(value: Any, name: str, id: str, path: Path) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise unsound(path, f"has no list of texts as {name} of {id}", f"For example: {name}: ['notes/a.md']")
    return tuple(value)
