"""The kinds of things that questions ask for (a person, a time, an amount, a reason, …), and patterns for each. A text
that has nothing of the kind cannot answer; one that has may still be about something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from functools import cache


class Kind(Enum):
    """A kind of thing; its value says what is missing if there is none."""

    PERSON = "who"
    TIME = "when"
    PLACE = "where"
    REASON = "why"
    MONEY = "how much it costs"
    DURATION = "how long"
    FREQUENCY = "how often"
    AMOUNT = "how much or how many"
    TEMPERATURE = "how warm"
    WEIGHT = "how heavy"
    LENGTH = "how far"
    PHONE = "the number to call"
    SECRET = "the password itself"
    NAME = "what it is called"
    STEPS = "how it is done"
    INSTANCE = "which one"
    MEANING = "what it is"
    YES_OR_NO = "whether it is so"


_COUNTED = (
    r"(?:\d[\d,.]*|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|ninety"
    r"|hundred|thousand|million|half|several|few)"
)
_COUNTED_KOREAN = r"(?:\d[\d,.]*\s?[만억천백]?|[한두세네반]|다섯|여섯|일곱|여덟|아홉|열[가-힣]?|스무|스물|[일이삼사오육칠팔구십백천만]+)"
_SPAN = r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|quarters?|years?|nights?)"
_SPAN_KOREAN = r"(?:초|분|시간|일|주|개월|달|년|박)"
MONTH = "(?:january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|aug|sept?|oct|nov|dec)"
WEEKDAY = "(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekends?|weekdays?)"
CURRENCY = "(?:eur|usd|krw|gbp|euros?|dollars?|pounds?|cents?|pence|francs?|chf|crowns?|nok|sek|dkk|yen|jpy|cny|won)"
_SECRETS = "(?:password|passphrase|passcode|pin|비밀번호|암호|패스워드)"

_PATTERNS = {
    Kind.TIME: (
        r"\b(?:19|20)\d\d\b|\b(?:in|since|of|by|from|until|as early as|around|about)\s1\d{3}\b",
        rf"\b(?:{MONTH}|{WEEKDAY})\b",
        r"\b\d{1,2}:\d\d|\b\d{1,2}\s?(?:am|pm|o['’]clock)\b|\b\d{1,2}(?:st|nd|rd|th)\b",
        r"\b(?:every|each|daily|weekly|monthly|yearly|annually|today|tomorrow|yesterday|tonight|morning|evening|noon|midnight|nightly)\b",
        r"\b(?:spring|summer|autumn|winter|christmas|easter|quarter)\b",
        r"\b(?:first|second|third|fourth|last|next)\s(?:\w+\s)?(?:day|week|weekend|month|quarter|year)\b",
        r"\d\s?[년월일시]|[월화수목금토일]요일|매[일주월년달]|오전|오후|작년|내년|올해|어제|오늘|내일|아침|저녁|주말|평일|[첫둘셋넷]째",
    ),
    Kind.DURATION: (
        rf"\b{_COUNTED}[\s-]*(?:\w+\s)?{_SPAN}\b|\b\d+(?:ms|s|m|h|d)\b|\b\d+\s(?:ms|s|h)\b|\b(?:forever|until|indefinitely)\b|\btime\.(?:Second|Minute|Hour)",
        rf"{_COUNTED_KOREAN}\s?{_SPAN_KOREAN}|까지",
    ),
    Kind.TEMPERATURE: (r"°|\d\s?(?:degrees?|celsius|c|f)\b|\d\s?도",),
    Kind.WEIGHT: (
        rf"\b{_COUNTED}\s?(?:kg|g|mg|kilos?|kilograms?|grams?|tons?|tonnes?|lbs?|ounces?)\b|\d\s?(?:킬로|그램|톤)",
    ),
    Kind.LENGTH: (
        rf"\b{_COUNTED}[\s-]?(?:[mck]?m|metres?|meters?|miles?|kilomet\w+|inch\w*|feet|ft|characters?|lines?|pages?|bytes?)\b",
        r"\d\s?(?:미터|킬로|센티|자)",
    ),
    Kind.FREQUENCY: (
        r"\b(?:every|each|once|twice|per|daily|weekly|monthly|yearly|hourly|annual|annually|nightly|always|never|times)\b",
        rf"\ban?\s{_SPAN}\b|마다|매[일주월년달]|{_COUNTED_KOREAN}\s?[번회]|(?:하루|한 달|일주일|일 년)에",
    ),
    Kind.MONEY: (
        rf"\b(?:prices?|costs?|fees?|rent|salary|premium|amounts?|paid|spent|{CURRENCY})(?:\s(?:in\s)?{CURRENCY})?:\s?\d",
        r"(?:금액|가격|비용|요금):\s?\d",
        rf"[$€£¥₩]\s?\d|\d\s?(?:[$€£¥₩]|{CURRENCY}\b)|\b{_COUNTED}\s{CURRENCY}\b|\b(?:free|nothing|no charge)\b",
        rf"{_COUNTED_KOREAN}\s?[만천백억]?\s?원|\d\s?(?:달러|유로)|무료|공짜",
    ),
    Kind.AMOUNT: (
        r"(?<!§)(?<!§\s)\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|hundred|thousand|million|half)\b",
        r"\b(?:none|both|once|twice|several|unlimited)\b",
        rf"{_COUNTED_KOREAN}\s?(?:개|명|번|회|권|마리|살|대|층|잔|병|모|큰술|작은술|컵|인분|가지|곳|장|{_SPAN_KOREAN}|원|도|쪽|만|리터)",
    ),
    Kind.REASON: (
        r"\b(?:because|since|due to|owing to|thanks to|reasons?|causes?|caused|so that|in order to|therefore|hence|why|otherwise)\b",
        r"때문|이유|원인|까닭|므로|니까|위해|려고|[아어해여와져라워려혀]서\b",
    ),
    Kind.PHONE: (r"(?<![\d.])(?:\+\d{1,3}[\s./-]?)?\(?\d{2,5}\)?[\s./-]\d{3,}(?:[\s-]\d{2,})*(?!\d|\.\d)|\b\d{7,}\b",),
    Kind.SECRET: (
        rf"{_SECRETS}\s+[`\"“]\S|{_SECRETS}\W{{0,3}}(?:(?:is|was)\s+[\"“'`]?[\w!#$%-]*\d|(?:is|was)\s+[\"“'`]|[:=]\s*\S)|{_SECRETS}[은는]\s?(?:[\"“'`]\S|[A-Za-z\d])",
    ),
    Kind.NAME: (
        r"`[^`]+`|\"[^\"]+\"|“[^”]+”|‘[^’]+’|\*[^*]+\*|\b(?:called|named|names?)\b|이름|이?라고|부[르른]|불[러리린]|\|",
    ),
    Kind.PLACE: (
        r"\b(?:in|at|on|under|above|behind|beside|near|next to|inside|outside|between|opposite|from|to|into|via|through|below|beneath|by)\s"
        rf"(?!the (?:morning|evening|end|start|beginning)|(?:an?\s)?(?:hand|default|time|case|general|fact|order|{MONTH}|{WEEKDAY})\b|\d)",
        r"\b(?:north|south|east|west|left|right|upstairs|downstairs|here|there|home|abroad|floor|room|shelf|drawer|address|location)\b",
        r"https?://|[~.$\w]*/[\w.-]+|\b[\w-]+\.(?:md|txt|toml|ya?ml|json|conf|cfg|ini|py|sh|log|db|sqlite|csv|pdf|com|org|net|io|lan|local)\b",
        r"[가-힣](?<![시일월년분때후전주중])에(?:서|는|도)?(?![가-힣])|[가-힣](?<![일월년])으?로\s(?:가|오|나가|들어|이동|이사|옮)",
        r"[가-힣](?:역|층|동|호|길|곳|점|실|관|청|항|구역|센터|공원)(?![가-힣])|장소|위치|주소|[옆위앞뒤안]에",
    ),
    Kind.STEPS: (
        r"^\s*(?:\d{1,3}[.)]|[-*+])\s|`[^`]+`|^\s*`{3}|^\W*to [a-z]+ [^.]*, [a-z]+",
        r"^\W*(?:first |then |next |always |never )?(?:use|run|open|set|add|put|make|take|go|click|press|select|choose|install|create|start"
        r"|stop|enter|type|turn|switch|remove|delete|call|ask|send|write|copy|move|change|edit|update|check|wait|let|mix|bake|cook|heat|clean|hold|roll|log|sign)\b",
        r"[가-힣](?:한다|하세요|합니다|십시오|세요|는다)|로\s",
    ),
    Kind.INSTANCE: (r"`[^`]+`|\"[^\"]+\"|“[^”]+”|\*[^*]+\*|\b[A-Z]{2,}\b",),
}
# What may say it: a condition for a time, what something is good for as a reason.
_LOOSE = {
    Kind.TIME: (
        r"\b(?:when|whenever|if|once|after|before|until|till|while|since|during|as soon as|within|unless|only|always|never|except"
        r"|at the (?:start|end|beginning))\b",
        r"\b(?:allowed|permitted|possible|granted|free|included)\s(?:only\s)?(?:for|in|on|with|from)\b|\b(?:provided|in case|as long as)\b",
        r"\bat\s\d|[가-힣]면\s|이후|마지막|다음|마다|까지|부터|[전후때]에?\b|[넣붓빼하]고\b",
    ),
    Kind.REASON: (
        r"\bas (?:the|it|they|we|an?)\b|\bso (?:no|we|it|they|the|you|as)\b|\bto (?!the\b|an?\b|\d)[a-z]+\b|[:;]\s|\bwould\b",
        r"\b(?:helps?|lets?|means|allows?|prevents?|ensures?|instead of|rather than|without)\b|\([가-힣]+\)|지만\b",
        r"\b(?:until|unless|only|when|if|as long as|for as)\b|\.\s+\S",
    ),
    Kind.PLACE: (
        r"[:|`]|\b(?:stands?|lies?|lives?|based|kept|stored|located|found)\b|[은는이가]\s[가-힣]+(?:이다|입니다|이고)",
    ),
    Kind.DURATION: _PATTERNS[Kind.LENGTH],
    Kind.FREQUENCY: (r"\b(?:interval|period|periodically|regularly|continuously)\b", *_PATTERNS[Kind.DURATION]),
    Kind.AMOUNT: (r"\b(?:no|any|all|every|times|at (?:most|least)|up to|number of)\b|없",),
    Kind.INSTANCE: (r"\d|[:,|]|[가-힣]",),
    Kind.NAME: (r"[가-힣]|[:]\s",),
    Kind.STEPS: (r"\byou (?:can|could|may|must|should|need)\b|\b(?:by \w+ing|using|use|with)\b|:\s",),
}

_COUNTS_NOTHING = re.compile(
    rf"\]\([^)\s]*\)|https?://\S+|\b\d{{4}}-\d\d(?:-\d\d)?\b|\b\d{{1,2}}(?:st|nd|rd|th)?\s{MONTH}\b(?:\s\d{{4}})?|\b{MONTH}\s(?:\d{{1,2}}\b,?\s?)?(?:\d{{4}}\b)?"
    r"|\b(?:in|since|until|by|from|of)\s(?:19|20)\d\d\b|(?:19|20)\d\d년|\d{1,2}월(?:\s?\d{1,2}일)?|매[달월]\s?\d{1,2}일"
    r"|\b[A-Za-z]+\d[\w.]*|\b\d+[A-Za-z]+\d\w*",
    re.IGNORECASE,
)
"""Digits of addresses, dates and names: S3 and v1.2 are not amounts."""

CALENDAR = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?\s)?{MONTH}\b(?:\s\d{{1,2}}\b)?(?:,?\s\d{{4}})?|\b{WEEKDAY}\b", re.IGNORECASE
)
"""Dates as they are written in English."""
_ROLE = re.compile(
    r"\b(?:agents?|leads?|leaders?|managers?|team|staff|engineers?|owners?|admins?|administrators?|operators?|authors?|teachers?|doctors?"
    r"|maintainers?|directors?|secretary|caretaker|tenants?|landlord|landlady|company|department|committee|finance|support|users?|customers?"
    r"|members?|mother|father|mum|dad|grandpa|grandma|grandmother|grandfather|brother|sister|uncle|aunt|wife|husband|neighbou?rs?"
    r"|friends?|children|employees?|developers?|reviewers?|everybody|everyone|anyone|anybody|nobody|guests?|visitors?|students?|parents?"
    r"|colleagues?|contractors?|president|treasurer|conductor|drivers?|controllers?|people|persons?)\b"
    r"|\b(?:mr|mrs|ms|dr|frau|herr)\b\.?\s[A-Z]|\bby\s(?:the\s)?(?!default|hand|using|means|setting|then)[a-z]+\b(?!\s\d)",
    re.IGNORECASE,
)
_SURNAMES = "김이박최정강조윤장임한오서신권황안송류전홍고문양손배백허유남심노하곽성차주우구민진엄채원천방공현함변염여추도소석선설마길"
_NAME_KOREAN = re.compile(
    rf"(?<![가-힣])[{_SURNAMES}][가-힣]{{2}}(?=이고|이다|입니다|이며|[은는이가을를의과와도]|에게|께|씨|님|[^가-힣]|$)"
)
_NO_NAME_KOREAN = frozenset(
    """이전 이후 이번 이것 이상 이하 이유 이용 이름 이동 이사 이미 이제 전체 전화 전달 정보 정리 정도 조건 조사
    장소 장비 임시 한국 한번 오전 오후 오늘 서버 서류 신청 신규 권한 안내 안전 송금 유지 남은 심사 노트 하나
    하루 성능 차이 차량 주간 주말 주소 주문 우리 구매 구성 구입 민원 진행 채널 원인 원본 천장 방법 방식 공지
    공사 공유 현재 현장 함께 변경 여기 추가 도구 도서 소스 선택 설정 설치 마감 길이 문서 문제 문의 고객 고장
    배포 배송 허가 백업 강의 최근 최대 최소 김치 박스 황금 홍보 양식 손님 손잡""".split()
)
"""Korean words of two syllables that begin like a family name but are no names."""
_PERSON_KOREAN = re.compile(
    r"[가-힣]{2,4}(?=에게|께서|한테|\s?[씨님](?![가-힣]))|(?<![가-힣])[가-힣]{2}이\s"
    r"|팀|담당|회장|총무|대표|[과부팀사]장|직원|선생|엄마|아빠|어머니|아버지|누나|동생|친구|이웃|모두"
)
_NO_NAME = frozenset(
    """january february march april may june july august september october november december monday tuesday wednesday thursday friday
    saturday sunday the and or but if when while after before this that these those it its for from in on at to of with no not never
    we he she they you our my your their all any every each some only also then there here one two three first second last next new
    more most use see note""".split()
)
_CAPITAL = re.compile(r"(?<![\w.])[A-Z][a-zà-ÿ]+(?:[-'’][A-Z]?[a-z]+)*")
_SENTENCE_BEGINS = re.compile(r"(?:^|[.!?:|\n-])\W*$")
_AFTER_A_NAME = re.compile(
    r"(?:\s[A-Z][a-z]+)?(?:\s(?:and|or|&)\s[A-Z][a-z]+)?(?:[:.,;|)]|$|\s\(|\s(?:is|was|has|had|will|may|can|must|and|[a-z]+(?:s|ed|ew|ook|ote))\b)"
)


@cache
def _pattern(kind: Kind, *, loose: bool) -> re.Pattern[str]:
    return re.compile(
        "|".join((_LOOSE if loose else _PATTERNS)[kind]),
        re.MULTILINE if kind is Kind.INSTANCE else re.IGNORECASE | re.MULTILINE,
    )


def share_of_kind(kind: Kind, text: str, known: frozenset[str] = frozenset()) -> float:
    """1 for a text that has something of this kind, 0.5 if it may have, otherwise 0; 1 for kinds without a pattern.
    `known`: lower-case words that name nothing new, because the question has them.
    """
    if kind in (Kind.PERSON, Kind.INSTANCE, Kind.NAME) and next(_names_in(text, known), None):
        return 1.0
    if kind is Kind.AMOUNT:
        text = _COUNTS_NOTHING.sub(" ", text)
    if kind is Kind.PERSON:
        roles = (match[0].lower().split()[-1] for match in _ROLE.finditer(text))
        return (
            1.0
            if any(role not in known for role in roles)
            or next(_korean_names(text), None)
            or _PERSON_KOREAN.search(text)
            else 0.0
        )
    if kind not in _PATTERNS or _pattern(kind, loose=False).search(text):
        return 1.0
    return 0.5 if kind in _LOOSE and _pattern(kind, loose=True).search(text) else 0.0


def names_who(text: str, verb: str) -> bool:
    """Whether somebody is named before this verb: "Jonas caught it". Right before the verb, a word that looks like no
    name counts as one too.
    """
    found = re.finditer(rf"\b([A-Z][\w'’-]*)(?:\s[A-Z][\w'’-]*)*\s(?:\w+ly\s)?{re.escape(verb)}\b", text)
    return any(match[1].lower() not in _NO_NAME for match in found)


def people_in(text: str, known: frozenset[str] = frozenset()) -> set[str]:
    """The people that a text names, in lower case; `known` as in `share_of_kind`."""
    korean = (name for name in _korean_names(text) if name not in known)
    return {name.lower() for name in (*_names_in(text, known), *korean)}


def _korean_names(text: str) -> Iterator[str]:
    return (match[0] for match in _NAME_KOREAN.finditer(text) if match[0][:2] not in _NO_NAME_KOREAN)


def _names_in(text: str, known: frozenset[str]) -> Iterator[str]:
    return (word[0] for word in _CAPITAL.finditer(text) if word[0].lower() not in known and _is_name(text, word))


def _is_name(text: str, word: re.Match[str]) -> bool:
    """Whether a capitalised word is a name: always inside a sentence, at its beginning only if the sentence says
    something of it.
    """
    if word[0].lower().removesuffix("s") in _NO_NAME or word[0].lower() in _NO_NAME:
        return False
    if not _SENTENCE_BEGINS.search(text[: word.start()]):
        return True
    return not word[0].endswith(("tion", "ing", "s")) and _AFTER_A_NAME.match(text, word.end()) is not None
