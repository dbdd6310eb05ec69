"""The kind of thing that a question asks for, and whether a text has something of that kind."""

from __future__ import annotations

import pytest

from kebab.answering.asked_for import asked_for, names_it
from kebab.answering.kinds import Kind, names_who, share_of_kind
from kebab.answering.question_parts import parts_of


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Who repaired the roof?", Kind.PERSON),
        ("When does the shop close?", Kind.TIME),
        ("What should I do when the laptop is stolen?", None),
        ("When using the client, how are errors shown?", None),
        ("At what temperature do I bake it?", Kind.TEMPERATURE),
        ("How much is a ticket?", Kind.MONEY),
        ("What did the saw cost?", Kind.MONEY),
        ("How much water do I need?", Kind.AMOUNT),
        ("How long are logs kept?", Kind.DURATION),
        ("How often is it cleaned?", Kind.FREQUENCY),
        ("Why was it moved?", Kind.REASON),
        ("How do I roll back?", Kind.STEPS),
        ("Which database do we use?", Kind.INSTANCE),
        ("What is a Pod?", Kind.MEANING),
        ("Is flood damage covered?", Kind.YES_OR_NO),
        ("What is the phone number of Mei?", Kind.PHONE),
        ("What is the password of the guest network?", Kind.SECRET),
        ("boiler pressure", None),
        ("누가 왔나요?", Kind.PERSON),
        ("언제 여나요?", Kind.TIME),
        ("비용은 얼마예요?", Kind.MONEY),
        ("몇 명이 왔나요?", Kind.AMOUNT),
        ("몇 분 끓이나요?", Kind.DURATION),
        ("auth 서비스의 포트는 몇 번인가요?", Kind.AMOUNT),
        ("몇 번 출구로 나가나요?", Kind.AMOUNT),
        ("버스는 하루에 몇 번 다니나요?", Kind.FREQUENCY),
        ("What does the printer weigh?", Kind.WEIGHT),
        ("왜 미뤄졌나요?", Kind.REASON),
        ("어떻게 만드나요?", Kind.STEPS),
        ("시력이 어떻게 되나요?", Kind.INSTANCE),
        ("어디에 있나요?", Kind.PLACE),
        ("설탕을 넣나요?", Kind.YES_OR_NO),
    ],
)
def test_the_kind_of_thing_is_read_from_the_question(question: str, kind: Kind | None) -> None:
    assert asked_for(question) is kind


@pytest.mark.parametrize(
    ("kind", "having", "lacking"),
    [
        (Kind.PERSON, "It was planted by grandpa in 1987.", "The aisles are swept every day, in April too."),
        (Kind.PERSON, "Absent: Tom (holiday).", "We harvested 31 kg from both hives."),
        (Kind.PERSON, "불참: 최유진(병가).", "두 시간 안에 끝낸다."),
        (Kind.TIME, "It opened in 1891.", "The landline is red."),
        (Kind.TIME, "매월 둘째 주에 간다.", "주차장은 건물 옆이다."),
        (Kind.MONEY, "Hartley charge £95 for it.", "The old boiler was a Worcester."),
        (Kind.MONEY, "요금은 4만 5천 원이다.", "텐트는 4인용이다."),
        (Kind.DURATION, "Ten years, as the law demands.", "It starts at 06:15."),
        (Kind.REASON, "It moved, because the tests fail.", "The contractors left in October."),
        (Kind.PHONE, "Call 01632 960123.", "It costs 1,840 euros in 2024."),
        (Kind.SECRET, "The password is `hunter2`.", "Its password changes on the first of each month."),
        (Kind.SECRET, "비밀번호는 1234이다.", "현관 비밀번호를 바꾼다."),
        (Kind.TEMPERATURE, "Bake at 290 °C for six minutes.", "Take it out four hours before baking."),
    ],
)
def test_a_text_is_recognised_as_having_something_of_a_kind(kind: Kind, having: str, lacking: str) -> None:
    assert share_of_kind(kind, having) > share_of_kind(kind, lacking) == 0


def test_a_name_from_the_question_does_not_answer_who() -> None:
    assert share_of_kind(Kind.PERSON, "Heron went live.", frozenset({"heron"})) == 0
    assert share_of_kind(Kind.PERSON, "Heron went live with Priya.", frozenset({"heron"})) == 1


def test_a_sentence_that_begins_with_the_kind_asked_for_is_about_the_subject_of_its_document() -> None:
    assert names_it("The price is 12 euros.", Kind.MONEY)
    assert names_it("요금: 1박 4만 5천 원", Kind.MONEY)
    assert not names_it("The berth costs 940 euros.", Kind.MONEY)


def test_subject_verb_and_thing_are_read_from_the_form_of_a_question() -> None:
    assert parts_of("What is the budget of Heron?", Kind.MEANING).subject == {"heron"}
    assert parts_of("Which database do we use?", Kind.INSTANCE).thing == "database"
    assert parts_of("How much holiday do I get?", Kind.AMOUNT).counted == {"holiday"}
    assert parts_of("When was the boiler installed?", Kind.TIME).done == "installed"
    assert parts_of("When was the liquid oxygen?", Kind.TIME).done is None
    assert parts_of("Who booked the hotel?", Kind.PERSON).does == "booked"
    assert parts_of("How high is the deposit of the flat?", Kind.AMOUNT).counted == {"deposit"}
    absent = parts_of("Who was absent from the committee meeting?", Kind.PERSON)
    assert (absent.trait, absent.done) == ("absent", None)


def test_a_name_before_the_verb_of_the_question_counts_as_a_person() -> None:
    assert names_who("Jonas caught the swarm.", "caught")
    assert names_who("At noon Ana Berg finally caught it.", "caught")
    assert not names_who("It caught fire. They were caught.", "caught")


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Priya Nair is the CTO.", 0.0),
        ("The backup server is called heron.", 0.0),
        ("Jonas renewed the certificate by hand.", 0.0),
        ("다음 회의는 수요일 오후 세 시에 한다.", 0.0),
        ("The spare keys are in the blue drawer.", 1.0),
        ("It reads `~/.config/kebab/config.toml`.", 1.0),
        ("회의는 3층 회의실에서 한다.", 1.0),
        ("열쇠는 서랍 안에 있다.", 1.0),
    ],
)
def test_a_text_answers_where_only_if_it_names_a_place(text: str, share: float) -> None:
    """Regression: whatever was about the thing was an answer to where it is."""
    assert share_of_kind(Kind.PLACE, text) == share


def test_a_common_word_is_no_korean_name() -> None:
    """Regression: 이전 begins as many names do."""
    assert share_of_kind(Kind.PERSON, "결제 서버 이전은 11월 20일로 미루었다.") == 0.0
    assert share_of_kind(Kind.PERSON, "담당자는 박민아이다.") == 1.0
