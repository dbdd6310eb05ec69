"""The lexical retriever: full-text search with scores in (0, 1], the most literal matches first.

The store finds and scores passages; how literally they contain the query is read from their texts here, so that every
store gives the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import category, normalize

from kebab.analysis import cjk, korean
from kebab.core import deadline
from kebab.core.notices import Says
from kebab.core.ports import ChunkContext, LexicalMatch, LexicalMatches, Tokenizer
from kebab.core.query_tree import And, Bag, Phrase, QueryTree, Raw, demands_all, parse, plain_words
from kebab.core.search import SNIPPET_CHARS, Exactness, Ranked, Ranking, SearchQuery
from kebab.core.text import nfc
from kebab.search.fusion import Fused
from kebab.search.listing import Listing
from kebab.search.snippets import SnippetLimits, SnippetMaker

if TYPE_CHECKING:
    from kebab.core.store_ports import ChunkReader, LexicalIndex

_LEAST_SCORE = 1e-12
_VERIFIED = 100
"""Of how many passages the texts are read to see how literally they contain the words. It does not depend on k."""
_VERIFIED_FOR_SIGNS = 500
"""The same number for a query such as C++ or --force: the index has no punctuation, so it finds every passage with C or
force.
"""
_NEAR = 60
"""How many other characters may stand between words that are near each other."""
_MOST_TERMS = 32
"""A query with more different terms is not looked for as a phrase."""
_LONGEST_ROW = 64
"""Nor is a longer one, even if it repeats a few terms."""
_WORD = re.compile(r"[^\W_]+")
_ACCENTED = re.compile("[\u00df-\u00f6\u00f8-\u024f\u1e00-\u1eff]+")
"""Latin letters with an accent, among others."""
_AROUND = "()[]{}<>'\"“”‘’…"

_Row = tuple[str, ...]
"""Terms that stand in a row: stems of words, and CJK runs as typed."""


def normalised(bm25: float) -> float:
    """Converts FTS5's bm25 (negative, unbounded) to a score in (0, 1], keeping the order."""
    return max(_LEAST_SCORE, -bm25 / (1 + abs(bm25)))


class _Found(NamedTuple):
    """The passages that were found, best first."""

    passages: Sequence[tuple[Exactness, LexicalMatch]]
    match: str
    """all, any or raw"""
    search: LexicalMatches
    """The search in the store that describes the query: its terms and its expression."""
    more: bool
    none_has_all: bool = False


