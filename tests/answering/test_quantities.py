"""Numbers are compared by value, unit, sign and magnitude."""

from __future__ import annotations

import pytest

from kebab.answering.quantities import Quantity, in_digits, quantities


def read(text: str) -> list[Quantity]:
    return [quantity for _, quantity in quantities(in_digits(text))]


def says(claim: str, passage: str) -> bool:
    return all(any(mine.is_said_by(theirs, passage) for theirs in read(passage)) for mine in read(claim))


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("for two weeks", "for 14 days"),
        ("24 hours", "1 day"),
        ("2 years", "24 months"),
        ("at 2:30 pm", "at 14:30"),
        ("at 9", "at 9 units"),
        ("at 6:00", "at 6:00 am"),
        ("오전 9시", "오전 9시부터 오후 8시까지"),
        ("오후 2시 반", "오후 2시 30분에"),
        ("40분 정도", "약 40분이 걸린다"),
        ("3주간", "3주 동안"),
        ("다섯 번", "5번"),
        ("하루에 두 알", "하루 2알씩"),
        ("500만 원", "5000000원"),
        ("1,000 pages", "1000 pages"),
        ("$20", "20 dollars"),
        ("minus 18 degrees", "-18 °"),
        ("one second", "1 second"),
        ("24 hours", "lease time (hours): 24"),
        ("31 March", "on March 31"),
        ("March 31st, 2025", "on 2025-03-31"),
        ("2025년 3월 31일", "2025-03-31에"),
        ("40 grams", "40 g"),
        ("8 GB", "8G of memory"),
        ("300 metres", "300 m"),
        ("1 GiB", "1024 MiB"),
        ("0.5 kg", "500 grams"),
        ("7 euros", "7.00 euros"),
        ("an hour and a half", "90 minutes"),
        ("4천만 원", "4,000만 원"),
        ("3만 5천 원", "35,000원"),
        ("열흘", "10일"),
        ("at most 6 people", "up to 6 people"),
        ("6 kg or more", "at least 6 kg"),
        ("최대 6명", "6명까지"),
        ("6 people", "no more than 6 people"),
    ],
)
def test_equal_quantities_are_equal_in_every_spelling(claim: str, passage: str) -> None:
    assert says(claim, passage)


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("30 weeks", "at 02:30 for 14 days"),
        ("10 pm", "10 am"),
        ("오후 2시 30분", "새벽 2시 30분"),
        ("40시간이", "40분이"),
        ("24일", "24시간이다"),
        ("5000달러이다", "5000원이다"),
        ("3도에서 4주", "4도에서 3주"),
        ("14권까지 5일", "5권까지 14일"),
        ("5 billion", "5 million"),
        ("18 degrees", "-18 degrees"),
        ("20 percent", "20 per user"),
        ("80 degrees Fahrenheit", "80 degrees Celsius"),
        ("500m", "500Mi"),
        ("31일 동안", "3월 31일"),
        ("3개월", "3월"),
        ("31 days", "31 March"),
        ("2025-01-03", "2025-03-01 at 9 units"),
        ("하루", "일주일"),
        ("4백만 원", "4,000만 원"),
        ("at least 6 kg", "at most 6 kg"),
        ("more than 6 people", "up to 6 people"),
        ("at most 6 hours", "6 hours at least"),
        ("6명 이상", "6명 미만"),
        ("6개 초과", "6개를 넘지 않는다"),
    ],
)
def test_another_unit_sign_or_magnitude_is_another_number(claim: str, passage: str) -> None:
    assert not says(claim, passage)
