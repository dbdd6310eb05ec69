"""Whether a phrase that stands word for word in few passages, or a title, is found first, typed without quotes.

    python benchmarks/exact_match.py [--data FOLDER] [--keep FOLDER] [--db FILE] [--phrases N] [--kb COMMAND]

Draws phrases of 2 to 4 words from the passages of a database: 300 of the English and 150 of the Korean Kubernetes
pages, each phrase in 1 to 8 passages and each of its words in at least 15. `first`: how often the first hit contains
the phrase. `share`: of the first min(5, n) hits, where n is the number of passages with the phrase. `title`: how often
the first hit is of the document whose title was typed; as many titles of 2 to 6 words, if there are so many.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import sqlite3
import subprocess
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import measuring

CORPORA = {"k8s-en": 300, "k8s-ko": 150}
MODES = {
    "lexical": ["--mode", "lexical"],
    "hybrid": ["--mode", "hybrid", "--fusion", "rrf"],
    "convex": ["--mode", "hybrid", "--fusion", "convex"],
}
BARS = {"lexical": (0.95, 0.90), "hybrid": (0.90, 0.85), "convex": (0.90, 0.85)}
MOST_PASSAGES = 8
LEAST_PASSAGES_OF_A_WORD = 15
_ROW = re.compile(r"\w+(?: \w+)*")


class Phrase(NamedTuple):
    text: str
    passages: int


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--keep", type=Path, help="keep the databases here and use them again")
    options.add_argument("--db", type=Path, help="draw the phrases from this database instead")
    options.add_argument("--phrases", type=int, default=0, help="how many phrases")
    options.add_argument("--kb", default="", help="the command to measure; the installed one by default")
    chosen = options.parse_args()
    command = shlex.split(chosen.kb) or [measuring.kb()]
    rows = []
    with measuring.work_folder() as work:
        for corpus, number in CORPORA.items() if chosen.db is None else {chosen.db.stem: 300}.items():
            db = chosen.db or made(command, chosen.data, corpus, chosen.keep or work)
            phrases = drawn(db, chosen.phrases or number)
            titles = drawn_titles(db, chosen.phrases or number)
            rows += [
                [corpus, len(phrases), mode, *measured(command, db, mode, phrases), named(command, db, mode, titles)]
                for mode in MODES
            ]
    measuring.table(["corpus", "phrases", "mode", "first", "bar", "", "share", "bar", "", "title"], rows)


def made(command: list[str], data: Path, corpus: str, folder: Path) -> Path:
    db = folder / f"{corpus}.sqlite"
    if not db.exists():
        folder.mkdir(parents=True, exist_ok=True)
        measuring.run([*command, "--db", str(db), "ingest", str(measuring.unpack(data, corpus, folder)), "--quiet"])
    return db


def drawn(db: Path, number: int) -> list[Phrase]:
    with sqlite3.connect(f"{db.as_uri()}?mode=ro", uri=True) as connection:
        passages = [text.casefold() for (text,) in connection.execute("SELECT text FROM chunks ORDER BY chunk_id")]
    words = Counter(word for text in passages for word in set(re.findall(r"\w+", text)))
    places: dict[str, set[int]] = defaultdict(set)
    for place, text in enumerate(passages):
        for row in _ROW.findall(text):
            in_row = row.split(" ")
            for length in (2, 3, 4):
                for start in range(len(in_row) - length + 1):
                    phrase = in_row[start : start + length]
                    if all(words[word] >= LEAST_PASSAGES_OF_A_WORD for word in phrase):
                        places[" ".join(phrase)].add(place)
    few = sorted(phrase for phrase, found in places.items() if len(found) <= MOST_PASSAGES)
    candidates = random.Random(7).sample(few, min(len(few), 4 * number))
    # The passages are counted again in whole, because a phrase may also stand across a line break.
    flat = [" ".join(text.split()) for text in passages]
    phrases: list[Phrase] = []
    for text in candidates:
        count = sum(1 for passage in flat if pattern(text).search(passage))
        if count <= MOST_PASSAGES:
            phrases.append(Phrase(text, count))
        if len(phrases) == number:
            break
    return phrases


def pattern(phrase: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(phrase)}(?!\w)")


def drawn_titles(db: Path, number: int) -> list[str]:
    with sqlite3.connect(f"{db.as_uri()}?mode=ro", uri=True) as connection:
        titles = [title.casefold() for (title,) in connection.execute("SELECT title FROM documents")]
    once = sorted(title for title, count in Counter(titles).items() if count == 1 and 2 <= len(title.split()) <= 6)
    return random.Random(7).sample(once, min(len(once), number))


def hits_of(command: list[str], db: Path, mode: str, queries: list[str]) -> dict[str, list[dict[str, str]]]:
    lines = "".join(json.dumps({"id": query, "query": query}) + "\n" for query in queries)
    arguments = [*command, "--db", str(db), "search", "--bulk", "--json", "-k", "5", "--full-text", *MODES[mode]]
    process = subprocess.run(
        [*arguments, "--duplicates", "show"], input=lines, capture_output=True, text=True, env={**os.environ}
    )
    if process.returncode:
        raise SystemExit(process.stderr[-2000:])
    return {answer["id"]: answer["hits"] for answer in map(json.loads, process.stdout.splitlines())}


def named(command: list[str], db: Path, mode: str, titles: list[str]) -> str:
    answers = hits_of(command, db, mode, titles)
    first = sum(hits[0]["title"].casefold() == title for title, hits in answers.items() if hits)
    return f"{first} of {len(titles)}"


def measured(command: list[str], db: Path, mode: str, phrases: list[Phrase]) -> list[object]:
    answers = hits_of(command, db, mode, [phrase.text for phrase in phrases])
    first, share = 0, 0.0
    for phrase in phrases:
        contains = [
            bool(pattern(phrase.text).search(" ".join(hit["text"].casefold().split()))) for hit in answers[phrase.text]
        ]
        wanted = min(5, phrase.passages)
        first += contains[:1] == [True]
        share += sum(contains[:wanted]) / wanted
    figures = first / len(phrases), share / len(phrases)
    return [
        cell
        for figure, bar in zip(figures, BARS[mode], strict=True)
        for cell in (f"{figure:.3f}", f"{bar:.2f}", "ok" if figure >= bar else "MISSED")
    ]


if __name__ == "__main__":
    main()
