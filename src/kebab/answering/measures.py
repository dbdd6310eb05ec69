"""Units of measure and months, in the forms in which they are written."""

from __future__ import annotations

FORMS_OF_UNITS = {
    "s": "s sec secs second seconds 초",
    "ms": "ms millisecond milliseconds 밀리초",
    "min": "min mins minute minutes 분",
    "h": "h hr hrs hour hours 시간",
    "d": "d day days 일",
    "week": "week weeks 주일 주",
    "month": "month months 개월 달",
    "year": "year years 년",
    "%": "% percent percents 퍼센트 프로",
    "kb": "kb kilobyte kilobytes kib ki k 킬로바이트",
    "mb": "mb megabyte megabytes mib mi 메가바이트",
    "gb": "gb gigabyte gigabytes gib gi 기가바이트",
    "tb": "tb terabyte terabytes tib ti 테라바이트",
    "m": "m",  # a thousandth of a processor, metres
    "g": "g",  # grams, gigabytes
    "usd": "$ dollar dollars usd 달러",
    "eur": "€ euro euros eur 유로",
    "krw": "₩ won krw 원",
    "cent": "cent cents 센트",
    "degree": "° degree degrees 도",
    "°c": "celsius °c",
    "°f": "fahrenheit °f",
    "km": "km kilometre kilometer kilometres kilometers 킬로미터",
    "metre": "metre metres meter meters 미터",
    "cm": "cm centimetre centimetres centimeter centimeters 센티미터",
    "mm": "mm millimetre millimetres millimeter millimeters 밀리미터",
    "kg": "kg kilogram kilograms kilogramme kilogrammes 킬로그램",
    "gram": "gram grams gramme grammes 그램",
    "mg": "mg milligram milligrams 밀리그램",
    "litre": "l litre litres liter liters 리터",
    "ml": "ml millilitre millilitres milliliter milliliters 밀리리터",
    "bar": "bar bars 바",
    "count": "개 명 번 회 건 대 번째 times",
    "month of the year": "월",
    **{
        word: word
        for word in """권 장 알 정 병 잔 살 세 층 쪽 페이지 줄 배 가지 곳 마리 단계 글자 바이트 볼트 와트 암페어 분기 인
        차 호 점 학기 학점 학년 컵 상자 봉지 조각 숟가락 스푼 과목 편 곡 팀 쌍 세트 켤레 벌 그루 통 인분 시간째 주째""".split()
    },
}
UNITS = {form: unit for unit, forms in FORMS_OF_UNITS.items() for form in forms.split()}
SCALES: dict[str, tuple[str, str]] = {
    **{
        unit: ("s", factor)
        for unit, factor in (
            ("s", "1"),
            ("ms", "0.001"),
            ("min", "60"),
            ("h", "3600"),
            ("d", "86400"),
            ("week", "604800"),
        )
    },
    **{unit: ("month", factor) for unit, factor in (("month", "1"), ("year", "12"))},
    **{unit: ("byte", factor) for unit, factor in (("kb", "1E3"), ("mb", "1E6"), ("gb", "1E9"), ("tb", "1E12"))},
    **{unit: ("gram", factor) for unit, factor in (("gram", "1"), ("kg", "1000"), ("mg", "0.001"))},
    **{unit: ("metre", factor) for unit, factor in (("metre", "1"), ("km", "1000"), ("cm", "0.01"), ("mm", "0.001"))},
    **{unit: ("litre", factor) for unit, factor in (("litre", "1"), ("ml", "0.001"))},
}
"""For each unit, the base unit in which units of its kind are compared, and the factor."""
BINARY = {f"{letter}{rest}": str(1024**power) for power, letter in enumerate("kmgt", start=1) for rest in ("i", "ib")}
AMBIGUOUS = {"g": ("gram", "gb"), "m": ("metre",)}
KOREAN_UNITS = "|".join(sorted((form for form in UNITS if form[0] >= "가"), key=len, reverse=True))
MONTHS = tuple("january february march april may june july august september october november december".split())
NAME_OF_MONTH = rf"(?:{'|'.join(f'{month[:3]}(?:{month[3:]})?' for month in MONTHS)}|sept)\b"
IMPLIED = {
    **dict.fromkeys(
        ("eur", "usd", "krw", "cent"),
        "cost costs price fee charge expense amount pay paid bill 비용 가격 요금 금액 값 지불",
    ),
    "clock": "time times hour hours 시간 시각 운영 영업",
    "s": "time duration period last lasts 시간 기간",
    "month": "duration period last lasts 기간",
    **dict.fromkeys(("degree", "°c", "°f"), "temperature 온도 체온 기온"),
    "metre": "distance length spacing 거리 길이",
    "%": "rate share percentage 비율",
    "bar": "pressure 압력 공기압",
    "byte": "size capacity 크기 용량",
    "date": "date deadline due 날짜 기한 마감 일자",
    "잔": "drink 마셔 마시다 마신다 마십니다 마셔요 마실",
    "none": "level value score 수치 값 점수",
}
"""The words that a unit implies, so that no text has to say them: what a number with such a unit is a number of."""
