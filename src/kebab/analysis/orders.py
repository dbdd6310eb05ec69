"""Detects text that reads like orders to a program (prompt injection), so that it is shown with a flag. Only a hint.

First the text is normalised: invisible letters are removed, look-alikes replaced, and spaced letters joined to words.
Then each word becomes the letter of its class (`_ENGLISH`, `_KOREAN`). An order is a pattern of such letters within one
sentence: who is addressed, and what is demanded. To detect a new wording, add its words to a class. Every pattern is
bounded, because the text may be hostile and the cost must grow only with its length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache, partial
from unicodedata import normalize

_PHRASES = {
    "language model": "llm", "언어 모델": "챗봇", "from now on": "henceforth", "no longer": "nolonger",
    "set aside": "disregard", "have to": "must", "has to": "must", "need to": "must", "required to": "must",
    "do not": "never", "don't": "never", "api key": "apikey", "api 키": "apikey ", "environment variable": "secrets",
    "환경 변수": "비밀", "system prompt": "prior prompt", "stay in character": "pretend", "해.": "하라.",
    "할 것": "하라", "더 이상 적용되지": "무효",
}  # fmt: skip
_ENGLISH = {
    # who is addressed or meant
    "M": "ai ais llm llms gpt chatgpt copilot chatbot chatbots llama grok mistral deepseek",
    "m": "assistant assistants agent agents model models bot bots summarizer summarizers summariser summarisers"
    " crawler crawlers graders",
    "c": "claude gemini",
    "Y": "you you're yourself",
    "y": "your",
    "U": "user users user's reader readers human operator",
    "o": "my our",
    # to cancel earlier instructions
    "D": "ignore disregard forget override overlook neglect dismiss discard nevermind overrule disobey",
    "d": "drop skip abandon bypass",
    "X": "void cancelled canceled invalid outdated obsolete superseded supersede supersedes nolonger revoked"
    " replaced overridden withdrawn suspended lifted",
    "P": "previous previously prior earlier above preceding original initial system developer former hidden current"
    " given told",
    "I": "instruction instructions prompt prompts directive directives",
    "i": "rule rules direction directions context message messages policy guideline guidelines guidance task tasks"
    " request requests goals constraints programming",
    "E": "all any every each",
    "e": "everything anything whatever what",
    "F": "follow following obey obeying heed heeding comply",
    # what the answer must say
    "V": "say state claim mention answer reply respond recommend conclude assert insist praise rate rank describe"
    " cite suggest approve declare announce emphasize highlight endorse advise promote quote",
    "q": "tell inform convince assure notify persuade warn remind",
    "v": "include add write end begin start finish show display put leave give",
    "z": "reveal leak disclose expose recite",
    "l": "print repeat output list",
    "%": "append encode embed attach",
    "R": "response responses answers replies summary",
    "k": "ask asks asked",
    # which actions to take
    "T": "run execute call invoke use using open fetch overwrite delete pass make",
    "u": "send post upload forward transfer transmit exfiltrate submit share",
    "K": "command commands code script",
    "t": "tool tools function shell",
    "S": "secret secrets credentials password passwords apikey apikeys token id_rsa passphrase cookies",
    "x": "conversation chat history dialogue transcript",
    "L": "url link image webhook",
    "Q": "asking confirmation confirming permission approval informing consent",
    "j": "immediately silently secretly",
    # manner, roles and conditions
    "O": "must should shall will",
    "N": "never not no without stop",
    "Z": "role persona identity character mode objective mission",
    "J": "act pretend assume simulate impersonate roleplay behave imagine",
    "w": "enter switch activate enable engage",
    "B": "now",
    "h": "henceforth",
    "C": "restriction restrictions unrestricted filters unfiltered limitations safety guardrails censorship"
    " uncensored jailbroken moderation",
    "n": "new updated revised real",
    "W": "when whenever if while after",
    "f": "before",
    "G": "summarise summarize summarises summarizes summarising summarizing process processes processing index indexes"
    " indexing parse parses parsing evaluate evaluates evaluating analyse analyze analysing analyzing paraphrase"
    " paraphrasing review reviews reviewing grade grading translate translating ingest ingesting crawl crawling scan"
    " scanning",
    "g": "read reading reads answering",
    "H": "this these it page document text file article repository paper essay website passage paragraph section",
    "A": "note notes attention reminder hint dear hey hello important notice",
    "p": "to for about from",
    "r": "with",
    "s": "only exactly nothing",
    "a": "please kindly always also then and just first instead",
    "b": "are is be as a an the",
}
_KOREAN = {
    "M": "인공지능 챗봇 챗gpt 에이아이 거대언어 클로드 제미나이 코파일럿",
    "m": "어시스턴트 에이전트 요약기 비서 모델",
    "Y": "당신 너는 너의 네가 너에게 네게 너희",
    "U": "사용자",
    "1": "무시 잊고 잊어 건너뛰 폐기 취소 버리",
    "4": "무효 폐기",
    "P": "이전 위의 앞의 앞서 앞선 지금까지 기존 받은 모든 시스템 원래 처음 주어 개발자 초기",
    "I": "지시 지침 프롬프트",
    "i": "명령 규칙 요청 작업 임무",
    "F": "따르",
    "V": "말하 말해 답하 답해 답변 대답 응답 추천 안내 알리 알려 적어 출력 소개 언급 명시 주장 전달 덧붙 작성 칭찬",
    "k": "묻지",
    "T": "실행 호출 전송 보내 덮어 넘기",
    "t": "도구",
    "S": "비밀 암호",
    "x": "대화 채팅",
    "L": "주소 링크 웹훅",
    "B": "이제 지금부터",
    "Z": "모드 역할",
    "G": "요약 처리 분석 읽는 읽을",
    "H": "문서 페이지",
    "n": "새로운",
    "!": "줘 주세요 주십시오",
    "p": "에게",
}
_KOREAN_ENDINGS = {
    "!": "라 하라 해라 세요 시오 어야 해야 아야",
    "&": "하고 잊고 뛰고",
    "N": "마세요 마라 마십시오 마시오 말고 말라",
    "2": "다고 라고",
    "3": "고만",
}

_Pattern = tuple[tuple[str, ...], str]
"""Parts that a text needs in order to match, and the regular expression, which is compiled only if they are there:
compiling takes long in a short process.
"""
_PART = re.compile(r"\([^)]*\)|\[\^[^]]*\]|\[([^]]*)\](?![?*{])|\[[^]]*\]|\{[^}]*\}|([A-Za-z0-9%&!])(?![?*{])|.")
_SHORT = str.maketrans({"~": "[^.]{0,8}", "_": "[^.]{0,2}", "/": "(?:^|(?<=[.,:a]))"})


def _patterns(*rows: str) -> tuple[_Pattern, ...]:
    """Builds patterns from rows of expressions. `~` stands for up to eight words of a sentence, `_` for at most two,
    and `/` for the beginning of a clause.

    The needed parts of a pattern are its letters and sets of letters that are not optional.
    """
    return tuple(
        (tuple(part[1] or part[2] for part in _PART.finditer(one) if part[1] or part[2]), one.translate(_SHORT))
        for row in rows
        for one in row.split()
    )


_TO_MACHINES = _patterns(
    # ignore earlier instructions
    r"D~[PEy]~I (?<![pO])D[^.o]{0,6}[PEyU][^.o]{0,4}i /d_[UyP]_[Ii] D_e~[PY] (?:[Py]{1,2}I|IP)~X NF~[Py]~[Ii]",
    r"[PYU]~[Ii]~(?:1[&!]|4) [Ii]_1[&!] [Ii]_FN (?:/|n)I:a*(?:V-|qb?U|D|h|YO) I:~2V!",
    # addressed to a machine, or to the reader of this text
    r"[AIi][pbE]*[Mm][^.:]{0,9}: /pb?[Mm][^.:]?[GgR][^.:]{0,4}: A[bE]*M, Mp_: WYb*M bbM,?YO YM~!",
    r"[Mm]m?-?b?[Gg]H~[OVvNq] W[Yb]{0,2}[GV]-?-?p?H~,[aN]*[Vvqzl] W[Yb]{0,2}g(?:-?-?p)?H~,[aN]*(?:[Vzl]|qb?U)",
    r"G_[Mm]~! M~2V! H_G~2V! M~O[aN]*[VqDF] (?:/|A[bE]*)M[:,]a*(?:YO)?N?[VvqTDzl]",
    r"(?:/|A[bE]*)m[:,]a*(?:YO)?(?:[VqDz]|N[Vqz]) /c[:,]a*(?:YO)?(?:V-|qb?U|D)",
    # play another role
    r"h,?(?:YO?)?(?:V[sE]|J) Yb[BX][^.p]{0,4}[MmZC] YB~[MmZ] B~Z~! yn[ZiI]b J~[Mm]~[NC] w_Z~(?:C|[vl]y)",
    # say something, or hide something from the user
    r"YO[aB]*qb?U Wb?Uk~,[aN]*V U~2V! 3V V(?:sr|rs) Na*[qV]b?U U_[kV]N NV~yR [zlq]~(?:[Py]{2,3}I|IYbP)",
    r"[zl]b?[Py]{1,3}I Y_N_?C PI_V!",
)
_TO_ANYBODY = _patterns(
    r"M~O m~O[aN]*[VqDF] /[aN]*[dD]~[yUP]~[Ii] [Py][Ii]~X yn[ZiI] J~N_[Ci] /qb?U O[aN]*[Vqz]~U YO[aN]*[Vq] N[Vq]_H",
    r"y[RV]O [vV]~[yE][RV] /[vV%l]~y[RV] /zb?S [zlq]~IYb /T~Kj T~NQ /[Tu][^.]{0,5}t[^.]{0,12}NQ T_y_t fY?[Vg],a*T",
    r"T~fYV fE-?t t_T~! [Mm]Oa*[Tg]~S /[Tu]~t~[xS] /%~[xU]~L /u~[xS] x~L~! S~L_?T! /[vTu]~SY",
)
"""Orders that documentation also gives to people. They are flagged, but `speaks_to_a_machine` ignores them."""
_TO_MACHINES_HIDDEN = _patterns(r"M m[,:] m~[OV] YO N[Vq] qb?U yR /V~[UHEx] 2V!")
"""Weaker patterns that count only in hidden text, which only a program reads."""
_MARKUP: tuple[_Pattern, ...] = (
    (("<|",), r"<\| ?[a-z_]+ ?\|>"),
    (("inst]", "system]", "시스템 메시지]"), r"\[/?(?:inst|system|시스템 메시지)\]"),
    (
        ("override", "instruction", "directive", "note", "message", "update", "prompt"),
        r"[\[{#]\W{0,4}(?:[a-z']+[ _])?(?:system|admin|ai|priority|hidden|assistant)[ _]"
        r"(?:override|instruction|directive|note|message|update|prompt)",
    ),
    (("##", "--"), r"[#-]{2} ?(?:end )?(?:system|instructions?|prompt) ?[#-]{2}"),
    (("<<sys", "<</sys"), r"<</?sys>>"),
    (
        ("system>", "assistant>", "instruction>", "instructions>", "tool_", "function_"),
        r"</?(?:system|assistant|instructions?|(?:tool|function)_(?:calls?|results?|response|output))>",
    ),
    (('"role"',), r"\"role\" ?: ?\"(?:system|developer)\" ?,\s{0,40}\"content\""),
    (('"tool_result"', "<invoke ", "<function_calls>"), r"\"type\" ?: ?\"tool_result\"|<invoke name=|<function_calls>"),
    (
        ("system:", "instruction:", "instructions:", "human:", "assistant:"),
        r"## *(?:system|instruction|human|assistant)s?:",
    ),
    (
        ("assistant:", "어시스턴트:"),
        r"\n[ >]{0,4}(?:human|user|사용자): [^\n]{1,500}\n\s{0,4}(?:assistant|어시스턴트):",
    ),
    (("end of ",), r"end of (?:the )?(?:context|document|input|prompt)\b[ -]{0,40}\n"),
    (("\nsystem:", "\n시스템:"), r"\n(?:system|시스템): (?=[^\n.]{0,200}(?:\buser\b|\byou\b|사용자))"),
)
"""Markup that imitates a new chat turn, a system message or a tool's answer."""
_PLACES = ("={", "=$", "=<", "=[", "=%7b", "=your_", "=user_", "=chat_")
_DATA = r"[^)\"'\s]{0,100}?=(?:\$?[{<\[]|%7b|(?:your|user|chat)_)"
_CARRIERS: tuple[_Pattern, ...] = (
    (_PLACES, r"!\[[^\[\]\n]{0,200}\]\([^)\s?]{0,200}\?" + _DATA),
    (_PLACES, r"<img[^<>]{0,200}?src=[\"'][^\"'\s?]{0,200}\?" + _DATA),
    (
        _PLACES,
        r"\]\([^)\s?]{0,200}\?"
        + _DATA
        + r"\{?[^)\s={]{0,40}?(?:token|secret|key|chat|conversation|history|password|대화)",
    ),
    (
        ("://",),
        r"(?:!\[[^\[\]\n]{0,200}\]\(|\n\[[^\[\]\n]{1,40}\]: ?)https?://[^)\s]{0,200}?[{<\[][^)\s]{0,20}?"
        r"(?:token|secret|chat|conversation|history|password|대화)",
    ),
)
"""Image or link addresses with placeholders that a model could fill with secrets."""
_HIDDEN: tuple[_Pattern, ...] = (
    (("<!--",), r"<!--((?:(?!<!--|-->).){0,2000})"),
    (("]: ", "]:#", "]:<"), r"\[[^\[\]\n]{0,40}\]: ?(?:#|<>) ?[(\"']([^\n]*)"),
    (
        ("display:", "visibility:", "font-size:", "opacity:", "color:", " hidden"),
        r"<[^<>]{0,100}(?:display: ?none|visibility: ?hidden|font-size: ?0|opacity: ?0|color: ?(?:white|#fff)|\shidden)"
        r"[^<>]{0,100}>([^<]*)",
    ),
)
"""Text that a rendered page hides, but a model reads."""
_IGNORABLE = "".join(
    map(chr, (0x34F, 0x115F, 0x1160, *range(0x180B, 0x180F), *range(0x200B, 0x200E), *range(0x2060, 0x2065), 0x3164))
) + "".join(map(chr, (*range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0)))
"""Characters without a shape (Default_Ignorable_Code_Point in Unicode)."""
_UNPLAIN: tuple[_Pattern, ...] = (
    (tuple("\u202d\u202e\u2066\u2067\u2068"), "."),
    (tuple(_IGNORABLE), f"[a-zA-Z가-힣][{_IGNORABLE}]+[a-zA-Z가-힣]"),
    (tuple("ᎠᎡᎢᎥᎪᎬᎳᎻᏀᏃᏆᏔᏙᏚᏞᏟᏢᏦᏧᏴꭺꭼꮃꮋꮐꮲꮶ"), "[a-zA-Z][Ꭰ-ᏽꭰ-ꮿ]|[Ꭰ-ᏽꭰ-ꮿ][a-zA-Z]"),
    (  # in capitals only: "System: Linux" is ordinary text
        ("SYSTEM", "ASSISTANT"),
        r"(?:^|[.!?>\]]\s|\n)\s{0,4}(?:SYSTEM|ASSISTANT)(?: (?:PROMPT|MESSAGE|NOTE))?:\s{1,4}"
        r"[A-Z가-힣]\w*(?:\s+\w+){2}",
    ),
)
"""Signs that normalising would remove: reversed writing, invisible or mixed-script letters, capitals."""
_UNSEEN = "[\U000e0100-\U000e01ef]{2}|(?:^|[^\U0001f3f4\U000e0020-\U000e007e])[\U000e0020-\U000e007e]"
"""Invisible writing: several variation selectors in a row, or tag characters outside of a flag emoji."""
_INVISIBLE = frozenset(_IGNORABLE) | frozenset(
    map(chr, (0xAD, *range(0x300, 0x370), 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2065, 0x206A)))
)
"""All characters that normalising removes: also accents, the soft hyphen, and direction controls."""
_LOOK_ALIKE = str.maketrans(
    "авсԁеһіјкӏмпорԛгѕтихуԝαβεηικνορτυχωօոսᴀʙᴄᴅᴇɢʜɪᴊᴋʟᴍɴᴏᴘʀᴛᴜᴠᴡʏᴢ",
    "abcdehijklmnopqrstuxywabenikvoptuxwonuabcdeghijklmnoprtuvwyz",
)
_MIXED = "[a-z][\u0370-\u058f\u1d00-\u1d2b]|[\u0370-\u058f\u1d00-\u1d2b][a-z]"
_SPACED = r"(?<![^\W_])[^\W\d_]([ ._-])[^\W\d_]\1[^\W\d_](?:\1[^\W\d_])+(?![^\W_])"
_LETTERS_APART = re.compile(r"[ ._-]\w[ ._-]\w[ ._-]\w")
_TOKEN = re.compile(r"https?://\S+|-?[a-z]+(?:['_][a-z]+)*|[^\W\da-z_]+|[,:]|[.!?;](?=\s|$)|\n\s*(?:\n|[-*+] )")
_compiled: Callable[[str], re.Pattern[str]] = cache(partial(re.compile, flags=re.DOTALL))
_MOST = 1 << 20
_PASSAGE = 8192


