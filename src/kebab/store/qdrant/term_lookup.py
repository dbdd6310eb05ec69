"""What a search asks about its words: whether they occur at all, and in how many chunks. One round trip for all of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Collection as AnyCollection

from kebab.analysis.query_syntax import parse
from kebab.core.query_tree import QueryTree, words_of
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.fts5.wanted_terms import IndexTerm
from kebab.store.qdrant.collection import Collection, Point, PointId
from kebab.store.qdrant.terms import OWN, id_of
from kebab.store.qdrant.vocabulary import Vocabulary, word_id

_COUNT = ["chunks"]
_FORESEEN = 100
"""Words of a query that are looked up before it is known which of them will be needed."""


class TermLookup:
    """Of one reading: nothing is asked for twice. Both sides of a hybrid search use it at the same time."""

    def __init__(self, terms: Collection) -> None:
        self._terms = terms
        self._chunks: dict[PointId, int | None] = {}
        """By the id of a word or a term: how many chunks a term is in, and None for what is not there. Of a word nobody
        counts chunks.
        """
        self._expected: set[tuple[QueryTree, str]] = set()

    def begin(self, query: str) -> Callable[[], None]:
        """Asks what a search of one's own documents will want to know; what is returned reads the answer."""
        wanted = _ids(*_foreseen(parse(query), OWN))
        answer = self._terms.begin_to_retrieve(wanted, payload=_COUNT) if wanted else lambda: None

        def read() -> None:
            points = answer()
            if points is not None:
                self._remember(wanted, points)

        return read

    def expect(self, tree: QueryTree, corpus: str) -> None:
        """Looks up what expressions and their ranking will want to know; what is not foreseen is asked for when it is
        wanted.
        """
        if (tree, corpus) not in self._expected:  # all of the words, then any of them
            self._expected.add((tree, corpus))
            self.fetch(*_foreseen(tree, corpus))

    def fetch(self, words: Iterable[str], terms: Iterable[int]) -> None:
        unknown = [number for number in _ids(words, terms) if number not in self._chunks]
        if unknown:
            self._remember(unknown, self._terms.retrieve(unknown, payload=_COUNT))

    def _remember(self, asked: Iterable[PointId], points: Iterable[Point]) -> None:
        found = {point["id"]: point["payload"].get("chunks", 0) for point in points}
        self._chunks.update({number: found.get(number) for number in asked})

    def known(self, words: AnyCollection[str]) -> set[str]:
        self.fetch(words, ())
        return {word for word in words if self._chunks[word_id(word)] is not None}

    def expand(self, prefix: str) -> Sequence[str]:
        return Vocabulary(self._terms, SqliteTokenizer()).expand(prefix)

    def chunks_with(self, terms: AnyCollection[int]) -> dict[int, int]:
        """0 where no chunk has it."""
        self.fetch((), terms)
        return {term: self._chunks[term] or 0 for term in terms}


def _ids(words: Iterable[str], terms: Iterable[int]) -> list[PointId]:
    return list(dict.fromkeys([*map(word_id, words), *terms]))


def _foreseen(tree: QueryTree, corpus: str) -> tuple[list[str], list[int]]:
    """The last word, which may be half typed, and all terms; of a pasted page nothing, because only a part of it will
    be looked for.
    """
    tokenizer = SqliteTokenizer()
    text = " ".join(words_of(tree))
    stems = tokenizer.stems(text)
    if len(stems) > _FORESEEN:
        return [], []
    return tokenizer.words(text)[-1:], [id_of(corpus, IndexTerm(stem, False, False)) for stem in stems]
