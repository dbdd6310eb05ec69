"""Which passages count as duplicates, and how a list with duplicates is folded."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kebab.search.listing import MOST_COPIES, REACH, Passage, fold, is_duplicate

NAMES = ["quagga", "okapi", "kudu", "eland", "gnu", "oryx", "topi", "bongo", "nyala", "dikdik"]
WORDS = st.text(alphabet="abcdefghijklmnopqrstuvwxyzäß가나다", min_size=1, max_size=9)
TEXTS = st.lists(WORDS, max_size=150).map(" ".join)


def long_text(words: int = 200, seed: int = 0) -> str:
    """A text whose words rarely repeat, like prose."""
    return " ".join(f"{NAMES[(number * 7 + seed) % 10]}{(number * 31 + seed * 17) % 97}" for number in range(words))


def same(one: str, other: str) -> bool:
    return is_duplicate(Passage(one), Passage(other))


@given(TEXTS, TEXTS)
def test_whether_two_texts_are_duplicates_does_not_depend_on_their_order(one: str, other: str) -> None:
    assert same(one, other) == same(other, one)


@given(TEXTS, st.data())
@settings(deadline=None)
def test_whether_a_text_and_an_edit_of_it_are_duplicates_does_not_depend_on_their_order(
    text: str, data: st.DataObject
) -> None:
    words = text.split()
    for _ in range(data.draw(st.integers(0, 6))):
        place = data.draw(st.integers(0, len(words)))
        words[place : place + data.draw(st.integers(0, 2))] = data.draw(st.lists(WORDS, max_size=2))
    edited = " ".join(words)
    assert same(text, edited) == same(edited, text)


@given(st.text())
def test_a_text_is_a_duplicate_of_itself(text: str) -> None:
    assert same(text, text)


@given(st.lists(WORDS, min_size=1, max_size=150), st.data())
def test_texts_that_differ_only_in_white_space_are_duplicates(words: list[str], data: st.DataObject) -> None:
    gaps = st.sampled_from([" ", "\n", "  ", "\n\n\t", "\u3000"])
    spaced = "".join(word + data.draw(gaps) for word in words)
    assert same(" ".join(words), spaced)


@given(st.integers(0, 199), st.sampled_from(["replaced", "left out", "put in"]), st.integers(0, 50))
def test_a_long_passage_with_one_small_edit_is_folded(place: int, how: str, seed: int) -> None:
    words = long_text(seed=seed).split()
    edited = {
        "replaced": [*words[:place], "zebra", *words[place + 1 :]],
        "left out": [*words[:place], *words[place + 1 :]],
        "put in": [*words[:place], "zebra", *words[place:]],
    }[how]
    assert same(" ".join(words), " ".join(edited))


@given(st.integers(0, 99), st.integers(100, 199))
def test_a_long_passage_with_two_edits_is_folded(first: int, second: int) -> None:
    words = long_text().split()
    edited = list(words)
    edited[first] = edited[second] = "zebra"
    assert same(" ".join(words), " ".join(edited))


@given(st.lists(WORDS, min_size=1, max_size=50), st.data())
def test_short_passages_are_folded_only_if_they_are_equal(words: list[str], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(words) - 1))
    other = data.draw(WORDS.filter(lambda word: word != words[place]))
    assert not same(" ".join(words), " ".join([*words[:place], other, *words[place + 1 :]]))


TEMPLATE = """## {name}

