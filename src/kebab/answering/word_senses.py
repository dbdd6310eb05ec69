"""Tables of words with the same sense and of words with opposite senses, as good and bad paraphrases exchange them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from kebab.core.ports import Tokenizer

# In a line: words for the same, a stroke, words for the opposite. A word may stand in several lines.
_ENGLISH = """
start begin began begun launch boot / stop end halt finish terminate shut
start starts / stop stops
increase rise rose risen grow grew grown raise climb / decrease reduce fall fell fallen drop sink shrink lower decline cut
enable activate available on / disable deactivate discontinue off
support / drop discontinue
create make made generate build built add insert / delete remove erase destroy drop purge
add append include / remove exclude omit
open / close shut
before prior / after following
above over exceed more / below under less fewer
minimum least / maximum most
first / last
always / never
true / false
required mandatory compulsory obligatory / optional
accept approve / reject decline
succeed success pass / fail failure
encrypt / decrypt
import / export
upload / download
push / pull
send sent transmit / receive
lock / unlock
connect attach mount / disconnect detach unmount
install / uninstall
public / private
internal / external
inside indoors / outside outdoors
left / right
north / south
east / west
up / down
early earlier earliest / late later latest
older oldest / newer newest
higher highest / lower lowest
larger largest bigger biggest / smaller smallest
longer longest / shorter shortest
faster fastest quick quickly / slower slowest slow slowly
synchronous / asynchronous
ascending / descending
stable / deprecated
readable readonly / writable
cheap cheaper / expensive
free gratis / paid
hot warm / cold cool
heat / cool
hire / fire dismiss
join / leave left quit
gain / lose lost
expand widen / narrow shrink
strengthen tighten / weaken loosen
praise / criticise criticize
freeze froze frozen / melt thaw
inflate pump / deflate
day daytime / night nightly
morning / evening
buy bought purchase / sell sold
win won / lose lost
same identical / different
temporary / permanent
manual manually / automatic automatically
full / empty
fill / empty drain
adult adults / child children kid kids
fixed / variable
wet / dry
borrow / lend lent
cost costs price fee
photo photos photograph photography picture
change modify alter edit update
keep kept retain store save hold held preserve / discard delete erase remove purge
keep continue / stop cease
consecutive row
additional further extra
due because
start starts begin commence
hand submit
log sign
restore put
automatically automatic
inform notify tell told contact call
abort cancel interrupt terminate kill
retain keep kept store
pupil pupils student students
class classes lesson lessons
certificate note
ill sick illness sickness
doctor physician medical
purchase buy bought
permit allow
prohibit forbid forbidden ban banned
annual yearly annually
assist help support
fault error failure
vehicle car
fridge refrigerator
cover insure reimburse
redo redone repeat repeated
clear empty
wage salary pay
replace change exchange
show shown display present print
happen occur
immediately instantly once
leave depart quit exit / arrive enter
repair fix mend
get receive obtain
finish complete end
choose chose chosen select pick
allow permit let
need require must
contain include
return refund
last take
help assist
employee staff worker
exceed pass over
evict remove drop
duration period length
break broke broken
write wrote written
run ran
find found
give gave given
take took taken
pay paid
meet met
speak spoke spoken
spend spent
draw drew drawn
drive drove driven
wear wore worn
stand stood
teach taught
throw threw thrown
"""
# The same for Korean, as patterns: words are inflected there.
_KOREAN = (
    ("켜[지다고면야라서]|켠|켭|켤|켜$|활성", "끄|끈|끕|끌\\s|꺼|비활성"),
    ("증가|인상|늘[어었리렸린다]|오[른르]|올[라랐린리려립]", "감소|인하|줄[어었이였인다]|내[려렸리린립]|떨어"),
    (
        "(?<![가-힣])(?:이)?전(?:에|까지)?(?![가-힣])|기\\s전",
        "(?<![가-힣])(?:이)?후(?:에|로)?(?![가-힣])|(?<![가-힣])뒤(?:에)?(?![가-힣])|다음에",
    ),
    ("최소|적어도", "최대|많아야"),
    ("이상", "이하|미만"),
    ("초과|넘[으는어을게긴겼지]", "미만|이하"),
    ("필수|의무", "선택"),
    ("처음|첫", "마지막"),
    ("추가|생성|만[든들드]", "삭제|제거|지[우운워]"),
    ("시작", "중지|종료|멈[추춘춥]"),
    ("성공", "실패"),
    ("포함", "제외"),
    ("빠[르른]", "느[리린려]"),
    ("높[은다이아으]", "낮[은다추아으]"),
    ("(?<![가-힣])(?:열고|연다|열린|열립|열며|엽니다)", "닫"),
    ("설치", "제거"),
    ("연결", "해제|끊"),
    ("잠[그근금긴깁겨]", "해제|푼|풀[어고린]"),
    ("무료", "유료"),
    ("수동", "자동"),
    ("입력", "출력"),
    ("보[내낸냅]|전송|발송", "받[는은아]"),
    ("많[은다이아으]", "적[은다어으](?!\\s?용)"),
    ("길[다어고]|긴\\s", "짧"),
    ("앞", "뒤"),
    ("출발|떠[나난]", "도착"),
    ("가득|꽉", "(?<![가-힣])(?:비[어었]|빈\\s|빕니다)"),
    ("판매|판다|팝니다|파는", "구매|구입"),
    ("담당|맡", None),
    ("변경|바[꾸꾼꿔뀌]|수정", None),
    ("사용|이용|쓰[는고며지면기]|쓴다|씁니다|쓸\\s|써", None),
    ("작성|쓰[는고며지면기]|쓴다|씁니다|써", None),
    ("제공|주[는고며지면어]|준다|줍니다", None),
    ("필요|해야|하여야", None),
    ("걸[리린립려]|소요", None),
    ("보관|저장", None),
    ("시작|열[린립리]|개최", None),
    ("내[는고며야면요]|낸다|냅니다|납부|지불", None),
    ("괜찮|[아어여셔해]도\\s?(?:된|되|됩|돼)|허용", None),
    ("자동이체|이체|출금|빠져나[가간갑갔]", None),
    ("분리수거|분리배출|재활용", None),
    ("예방접종|예방주사|접종|(?<![가-힣])주사", None),
    ("구입|구매|사는|산다|삽니다", None),
    ("즉시|바로|곧바로", None),
    ("자동으로|자동", None),
    ("매일|날마다", None),
    ("알[리린립려]|알림|통지|통보", None),
    ("연기|미[루룬룹뤄뤘뤄룰]", None),
    ("완료|끝[나난내낸냈났]|마[치친쳤쳐]|종료", None),
    ("제출|내[는고며야면다요]|낸다|냅니다|냈", None),
    ("교환|교체|바[꾸꾼꿔뀌꿨]|갈[아았]", None),
    ("권[하한합했해]|권고|권장|라고\\s?[했하한합]|추천|조언", None),
    ("삭제|지[우운워웠웁]", None),
    ("중단|종료|멈[추춘춥췄]|취소", None),
    ("인정|간주", None),
    ("대비|보다|비해", None),
    ("약간|조금|다소", None),
    ("걷|걸[으어었]", None),
    ("이내|안에|내에", None),
    ("착용|입[는고어었습으]|신[는고어었습으]", None),
    ("참가|참석|참여", None),
    ("진행|실시|열[린립리]|개최", None),
    ("별도|따로", None),
    ("파손|깨[지진져질]|부[서숴]", None),
    ("휴식|쉬[는고며어었]|쉰다|쉽니다", None),
    ("촬영|찍", None),
    ("차량|자동차|(?<![가-힣])차[를는가에의]?(?![가-힣])", None),
    ("연락|전화|부[르른릅]|호출", None),
    ("동반|데[려리]", None),
    ("질병|아[프픈파]|아플", None),
    ("입장|들어[가오갈올간온]", None),
    ("퇴장|나[가갈간갑]", None),
    ("지각|늦[게은는어었]", None),
    ("반환|돌려[주준줘줍]|반납", None),
    ("폐기|버[리린려립]", None),
    ("보충|채[우운워웁]", None),
    ("수리|고[치친쳐칩]|수선", None),
    ("확인|살[피핀펴핍]|점검", None),
    ("선택|고[르른릅]|골[라랐]", None),
    ("부과|청구|물[리린려]", None),
    ("공제|빼[고며는]|뺀다|뺍니다|제외", None),
    ("희망|원하|원한|바라|바란", None),
    ("거주|사는|산다|삽니다|살[고며았]", None),
    ("위치|있[는다]|자리", None),
    ("단독|혼자", None),
    ("매월|매달|달마다", None),
    ("매년|해마다", None),
    ("모든|모두|전부|전체|전원", None),
)
_DIRECTIONS = frozenset(
    """before prior after following first last above below over under up down left right north south east west least most more
    fewer less""".split()
)
"""Words of which "not" makes no opposite: not before noon is not after noon."""


class Senses(NamedTuple):
    """The tables, with stems as keys."""

    same: Mapping[str, frozenset[int]]
    opposite: Mapping[str, frozenset[int]]
    """For each stem, its senses and those that it is the opposite of."""
    directions: frozenset[str]
    learned: Mapping[str, frozenset[str]] = MappingProxyType({})
    """For the key of a word, the keys of words of one passage that a model finds similar."""
    kindred: frozenset[str] = frozenset()
    """The keys of words that a model finds related to a word of that passage."""

    @property
    def without_learned(self) -> Senses:
        return self._replace(learned=MappingProxyType({}), kindred=frozenset())

    def are_same(self, one: str, other: str) -> bool:
        return not self.same.get(one, _NONE).isdisjoint(self.same.get(other, _NONE))

    def are_opposite(self, one: str, other: str) -> bool:
        return not self.opposite.get(one, _NONE).isdisjoint(self.same.get(other, _NONE)) and not self.are_same(
            one, other
        )

    def like(self, stem: str, stems: frozenset[str], *, or_opposite: bool) -> bool:
        """Whether one of these words has the same sense; with `or_opposite`, also the opposite one."""
        learned, wanted = self.learned.get(stem), self.same.get(stem)
        if learned is not None and not learned.isdisjoint(stems):
            return True
        if wanted is None:
            return False
        if or_opposite and stem not in self.directions:
            wanted = wanted | self.opposite[stem]
        return any(not wanted.isdisjoint(self.same.get(other, _NONE)) for other in stems)


_NONE: frozenset[int] = frozenset()


def senses(tokenizer: Tokenizer) -> Senses:
    sides = [side.split() for line in _ENGLISH.strip().split("\n") for side in f"{line} /".split("/")[:2]]
    words = [word for side in sides for word in side]
    stems = dict(zip(words, tokenizer.stems("\n".join(words)), strict=True))
    same: dict[str, set[int]] = {}
    opposite: dict[str, set[int]] = {}
    for number, side in enumerate(sides):
        for stem in {stems[word] for word in side}:
            same.setdefault(stem, set()).add(number)
            opposite.setdefault(stem, set()).add(number ^ 1)
    return Senses(_frozen(same), _frozen(opposite), frozenset(stems[word] for word in _DIRECTIONS))


def _frozen(sets: Mapping[str, set[int]]) -> dict[str, frozenset[int]]:
    return {stem: frozenset(numbers) for stem, numbers in sets.items()}


_KOREAN_SIDES = tuple(re.compile(side) if side else None for pair in _KOREAN for side in pair)


@lru_cache(maxsize=4096)
def _korean_senses(text: str) -> frozenset[int]:
    """The Korean senses as in the English table: an even number and the next one are opposites."""
    return frozenset(number for number, side in enumerate(_KOREAN_SIDES) if side is not None and side.search(text))


def korean_opposites(claim: str, passage: str) -> int:
    """The number of senses in which one text has a word and the other its opposite, and neither has both."""
    mine, theirs = _korean_senses(claim), _korean_senses(passage)
    return sum(number ^ 1 in theirs and number ^ 1 not in mine and number not in theirs for number in mine)


def korean_like(word: str, text: str, *, or_opposite: bool) -> bool:
    """Whether a text has a word of the same sense; with `or_opposite`, also of the opposite one."""
    mine = _korean_senses(word)
    if not mine:
        return False
    wanted = mine | {number ^ 1 for number in mine} if or_opposite else mine
    return not wanted.isdisjoint(_korean_senses(text))