def reads_like_orders(text: str) -> bool:
    """Whether the first million characters give orders to a machine, or orders that documentation rarely gives."""
    found_in = _has_orders if len(text) <= _PASSAGE else _has_orders.__wrapped__
    return found_in(text[:_MOST], False)


def speaks_to_a_machine(text: str) -> bool:
    """Whether the text gives orders to a machine. Orders that documentation also gives to people do not count."""
    found_in = _has_orders if len(text) <= _PASSAGE else _has_orders.__wrapped__
    return found_in(text, True)


@lru_cache(maxsize=1 << 12)  # a server shows the same passages often, and checking ten takes as long as a search does
def _has_orders(text: str, to_machines_only: bool) -> bool:
    orders = _TO_MACHINES if to_machines_only else _TO_MACHINES + _TO_ANYBODY
    marks = _MARKUP if to_machines_only else _MARKUP + _CARRIERS
    if any(_found(_UNPLAIN, text)) or (
        not text.isascii() and max(text) > "\U000e0000" and _compiled(_UNSEEN).search(text)
    ):
        return True
    plain = _plain(text)
    return (
        any(_found(marks, plain))
        or _matches(_classes(plain), orders)
        or any(_matches(_classes(hidden[1]), _TO_MACHINES_HIDDEN) for hidden in _found(_HIDDEN, plain))
    )


