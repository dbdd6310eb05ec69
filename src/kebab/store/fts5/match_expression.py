"""Turns a QueryTree into an FTS5 expression. No other module makes FTS5 expressions.

Every operand is quoted, so nothing a person types can be FTS5 syntax. CJK text is looked up in the `cjk` column as the
terms that `analysis` puts there; everything else goes through the tokenizer and may match in any column.
"""

from __future__ import annotations

import re
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from kebab.analysis import cjk, korean
from kebab.analysis.language import is_stop_word
from kebab.core.errors import QueryError
from kebab.core.query_tree import And, Bag, Not, Operand, Or, Phrase, Prefix, QueryTree, Raw, Word
from kebab.core.search import QueryTerms
from kebab.core.text import whole_characters

if TYPE_CHECKING:
    from kebab.core.ports import Tokenizer
    from kebab.core.store_ports import KnownWords

_MOST_TERMS = 96
"""The most terms in one expression, with those of phrases and completed prefixes. Each one takes time: ranking by 96
common words of 30,000 passages takes half a second.
"""
_REPEATED = 4
"""How many terms a repeated term counts as: it may be the most frequent one each time."""
_LONGEST_PHRASE = 32
"""The most terms of a phrase that are looked for; FTS5 opens a reader for each."""
_MOST_RAW_WORDS = 16
_MOST_RAW_PREFIXES = 4
"""FTS5 reads all words with the prefix; with one letter as the prefix, 30,000 passages take 0.1 s."""
_SHORTEST_GUESS = 3
"""A last word with fewer letters is never taken for a half-typed one."""


class Atom(NamedTuple):
    """One quoted string of an FTS5 expression: a word or a phrase."""

    text: str
    in_cjk: bool = False
    """True: looked for in the column `cjk` only. False: in every column."""
    is_beginning: bool = False
    """Whether its last word is a prefix, so that longer words match too."""
    terms: int = 1
    """The number of terms in `text`."""

    def __str__(self) -> str:
        return f"{'cjk : ' if self.in_cjk else ''}{_quoted(self.text)}{' *' if self.is_beginning else ''}"


_Parts = dict[str, tuple[Atom, ...]]
"""The different FTS5 expressions that one operand becomes, each with its atoms."""


class MatchExpression(NamedTuple):
    text: str
    """Empty if there is nothing to look for."""
    terms: QueryTerms
    dropped: tuple[str, ...] = ()
    """The stop words that were left out."""
    shortened: bool = False
    """Whether the query was too long, so that some of it is not looked for."""
    atoms: tuple[Atom, ...] = ()
    """The atoms of the expression, without those after NOT. A raw expression has none."""
    any_will_do: bool = False
    """Whether any one of the atoms alone makes a match."""


