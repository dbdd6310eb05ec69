"""`kb verify` on a Qdrant server names each fault, and the command that it recommends repairs it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.conftest import Kb, Toy
from tests.qdrant_server import QdrantNode

import kebab
from kebab.core.errors import Corrupt, KebabError
from kebab.core.records import Check
from kebab.store.qdrant import integrity
from kebab.store.qdrant.codec import EVERYWHERE
from kebab.store.qdrant.collection import checked
from kebab.store.qdrant.terms import reweighed

NOTES = {
    "a.md": f"# Apples\n\n{'Apples are red and round. ' * 60}\n\n## Storing\n\n{'Put them into a cool cellar. ' * 60}\n",
    "b.md": "# 문서\n\n문서를 검색한다.\n",
    "c.md": "# Cherries\n\nCherries are red and small.\n",
}


class Broken:
    """A knowledge base that is sound at the beginning and the end of each test, with direct access to its points."""

    def __init__(self, node: QdrantNode, folder: Path) -> None:
        self.name = f"whole-{uuid4().hex[:8]}"
        self.node = node
        self.address = node.address(self.name)
        self.kb = Toy.open(self.address, Toy.models())
        self.folder = folder

    def ask(self, method: str, path: str, body: Any) -> Any:
        request = urllib.request.Request(
            f"{self.node.url}/collections/{self.name}.{path}?wait=true",
            method=method,
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.load(response)["result"]

    def points(self, collection: str, **match: Any) -> list[Any]:
        chosen = {"must": [{"key": key, "match": {"value": value}} for key, value in match.items()]}
        body = {"filter": chosen, "limit": 1000, "with_payload": True, "with_vector": True}
        return list(self.ask("POST", f"{collection}/points/scroll", body)["points"])

    def chunk(self, path: str = "a.md", ordinal: int = 0) -> Any:
        [found] = self.points("chunks", path=path, ordinal=ordinal)
        return found

    def put(self, collection: str, point: Any) -> None:
        self.ask("PUT", f"{collection}/points", {"points": [point]})

    def say(self, collection: str, point: Any, **payload: Any) -> None:
        self.ask("POST", f"{collection}/points/payload", {"payload": payload, "points": [point["id"]]})

    def delete(self, collection: str, point: Any) -> None:
        self.ask("POST", f"{collection}/points/delete", {"points": [point["id"]]})

    def faults(self) -> dict[str, Check]:
        return {check.name: check for check in self.kb.verify().checks if not check.ok}


@pytest.fixture(scope="module")
def shared(
    one_node: QdrantNode, tmp_path_factory: pytest.TempPathFactory, no_models_unless_asked_for: None
) -> Iterator[Broken]:
    folder = tmp_path_factory.mktemp("whole")
    broken = Broken(one_node, folder)
    for path, text in NOTES.items():
        (folder / "notes" / path).parent.mkdir(exist_ok=True)
        (folder / "notes" / path).write_text(text)
    (folder / "widget").mkdir()
    (folder / "widget" / "README.md").write_text("# Widget\n\nRun the widget.\n\n## Stopping\n\nStop the widget.\n")
    broken.kb.ingest(folder / "notes")
    broken.kb.describe_source("notes", "What grows in the orchard")
    broken.kb.libraries.add(str(folder / "widget"), library_id="/acme/widget")
    yield broken
    broken.kb.reset()
    broken.kb.close()


@pytest.fixture
def broken(shared: Broken) -> Iterator[Broken]:
    assert not shared.faults()
    yield shared
    report = shared.kb.verify()
    assert report.whole, report


def rebuild(broken: Broken, fault: Check) -> None:
    assert (fault.hint or "").startswith("kb index --rebuild-fts")
    broken.kb.rebuild_fts()


def test_verify_checks_everything(broken: Broken) -> None:
    checks = {check.name: check.message for check in broken.kb.verify().checks}
    assert checks["documents"] == "4 documents, each with its text and all its chunks"
    assert checks["chunks"] == "7 chunks, each of a document"
    assert list(checks) == [
        "documents",
        "sources",
        "chunks",
        "words",
        "word counts",
        "vocabulary",
        "vectors",
        "libraries",
        "changes",
    ]


def test_a_wrong_flag_for_libraries_is_reported_and_repaired(broken: Broken) -> None:
    """If the flag is false, searches of the user's own documents do not exclude libraries."""
    [meta] = broken.points("catalog", what="meta")
    assert meta["payload"]["libraries"] is True
    broken.say("catalog", meta, libraries=False)
    faults = broken.faults()
    assert faults.keys() == {"word counts"}
    assert "there are chunks of libraries" in faults["word counts"].message
    rebuild(broken, faults["word counts"])
    assert broken.points("catalog", what="meta")[0]["payload"]["libraries"] is True