def _found(patterns: Iterable[_Pattern], text: str) -> Iterator[re.Match[str]]:
    for parts, pattern in patterns:
        if any(map(text.__contains__, parts)):
            yield from _compiled(pattern).finditer(text)


def _plain(text: str) -> str:
    if "&#" in text:
        from html import unescape

        text = unescape(text)
    text = text.lower()
    if not text.isascii():
        text = normalize("NFKD", text)[: 4 * len(text)]  # Hangul becomes three letters, a ligature up to eighteen
        for letter in _INVISIBLE.intersection(text):
            text = text.replace(letter, "")
        text = normalize("NFKC", text).lower()
        folded = text.translate(_LOOK_ALIKE)
        text = folded if folded != text and _compiled(_MIXED).search(text) else text
    text = text.replace("*", "")
    return _compiled(_SPACED).sub(_joined, text) if _LETTERS_APART.search(text) else text


def _joined(letters: re.Match[str]) -> str:
    """The spaced letters joined to a word. A long result gets spaces around the words in it that have a class."""
    word = letters[0].replace(letters[1], "")
    known = sorted((one for one in _CLASS if len(one) > 1), key=len, reverse=True)
    return _compiled("|".join(known)).sub(r" \g<0> ", word) if 8 < len(word) < 400 else word


