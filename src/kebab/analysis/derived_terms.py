"""The column `cjk` of a chunk: terms that are made in Python, because the word tokenizer cannot find them in the other
columns.
"""

from __future__ import annotations

from kebab.analysis import cjk, korean
from kebab.analysis.identifiers import inner_words


def cjk_column(korean_analysis: str, *texts: str, is_code: bool = False, note_terms: str = "") -> str:
    """What the word tokenizer leaves uncut in the other columns: CJK text, in title and headings too, and the
    identifiers of code; and what stands in no other column: the words of notes about the chunk's source and folders.
    """
    terms = _cjk_terms(korean_analysis, *texts)
    if is_code:
        terms += inner_words("\n".join(texts))
    if note_terms:
        terms.append(note_terms)
    return " ".join(terms)


def terms_of_note(korean_analysis: str, note: str) -> str:
    """Its plain words for the word tokenizer, and its CJK terms as those of any text."""
    return " ".join([cjk.without_cjk(note), *_cjk_terms(korean_analysis, note)])


def _cjk_terms(korean_analysis: str, *texts: str) -> list[str]:
    if not any(map(cjk.has_cjk, texts)):
        return []
    text = "\n".join(texts)
    return list(korean.morphemes(text) if korean_analysis == "morphemes" else cjk.column_terms(text))
