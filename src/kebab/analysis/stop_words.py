"""Words that say nothing about what is looked for. Dropped from bare terms, never from phrases."""

from __future__ import annotations

ENGLISH = frozenset(
    """a about above after again against all also am an and any anyone anything are as at be because been before being below
    between both but by can cannot could did do does doing done down during each either else ever every few for from further
    get give go had has have having he her here hers herself him himself his how however i if in into is it its itself just
    let like make may me might mine more most much must my myself need neither no nor not now of off on once one only or
    other our ours ourselves out over own per please rather s same say shall she should show since so some such t tell than
    that the their theirs them themselves then there these they this those through thus to too under until up upon us use
    used using very via want was way we were what when where whether which while who whom whose why will with within without
    would yes yet you your yours yourself yourselves don doesn didn isn aren wasn won ve ll re d m""".split()
)

# Question words and bare verbs of questions; particles are taken off elsewhere.
KOREAN = frozenset(
    """무엇 무엇인가 무엇인가요 무엇인지 무엇일까 무엇입니까 무엇이며 무엇을 무엇이 뭐 뭔가요 뭐야 어떤 어떻게 어떠한 어느 왜 언제
    어디 어디서 어디에 어디에서 누구 누가 누구인가 누구인가요 몇 얼마나 대해 대한 대해서 관해 관한 위한 위해 통해 및 또는 그리고 그
    이 저 것 것은 것이 수 때 등 하는 한 할 하기 되는 된 있는 없는 있나 있나요 하나 하나요 할까 인가 인가요 알려줘 방법은 무슨""".split()
)


def is_stop_word(word: str) -> bool:
    return word.lower() in ENGLISH or word in KOREAN
