"""Embedding after an ingest: which texts, in which batches, what is not embedded twice, and how an interrupted run
continues.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kebab
from kebab.core.documents import embedded_text
from kebab.core.errors import ModelMissing, ModelUnreachable, SourceError, TextRefused, UsageError
from kebab.ingest import embedding
from kebab.ingest.report import IngestReport
from kebab.interfaces.cli.ingest import vectors_in_words
from kebab.store.sqlite.database import Database

if TYPE_CHECKING:
    from tests.conftest import Toy, TwoScripts, WordEmbedder

Notes = Callable[[Mapping[str, str]], Path]


def text(words: int, name: str = "w") -> str:
    return f"# {name.title()}\n\n" + " ".join(f"{name}{number}" for number in range(words)) + "\n"


def rows(kb: kebab.KnowledgeBase, sql: str) -> list[tuple[Any, ...]]:
    with closing(Database(kb.path).reader()) as connection:
        return connection.execute(sql).fetchall()


def codes(response: kebab.SearchResponse) -> list[str]:
    return [notice.code for notice in response.notices]


class Workshop:
    """A knowledge base with one toy model, over a folder."""

    def __init__(self, toy: type[Toy], notes: Notes, database: Path, embedder: WordEmbedder | None = None) -> None:
        self.toy = toy
        self.notes = notes
        self.database = database
        self.embedder = embedder or toy.embedder()

    def ingest(self, files: Mapping[str, str] | None = None, **options: Any) -> IngestReport:
        root = self.notes(files or {})
        root.mkdir(exist_ok=True)
        with self.open() as kb:
            return kb.ingest(root, **options)

    def open(self, **settings: Any) -> kebab.KnowledgeBase:
        return self.toy.open(self.database, self.toy.models(self.embedder), **settings)


@pytest.fixture
def workshop(toy: type[Toy], write_notes: Notes, tmp_path: Path) -> Workshop:
    return Workshop(toy, write_notes, tmp_path / "kb.sqlite")


# --- what is embedded, and how


def test_every_chunk_gets_a_vector_after_its_text_is_searchable(workshop: Workshop) -> None:
    """From then on vector search finds it."""
    report = workshop.ingest({"a.md": text(5, "apple"), "b.md": text(7, "berry"), "c.txt": "cherry one two three"})
    assert (report.added, report.vectors_made, report.vectors_reused) == (3, 3, 0)
    assert report.embedding_seconds > 0
    with workshop.open() as kb:
        assert rows(kb, "SELECT count(*) FROM chunks WHERE id NOT IN (SELECT chunk FROM chunks_vec)") == [(0,)]
        assert kb.search("berry1 berry2", mode="vector", k=1).hits[0].doc_path == "b.md"


def test_title_headings_and_text_are_embedded_as_a_passage(workshop: Workshop) -> None:
    workshop.ingest({"a.md": "---\ntitle: The title\n---\n# Part\n\nThe text.\n", "b.txt": "plain text"})
    assert {kind for kind, _ in workshop.embedder.batches} == {"passage"}
    assert sorted(workshop.embedder.texts()) == ["The title > Part\n\n# Part\n\nThe text.", "plain text"]


def test_texts_are_embedded_in_batches_of_about_one_length_the_longest_first(workshop: Workshop) -> None:
    workshop.ingest({f"{number:03}.md": text(1 + number * 37 % 30, f"note{number}n") for number in range(150)})
    batches = [[len(text) for text in batch] for _, batch in workshop.embedder.batches]
    assert [len(batch) for batch in batches] == [64, 64, 22]
    lengths = [length for batch in batches for length in batch]
    assert lengths == sorted(lengths, reverse=True)


def test_long_texts_are_embedded_in_small_batches(workshop: Workshop) -> None:
    """Regression: with 64 long passages between two commits, Ctrl-C took eleven seconds."""
    workshop.ingest({f"{number:03}.md": text(200, f"note{number}n") for number in range(40)})
    batches = [[len(text) for text in batch] for _, batch in workshop.embedder.batches]
    assert len(batches) > 3
    assert max(map(sum, batches)) <= 24_000


def refusing(embedder: WordEmbedder, word: str) -> Callable[[Any, Any], Any]:
    """An `embed` function that refuses texts with this word."""
    really = embedder.embed

    def embed(texts: Any, kind: Any) -> Any:
        if any(word in text for text in texts):
            raise TextRefused("The endpoint answered with status 400: no.")
        return really(texts, kind)

    return embed


def test_refused_texts_are_reported_and_all_others_get_vectors(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: one such text, and no later one got a vector."""
    notes = {f"{number:02}.md": text(5, f"note{number}n") for number in range(40)}
    notes |= {f"bad/{number:02}.md": f"# Bad {number}\n\n{'long ' * 50} unspeakable {number}\n" for number in range(20)}
    with monkeypatch.context() as patch:
        patch.setattr(workshop.embedder, "embed", refusing(workshop.embedder, "unspeakable"))
        report = workshop.ingest(notes)
    assert report.vectors_made == 40
    assert sorted(warning.path for warning in report.warnings) == [f"bad/{number:02}.md" for number in range(20)]
    assert {warning.code for warning in report.warnings} == {"text_refused"}
    assert "found by its words only. The endpoint answered" in report.warnings[0].message
    with workshop.open() as kb:
        assert codes(kb.search("note3n1")) == [], "who could make them? The report has said it"
        assert kb.search("unspeakable", mode="lexical").hits
    assert (again := workshop.ingest()).vectors_made == 20
    assert again.warnings == []