class LexicalRetriever(Listing):
    """Searches by words. Needs only a full-text index, no model and no network."""

    mode = "lexical"
    ordered_by_store = True

    def __init__(
        self, index: LexicalIndex, chunks: ChunkReader, index_version: str, *, snippet_chars: int = SNIPPET_CHARS
    ) -> None:
        self.index = index
        self.reader = chunks
        self._index_version = index_version
        self.snippets = SnippetMaker(index.tokenizer, SnippetLimits(snippet_chars))
        self._read_already: Mapping[str, ChunkContext] = {}
        """The passages that the last ranking read."""

    def index_version(self) -> str:
        return self._index_version

    def candidates(self, query: SearchQuery, depth: int) -> Ranking[Fused]:
        ranking = self.rank(query, depth)
        return Ranking(
            [Fused(place.chunk_id, place.score, lexical=place) for place in ranking.chunks],
            ranking.more,
            ranking.match,
            ranking.notices,
            ranking.terms,
            ranking.explanation,
        )

    def rank(self, query: SearchQuery, depth: int) -> Ranking[Ranked]:
        """The best passages by their words, at most `depth`: the most literal first, equally literal ones by bm25."""
        tree = parse(query.text)
        self._read_already = {}
        found = self._find(tree, query, depth)
        notices = [Says.LONG_QUERY.notice()] if found.search.shortened else []
        if found.none_has_all and found.passages and not query.offset:
            notices.insert(0, Says.SOME_WORDS.notice())
        ranked = [
            Ranked(match.chunk_id, rank, normalised(match.bm25), exactness, match.doc_type)
            for rank, (exactness, match) in enumerate(found.passages[:depth], start=1)
        ]
        return Ranking(
            ranked,
            found.more or len(found.passages) > depth,
            found.match,
            tuple(notices),
            found.search.terms,
            self._explanation(tree, query, found) if query.explain else None,
        )

    def contexts(self, chunk_ids: Sequence[str]) -> Mapping[str, ChunkContext]:
        missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in self._read_already]
        return {**self._read_already, **super().contexts(missing)}

    def suggestions(self, query: SearchQuery) -> list[str]:
        """Corrected queries for one that finds nothing; empty if all its words are known."""
        from kebab.search.suggestions import suggestions

        probe = query._replace(mode="lexical", k=1, offset=0, without_snippets=True, explain=False)
        return suggestions(
            query.text, self.index, self.contexts, lambda text: bool(self.search(probe._replace(text=text)))
        )

    def _find(self, tree: QueryTree, query: SearchQuery, depth: int) -> _Found:
        if isinstance(tree, Raw):
            return _one_list(self._matches(tree, query, "all", depth), "raw", Exactness.SOME)
        if query.match == "any":
            return _one_list(self._matches(tree, query, "any", depth), "any", Exactness.SOME)
        if query.match == "all":
            return _one_list(self._matches(tree, query, "all", depth), "all", _least(tree))
        verified = _VERIFIED_FOR_SIGNS if _has_signs(tree) else _VERIFIED
        every = self._matches(tree, query, "all", max(depth, verified))
        if query.sort == "date" and every.matches:
            return _one_list(every, "all", _least(tree))
        passages = self._most_literal_first(tree, query, every, verified)
        found = _Found(passages, "all", every, every.more)
        if every.more or len(passages) >= depth:
            return found._replace(more=True)
        some = self._matches(tree, query, "any", depth)
        if some.expression == every.expression:
            return found
        known = {match.chunk_id for _, match in passages}
        further = [(Exactness.SOME, match) for match in some.matches if match.chunk_id not in known]
        match = "all" if len(passages) >= query.offset + query.k else "any"
        return _Found([*passages, *further], match, some, some.more, none_has_all=not passages)

    def _most_literal_first(
        self, tree: QueryTree, query: SearchQuery, every: LexicalMatches, verified: int
    ) -> list[tuple[Exactness, LexicalMatch]]:
        """Passages with all words: the best ones, whose texts are read, by how literal they are, then the others."""
        matches = list(every.matches)
        words = plain_words(tree)
        if not matches or not words:
            return [(_least(tree), match) for match in matches]
        wording = Wording(words, every.dropped, self.index.tokenizer)
        best, others = matches[:verified], matches[verified:]
        if wording.is_checked and (others or every.more):  # a passage with the phrase may be among the others
            known, least = {match.chunk_id for match in best}, best[-1].bm25
            for phrase in wording.phrases:
                with_phrase = self._matches(And(tree, Bag((Phrase(phrase),))), query, "all", _VERIFIED).matches
                new = [match for match in with_phrase if match.chunk_id not in known]
                best += [match._replace(bm25=max(match.bm25, least)) for match in new]
                if with_phrase:
                    break
        self._read_already = super().contexts([match.chunk_id for match in best])
        checked = []
        named: set[str] = set()
        for match in best:
            deadline.check()
            exactness = Exactness.ALL
            if match.chunk_id in self._read_already:
                passage = self._read_already[match.chunk_id]
                exactness = wording.exactness_of(passage.title, passage.heading_path, passage.text)
                names = passage.title, passage.doc_path.rpartition("/")[2]
                if passage.doc_id not in named and any(map(wording.is_name, names)):
                    exactness = Exactness.NAMED
                    named.add(passage.doc_id)
            checked.append((exactness, match))
        checked.sort(key=lambda item: (-item[0], item[1]))
        known = {match.chunk_id for match in best}
        return [*checked, *((Exactness.ALL, match) for match in others if match.chunk_id not in known)]

    def _matches(self, tree: QueryTree, query: SearchQuery, match: str, depth: int) -> LexicalMatches:
        return self.index.search(
            tree,
            match=match,
            drop_stop_words=query.match != "all",
            filters=query.filters,
            limit=depth,
            sort=query.sort,
            type_ahead=query.type_ahead,
        )

    def _explanation(self, tree: QueryTree, query: SearchQuery, found: _Found) -> dict[str, Any]:
        match = "any" if found.match == "any" else "all"
        drop = query.match != "all"
        kept = unfiltered = self.index.count(tree, match=match, drop_stop_words=drop, filters=query.filters)
        if query.filters != query.filters.place:
            unfiltered = self.index.count(tree, match=match, drop_stop_words=drop, filters=query.filters.place)
        return {
            "lexical": {
                "expression": found.search.expression,
                "match": found.match,
                "stop_words_dropped": list(found.search.dropped),
                "matches": kept,
                "removed_by_filters": unfiltered - kept,
            }
        }


