"""Answers without a model: are unanswerable questions refused, answerable ones answered with the right lines, and what
does it cost?

    python benchmarks/answers.py [--data FOLDER] [--keep FOLDER] [--rounds 5] [--misses]
    python benchmarks/answers.py --gate [--keep FOLDER] [--questions 100] [SET …]

The first asks the 60 questions of answer_questions.yaml of the Kubernetes documentation (embedding it takes half an
hour; --keep saves that the next time). The second is what the gate was chosen by: questions of judged sets, each asked
three times: as it is, with the pages that answer it left out, and of another set's pages.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import measuring
import yaml

import kebab
from kebab.core.answers import Answer
from kebab.core.citations import Citation, LineSpan, parse

QUESTIONS = Path(__file__).with_name("answer_questions.yaml")
MOST_REFUSED, MOST_COVERED, SLOWEST = 0.80, 0.85, 2.0
SETS = ("xquad-en", "anthropic-docs", "azure-demo-pdf")


class Question(NamedTuple):
    id: str
    text: str
    places: tuple[tuple[str, LineSpan], ...]
    """Each says it; none for a question that the corpus does not answer."""


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--keep", type=Path, help="keep databases here and use them again")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--misses", action="store_true", help="show what went wrong")
    options.add_argument("--gate", action="store_true", help="the judged sets that the gate was chosen by")
    options.add_argument("--questions", type=int, default=100)
    options.add_argument("sets", nargs="*", default=SETS, metavar="SET")
    chosen = options.parse_args()
    with measuring.work_folder() as work:
        folder = chosen.keep or work
        folder.mkdir(parents=True, exist_ok=True)
        if chosen.gate:
            gate(chosen, folder)
        else:
            documentation(chosen, folder, work)


# --- the Kubernetes documentation


def documentation(chosen: argparse.Namespace, folder: Path, work: Path) -> None:
    questions = [_question(entry) for entry in yaml.safe_load(QUESTIONS.read_text("utf-8"))]
    with _opened(folder / "k8s-en.sqlite", lambda: measuring.unpack(chosen.data, "k8s-en", work)) as knowledge_base:
        answers = {question: knowledge_base.ask(question.text) for question in questions}
        _report(answers, show=chosen.misses)
        _latency(knowledge_base, questions, chosen.rounds)


def _question(entry: Mapping[str, Any]) -> Question:
    places = tuple(parse(span) for span in entry.get("expected_spans", ()))
    return Question(
        entry["id"], entry["query"], tuple((path, span) for path, span in places if isinstance(span, LineSpan))
    )


@contextmanager
def _opened(database: Path, corpus: Callable[[], Path]) -> Iterator[kebab.KnowledgeBase]:
    fresh = not database.exists()
    with kebab.open(database) as knowledge_base:
        if fresh:
            knowledge_base.ingest(corpus())
        yield knowledge_base


def _report(answers: Mapping[Question, Answer], *, show: bool) -> None:
    unanswerable = {question: answer for question, answer in answers.items() if not question.places}
    answerable = {question: answer for question, answer in answers.items() if question.places}
    refused = [question for question, answer in unanswerable.items() if answer.text is None]
    answered = [question for question, answer in answerable.items() if answer.text is not None]
    passages = [citation.citation for answer in answerable.values() for citation in answer.citations]
    covered = [
        question for question in answered if _covers([one.citation for one in answers[question].citations], question)
    ]
    quoted = [
        question for question in answered if _covers([one.quoted_at for one in answers[question].citations], question)
    ]
    rows: list[tuple[object, ...]] = []
    for name, part, whole, bar in (
        ("unanswerable questions refused", refused, unanswerable, MOST_REFUSED),
        ("answerable questions answered", answered, answerable, None),
        ("… with a citation that covers the expected lines", covered, answerable, MOST_COVERED),
        ("… quoting the expected lines themselves", quoted, answerable, None),
    ):
        share = len(part) / len(whole)
        met = "" if bar is None else "ok" if share >= bar else "MISSED"
        rows.append((name, f"{len(part)} of {len(whole)}", f"{share:.0%}", "" if bar is None else f"{bar:.0%}", met))
    measuring.table(("", "measured", "", "bar", ""), rows)
    print(f"\n{len(passages) / max(1, len(answered)):.1f} quotations in an answer")
    if show:
        for question, answer in answers.items():
            if (question in unanswerable and question not in refused) or (
                question in answerable and question not in covered
            ):
                places = ", ".join(dict.fromkeys(one.citation.text for one in answer.citations))
                print(f"{question.id} {question.text}\n    {answer.refusal_message or places}")


def _covers(citations: Sequence[Citation | None], question: Question) -> bool:
    for citation in citations:
        if citation is None or citation.lines is None:
            continue
        first, last = citation.lines
        if any(citation.path == path and first <= span.start and span.end <= last for path, span in question.places):
            return True
    return False


def _latency(knowledge_base: kebab.KnowledgeBase, questions: Sequence[Question], rounds: int) -> None:
    """Of the same process, warm: the search that an answer is built on, a plain search, and the answer."""
    texts = [question.text for question in questions]
    tasks: dict[str, Callable[[], float]] = {
        "hybrid search, ten hits": lambda: _cpu(lambda: [knowledge_base.search(text) for text in texts]),
        "ask": lambda: _cpu(lambda: [knowledge_base.ask(text) for text in texts]),
    }
    for task in tasks.values():
        task()
    taken = measuring.interleaved(rounds, tasks)
    ratio = measuring.ratio(taken["ask"], taken["hybrid search, ten hits"])
    rows = [(name, f"{1000 * measuring.percentile(times, 0.5) / len(texts):.1f}") for name, times in taken.items()]
    print()
    measuring.table(("CPU, warm", "ms per question"), rows)
    print(f"\nask against the search: {ratio:.2f}× (bar {SLOWEST:.0f}×): {measuring.verdict(ratio, SLOWEST)}")


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


# --- what the gate was chosen by


def gate(chosen: argparse.Namespace, folder: Path) -> None:
    asked = {name: _judged(chosen.data / name, chosen.questions) for name in chosen.sets}
    rows = []
    for name, questions in asked.items():
        foreign = [text for other, others in asked.items() if other != name for text, _ in others][: chosen.questions]
        with _opened(folder / f"{name}.sqlite", partial(_pages, chosen.data / name, folder / name)) as knowledge_base:
            own = [knowledge_base.ask(text) for text, _ in questions]
            left_out = [knowledge_base.ask(text, exclude_path=list(pages)) for text, pages in questions]
            elsewhere = [knowledge_base.ask(text) for text in foreign]
        rows.append((name, _share(own, refused=False), _share(left_out, refused=True), _share(elsewhere, refused=True)))
    measuring.table(("set", "answered", "refused without the pages", "refused of another set"), rows)


def _share(answers: Sequence[Answer], *, refused: bool) -> str:
    return f"{sum((answer.text is None) is refused for answer in answers) / len(answers):.0%}" if answers else "–"


def _lines(file: Path) -> list[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _pages(judged: Path, into: Path) -> Path:
    into.mkdir(parents=True, exist_ok=True)
    for number, page in enumerate(_lines(judged / "corpus.jsonl.gz")):
        title = f"# {page['title']}\n\n" if page.get("title") else ""
        (into / f"{number:05}.md").write_text(title + page["text"], "utf-8")
    return into


def _judged(folder: Path, most: int) -> list[tuple[str, tuple[str, ...]]]:
    """Questions, and the pages that answer them; always the same ones."""
    files = {page["_id"]: f"{number:05}.md" for number, page in enumerate(_lines(folder / "corpus.jsonl.gz"))}
    pages: dict[str, list[str]] = {}
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines():
        question, page, grade = line.split("\t")[:3]
        if page in files and float(grade) > 0:
            pages.setdefault(question, []).append(files[page])
    questions = [
        (one["text"], tuple(pages[one["_id"]])) for one in _lines(folder / "queries.jsonl.gz") if one["_id"] in pages
    ]
    random.Random(7).shuffle(questions)
    return questions[:most]


if __name__ == "__main__":
    main()