def test_a_model_that_refuses_everything_is_an_error(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workshop.embedder, "embed", refusing(workshop.embedder, ""))
    with pytest.raises(TextRefused):
        workshop.ingest({f"{number:02}.md": text(5, f"note{number}n") for number in range(40)})


def test_no_chunk_between_two_windows_is_left_out(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "_WINDOW", 7)
    monkeypatch.setattr(embedding, "_AT_ONCE", 3)
    report = workshop.ingest({f"{number:02}.md": text(5, f"note{number}n") for number in range(25)})
    assert report.vectors_made == 25
    assert max(len(batch) for _, batch in workshop.embedder.batches) == 3
    assert len(set(workshop.embedder.texts())) == 25


def test_equal_texts_in_different_windows_are_embedded_once(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "_WINDOW", 4)
    report = workshop.ingest({f"{number:02}/same.txt": "the very same text" for number in range(10)})
    assert (report.vectors_made, report.vectors_reused) == (1, 6)
    assert workshop.embedder.texts() == ["the very same text"]
    with workshop.open() as kb:
        assert len(kb.search("very same text", mode="vector", k=100, duplicates="show")) == 10


def test_without_embedding_only_the_text_index_is_made(workshop: Workshop) -> None:
    report = workshop.ingest({"a.md": text(5)}, embed=False)
    assert (report.added, report.vectors_made, workshop.embedder.batches) == (1, 0, [])
    report = workshop.ingest()
    assert (report.unchanged, report.vectors_made) == (1, 1)


def test_without_a_model_nothing_is_embedded(write_notes: Notes, tmp_path: Path) -> None:
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        report = kb.ingest(write_notes({"a.md": text(5)}))
        assert (report.vectors_made, report.embedding_seconds) == (0, 0.0)


def test_a_text_without_a_file_is_embedded_too(workshop: Workshop) -> None:
    with workshop.open() as kb:
        assert kb.ingest_text("A shopping list: apples", title="Shopping").vectors_made == 1
        assert kb.ingest_text("Another list: pears", title="More", embed=False).vectors_made == 0


def test_a_missing_source_does_not_stop_the_embedding_of_others(workshop: Workshop, tmp_path: Path) -> None:
    workshop.ingest({"a.md": text(5)}, embed=False)
    gone = tmp_path / "gone"
    gone.mkdir()
    (gone / "b.md").write_text(text(5, "b"), encoding="utf-8")
    with workshop.open() as kb:
        kb.ingest(gone, embed=False)
        (gone / "b.md").unlink()
        gone.rmdir()
        with pytest.raises(SourceError):
            kb.ingest()
        assert kb.search("w1 w2", mode="vector", k=10).notices == ()
        assert len(workshop.embedder.texts()) == 2, "what stays indexed is embedded"


# --- never twice


def test_a_second_ingest_embeds_nothing(workshop: Workshop) -> None:
    files = {f"{number}.md": text(9, f"note{number}n") for number in range(5)}
    workshop.ingest(files)
    before = len(workshop.embedder.texts())
    report = workshop.ingest(files)
    assert (report.vectors_made, report.vectors_reused, len(workshop.embedder.texts())) == (0, 0, before)