def test_a_lost_chunk_is_read_again(broken: Broken) -> None:
    broken.delete("chunks", broken.chunk(ordinal=1))
    faults = broken.faults()
    assert "1 lack chunks" in faults["documents"].message
    assert "notes:a.md" in faults["documents"].message
    assert {"documents", "word counts"} == faults.keys()
    rebuild(broken, faults["documents"])
    left = broken.faults()
    assert left.keys() == {"documents"}
    assert "1 were not written to their end (notes:a.md)" in left["documents"].message
    assert (left["documents"].hint or "").startswith("kb ingest")
    assert broken.kb.ingest().updated == 1
    assert {hit.doc_path for hit in broken.kb.search("cellar", mode="lexical").hits} == {"a.md"}


def test_a_chunk_with_another_text_is_read_again(broken: Broken) -> None:
    broken.say("chunks", broken.chunk(), text="Apples are blue.")
    faults = broken.faults()
    assert faults.keys() == {"documents", "words", "vocabulary"}
    assert "notes:a.md" in faults["documents"].message
    rebuild(broken, faults["documents"])
    broken.kb.ingest()
    assert not broken.kb.search("blue", mode="lexical").hits


@pytest.mark.parametrize("damage", [{"spans": []}, {"text_hash": "00"}], ids=["no place", "another hash"])
def test_a_chunk_that_lost_its_place_or_hash_is_read_again(broken: Broken, damage: dict[str, Any]) -> None:
    """Regression: verify ended with a traceback, or reported no fault."""
    broken.say("chunks", broken.chunk("c.md"), **damage)
    faults = broken.faults()
    assert "notes:c.md" in faults["documents"].message
    rebuild(broken, faults["documents"])
    assert broken.kb.ingest().updated == 1


def test_a_document_whose_text_cannot_be_read_is_named(broken: Broken) -> None:
    [document] = broken.points("documents", path="c.md")
    broken.say("documents", document, body="not what it was")
    report = broken.kb.verify()
    assert (report.corrupt, report.differences[0].citation, report.sound) == (1, "c.md", False)
    fault = broken.faults()["documents"]
    assert "1 have a text that cannot be read (notes:c.md)" in fault.message
    rebuild(broken, fault)
    assert broken.kb.ingest().updated == 1


def test_a_lost_library_chunk_comes_back_with_a_refresh(broken: Broken) -> None:
    broken.delete("chunks", broken.chunk("README.md", 1))
    faults = broken.faults()
    assert faults["libraries"].message == "/acme/widget has 1 snippets of 2"
    assert "kb lib refresh" in (faults["documents"].hint or "")
    rebuild(broken, faults["documents"])
    broken.kb.libraries.refresh("/acme/widget")


def test_a_library_document_whose_text_cannot_be_read_is_named(broken: Broken) -> None:
    [document] = broken.points("documents", path="README.md")
    broken.say("documents", document, body="not what it was")
    fault = broken.faults()["documents"]
    assert "have a text that cannot be read (/acme/widget:README.md)" in fault.message
    rebuild(broken, fault)
    broken.kb.libraries.refresh("/acme/widget")


NOT_NEEDED = {"mtime_ns", "mark", "model", "names"}
NOT_PROVED = {
    "kind",
    "model",
    "aliases",
    "size",
    "mtime_ns",
    "content_hash",
    "fingerprint",
    "encoding",
    "line_count",
    "mark",
    "body",
}
"""Fields that no other stored value depends on, so that their damage cannot be detected."""


def altered(value: Any) -> Any:
    if isinstance(value, int | float):
        return value + 7
    if isinstance(value, str):
        return f"{value}x"
    if isinstance(value, dict):
        return {**value, "another": "1"}
    if value and isinstance(value[0], list):  # spans
        return [[kind, *(place + 7 for place in places)] for kind, *places in value]
    return [*value, 7 if value and isinstance(value[0], int) else "other"]


