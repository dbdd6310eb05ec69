"""Which documents pass each filter, alone and together; the same in lexical search, vector search and lists."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from kebab.core.documents import document_id
from kebab.core.search import SearchFilters

if TYPE_CHECKING:
    from tests.contracts.stores import Corpus

EVERY = ["code.py", "en/deep/er.md", "en/one.md", "ko.md", "plain.txt"]


class Embedder:
    """A model that gives all texts the same vector, so that results depend on filters only."""

    name, version, dimension, fingerprint = "filters", "1", 4, "filters@1:4"

    def embed(self, texts: Any, _kind: str, /) -> Any:
        return np.tile(np.eye(4, dtype=np.float32)[0], (len(texts), 1))


EMBEDDER = Embedder()


@pytest.fixture(scope="module")
def filtered(shared_corpus: Corpus) -> Corpus:
    document = shared_corpus.document
    shared_corpus.write_all(
        document("en/one.md", "word one", tags=["rust", "ops"], date="2026-01-10"),
        document("en/deep/er.md", "word two", tags=["ops", "production"], date="2026-02-20", trust="secondary"),
        document("ko.md", "word 문서", tags=["한글"], lang="ko", date="2026-03-30T08:15:00", trust="generated"),
        document("code.py", "word def", doc_type="code", format="py", date="2025-12-31", source="src", kind="code"),
        document("plain.txt", "word plain", doc_type="note", format="txt", lang="ko", date="2024-06-01", tags=["rust"]),
    )
    shared_corpus.embed(EMBEDDER)
    return shared_corpus


def found(corpus: Corpus, **filters: Any) -> list[str]:
    """The documents that lexical search, vector search and listing all find."""
    answer = sorted(corpus.search("word", **filters))
    chosen = SearchFilters(**filters)
    with corpus.catalog() as catalog:
        listed = sorted(record.path for record in catalog.documents(chosen))
        assert answer == listed
        assert catalog.count_documents(chosen) == len(listed)
    assert corpus.count("word", **filters) == len(listed)
    paths = {chunk.chunk_id: chunk.doc_path for chunk in corpus.chunks()}
    with corpus.reading() as reading:
        is_embedded = reading.vectors().holds(EMBEDDER)
    near = corpus.near(EMBEDDER, EMBEDDER.embed([""], "query")[0], 1000, filters=chosen)
    assert sorted(paths[match.chunk_id] for match in near) == (listed if is_embedded else [])
    return answer


def test_without_a_filter_all_documents_are_found(filtered: Corpus) -> None:
    assert found(filtered) == EVERY


def test_tags_any_selects_documents_with_any_of_the_tags(filtered: Corpus) -> None:
    assert found(filtered, tags_any=("rust",)) == ["en/one.md", "plain.txt"]
    assert found(filtered, tags_any=("rust", "production")) == ["en/deep/er.md", "en/one.md", "plain.txt"]
    assert found(filtered, tags_any=("한글",)) == ["ko.md"]
    assert found(filtered, tags_any=("nobody",)) == []
    assert found(filtered, tags_any=("rust", "ops")) == ["en/deep/er.md", "en/one.md", "plain.txt"], (
        "one with both is one hit"
    )


def test_tags_all_selects_documents_with_all_of_the_tags(filtered: Corpus) -> None:
    assert found(filtered, tags_all=("ops",)) == ["en/deep/er.md", "en/one.md"]
    assert found(filtered, tags_all=("ops", "production")) == ["en/deep/er.md"]
    assert found(filtered, tags_all=("ops", "production", "rust")) == []
    assert found(filtered, tags_all=("ops", "ops")) == ["en/deep/er.md", "en/one.md"]
    assert found(filtered, tags_any=("rust", "한글"), tags_all=("ops",)) == ["en/one.md"]


def test_tags_are_matched_without_regard_to_case(filtered: Corpus) -> None:
    assert found(filtered, tags_any=("RUST",)) == found(filtered, tags_all=("Rust",)) == ["en/one.md", "plain.txt"]


def test_a_tag_filter_includes_nested_tags(corpus: Corpus) -> None:
    """As in Obsidian. Wildcards of LIKE in a tag are ordinary letters."""
    corpus.write_all(
        corpus.document("liquid.md", "word", tags=["propulsion/liquid", "Propulsion/liquid/methane"]),
        corpus.document("whole.md", "word", tags=["propulsion"]),
        corpus.document("other.md", "word", tags=["propulsions", "propulsion-lab", "propulsion0"]),
        corpus.document("wild.md", "word", tags=["a_b/c", "100%/d"]),
    )
    below = ["liquid.md", "whole.md"]
    assert found(corpus, tags_any=("propulsion",)) == found(corpus, tags_all=("PROPULSION",)) == below
    assert (
        found(corpus, tags_any=("propulsion/liquid",))
        == found(corpus, tags_all=("propulsion", "propulsion/liquid"))
        == ["liquid.md"]
    )
    assert found(corpus, exclude_tags=("propulsion",)) == ["other.md", "wild.md"]
    assert found(corpus, tags_any=("a_b", "%", "_", "propulsio_")) == found(corpus, tags_any=("100%",)) == ["wild.md"]


def test_a_filter_may_have_any_number_of_tags(filtered: Corpus) -> None:
    many = tuple(f"none{number}" for number in range(1200))
    assert found(filtered, tags_any=(*many, "rust")) == ["en/one.md", "plain.txt"]
    assert found(filtered, exclude_tags=(*many, "rust")) == ["code.py", "en/deep/er.md", "ko.md"]


def test_filters_are_applied_before_the_limit(corpus: Corpus) -> None:
    """A rare tag therefore finds its documents whatever the best k matches are."""
    corpus.write_all(
        *(corpus.document(f"{number}.md", "word word word") for number in range(60)),
        corpus.document("rare.md", "a long text in which the word stands once among many others", tags=["rare"]),
    )
    hits = corpus.matches("word", limit=1, filters=SearchFilters(tags_any=("rare",)))
    assert [chunk.doc_path for chunk in corpus.read(hits)] == ["rare.md"]
    assert not hits.more


def test_a_language_filter_matches_only_the_same_language(filtered: Corpus) -> None:
    assert found(filtered, lang="ko") == ["ko.md", "plain.txt"]
    assert found(filtered, lang="k") == []


def test_a_type_filter_selects_documents_of_any_of_the_types(filtered: Corpus) -> None:
    assert found(filtered, types=("code",)) == ["code.py"]
    assert found(filtered, types=("code", "note")) == ["code.py", "plain.txt"]
    assert found(filtered, formats=("txt",)) == ["plain.txt"]


@pytest.mark.parametrize(
    ("least", "expected"),
    [
        ("generated", EVERY),
        ("secondary", ["code.py", "en/deep/er.md", "en/one.md", "plain.txt"]),
        ("primary", ["code.py", "en/one.md", "plain.txt"]),
    ],
)
def test_trust_min_selects_documents_of_that_level_or_higher(filtered: Corpus, least: str, expected: list[str]) -> None:
    assert found(filtered, trust_min=least) == expected


def test_the_filter_after_includes_its_date_and_before_does_not(filtered: Corpus) -> None:
    assert found(filtered, after="2026-01-10") == ["en/deep/er.md", "en/one.md", "ko.md"]
    assert found(filtered, after="2026-01-11") == ["en/deep/er.md", "ko.md"]
    assert found(filtered, before="2026-01-10") == ["code.py", "plain.txt"]
    assert found(filtered, after="2026-01-01", before="2026-03-01") == ["en/deep/er.md", "en/one.md"]


def test_a_date_filter_without_a_time_means_the_beginning_of_the_day(filtered: Corpus) -> None:
    assert found(filtered, after="2026-03-30") == ["ko.md"]
    assert found(filtered, before="2026-03-30", after="2026-03-01") == []
    assert found(filtered, after="2026-03-30T09:00") == []


def test_source_and_document_filters_select_by_name_and_id(filtered: Corpus) -> None:
    one, other = document_id("notes", "en/one.md"), document_id("src", "code.py")
    assert found(filtered, sources=("src",)) == ["code.py"]
    assert found(filtered, sources=("src", "notes")) == EVERY
    assert found(filtered, docs=(document_id("notes", "ko.md"),)) == ["ko.md"]
    assert found(filtered, exclude_docs=(one, other)) == ["en/deep/er.md", "ko.md", "plain.txt"]
    assert found(filtered, exclude_docs=(one,), tags_any=("rust",)) == ["plain.txt"]


def test_a_path_filter_is_a_glob_a_file_or_a_folder(filtered: Corpus) -> None:
    assert found(filtered, path_glob="en/*.md") == ["en/one.md"]
    assert found(filtered, path_glob="**/*.md") == ["en/deep/er.md", "en/one.md", "ko.md"]
    assert found(filtered, path_glob="*") == ["code.py", "ko.md", "plain.txt"]
    for glob in ("*", "en", "en/*.md"):
        assert found(filtered, path_glob=glob, exclude_paths=(glob,)) == []
    assert found(filtered, path_glob="en") == found(filtered, path_glob="en/") == ["en/deep/er.md", "en/one.md"]
    assert found(filtered, path_glob="en/one.md") == found(filtered, path_glob="e?/[no]ne.md") == ["en/one.md"]
    assert found(filtered, path_glob="en/on") == []


def test_excluded_paths_tags_and_documents_are_left_out(filtered: Corpus) -> None:
    assert (
        found(filtered, exclude_paths=("en/**",))
        == found(filtered, exclude_paths=("en",))
        == ["code.py", "ko.md", "plain.txt"]
    )
    assert found(filtered, exclude_paths=("en/**", "*.py")) == ["ko.md", "plain.txt"]
    assert found(filtered, exclude_tags=("ops", "한글")) == ["code.py", "plain.txt"]


def test_all_filters_together_select_what_passes_each(filtered: Corpus) -> None:
    filters = {
        "tags_any": ("ops", "x"), "tags_all": ("ops",), "types": ("markdown",), "formats": ("md",), "lang": "en", "path_glob": "en/*",
        "trust_min": "primary", "sources": ("notes",), "docs": (document_id("notes", "en/one.md"),), "after": "2026-01-01",
        "before": "2026-12-31", "exclude_paths": ("*.txt",), "exclude_tags": ("production",),
    }  # fmt: skip
    assert found(filtered, **filters) == ["en/one.md"]


def test_a_filter_typed_in_another_unicode_form_matches(filtered: Corpus) -> None:
    assert found(filtered, tags_any=(unicodedata.normalize("NFD", "한글"),)) == ["ko.md"]


def test_filter_values_are_never_interpreted_as_syntax(filtered: Corpus) -> None:
    for hostile in ("x') OR 1=1 --", '{"must": []}', "half \udc80", "\0"):
        for name in ("tags_any", "tags_all", "types", "formats", "sources", "docs"):
            assert found(filtered, **{name: (hostile,)}) == []
        for name in ("lang", "path_glob"):
            assert found(filtered, **{name: hostile}) == []