def test_a_renamed_moved_or_copied_file_embeds_nothing(workshop: Workshop) -> None:
    root = workshop.notes(
        {"a.md": text(9, "apple"), "plain.txt": "a plain text, whose title is its name", "b.md": text(9, "berry")}
    )
    workshop.ingest()
    before = len(workshop.embedder.texts())
    (root / "sub").mkdir()
    (root / "a.md").rename(root / "sub" / "renamed.md")
    (root / "plain.txt").rename(root / "other name.txt")
    (root / "copy.md").write_bytes((root / "b.md").read_bytes())
    report = workshop.ingest()
    assert (report.added, report.removed) == (3, 2)
    assert (report.vectors_made, report.vectors_reused) == (0, 3)
    assert len(workshop.embedder.texts()) == before
    with workshop.open() as kb:
        assert {hit.doc_path for hit in kb.search("apple1 apple2", mode="vector", k=1)} == {"sub/renamed.md"}


def test_the_same_folder_as_another_source_embeds_nothing(workshop: Workshop, tmp_path: Path) -> None:
    workshop.ingest({"a.md": text(9)})
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "a.md").write_text(text(9), encoding="utf-8")
    with workshop.open() as kb:
        assert kb.ingest(tmp_path / "again").vectors_made == 0


def test_other_chunking_embeds_only_the_chunks_that_changed(workshop: Workshop) -> None:
    """A new chunk size indexes every file again; chunks of short files stay the same."""
    files = {f"{number}.md": text(12, f"note{number}n") for number in range(6)}
    files["long.md"] = "".join(text(160, f"part{part}p") for part in range(5))
    root = workshop.notes(files)
    workshop.ingest()
    before = set(workshop.embedder.texts())
    with workshop.open(chunking_target_tokens=200, chunking_max_tokens=300) as kb:
        report = kb.ingest(root)
    assert report.updated == 7
    new = workshop.embedder.texts()[len(before) :]
    assert len(new) == report.vectors_made > 0
    assert not set(new) & before


def test_an_edit_embeds_the_edited_chunk_only(workshop: Workshop) -> None:
    sections = [text(110, f"part{part}p") for part in range(4)]
    root = workshop.notes({"a.md": "".join(sections)})
    assert workshop.ingest().vectors_made == 4
    sections[2] = text(110, "edited")
    (root / "a.md").write_text("".join(sections), encoding="utf-8")
    assert workshop.ingest().vectors_made == 1
    assert "edited5" in workshop.embedder.texts()[-1]


def test_changed_tags_and_dates_embed_nothing(workshop: Workshop) -> None:
    root = workshop.notes({"a.md": "---\ntags: [one]\ntitle: T\n---\nThe text of the note.\n"})
    workshop.ingest()
    (root / "a.md").write_text(
        "---\ntags: [one, two]\ntitle: T\ndate: 2026-01-01\n---\nThe text of the note.\n", encoding="utf-8"
    )
    report = workshop.ingest()
    assert (report.updated, report.vectors_made, len(workshop.embedder.texts())) == (1, 0, 1)
    with workshop.open() as kb:
        assert len(kb.search("text of the note", mode="vector", tags_any=["two"])) == 1


def test_a_deleted_file_is_not_found_by_meaning_any_more(workshop: Workshop) -> None:
    root = workshop.notes({"a.md": text(9, "apple"), "b.md": text(9, "berry")})
    workshop.ingest()
    (root / "a.md").unlink()
    workshop.ingest()
    with workshop.open() as kb:
        for mode in ("vector", "hybrid"):
            assert {hit.doc_path for hit in kb.search("apple1 apple2", mode=mode)} == {"b.md"}


# --- stopped and resumed


class StoppingError(Exception):
    pass


