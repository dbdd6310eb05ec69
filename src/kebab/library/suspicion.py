"""Text in documentation that reads like orders to the program that reads it. It is quoted as it stands, with a flag, and never obeyed."""

from __future__ import annotations

import re
from functools import cache

from kebab.core.libraries import Library

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
        r"\b(?:reveal|print|output|repeat|leak|send)\b.{0,40}"
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


REMARK = "Some of this reads like orders to whoever reads it by machine. It is quoted from the documentation, and nothing more."


def reads_like_orders(text: str) -> bool:
    plain = " ".join(text.lower().split())  # an order may go on in the next line
    return any(any(word in plain for word in words) and _compiled(order).search(plain) is not None for words, order in _ORDERS)


def names_like_orders(library: Library) -> bool:
    """Of what a list of libraries shows."""
    return reads_like_orders(f"{library.title}\n{library.description}")


@cache
def _compiled(order: str) -> re.Pattern[str]:
    return re.compile(order)
