"""The REST interface: the same objects as the command line, and errors with their codes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest
from tests.interfaces.http.test_pages import client_of

import kebab
from kebab.core.search import SearchResponse
from kebab.knowledge_base import KnowledgeBase
from kebab.search.options import SearchRequest
from kebab.wire import plain, schemas
from kebab.wire.search import search_response_v1


def valid(response: httpx2.Response, name: str, status: int = 200) -> Any:
    """The body of a response, after validation against the schema that it names."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert body["schema_version"] == f"{name}.v1"
    jsonschema.validate(body, schemas.schema(name))
    return body


def failed(response: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    body = valid(response, "error", status)
    assert body["code"] == code
    assert body["message"].endswith(".")
    assert body["hint"]
    return dict(body)


class TestSearch:
    def test_search_returns_what_the_facade_returns(self, client: httpx2.Client, served_db: Path) -> None:
        body = valid(client.get("api/v1/search", params={"query": "undo the last commit", "k": 3}), "search_response")
        with kebab.open(served_db) as kb:
            expected = plain(search_response_v1(kb.search("undo the last commit", k=3)))
        assert {**body, "took_ms": 0} == {**expected, "took_ms": 0}
        assert body["returned"] == 3

    def test_options_in_a_url_are_converted_from_text_and_checked(self, client: httpx2.Client) -> None:
        parameters = {
            "query": "certificate",
            "type": "markdown",
            "tags_any": ["ops", "tls"],
            "explain": "true",
            "min_score": "0.1",
            "k": "5",
        }
        body = valid(client.get("api/v1/search", params=parameters), "search_response")
        assert body["hits"]
        assert all(hit["doc_type"] == "markdown" and {"ops", "tls"} & set(hit["tags"]) for hit in body["hits"])
        assert body["explanation"] is not None

    def test_lists_are_repeated_or_separated_by_commas(self, client: httpx2.Client) -> None:
        repeated = client.get("api/v1/search?query=git&type=markdown&type=note").json()
        parted = client.get("api/v1/search?query=git&type=markdown,note").json()
        assert [hit["chunk_id"] for hit in repeated["hits"]] == [hit["chunk_id"] for hit in parted["hits"]]

    def test_a_cursor_gives_the_next_page(self, client: httpx2.Client) -> None:
        first = client.get("api/v1/search", params={"query": "the", "match": "any", "k": 4}).json()
        second = client.get(
            "api/v1/search", params={"query": "the", "match": "any", "k": 4, "cursor": first["next_cursor"]}
        ).json()
        seen = [hit["chunk_id"] for hit in first["hits"] + second["hits"]]
        assert len(set(seen)) == 8

    def test_an_empty_result_is_a_success(self, client: httpx2.Client) -> None:
        body = valid(client.get("api/v1/search", params={"query": "xylophonist"}), "search_response")
        assert body["returned"] == 0

    def test_an_empty_query_over_rest_gives_no_hits_and_a_notice(self, client: httpx2.Client) -> None:
        body = valid(client.get("api/v1/search", params={"query": ""}), "search_response")
        assert body["notices"][0]["code"] == "empty_query"

    @pytest.mark.parametrize(
        ("parameters", "status", "code"),
        [
            ("", 400, "usage"),
            ("query=git&k=ten", 400, "usage"),
            ("query=git&k=0", 400, "usage"),
            ("query=git&k=1_0", 400, "usage"),
            ("query=git&k=3&k=4", 400, "usage"),
            ("query=git&min_score=nan", 400, "usage"),
            ("query=git&mode=psychic", 400, "usage"),
            ("query=git&explain=perhaps", 400, "usage"),
            ("query=git&colour=red", 400, "usage"),
            ("query='a AND ('", 400, "invalid_query"),
            ("query=git&cursor=nonsense", 409, "stale_cursor"),
            ("query=git&source=nowhere", 404, "not_found"),
            ("query=git&mode=vector", 409, "vectors_off"),
            ("query=git&library=/acme/nothing", 404, "not_found"),
        ],
    )
    def test_a_wrong_option_is_an_error_with_a_hint(
        self, client: httpx2.Client, parameters: str, status: int, code: str
    ) -> None:
        """A failure is never an empty result."""
        failed(client.get(f"api/v1/search?{parameters}"), status, code)

    def test_the_option_library_searches_a_library(self, client: httpx2.Client) -> None:
        body = valid(
            client.get("api/v1/search", params={"query": "dial", "library": "/acme/widget"}), "search_response"
        )
        assert {hit["doc_path"] for hit in body["hits"]} == {"guide.md"}


class TestBulk:
    LINES = (
        {"id": "a", "query": "git"},
        {"id": "b", "query": "git", "k": "many"},
        {"id": "c", "query": "한글", "k": 1},
    )

    def test_bulk_queries_are_answered_in_order_with_an_error_for_a_bad_one(self, client: httpx2.Client) -> None:
        body = valid(client.post("api/v1/search/bulk", json={"queries": self.LINES, "k": 2}), "bulk_response")
        assert [(answer["id"], answer["schema_version"]) for answer in body["responses"]] == [
            ("a", "search_response.v1"),
            ("b", "error.v1"),
            ("c", "search_response.v1"),
        ]
        assert body["responses"][0]["returned"] == 2  # as the defaults say
        assert body["responses"][2]["returned"] == 1

    def test_the_body_of_a_bulk_request_may_be_a_list(self, client: httpx2.Client) -> None:
        assert len(valid(client.post("api/v1/search/bulk", json=list(self.LINES)), "bulk_response")["responses"]) == 3

    def test_a_bulk_request_of_json_lines_is_answered_in_json_lines(self, client: httpx2.Client) -> None:
        sent = "\n".join(json.dumps(line) for line in self.LINES) + "\n\nno json\n"
        response = client.post("api/v1/search/bulk", content=sent, headers={"content-type": "application/x-ndjson"})
        answers = [json.loads(line) for line in response.text.splitlines()]
        assert [answer["schema_version"] for answer in answers] == [
            "search_response.v1",
            "error.v1",
            "search_response.v1",
            "error.v1",
        ]

    def test_json_lines_are_separated_by_line_feeds_only(self, client: httpx2.Client) -> None:
        """Regression: a text with another character that may end a line was read as two invalid lines."""
        sent = "".join(
            json.dumps({"id": str(number), "query": f"git{sign}undo"}, ensure_ascii=False) + "\n"
            for number, sign in enumerate("\u2028\x85")
        )
        response = client.post("api/v1/search/bulk", content=sent, headers={"content-type": "application/x-ndjson"})
        answers = [json.loads(line) for line in response.text.split("\n") if line]
        assert [(answer["id"], answer["schema_version"]) for answer in answers] == [
            ("0", "search_response.v1"),
            ("1", "search_response.v1"),
        ]

    @pytest.mark.parametrize("media", ["application/json", "application/x-ndjson"])
    def test_an_unpaired_surrogate_in_one_query_does_not_affect_the_others(
        self, client: httpx2.Client, media: str
    ) -> None:
        """Regression: it could not be sent back, which was reported as a defect instead of two answers."""
        sent = r'{"id": "\ud800", "query": "git", "source": "\udfff"}', r'{"id": "b", "query": "git \ud800"}'
        body = f"[{','.join(sent)}]" if media == "application/json" else "\n".join(sent)
        response = client.post("api/v1/search/bulk", content=body, headers={"content-type": media})
        assert response.status_code == 200
        answers = (
            response.json()["responses"]
            if media == "application/json"
            else [json.loads(line) for line in response.text.splitlines()]
        )
        assert [(answer["id"], answer["schema_version"]) for answer in answers] == [
            ("?", "error.v1"),
            ("b", "search_response.v1"),
        ]

    def test_a_bulk_query_that_takes_too_long_gets_an_error_and_the_others_are_answered(
        self, served_db: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Regression: the lines after it were never answered."""
        search = KnowledgeBase.search

        def at_times_slow(kb: KnowledgeBase, request: SearchRequest) -> SearchResponse:
            if request.query == "slow":
                time.sleep(2)
            return search(kb, request)

        monkeypatch.setattr(KnowledgeBase, "search", at_times_slow)
        sent = "\n".join(json.dumps({"id": query, "query": query}) for query in ("git", "slow", "undo"))
        with client_of(served_db, timeout_s=1.0) as client:
            answers = client.post(
                "/api/v1/search/bulk", content=sent, headers={"content-type": "application/x-ndjson"}
            ).text.splitlines()
        told = [json.loads(line) for line in answers]
        assert [(answer["id"], answer.get("code")) for answer in told] == [
            ("git", None),
            ("slow", "timed_out"),
            ("undo", None),
        ]

    @pytest.mark.parametrize("sent", ["{", "[1", "7", '{"queries": 5}', "{}", '{"queries": [], "colour": 1}'])
    def test_a_body_that_is_no_list_of_queries_is_refused(self, client: httpx2.Client, sent: str) -> None:
        failed(
            client.post("api/v1/search/bulk", content=sent, headers={"content-type": "application/json"}), 400, "usage"
        )

    def test_more_than_a_thousand_queries_are_refused(self, client: httpx2.Client) -> None:
        failed(client.post("api/v1/search/bulk", json=[{"query": "a"}] * 1001), 400, "usage")


class TestLookingInside:
    def test_a_document_can_be_requested_by_path_and_by_id(self, client: httpx2.Client) -> None:
        by_path = valid(client.get("api/v1/documents/git/undo.md"), "doc_summary")
        by_id = valid(client.get(f"api/v1/documents/{by_path['doc_id']}"), "doc_summary")
        assert by_path == by_id
        assert by_path["chunks"]

    def test_documents_are_listed_in_pages_and_filtered(self, client: httpx2.Client) -> None:
        everything = valid(client.get("api/v1/documents"), "list")
        page = valid(client.get("api/v1/documents", params={"limit": 2, "offset": 1}), "list")
        assert page["total"] == everything["total"]
        assert page["items"] == everything["items"][1:3]
        korean = valid(client.get("api/v1/documents", params={"lang": "ko"}), "list")
        assert 0 < korean["total"] < everything["total"]

    def test_fetching_the_citation_of_a_chunk_gives_the_text_of_the_chunk(self, client: httpx2.Client) -> None:
        hit = client.get("api/v1/search", params={"query": "undo commit", "k": 1}).json()["hits"][0]
        chunk = valid(client.get(f"api/v1/chunks/{hit['chunk_id']}"), "chunk_inspection")
        span = valid(client.get("api/v1/spans", params={"uri": hit["citation"]["uri"]}), "fetch_result")
        assert chunk["text"] in span["text"]

    def test_max_tokens_cuts_a_fetched_text_after_a_line_and_next_offset_gives_the_rest(
        self, client: httpx2.Client
    ) -> None:
        whole = valid(client.get("api/v1/fetch", params={"uri": "git/undo.md"}), "fetch_result")
        assert whole["truncated"] is False
        read, offset = "", 0
        for _ in range(100):
            page = valid(
                client.get("api/v1/fetch", params={"uri": "git/undo.md", "max_tokens": 100, "offset": offset}),
                "fetch_result",
            )
            read += page["text"]
            if page["next_offset"] is None:
                break
            assert page["text"].endswith("\n")
            offset = page["next_offset"]
        assert read == whole["text"]

    @pytest.mark.parametrize(
        ("address", "status", "code"),
        [
            ("documents/nowhere.md", 404, "not_found"),
            ("documents?limit=0", 400, "usage"),
            ("documents?limit=x", 400, "usage"),
            ("documents?query=undo", 400, "usage"),
            ("documents?library=/no/such", 400, "usage"),
            ("documents?colour=red", 400, "usage"),
            ("chunks/ffffffffff", 404, "not_found"),
            ("spans", 400, "usage"),
            ("spans?uri=git/undo.md", 400, "usage"),
            ("spans?uri=git/undo.md%23L1-L9999", 404, "not_found"),
            ("fetch?uri=git/undo.md&offset=999999", 404, "not_found"),
            ("fetch?uri=git/undo.md&max_tokens=0", 400, "usage"),
            ("fetch?uri=git/undo.md&offset=-1", 400, "usage"),
            ("sources?x=1", 400, "usage"),
            ("nothing/here", 404, "not_found"),
            ("ingest/7", 404, "not_found"),
            ("ingest/7/events", 404, "not_found"),
        ],
    )
    def test_an_unknown_document_or_chunk_is_not_found(
        self, client: httpx2.Client, address: str, status: int, code: str
    ) -> None:
        failed(client.get(f"api/v1/{address}"), status, code)

    def test_paths_on_disk_are_not_found_even_of_indexed_files(
        self, client: httpx2.Client, sample_notes: Path, served_db: Path
    ) -> None:
        """Not even an indexed file can be named by its path on disk."""
        for path in (
            "/etc/passwd",
            str(sample_notes / "git" / "undo.md"),
            "../../etc/passwd",
            str(served_db),
            "~/.bashrc",
        ):
            failed(client.get("api/v1/fetch", params={"uri": path}), 404, "not_found")
            failed(client.get("api/v1/search", params={"query": "git", "doc": path}), 404, "not_found")
        assert client.get("api/v1/documents//etc/passwd").status_code == 404

    def test_rest_returns_sources_tags_status_and_health(self, client: httpx2.Client) -> None:
        assert valid(client.get("api/v1/sources"), "list")["items"][0]["name"] == "notes"
        assert valid(client.get("api/v1/tags"), "list")["total"] > 0
        status = valid(client.get("api/v1/status"), "status")
        assert (status["read_only"], status["libraries"], status["sources"]) == (True, 1, ["notes"])
        assert valid(client.get("api/v1/health"), "health")["ok"] is True

    def test_a_wrong_http_method_is_refused_with_the_allowed_ones(self, client: httpx2.Client) -> None:
        response = client.delete("api/v1/search")
        failed(response, 405, "method_not_allowed")
        assert "GET" in response.headers["allow"]


class TestLibraries:
    def test_a_library_is_found_by_name(self, client: httpx2.Client) -> None:
        body = valid(client.get("api/v1/libraries/search", params={"libraryName": "widget"}), "library_search")
        assert body["libraries"][0]["library_id"] == "/acme/widget"
        assert valid(client.get("api/v1/libraries"), "library_list")["items"][0]["title"] == "Widget"

    def test_library_documentation_over_rest_fits_the_budget_of_tokens(self, client: httpx2.Client) -> None:
        asked = {"libraryId": "/acme/widget", "query": "create a dial", "type": "code"}
        body = valid(client.get("api/v1/libraries/docs", params=asked), "library_docs")
        assert [snippet["content"] for snippet in body["snippets"]] == ["dial = make_dial(limit=20)"]
        assert body["rules"] == ["Always close a gauge"]

    def test_api_v2_returns_the_json_that_existing_clients_read(self, client: httpx2.Client) -> None:
        (found,) = client.get("api/v2/libs/search", params={"libraryName": "widget", "query": "dials"}).json()[
            "results"
        ]
        assert found["id"] == "/acme/widget"
        assert found["totalSnippets"] > 0
        context = client.get(
            "api/v2/context", params={"libraryId": "/acme/widget", "query": "create a dial", "type": "json"}
        ).json()
        (code,) = context["codeSnippets"]
        assert code["codeTitle"] == "Create a dial"
        assert code["codeList"] == [{"language": "python", "code": "dial = make_dial(limit=20)"}]
        assert context["rules"] == ["Always close a gauge"]

    def test_the_text_of_api_v2_equals_the_output_of_kb_lib_docs(self, client: httpx2.Client) -> None:
        response = client.get("api/v2/context", params={"libraryId": "/acme/widget", "query": "create a dial"})
        assert response.headers["content-type"].startswith("text/plain")
        assert response.text.startswith(
            "## Library Rules\n- Always close a gauge\n\n*These rules are the library's own words.*\n\n---\n\n### Create a dial\n*Widget > Guide*\n```python\ndial = make_dial(limit=20)\n```"
        )

    def test_an_unknown_library_is_404_in_api_v1_and_v2(self, client: httpx2.Client) -> None:
        failed(client.get("api/v1/libraries/docs", params={"libraryId": "/no/such", "query": "x"}), 404, "not_found")
        response = client.get("api/v2/context", params={"libraryId": "/no/such", "query": "x"})
        assert response.status_code == 404
        assert set(response.json()) == {"error", "message"}

    def test_a_name_that_is_too_long_is_refused(self, client: httpx2.Client) -> None:
        failed(client.get("api/v1/libraries/search", params={"libraryName": "x" * 501}), 400, "usage")