The {name} service listens on port {port}. To restart it, log in to the host, run `systemctl restart {name}` and look at the journal
until it says that it is ready. When it does not come up within two minutes, roll back to the release before and tell the people
on call. Alerts for {name} go to the channel #{name}-alerts. Backups of its data are made every night and kept for thirty days; to
restore one, stop the service, copy the files of the day into /srv/{name}/data and start it again. Do this only after the owner of
{name}, {owner}, has agreed to it, because everything since that night is lost."""


@pytest.mark.parametrize("other", [("mailer", 8082, "Kim"), ("search", 9000, "Lee"), ("billings", 8081, "Kim")])
def test_different_passages_made_from_one_template_are_not_folded(other: tuple[str, int, str]) -> None:
    def filled(name: str, port: int, owner: str) -> str:
        return TEMPLATE.format(name=name, port=port, owner=owner)

    assert len(filled("billing", 8080, "Kim").split()) > 100
    assert not same(filled("billing", 8080, "Kim"), filled(*other))


def test_log_passages_with_different_values_in_similar_lines_are_not_folded() -> None:
    """Repetitive text has few different shingles, so an overlap of them shows nothing."""
    events = ["".join(f'data: {{"type":"delta","text":"{part}{number}"}}\n\n' for number in range(40)) for part in "ab"]
    assert not same(*events)


def test_scripts_without_spaces_are_compared_by_their_characters() -> None:
    text = "".join(chr(0x4E00 + number * 37 % 5000) for number in range(300))
    assert same(text, text[:100] + "変" + text[101:])
    assert not same(text, "".join(chr(0x4E00 + number * 41 % 5000) for number in range(300)))
    assert not same(text[:40], text[:20] + "変" + text[21:40])


def test_passages_without_text_are_duplicates_if_their_hashes_are_equal() -> None:
    assert is_duplicate(Passage("", "h1"), Passage("", "h1"))
    assert not is_duplicate(Passage("", "h1"), Passage("", "h2"))
    assert not is_duplicate(Passage("", "h1"), Passage("text", "h2"))


# --- lists


def folded(items: Iterable[str]) -> list[tuple[str, list[str]]]:
    """The folded items, where items with the same first letter are copies of each other."""
    return list(fold(items, lambda item: Passage(item[0])))


LISTS = st.lists(st.sampled_from("aaaabbcdefghijklmnopqrstuvwxyz"), max_size=80).map(
    lambda letters: [f"{letter}{number}" for number, letter in enumerate(letters)]
)


def test_copies_are_folded_in_order_under_the_first_passage() -> None:
    assert folded(["a1", "b1", "a2", "c1", "a3", "b2"]) == [("a1", ["a2", "a3"]), ("b1", ["b2"]), ("c1", [])]


@given(LISTS)
def test_folding_keeps_every_item_once_and_in_order(items: list[str]) -> None:
    groups = folded(items)
    assert sorted(item for stands, copies in groups for item in (stands, *copies)) == sorted(items)
    for group in ([stands for stands, _ in groups], *([stands, *copies] for stands, copies in groups)):
        assert sorted(group, key=items.index) == group


@given(LISTS, st.integers(1, 30))
def test_fold_reads_no_further_than_copies_of_the_wanted_groups_can_be(items: list[str], wanted: int) -> None:
    """Therefore a deeper list begins like a shorter one, and pages fit together."""
    rest = iter(items)
    taken = list(islice(fold(rest, lambda item: Passage(item[0])), wanted))
    assert taken == folded(items)[:wanted]
    if taken and len(folded(items)) > wanted:
        last_of_first_groups = max(items.index(item) for stands, copies in taken for item in (stands, *copies))
        assert len(items) - len(list(rest)) <= last_of_first_groups + 1 + REACH + 1


def test_a_copy_is_folded_if_it_is_close_to_the_passage_or_to_its_last_copy() -> None:
    others = [chr(ord("A") + number) for number in range(REACH)]
    assert len(folded(["z1", *others[1:], "z2"])) == REACH
    assert len(folded(["z1", *others, "z2"])) == REACH + 2
    assert folded(["z1", *others[1:], "z2", *others[1:], "z3"])[0] == ("z1", ["z2", "z3"])


def test_the_number_of_copies_under_one_passage_is_limited() -> None:
    groups = folded(["text"] * (2 * MOST_COPIES + 12))
    assert [len(copies) for _, copies in groups] == [MOST_COPIES, MOST_COPIES, 9]


def test_an_item_without_a_passage_is_never_folded() -> None:
    assert list(fold([1, 2, 1, 1], lambda number: None if number == 1 else Passage("x"))) == [
        (1, []),
        (2, []),
        (1, []),
        (1, []),
    ]


def test_a_thousand_long_passages_are_folded_in_linear_time() -> None:
    texts = [long_text(300, seed) for seed in range(1000)]
    started = time.process_time()
    assert len(list(fold(texts, Passage))) > 900
    assert time.process_time() - started < 2, "each is compared with a few before it, not with all"
