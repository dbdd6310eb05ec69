"""Reads golden sets (queries with the documents, chunks and lines that they should find), and writes and reads runs.

People write them as a YAML list or JSON lines. A judged collection is a folder in the layout of BEIR, with
`corpus.jsonl`, `queries.jsonl` and `qrels.tsv` or `qrels/test.tsv`, each of which may be compressed (`.gz`).

The queries search documents that are in the database. A document of a corpus is identified there by its id, its path,
SOURCE:path, or its path without the extension. `write_documents` makes files with such paths.
"""

from __future__ import annotations

import gzip
import json
import re
import types
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints
from urllib.parse import quote

from kebab.core.citations import LineSpan, parse
from kebab.core.errors import GoldenSetError, UsageError, file_errors
from kebab.core.files import make_folder, open_file
from kebab.wire import to_json, view
from kebab.wire.evaluation import EvalGoldenV1, EvalReportV1

_LISTS = ("expected_docs", "expected_chunks", "expected_spans", "must_contain", "forbidden")
_KEYS = ("id", "query", *_LISTS, "group", "unanswerable")
_MOST_NAMED = 50
"""Names that an error lists; the others are counted."""
_LONGEST_NAME = 150
"""Bytes of a file name; file systems allow 255."""
_LAYOUT = "It needs corpus.jsonl, queries.jsonl and qrels.tsv or qrels/test.tsv, each of them plain or .gz."


class GoldenQuery(NamedTuple):
    id: str
    query: str
    expected_docs: Mapping[str, int]
    """Paths, SOURCE:paths or ids of documents, with the grade of each; a judged page is written file.pdf#page=3."""
    expected_chunks: tuple[str, ...] = ()
    expected_spans: tuple[str, ...] = ()
    """path#L3-L9"""
    must_contain: tuple[str, ...] = ()
    """Strings that the passages found must have, verbatim."""
    forbidden: tuple[str, ...] = ()
    """Strings that the passages found must not have."""
    group: str | None = None
    """Queries of one group ask the same in other words."""
    unanswerable: bool = False


class GoldenSet(NamedTuple):
    name: str
    kind: Literal["yaml", "jsonl", "beir"]
    sha256: str
    """The hash of the files that the set was read from."""
    queries: tuple[GoldenQuery, ...]

    def as_wire(self) -> EvalGoldenV1:
        return view(EvalGoldenV1, self, queries=len(self.queries))


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise unsound(
            path, f"cannot be read: {error.strerror}", "Name a YAML or JSONL file, or a folder in BEIR layout."
        ) from error


def unsound(path: Path, what: str, hint: str) -> GoldenSetError:
    return GoldenSetError(f"{path.name} {what}.", hint=hint, path=str(path))


def listed(names: Sequence[str]) -> str:
    others = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {others:,} more" if others > 0 else "")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object as a dict; a repeated key raises ValueError, because one of its values would be lost."""
    entry: dict[str, Any] = {}
    for key, value in pairs:
        if key in entry:
            raise ValueError(f"the key {key} is there twice")
        entry[key] = value
    return entry


