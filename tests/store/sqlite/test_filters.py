"""Which documents may answer: each filter alone, together, and path globs against a second implementation."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kebab.core.documents import document_id
from kebab.core.search import SearchFilters
from kebab.store.sqlite.catalog import SqliteCatalog
from kebab.store.sqlite.filters import document_filter
from kebab.store.sqlite.path_glob import path_matches

if TYPE_CHECKING:
    from tests.store.conftest import Shelf

EVERY = ["code.py", "en/deep/er.md", "en/one.md", "ko.md", "plain.txt"]


@pytest.fixture(scope="module")
def corpus(shared_shelf: Shelf) -> Shelf:
    write = shared_shelf.write
    write("en/one.md", "word one", tags=["rust", "ops"], date="2026-01-10")
    write("en/deep/er.md", "word two", tags=["ops", "production"], date="2026-02-20", trust="secondary")
    write("ko.md", "word 문서", tags=["한글"], lang="ko", date="2026-03-30T08:15:00", trust="generated")
    write("code.py", "word def", doc_type="code", format="py", date="2025-12-31", source="src")
    write("plain.txt", "word plain", doc_type="note", format="txt", lang="ko", date="2024-06-01", tags=["rust"])
    return shared_shelf


def found(corpus: Shelf, **filters: Any) -> list[str]:
    """What search and listing agree on."""
    answer = sorted(corpus.search("word", **filters))
    listed = sorted(record.path for record in SqliteCatalog(corpus.connection).documents(SearchFilters(**filters)))
    assert answer == listed
    assert SqliteCatalog(corpus.connection).count_documents(SearchFilters(**filters)) == len(listed)
    return answer


def test_no_filter_is_no_sql() -> None:
    assert document_filter(SearchFilters()) == ("", {})


def test_without_a_filter_everything_answers(corpus: Shelf) -> None:
    assert found(corpus) == EVERY


def test_r023_r035_r128_any_of_the_tags(corpus: Shelf) -> None:
    """R023, R035, R128"""
    assert found(corpus, tags_any=("rust",)) == ["en/one.md", "plain.txt"]
    assert found(corpus, tags_any=("rust", "production")) == ["en/deep/er.md", "en/one.md", "plain.txt"]
    assert found(corpus, tags_any=("한글",)) == ["ko.md"]
    assert found(corpus, tags_any=("nobody",)) == []


def test_a_document_with_several_of_the_tags_is_one_hit(corpus: Shelf) -> None:
    assert found(corpus, tags_any=("rust", "ops")) == ["en/deep/er.md", "en/one.md", "plain.txt"]


def test_r129_r131_r132_all_of_the_tags(corpus: Shelf) -> None:
    """R129, R131, R132"""
    assert found(corpus, tags_all=("ops",)) == ["en/deep/er.md", "en/one.md"]
    assert found(corpus, tags_all=("ops", "production")) == ["en/deep/er.md"]
    assert found(corpus, tags_all=("ops", "production", "rust")) == []
    assert found(corpus, tags_all=("ops", "ops")) == ["en/deep/er.md", "en/one.md"]


def test_any_and_all_tags_together_must_both_hold(corpus: Shelf) -> None:
    assert found(corpus, tags_any=("rust", "한글"), tags_all=("ops",)) == ["en/one.md"]


def test_a_tag_means_the_tags_nested_below_it_too(shelf: Shelf) -> None:
    """As in Obsidian; and what would be a wildcard in LIKE is a letter like any other."""
    shelf.write("liquid.md", "word", tags=["propulsion/liquid", "Propulsion/liquid/methane"])
    shelf.write("whole.md", "word", tags=["propulsion"])
    shelf.write("other.md", "word", tags=["propulsions", "propulsion-lab", "propulsion0"])
    shelf.write("wild.md", "word", tags=["a_b/c", "100%/d"])
    below = ["liquid.md", "whole.md"]
    assert found(shelf, tags_any=("propulsion",)) == found(shelf, tags_all=("PROPULSION",)) == below
    assert found(shelf, tags_any=("propulsion/liquid",)) == found(shelf, tags_all=("propulsion", "propulsion/liquid")) == ["liquid.md"]
    assert found(shelf, exclude_tags=("propulsion",)) == ["other.md", "wild.md"]
    assert found(shelf, tags_any=("a_b", "%", "_", "propulsio_")) == found(shelf, tags_any=("100%",)) == ["wild.md"]


def test_any_number_of_tags_may_be_asked_for(corpus: Shelf) -> None:
    many = tuple(f"none{number}" for number in range(3000))
    assert found(corpus, tags_any=(*many, "rust")) == ["en/one.md", "plain.txt"]
    assert found(corpus, exclude_tags=(*many, "rust")) == ["code.py", "en/deep/er.md", "ko.md"]


def test_r130_tags_are_applied_by_join_inside_the_ranked_statement(corpus: Shelf) -> None:
    """R130: in SQL, by JOIN, before the limit; the plan reads document_tags by an index."""
    sql, bindings = document_filter(SearchFilters(tags_any=("rust",), tags_all=("ops",)))
    assert sql.count("JOIN document_tags") == 2
    plan = " ".join(row[3] for row in corpus.rows(f"EXPLAIN QUERY PLAN {sql}", bindings))
    assert "SCAN document_tags" not in plan
    assert "USING PRIMARY KEY" in plan or "INDEX" in plan


def test_r130_a_rare_tag_is_not_starved_by_the_limit(shelf: Shelf) -> None:
    """The filter works before the top k is taken, not on it."""
    for number in range(60):
        shelf.write(f"{number}.md", "word word word")
    shelf.write("rare.md", "a long text in which the word stands once among many others", tags=["rare"])
    from kebab.analysis.query_syntax import parse
    from kebab.store.sqlite.lexical import SqliteLexicalIndex

    index = SqliteLexicalIndex(shelf.connection, korean_analysis="bigrams")
    filters = SearchFilters(tags_any=("rare",))
    hits = index.search(parse("word"), match="all", drop_stop_words=False, filters=filters, limit=1)
    assert [hit.chunk.doc_path for hit in hits.matches] == ["rare.md"]
    assert not hits.more


def test_r024_lang_is_exact(corpus: Shelf) -> None:
    """R024"""
    assert found(corpus, lang="ko") == ["ko.md", "plain.txt"]
    assert found(corpus, lang="k") == []


def test_documents_that_are_left_out(corpus: Shelf) -> None:
    one, other = document_id("notes", "en/one.md"), document_id("src", "code.py")
    assert found(corpus, exclude_docs=(one, other)) == ["en/deep/er.md", "ko.md", "plain.txt"]
    assert found(corpus, exclude_docs=(one,), tags_any=("rust",)) == ["plain.txt"]


def test_r133_r134_types(corpus: Shelf) -> None:
    """R133, R134"""
    assert found(corpus, types=("code",)) == ["code.py"]
    assert found(corpus, types=("code", "note")) == ["code.py", "plain.txt"]
    assert found(corpus, formats=("txt",)) == ["plain.txt"]


@pytest.mark.parametrize(
    ("least", "expected"),
    [
        ("generated", EVERY),
        ("secondary", ["code.py", "en/deep/er.md", "en/one.md", "plain.txt"]),
        ("primary", ["code.py", "en/one.md", "plain.txt"]),
    ],
)
def test_r026_trust_is_ordered(corpus: Shelf, least: str, expected: list[str]) -> None:
    """R026"""
    assert found(corpus, trust_min=least) == expected


def test_dates_after_is_inclusive_and_before_is_not(corpus: Shelf) -> None:
    assert found(corpus, after="2026-01-10") == ["en/deep/er.md", "en/one.md", "ko.md"]
    assert found(corpus, after="2026-01-11") == ["en/deep/er.md", "ko.md"]
    assert found(corpus, before="2026-01-10") == ["code.py", "plain.txt"]
    assert found(corpus, after="2026-01-01", before="2026-03-01") == ["en/deep/er.md", "en/one.md"]


def test_a_day_without_a_time_means_its_beginning(corpus: Shelf) -> None:
    assert found(corpus, after="2026-03-30") == ["ko.md"]
    assert found(corpus, before="2026-03-30", after="2026-03-01") == []
    assert found(corpus, after="2026-03-30T09:00") == []


def test_sources_and_documents(corpus: Shelf) -> None:
    assert found(corpus, sources=("src",)) == ["code.py"]
    assert found(corpus, sources=("src", "notes")) == EVERY
    assert found(corpus, docs=(document_id("notes", "ko.md"),)) == ["ko.md"]


def test_exclusions(corpus: Shelf) -> None:
    assert found(corpus, exclude_paths=("en/**",)) == ["code.py", "ko.md", "plain.txt"]
    assert found(corpus, exclude_paths=("en/**", "*.py")) == ["ko.md", "plain.txt"]
    assert found(corpus, exclude_tags=("ops", "한글")) == ["code.py", "plain.txt"]


def test_all_filters_at_once(corpus: Shelf) -> None:
    filters = {
        "tags_any": ("ops", "x"), "tags_all": ("ops",), "types": ("markdown",), "formats": ("md",), "lang": "en", "path_glob": "en/*",
        "trust_min": "primary", "sources": ("notes",), "docs": (document_id("notes", "en/one.md"),), "after": "2026-01-01",
        "before": "2026-12-31", "exclude_paths": ("*.txt",), "exclude_tags": ("production",),
    }  # fmt: skip
    assert found(corpus, **filters) == ["en/one.md"]


def test_a_filter_typed_in_another_unicode_form_matches(corpus: Shelf) -> None:
    import unicodedata

    assert found(corpus, tags_any=(unicodedata.normalize("NFD", "한글"),)) == ["ko.md"]


def test_values_are_bound_never_pasted(corpus: Shelf) -> None:
    hostile = "x') OR 1=1 --"
    for name in ("tags_any", "tags_all", "types", "formats", "sources", "docs"):
        assert found(corpus, **{name: (hostile,)}) == []
    for name in ("lang", "path_glob", "after"):
        assert found(corpus, **{name: hostile}) == []


# --- path globs


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
def test_r025_path_globs(pattern: str, path: str, expected: bool) -> None:
    """R025: `*` stops at a slash"""
    assert path_matches(pattern, path) is expected


def test_r025_the_glob_filter_uses_them(corpus: Shelf) -> None:
    assert found(corpus, path_glob="en/*.md") == ["en/one.md"]
    assert found(corpus, path_glob="**/*.md") == ["en/deep/er.md", "en/one.md", "ko.md"]
    assert found(corpus, path_glob="*") == ["code.py", "ko.md", "plain.txt"]


def reference(pattern: str, path: str) -> bool:
    """By recursion on both texts, without regular expressions."""

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


@settings(max_examples=600, deadline=None)
@given(pattern=patterns, path=paths)
@example(pattern="**/a", path="a")
@example(pattern="a/**/b", path="a/b")
@example(pattern="***/", path="a/")
def test_r025_globs_agree_with_a_second_implementation(pattern: str, path: str) -> None:
    assert path_matches(pattern, path) is reference(pattern, path)


@settings(max_examples=300, deadline=None)
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
def test_no_glob_hangs(pattern: str, path: str) -> None:
    code = "import sys; from kebab.store.sqlite.path_glob import path_matches; print(path_matches(*sys.argv[1:]))"
    ran = subprocess.run([sys.executable, "-c", code, pattern, path], capture_output=True, text=True, timeout=5, check=True)
    assert ran.stdout == "False\n"
