"""Text that reads like orders to the program that reads it. It is quoted as it stands, with a flag, and never obeyed."""

from __future__ import annotations

import re
from functools import cache
from unicodedata import normalize

# Words without which there is no such order, and the order. In small letters: patterns for any case take long to compile, and those
# whose words do not occur need not be compiled at all.
_ORDERS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("ignore", "disregard", "forget", "override"),
        r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|prior|above|earlier|all|any|your|system)\b.{0,30}"
        r"\b(?:instructions?|prompts?|rules?|directions?|context|messages?)\b",
    ),
    (("you are now",), r"\byou are now\b.{0,60}\b(?:assistant|agent|model|mode|ai|dan)\b"),
    ((" user",), r"\b(?:do\s+not|don't|never)\s+(?:tell|inform)\s+(?:the\s+)?user\b"),
    (
        ("assistant", "agent", "model"),
        r"\b(?:ai|llm|language\s+model|coding)\s+(?:assistants?|agents?|models?)\b.{0,60}"
        r"\b(?:must|should|have\s+to|are\s+required\s+to)\b",
    ),
    (
        ("system prompt", "hidden instruction", "api key", "credentials", "secret", "environment variables"),
        r"\b(?:reveal|print|output|repeat|leak|send)\b(?!:).{0,40}"  # Output: introduces an example
        r"\b(?:system\s+prompt|hidden\s+instructions?|api\s+keys?|credentials|secrets?|environment\s+variables)\b",
    ),
    (
        ("run this", "execute this"),
        r"\b(?:run|execute)\s+this\s+(?:shell\s+|terminal\s+)?(?:command|script|code)\b",
    ),
    (
        ("run the following", "execute the following"),
        r"\b(?:run|execute)\s+the\s+following\s+(?:shell\s+)?commands?\b.{0,40}\b(?:immediately|now|without\s+asking)\b",
    ),
    (("<",), r"<\s*/?\s*(?:system|assistant|instructions?|tool_call|function_calls?)\s*>"),
    (("[inst", "[/inst", "[system", "[/system"), r"\[/?(?:inst|system)\]"),
    (("무시", "잊"), r"(?:이전|위의|앞의|모든).{0,20}(?:지시|명령|지침|프롬프트).{0,15}(?:무시|잊)"),
)

_EMPHASIS = re.compile(r"[*]+|(?<![^\W_])_+|_+(?![^\W_])")
"""tool_call keeps its underscore."""
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")


def reads_like_orders(text: str) -> bool:
    plain = " ".join(_unadorned(text).lower().split())  # an order may go on in the next line
    return any(any(word in plain for word in words) and _compiled(order).search(plain) is not None for words, order in _ORDERS)


def _unadorned(text: str) -> str:
    """As a model reads it: without emphasis, letters that are not seen, and wide or otherwise dressed letters."""
    if not text.isascii():
        text = _UNSEEN.sub("", normalize("NFKC", text))
    return _EMPHASIS.sub("", text) if "*" in text or "_" in text else text


@cache
def _compiled(order: str) -> re.Pattern[str]:
    return re.compile(order)
