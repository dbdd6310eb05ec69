"""The wire objects of version 1: their schemas are files, and the output of every command is valid."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kebab.wire import plain, schemas, to_json

FOLDER = Path(__file__).parent.parent.parent / "docs" / "wire-schema" / "v1"


def check(value: Any, name: str) -> None:
    """Checks that an object is valid and has every declared field, at every depth."""
    schema = schemas.schema(name)
    jsonschema.Draft202012Validator(schema).validate(value)
    if "properties" in schema:
        assert set(value) == set(schema["properties"]), name
        assert value["schema_version"] == f"{name}.v1"


def test_the_published_files_are_the_generated_schemas() -> None:
    """Bring them up to date with scripts/docs."""
    published = {
        path.name.removesuffix(".schema.json"): json.loads(path.read_text(encoding="utf-8"))
        for path in FOLDER.glob("*.json")
    }
    assert published == {name: schemas.schema(name) for name in schemas.names()}


def test_each_schema_is_a_valid_json_schema_that_requires_every_field_it_declares() -> None:
    for name in schemas.names():
        schema = schemas.schema(name)
        jsonschema.Draft202012Validator.check_schema(schema)
        for shape in [schema, *schema.get("$defs", {}).values()]:
            if "properties" in shape:
                assert shape["required"] == list(shape["properties"])


def test_raw_bm25_is_on_no_wire_object() -> None:
    for name in schemas.names():
        declared = {
            field
            for shape in [schemas.schema(name), *schemas.schema(name).get("$defs", {}).values()]
            for field in shape.get("properties", {})
        }
        assert not [field for field in declared if "bm25" in field.lower()]


def test_scores_on_the_wire_are_never_negative(sample: Callable[..., Any]) -> None:
    response = sample("search", "git", "--json", "--explain").json()
    assert response["hits"]

    def numbers(value: Any) -> list[float]:
        if isinstance(value, dict):
            return [number for item in value.values() for number in numbers(item)]
        if isinstance(value, list):
            return [number for item in value for number in numbers(item)]
        return [value] if isinstance(value, int | float) else []

    assert all(number >= 0 for number in numbers(response))


def test_the_search_hit_schema_is_the_published_contract(sample: Callable[..., Any]) -> None:
    published = json.loads((FOLDER / "search_hit.schema.json").read_text(encoding="utf-8"))
    hits = sample("search", "install git 설치", "--json").json()["hits"]
    assert hits
    for hit in hits:
        jsonschema.Draft202012Validator(published).validate(hit)
        assert set(hit) == set(published["properties"])
    assert {
        "rank", "score", "score_kind", "chunk_id", "doc_id", "doc_path", "title", "heading_path", "section_label", "snippet", "highlights", "text", "citation",
        "retrieval", "retrieval_method", "index_version", "embedding_model", "chunker_version", "doc_type", "lang", "tags", "trust_level", "source", "indexed_at",
        "stale", "explanation",
    } <= set(published["properties"])  # fmt: skip


READING_COMMANDS: dict[str, tuple[str, ...]] = {
    "search": ("search_response", "search", "git"),
    "search explained": ("search_response", "search", "how to install git", "--explain", "--full-text"),
    "search without hits": ("search_response", "search", "zzzzqqq", "--mode", "lexical"),
    "empty query": ("search_response", "search", ""),
    "list docs": ("list", "list", "docs"),
    "list sources": ("list", "list", "sources"),
    "list tags": ("list", "list", "tags"),
    "inspect doc": ("doc_summary", "inspect", "doc", "git/setup.md"),
    "fetch doc": ("fetch_result", "fetch", "doc", "git/setup.md"),
    "fetch span": ("fetch_result", "fetch", "span", "git/setup.md#L10-L12"),
    "verify": ("verify_report", "verify"),
    "doctor": ("doctor", "doctor"),
    "schema": ("schema", "schema"),
    "config show": ("config", "config", "show"),
    "not found": ("error", "inspect", "doc", "no/such.md"),
    "invalid query": ("error", "search", "'AND'"),
    "usage": ("error", "search", "x", "--no-such-option"),
}


@pytest.mark.parametrize("command", READING_COMMANDS)
def test_json_of_reading_commands_matches_its_schema(sample: Callable[..., Any], command: str) -> None:
    name, *arguments = READING_COMMANDS[command]
    check(sample(*arguments, "--json").json(), name)


def test_hits_citations_chunks_and_list_items_are_valid_by_themselves(sample: Callable[..., Any]) -> None:
    hit = sample("search", "git", "-k", "1", "--json").json()["hits"][0]
    check(hit, "search_hit")
    jsonschema.Draft202012Validator(schemas.schema("citation")).validate(hit["citation"])
    check(sample("inspect", "chunk", hit["chunk_id"], "--json").json(), "chunk_inspection")
    check(sample("fetch", "chunk", hit["chunk_id"], "--json").json(), "fetch_result")
    for item in sample("list", "docs", "--limit", "3", "--json").json()["items"]:
        check(item, "doc_summary")


def test_json_of_writing_commands_matches_its_schema(
    kb: Callable[..., Any], write_notes: Callable[..., Path], tmp_path: Path
) -> None:
    notes = write_notes({"a.md": "# A\n\ntext\n", "b.md": "---\nx: [\n---\ntext", "bin.dat": "\0\0", "empty.txt": ""})
    check(kb("init", "--json").json(), "done")
    ran = kb("ingest", notes, "--json", "--progress", "json")
    check(ran.json(), "ingest_report")
    events = [json.loads(line) for line in ran.err.splitlines()]
    assert events
    for event in events:
        check(event, "ingest_progress")
    check(kb("ingest", "-", "--title", "T", "--json", input="text").json(), "ingest_report")
    check(kb("index", "--rebuild-fts", "--optimize", "--json").json(), "done")
    check(kb("backup", tmp_path / "copy.sqlite", "--json").json(), "done")
    check(kb("list", "docs", "--json").json(), "list")
    (bulk,) = kb("search", "--bulk", input='{"id": "q1", "query": "text"}\n').json_lines()
    check(bulk, "search_response")
    (wrong,) = kb("search", "--bulk", input='{"id": "q1", "query": 1}\n').json_lines()
    check(wrong, "error")
    check(kb("reset", "--yes", "--json").json(), "done")


def test_schema_names_each_schema_and_prints_it(kb: Callable[..., Any]) -> None:
    named = kb("schema", "--json").json()["schemas"]
    assert named == [f"{name}.v1" for name in schemas.names()]
    assert (
        kb("schema", "search_hit", "--json").json()
        == kb("schema", "search_hit.v1").json()
        == schemas.schema("search_hit")
    )
    wrong = kb("schema", "nonsense", "--json")
    assert wrong.code == 2
    assert "search_hit" in wrong.json()["hint"]


def test_json_is_strict_and_keeps_unicode() -> None:
    assert to_json({"a": ["한글", None, 1e-6]}) == '{"a": ["한글", null, 1e-06]}'
    with pytest.raises(ValueError):
        to_json(float("inf"))
    assert plain(({"a": (1,)},)) == [{"a": [1]}]


def test_a_schema_describes_fields_whose_names_are_not_enough(sample: Callable[..., Any]) -> None:
    """`text` is the snippet unless the whole passage was requested."""
    declared = schemas.schema("search_hit")["properties"]
    assert declared["text"] == {
        "type": "string",
        "description": "The whole passage with --full-text, otherwise the same as snippet.",
    }
    assert "description" not in declared["rank"]
    (short,) = sample("search", "git", "-k", "1", "--json").json()["hits"]
    (whole,) = sample("search", "git", "-k", "1", "--full-text", "--json").json()["hits"]
    assert (short["text"], short["snippet"]) == (whole["snippet"], whole["snippet"])
    assert len(whole["text"]) > len(whole["snippet"])
