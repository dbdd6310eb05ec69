"""Front matter in YAML or TOML; malformed, endless or hostile text gives a warning only."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.parsing.markdown import alias_list, date_of, declared_title, lang_of, read_front_matter, trust_of, words_of

BODY = "# Body\n"


def yaml(source: str) -> str:
    return f"---\n{source}\n---\n{BODY}"


@pytest.mark.parametrize(
    "text",
    [
        "---\ntitle: A note\ntags: [a, b]\n---\n# Body\n",
        "---\r\ntitle: A note\r\ntags: [a, b]\r\n---\r\n# Body\n",
        "---  \ntitle: A note\ntags:\n  - a\n  - b\n...\n# Body\n",
        '+++\ntitle = "A note"\ntags = ["a", "b"]\n+++\n# Body\n',
        '+++\r\ntitle = "A note"\r\ntags = ["a", "b"]\r\n+++\r\n# Body\n',
    ],
    ids=["yaml", "yaml-crlf", "yaml-dots", "toml", "toml-crlf"],
)
def test_yaml_and_toml_give_the_same_values(text: str) -> None:
    matter = read_front_matter(text)
    assert text[matter.end :] == BODY
    assert matter.values == {"title": "A note", "tags": ["a", "b"]}
    assert matter.warning is None


@pytest.mark.parametrize(
    "text",
    [
        "# Body\n",
        "",
        "---",
        "---\n",
        "--- \nnever closed\n",
        "text\n---\na: b\n---\n",
        "----\na: b\n---\n",
        "---\njust text\n---\n",
        "---\n- a\n---\n",
    ],
)
def test_a_text_without_front_matter_is_read_from_its_beginning(text: str) -> None:
    matter = read_front_matter(text)
    assert (matter.end, matter.values, matter.warning) == (0, {}, None)


def test_empty_front_matter_is_front_matter() -> None:
    matter = read_front_matter("---\n---\n# Body\n")
    assert (matter.end, matter.values, matter.warning) == (8, {}, None)


def test_front_matter_may_be_the_whole_file() -> None:
    text = "---\ntitle: x\n---"
    assert read_front_matter(text).end == len(text)


@pytest.mark.parametrize(
    "source",
    [
        "title: [unclosed",
        "title: a: b: c",
        "\tx: 1",
        "x: !!python/object/apply:os.system ['echo hacked']",
        "x: &a [*a]",
        "a: &a {b: *a}",
        "? [a]\n: b\n? {c: d}\n: e",
        "x: *nowhere",
        "title: \x01",
        "date: !!timestamp soon",
        "draft: !!bool maybe",
        'n: !!int ""',
        'n: !!int "-"',
        'n: !!float "_"',
        "n: " + ":".join(["59"] * 300) + ".5",
    ],
    ids="unclosed colons tab python-object self-list self-map odd-keys no-anchor control date bool int sign float sexagesimal".split(),
)
def test_malformed_yaml_is_a_warning_and_the_text_stays(source: str) -> None:
    matter = read_front_matter(yaml(source))
    assert matter.end == 0
    assert matter.values == {}
    assert matter.warning
    assert "front matter" in matter.warning


def test_malformed_toml_is_a_warning() -> None:
    matter = read_front_matter("+++\ntitle = \n+++\n# Body\n")
    assert matter.values == {}
    assert matter.warning


BOMBS = {
    "alias-bomb": "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    + "\n".join(
        f"{name}: &{name} [{','.join(['*' + before] * 10)}]"
        for before, name in zip("abcdefghi", "bcdefghij", strict=True)
    ),
    "quadratic": "a: &a [" + ",".join(["x"] * 5000) + "]\nb: [" + ",".join(["*a"] * 1000) + "]",
    "deep-list": "a: " + "[" * 12_000 + "]" * 12_000,
    "deep-map": "a: " + "{b: " * 5000 + "1" + "}" * 5000,
    "merge": "a: &a {x: 1}\n"
    + "\n".join(f"{n}: &{n} {{<<: [{','.join(['*' + b] * 9)}]}}" for b, n in zip("abcdefg", "bcdefgh", strict=True)),
    "one-merged-often": f"a: &a {{{', '.join(f'k{i}: 1' for i in range(1500))}}}\nb:\n" + "- <<: *a\n" * 3000,
    "many-merged-once": f"a: &a {{{', '.join(f'k{i}: 1' for i in range(1500))}}}\nb: {{<<: [{', '.join(['*a'] * 6000)}]}}",
    "huge-number": "x: " + "9" * 60_000,
    "sexagesimal": "x: " + ":".join(["59"] * 20_000),
    "empty-values": "-\n" * 32_000,
    "equal-hashes": "{" + ",".join(f"{(2**61 - 1) * i}: " for i in range(1, 2600)) + "}",
    "toml-key": "a." * 32_000 + "a = 1",
    "toml-quoted-key": ".".join(['"="'] * 15_000) + " = 1",
    "toml-header": "[" + "a." * 32_000 + "a]",
    "toml-keys-below-header": "[" + "a." * 2000 + "a]\n" + "\n".join(f"k{i} = 1" for i in range(5000)),
    "toml-keys-at-the-limit": "[" + "a." * 40 + "a]\n" + "\n".join(f"{i:x}=1" for i in range(6000)),
    "toml-values": "x = [" + "1," * 32_000 + "]",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_yaml_bomb_takes_little_time_and_gives_a_warning(name: str) -> None:
    started = time.process_time()
    matter = read_front_matter(f"+++\n{BOMBS[name]}\n+++\n{BODY}" if name.startswith("toml") else yaml(BOMBS[name]))
    assert time.process_time() - started < 2  # a busy machine doubles CPU times; without bounds it is 11 and more
    assert len(json.dumps(matter.values)) < 200_000


@pytest.mark.parametrize(
    "source",
    ["[" * 30_000 + "]" * 30_000, "- " * 30_000, "? " * 30_000, "[" * 60_000, "- ? " * 15_000],
    ids=lambda source: source[:6],
)
def test_endless_nesting_does_not_crash_the_process(source: str) -> None:
    """Runs in a process of its own, because an overflow of the C stack cannot be caught."""
    script = "import sys; from kebab.parsing.markdown import read_front_matter; print(read_front_matter(sys.stdin.read()).warning)"
    ran = subprocess.run(
        [sys.executable, "-c", script], input=yaml(source), capture_output=True, text=True, check=False, timeout=30
    )
    assert ran.returncode == 0
    assert "front matter" in ran.stdout


def test_deeply_nested_toml_is_harmless_too() -> None:
    matter = read_front_matter("+++\nx = " + "[" * 20_000 + "]" * 20_000 + "\n+++\n")
    assert matter.values == {}
    assert matter.warning


def test_all_yaml_values_become_plain_json() -> None:
    """Strict JSON has no NaN and no Infinity, and `kb list docs --json` shows these values."""
    source = "d: 2024-01-02\nt: 2024-01-02 03:04:05\nn: .nan\ni: .inf\nm: -.inf\nb: !!binary aGk=\ns: !!set {a, b}\n1: one\nnull: x\n"
    values = read_front_matter(yaml(source)).values
    assert values["d"] == "2024-01-02"
    assert values["t"] == "2024-01-02T03:04:05"
    assert values["n"] is values["i"] is values["m"] is None
    assert values["1"] == "one"
    json.dumps(values, allow_nan=False)
    json.dumps(read_front_matter("+++\ni = inf\nn = nan\nt = 07:32:00\n+++\n").values, allow_nan=False)


def test_unknown_keys_are_kept() -> None:
    assert read_front_matter(yaml("mood: good\nnested: {a: [1, 2]}")).values == {
        "mood": "good",
        "nested": {"a": [1, 2]},
    }


@given(
    st.text(st.one_of(st.sampled_from("-+.:[]{}&*!|>'\"#%@ \n\tabc019"), st.characters(codec="utf-8")), max_size=200),
    st.sampled_from(["---", "+++"]),
)
def test_any_text_between_fences_is_read_without_raising(source: str, fence: str) -> None:
    text = f"{fence}\n{source}\n{fence}\n{BODY}"
    matter = read_front_matter(text)
    assert 0 <= matter.end <= len(text)
    assert matter.end == 0 or text[matter.end - 1] == "\n"
    json.dumps(matter.values)


@pytest.mark.parametrize(
    ("value", "tags"),
    [
        (["a", "b"], ("a", "b")),
        ("a, b", ("a", "b")),
        ("a b", ("a", "b")),
        ("two words, b", ("two words", "b")),
        (["two words"], ("two words",)),
        (["#rust", "# go"], ("rust", "go")),
        ([2024, 1.5], ("2024", "1.5")),
        (["a", "a", "b"], ("a", "b")),
        (["", "  ", None, {"x": 1}, ["y"]], ()),
        ("", ()),
        (None, ()),
        ({"a": 1}, ()),
        (["e\u0301"], ("é",)),
    ],
)
def test_tags_may_be_a_list_or_a_text(value: object, tags: tuple[str, ...]) -> None:
    assert words_of({"tags": value}, "tags", "tag") == tags


def test_an_impossible_date_is_dropped_and_other_values_are_kept() -> None:
    matter = read_front_matter("---\ntitle: Plan\ndate: 2024-13-45\n---\n")
    assert matter.values == {"title": "Plan", "date": "2024-13-45"}
    assert matter.warning is None


def test_tag_and_tags_are_combined() -> None:
    assert words_of({"tags": ["a"], "tag": "b"}, "tags", "tag") == ("a", "b")


@pytest.mark.parametrize(
    ("values", "aliases"),
    [
        ({"aliases": ["New Name", "x"]}, ("New Name", "x")),
        ({"alias": "one alias, with comma"}, ("one alias, with comma",)),
        ({"aliases": None}, ()),
    ],
)
def test_an_alias_keeps_its_spaces(values: dict[str, object], aliases: tuple[str, ...]) -> None:
    assert alias_list(values) == aliases


@pytest.mark.parametrize(
    ("values", "date"),
    [
        ({"date": "2024-01-02"}, "2024-01-02"),
        ({"date": "2024-01-02T03:04:05"}, "2024-01-02T03:04:05"),
        ({"date": "2024-01-02 03:04"}, "2024-01-02T03:04:00"),
        ({"updated": "2024-05-06", "created": "2023-01-01"}, "2024-05-06"),
        ({"date": "next tuesday", "created": "2023-01-01"}, "2023-01-01"),
        ({"date": "2024-02-30"}, None),
        ({"date": 2024}, None),
        ({}, None),
    ],
)
def test_dates_become_iso_so_that_they_compare_as_text(values: dict[str, object], date: str | None) -> None:
    assert date_of(values)[0] == date


def test_dates_with_and_without_time_zone_compare_in_the_right_order() -> None:
    """Stored dates are compared as text, so all of them must be in one time zone."""
    earlier, later = date_of({"date": "2024-01-02T23:30:00+09:00"})[0], date_of({"date": "2024-01-02T15:00:00Z"})[0]
    assert earlier is not None
    assert later is not None
    assert earlier < later


@pytest.mark.parametrize(
    ("values", "lang"),
    [
        ({"lang": "ko"}, "ko"),
        ({"language": " KO "}, "ko"),
        ({"lang": "en-US"}, "en-us"),
        ({"lang": "english language"}, None),
        ({"lang": 7}, None),
    ],
)
def test_a_language_tag_is_taken_and_prose_is_not(values: dict[str, object], lang: str | None) -> None:
    assert lang_of(values) == lang


def test_trust_is_one_of_three_levels_or_a_warning() -> None:
    assert trust_of({"trust": " Primary "}) == ("primary", None)
    assert trust_of({"trust_level": "generated"}) == ("generated", None)
    assert trust_of({}) == (None, None)
    level, warning = trust_of({"trust": "total"})
    assert level is None
    assert warning is not None
    assert "primary, secondary, generated" in warning


def test_a_title_is_one_line_of_text() -> None:
    assert declared_title({"title": "  A \n title "}) == "A title"
    assert declared_title({"title": 2024}) == "2024"
    assert declared_title({"title": ["no"]}) == declared_title({}) == ""
