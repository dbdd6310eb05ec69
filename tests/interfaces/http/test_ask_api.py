"""Answers over HTTP, as events while they are written or as one object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest
from tests.answering.conftest import ChatServer, Reply
from tests.serving import Server, serving

from kebab.wire import schemas

QUESTION = "How do I undo the last commit?"


def events(response: httpx2.Response) -> list[tuple[str, Any]]:
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    blocks = [dict(line.split(": ", 1) for line in block.splitlines()) for block in response.text.strip().split("\n\n")]
    return [(block["event"], json.loads(block["data"])) for block in blocks]


def test_the_last_event_is_the_answer_with_its_citations(client: httpx2.Client) -> None:
    name, answer = events(client.get("api/v1/ask", params={"question": QUESTION}))[-1]
    assert name == "answer"
    jsonschema.validate(answer, schemas.schema("answer"))
    assert answer["grounded"] is True
    assert any(cited["citation"]["path"] == "git/undo.md" for cited in answer["citations"])


def test_get_and_post_and_json_give_the_same_answer(client: httpx2.Client) -> None:
    streamed = events(client.post("api/v1/ask", json={"question": QUESTION, "source": "notes", "lang": None}))[-1][1]
    at_once = client.get("api/v1/ask", params={"question": QUESTION}, headers={"accept": "application/json"}).json()
    assert at_once["answer"] == streamed["answer"]
    assert at_once["citations"] == streamed["citations"]


def test_a_refusal_is_an_answer_that_says_why(client: httpx2.Client) -> None:
    answer = client.get(
        "api/v1/ask", params={"question": "Who won the 1954 world cup?"}, headers={"accept": "application/json"}
    ).json()
    jsonschema.validate(answer, schemas.schema("answer"))
    assert (answer["grounded"], answer["answer"]) == (False, None)
    assert answer["refusal_reason"]


@pytest.mark.parametrize(
    ("parameters", "status", "code"),
    [
        ({}, 400, "usage"),
        ({"question": "  "}, 400, "usage"),
        ({"question": "x", "query": "y"}, 400, "usage"),
        ({"question": "x", "sort": "size"}, 400, "usage"),
        ({"question": "x", "library": "/no/such"}, 404, "not_found"),
        ({"question": "x", "k": "many"}, 400, "usage"),
        ({"question": "x", "colour": "red"}, 400, "usage"),
    ],
)
def test_a_wrong_option_gives_an_error_status_not_an_event(
    client: httpx2.Client, parameters: dict[str, str], status: int, code: str
) -> None:
    for answer in (client.get("api/v1/ask", params=parameters), client.post("api/v1/ask", json=parameters)):
        assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_question_with_an_unpaired_surrogate_is_answered(client: httpx2.Client) -> None:
    """Regression: the answer could not be sent, and the stream ended without an event."""
    name, answer = events(client.post("api/v1/ask", content=r'{"question": "\ud800 How do I undo the last commit?"}'))[
        -1
    ]
    assert (name, answer["question"]) == ("answer", "? How do I undo the last commit?")


def test_an_error_after_the_response_has_started_is_an_error_event(client: httpx2.Client) -> None:
    name, error = events(client.get("api/v1/ask", params={"question": QUESTION, "source": "nowhere"}))[-1]
    assert (name, error["code"]) == ("error", "not_found")


class TestWrittenByAModel:
    @pytest.fixture
    def writing(self, chat_server: ChatServer, served_db: Path, tmp_path: Path) -> Iterator[Server]:
        env = {"KEBAB_ASK_MODEL": "openai:m", "KEBAB_ASK_ENDPOINT": f"{chat_server.address}/v1"}
        with serving(served_db, home=tmp_path, env=env) as running:
            yield running

    def test_text_is_streamed_and_stops_when_the_caller_disconnects(
        self, writing: Server, chat_server: ChatServer
    ) -> None:
        chat_server.script = [Reply(["Undo it ", "with git reset [1]."]), Reply(["word "] * 600, wait_s=0.05)]
        told = events(httpx2.get(writing.url + "api/v1/ask", params={"question": QUESTION}, timeout=60))
        assert [name for name, _ in told] == ["text", "text", "answer"]
        assert "".join(said["text"] for name, said in told if name == "text") == "Undo it with git reset [1]."
        with httpx2.stream("GET", writing.url + "api/v1/ask", params={"question": QUESTION}, timeout=60) as response:
            assert next(response.iter_lines()) == "event: text"
        assert chat_server.abandoned.wait(10)
        assert httpx2.get(writing.url + "api/v1/health").status_code == 200