@pytest.mark.parametrize("how", ["lacks", "says something else"])
@pytest.mark.parametrize("collection", ["documents", "chunks"])
def test_every_damaged_field_is_reported_and_read_again(
    one_node: QdrantNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collection: str, how: str
) -> None:
    """Each part of a point's payload is damaged in the point of one note."""
    monkeypatch.setattr(integrity, "_SHOWN", 1000)
    broken = Broken(one_node, tmp_path)
    (tmp_path / "first.md").write_text(NOTES["c.md"])
    broken.kb.ingest(tmp_path, name="notes")
    keys = sorted(broken.points(collection)[0]["payload"])
    for key in keys:
        (tmp_path / f"{key}.md").write_text(
            f"---\ntags: [fruit/red]\n---\n# About {key}\n\nCherries are red and small.\n"
        )
    broken.kb.ingest()
    before = {record.path: record._replace(indexed_at="") for record in broken.kb.documents()}
    assert broken.kb.verify().whole
    for key in keys:
        [point] = broken.points(collection, within=f"{key}.md")
        if how == "lacks":
            broken.ask("POST", f"{collection}/points/payload/delete", {"keys": [key], "points": [point["id"]]})
        elif key != "mtime_ns":
            payload = {**point["payload"], key: altered(point["payload"][key])}
            broken.ask("PUT", f"{collection}/points/payload", {"payload": payload, "points": [point["id"]]})
    with suppress(Corrupt):
        broken.kb.search("cherries", mode="lexical")
    faults = broken.faults()
    named = " ".join(check.message for check in faults.values())
    unnoticed = {key for key in keys if f"{key}.md" not in named}
    assert unnoticed <= ({"path"} | NOT_NEEDED if how == "lacks" else NOT_PROVED)
    assert "kb ingest" in (faults["documents"].hint or "")
    rebuild(broken, faults["documents"])
    broken.kb.ingest()
    assert not broken.faults()
    if how == "lacks":
        assert {record.path: record._replace(indexed_at="") for record in broken.kb.documents()} == before
    broken.kb.reset()


@pytest.mark.parametrize("what", ["version", "library"])
def test_a_lost_library_or_version_is_reported(broken: Broken, what: str) -> None:
    [point] = broken.points("catalog", what=what)
    broken.delete("catalog", point)
    fault = broken.faults()["libraries"]
    assert "/acme/widget" in fault.message
    assert "kb lib add" in (fault.hint or "")
    if what == "version":
        rebuild(broken, fault)
    broken.kb.libraries.add(str(broken.folder / "widget"), library_id="/acme/widget")


def test_a_lost_source_is_reported_and_comes_back_with_its_folder(broken: Broken) -> None:
    [point] = broken.points("catalog", what="source", name="notes")
    broken.delete("catalog", point)
    fault = broken.faults()["sources"]
    assert fault.message == "3 documents are of sources that are not there (notes)"
    assert (fault.hint or "").startswith("kb ingest FOLDER --name SOURCE")
    assert broken.kb.ingest(broken.folder / "notes", name="notes").unchanged == 3
    broken.kb.describe_source("notes", "What grows in the orchard")


@pytest.mark.parametrize(
    ("lost", "hint"), [("fts_config", "kb index --rebuild-fts"), ("spaces", "kb index --rebuild-vectors")]
)
def test_a_lost_field_of_the_description_is_reported(broken: Broken, lost: str, hint: str) -> None:
    [point] = broken.points("catalog", what="meta")
    broken.ask("POST", "catalog/points/payload/delete", {"keys": [lost], "points": [point["id"]]})
    [fault] = broken.faults().values()
    assert fault.hint == hint
    broken.kb.rebuild_fts()
    broken.kb.rebuild_vectors()


