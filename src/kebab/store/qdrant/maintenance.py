"""The life of the index: counting what there is, analysing all of it again."""

from __future__ import annotations

from kebab.core.records import StoreStats
from kebab.store.fts5.index_config import fts_config, lexical_index_version
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.qdrant.collection import batches
from kebab.store.qdrant.index_writer import IndexWriter
from kebab.store.qdrant.payloads import title_of
from kebab.store.qdrant.reanalysis import analyse_again
from kebab.store.qdrant.repair import put_in_order
from kebab.store.qdrant.schema import SCHEMA, Schema
from kebab.store.qdrant.state import State, remember, stored_weights
from kebab.store.qdrant.vectors import stored_spaces
from kebab.store.qdrant.vocabulary import Vocabulary
from kebab.store.tags import folded

_DOCUMENTS_AT_ONCE = 100
_CHUNKS_AT_ONCE = 500


def stats(schema: Schema, state: State, address: str, server: str) -> StoreStats:
    spaces = [space.fingerprint for space in stored_spaces(state)]
    with_vector = {space: schema.chunks.count({"must": [{"has_vector": space}]}) for space in spaces}
    any_vector = {"should": [{"has_vector": space} for space in spaces]}
    return StoreStats(
        path=address,
        bytes=None,
        schema=SCHEMA,
        sqlite=server,
        sources=len(state.sources),
        documents=schema.documents.count(),
        chunks=schema.chunks.count(),
        tags=len({folded(tag) for tag in schema.documents.values("tags")}),
        words=schema.terms.count({"must_not": [{"is_empty": {"key": "begins"}}]}),
        text_bytes=sum(point["payload"]["size"] for point in schema.documents.scroll(payload=["size"])),
        vectors=sum(with_vector.values()),
        embedded_chunks=schema.chunks.count(any_vector) if spaces else 0,
        embedding_models=tuple(spaces),
        index_version=lexical_index_version(state.fts_config or fts_config("bigrams"), SCHEMA),
    )


def forget_unused_words(writer: IndexWriter) -> None:
    """Words that no chunk or note has any more leave the vocabulary."""
    schema = writer.schema
    vocabulary = Vocabulary(schema.terms, SqliteTokenizer())
    vocabulary.unseen(note.text for source in writer.state.sources.values() for note in source.notes)
    for some in batches(schema.chunks.scroll(payload=["text", "title", "names"]), _CHUNKS_AT_ONCE):
        payloads = [point["payload"] for point in some]
        vocabulary.unseen(text for payload in payloads for text in (payload["text"], title_of(payload)))
    vocabulary.forget_others()


def rebuild_fts(writer: IndexWriter, korean_analysis: str) -> int:
    """What does not fit together is put in order, every chunk is analysed again, and all that is counted is counted
    anew. While it lasts, searches find what has been analysed; it may be interrupted, because the configuration is
    remembered at the end.
    """
    schema = writer.schema
    remember(schema.catalog, analysing=True)
    put_in_order(schema)
    vocabulary = Vocabulary(schema.terms, SqliteTokenizer())
    vocabulary.add(note.text for source in writer.state.sources.values() for note in source.notes)
    weights = stored_weights(writer.state)
    count = 0
    documents = [point["payload"]["doc"] for point in schema.documents.scroll(payload=["doc"])]
    for some in batches(documents, _DOCUMENTS_AT_ONCE):
        count += analyse_again(writer, some, korean_analysis, weights, vocabulary=vocabulary)
    vocabulary.forget_others()
    writer.flush()
    writer.count_everything()
    config = fts_config(korean_analysis)
    remember(schema.catalog, fts_config=config, analysing=None)
    writer.state.meta.update(fts_config=config, analysing=None)
    return count