def json_lines(text: str, path: Path) -> Iterable[dict[str, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line, object_pairs_hook=_without_repetition)
        except RecursionError as error:
            raise unsound(
                path, f"is nested too deeply in line {number}", "Each line is one JSON object of texts and lists."
            ) from error
        except ValueError as error:
            raise unsound(path, f"has no JSON in line {number}: {error}", "Each line is one JSON object.") from error
        if not isinstance(entry, dict):
            raise unsound(path, f"has no JSON object in line {number}", "Each line is one JSON object.")
        yield entry


# --- files of queries


def load_golden_set(path: Path) -> GoldenSet:
    """A golden set from a file of queries or a folder with a judged collection. Errors name the faulty entry."""
    if path.is_dir():
        return load_collection(path)
    file = _Part(path, read_bytes(path))
    kind: Literal["yaml", "jsonl"] = "yaml" if path.suffix.lower() in (".yaml", ".yml") else "jsonl"
    entries = _yaml_entries(file.text, path) if kind == "yaml" else list(json_lines(file.text, path))
    queries = tuple(_golden_query(entry, f"entry {number}", path) for number, entry in enumerate(entries, start=1))
    if twice := [id for id, count in Counter(query.id for query in queries).items() if count > 1]:
        raise unsound(path, f"has several queries with the id {twice[0]}", "Give each its own id.")
    if not queries:
        raise unsound(path, "has no queries", "Begin one with: kb eval suggest")
    return GoldenSet(path.name, kind, sha256(file.data).hexdigest(), queries)


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
            hint = "Write the lines that hold the answer: notes/a.md#L3-L9"
            raise unsound(path, f"has a span without lines for {id}: {span}", hint)
    expected = any(lists[name] for name in ("expected_docs", "expected_chunks", "expected_spans"))
    if unanswerable and (expected or lists["must_contain"]):
        raise unsound(path, f"calls {id} unanswerable and expects something", "Keep one of them.")
    if not unanswerable and not expected and not lists["must_contain"] and not lists["forbidden"]:
        hint = "Name expected_docs, expected_chunks or expected_spans, or: unanswerable: true"
        raise unsound(path, f"expects nothing of {id}", hint)
    docs = dict.fromkeys(lists.pop("expected_docs"), 1)
    named = None if group is None else str(group)
    return GoldenQuery(str(id), query, docs, **lists, group=named, unanswerable=unanswerable)


def _is_span(written: str) -> bool:
    span = parse(written)[1]
    return span is not None and not (isinstance(span, LineSpan) and span.start > span.end)


def _texts(value: Any, name: str, id: str, path: Path) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise unsound(path, f"has no list of texts as {name} of {id}", f"For example: {name}: ['notes/a.md']")
    return tuple(value)


# --- judged collections


def load_collection(folder: Path) -> GoldenSet:
    """Reads a judged collection: the queries that have judgements, with the documents judged relevant."""
    qrels = _part(folder, "qrels.tsv", "qrels/test.tsv", "qrels/dev.tsv", "qrels/train.tsv")
    asked = _part(folder, "queries.jsonl")
    grades: dict[str, dict[str, int]] = {}
    judged: dict[tuple[str, str], int] = {}
    for query, document, grade in _judgements(qrels):
        if judged.setdefault((query, document), grade) != grade:
            raise unsound(qrels.file, f"judges {document} for {query} in two ways", "Keep one of them.")
        if grade > 0:
            grades.setdefault(query, {})[document] = grade
    texts = {id: _field(entry, "text") for id, entry in _entries(asked)}
    if wordless := [id for id, text in texts.items() if not text.strip() and id in grades]:
        raise unsound(asked.file, f"has no text for {listed(wordless)}", "Write what a user would type.")
    if unknown := [id for id in grades if id not in texts]:
        what = f"judges {len(unknown):,} queries that queries.jsonl has not: {listed(unknown)}"
        raise unsound(folder, what, "Add them, or take them out.")
    queries = tuple(GoldenQuery(id, text, grades[id]) for id, text in texts.items() if id in grades)
    if not queries:
        raise unsound(folder, "has no query with a judgement", _LAYOUT)
    name = folder.resolve().name
    return GoldenSet(name, "beir", sha256(asked.data + b"\0" + qrels.data).hexdigest(), queries)


def write_documents(folder: Path, target: Path) -> Path:
    """Writes the documents of a collection as files. Returns `target`, or the PDFs that come with the collection.

    Unchanged files are not written again, so that a second ingest has nothing to do.
    """
    pdfs = folder / "pdfs"
    if pdfs.is_dir():
        return pdfs
    suffix = _suffix(folder)
    make_folder(target)
    written = set()
    for id, entry in _entries(_part(folder, "corpus.jsonl")):
        title, text = _field(entry, "title"), _field(entry, "text")
        head = f"# {title}\n\n" if title and suffix == ".md" and not text.startswith("---\n") else ""
        file = target / f"{file_stem(id)}{suffix}"
        written.add(file.name)
        data = (head + text).encode("utf-8", "replace")
        if not file.is_file() or file.read_bytes() != data:
            with open_file(file, "wb") as out:
                out.write(data)
    for file in target.iterdir():
        if file.name not in written:
            file.unlink()
    return target


def file_stem(id: str) -> str:
    """A file name without extension for an id; characters that file names cannot have become %2F and the like."""
    stem = quote(id, safe=" ()+,;=@~!$&'").strip(" .") or "%"
    return stem if len(stem) <= _LONGEST_NAME else f"{stem[:_LONGEST_NAME]}-{sha256(id.encode()).hexdigest()[:16]}"


def _suffix(folder: Path) -> str:
    """The extension of the documents: .py if meta.json says that they are code, so that they are cut at functions."""
    meta = folder / "meta.json"
    try:
        language = str(json.loads(meta.read_text(encoding="utf-8")).get("lang", "")) if meta.is_file() else ""
    except (OSError, ValueError, AttributeError):
        language = ""
    return ".py" if "python" in language or "code" in language else ".md"


class _Part(NamedTuple):
    """A file of a golden set."""

    file: Path
    data: bytes

    @property
    def text(self) -> str:
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise unsound(self.file, "is not UTF-8", "Save it as UTF-8.") from error


def _part(folder: Path, *names: str) -> _Part:
    for name in names:
        for file in (folder / name, folder / f"{name}.gz"):
            if file.is_file():
                return _Part(file, _unpacked(file) if file.suffix == ".gz" else read_bytes(file))
    raise unsound(folder, f"has no {names[0]}", _LAYOUT)


def _unpacked(file: Path) -> bytes:
    try:
        return gzip.decompress(read_bytes(file))
    except (OSError, EOFError, ValueError) as error:
        raise unsound(file, f"cannot be unpacked: {error}", "It must be a whole gzip file.") from error


def _entries(part: _Part) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each entry with its id. A repeated id is an error, because one entry would be lost."""
    seen: set[str] = set()
    for entry in json_lines(part.text, part.file):
        id = str(entry.get("_id", entry.get("id", "")))
        if not id:
            raise unsound(part.file, f"has an entry without an _id, after {len(seen):,} others", "Give each its own.")
        if id in seen:
            raise unsound(part.file, f"has several entries with the _id {id}", "Give each its own.")
        seen.add(id)
        yield id, entry


def _judgements(qrels: _Part) -> Iterator[tuple[str, str, int]]:
    """Yields query, document and grade of each line, which has three columns, or four as in TREC. Skips a heading."""
    for number, line in enumerate(qrels.text.splitlines(), start=1):
        cells = [cell.strip() for cell in (line.split("\t") if "\t" in line else line.split())]
        grade = _grade(cells[-1]) if len(cells) in (3, 4) else None
        if grade is not None:
            yield cells[0], cells[-2], grade
        elif line.strip() and (number > 1 or _is_number(cells[-1])):
            raise unsound(
                qrels.file, f"has no judgement in line {number}", "Each has a query, a document and a whole number."
            )


def _grade(text: str) -> int | None:
    """The grade as a whole number, or None. Some collections write 1.0 for 1."""
    return int(float(text)) if _is_number(text) and float(text).is_integer() else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _field(entry: dict[str, Any], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


# --- runs


_BEGINNINGS = {"run": rb'.*"eval_report\.v1"', "HTML page": rb"(?i:(\xef\xbb\xbf)?\s*<(!doctype )?html)"}
_ANOTHER = "Name another file with --out."
_HINT = "Make one with: kb eval run FILE --out RUN.json"


def write_run(report: EvalReportV1, path: Path) -> None:
    write_text(to_json(report) + "\n", path)


def refuse_to_replace(path: Path, what: Literal["run", "HTML page"] = "run") -> None:
    """Raises UsageError if `path` has anything else, so that a run never overwrites a golden set, or a page a run."""
    if not path.exists():
        return
    with file_errors(path, "cannot be read", _ANOTHER), path.open("rb") as file:
        found = file.read(200)
    if found and not re.match(_BEGINNINGS[what], found, re.DOTALL):
        hint = "Name another file with --out, or delete it first."
        raise UsageError(f"{path} exists already, and is no {what}.", hint=hint)


def write_text(text: str, path: Path) -> None:
    with file_errors(path, "cannot be written", _ANOTHER), open_file(path, "w") as file:
        file.write(text)


def read_run(path: Path) -> EvalReportV1:
    """The report in a file that `kb eval run --out` wrote; any other file is an error."""
    try:
        with file_errors(path, "cannot be read", _HINT, GoldenSetError):
            data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise GoldenSetError(f"{path} is no run: it has no JSON.", hint=_HINT, path=str(path)) from error
    if not isinstance(data, dict) or data.get("schema_version") != "eval_report.v1":
        raise GoldenSetError(f"{path} is no run: it is not eval_report.v1.", hint=_HINT, path=str(path))
    try:
        report: EvalReportV1 = _read(EvalReportV1, data)
    except (KeyError, TypeError, ValueError) as error:
        raise GoldenSetError(f"{path} is a damaged run: {error}.", hint=_HINT, path=str(path)) from error
    return report


def _may_be_left_out(item: Field[Any]) -> bool:
    """Whether a field has a default and so may be absent: runs of earlier versions lack newer fields."""
    return item.default is not MISSING or item.default_factory is not MISSING


def _read(hint: Any, value: Any) -> Any:
    """Checks a JSON value and converts it to a type. Unknown keys are ignored, since later versions may add some."""
    origin = get_origin(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint)
        given = [item.name for item in fields(hint) if item.name in value or not _may_be_left_out(item)]
        return hint(**{name: _read(hints[name], value[name]) for name in given})
    if origin is list:
        if not isinstance(value, list):
            raise TypeError(f"{value!r} is no list")
        return [_read(get_args(hint)[0], item) for item in value]
    if origin is dict:
        _, of = get_args(hint)
        return {str(key): _read(of, item) for key, item in dict(value).items()}
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        (some,) = [option for option in get_args(hint) if option is not type(None)]
        return _read(some, value)
    if origin is Literal:
        if value not in get_args(hint):
            raise ValueError(f"{value!r} is not known")
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is not Any and (not isinstance(value, hint) or (hint is not bool and isinstance(value, bool))):
        raise TypeError(f"{value!r} is no {hint.__name__}")
    return value