@pytest.mark.parametrize("lost", ["terms", "chunks", "alias", "documents"])
def test_a_lost_collection_is_named_and_created_again(one_node: QdrantNode, tmp_path: Path, lost: str) -> None:
    """Regression: verify reported the knowledge base as deleted or even sound, and the recommended commands did not
    help.
    """
    broken = Broken(one_node, tmp_path)
    (tmp_path / "c.md").write_text(NOTES["c.md"])
    broken.kb.ingest(tmp_path, name="notes")
    used = broken.kb.session.store._schema.current_chunks()  # type: ignore[attr-defined]
    if lost == "alias":
        delete = {"actions": [{"delete_alias": {"alias_name": f"{broken.name}.chunks"}}]}
        broken.kb.session.store._client.ask("POST", "/collections/aliases", delete)  # type: ignore[attr-defined]
    else:
        name = used if lost == "chunks" else f"{broken.name}.{lost}"
        broken.kb.session.store._client.ask("DELETE", f"/collections/{name}", None)  # type: ignore[attr-defined]
    with pytest.raises(Corrupt, match=rf"missing: {broken.name}\.") as raised:
        broken.kb.search("cherries", mode="lexical") if lost != "documents" else broken.kb.documents()
    assert "kb index --rebuild-fts" in (raised.value.hint or "")
    if lost == "terms":
        (fault,) = broken.faults().values()
        assert fault.message == f"missing: {broken.name}.terms"
        assert "kb index --rebuild-fts" in (fault.hint or "")
    else:
        with pytest.raises(Corrupt, match=rf"missing: {broken.name}\."):
            broken.kb.verify()
    with pytest.raises(Corrupt, match="missing"):
        broken.kb.ingest()  # which would have nothing to do, and search would find nothing
    broken.kb.rebuild_fts()
    broken.kb.ingest()
    if not broken.kb.verify().whole:
        assert broken.faults().keys() == {"vectors"}
        broken.kb.rebuild_vectors()
    assert broken.kb.verify().whole
    assert [hit.doc_path for hit in broken.kb.search("cherries").hits] == ["c.md"]
    broken.kb.reset()


def test_a_chunk_without_a_document_is_deleted(broken: Broken) -> None:
    chunk = broken.chunk()
    broken.put(
        "chunks", {"id": str(uuid4()), "payload": {**chunk["payload"], "doc": "0" * 16}, "vector": chunk["vector"]}
    )
    faults = broken.faults()
    assert faults["chunks"].message == "1 belong to no document"
    rebuild(broken, faults["chunks"])


def test_a_chunk_with_the_wrong_point_id_is_read_again(broken: Broken) -> None:
    """Regression: hybrid search no longer found the chunk, and verify reported no fault."""
    chunk = broken.chunk("c.md")
    broken.put("chunks", {**chunk, "id": f"{'f' if chunk['id'][0] != 'f' else '0'}{chunk['id'][1:]}"})
    broken.delete("chunks", chunk)
    faults = broken.faults()
    assert "notes:c.md" in faults["documents"].message
    rebuild(broken, faults["documents"])
    assert broken.kb.ingest().updated == 1
    assert [hit.doc_path for hit in broken.kb.search("cherries", k=1).hits] == ["c.md"]


@pytest.mark.parametrize("collection", ["catalog", "documents", "chunks", "terms"])
def test_no_written_field_counts_as_damaged(broken: Broken, collection: str) -> None:
    """Regression: the address of a library's repository is a text, while the field of that name of a source is an
    object.
    """
    with broken.kb.session.store.writing("a test") as writing:
        (library,) = broken.kb.libraries.all()
        writing.libraries().describe(library._replace(repository="https://example.org/widget.git", branch="main"))
    points = broken.points(collection)
    written = [set(point["payload"]) for point in points]
    assert points
    assert [set(point["payload"]) for point in checked(points)] == written


def _damaged_values(broken: Broken) -> Iterator[tuple[str, Any, str, Any]]:
    """Every stored field, with a senseless value or, by turns, with one of another type. Documents and chunks of a library
    have the same fields as one's own, so of those only the fields that libraries use are damaged.
    """
    turns = cycle([False, True])
    for collection, kind in (("catalog", "what"), ("documents", "corpus"), ("chunks", "corpus")):
        points = {point["payload"].get(kind): point for point in broken.points(collection)}
        points.pop("lease", None)
        for point in points.values():
            keys = ("versions", "file_keys", "source") if point["payload"].get(kind) == "lib" else point["payload"]
            for key in sorted(set(keys) & set(point["payload"])):
                stored = point["payload"][key]
                senseless = ["q"] if isinstance(stored, list) else 7 if isinstance(stored, int) else "x"
                other_type = "x" if senseless == 7 else 7
                yield collection, point, key, other_type if next(turns) else senseless


