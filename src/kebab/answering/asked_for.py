"""Finds what a question asks for: the kind of thing, and the words that only name that kind, which an answer need not
repeat.
"""

from __future__ import annotations

import re
from functools import cache

from kebab.answering.kinds import Kind

_HAVE_NUMBERS = "(?:포트|번호|버스|노선|출구|게이트|탑승구|승강장|창구|채널|좌석|사물함|내선|방|호실|열차|트랙)"
_WHEN = r"(?:^|\band\s|\b(?:since|until|by)\s)when\b(?!\s\w+ing\b)(?!.*,\s(?:what|how|which|who|where|why)\b)"
# The first that is found decides.
_WORDINGS: tuple[tuple[Kind, str], ...] = (
    (
        Kind.PHONE,
        r"\b(?:phone|telephone|mobile|fax)\s(?:number|nr)\b|\bnumber\s(?:of|for|to call)\b.*\b(?:call|phone)|전화번호|연락처",
    ),
    (
        Kind.STEPS,
        r"\bhow\s(?:do|can|could|should|would|must|might)\s(?:i|we|you|one)\b|\bhow\sto\b|\b(?:steps|instructions)\s(?:to|for)\b|어떻게(?!\s?(?:되|생|다른))"
        r"|방법|(?:[가-힣]는|[가-힣]\s)\s?법(?![가-힣])|하려면|\b(?:command|commands|syntax|snippet|manifest|yaml)\b|\bhow does one\b"
        r"|\bshow\s(?:me\s)?(?:an?\s)?(?:example|code|command)|명령|예제|예시|절차|순서",
    ),
    (
        Kind.SECRET,
        r"\b(?:what|which)(?:'s|\sis|\sare)?\b.*\b(?:password|passphrase|passcode|pin)\b|(?:비밀번호|암호|패스워드).*(?:뭐|무엇|뭔|알려)",
    ),
    (Kind.PERSON, r"\bwho(?:se|m|'s)?\b|누가|누구|누굴"),
    (
        Kind.REASON,
        r"\bwhy\b|\bhow come\b|\b(?:reason|cause)\s(?:for|of|why)\b|\bwhat\s(?:caused|causes)\b|(?:^|\s)왜|이유|원인|까닭",
    ),
    (
        Kind.AMOUNT,
        rf"{_HAVE_NUMBERS}[은는이가]?\s?몇\s?번(?:인|이|입|에|으로|\W*$)|몇\s?번\s?{_HAVE_NUMBERS}",
    ),  # which number
    (Kind.FREQUENCY, r"\bhow\s(?:often|frequently)\b|얼마나\s자주|몇\s?번"),
    (
        Kind.DURATION,
        r"\bhow\s(?:long|soon|quickly)\b|며칠|얼마나\s(?:오래|걸)|얼마\s?동안|몇\s?(?:분|시간|초|개월|년|달|주)",
    ),
    (
        Kind.TIME,
        rf"{_WHEN}|\b(?:what|which)\s(?:time|date|day|year|month|weekday)s?\b|언제|몇\s?시|몇\s?월|무슨\s요일|며칟날",
    ),
    (
        Kind.MONEY,
        r"\bhow\s(?:much|expensive)\b.*\b(?:cost|costs|pay|paid|charge|money|price|spend|euros?|dollars?|pounds?)\b"
        r"|\bhow\smuch\s(?:is|are|was|were)\b(?!.*\b(?:of|left)\b)|\bwhat\s(?:does|do|did|would)\b.*\bcost\b"
        r"|\bwhat(?:'s|\sis|\sare|\swas)\s(?:the|(?:\w+\s)?\w+'s)\s(?:\w+\s){0,2}(?:price|cost|fee|rent|salary)\b(?!-)|(?:비용|가격|요금|값|돈|회비|월세).*얼마|얼마에"
        r"|(?:^|\s)(?!소금|지금|조금|황금|재료|자료|음료|원료|연료)[가-힣]*(?:비|료|금|세)[은는이가]?\s(?:얼마(?!나)|몇\s?원)|몇\s?(?:만\s?)?원",
    ),
    (
        Kind.TEMPERATURE,
        r"\b(?:what|which)\s(?:\w+\s)?temperature\b|\bhow\s(?:hot|cold|warm)\b|몇\s?도|온도.*(?:얼마|몇)",
    ),
    (
        Kind.WEIGHT,
        r"\bhow\sheavy\b|\b(?:how\smuch|what)\s(?:do|does|did)\b.*\bweigh\b|무게.*(?:얼마|몇)|몇\s?(?:킬로|그램)",
    ),
    (Kind.LENGTH, r"\bhow\s(?:far|tall|wide|deep|thick)\b|몇\s?(?:미터|킬로미터)"),
    (
        Kind.AMOUNT,
        r"\bhow\s(?:many|much|old|large|big|high|fast|late|strong|loud)\b|몇|얼마"
        r"|\b(?:what|which)\s(?:size|speed|percentage|number|amount|share|pressure|weight|height|length|distance|rate|voltage|power|capacity"
        r"|dose|age|width|depth|score|budget|limit|port|timeout)\b"
        r"|\bwhat(?:'s|\sis|\sare|\swas)\s(?:the|its)\s(?:[\w-]+\s){0,4}(?:size|limit|timeout|port|range|capacity|length|interval)\b"
        r"(?=\s(?:of|for|in|on|at|per|an?)\b|\W*$)"
        r"|\b(?:largest|highest|smallest|lowest|maximum|minimum|total|default|size|speed|time|rate)\s(?:number|amount|size|limit|length|value)\b",
    ),
    (
        Kind.NAME,
        r"\bwhat(?:'s|\sis|\swas|\sare)\s(?:the\s)?(?:full\s)?names?\sof\b|\bwhat(?:'s|\sis|\swas)\s[\w\s]+['’]s\s(?:full\s)?name\b"
        r"|\bwhat\s(?:is|are|was|were)\s[\w\s]+\s(?:called|named)\b|이름[은이]?\s?(?:뭐|무엇|뭔)",
    ),
    (Kind.PLACE, r"\b(?:where|whither)\b|어디"),
    (
        Kind.INSTANCE,
        r"\b(?:which|what)\s(?!is\b|are\b|was\b|were\b|does\b|do\b|did\b|happens?\b|about\b|if\b|should\b|can\b|must\b|may\b|will\b|would\b|could\b)\w+|어느|무슨|어떤|어떻게\s?되",
    ),
    (Kind.MEANING, r"\bwhat(?:'s|\sis|\sare|\sdoes)\b|무엇|뭐|뭔|(?:이)?란\?"),
    (
        Kind.YES_OR_NO,
        r"^(?:and\s|so\s|but\s)?(?:is|are|am|was|were|do|does|did|has|have|had|can|could|may|might|must|should|will|would|shall)(?:n't)?\b"
        r"|(?:나요|까요?|인가요|가요|니|는지|냐)\s*\??$",
    ),
)
_COMPILED = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _WORDINGS)

