"""Judged collections in the layout of BEIR: a folder with `corpus.jsonl`, `queries.jsonl` and `qrels.tsv` or
`qrels/test.tsv`, each of which may be compressed (`.gz`).

The queries are put to documents that are in the database. A document of the corpus is known there by its id, its path,
SOURCE:path, or its path without the extension. `write_documents` makes files that are known so.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from kebab.core.private_files import make_folder, open_file
from kebab.evaluation.golden_queries import GoldenQuery, GoldenSet, json_lines, listed, read_bytes, unsound

_LONGEST_NAME = 150
"""Bytes; file systems take 255."""
_LAYOUT = "It needs corpus.jsonl, queries.jsonl and qrels.tsv or qrels/test.tsv, each of them plain or .gz."


def load_collection(folder: Path) -> GoldenSet:
    """The queries that have judgements, with what was judged relevant."""
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
        raise unsound(
            folder,
            f"judges {len(unknown):,} queries that queries.jsonl has not: {listed(unknown)}",
            "Add them, or take them out.",
        )
    queries = tuple(GoldenQuery(id, text, grades[id]) for id, text in texts.items() if id in grades)
    if not queries:
        raise unsound(folder, "has no query with a judgement", _LAYOUT)
    name = folder.resolve().name
    return GoldenSet(name, "beir", sha256(asked.data + b"\0" + qrels.data).hexdigest(), queries)


def write_documents(folder: Path, target: Path) -> Path:
    """The documents of a collection as files that can be ingested: below `target`, or the PDFs that come with it. What
    is there already as it should be is left alone, so that a second ingest has nothing to do.
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
    """The name of a document's file, without extension: its id, with what a file name cannot have written as %2F."""
    stem = quote(id, safe=" ()+,;=@~!$&'").strip(" .") or "%"
    return stem if len(stem) <= _LONGEST_NAME else f"{stem[:_LONGEST_NAME]}-{sha256(id.encode()).hexdigest()[:16]}"


def _suffix(folder: Path) -> str:
    """Code is cut at its functions; what a collection holds it says in meta.json, if it has one."""
    meta = folder / "meta.json"
    try:
        language = str(json.loads(meta.read_text(encoding="utf-8")).get("lang", "")) if meta.is_file() else ""
    except (OSError, ValueError, AttributeError):
        language = ""
    return ".py" if "python" in language or "code" in language else ".md"


class _Part(NamedTuple):
    """A file of the collection."""

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
    """By their ids, each of which is there once: of two, one would be lost."""
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
    """Query, document and grade, in three columns or, as TREC has it, in four; a heading has no number at its end."""
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
    """Some write 1.0."""
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
