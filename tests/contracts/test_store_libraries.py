"""What every store must do with libraries: a new version is indexed beside the searched one, shares documents with
others, and is never visible in part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from kebab.core.documents import document_id
from kebab.core.errors import NotFound
from kebab.core.libraries import Library, Making
from kebab.core.ports import IndexedDocument
from kebab.core.search import SearchFilters
from kebab.core.store_ports import Writing

if TYPE_CHECKING:
    from tests.conftest import Toy
    from tests.contracts.stores import Corpus

WIDGET = Library("/acme/widget", "Widget", "Gauges for dashboards", False, False, "https://example.org/widget", "git",
                 "https://example.org/widget.git", "main", 12, 7.5, ("Always close a gauge",), ())  # fmt: skip
GADGET = WIDGET._replace(
    library_id="/acme/gadget", title="Gädget", description="", stars=None, trust_score=None, rules=()
)
PRINT = "fingerprint"
Files = Mapping[str, str]


def library_document(
    corpus: Corpus, library_id: str, making: Making, path: str, text: str, **details: Any
) -> IndexedDocument:
    """A document whose id depends on its content, so that it is the same in every version that has it."""
    document = corpus.document(
        path, *text.split("\n\n"), source=making.source, doc_id=document_id(library_id, f"{path} {text}"), **details
    )
    return document._replace(state=document.state._replace(fingerprint=PRINT))


def begin(corpus: Corpus, writing: Writing, library: Library, tag: str | None, files: Files, **details: Any) -> Making:
    """A version with these files whose indexing is not finished."""
    libraries = writing.libraries()
    libraries.describe(library)
    making = libraries.begin(library.library_id, tag, f"commit of {tag}")
    done = {path for path, file in making.done.items() if files.get(path) == file.key}
    libraries.drop(making, [file for path, file in making.done.items() if path not in done])
    known = libraries.known(library.library_id, [PRINT])
    left = {path: text for path, text in files.items() if path not in done}
    libraries.share(making, [(known[path, text], text) for path, text in left.items() if (path, text) in known])
    new = {path: text for path, text in left.items() if (path, text) not in known}
    documents = [
        library_document(corpus, library.library_id, making, path, text, **details) for path, text in new.items()
    ]
    if documents:
        writing.documents(for_libraries=True).write(*documents)
        libraries.link(
            making, [(document.doc_id or "", text) for document, text in zip(documents, new.values(), strict=True)]
        )
    return making


def make(corpus: Corpus, library: Library, tag: str | None, files: Files, **details: Any) -> int:
    with corpus.writing() as writing:
        return writing.libraries().finish(begin(corpus, writing, library, tag, files, **details))


def found(
    corpus: Corpus, query: str, library: str = "/acme/widget", version: str | None = "", **filters: Any
) -> list[str]:
    return sorted(corpus.search(query, library=library, library_version=version, **filters))


def states(corpus: Corpus, library_id: str = "/acme/widget") -> dict[str | None, tuple[str, int]]:
    with corpus.reading() as reading:
        return {
            version.name: (version.state, version.snippets) for version in reading.libraries().find(library_id).versions
        }


def test_a_library_is_read_back_with_all_its_metadata(corpus: Corpus) -> None:
    assert make(corpus, WIDGET, None, {"guide.md": "dials show\n\na number"}) == 2
    make(corpus, GADGET, "v1", {"a.md": "text"})
    with corpus.reading() as reading:
        libraries = reading.libraries()
        assert [library.library_id for library in libraries.libraries()] == ["/acme/gadget", "/acme/widget"]
        widget = libraries.find("/acme/widget")
        assert widget._replace(versions=()) == WIDGET
        (version,) = widget.versions
        assert (version.name, version.state, version.commit, version.snippets, version.error) == (
            None,
            "indexed",
            "commit of None",
            2,
            None,
        )
        assert version.indexed_at
        named = {
            name: [library.library_id for library in libraries.libraries() if library.is_named(name)]
            for name in ("GÄD", "acme", "gauges", "%")
        }
        assert named == {
            "GÄD": ["/acme/gadget"],
            "acme": ["/acme/gadget", "/acme/widget"],
            "gauges": ["/acme/widget"],
            "%": [],
        }
        with pytest.raises(NotFound):
            libraries.find("/acme/nothing")
    with corpus.writing() as writing:
        writing.libraries().describe(WIDGET._replace(title="Other", titled=True))
    with corpus.reading() as reading:
        other = reading.libraries().find("/acme/widget")
    assert (other.title, other.titled, len(other.versions)) == ("Other", True, 1)


def test_versions_of_a_library_share_documents_and_are_searched_separately(corpus: Corpus) -> None:
    make(corpus, WIDGET, None, {"guide.md": "dials show a number", "same.md": "gauges for all"})
    make(corpus, WIDGET, "v1", {"guide.md": "dials were wooden", "same.md": "gauges for all"})
    assert found(corpus, "dials") == ["guide.md"]
    assert (found(corpus, "wooden"), found(corpus, "wooden", version="v1")) == ([], ["guide.md"])
    assert found(corpus, "gauges") == found(corpus, "gauges", version="v1") == ["same.md"]
    assert len(corpus.matches("dials", filters=SearchFilters(library="/acme/widget")).matches) == 2, (
        "without a version, of all"
    )
    assert len(corpus.matches("gauges", filters=SearchFilters(library="/acme/widget")).matches) == 1, (
        "what two have is there once"
    )
    assert states(corpus) == {None: ("indexed", 2), "v1": ("indexed", 2)}
    with corpus.reading() as reading:
        assert reading.stats().documents == 3
        assert reading.catalog.find_document("/acme/widget/v1:guide.md").path == "guide.md"
        assert (
            reading.catalog.find_document("/acme/widget:same.md").doc_id
            == reading.catalog.find_document("/acme/widget/v1:same.md").doc_id
        )
        old = reading.catalog.find_document("/acme/widget/v1:guide.md")
        by_version = reading.catalog.in_libraries("guide.md")
        assert list(by_version) == [("/acme/widget", ""), ("/acme/widget", "v1")]
        assert by_version["/acme/widget", "v1"] == old
        assert len({record.doc_id for record in reading.catalog.in_libraries("same.md").values()}) == 1
        assert reading.catalog.in_libraries("nowhere.md") == {}
        assert reading.catalog.paths_beside(old.doc_id, ["same.md", "nowhere.md"]) == {"same.md"}
    assert corpus.is_healthy()


def test_libraries_and_own_documents_are_searched_separately_with_separate_scores(corpus: Corpus) -> None:
    corpus.write_all(*(corpus.document(f"{number}.md", f"dials of note{number}", title="t") for number in range(3)))
    before = [(match.bm25, match.chunk_id) for match in corpus.matches("dials note1", match="any").matches]
    make(corpus, WIDGET, None, {f"{number}.md": f"dials show {number}" for number in range(20)})
    after = [(match.bm25, match.chunk_id) for match in corpus.matches("dials note1", match="any").matches]
    assert [chunk for _, chunk in after] == [chunk for _, chunk in before]
    assert [score for score, _ in after] == pytest.approx([score for score, _ in before])
    assert corpus.search("show") == []
    with corpus.catalog() as catalog:
        assert catalog.count_documents(SearchFilters()) == 3
        assert [source.name for source in catalog.sources()] == ["notes"]
        assert {record.source for record in catalog.all_documents()} == {"notes"}
        with pytest.raises(NotFound):
            catalog.find_document("19.md")
    with corpus.writing() as writing:
        assert [source.name for source in writing.documents().sources()] == ["notes"]


def test_a_version_being_indexed_is_invisible_until_it_replaces_the_old_one(corpus: Corpus) -> None:
    make(corpus, WIDGET, None, {"a.md": "old dials", "b.md": "same"})
    with corpus.writing() as writing:
        making = begin(corpus, writing, WIDGET, None, {"a.md": "new dials", "b.md": "same", "c.md": "more dials"})
        assert found(corpus, "dials") == ["a.md"]
        assert (found(corpus, "new"), found(corpus, "old")) == ([], ["a.md"])
        assert states(corpus) == {None: ("indexed", 2)}
        assert writing.libraries().finish(making) == 3
    assert found(corpus, "dials") == ["a.md", "c.md"]
    assert (found(corpus, "new"), found(corpus, "old"), found(corpus, "same")) == (["a.md"], [], ["b.md"])
    with corpus.reading() as reading:
        assert reading.stats().documents == 3
    assert corpus.is_healthy()


def test_an_interrupted_library_version_is_continued(corpus: Corpus) -> None:
    with corpus.writing() as writing:
        begin(corpus, writing, WIDGET, "v1", {"a.md": "kept", "b.md": "changes", "gone.md": "goes"})
        writing.libraries().fail("/acme/widget", "v1", "no network")
    assert states(corpus) == {"v1": ("failed", 0)}
    with corpus.reading() as reading:
        assert reading.libraries().find("/acme/widget").versions[0].error == "no network"
    assert found(corpus, "kept", version="v1") == []
    with corpus.writing() as writing:
        making = writing.libraries().begin("/acme/widget", "v1", "c")
        assert {path: (file.key, file.fingerprint) for path, file in making.done.items()} == {
            "a.md": ("kept", PRINT), "b.md": ("changes", PRINT), "gone.md": ("goes", PRINT),
        }  # fmt: skip
    assert make(corpus, WIDGET, "v1", {"a.md": "kept", "b.md": "changed"}) == 2
    assert states(corpus) == {"v1": ("indexed", 2)}
    assert (
        found(corpus, "kept", version="v1"),
        found(corpus, "changed", version="v1"),
        found(corpus, "goes", version="v1"),
    ) == (["a.md"], ["b.md"], [])
    with corpus.reading() as reading:
        assert reading.stats().documents == 2


def test_a_failed_or_abandoned_attempt_does_not_change_the_searched_version(corpus: Corpus) -> None:
    make(corpus, WIDGET, None, {"a.md": "good"})
    with corpus.writing() as writing:
        begin(corpus, writing, WIDGET, None, {"a.md": "bad"})
        writing.libraries().fail("/acme/widget", None, "broke")
        writing.libraries().fail("/acme/widget", "v9", "no such tag")
    assert (found(corpus, "good"), found(corpus, "bad")) == (["a.md"], [])
    assert states(corpus) == {None: ("indexed", 1), "v9": ("failed", 0)}
    with corpus.writing() as writing:
        for tag in (None, "v9"):
            writing.libraries().forget_attempt("/acme/widget", tag)
    assert states(corpus) == {None: ("indexed", 1)}
    with corpus.reading() as reading:
        assert (reading.stats().documents, reading.libraries().find("/acme/widget").versions[0].error) == (1, None)


def test_removing_a_version_or_library_keeps_documents_that_others_share(corpus: Corpus) -> None:
    for tag in (None, "v1"):
        make(corpus, WIDGET, tag, {"own.md": f"own of {tag}", "same.md": "gauges"})
    make(corpus, GADGET, None, {"same.md": "gauges"})
    with corpus.writing() as writing:
        writing.libraries().remove("/acme/widget", None, whole=False)
    assert found(corpus, "gauges", version="v1") == ["same.md"]
    assert found(corpus, "gauges") == []
    with corpus.writing() as writing:
        writing.libraries().remove("/acme/widget")
    with corpus.reading() as reading:
        assert [library.library_id for library in reading.libraries().libraries()] == ["/acme/gadget"]
        assert reading.stats().documents == 1
    assert found(corpus, "gauges", "/acme/gadget") == ["same.md"]
    assert corpus.is_healthy()


def test_a_search_can_be_limited_to_one_kind_of_snippets(corpus: Corpus) -> None:
    make(corpus, WIDGET, None, {"a.md": "dials in code"}, kind="code")
    make(corpus, GADGET, None, {"b.md": "dials in prose"}, kind="info")
    assert found(corpus, "dials", kinds=("code",)) == ["a.md"]
    assert found(corpus, "dials", kinds=("info",)) == []
    assert found(corpus, "dials", "/acme/gadget", kinds=("info",)) == ["b.md"]
    assert found(corpus, "dials", "", None) == ["a.md", "b.md"], "of all libraries"
    chunks = [match.chunk_id for match in corpus.matches("dials", filters=SearchFilters(library="")).matches]
    with corpus.reading() as reading:
        assert sorted(chunk.kind for chunk in reading.chunks().contexts([*chunks, "nothing"]).values()) == [
            "code",
            "info",
        ]


def test_a_library_is_read_back_unchanged_with_its_vectors(corpus: Corpus, toy: type[Toy]) -> None:
    embedder = toy.embedder("words", dimension=8)
    make(
        corpus,
        WIDGET,
        None,
        {"guide.md": "dials show\n\na number", "same.md": "gauges"},
        tags=["t"],
        aliases=["Handbook"],
        headings=("A", "B > C"),
    )
    make(corpus, WIDGET, "v1", {"same.md": "gauges"}, tags=["t"], aliases=["Handbook"], headings=("A", "B > C"))
    make(corpus, GADGET, None, {"other.md": "foreign words"})
    corpus.embed(embedder)
    with corpus.reading() as reading:
        reader = reading.content()
        entries = [(entry.tag, entry.commit, entry.file_key) for entry in reader.library_documents("/acme/widget")]
        assert entries == [
            (None, "commit of None", "dials show\n\na number"), (None, "commit of None", "gauges"), ("v1", "commit of v1", "gauges"),
        ]  # fmt: skip
        keys = [entry.document for entry in reader.library_documents("/acme/widget")]
        assert keys[1] == keys[2]
        (document,) = reader.documents(keys[:1])
        assert (document.source, document.path, document.chunker_version, document.trust_level) == (
            "",
            "guide.md",
            "test-1",
            "primary",
        )
        assert (document.parsed.text, document.parsed.tags, document.parsed.aliases) == (
            "dials show\n\na number\n\n",
            ("t",),
            ("Handbook",),
        )
        written = corpus.document("guide.md", "dials show", "a number", headings=("A", "B > C"))
        assert list(document.chunks) == list(written.chunks)
        assert document.state.fingerprint == PRINT
        assert reader.spaces() == [("words", "1", 8)]
        vectors = dict(reader.library_vectors("/acme/widget", reader.spaces()[0]))
        assert len(vectors) == 3, "those of its own texts"
        assert {len(text_hash) for text_hash in vectors} == {16}
        for vector in vectors.values():
            assert float(np.linalg.norm(np.frombuffer(vector, np.float16).astype(np.float32))) == pytest.approx(
                1, abs=0.01
            )


def test_vectors_of_libraries_are_found_only_in_searches_of_libraries(corpus: Corpus, toy: type[Toy]) -> None:
    embedder = toy.embedder("words", dimension=16)
    corpus.write("note.md", "dials of mine", title="t")
    make(corpus, WIDGET, None, {"a.md": "dials show"})
    make(corpus, WIDGET, "v1", {"b.md": "dials were"})
    corpus.embed(embedder)
    query = embedder.embed(["dials"], "query")[0]

    def near(**filters: Any) -> set[str]:
        with corpus.reading() as reading:
            found = reading.vectors().search(embedder.fingerprint, query, filters=SearchFilters(**filters), limit=10)
            contexts = reading.chunks().contexts([match.chunk_id for match in found])
            return {context.doc_path for context in contexts.values()}

    assert near() == {"note.md"}
    assert near(library="/acme/widget") == {"a.md", "b.md"}
    assert near(library="/acme/widget", library_version="v1") == {"b.md"}
    assert near(library="/acme/nothing") == set()