# Words of a question that say what kind of thing is asked for. An answer says the thing.
_SAYING_SO = {
    Kind.PERSON: "person people name responsible charge 사람 담당 이름 담당자",
    Kind.TIME: "time date day year month begin begins start starts end ends happen happens place 날짜 시간 시각 날 일시 일정",
    Kind.PLACE: "place location located stand stands lie lies find found keep kept stored live room address 장소 위치 곳 주소",
    Kind.MONEY: "cost costs price prices charge charged pay paid spend fee expensive money rate 비용 가격 요금 값 금액 돈 액수",
    Kind.DURATION: "long take takes last lasts time valid duration kept keep hold maximum 시간 기간 걸리 동안",
    Kind.FREQUENCY: "often frequently happen times regular interval 자주 주기",
    Kind.AMOUNT: "amount number many much need needs required have has contain 필요 수치 양 개수 수량 금액 heavy high old large big far",
    Kind.TEMPERATURE: "temperature hot cold warm 온도",
    Kind.WEIGHT: "heavy weigh weight 무게",
    Kind.LENGTH: "far tall wide deep thick distance 거리 높이",
    Kind.PHONE: "phone number telephone call reach contact 전화번호 연락처 전화 번호",
    Kind.SECRET: "",
    Kind.NAME: "name names called named full 이름",
    Kind.REASON: "reason cause caused causes 이유 원인 까닭",
    Kind.STEPS: "steps step instructions command commands way make 방법 순서 절차 명령",
    Kind.INSTANCE: "kind type sort 종류 것",
    Kind.MEANING: "",
    Kind.YES_OR_NO: "",
}
_WORDS = {kind: frozenset(words.split()) for kind, words in _SAYING_SO.items()}

_NAMED_FIRST = (
    r"^\W*(?:(?:the|its|our|total|full|전체|총)\s)*(?:{})(?:\s(?:is|are|was|were)\b|\s?[:(]|[은는이가](?![가-힣]))"
)
_TELLS_NO_MORE = frozenset("값 수치 결과 내용 정보 상태 이름 value amount".split())
"""Words for what any question may ask for (value, state, name), which its answer need not have."""


def asked_for(question: str) -> Kind | None:
    """The kind of thing that a text asks for; None for a text that is no question, such as a few words."""
    text = " ".join(question.split())
    return next((kind for kind, pattern in _COMPILED if pattern.search(text)), None)


def only_says_so(word: str, kind: Kind | None) -> bool:
    """Whether this word of a question only names what is asked for."""
    return word in _TELLS_NO_MORE or (kind is not None and word in _WORDS[kind])


@cache
def _naming(kind: Kind) -> re.Pattern[str]:
    return re.compile(_NAMED_FIRST.format("|".join(sorted(_WORDS[kind]))), re.IGNORECASE)


def names_it(text: str, kind: Kind | None) -> bool:
    """Whether a sentence begins with a name for what is asked for, and so is about the subject of its document: "The
    price is …", "요금: …".
    """
    return kind is not None and bool(_WORDS[kind]) and _naming(kind).match(text) is not None
