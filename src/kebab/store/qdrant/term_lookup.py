"""What a search asks about its words: whether they occur at all, and in how many chunks. One round trip for all of them."""

from __future__ import annotations

from collections.abc import Collection as AnyCollection
from collections.abc import Iterable, Sequence

from kebab.store.qdrant.collection import Collection, PointId
from kebab.store.qdrant.vocabulary import Vocabulary, word_id


class TermLookup:
    """Of one reading: nothing is asked for twice. Both sides of a hybrid search use it at the same time."""

    def __init__(self, terms: Collection, vocabulary: Vocabulary) -> None:
        self._terms = terms
        self._vocabulary = vocabulary
        self._chunks: dict[PointId, int | None] = {}
        """By the id of a word or a term: how many chunks a term is in, and None for what is not there. Of a word nobody counts chunks."""

    def fetch(self, words: Iterable[str], terms: Iterable[int]) -> None:
        """What will be asked for, before it is."""
        wanted: dict[PointId, None] = dict.fromkeys([*map(word_id, words), *terms])
        unknown = [number for number in wanted if number not in self._chunks]
        if unknown:
            found = {point["id"]: point["payload"].get("chunks", 0) for point in self._terms.retrieve(unknown, payload=["chunks"])}
            self._chunks.update({number: found.get(number) for number in unknown})

    def known(self, words: AnyCollection[str]) -> set[str]:
        self.fetch(words, ())
        return {word for word in words if self._chunks[word_id(word)] is not None}

    def expand(self, prefix: str) -> Sequence[str]:
        return self._vocabulary.expand(prefix)

    def chunks_with(self, terms: AnyCollection[int]) -> dict[int, int]:
        """0 where no chunk has it."""
        self.fetch((), terms)
        return {term: self._chunks[term] or 0 for term in terms}
