"""What a search asks about its words: whether they occur at all, and in how many chunks. One round trip for all of them."""

from __future__ import annotations

from collections.abc import Collection as AnyCollection
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, Future

from kebab.analysis.query_syntax import parse
from kebab.core.query_tree import QueryTree, words_of
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.fts5.wanted_terms import IndexTerm
from kebab.store.qdrant.collection import Collection, PointId
from kebab.store.qdrant.terms import OWN, id_of
from kebab.store.qdrant.vocabulary import Vocabulary, word_id

_FORESEEN = 100
"""Words of a query that are looked up before it is known which of them will be needed."""


class TermLookup:
    """Of one reading: nothing is asked for twice. Both sides of a hybrid search use it at the same time."""

    def __init__(self, terms: Collection) -> None:
        self._terms = terms
        self._chunks: dict[PointId, int | None] = {}
        """By the id of a word or a term: how many chunks a term is in, and None for what is not there. Of a word nobody counts chunks."""
        self._begun: Future[None] | None = None
        self._expected: set[tuple[QueryTree, str]] = set()

    def begin(self, query: str, threads: Executor) -> None:
        """Looks up what a search of one's own documents will want to know, meanwhile."""
        self._begun = threads.submit(lambda: self._fetch(*_foreseen(parse(query), OWN)))

    def expect(self, tree: QueryTree, corpus: str) -> None:
        """Looks up what expressions and their ranking will want to know; what is not foreseen is asked for when it is wanted."""
        if (tree, corpus) not in self._expected:  # all of the words, then any of them
            self._expected.add((tree, corpus))
            self.fetch(*_foreseen(tree, corpus))

    def fetch(self, words: Iterable[str], terms: Iterable[int]) -> None:
        if self._begun is not None:
            self._begun.result()
        self._fetch(words, terms)

    def _fetch(self, words: Iterable[str], terms: Iterable[int]) -> None:
        wanted: dict[PointId, None] = dict.fromkeys([*map(word_id, words), *terms])
        unknown = [number for number in wanted if number not in self._chunks]
        if unknown:
            found = {point["id"]: point["payload"].get("chunks", 0) for point in self._terms.retrieve(unknown, payload=["chunks"])}
            self._chunks.update({number: found.get(number) for number in unknown})

    def known(self, words: AnyCollection[str]) -> set[str]:
        self.fetch(words, ())
        return {word for word in words if self._chunks[word_id(word)] is not None}

    def expand(self, prefix: str) -> Sequence[str]:
        return Vocabulary(self._terms, SqliteTokenizer()).expand(prefix)

    def chunks_with(self, terms: AnyCollection[int]) -> dict[int, int]:
        """0 where no chunk has it."""
        self.fetch((), terms)
        return {term: self._chunks[term] or 0 for term in terms}


def _foreseen(tree: QueryTree, corpus: str) -> tuple[list[str], list[int]]:
    """The last word, which may be half typed, and all terms; of a pasted page nothing, because only a part of it will be looked for."""
    tokenizer = SqliteTokenizer()
    text = " ".join(words_of(tree))
    stems = tokenizer.stems(text)
    if len(stems) > _FORESEEN:
        return [], []
    return tokenizer.words(text)[-1:], [id_of(corpus, IndexTerm(stem, False, False)) for stem in stems]
