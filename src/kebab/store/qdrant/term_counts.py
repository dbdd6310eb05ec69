"""How many chunks have each term, in the whole corpus: what a server, which sees only its own shard, cannot say."""

from __future__ import annotations

from collections.abc import Collection as AnyCollection
from collections.abc import Iterable, Mapping

from kebab.store.qdrant.collection import Collection

_COUNTED_ONE_BY_ONE = 500
"""Beyond so many terms all of them are counted at once."""


def chunks_with(terms: Collection, ids: AnyCollection[int]) -> dict[int, int]:
    """Without those that no chunk has."""
    return {point["id"]: point["payload"]["chunks"] for point in terms.retrieve(ids, payload=["chunks"])} if ids else {}


class TermCounts:
    """Of whoever writes: what was read once need not be read again, because nobody else writes meanwhile."""

    def __init__(self, terms: Collection) -> None:
        self._terms = terms
        self._known: dict[int, int] = {}
        self._changed: set[int] = set()

    def change(self, differences: Mapping[int, int]) -> None:
        """Remembered, and written by `flush`."""
        changes = {term: difference for term, difference in differences.items() if difference}
        unknown = [term for term in changes if term not in self._known]
        self._known.update(dict.fromkeys(unknown, 0))
        self._known.update(chunks_with(self._terms, unknown))
        for term, difference in changes.items():
            self._known[term] = max(0, self._known[term] + difference)
        self._changed.update(changes)

    @property
    def waiting(self) -> int:
        return len(self._changed)

    def flush(self) -> None:
        self._write(self._changed)
        self._changed = set()

    def count_again(self, chunks: Collection, ids: Iterable[int]) -> None:
        """What the index of the chunks says. After an interrupted run nobody can say what was already counted."""
        wanted = set(ids)
        if len(wanted) <= _COUNTED_ONE_BY_ONE:
            found = {term: chunks.count({"must": [{"key": "terms", "match": {"value": term}}]}) for term in wanted}
        else:
            found = chunks.values("terms")
        self._known.update({term: found.get(term, 0) for term in wanted})
        self._write(wanted)

    def _write(self, ids: Iterable[int]) -> None:
        ordered = sorted(ids)
        self._terms.upsert(
            {"id": term, "vector": {}, "payload": {"chunks": self._known[term]}}
            for term in ordered
            if self._known[term]
        )
        self._terms.delete([term for term in ordered if not self._known[term]])
