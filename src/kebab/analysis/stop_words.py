"""Words that say nothing about what a query is about. Dropped from bare terms, never from phrases."""

from __future__ import annotations

# Articles, pronouns, auxiliaries, question words, the commonest prepositions. Words such as all, only, before and
# between say little in prose but much in questions about code, so they are not stop words.
ENGLISH = frozenset(
    """a am an and are as at be been being but by can could d did didn do does doesn doing don for from had has have
    having he her hers him his how i if in into is isn it its ll m me might must my of on or our ours please re s shall
    she should so such t than that the their theirs them then there these they this those to too us ve was we were what
    when where which who whom whose why will with would you your yours""".split()
)

# Question words and bare verbs of questions. `korean` removes particles.
KOREAN = frozenset(
    """무엇 무엇인가 무엇인가요 무엇인지 무엇일까 무엇입니까 무엇이며 무엇을 무엇이 뭐 뭔가요 뭐야 어떤 어떻게 어떠한
    어느 왜 언제 어디 어디서 어디에 어디에서 누구 누가 누구인가 누구인가요 몇 얼마나 대해 대한 대해서 관해 관한 위한
    위해 통해 및 또는 그리고 그 이 저 것 것은 것이 수 때 등 하는 한 할 하기 되는 된 있는 없는 있나 있나요 하나 하나요
    할까 인가 인가요 알려줘 방법은 무슨""".split()
)


def is_stop_word(word: str) -> bool:
    return word.lower() in ENGLISH or word in KOREAN
