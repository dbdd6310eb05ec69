"""Gives stored chunks new terms, after a change of a note or of the analysis, or after an interruption."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kebab.core.records import ContextNote
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.index_versions import fts_config
from kebab.store.qdrant import codec
from kebab.store.qdrant.collection import PointId, batches, where
from kebab.store.qdrant.index_writer import ChunkWords, IndexWriter, WriterPart, words_of
from kebab.store.qdrant.integrity import recover_documents, repair_points
from kebab.store.qdrant.schema import WORDS
from kebab.store.qdrant.terms import counted
from kebab.store.qdrant.vocabulary import Vocabulary

_BATCH = 100


def analyse_again(
    writer: IndexWriter, doc_ids: Iterable[str], korean_analysis: str, *, vocabulary: Vocabulary | None = None
) -> int:
    """Gives the chunks of these documents the terms they should have, and returns how many changed. `vocabulary` gets
    the words of these chunks; with it, all are analysed, even if their terms seem right.
    """
    return sum(_analyse(writer, some, korean_analysis, vocabulary) for some in batches(doc_ids, _BATCH))


def _analyse(writer: IndexWriter, doc_ids: list[str], korean_analysis: str, vocabulary: Vocabulary | None) -> int:
    chunks, tokenizer = writer.schema.chunks, SqliteTokenizer()
    old, new = [], []
    texts: list[str] = []
    for point in chunks.scroll(where("doc", *doc_ids)):
        columns = writer.state.columns(point["payload"], korean_analysis)
        if vocabulary is None and codec.hash_of(*columns) == point["payload"]["columns_hash"]:
            continue
        texts += (columns.text, columns.title)
        old.append(point)
        new.append((columns, counted(columns, point["payload"]["corpus"], tokenizer, writer.state.weights)))
    if vocabulary is not None:
        vocabulary.add(texts)
    if not old:
        return 0
    gone = words_of(point["payload"] for point in old)
    come = [
        ChunkWords(before.corpus, list(words.frequencies), words.length)
        for before, (_, words) in zip(gone, new, strict=True)
    ]
    with writer.change(doc_ids, gone, come, words_only=True):
        operations: list[dict[str, Any]] = []
        for point, (columns, words), chunk in zip(old, new, come, strict=True):
            payload, average = point["payload"], writer.average(chunk.corpus)
            primaries = [space for space in payload["homes"] if space != codec.EVERYWHERE]
            facts = {
                "terms": chunk.terms,
                "length": chunk.length,
                "columns_hash": codec.hash_of(*columns),
                "average": average,
                "homes": primaries + codec.common_primaries(columns, payload["kind"]),
            }
            vector = {"id": point["id"], "vector": {WORDS: words.vector(average)}}
            operations.append({"update_vectors": {"points": [vector]}})
            operations.append({"set_payload": {"payload": facts, "points": [point["id"]]}})
        chunks.change(operations)
    return len(old)


def rebuild_fts(writer: IndexWriter) -> int:
    """Repairs inconsistent points, analyses every chunk again, and counts everything again. Returns the number of
    chunks. After an interruption, `analysing` is still set, so `settle_analysis` begins again.
    """
    schema, korean_analysis = writer.schema, writer.korean_analysis
    writer.remember(analysing=True)
    repair_points(schema)
    vocabulary = Vocabulary(schema.terms)
    vocabulary.add(note.text for source in writer.state.sources.values() for note in source.notes)
    documents = [payload["doc"] for payload in schema.documents.payloads(None, ["doc"])]
    count = analyse_again(writer, documents, korean_analysis, vocabulary=vocabulary)
    vocabulary.forget_unseen()
    writer.flush()
    writer.count_everything()
    writer.remember(fts_config=fts_config(korean_analysis), analysing=None)
    return count


def recover(writer: IndexWriter) -> None:
    """Completes or undoes what interrupted writers began, and counts the terms again. Every writer calls this first."""
    schema = writer.schema
    schema.drop_unused_chunks()
    points = sorted(
        schema.catalog.scroll(where("what", "unfinished")), key=lambda point: int(point["payload"].get("at") or 0)
    )
    if not points:
        return
    payloads = [point["payload"] for point in points]
    to_analyse: dict[str, None] = {}
    marks: dict[str, PointId] = {}
    """By document id, the mark of its last change."""
    for point in points:
        doc_ids = point["payload"].get("documents") or ()
        if point["payload"].get("words_only"):
            to_analyse.update(dict.fromkeys(doc_ids))
        else:
            marks.update(dict.fromkeys(doc_ids, point["id"]))
    recover_documents(schema, marks)
    if all("source" in payload or "terms" in payload for payload in payloads):
        writer.count_again({term for payload in payloads for term in payload.get("terms") or ()})
    else:
        writer.count_everything()
    if sources := {payload["source"] for payload in payloads if "source" in payload}:
        of_sources = schema.documents.payloads(where("source", *sources), ["doc"])
        to_analyse.update(dict.fromkeys(payload["doc"] for payload in of_sources))
    if to_analyse and writer.state.korean_analysis is not None:
        analyse_again(writer, to_analyse, writer.state.korean_analysis)
        writer.flush()
    schema.catalog.delete([point["id"] for point in points])


def forget_unused_words(writer: IndexWriter) -> None:
    """Deletes the words that no chunk and no note has any more."""
    vocabulary = Vocabulary(writer.schema.terms)
    vocabulary.unseen(note.text for source in writer.state.sources.values() for note in source.notes)
    for some in batches(writer.schema.chunks.payloads(None, ["text", "title", "names"]), _BATCH):
        vocabulary.unseen(text for payload in some for text in (payload["text"], codec.title_of(payload)))
    vocabulary.forget_unseen()


class QdrantNoteStore(WriterPart):
    """Writes notes on sources and folders, and adds their words to every chunk of the documents they cover."""

    def source_names(self) -> list[str]:
        return sorted(self._state.sources)

    def notes(self, source: str) -> list[ContextNote]:
        return self._state.sources[source].ordered_notes if source in self._state.sources else []

    def document_paths(self, source: str) -> list[str]:
        return sorted(payload["path"] for payload in self._documents.payloads(where("source", source), ["path"]))

    def put(self, source: str, note: ContextNote) -> int:
        Vocabulary(self._schema.terms).add([note.text])
        return self._replace(source, note, [note])

    def remove(self, source: str, note: ContextNote) -> int:
        return self._replace(source, note, [])

    def _replace(self, source: str, note: ContextNote, new: list[ContextNote]) -> int:
        """Replaces the note on a folder; returns how many chunks changed. Chunks written after the note have its words
        anyway.
        """
        with self._writer.pledge_words(source):
            stored = self._state.sources[source]
            others = [other for other in stored.notes if other.folder != note.folder]
            self._writer.write_source(stored._replace(notes=(*others, *new)))
            payloads = self._documents.payloads(where("source", source), ["doc", "path"])
            below = [payload["doc"] for payload in payloads if note.covers(payload["path"])]
            return analyse_again(self._writer, below, self._writer.korean_analysis)