def _classes(plain: str) -> str:
    for phrase, word in _PHRASES.items():
        plain = plain.replace(phrase, word)
    return "".join(map(_class_of, _TOKEN.findall(plain)))


@lru_cache(maxsize=1 << 13)
def _class_of(token: str) -> str:
    if token[0] < "가":
        return _CLASS.get(token) or ("L" if token[:4] == "http" else "." if token[0] in ".!?;\n" else "-")
    stem = next((_CLASS[token[:size]] for size in (4, 3, 2) if token[:size] in _CLASS), "")
    sizes = (4, 3, 2, 1) if stem else (4, 3, 2)
    return stem + next((_ENDING[token[-size:]] for size in sizes if token[-size:] in _ENDING), "") or "-"


_CLASS = {
    word: letter for classes in (_ENGLISH, _KOREAN) for letter, words in classes.items() for word in words.split()
}
_CLASS |= {",": ",", ":": ":"}
_ENDING = {word: letter for letter, words in _KOREAN_ENDINGS.items() for word in words.split()}


def _matches(classes: str, orders: Iterable[_Pattern]) -> bool:
    present = set(classes)
    possible = [(needs, pattern) for needs, pattern in orders if not any(map(present.isdisjoint, needs))]
    return any(
        not any(map(found.isdisjoint, needs)) and _compiled(pattern).search(sentence)
        for sentence in (classes.split(".") if possible else ())
        for found in (set(sentence),)
        for needs, pattern in possible
    )
