"""Whatever a person types has a meaning; only quotes, a trailing star and operators between operands are syntax.

Trees are compared by their repr: the nodes are named tuples, and those are equal whatever their type.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.core.query_tree import And, Bag, Not, Operand, Or, Phrase, Prefix, QueryTree, Raw, Word, parse


def words(*texts: str) -> Bag:
    return Bag(tuple(map(Word, texts)))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("install git", words("install", "git")),
        ("  install \t\n git  ", words("install", "git")),
        ("", Bag()),
        ("   ", Bag()),
        ("+-*/ () ::", Bag()),
        ('""', Bag()),
        ('"exact phrase"', Bag((Phrase("exact phrase"),))),
        ('git "exact phrase" now', Bag((Word("git"), Phrase("exact phrase"), Word("now")))),
        ('"never closed', words("never", "closed")),
        ("install*", Bag((Prefix("install"),))),
        ("install**", Bag((Prefix("install"),))),
        ("*install", words("*install")),
        ("a*b", words("a*b")),
        ("*", Bag()),
        ("git AND hub", And(words("git"), words("hub"))),
        ("git OR hub", Or(words("git"), words("hub"))),
        ("git NOT hub", Not(words("git"), words("hub"))),
        ("git and hub or not x", words("git", "and", "hub", "or", "not", "x")),
        ("new git OR old hub", Or(words("new", "git"), words("old", "hub"))),
        ("a OR b AND c", Or(words("a"), And(words("b"), words("c")))),
        ("a AND b NOT c", And(words("a"), Not(words("b"), words("c")))),
        ("a OR b OR c", Or(Or(words("a"), words("b")), words("c"))),
        ('"a b" AND c*', And(Bag((Phrase("a b"),)), Bag((Prefix("c"),)))),
        ('"AND"', Bag((Phrase("AND"),))),
    ],
)
def test_each_form_of_query_has_its_tree(text: str, tree: QueryTree) -> None:
    assert repr(parse(text)) == repr(tree)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("NOT git", words("NOT", "git")),
        ("AND", words("AND")),
        ("install AND", words("install", "AND")),
        ("OR OR OR", Or(words("OR"), words("OR"))),
        ("a AND OR b", And(words("a"), words("OR", "b"))),
        ("a AND AND b", And(words("a"), words("AND", "b"))),
    ],
)
def test_and_or_and_not_are_operators_only_between_two_operands(text: str, tree: QueryTree) -> None:
    assert repr(parse(text)) == repr(tree)


@pytest.mark.parametrize(
    "text",
    ["user-agent", "c++", "std::vector", "(x", "a:b", "^start", "{x}", "node.js", "it's", "a'b'c", "x^2", "col:y"],
)
def test_special_characters_inside_a_word_are_text(text: str) -> None:
    assert repr(parse(text)) == repr(words(text))


@pytest.mark.parametrize(
    ("text", "raw"), [("'git NEAR hub'", "git NEAR hub"), ("  'text : git'  ", "text : git"), ("'('", "(")]
)
def test_a_query_in_single_quotes_is_passed_through(text: str, raw: str) -> None:
    assert repr(parse(text)) == repr(Raw(raw))


@pytest.mark.parametrize("text", ["''", "'", "'git", "git'", "'git' 'hub", "don't"])
def test_a_single_quote_without_its_pair_is_text(text: str) -> None:
    assert not isinstance(parse(text), Raw)


SYNTAX = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "AND",
                "OR",
                "NOT",
                '"',
                '"a b"',
                "*",
                "a*",
                "git",
                "한글",
                "(",
                ")",
                "^",
                ":",
                "'",
                "\0",
                "\n",
                "NEAR",
                "-",
                "",
            ]
        ),
        st.text(max_size=6),
    ),
    max_size=20,
).map(" ".join)


def operands(tree: QueryTree) -> list[Operand]:
    match tree:
        case Bag(found):
            return list(found)
        case And(left, right) | Or(left, right) | Not(left, right):
            return operands(left) + operands(right)
    return []


@given(st.one_of(st.text(), SYNTAX))
def test_any_text_gives_a_tree(text: str) -> None:
    tree = parse(text)
    assert all(operand.text for operand in operands(tree))
    if isinstance(tree, And | Or | Not):
        assert {"AND", "OR", "NOT"} & set(text.split())


def written(tree: QueryTree) -> str:
    """The tree written as a query."""
    match tree:
        case Bag(found):
            forms = {Word: "{}", Prefix: "{}*", Phrase: '"{}"'}
            return " ".join(forms[type(operand)].format(operand.text) for operand in found)
        case Not(left, right):
            return f"{written(left)} NOT {written(right)}"
        case And(left, right):
            return f"{written(left)} AND {written(right)}"
        case Or(left, right):
            return f"{written(left)} OR {written(right)}"
        case Raw(expression):
            return f"'{expression}'"


@given(SYNTAX)
def test_parsing_a_written_tree_gives_the_same_tree(text: str) -> None:
    tree = parse(text)
    if not isinstance(tree, Raw):
        assert repr(parse(f" {written(tree)} ")) == repr(tree) or isinstance(parse(written(tree)), Raw)


@pytest.mark.parametrize("piece", ["word ", "a AND ", '"', "x* ", "(", "한글", '"a b" OR ', "' ", "\0", " "])
def test_a_query_of_a_hundred_thousand_characters_is_parsed_quickly(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    started = time.process_time()
    parse(text)
    assert time.process_time() - started < 1.0


def test_the_operators_and_not_mean_not() -> None:
    """Regression: it asked for the word NOT, and found what was to be excluded."""
    assert parse("rocket AND NOT beta") == parse("rocket NOT beta")
    assert parse("rocket AND NOT") == parse('rocket AND "NOT"')