class MatchExpressionBuilder:
    def __init__(self, tokenizer: Tokenizer, words: KnownWords, korean_analysis: str) -> None:
        self.tokenizer = tokenizer
        self.words = words
        self.korean_analysis = korean_analysis
        self._phrases: dict[tuple[str, ...], None] = {}
        self._cjk: dict[str, None] = {}
        self._dropped: list[str] = []
        self._room = _MOST_TERMS
        self._shortened = False
        self._atoms: list[Atom] = []
        self._seen: set[Atom] = set()
        self._any_will_do = True

    def build(self, tree: QueryTree, *, match: str, drop_stop_words: bool, type_ahead: bool = False) -> MatchExpression:
        self._phrases, self._cjk, self._dropped, self._room, self._shortened = {}, {}, [], _MOST_TERMS, False
        self._atoms, self._seen, self._any_will_do = [], set(), True
        last = _last_operand(tree)
        text = self._render(tree, match == "any", drop_stop_words, (last, type_ahead))
        # Highlighting looks for every term in every snippet, so their number is limited too.
        cjk_terms = dict.fromkeys(run[: _LONGEST_PHRASE + 1] for run in islice(self._cjk, _MOST_TERMS))
        terms = QueryTerms(frozenset(islice(self._phrases, _MOST_TERMS)), tuple(cjk_terms))
        return MatchExpression(
            text, terms, tuple(self._dropped), self._shortened, tuple(self._atoms), self._any_will_do
        )

    def _render(self, tree: QueryTree, any_word: bool, drop: bool, ahead: tuple[Operand | None, bool]) -> str:
        match tree:
            case Raw(expression):
                if (
                    len(self.tokenizer.words(expression)) > _MOST_RAW_WORDS
                    or expression.count("*") > _MOST_RAW_PREFIXES
                ):
                    raise QueryError(
                        f"An FTS5 expression may have {_MOST_RAW_WORDS} words and {_MOST_RAW_PREFIXES} prefixes at "
                        "most.",
                        hint="Shorten it, or remove the single quotes around the query to search for its words.",
                    )
                self._show_words(expression)
                self._any_will_do = False
                return expression
            case Bag(operands):
                return self._bag(operands, any_word, drop, ahead)
            case Not():
                return self._not(tree, any_word, drop, ahead)
            case And() | Or():
                rendered = [part for side in _chain(tree) if (part := self._render(side, any_word, drop, ahead))]
                parts = list(dict.fromkeys(rendered))
                self._any_will_do &= isinstance(tree, Or) or len(parts) < 2
                return (" AND " if isinstance(tree, And) else " OR ").join(f"({part})" for part in parts)

    def _not(self, tree: Not, any_word: bool, drop: bool, ahead: tuple[Operand | None, bool]) -> str:
        keep, *drops = _chain(tree)
        kept = self._render(keep, any_word, drop, ahead)
        shown = dict(self._phrases), dict(self._cjk), list(self._atoms)
        dropped = [part for side in drops if (part := self._render(side, any_word, False, ahead))]
        self._phrases, self._cjk, self._atoms = shown  # terms after NOT are not highlighted
        self._any_will_do &= not dropped
        unwanted = (
            dropped[0] if len(dropped) == 1 else " OR ".join(f"({part})" for part in dropped)
        )  # a chain of NOTs would nest
        return f"({kept}) NOT ({unwanted})" if kept and dropped else kept

    def _bag(
        self, operands: tuple[Operand, ...], any_word: bool, drop: bool, ahead: tuple[Operand | None, bool]
    ) -> str:
        silent = [drop and isinstance(operand, Word) and is_stop_word(_bare(operand.text)) for operand in operands]
        telling = [operand for operand, is_silent in zip(operands, silent, strict=True) if not is_silent]
        if telling:
            self._dropped += [operand.text for operand, is_silent in zip(operands, silent, strict=True) if is_silent]
        if len(telling) > _MOST_TERMS:
            telling = self._fewer(telling, any_word)
        last, type_ahead = ahead
        parts: _Parts = {}
        for operand in telling or operands:
            half_typed = operand is last and self._may_be_half_typed(operand, type_ahead)
            for expression, atoms in self._operand(operand, any_word, half_typed).items():
                if expression in parts:
                    continue
                cost = sum(atom.terms * (_REPEATED if atom in self._seen else 1) for atom in atoms)
                if cost > self._room:
                    self._shortened = True
                    continue
                self._room -= cost
                self._seen.update(atoms)
                parts[expression] = atoms
        self._atoms.extend(chain.from_iterable(parts.values()))
        self._any_will_do &= any_word or len(parts) < 2
        return (" OR " if any_word else " AND ").join(parts)

    def _fewer(self, operands: list[Operand], any_word: bool) -> list[Operand]:
        """Shortens a long query, such as a pasted page: each word once; if any word will do, only indexed words."""
        distinct = list({(type(operand), operand.text): operand for operand in operands}.values())
        self._shortened = True
        known = self._occurring(distinct) if any_word else distinct
        return (known or distinct)[:_MOST_TERMS]

    def _occurring(self, operands: list[Operand]) -> list[Operand]:
        words = {operand: self.tokenizer.words(operand.text) for operand in operands}
        known = self.words.known(set(chain.from_iterable(words.values())))
        return [operand for operand in operands if cjk.has_cjk(operand.text) or not known.isdisjoint(words[operand])]

    def _operand(self, operand: Operand, any_word: bool, half_typed: bool) -> _Parts:
        match operand:
            case Phrase(text):
                return self._phrase(text)
            case Prefix(text):
                return self._prefix(text)
            case Word(text) if half_typed:
                return self._prefix(text)
            case Word(text):
                return self._word(text, any_word)

    def _word(self, text: str, any_word: bool) -> _Parts:
        if self.korean_analysis == "morphemes" and cjk.has_cjk(text):
            return self._morphemes(text)
        parts: _Parts = {}
        runs = cjk.runs(text)
        for number, run in enumerate(runs):
            if run.script == "other":
                parts |= self._latin(run.text, any_word)
            elif run.script == "hangul" and number == len(runs) - 1 > 0 and korean.is_particle(run.text):
                continue  # the particle of a Latin word, as in kubernetes는
            else:
                parts |= self._cjk_run(
                    korean.strip_particle(run.text) if run.script == "hangul" else run.text, any_word
                )
        return parts

    def _latin(self, text: str, any_word: bool) -> _Parts:
        """Returns the parts of Latin text. user-agent is one phrase if every word must occur, otherwise two words."""
        if any_word:
            self._show_words(text)
            return _parts(*map(Atom, self.tokenizer.words(text)))
        return self._exact(text)

    def _exact(self, text: str) -> _Parts:
        """Returns the text as one phrase, cut if it is too long; empty if the text has no word."""
        words = self._cut(self.tokenizer.words(text))
        if not words:
            return {}
        self._phrases[tuple(self.tokenizer.stems(text)[:_LONGEST_PHRASE])] = None
        return _parts(Atom(" ".join(words), terms=len(words)))  # words only, so that "the," and "(the" are equal

    def _cut(self, phrase: list[str]) -> list[str]:
        self._shortened |= len(phrase) > _LONGEST_PHRASE
        return phrase[:_LONGEST_PHRASE]

    def _show_words(self, *texts: str) -> None:
        self._phrases.update(((stem,), None) for text in texts for stem in self.tokenizer.stems(text))

    def _cjk_run(self, run: str, any_word: bool) -> _Parts:
        self._cjk[run] = None
        if len(run) == 1:
            return _parts(Atom(run, in_cjk=True, is_beginning=True))  # matches pairs that begin with it too
        pairs = cjk.pairs(run)
        return _parts(*(Atom(pair, in_cjk=True) for pair in pairs)) if any_word else self._in_a_row(pairs)

    def _in_a_row(self, terms: list[str]) -> _Parts:
        terms = self._cut(terms)
        return _parts(Atom(" ".join(terms), in_cjk=True, terms=len(terms)))

    def _morphemes(self, text: str) -> _Parts:
        forms = list(korean.morphemes(text))
        for form in forms:
            if cjk.has_cjk(form):
                self._cjk[form] = None
            else:
                self._show_words(form)
        return _parts(*(Atom(form, in_cjk=cjk.has_cjk(form)) for form in forms))

    def _phrase(self, text: str) -> _Parts:
        if not cjk.has_cjk(text):
            return self._exact(text)
        runs = _runs_of(text)
        if self.korean_analysis == "bigrams" and runs and all(run.script != "other" for run in runs):
            return self._cjk_phrase(runs)
        # Latin words and CJK terms are in different columns, so FTS5 cannot check their order: every part must occur.
        parts: _Parts = {}
        for word in text.split():
            more = parts | self._word(word, any_word=False)
            if sum(atom.terms for atom in chain.from_iterable(more.values())) > self._room:
                self._shortened = True
                break
            parts = more
        self._any_will_do &= len(parts) < 2
        return {f"({' AND '.join(parts)})": tuple(chain.from_iterable(parts.values()))} if parts else {}

    def _cjk_phrase(self, runs: list[cjk.Run]) -> _Parts:
        """Returns a phrase in the form of the column `cjk`: the pairs of each run, then its last character. The last
        run goes without that character, so that longer runs match too.
        """
        terms: list[str] = []
        for run in runs:
            terms += cjk.pairs(run.text) + ([run.text[-1]] if len(run.text) > 1 else [])
        if len(runs[-1].text) > 1:
            terms.pop()
        self._cjk.update(dict.fromkeys(run.text for run in runs))
        return self._in_a_row(terms)

    def _prefix(self, text: str) -> _Parts:
        if cjk.has_cjk(text):
            return self._word(text, any_word=False)  # its pairs also match longer words
        words = self.tokenizer.words(text)
        if not words:
            return {}
        *before, beginning = words
        found = self.words.expand(beginning)[: max(0, self._room - len(words))]
        self._show_words(*words, *found)
        widened = _parts(*map(Atom, (beginning, *found)))
        return _parts(*map(Atom, before)) | {f"({' OR '.join(widened)})": tuple(chain.from_iterable(widened.values()))}

    def _may_be_half_typed(self, operand: Operand | None, type_ahead: bool) -> bool:
        if not isinstance(operand, Word) or cjk.has_cjk(operand.text):
            return False
        words = self.tokenizer.words(operand.text)
        if not words or len(words[-1]) < _SHORTEST_GUESS:
            return False
        return type_ahead or not self.words.known({words[-1]})