def _has_signs(tree: QueryTree) -> bool:
    """Whether a word begins or ends with a sign that is not just punctuation."""
    words = filter(None, map(_trimmed, ([word] for word in plain_words(tree))))
    return any(category(sign)[0] in "PS" for word in words for sign in (word[0], word[-1]))


def _least(tree: QueryTree) -> Exactness:
    """How literally each passage contains the words that matches a query with `all`."""
    return Exactness.ALL if demands_all(tree) else Exactness.SOME


def _one_list(matches: LexicalMatches, match: str, exactness: Exactness) -> _Found:
    return _Found([(exactness, one) for one in matches.matches], match, matches, matches.more)


# --- exactness


_Place = tuple[int, int, str]
"""Where a term begins and ends in a text, and the term."""


class Wording:
    """The words of a query and their order."""

    def __init__(self, words: Sequence[str], dropped: Sequence[str], tokenizer: Tokenizer) -> None:
        """`words`: the query's words as typed. `dropped`: those that the search left out because they say little."""
        self._tokenizer = tokenizer
        self._stems: dict[str, str] = {}
        silent = set(dropped)
        telling = [number for number, word in enumerate(words) if word not in silent]
        between = words[telling[0] : telling[-1] + 1] if telling else ()
        self.phrases = tuple(dict.fromkeys(filter(None, (_trimmed(words), _trimmed(between)))))
        """The whole query, and the query without the words that say little at its beginning and end."""
        self._rows = [row for phrase in self.phrases if len(row := self._terms(phrase)) > 1]
        self._name = _WORD.findall(_flat(" ".join(words)))
        self._words = {self._terms(words[number]): None for number in telling}
        self._words.pop((), None)
        terms = {term for row in (*self._rows, *self._words) for term in row}
        longest = max(map(len, self._rows), default=0)
        self.is_checked = 0 < len(terms) <= _MOST_TERMS and longest <= _LONGEST_ROW
        if self.is_checked:
            self._verbatim = _as_typed(self.phrases[0])
            self._candidates = _beginning_like(terms)

    def is_name(self, name: str) -> bool:
        """Whether the query is this name, whatever signs are in it."""
        return _WORD.findall(_flat(name)) == self._name != []

    def exactness_of(self, title: str, headings: Sequence[str], text: str) -> Exactness:
        """How literally a passage that has all the words has them. The title counts less than the passage itself."""
        if not self.is_checked:
            return Exactness.ALL
        text = _flat("\n".join((*headings, text)))
        if self._verbatim.search(text):
            return Exactness.VERBATIM
        text = _without_accents(text)  # as the text index is
        places = sorted({match.span() for pattern in self._candidates for match in pattern.finditer(text)})
        found = [(start, end, self._stem(text[start:end])) for start, end in places]
        if any(any(_rows(row, found, text)) for row in self._rows):
            return Exactness.PHRASE
        if self._are_near(found, text) or self._verbatim.search(_flat(title)):
            return Exactness.NEAR
        return Exactness.ALL

    def _are_near(self, found: Sequence[_Place], text: str) -> bool:
        """Whether some part of the text has all words and little else."""
        if len(self._words) < 2:
            return False
        places: list[tuple[int, int, _Row]]
        places = [(start, end, (term,)) for start, end, term in found if (term,) in self._words]
        places += [(*place, word) for word in self._words if len(word) > 1 for place in _rows(word, found, text)]
        last: dict[_Row, tuple[int, int]] = {}
        for start, end, word in sorted(places):
            last[word] = (start, end)
            if len(last) == len(self._words):
                own = sum(ends - starts for starts, ends in last.values())
                if end - min(starts for starts, _ in last.values()) - own <= _NEAR:
                    return True
        return False

    def _terms(self, text: str) -> _Row:
        """The terms of a text, without a Korean particle at its end."""
        runs = [run for word in _WORD.findall(_without_accents(_flat(text))) for run in cjk.runs(word)]
        if runs and runs[-1].script == "hangul":
            if len(runs) > 1 and korean.is_particle(runs[-1].text):
                runs.pop()
            else:
                runs[-1] = runs[-1]._replace(text=korean.strip_particle(runs[-1].text))
        return tuple(self._stem(run.text) for run in runs)

    def _stem(self, word: str) -> str:
        stem = self._stems.get(word)
        if stem is None:
            stem = self._stems[word] = word if cjk.has_cjk(word) else "".join(self._tokenizer.stems(word))
        return stem