@pytest.mark.parametrize(
    "error", [ModelUnreachable("down"), KeyboardInterrupt(), StoppingError()], ids=lambda error: type(error).__name__
)
@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_interrupted_run_keeps_its_vectors_and_the_next_run_continues(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, error: BaseException, after: int
) -> None:
    monkeypatch.setattr(embedding, "_AT_ONCE", 5)
    workshop.notes({f"{number:02}.md": text(5 + number, f"note{number}n") for number in range(23)})
    really = workshop.embedder.embed

    def embed(texts: Any, kind: Any) -> Any:
        if len(workshop.embedder.batches) == after:
            raise error
        return really(texts, kind)

    with monkeypatch.context() as patch:
        patch.setattr(workshop.embedder, "embed", embed)
        with pytest.raises(type(error)):
            workshop.ingest()
    with workshop.open() as kb:
        assert rows(kb, "SELECT (SELECT count(*) FROM chunks), (SELECT count(*) FROM chunks_vec)") == [(23, 5 * after)]
        assert len(kb.search("note3n1", mode="lexical")) == 1, "the words are all there"
        assert codes(kb.search("note3n1")) == (["partial_vectors"] if after else ["no_vectors"])
    assert workshop.ingest().vectors_made == 23 - 5 * after
    assert sorted(workshop.embedder.texts()) == sorted(set(workshop.embedder.texts())), "nothing twice"
    with workshop.open() as kb:
        assert codes(kb.search("note3n1")) == []


def test_an_interrupted_run_reports_how_many_vectors_it_made(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "_AT_ONCE", 5)
    root = workshop.notes({f"{number:02}.md": text(5, f"note{number}n") for number in range(12)})
    really = workshop.embedder.embed

    def embed(texts: Any, kind: Any) -> Any:
        if workshop.embedder.batches:
            raise StoppingError
        return really(texts, kind)

    monkeypatch.setattr(workshop.embedder, "embed", embed)
    with workshop.open() as kb:
        with pytest.raises(StoppingError):
            kb.ingest(root)
        assert kb.last_ingest is not None
        report = kb.last_ingest
    assert (report.added, report.vectors_made) == (12, 5)
    assert report.embedding_seconds > 0


