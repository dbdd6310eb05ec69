"""Text that reads like orders to the program that reads it. It is quoted as it stands, with a flag, and never obeyed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple
from unicodedata import normalize

_MACHINES = (
    r"(?:ais?|llms?|(?:large\s+)?language\s+models?|chatbots?|(?:ai\s+)?(?:assistants?|agents?|models?|tools?|bots?|readers?)"
    r"|(?:automatic\s+)?summari[sz]ers?|copilots?)"
)
_SAY = (
    r"(?:say|state|claim|tell|inform|mention|include|answer|reply|respond|add|recommend|write|output|print|assert|insist|pretend|conclude)"
)
"""What an answer is made with: a guide that asks for something else speaks to people."""
_TELLS = (
    r"(?:please\s+|kindly\s+)*(?:you\s+(?:must|should|have\s+to|will|need\s+to)\s+)?(?:(?:always|only|also|never|not|do\s+not|don't)\s+)?"
)
_SAYS_KOREAN = (
    r"(?:라고|다고|고)\s?(?:꼭\s|반드시\s|항상\s)?(?:말|답|대답|응답|답변|안내|전달|언급|명시|주장)"
    r"(?:하라|해라|하세요|하십시오|하시오|해\s?주세요|할\s?것)"
)


def _words(*lists: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(words.split()) for words in lists)


_DISMISS = "ignore disregard forget override"
_READS = "summarise summarize summarising summarizing process processing index indexing"
_MACHINE = "assistant assistants agent agents model models"


class _Order(NamedTuple):
    """In small letters: patterns for any case take long to compile. One that lacks a word cannot match and is not compiled at all, which
    would be a good part of the time that a process takes to answer and end.
    """

    needs: tuple[frozenset[str], ...]
    """One word of each."""
    pattern: str


_TO_MACHINES = (
    _Order(
        _words(_DISMISS, "instruction instructions prompt prompts"),
        r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|prior|above|earlier|all|any|your|system)\b.{0,30}"
        r"\b(?:instructions?|prompts?)\b",
    ),
    _Order(  # "to override all rules" tells what an option does, and "ignore my messages" is said among people
        _words(_DISMISS, "rule rules direction directions context message messages"),
        r"(?<!\bto )(?<!\bcan )(?<!\bmay )(?<!\bwill )(?<![-_])\b(?:ignore|disregard|forget|override)\b(?!.{0,40}\b(?:my|our)\b).{0,40}"
        r"\b(?:previous|prior|above|earlier|all|any|your|system)\b.{0,30}\b(?:rules?|directions?|context|messages?)\b",
    ),
    _Order(
        _words("follow following obey obeying heed heeding", "instruction instructions rule rules prompt prompts guidelines"),
        r"\b(?:do not|don't|stop|never)\s+(?:follow|obey|heed)(?:ing)?\s+(?:any\s+of\s+)?"
        r"(?:your|the\s+(?:previous|above|system|original))\s+(?:\w+\s+){0,2}(?:instructions?|rules?|prompts?|guidelines)\b",
    ),
    _Order(
        _words(
            "note notes message messages instruction instructions attention reminder hint",
            "ai ais llm llms model models chatbot chatbots assistant assistants",
        ),
        r"\b(?:notes?|messages?|instructions?|attention|reminder|hint)\s+(?:to|for)\s+(?:the\s+|any\s+|all\s+|every\s+)?"
        r"(?:ais?|llms?|(?:large\s+)?language\s+models?|chatbots?|assistants?|ai\s+\w+)\s*"
        r"(?:(?:that|who|which|reading|processing|summari[sz]ing|indexing|answering)\b[^.:]{0,60})?:",
    ),
    _Order(  # what it is to do when it summarises this
        _words(
            f"{_READS} answer answering paraphrase paraphrasing analyse analyze analysing analyzing describe describing",
            "this these above following",
            "when whenever if while before after case",
            "say state claim tell inform mention include answer reply respond add recommend write output print assert insist pretend"
            " conclude",
        ),
        r"\b(?:when(?:ever)?|if|while|before|after|in\s+case)\s+(?:you(?:'re|\s+are)?\s+|asked\s+to\s+)?"
        r"(?:summari[sz](?:e|ing)|paraphras(?:e|ing)|process(?:ing)?|analy[sz](?:e|ing)|index(?:ing)?|describ(?:e|ing)"
        r"|answer(?:ing)?\s+(?:(?:\w+\s+)?questions?\s+)?(?:about|from|based\s+on|with|using))\s+"
        r"(?:this|these|the\s+above|the\s+following)\b[^.]{0,60}?,\s*" + _TELLS + _SAY + r"\b",
    ),
    _Order(
        _words("read reading", "say state claim answer reply respond output print pretend tell", "when whenever if while"),
        r"\b(?:when(?:ever)?|if|while)\s+(?:you(?:'re|\s+are)?\s+)?read(?:ing)?\s+this\b[^.]{0,40}?,\s*"
        + _TELLS
        + r"(?:say|state|claim|answer|reply|respond|output|print|pretend|tell\s+(?:the\s+|any\s+|your\s+)?users?)\b",
    ),
    _Order(  # whoever reads this and is a machine
        _words(
            f"{_READS} reading reads processes summarises summarizes indexes parse parses parsing",
            f"{_MACHINE} ai ais llm llms chatbot chatbots tool tools bot bots reader readers copilot copilots"
            " summariser summarizer summarisers summarizers",
        ),
        r"\b" + _MACHINES + r"\s+(?:(?:that|who|which)\s+(?:is\s+|are\s+)?)?"
        r"(?:read(?:s|ing)?|process(?:es|ing)?|summari[sz](?:es?|ing)|index(?:es|ing)?|pars(?:es?|ing))\s+(?:this|these|it|the\s+above)\b"
        r".{0,80}\b(?:must|should|shall|please|always|never|" + _SAY[3:-1] + r"|ignore)\b",
    ),
    _Order(
        _words("now", "answer reply respond say pretend act"),
        r"\bfrom\s+now\s+on,?\s+" + _TELLS + r"(?:answer\s+(?:every|all|any|each)\b|(?:reply|respond)\s+(?:only|with|in|as|to\s+every)\b"
        r"|say\s+that|pretend|act\s+as)\b",
    ),
    _Order(
        _words("ask asks", "user users"),
        r"\b(?:if|when(?:ever)?)\s+(?:a|the|any)?\s*users?\s+asks?\b[^.]{0,80},\s*"
        + _TELLS
        + r"(?:say|claim|state|answer|reply|respond)\b",
    ),
    _Order(
        _words("instruction instructions", "that tell ignore now must"),
        r"(?:^|[.!?:;#>]\s|\b(?:new|updated|revised|real|hidden)\s)instructions?\s*:\s*(?:please\s+)?"
        r"(?:(?:say|claim|state|answer|reply|respond)\s+that|tell\s+(?:the\s+)?users?|ignore|from\s+now\s+on|you\s+(?:must|are\s+now))\b",
    ),
    _Order(
        _words("tell inform convince assure", "user users", "must have"),
        r"\byou\s+(?:must|have\s+to)\s+(?:always\s+|now\s+)?(?:tell|inform|convince|assure)\s+(?:the|any|every)\s+users?\s+(?:that|to)\b",
    ),
    _Order(
        _words("as if", "model ai llm chatbot", "you say tell answer reply respond ignore claim state"),
        r"\b(?:as|if\s+you(?:'re|\s+are))\s+(?:a|an)\s+(?:(?:large\s+)?language\s+model|ai(?:\s+(?:assistant|model|agent))?|llm|chatbot)"
        r"(?:,?\s+you\s+(?:must|should|have\s+to|are|will)|,\s*(?:please\s+)?(?:say|tell|answer|reply|respond|ignore|claim|state))\b",
    ),
    _Order(
        _words("chatgpt gpt copilot claude gemini ai", "that tell ignore"),
        r"(?:^|[.!?:;>)\]]\s|\b(?:dear|hey|hello)\s)(?:chatgpt|gpt(?:-\w+)?|copilot|claude|gemini|ai)\s*[,:]\s*(?:please\s+)?"
        r"(?:you\s+(?:must|should)\s+)?(?:(?:say|claim|state|answer|reply|respond|write)\s+that|tell\s+(?:the\s+)?users?|ignore)\b",
    ),
    _Order(
        _words("answer else", "when whenever whatever"),
        r"\bwhen(?:ever)?\s+you\s+answer,\s+(?:always\s+)?(?:say|claim|state)\b|\bwhatever\s+else\s+you\s+(?:read|find|see|are\s+told)\b",
    ),
    _Order(
        _words(_DISMISS, "everything anything all whatever what"),
        r"\b(?:ignore|disregard|forget)\s+(?:everything|anything|all|whatever|what)\b(?:\s+that)?"
        r"(?:\s+(?:is|was|were|has been|have been))?\s+"
        r"(?:above|before|so far|you\s+(?:were|have been|are|know)|said|written)\b",
    ),
    _Order(
        _words(
            "assistant assistants chatbot chatbots model models llm llms",
            "tell say answer reply respond inform write claim ignore do don",
        ),
        r"(?:^|[.!?:;>)\]]\s|\b(?:dear|attention|note to|hey|hello)\s+(?:the\s+|all\s+|any\s+)?)"
        r"(?:ai\s+)?(?:assistants?|chatbots?|language models?|llms?)\s*[,:]\s*(?:please\s+)?(?:you\s+(?:must|should)\s+)?"
        r"(?:tell|say|answer|reply|respond|inform|write|claim|ignore|do not|don't)\b",
    ),
    _Order(
        _words("reply respond answer", "with"),
        r"\b(?:reply|respond|answer)\s+(?:only\s+with|with\s+only|with\s+nothing\s+but|exactly\s+with)\b",
    ),
    _Order(_words("now", "assistant agent model mode ai dan"), r"\byou are now\b.{0,60}\b(?:assistant|agent|model|mode|ai|dan)\b"),
    _Order(_words("tell inform", "user"), r"\b(?:do\s+not|don't|never)\s+(?:tell|inform)\s+(?:the\s+)?user\b"),
    _Order(
        _words(_MACHINE, "ai llm language coding", "must should have required"),
        r"\b(?:ai|llm|language\s+model|coding)\s+(?:assistants?|agents?|models?)\b.{0,60}"
        r"\b(?:must|should|have\s+to|are\s+required\s+to)\s+(?:(?:always|also|never|not|only|now)\s+)?(?:"
        + _SAY[3:-1]
        + r"|ignore|disregard|treat|assume|obey|follow)\b",
    ),
    _Order(
        _words("system assistant instruction instructions tool_call function_call function_calls"),
        r"<\s*/?\s*(?:system|assistant|instructions?|tool_call|function_calls?)\s*>",
    ),
)
# By parts of words: a Korean word is written as one with what follows it, and marks are no words.
_TO_MACHINES_BY_PARTS = (
    (
        "<|",
        r"<\|\s*(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|eot_id)\s*\|>",
    ),
    (
        "[inst [/inst [system [/system",
        r"\[/?(?:inst|system)\]",
    ),
    (
        "무시 잊",
        r"(?:이전|위의|앞의|앞선|모든|지금까지|기존|받은).{0,20}(?:지시|명령|지침|규칙|프롬프트|내용).{0,15}(?:무시(?:하|해|할)|잊)",
    ),
    (
        "지시 명령 지침",
        r"(?:지시|명령|지침|프롬프트)(?:를|은|을|들을|사항을)?\s?(?:모두|전부|다)?\s?(?:무시(?:하고|해|하라|하세요|하십시오)|잊(?:고|어))",
    ),
    (
        "지시 명령 지침 프롬프트",
        r"(?:너의|네|당신의)\s?(?:지시|명령|지침|규칙|프롬프트)[^.]{0,8}(?:잊|무시|따르지)",
    ),
    (
        "에게",
        r"(?:ai|llm|gpt|인공지능|챗봇|언어\s?모델|어시스턴트)에게\s?:",
    ),
    (
        "지시 명령 지침",
        r"새(?:로운)?\s(?:지시|명령|지침)(?:사항)?\s?:[^.]{0,80}(?:라고|다고)\s?(?:말|답|대답|응답)(?:하|해)",
    ),
    ("사용자에게", r"사용자에게[^.]{0,60}(?:라고|다고)\s?(?:알려라|말해라|답해라|대답해라|말하라|답하라|대답하라|전하라)"),
    (
        "요약 읽 답변 정리 처리 분석",
        r"(?:이|본|위)\s?(?:문서|글|페이지|노트|메모|내용|메일|파일|자료)[을를은는에]?\s?[^.]{0,15}(?:요약|정리|읽|답변|처리|분석)"
        r"[^.]{0,15}(?:때|면|경우|땐)[^.]{0,100}" + _SAYS_KOREAN,
    ),
    (
        "하라 해라 하세요 하십시오 하시오 주세요 할",
        r"(?:어시스턴트|챗봇|인공지능|언어\s?모델|요약기|(?<![a-z])ai)(?:[은는야께]|에게|\s?[,:])[^.]{0,100}" + _SAYS_KOREAN,
    ),
    (
        "답하 말하 답변",
        r"(?:이?라고만)\s?(?:답하|말하|답변하|대답하)",
    ),
)
# In capitals only: System: Linux is said every day.
_AS_SYSTEM = r"(?:^|[.!?>\]]\s|\n)\s*(?:SYSTEM|ASSISTANT)(?:\s(?:PROMPT|MESSAGE|NOTE))?:\s+[A-Z가-힣]\w*(?:\s+\w+){2}"
# What documentation tells people too: worth a flag, and no reason to believe nothing of what stands beside it.
_TO_ANYBODY = (
    _Order(  # a rule for those who use them says that as well
        _words(_MACHINE, "ai llm language coding", "must should have required"),
        r"\b(?:ai|llm|language\s+model|coding)\s+(?:assistants?|agents?|models?)\b.{0,60}"
        r"\b(?:must|should|have\s+to|are\s+required\s+to)\b",
    ),
    _Order(
        _words("reveal print output repeat leak send", "prompt instruction instructions key keys credentials secret secrets variables"),
        r"\b(?:reveal|print|output|repeat|leak|send)\b(?!:).{0,40}"  # Output: introduces an example
        r"\b(?:system\s+prompt|hidden\s+instructions?|api\s+keys?|credentials|secrets?|environment\s+variables)\b",
    ),
    _Order(
        _words("run execute", "command script code"),
        r"\b(?:run|execute)\s+this\s+(?:shell\s+|terminal\s+)?(?:command|script|code)\b",
    ),
    _Order(
        _words("run execute", "immediately now without"),
        r"\b(?:run|execute)\s+the\s+following\s+(?:shell\s+)?commands?\b.{0,40}\b(?:immediately|now|without\s+asking)\b",
    ),
)

_WORD = re.compile(r"\w+")
_UNDERSCORES = re.compile("_+")
_UNSEEN = dict.fromkeys((0x00AD, *range(0x200B, 0x2010), *range(0x2060, 0x2065), 0xFEFF))


def reads_like_orders(text: str) -> bool:
    plain = _plain(text)
    return _speaks_to_a_machine(text, plain) or _has_one(_TO_ANYBODY, plain)


@lru_cache(maxsize=1 << 8)
def speaks_to_a_machine(text: str) -> bool:
    """Without what a guide tells people every day, such as to run this command."""
    return _speaks_to_a_machine(text, _plain(text))


def _speaks_to_a_machine(text: str, plain: str) -> bool:
    return _has_one(_TO_MACHINES, plain) or _has_one_by_parts(plain) or _speaks_as_system(text)


def _speaks_as_system(text: str) -> bool:
    return ("SYSTEM" in text or "ASSISTANT" in text) and _matches(_AS_SYSTEM, text)


def _plain(text: str) -> str:
    """In one line: an order may go on in the next."""
    return " ".join(_unadorned(text).lower().split())


def _has_one(orders: Iterable[_Order], plain: str) -> bool:
    words = frozenset(_WORD.findall(plain))
    return any(not any(map(words.isdisjoint, order.needs)) and _matches(order.pattern, plain) for order in orders)


def _has_one_by_parts(plain: str) -> bool:
    return any(any(map(plain.__contains__, parts.split())) and _matches(pattern, plain) for parts, pattern in _TO_MACHINES_BY_PARTS)


def _unadorned(text: str) -> str:
    """As a model reads it: without emphasis, letters that are not seen, and wide or otherwise dressed letters."""
    if not text.isascii():
        text = normalize("NFKC", text).translate(_UNSEEN)
    return _UNDERSCORES.sub(_inside_a_word, text.replace("*", ""))


def _inside_a_word(underscores: re.Match[str]) -> str:
    """tool_call keeps its underscore, and _emphasis_ does not."""
    text, start, end = underscores.string, underscores.start(), underscores.end()
    return underscores[0] if text[start - 1 : start].isalnum() and text[end : end + 1].isalnum() else ""


def _matches(pattern: str, text: str) -> bool:
    return _compiled(pattern).search(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
