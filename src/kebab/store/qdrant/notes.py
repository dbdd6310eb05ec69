"""Writing notes on sources and folders, and their words into every passage below."""

from __future__ import annotations

from kebab.core.records import ContextNote
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.qdrant.collection import batches
from kebab.store.qdrant.filters import one_of
from kebab.store.qdrant.index_writer import IndexWriter
from kebab.store.qdrant.reanalysis import analyse_again
from kebab.store.qdrant.state import stored_weights, write_sources
from kebab.store.qdrant.vocabulary import Vocabulary

_DOCUMENTS_AT_ONCE = 100


class QdrantNoteStore:
    def __init__(self, writer: IndexWriter, *, korean_analysis: str) -> None:
        self._writer = writer
        self._schema = writer.schema
        self._korean_analysis = korean_analysis

    def source_names(self) -> list[str]:
        return sorted(self._writer.state.sources)

    def notes(self, source: str) -> list[ContextNote]:
        known = self._writer.state.sources.get(source)
        return sorted(known.notes, key=lambda note: (len(note.folder), note.folder)) if known else []

    def document_paths(self, source: str) -> list[str]:
        return sorted(path for _, path in self._documents(source))

    def put(self, source: str, note: ContextNote) -> int:
        """The note comes first: passages that are written meanwhile, or after an interruption, get its words by
        themselves.
        """
        Vocabulary(self._schema.terms, SqliteTokenizer()).add([note.text])
        with self._writer.pledge_words(source):
            self._replace(source, note.folder, note)
            return self._analyse_again(source, note)

    def remove(self, source: str, note: ContextNote) -> int:
        with self._writer.pledge_words(source):
            self._replace(source, note.folder, None)
            return self._analyse_again(source, note)

    def _replace(self, source: str, folder: str, note: ContextNote | None) -> None:
        known = self._writer.state.sources[source]
        others = [other for other in known.notes if other.folder != folder]
        changed = known._replace(notes=(*others, *([note] if note else [])))
        write_sources(self._schema.catalog, [changed])
        self._writer.state.sources[source] = changed

    def _documents(self, source: str) -> list[tuple[str, str]]:
        found = self._schema.documents.scroll({"must": [one_of("source", [source])]}, payload=["doc", "path"])
        return [(point["payload"]["doc"], point["payload"]["path"]) for point in found]

    def _analyse_again(self, source: str, note: ContextNote) -> int:
        """Gives every chunk below the note the terms it should have now; those that have them already are left alone."""
        below = [doc_id for doc_id, path in self._documents(source) if note.covers(path)]
        weights = stored_weights(self._writer.state)
        return sum(
            analyse_again(self._writer, some, self._korean_analysis, weights)
            for some in batches(below, _DOCUMENTS_AT_ONCE)
        )