def test_a_damaged_value_causes_no_traceback(broken: Broken) -> None:
    """Regression: kb verify and kb doctor failed with a traceback while they searched for the damage."""
    kb = broken.kb
    searches = [lambda: kb.search("apples"), lambda: kb.search("widget", library="/acme/widget")]
    readers: dict[str, list[Callable[[], object]]] = {
        "catalog": [*searches, kb.sources, kb.documents, kb.health, kb.verify],
        "documents": [kb.documents, kb.health, kb.verify],
        "chunks": [*searches, kb.verify],
    }
    count, crashed = 0, []
    for collection, point, key, value in _damaged_values(broken):
        broken.say(collection, point, **{key: value})
        for read in readers[collection]:
            try:
                read()
            except KebabError:
                pass
            except Exception as error:  # noqa: BLE001 - whatever it is, it must not happen
                crashed.append(f"{collection} {point['payload'].get('what')} {key}={value!r}: {error!r}")
        broken.ask("PUT", f"{collection}/points/payload", {"payload": point["payload"], "points": [point["id"]]})
        count += 1
    assert not crashed, "\n".join(crashed)
    assert count > 75


def test_a_chunk_that_its_document_does_not_list_is_deleted(broken: Broken) -> None:
    chunk = broken.chunk()
    broken.put(
        "chunks", {"id": str(uuid4()), "payload": {**chunk["payload"], "chunk": "1" * 20}, "vector": chunk["vector"]}
    )
    faults = broken.faults()
    assert faults["chunks"].message == "1 are not named by their documents (notes:a.md)"
    rebuild(broken, faults["chunks"])


def test_a_wrong_document_field_on_a_chunk_is_corrected(broken: Broken) -> None:
    broken.say("chunks", broken.chunk("b.md"), tagged=["secret"])
    faults = broken.faults()
    assert faults.keys() == {"chunks"}
    assert "1 say something else of their documents than those (notes:b.md)" in faults["chunks"].message
    rebuild(broken, faults["chunks"])
    assert not broken.kb.search("문서", mode="lexical", tags_any=["secret"]).hits
    assert broken.kb.ingest().updated == 1  # either of the two may be right


def other_terms(broken: Broken) -> None:
    broken.say("chunks", broken.chunk(), terms=[1, 2, 3])


def other_length(broken: Broken) -> None:
    broken.say("chunks", broken.chunk(), length=99)


def other_weights(broken: Broken) -> None:
    chunk = broken.chunk()
    words = {**chunk["vector"]["words"], "values": [0.5] * len(chunk["vector"]["words"]["values"])}
    broken.ask("PUT", "chunks/points/vectors", {"points": [{"id": chunk["id"], "vector": {"words": words}}]})


@pytest.mark.parametrize("breaking", [other_terms, other_length, other_weights])
def test_wrong_words_of_a_chunk_are_replaced(broken: Broken, breaking: Callable[[Broken], None]) -> None:
    breaking(broken)
    faults = broken.faults()
    assert faults["words"].message == "the words of 1 chunks are not those of their texts (notes:a.md)"
    assert faults.keys() <= {"words", "word counts"}
    rebuild(broken, faults["words"])


def test_weights_for_another_average_are_mentioned_but_no_fault(broken: Broken) -> None:
    """Regression: after an ingest was stopped with Ctrl-C, verify recommended rebuilding the index."""
    chunk = broken.chunk()
    words, average = chunk["vector"]["words"], chunk["payload"]["average"]
    shorter = reweighed(words, chunk["payload"]["length"], average, average / 3)
    broken.ask("PUT", "chunks/points/vectors", {"points": [{"id": chunk["id"], "vector": {"words": shorter}}]})
    broken.say("chunks", chunk, average=average / 3)
    assert not broken.faults()
    (told,) = (check for check in broken.kb.verify().checks if check.name == "words")
    assert "1 chunks are weighed for another average length" in told.message
    assert "next kb ingest" in (told.hint or "")
    broken.kb.rebuild_fts()


def other_frequency(broken: Broken) -> str:
    term = broken.chunk()["payload"]["terms"][0]
    broken.say("terms", {"id": term}, chunks=77)
    return "1 terms are in more or fewer chunks than is counted"


def lost_frequency(broken: Broken) -> str:
    broken.delete("terms", {"id": broken.chunk("README.md")["payload"]["terms"][0]})
    return "1 terms are in more or fewer chunks than is counted"


