"""Words of one kind, such as days, which exclude each other although a model finds them similar: Monday and Friday,
paid and unpaid.
"""

from __future__ import annotations

# What is counted up beside each other: of two of a line, one is never the other.
_KINDS = """
monday tuesday wednesday thursday friday saturday sunday weekday weekdays weekend weekends
january february march april june july august september october november december
spring summer autumn fall winter
daily nightly weekly monthly quarterly yearly annually annual hourly
first second third fourth fifth last next previous
north south east west northern southern eastern western
front rear back left right top bottom upper lower side
man men woman women boy boys girl girls male female
onion onions garlic tomato tomatoes potato potatoes carrot carrots cabbage beans apple apples pear pears
breakfast lunch dinner supper brunch
morning noon afternoon evening night midnight
red green blue yellow black white grey gray brown orange purple pink
euro euros dollar dollars won pounds pound yen franc francs
seconds minutes hours days weeks months years
adult adults child children student students senior seniors pensioner pensioners guest guests member members
teacher teachers pupil pupils parent parents principal headteacher director
student teacher professor lecturer
tenant tenants landlord landlords owner
buyer buyers seller sellers customer customers supplier suppliers
doctor doctors nurse nurses patient patients
manager managers employee employees intern interns applicant applicants
mother father brother sister son daughter husband wife
cat cats dog dogs horse horses bird birds
car cars bus buses train trains bicycle bicycles taxi taxis plane planes ferry ferries truck trucks motorcycle
read write
read-only read-write
staging production development test
client server clients servers
source target
cpu memory disk network
english german french spanish korean japanese chinese
월요일 화요일 수요일 목요일 금요일 토요일 일요일 평일 주말
봄 여름 가을 겨울
오전 오후 새벽 아침 저녁 밤 낮 정오
아침 점심 저녁 간식
매일 매주 매월 매달 매년 분기
첫째 둘째 셋째 넷째 다섯째
첫 두번째 세번째 마지막
앞 뒤 옆 위 아래 왼쪽 오른쪽
동쪽 서쪽 남쪽 북쪽
연차 반차 병가 휴가 출장
학생 교수 교사 교장 담임 학부모
사원 대리 과장 차장 부장 팀장 이사 대표 인턴
의사 간호사 약사 환자
집주인 세입자 임대인 임차인
소금 설탕 간장 식초
버스 기차 택시 비행기 지하철 배 자전거 자동차
운영 개발 시험 스테이징
남자 여자 남성 여성
본인 배우자 부모 자녀
"""
_TURNED = ("un", "in", "im", "ir", "il", "non", "dis", "de", "mis", "불", "비", "미", "무", "부")
_WITH_OR_WITHOUT = frozenset("유무")


_NONE: frozenset[int] = frozenset()


def _kinds() -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, line in enumerate(_KINDS.strip().split("\n")):
        for word in line.split():
            found.setdefault(word, set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


_KINDS_OF = _kinds()


def are_of_one_kind(one: str, other: str) -> bool:
    """Whether two words exclude each other: Monday and Friday, paid and unpaid, 유급 and 무급."""
    if one == other:
        return False
    if not _KINDS_OF.get(one, _NONE).isdisjoint(_KINDS_OF.get(other, _NONE)):
        return True
    if len(one) == len(other) > 1 and one[1:] == other[1:] and {one[0], other[0]} == _WITH_OR_WITHOUT:
        return True
    short, long = sorted((one, other), key=len)
    return len(short) > 1 and long.endswith(short) and long[: -len(short)] in _TURNED


def is_one_of_a_kind(word: str) -> bool:
    """Whether a word has others of its kind that exclude it: first, Monday, 저녁."""
    return word in _KINDS_OF