def _rows(row: _Row, found: Sequence[_Place], text: str) -> Iterator[tuple[int, int]]:
    """Where these terms stand in a row, with no other word between them."""
    wanted, terms = list(row), [term for _, _, term in found]
    for number, term in enumerate(terms):
        if term != row[0] or terms[number : number + len(row)] != wanted:
            continue
        here = found[number : number + len(row)]
        if not any(_WORD.search(text, one[1], after[0]) for one, after in pairwise(here)):
            yield here[0][0], here[-1][1]


def _trimmed(words: Sequence[str]) -> str:
    return " ".join(words).strip(_AROUND).rstrip(".,;:!?")


def _flat(text: str) -> str:
    return nfc(text).casefold()


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    return _ACCENTED.sub(lambda match: "".join(filter(str.isalpha, normalize("NFD", match[0]))), text)


def _as_typed(phrase: str) -> re.Pattern[str]:
    """A pattern for the phrase as whole words, with any space between them."""
    words = _flat(phrase).split()
    first, *others = map(re.escape, words)
    if _is_plain(words[0][0]):
        first = _beginning_with(words[0])
    after = f"(?!{_letter(words[-1])})" if _is_plain(words[-1][-1]) else ""
    return re.compile(r"\s+".join([first, *others]) + after)


def _beginning_like(terms: set[str]) -> list[re.Pattern[str]]:
    """Patterns that find all words that may have one of these stems, and all CJK runs among the terms. Each word has
    its own pattern, because `re` skips fast to the places of one beginning, and slowly to those of several.
    """
    runs = sorted((re.escape(term) for term in terms if cjk.has_cjk(term)), key=len, reverse=True)
    # A word with the same stem begins with all of the stem but its last letter.
    words = [(term[:-1] or term, _letter(term)) for term in sorted(terms) if not cjk.has_cjk(term)]
    patterns = [f"{_beginning_with(beginning)}{letter}*" for beginning, letter in words]
    return list(map(re.compile, [*patterns, *(["|".join(runs)] if runs else [])]))


def _beginning_with(letters: str) -> str:
    """A pattern for these letters where a word begins. They come first in it, because `re` then skips ten times as fast
    to the places that have them.
    """
    return f"{re.escape(letters)}(?<!{_letter(letters)}{re.escape(letters)})"


def _letter(word: str) -> str:
    """A pattern for the letters of a word. Korean particles follow ASCII words immediately, as in kubernetes는."""
    return "[0-9a-z]" if word.isascii() else r"[^\W_]"


def _is_plain(character: str) -> bool:
    """Whether it is a letter or digit of a script with spaces between words."""
    return character.isalnum() and not cjk.has_cjk(character)