def test_a_run_interrupted_by_its_progress_stores_and_reports_the_computed_batch(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the batch was computed and lost; where vectors were known, the report said that none were to make."""
    monkeypatch.setattr(embedding, "_AT_ONCE", 5)
    first = {f"{number:02}.md": text(5, f"note{number}n") for number in range(3)}
    workshop.ingest(first)
    more = {f"{number:02}.md": text(5, f"note{number}n") for number in range(3, 12)}
    root = workshop.notes({**first, **{f"copy-of-{path}": words for path, words in first.items()}, **more})

    def run(is_enough: Callable[[], bool]) -> tuple[str, int]:
        def progress(event: str, **_: Any) -> None:
            if event == "embedding" and is_enough():
                raise StoppingError

        with workshop.open() as kb:
            with pytest.raises(StoppingError):
                kb.ingest(root, progress=progress)
            assert kb.last_ingest is not None
            (linked,) = rows(kb, "SELECT count(*) FROM chunks_vec")[0]
            return vectors_in_words(kb.last_ingest).partition(" in ")[0], linked

    assert run(lambda: True) == ("3 vectors known already, not finished", 6)
    before = len(workshop.embedder.batches)
    assert run(lambda: len(workshop.embedder.batches) > before) == ("5 vectors made", 11)


def test_search_works_while_vectors_are_being_made(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "_AT_ONCE", 5)
    workshop.notes({f"{number:02}.md": text(5, f"note{number}n") for number in range(12)})
    seen: list[tuple[list[str], int]] = []
    really = workshop.embedder.embed

    def embed(texts: Any, kind: Any) -> Any:
        if kind == "passage":
            with workshop.open() as other:
                response = other.search("note3n1", k=20)
                seen.append((codes(response), len(response)))
        return really(texts, kind)

    monkeypatch.setattr(workshop.embedder, "embed", embed)
    workshop.ingest()
    assert [notices for notices, _ in seen] == [["no_vectors"], ["partial_vectors"], ["partial_vectors"]]
    assert all(count >= 1 for _, count in seen)


def test_a_search_says_how_long_the_vectors_still_take(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "_AT_ONCE", 5)
    monkeypatch.setattr(embedding, "_SAYING_S", -1.0)
    workshop.notes({f"{number:02}.md": text(5, f"note{number}n") for number in range(12)})
    said: list[str] = []
    really = workshop.embedder.embed

    def embed(texts: Any, kind: Any) -> Any:
        if kind == "passage":
            with workshop.open() as other:
                said.append(other.search("note3n1").notices[0].message)
        return really(texts, kind)

    monkeypatch.setattr(workshop.embedder, "embed", embed)
    workshop.ingest()
    assert said[1:] == [
        f"Vectors {share} %, about 1 min left; until then the rest is found by words only." for share in (41, 83)
    ]
    workshop.notes({"new.md": text(5, "new")})
    with workshop.open() as kb:
        kb.ingest(embed=False)
        assert "Make them with: kb ingest" in kb.search("note3n1").notices[0].message


# --- progress


def test_progress_names_the_model_and_counts_chunks_up_to_all_of_them(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "_AT_ONCE", 5)
    events: list[dict[str, Any]] = []

    def progress(event: str, **details: Any) -> None:
        if event == "embedding":
            events.append(details)

    files = {f"{number:02}.md": text(5, f"note{number}n") for number in range(12)}
    files |= {f"copy{number}.txt": "all the same" for number in range(3)}
    workshop.ingest(files, progress=progress)
    assert {event["path"] for event in events} == {"words"}
    assert {event["total"] for event in events} == {15}
    done = [event["done"] for event in events]
    assert done == sorted(done)
    assert done[-1] == 15
    assert len(done) >= 3
    events.clear()
    workshop.ingest({"more.md": text(5, "more")}, progress=progress)
    assert [(event["done"], event["total"]) for event in events][-1] == (1, 1)
    events.clear()
    workshop.ingest(progress=progress)
    assert events == []


# --- another model


def test_a_new_model_embeds_everything_again_and_drops_the_old_vectors(workshop: Workshop) -> None:
    files = {f"{number}.md": text(9, f"note{number}n") for number in range(5)}
    workshop.ingest(files)
    workshop.embedder = workshop.toy.embedder("better", dimension=40)
    with workshop.open() as kb:
        response = kb.search("note3n1")
        assert (response.method, codes(response)) == ("lexical", ["model_mismatch"])
    report = workshop.ingest(files)
    assert (report.vectors_made, report.vectors_reused) == (5, 0)
    with workshop.open() as kb:
        assert rows(
            kb, "SELECT model, (SELECT count(*) FROM vectors v WHERE v.space_id = e.id) FROM embedding_spaces e"
        ) == [("better", 5)]
        response = kb.search("note3n1")
        assert (response.method, codes(response)) == ("hybrid", [])
        assert response.index_version.endswith("+vec:better@1:40")


def test_a_new_version_of_a_model_counts_as_another_model(workshop: Workshop) -> None:
    workshop.ingest({"a.md": text(9)})
    workshop.embedder = workshop.toy.embedder(version="2")
    assert workshop.ingest().vectors_made == 1
    with workshop.open() as kb:
        assert rows(kb, "SELECT model, version FROM embedding_spaces") == [("words", "2")]


def test_rebuilding_embeds_everything_again(workshop: Workshop) -> None:
    workshop.ingest({f"{number}.md": text(9, f"note{number}n") for number in range(5)})
    with workshop.open() as kb:
        report = kb.rebuild_vectors()
        assert (report.vectors_made, report.vectors_reused) == (5, 0)
        assert len(workshop.embedder.texts()) == 11, "one more to see whether the model is there at all"
        assert codes(kb.search("note3n1")) == []


def test_a_missing_model_is_reported_before_rebuild_drops_vectors(workshop: Workshop) -> None:
    """Regression: all of them were forgotten before the model was asked."""
    workshop.ingest({f"{number}.md": text(9, f"note{number}n") for number in range(5)})
    with workshop.open() as kb:

        def gone(*_: object) -> None:
            raise ModelMissing("The model is gone.", hint="Bring it back.")

        workshop.embedder.embed = gone  # type: ignore[method-assign,assignment]
        with pytest.raises(ModelMissing):
            kb.rebuild_vectors()
        stats = kb.stats()
        assert stats is not None
        assert stats.embedded_chunks == 5


# --- two scripts

ENGLISH = {"en/git.md": "# Setup\n\nInstall git on the computer.\n", "en/bread.md": "# Bread\n\nFlour and water.\n"}
KOREAN = {"ko/git.md": "# 설치\n\n깃을 컴퓨터에 설치한다.\n"}


def two(toy: type[Toy], **details: Any) -> TwoScripts:
    return toy.two_scripts({"깃을": "git", "설치한다": "install", "설치": "install", "컴퓨터에": "computer"}, **details)


def test_each_text_goes_to_the_model_of_its_script(toy: type[Toy], write_notes: Notes, tmp_path: Path) -> None:
    models = two(toy, cross_language="off")
    with toy.open(tmp_path / "kb.sqlite", models) as kb:
        kb.ingest(write_notes(ENGLISH | KOREAN))
    assert (len(models.latin.texts()), len(models.everything.texts())) == (2, 1)
    assert "깃을" in models.everything.texts()[0]


def test_without_other_scripts_the_second_model_is_never_asked(
    toy: type[Toy], write_notes: Notes, tmp_path: Path
) -> None:
    models = two(toy)
    with toy.open(tmp_path / "kb.sqlite", models) as kb:
        report = kb.ingest(write_notes(ENGLISH))
        assert (report.vectors_made, models.everything.batches) == (2, [])
        assert codes(kb.search("install git")) == []


def test_the_first_text_of_another_script_puts_all_texts_into_the_multilingual_space(
    toy: type[Toy], write_notes: Notes, tmp_path: Path
) -> None:
    models = two(toy)
    with toy.open(tmp_path / "kb.sqlite", models) as kb:
        kb.ingest(write_notes(ENGLISH))
        report = kb.ingest(write_notes(KOREAN))
        assert report.vectors_made == 3, "the Korean note, and two English ones for Korean questions"
        assert rows(kb, "SELECT e.model, sum(home), count(*) FROM chunks_vec v JOIN embedding_spaces e ON e.id = v.space_id GROUP BY 1 ORDER BY 1") == [
            ("everything", 1, 3),
            ("latin", 2, 2),
        ]  # fmt: skip
        found = [hit.doc_path for hit in kb.search("깃을 설치", mode="vector", k=2)]
        assert set(found) == {"ko/git.md", "en/git.md"}
        before = len(models.everything.texts()), len(models.latin.texts())
        assert kb.ingest(write_notes({})).vectors_made == 0
        assert (len(models.everything.texts()), len(models.latin.texts())) == before


def test_secondary_vectors_are_dropped_with_the_last_text_of_another_script(
    toy: type[Toy], write_notes: Notes, tmp_path: Path
) -> None:
    """Regression: every search said from then on that not everything was embedded, and no ingest could help."""
    models = two(toy)
    with toy.open(tmp_path / "kb.sqlite", models) as kb:
        root = write_notes({**ENGLISH, **KOREAN})
        kb.ingest(root)
        for path in KOREAN:
            (root / path).unlink()
        kb.ingest(root)
        assert codes(kb.search("install git")) == []
        assert rows(kb, "SELECT count(*) FROM chunks_vec WHERE home = 0") == [(0,)]
        (report,) = [kb.ingest(write_notes(KOREAN))]
        assert report.vectors_made == 0, "all of it was made before"
        assert codes(kb.search("install git")) == []


def test_a_text_of_two_scripts_is_also_in_the_secondary_space(
    toy: type[Toy], write_notes: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: one line of Korean hid an English note from English questions."""
    models = two(toy)
    monkeypatch.setattr(
        models, "secondary_of", lambda text: models.latin if "rollout" in text and "깃" in text else None
    )
    with toy.open(tmp_path / "kb.sqlite", models) as kb:
        kb.ingest(
            write_notes(
                {
                    **ENGLISH,
                    "mixed.md": "# Rollout\n\nReverting a faulty rollout. 깃을 설치하는 방법을 한국어로 적었다.\n",
                }
            )
        )
        assert [hit.doc_path for hit in kb.search("reverting a faulty rollout", mode="vector", k=1)] == ["mixed.md"]
        spaces = rows(
            kb,
            "SELECT e.model, v.home FROM chunks_vec v JOIN embedding_spaces e ON e.id = v.space_id JOIN chunks c ON c.id = v.chunk WHERE c.text LIKE '%faulty%' ORDER BY 1",
        )
        assert spaces == [("everything", 1), ("latin", 0)]


def test_secondary_vectors_are_resumed_and_counted_in_the_progress(
    toy: type[Toy], write_notes: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "_AT_ONCE", 4)
    models = two(toy)
    files = {f"en/{number:02}.md": text(5, f"note{number}n") for number in range(10)} | KOREAN
    really = models.everything.embed
    left = 2

    def embed(texts: Any, kind: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise StoppingError
        return really(texts, kind)

    with toy.open(tmp_path / "kb.sqlite", models) as kb:
        with monkeypatch.context() as patch:
            patch.setattr(models.everything, "embed", embed)
            with pytest.raises(StoppingError):
                kb.ingest(write_notes(files))
        events: list[tuple[str, int, int]] = []
        report = kb.ingest(
            write_notes(files), progress=lambda event, **about: events.append((about["path"], about["done"], about["total"])) if event == "embedding" else None
        )  # fmt: skip
    assert report.vectors_made == 6
    assert events[-1] == ("everything", 6, 6)
    assert len(models.everything.texts()) == len(set(models.everything.texts())) == 11
    assert len(models.latin.texts()) == 10


def test_embedding_stops_after_a_short_batch_and_the_next_run_continues(workshop: Workshop) -> None:
    workshop.ingest({f"{number}.md": text(300, f"word{number}x") for number in range(12)}, embed=False)
    report = IngestReport()
    with workshop.open() as kb:
        chunks = len(rows(kb, "SELECT 1 FROM chunks"))
        assert embedding.embed_missing(kb.session, "kb watch", report, stop=lambda: report.vectors_made > 0) is False
        assert 0 < report.vectors_made < 4
        assert sum(map(len, workshop.embedder.batches[0][1])) < 5000
        assert embedding.embed_missing(kb.session, "kb watch", report, stop=lambda: False) is True
        assert report.vectors_made == chunks
        assert rows(kb, "SELECT count(*) FROM chunks WHERE id NOT IN (SELECT chunk FROM chunks_vec)") == [(0,)]


# --- other writers


def test_a_write_during_embedding_never_gives_a_vector_to_another_text(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the writer's lock was held until every vector was made."""
    notes = workshop.notes({"only.md": text(20, "before")})
    really = workshop.embedder.embed

    def embed(texts: Any, kind: Any) -> Any:
        if any("before" in one for one in texts):
            (notes / "only.md").write_text(text(20, "after"), encoding="utf-8")
            with workshop.open(store_lock_wait_s=0) as other:
                assert other.ingest(notes, embed=False).updated == 1  # the new chunk gets the row of the old one
        return really(texts, kind)

    monkeypatch.setattr(workshop.embedder, "embed", embed)
    with workshop.open() as kb:
        kb.ingest(notes)
        kb.ingest()
        stored = rows(
            kb,
            """SELECT d.path, d.title, c.text, v.text_hash FROM chunks c JOIN documents d ON d.id = c.document_id
               JOIN chunks_vec cv ON cv.chunk = c.id JOIN vectors v ON v.id = cv.vector_id""",
        )
    assert [text_hash for *_, text_hash in stored] == [
        embedding.hash_of_text(embedded_text(path, title, (), chunk)) for path, title, chunk, _ in stored
    ]
    assert "after" in stored[0][2]


def test_two_processes_that_make_vectors_at_once_share_the_work(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "_AT_ONCE", 2)
    count = 100
    notes = workshop.notes({f"{number}.md": text(5, f"note{number}n") for number in range(count)})
    really = workshop.embedder.embed

    def embed(texts: Any, kind: Any) -> Any:
        time.sleep(0.02)
        return really(texts, kind)

    monkeypatch.setattr(workshop.embedder, "embed", embed)
    with workshop.open() as kb:
        kb.ingest(notes, embed=False)

    def make_vectors(_: int) -> int:
        with workshop.open() as kb:
            return kb.ingest().vectors_made

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(make_vectors, range(2))) == count
    assert len(workshop.embedder.texts()) < 1.2 * count
    with workshop.open() as kb:
        assert rows(kb, "SELECT count(*) FROM chunks WHERE id NOT IN (SELECT chunk FROM chunks_vec)") == [(0,)]
        assert rows(kb, "SELECT count(*) FROM vectors") == [(count,)]


@pytest.mark.parametrize(
    ("paths", "name", "error"), [(["nowhere"], None, SourceError), ([".", ".."], "two", UsageError)]
)
def test_arguments_are_checked_before_the_lock(
    workshop: Workshop, paths: list[str], name: str | None, error: type[Exception]
) -> None:
    with (
        workshop.open() as kb,
        kb.session.writing("another writer"),
        workshop.open(store_lock_wait_s=0) as other,
        pytest.raises(error),
    ):
        other.ingest(*paths, name=name)