def _parts(*atoms: Atom) -> _Parts:
    return {str(atom): (atom,) for atom in atoms}


def _runs_of(text: str) -> list[cjk.Run]:
    """The runs (text of one script each) of all words, without the punctuation between them."""
    return [run for word in re.findall(r"\w+", text) for run in cjk.runs(word)]


def _chain(tree: And | Or | Not) -> list[QueryTree]:
    """The operands of a chain of one operator, without repetitions: a and b for a AND b AND b. Nested, a long chain
    would overflow FTS5's parser, and FTS5 would rank each repetition again.
    """
    sides: list[QueryTree] = []
    node: QueryTree = tree
    while isinstance(node, type(tree)):
        node, right = node
        sides.append(right)
    sides = list(dict.fromkeys(reversed(sides)))
    return [node, *(side for side in sides if isinstance(tree, Not) or side != node)]


def _last_operand(tree: QueryTree) -> Operand | None:
    while not isinstance(tree, Bag):
        match tree:
            case And(_, right) | Or(_, right):
                tree = right
            case _:
                return None
    return tree.operands[-1] if tree.operands else None


def _bare(word: str) -> str:
    return word.strip(".,;:!?()[]{}<>'`“”‘’…")


def _quoted(text: str) -> str:
    """The text as one quoted FTS5 string, whatever characters it has."""
    return '"' + whole_characters(text).replace('"', '""').replace("\0", " ") + '"'
