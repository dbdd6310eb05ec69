"""How well chunks of various sizes bring back exactly what a question is about.

    python benchmarks/chunking.py [--data FOLDER] [--sweep small|full] [--targets 256 384]

Five long texts and 472 questions, each with the character ranges that answer it (data set chunk-eval). Every setting
ingests the five files anew and asks every question lexically. Two ways of counting: the first 5 chunks, and as many
whole chunks as fit into 1,000 tokens, which is fair to all sizes because every setting returns about as much text. Of
the answering characters, recall is the share that was returned, precision the share of the returned characters that
answer, IoU their intersection over their union; line recall counts lines of the citations instead of characters.
Averages over the questions of one file, then over the files, so that the largest does not decide alone.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from itertools import product
from pathlib import Path
from statistics import mean

import measuring

import kebab
from kebab.core.text import LineTable, estimate_tokens
from kebab.knowledge_base import KnowledgeBase

K = 5
BUDGET = 1000
DEPTH = 30
TARGETS = (128, 192, 256, 320, 384, 440)
OVERLAPS = (0, 32, 64)
MINIMUMS = (32, 64, 128)
LONGEST = 480

Range = tuple[int, int]


@dataclass(frozen=True)
class Question:
    file: str
    text: str
    answers: tuple[Range, ...]


@dataclass(frozen=True)
class Passage:
    file: str
    start: int
    end: int
    first_line: int
    last_line: int
    tokens: int


@dataclass(frozen=True)
class Scores:
    recall: float
    precision: float
    iou: float
    line_recall: float


@dataclass(frozen=True)
class Setting:
    target: int
    overlap: int
    least: int

    def __str__(self) -> str:
        return f"target {self.target}, overlap {self.overlap}, min {self.least}"


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument(
        "--sweep",
        choices=("small", "full"),
        default="full",
        help="small: every target, but only the default of the rest",
    )
    options.add_argument("--targets", type=int, nargs="+", default=TARGETS, help="only these sizes")
    chosen = options.parse_args()
    texts, questions = read(chosen.data / "chunk-eval" / "raw")
    settings = [Setting(*values) for values in product(chosen.targets, OVERLAPS, MINIMUMS)]
    if chosen.sweep == "small":
        settings = [setting for setting in settings if (setting.overlap, setting.least) == (0, 64)]
    rows = []
    for setting in settings:
        with measuring.work_folder() as work:
            rows.append(measured(setting, texts, questions, work))
    headers = ["setting", "chunks", "tokens"]
    for way in (f"{K} chunks", f"{BUDGET} tokens"):
        headers += [f"recall, {way}", "precision", "IoU", "line recall"]
    measuring.table(headers, rows)


def read(raw: Path) -> tuple[dict[str, str], list[Question]]:
    texts = {}
    for file in sorted(raw.glob("*.md.gz")):
        with gzip.open(file, "rt", encoding="utf-8", newline="") as stream:
            texts[file.name.removesuffix(".md.gz")] = stream.read()
    with gzip.open(raw / "questions_df.csv.gz", "rt", encoding="utf-8", newline="") as stream:
        return texts, [
            Question(
                row["corpus_id"],
                row["question"],
                tuple(
                    (reference["start_index"], reference["end_index"]) for reference in json.loads(row["references"])
                ),
            )
            for row in csv.DictReader(stream)
        ]


def measured(setting: Setting, texts: dict[str, str], questions: list[Question], work: Path) -> list[str]:
    files = work / "files"
    files.mkdir()
    for name, text in texts.items():
        (files / f"{name}.md").write_text(text, encoding="utf-8", newline="")
    with kebab.open(
        work / "kb.sqlite",
        chunking_target_tokens=setting.target,
        chunking_max_tokens=LONGEST,
        chunking_overlap_tokens=setting.overlap,
        chunking_min_tokens=setting.least,
    ) as kb:
        kb.ingest(files)
        passages = all_passages(kb)
        tables = {name: LineTable(text) for name, text in texts.items()}
        by_count: dict[str, list[Scores]] = {name: [] for name in texts}
        by_budget: dict[str, list[Scores]] = {name: [] for name in texts}
        for question in questions:
            hits = kb.search(question.text, k=DEPTH, mode="lexical").hits
            found = [passages[hit.chunk_id] for hit in hits]
            by_count[question.file].append(scored(question, found[:K], tables[question.file]))
            by_budget[question.file].append(scored(question, within_budget(found), tables[question.file]))
    sizes = [passage.tokens for passage in passages.values()]
    return [str(setting), str(len(sizes)), f"{mean(sizes):.0f}", *averages(by_count), *averages(by_budget)]


def all_passages(kb: KnowledgeBase) -> dict[str, Passage]:
    found = {}
    for document in kb.documents():
        for chunk in kb.document(document.doc_id)[1]:
            citation = chunk.citation.span
            first, last = getattr(citation, "start", 0), getattr(citation, "end", 0)
            name = document.path.removesuffix(".md")
            found[chunk.chunk_id] = Passage(
                name, chunk.start_offset, chunk.end_offset, first, last, estimate_tokens(chunk.text)
            )
    return found


def within_budget(passages: Sequence[Passage]) -> list[Passage]:
    """Whole chunks, best first, the last one being the one that reaches the budget."""
    used, kept = 0, []
    for passage in passages:
        kept.append(passage)
        used += passage.tokens
        if used >= BUDGET:
            break
    return kept


def scored(question: Question, found: Sequence[Passage], lines: LineTable) -> Scores:
    """Text of another file is returned in vain, as is text returned twice."""
    wanted = characters(question.answers)
    ours = [passage for passage in found if passage.file == question.file]
    returned = characters((passage.start, passage.end) for passage in ours)
    length = sum(passage.end - passage.start for passage in found)
    common = len(wanted & returned)
    wanted_lines = {
        line for start, end in question.answers for line in range(lines.line_of(start), lines.line_of(end - 1) + 1)
    }
    cited_lines = {line for passage in ours for line in range(passage.first_line, passage.last_line + 1)}
    return Scores(
        recall=common / len(wanted),
        precision=common / length if length else 0.0,
        iou=common / (len(wanted) + length - common),
        line_recall=len(wanted_lines & cited_lines) / len(wanted_lines),
    )


def characters(ranges: Iterable[Range]) -> set[int]:
    return {place for start, end in ranges for place in range(start, end)}


def averages(by_file: dict[str, list[Scores]]) -> list[str]:
    of_files = [[mean(values) for values in zip(*map(astuple, scores), strict=True)] for scores in by_file.values()]
    return [f"{mean(values):.3f}" for values in zip(*of_files, strict=True)]


if __name__ == "__main__":
    main()
