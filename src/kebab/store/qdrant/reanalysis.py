"""Chunks that stay as they are and get other terms: because of a note above them, or because the analysis has changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kebab.core.ports import ColumnWeights
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.qdrant.documents import hash_of
from kebab.store.qdrant.index_writer import ChunkWords, IndexWriter, of_documents, words_of
from kebab.store.qdrant.payloads import EVERYWHERE, columns, common_homes
from kebab.store.qdrant.schema import WORDS
from kebab.store.qdrant.terms import counted
from kebab.store.qdrant.vocabulary import Vocabulary


def analyse_again(
    writer: IndexWriter,
    doc_ids: Sequence[str],
    korean_analysis: str,
    weights: ColumnWeights,
    *,
    vocabulary: Vocabulary | None = None,
) -> int:
    """Of these documents: how many chunks have other terms now. With a vocabulary, which gets their words, all are
    analysed, whether they seem to have the right terms or not.
    """
    schema, tokenizer = writer.schema, SqliteTokenizer()
    changed = []
    texts: list[str] = []
    for point in schema.chunks.scroll(of_documents(doc_ids)):
        payload = point["payload"]
        found = columns(
            payload, korean_analysis, writer.state.note_terms(payload["source"], payload["path"], korean_analysis)
        )
        if vocabulary is not None:
            texts.append(payload["text"])
            texts.append(found.title)
        elif hash_of(*found) == payload["columns_hash"]:
            continue
        words = counted(found, payload["corpus"], tokenizer, weights)
        changed.append((point, found, words))
    if vocabulary is not None:
        vocabulary.add(texts)
    if not changed:
        return 0
    gone = [words_of(point["payload"]) for point, _, _ in changed]
    new = [ChunkWords(point["payload"]["corpus"], list(words.frequencies), words.length) for point, _, words in changed]
    writer.announce(doc_ids, {term for chunk in (*gone, *new) for term in chunk.terms}, words_only=True)
    writer.expect(gone, new)
    operations: list[dict[str, Any]] = []
    for (point, found, words), chunk in zip(changed, new, strict=True):
        payload = point["payload"]
        average = writer.average(chunk.corpus)
        homes = [home for home in payload["homes"] if home != EVERYWHERE] + common_homes(found, payload["kind"])
        facts = {
            "terms": chunk.terms,
            "length": chunk.length,
            "columns_hash": hash_of(*found),
            "average": average,
            "homes": homes,
        }
        operations.append(
            {"update_vectors": {"points": [{"id": point["id"], "vector": {WORDS: words.vector(average)}}]}}
        )
        operations.append({"set_payload": {"payload": facts, "points": [point["id"]]}})
    schema.chunks.change(operations)
    writer.changed(gone, new)
    return len(changed)