def unknown_term(broken: Broken) -> str:
    broken.put("terms", {"id": 4242, "vector": {}, "payload": {"chunks": 3}})
    return "1 terms are in more or fewer chunks than is counted"


def other_sizes(broken: Broken) -> str:
    [sizes] = broken.points("catalog", what="sizes")
    broken.say("catalog", sizes, own=[4, 9, sizes["payload"]["own"][2]])
    return "4 chunks with 9 words are counted, and there are 5 with "


@pytest.mark.parametrize("breaking", [other_frequency, lost_frequency, unknown_term, other_sizes])
def test_wrong_counts_are_counted_again(broken: Broken, breaking: Callable[[Broken], str]) -> None:
    expected = breaking(broken)
    faults = broken.faults()
    assert faults.keys() == {"word counts"}
    assert expected in faults["word counts"].message
    rebuild(broken, faults["word counts"])


def test_a_lost_word_of_the_vocabulary_is_added_again(broken: Broken) -> None:
    [word] = broken.points("terms", word="cherries")
    broken.delete("terms", word)
    faults = broken.faults()
    assert faults.keys() == {"vocabulary"}
    assert faults["vocabulary"].message == "1 words of the texts are not known (cherries)"
    rebuild(broken, faults["vocabulary"])
    assert broken.kb.search("cherr", mode="lexical", type_ahead=True).hits


def test_a_word_without_its_beginnings_is_added_again(broken: Broken) -> None:
    """Regression: it was enough that the word itself was stored."""
    [word] = (point for point in broken.points("terms") if point["payload"].get("word") == "cherries")
    broken.say("terms", word, begins=[])
    fault = broken.faults()["vocabulary"]
    assert "(cherries)" in fault.message
    rebuild(broken, fault)
    assert broken.kb.search("cherr*", mode="lexical").hits


def test_a_lost_vector_is_made_again(broken: Broken) -> None:
    chunk = broken.chunk()
    broken.ask("POST", "chunks/points/vectors/delete", {"points": [chunk["id"]], "vector": ["words@1:32"]})
    faults = broken.faults()
    assert faults.keys() == {"vectors"}
    assert faults["vectors"].message == "1 chunks should have a vector of words and have none"
    assert faults["vectors"].hint == "kb index --rebuild-vectors"
    broken.kb.rebuild_vectors()
    assert broken.chunk()["vector"]["words@1:32"] == chunk["vector"]["words@1:32"]


def test_an_unlisted_vector_is_made_again(broken: Broken) -> None:
    chunk = broken.chunk()
    broken.say("chunks", chunk, spaces=[], homes=[space for space in chunk["payload"]["homes"] if space == EVERYWHERE])
    faults = broken.faults()
    assert faults["vectors"].message == "1 chunks have a vector of words that they do not list"
    broken.kb.rebuild_vectors()


def test_an_interrupted_change_is_reported_and_completed_by_the_next_writer(broken: Broken) -> None:
    sizes = broken.points("catalog", what="sizes")[0]["payload"]
    payload = {
        "what": "unfinished",
        "number": 0,
        "documents": {},
        "terms": [],
        "sizes": {key: sizes[key] for key in ("own", "lib")},
    }
    broken.put("catalog", {"id": str(uuid4()), "vector": {}, "payload": payload})
    faults = broken.faults()
    assert faults.keys() == {"changes"}
    assert faults["changes"].message == "1 were interrupted"
    broken.kb.ingest()


def test_nothing_is_checked_while_another_process_writes(broken: Broken) -> None:
    with kebab.open(broken.address) as other, other.session.store.writing("a test"):
        [check] = broken.kb.verify().checks
        assert check.ok
        assert "NOT checked: process" in check.message
        assert "(a test, since" in check.message


def test_kb_verify_prints_the_fault_and_the_command_to_run(broken: Broken, kb: Kb) -> None:
    broken.say("terms", {"id": broken.chunk()["payload"]["terms"][0]}, chunks=77)
    said = kb("--db", broken.address, "verify")
    assert said.code == 3
    assert "word counts: 1 terms are in more or fewer chunks than is counted\n" in said.out
    assert f"kb --db {broken.address} index --rebuild-fts" in said.err
    assert kb("--db", broken.address, "index", "--rebuild-fts").code == 0
    told = kb("--db", broken.address, "verify", "--strict", "--json")
    assert told.code == 0
    assert all(check["ok"] for check in told.json()["store"])
