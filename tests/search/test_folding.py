"""Searches fold passages with the same text under the best one, in every mode, and pages contain each hit exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kebab
from kebab.core.errors import ConfigError, StaleCursor, UsageError
from kebab.core.ports import EmbeddingModels
from kebab.core.search import SearchHit, SearchResponse

if TYPE_CHECKING:
    from tests.conftest import Toy

COPIED = 12
ALONE = 15


def note(number: int, version: int) -> str:
    """A note in two versions: every third note is edited in the second one. Without the title, short notes are equal."""
    words = [f"word{(number * 37 + place * 11) % 101}" for place in range(120 if number % 2 else 8)]
    words[5] = "okapi" if number % 3 else "okapi okapi"
    if version == 2 and number % 3 == 1 and number % 2:
        words[60] = "edited"
    return f"---\ndate: 2024-0{version}-{number + 1:02}\n---\n# Note {number}\n\n{' '.join(words)}\n"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory, toy: type[Toy]) -> Path:
    folder = tmp_path_factory.mktemp("duplicates")
    files = {f"v{version}/{number:02}.md": note(number, version) for version in (1, 2, 3) for number in range(COPIED)}
    files |= {
        f"alone/{number}.md": f"# Alone {number}\n\nokapi {' '.join(f'own{number}x{word}' for word in range(9))}\n"
        for number in range(ALONE)
    }
    for path, text in files.items():
        (folder / "notes" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "notes" / path).write_text(text, encoding="utf-8")
    with toy.open(folder / "kb.sqlite", models_of(toy)) as kb:
        kb.ingest(folder / "notes")
    return folder / "kb.sqlite"


def models_of(toy: type[Toy]) -> EmbeddingModels:
    return toy.models(toy.embedder())


@pytest.fixture
def kb(database: Path, toy: type[Toy]) -> Iterator[kebab.KnowledgeBase]:
    with toy.open(database, models_of(toy)) as opened:
        yield opened


def pages(kb: kebab.KnowledgeBase, **options: Any) -> list[SearchResponse]:
    found = [kb.search("okapi", **options)]
    while found[-1].next_cursor and len(found) < 100:
        found.append(kb.search("okapi", cursor=found[-1].next_cursor, **options))
    return found


def ids(hits: Iterator[SearchHit] | list[SearchHit]) -> list[str]:
    return [hit.chunk_id for hit in hits]


def with_duplicates(hits: list[SearchHit]) -> list[tuple[str, list[str]]]:
    return [(hit.chunk_id, [duplicate.chunk_id for duplicate in hit.duplicates]) for hit in hits]


@pytest.mark.parametrize("mode", ["lexical", "vector", "hybrid"])
def test_copies_are_folded_under_the_best_one(kb: kebab.KnowledgeBase, mode: str) -> None:
    everything = {hit.chunk_id: hit for hit in kb.search("okapi", mode=mode, k=1000, duplicates="show")}
    hits = list(kb.search("okapi", mode=mode, k=1000))
    assert len(everything) == 3 * COPIED + ALONE
    assert len(hits) < len(everything)
    folded = [hit for hit in hits if hit.duplicates]
    assert folded
    for hit in folded:
        for duplicate in hit.duplicates:
            own = everything[duplicate.chunk_id]
            assert Path(duplicate.doc_path).name == Path(hit.doc_path).name
            assert (duplicate.citation, duplicate.doc_id, duplicate.source) == (own.citation, own.doc_id, own.source)
            assert own.rank > everything[hit.chunk_id].rank
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert sorted([*ids(hits), *(copy.chunk_id for hit in hits for copy in hit.duplicates)]) == sorted(everything)


def test_in_lexical_mode_all_copies_of_a_passage_are_folded(kb: kebab.KnowledgeBase) -> None:
    hits = kb.search("okapi", mode="lexical", k=1000)
    assert len(hits) == COPIED + ALONE
    assert sum(len(hit.duplicates) for hit in hits) == 2 * COPIED


def test_with_duplicates_show_every_copy_is_a_separate_hit(kb: kebab.KnowledgeBase) -> None:
    hits = kb.search("okapi", mode="lexical", k=1000, duplicates="show")
    assert len(hits) == 3 * COPIED + ALONE
    assert not any(hit.duplicates for hit in hits)


@pytest.mark.parametrize("k", [1, 4, 10])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sort": "date"},
        {"per_doc": 1},
        {"match": "any"},
        {"path": "v*/**"},
        {"min_score": 0.1},
        {"sort": "date", "min_score": 0.1},
        {"full_text": True, "max_tokens": 300},
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", ["lexical", "vector", "hybrid"])
def test_pages_with_folded_copies_are_full_and_contain_every_hit_once(
    kb: kebab.KnowledgeBase, mode: str, options: dict[str, Any], k: int
) -> None:
    found = pages(kb, mode=mode, k=k, **options)
    hits = [hit for page in found for hit in page]
    seen = [*ids(hits), *(copy.chunk_id for hit in hits for copy in hit.duplicates)]
    assert len(set(seen)) == len(seen)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1)) or "min_score" in options
    everything = [hit for page in pages(kb, mode=mode, k=k, duplicates="show", **options) for hit in page]
    assert set(seen) == set(ids(everything)) or (mode, options.get("sort")) == ("hybrid", "date")
    if "max_tokens" not in options and "min_score" not in options:
        assert {len(page.hits) for page in found[:-1]} <= {k}
    if mode != "hybrid" and options.get("sort") != "date":
        whole = {name: value for name, value in options.items() if name != "max_tokens"}
        assert with_duplicates(hits) == with_duplicates(list(kb.search("okapi", mode=mode, k=1000, **whole)))


@pytest.mark.parametrize("mode", ["lexical", "vector", "hybrid"])
def test_a_first_page_is_full_even_if_most_passages_are_copies(tmp_path: Path, toy: type[Toy], mode: str) -> None:
    for number in range(60):
        (tmp_path / f"copy{number}.md").write_text("# Same\n\nokapi okapi okapi\n", encoding="utf-8")
    for number in range(12):
        (tmp_path / f"other{number}.md").write_text(f"# Other\n\nokapi number{number} and more\n", encoding="utf-8")
    with toy.open(tmp_path / "kb.sqlite", models_of(toy)) as kb:
        kb.ingest(tmp_path)
        hits = list(kb.search("okapi", mode=mode, k=10))
        assert len(hits) == 10
        assert len({hit.text for hit in hits}) >= 9
        # In a hybrid list, what a deeper look finds stands for itself.
        assert len(hits[0].duplicates) == 59 or mode == "hybrid"


def test_sorted_by_date_the_newest_copy_is_the_hit(kb: kebab.KnowledgeBase) -> None:
    for mode in ("vector", "hybrid"):
        hits = kb.search("okapi", mode=mode, k=1000, sort="date", path="v*/03.md")
        assert [(hit.doc_path, [copy.doc_path for copy in hit.duplicates]) for hit in hits] == [
            ("v3/03.md", ["v2/03.md", "v1/03.md"])
        ]


def test_a_document_whose_best_passage_is_folded_may_have_its_next_passage_listed(tmp_path: Path) -> None:
    first = f"# Part\n\nokapi okapi {'word ' * 300}\n\n"
    (tmp_path / "a.md").write_text(first, encoding="utf-8")
    (tmp_path / "b.md").write_text(f"{first}# Other\n\nokapi {'else ' * 300}\n", encoding="utf-8")
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(tmp_path, embed=False)
        hits = kb.search("okapi", mode="lexical", per_doc=1)
        assert sorted(hit.doc_path for hit in hits) == ["a.md", "b.md"]


def test_a_cursor_is_refused_with_another_value_of_duplicates(kb: kebab.KnowledgeBase) -> None:
    cursor = kb.search("okapi", k=2).next_cursor
    with pytest.raises(StaleCursor):
        kb.search("okapi", k=2, cursor=cursor, duplicates="show")


def test_the_setting_search_duplicates_is_the_default_of_the_option(database: Path, toy: type[Toy]) -> None:
    with toy.open(database, models_of(toy), search_duplicates="show") as kb:
        assert len(kb.search("okapi", mode="lexical", k=1000)) == 3 * COPIED + ALONE
        assert len(kb.search("okapi", mode="lexical", k=1000, duplicates="fold")) == COPIED + ALONE


def test_an_unknown_value_of_duplicates_is_an_error_that_lists_the_valid_ones(
    kb: kebab.KnowledgeBase, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        kb.search("okapi", duplicates="hide")
    assert "fold, show" in (caught.value.hint or "")
    with pytest.raises(ConfigError):
        kebab.open(tmp_path / "kb.sqlite", search_duplicates="hide")
