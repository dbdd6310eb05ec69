"""Path globs: what they match, that they agree with a plainer implementation, and that none takes time without end."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kebab.core.paths import path_matches


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("a/*.md", "a/b.md", True),
        ("a/*.md", "a/b/c.md", False),
        ("*.md", "a.md", True),
        ("*.md", "a/b.md", False),
        ("**/*.md", "a.md", True),
        ("**/*.md", "a/b/c.md", True),
        ("docs/**/*.md", "docs/x.md", True),
        ("docs/**/*.md", "docs/a/b/x.md", True),
        ("docs/**/*.md", "other/docs/x.md", False),
        ("docs/**", "docs/a/b.txt", True),
        ("docs/**", "docs", False),
        ("a?c.md", "abc.md", True),
        ("a?c.md", "a/c.md", False),
        ("[ab].md", "b.md", True),
        ("[!ab].md", "c.md", True),
        ("[!ab].md", "b.md", False),
        ("a[!b]c", "a/c", False),
        ("[!-a]x", "Bx", True),
        ("[!-a]x", "-x", False),
        ("[!-a]x", "ax", False),
        ("x[+-9]y", "x/y", False),
        ("[a&&b]x", "&x", True),
        ("[a||b]x", "|x", True),
        ("[a~~b]x", "~x", True),
        ("[]a]x", "]x", True),
        ("[!]a]x", "bx", True),
        ("[!]a]x", "]x", False),
        ("[z-a].md", "[z-a].md", True),
        ("[open.md", "[open.md", True),
        ("a.md", "aXmd", False),
        ("한글/*.md", "한글/문서.md", True),
        ("*", "", True),
        ("a\nb*", "a\nbc", True),
    ],
)
def test_a_path_glob_matches_these_paths_and_not_those(pattern: str, path: str, expected: bool) -> None:
    """`*` stops at a slash"""
    assert path_matches(pattern, path) is expected


def reference(pattern: str, path: str) -> bool:
    """Matches by recursion on both texts, without regular expressions."""

    @cache
    def matches(p: int, s: int) -> bool:
        if p == len(pattern):
            return s == len(path)
        if pattern.startswith("**/", p) and (p == 0 or pattern[p - 1] == "/"):
            return matches(p + 3, s) or any(path[i] == "/" and matches(p + 3, i + 1) for i in range(s, len(path)))
        if pattern.startswith("**", p):
            return any(matches(p + 2, i) for i in range(s, len(path) + 1))
        if pattern[p] == "*":
            end = path.find("/", s)
            return any(matches(p + 1, i) for i in range(s, (len(path) if end < 0 else end) + 1))
        if s == len(path):
            return False
        if pattern[p] == "?":
            return path[s] != "/" and matches(p + 1, s + 1)
        if pattern[p] == "[" and (end := pattern.find("]", p + (3 if pattern[p + 1 : p + 2] in ("!", "^") else 2))) > 0:
            inside = pattern[p + 1 : end]
            negated = inside[0] in "!^"
            return path[s] != "/" and (path[s] in inside.lstrip("!^")) is not negated and matches(end + 1, s + 1)
        return pattern[p] == path[s] and matches(p + 1, s + 1)

    return matches(0, 0)


pieces = st.sampled_from(["*", "**", "**/", "/", "?", "a", "b", ".", "[ab]", "[!a]", "[^b.]", "(", "+", "가", "[", "]"])
patterns = st.lists(pieces, max_size=7).map("".join)
paths = st.text(st.sampled_from("ab/.(가]["), max_size=10)


@settings(max_examples=200)
@given(pattern=patterns, path=paths)
@example(pattern="**/a", path="a")
@example(pattern="a/**/b", path="a/b")
@example(pattern="***/", path="a/")
def test_globs_agree_with_a_second_implementation(pattern: str, path: str) -> None:
    assert path_matches(pattern, path) is reference(pattern, path)


@given(pattern=st.text(st.sampled_from("a-]&|~[!^\\z0"), max_size=8), path=paths)
def test_no_glob_raises_or_warns(pattern: str, path: str) -> None:
    path_matches(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 12 + "*b", "a" * 200),
        ("**/" * 12 + "x", "a/" * 100 + "a"),
        ("**a" * 12 + "b", "a/" * 100 + "a"),
        ("?*" * 14 + "x", "a" * 200),
    ],
)
def test_matching_any_glob_ends_quickly(pattern: str, path: str) -> None:
    code = "import sys; from kebab.core.paths import path_matches; print(path_matches(*sys.argv[1:]))"
    ran = subprocess.run(
        [sys.executable, "-c", code, pattern, path], capture_output=True, text=True, timeout=5, check=True
    )
    assert ran.stdout == "False\n"
