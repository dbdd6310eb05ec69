"""How fast an ingest makes vectors, against onnxruntime alone on the same passages.

    python benchmarks/embedding_rate.py [--data FOLDER] [--files 60] [--rounds 3]

The opponent has everything prepared: token ids in batches of one length each, the same graph, the same threads; it does
nothing but run them. Kebab reads the chunks, looks each one up in its cache, cuts it into tokens, runs the model, and
commits. In turns, CPU times.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import measuring
import numpy as np

import kebab
from kebab.core.documents import embedded_text
from kebab.embedding.models import OnnxEmbedder

BAR = 0.9


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--files", type=int, default=60)
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args()
    os.environ["KEBAB_EMBEDDING_CROSS_LANGUAGE"] = "off"
    with measuring.work_folder() as work:
        corpus = measuring.unpack(chosen.data, "k8s-en", work)
        part = work / "part"
        part.mkdir()
        files = sorted(corpus.rglob("*.md"))
        for number, file in enumerate(files[:: len(files) // chosen.files]):
            shutil.copy(file, part / f"{number}-{file.name}")
        report(part, work, chosen.rounds)


def report(part: Path, work: Path, rounds: int) -> None:
    with kebab.open(work / "kb.sqlite") as kb:
        kb.ingest(part, embed=False)
        models = kb.session.models
        assert models is not None
        granite = models.embedders[0]
        assert isinstance(granite, OnnxEmbedder)
        texts = []
        for document in kb.documents():
            _, chunks = kb.document(document.doc_id)
            texts += [embedded_text(chunk.doc_path, chunk.title, chunk.heading_path, chunk.text) for chunk in chunks]
        texts = [text for text in dict.fromkeys(texts) if models.primary_of(text) is granite]
        granite.embed(texts[:1], "passage")
        session, batches = prepared(granite, texts)
        ours, bare = [], []
        for _ in range(rounds):
            bare.append(cpu(lambda: [session.run(None, batch) for batch in batches]))
            ours.append(cpu(kb.rebuild_vectors))
    rate = measuring.ratio(bare, ours)
    print(f"{len(texts)} passages, {rounds} rounds")
    measuring.table(
        ["", "passages per CPU second", "of onnxruntime alone", f"bar {BAR:.0%}"],
        [
            ["onnxruntime alone", f"{len(texts) / measuring.percentile(bare, 0.5):.1f}", "", ""],
            [
                "kb ingest, embedding",
                f"{len(texts) / measuring.percentile(ours, 0.5):.1f}",
                f"{rate:.0%}",
                "ok" if rate >= BAR else "MISSED",
            ],
        ],
    )


def prepared(embedder: OnnxEmbedder, texts: list[str]) -> tuple[Any, list[dict[str, Any]]]:
    """The session and its inputs, as good as they can be: sorted by length, no more padding than Kebab has."""
    encoder = embedder._load()
    ids = sorted((part for one in encoder._tokenizer.ids(texts) for part in encoder._parts(one)), key=len)
    batches = []
    start = 0
    while start < len(ids):
        end = start + 1
        while end < len(ids) and (end + 1 - start) * len(ids[end]) <= 1024:
            end += 1
        rows = ids[start:end]
        matrix, mask = np.ones((len(rows), len(rows[-1])), np.int64), np.zeros((len(rows), len(rows[-1])), np.int64)
        for row, part in enumerate(rows):
            matrix[row, : len(part)] = part
            mask[row, : len(part)] = 1
        batches.append({"input_ids": matrix, "attention_mask": mask})
        start = end
    return encoder._model._session, batches


def cpu(work: Any) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()
