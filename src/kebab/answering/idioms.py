"""Replaces idioms and contractions by plain words: took part in, isn't, nobody but Ada."""

from __future__ import annotations

import re

_IDIOMS = tuple(
    (re.compile(rf"\b(?:{written})\b", re.IGNORECASE), plain)
    for written, plain in (
        (r"(?:takes?|taking|took|taken) part in", "join"),
        (r"(?:takes?|taking|took|taken) place", "happen"),
        (r"(?:makes?|making|made) sure", "ensure"),
        (r"(?:gets?|getting|got) rid of", "remove"),
        (r"(?:throws?|throwing|threw|thrown) (?:away|out)", "discard"),
        (r"(?:puts?|putting) off|(?:pushed|moved|pushes|moves) back", "postpone"),
        (r"(?:calls?|calling|called) off", "cancel"),
        (r"(?:gives?|giving|gave|given|brings?|bringing|brought) back", "return"),
        (r"(?:picks?|picking|picked) up", "collect"),
        (r"(?:fills?|filling|filled) (?:in|out)", "complete"),
        (r"(?:carr(?:y|ies|ied)|carrying) out", "perform"),
        (r"(?:hands?|handing|handed|turns?|turning|turned) in", "submit"),
        (r"free of charge|at no (?:extra )?(?:cost|charge)|for free", "free"),
        (r"(?:logs?|logging|logged|signs?|signing|signed) (?:in|on)(?:to)?", "login"),
        (r"by hand", "manually"),
        (r"shut(?:s|ting)? down", "switch off"),
        (r"no one", "nobody"),
    )
)
"""Idioms of several words, and the one word with their meaning."""
_EXCEPT = r"(?:except|but)"
_REWRITTEN = tuple(
    (re.compile(written, re.IGNORECASE), plain)
    for written, plain in (
        (r"\bcan['’]t\b", "cannot"),
        (r"\bwon['’]t\b", "will not"),
        (r"\bshan['’]t\b", "shall not"),
        (r"\b(\w+)n['’]t\b", r"\1 not"),
        (r"\bno longer(?! than)\b|\bnot (?=\w+ (?:\w+ )?any ?more\b)", "not "),
        (r"\b(?:apart from|aside from|with the exception of|except(?:ing)? for|other than|save for)\b", "except"),
        (r"\ball but (?=the\b|[A-Z])", "all except "),
        # nobody except Ada: only Ada
        (rf"\b(?:nobody|none|nothing)\s+{_EXCEPT}\s+", "only "),
        (rf"((?:^|[.;])\s*)no\s+[\w-]+\s+{_EXCEPT}\s+(?!(?:on|in|at|for|during)\b)", r"\1only "),
        (r"((?:^|[.;])\s*)nobody\s+([^.,;]+?)\s+except\s+([^.,;]+)", r"\1only \3 \2"),
    )
)


def in_plain_words(text: str) -> str:
    for written, plain in (*_IDIOMS, *_REWRITTEN):
        text = written.sub(plain, text)
    return text
