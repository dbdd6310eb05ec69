"""Ranking quality in repositories: judged questions to the source of six packages from PyPI.

    python benchmarks/repository_search.py [--keep FOLDER] [--kb COMMAND] [--lexical] [PACKAGE …]

The questions and the places that answer them stand in `repository_questions.yaml`. Downloads the packages, checks their
digests and that each place still says what the questions expect. A hit counts if its lines and an expected place
overlap; each place counts once. `choose` and `held out` are the two halves of the packages.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import measuring
import yaml

QUESTIONS = measuring.BENCHMARKS / "repository_questions.yaml"
KINDS = ("symbol", "behaviour", "architecture")
_SPAN = re.compile(r"(?P<path>.+)#L(?P<first>\d+)-L(?P<last>\d+)")


class Place(NamedTuple):
    path: str
    first: int
    last: int


class Question(NamedTuple):
    id: str
    kind: str
    text: str
    places: list[Place]


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--keep", type=Path, help="keep packages and databases here and use them again")
    options.add_argument("--kb", default="", help="the command to measure; the installed one by default")
    options.add_argument("--mode", default="hybrid", help="lexical, vector or hybrid")
    options.add_argument("packages", nargs="*", metavar="PACKAGE", help="all of them by default")
    chosen = options.parse_args()
    command = shlex.split(chosen.kb) or [measuring.kb()]
    judged = yaml.safe_load(QUESTIONS.read_text(encoding="utf-8"))
    rows: list[list[object]] = []
    halves: dict[str, list[tuple[Question, float]]] = defaultdict(list)
    with measuring.work_folder() as work:
        for name, package in judged["packages"].items():
            if chosen.packages and name not in chosen.packages:
                continue
            folder = unpacked(name, package, chosen.keep or work)
            db = (chosen.keep or work) / f"{name}.sqlite"
            if not db.exists():
                measuring.run([*command, "--db", str(db), "ingest", str(folder), "--quiet"])
            questions = [
                question(folder, number, entry)
                for number, entry in judged["questions"].items()
                if number.rpartition("-")[0] == name
            ]
            scores = measured(command, db, chosen.mode, questions)
            halves[package["half"]] += list(zip(questions, scores, strict=True))
            rows.append([name, package["half"], len(questions), *by_kind(questions, scores)])
    for half, judgements in halves.items():
        questions, scores = map(list, zip(*judgements, strict=True))
        rows.append([f"all of {half}", half, len(questions), *by_kind(questions, scores)])
    measuring.table(["package", "half", "questions", *KINDS, "Korean", "nDCG@10"], rows)


def unpacked(name: str, package: dict[str, Any], folder: Path) -> Path:
    target = folder / name
    if target.exists():
        return target
    wanted = f"{name}=={package['version']}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", wanted]
    subprocess.run([*pip, "--dest", str(folder / "sdists")], check=True, capture_output=True)
    for sdist in (folder / "sdists").glob("*.tar.gz"):
        if hashlib.sha256(sdist.read_bytes()).hexdigest() == package["sha256"]:
            with tarfile.open(sdist) as archive:
                archive.extractall(folder / "unpacking", filter="data")
            (folder / "unpacking" / sdist.name.removesuffix(".tar.gz")).rename(target)
            if "without" in package:
                shutil.rmtree(target / package["without"])
            return target
    raise SystemExit(f"pip did not bring {wanted} with the expected sha256")


def question(folder: Path, number: str, entry: dict[str, Any]) -> Question:
    kind = next(kind for kind in KINDS if kind in entry)
    places = []
    for span, text in entry["expected_spans"].items():
        match = _SPAN.fullmatch(span)
        assert match is not None, span
        place = Place(match["path"], int(match["first"]), int(match["last"]))
        lines = (folder / place.path).read_text(encoding="utf-8").split("\n")[place.first - 1 : place.last]
        if text not in "\n".join(lines):
            raise SystemExit(f"{number}: {span} does not contain {text!r}")
        places.append(place)
    return Question(number, kind, entry[kind], places)


def measured(command: list[str], db: Path, mode: str, questions: list[Question]) -> list[float]:
    lines = "".join(json.dumps({"id": one.id, "query": one.text}) + "\n" for one in questions)
    arguments = [*command, "--db", str(db), "search", "--bulk", "--json", "-k", "10", "--mode", mode]
    process = subprocess.run(arguments, input=lines, capture_output=True, text=True, env=measuring.environment())
    if process.returncode:
        raise SystemExit(process.stderr[-2000:])
    answers = {answer["id"]: answer["hits"] for answer in map(json.loads, process.stdout.splitlines())}
    return [ndcg(one, answers[one.id]) for one in questions]


def ndcg(one: Question, hits: list[dict[str, Any]]) -> float:
    missing, gain = list(one.places), 0.0
    for rank, hit in enumerate(hits, start=1):
        citation = hit["citation"]
        first = citation.get("start") or citation.get("line_start") or 0
        last = citation.get("end") or citation.get("line_end") or 0
        found = [
            place
            for place in missing
            if hit["doc_path"].endswith(place.path) and first <= place.last and last >= place.first
        ]
        if found:
            missing = [place for place in missing if place not in found]
            gain += 1 / math.log2(rank + 1)
    return gain / sum(1 / math.log2(rank + 1) for rank in range(1, min(10, len(one.places)) + 1))


def by_kind(questions: list[Question], scores: list[float]) -> list[str]:
    groups = [[score for one, score in zip(questions, scores, strict=True) if one.kind == kind] for kind in KINDS]
    groups.append([score for one, score in zip(questions, scores, strict=True) if not one.text.isascii()])
    return [f"{mean(group):.3f}" if group else "" for group in (*groups, scores)]


if __name__ == "__main__":
    main()
