"""kb similar: every test runs the real command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema

from kebab.wire import schemas

Kb = Callable[..., Any]


def test_similar_prints_hits_as_search_does(sample: Kb, sample_db: Path) -> None:
    ran = sample("similar", "git/undo.md#L23-L54", "-k", "2")
    assert ran.code == 0
    assert "git/undo.md:L23-L54" not in ran.out
    assert ran.out.startswith("1. [")
    assert "   citation: git/" in ran.out
    assert ran.out.endswith("returned: 2\n")
    assert "note: Compared by the passage's most telling words (" in ran.err
    assert f"Set embedding.model to bundled, then: kb --db {sample_db} ingest" in ran.err


def test_similar_prints_the_same_json_object_as_search(sample: Kb) -> None:
    answer = sample("similar", "git/undo.md", "--tag", "git", "--other-docs", "--json").json()
    jsonschema.Draft202012Validator(schemas.schema("search_response")).validate(answer)
    assert answer["query"] == "git/undo.md"
    assert answer["returned"] == len(answer["hits"]) > 0
    assert {hit["score_kind"] for hit in answer["hits"]} == {"bm25"}
    assert {"git/undo.md"}.isdisjoint(hit["doc_path"] for hit in answer["hits"])


def test_similar_accepts_the_chunk_id_and_the_citation_of_a_hit(sample: Kb) -> None:
    hit = sample("search", "undo commit", "-k", "1", "--json").json()["hits"][0]
    by_id = sample("similar", hit["chunk_id"], "--mode", "lexical", "--json").json()
    by_uri = sample("similar", hit["citation"]["uri"], "--mode", "lexical", "--json").json()
    assert by_id["hits"]
    assert hit["chunk_id"] not in {other["chunk_id"] for other in (*by_id["hits"], *by_uri["hits"])}


def test_similar_reports_a_missing_passage_as_fetch_does(sample: Kb) -> None:
    for kind, reference in (("span", "git/undo.md#L900"), ("doc", "nothing.md"), ("chunk", "0123456789abcdef0123")):
        ran, fetched = sample("similar", reference, "--json"), sample("fetch", kind, reference, "--json")
        assert (ran.code, json.loads(ran.out)) == (2, json.loads(fetched.out))


def test_no_similar_passage_is_an_empty_result_with_a_message(sample: Kb) -> None:
    ran = sample("similar", "git/undo.md", "--type", "pdf", "--exit-code")
    assert (ran.code, ran.out) == (1, "returned: 0\n")
    assert "note: Nothing similar: no other passage that passes the filters shares a telling word with it." in ran.err


def test_similar_in_vector_mode_without_vectors_is_an_error(kb: Kb, sample_db: Path) -> None:
    ran = kb("similar", "git/undo.md", "--mode", "vector", "--db", sample_db, "--json")
    assert (ran.code, ran.json()["code"]) == (2, "vectors_off")
