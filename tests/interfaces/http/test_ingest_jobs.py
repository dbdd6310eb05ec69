"""Ingests over HTTP: starting, following and stopping them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest
from tests.serving import Server, serving

import kebab
from kebab.core.errors import Locked
from kebab.interfaces.http.ingest_jobs import IngestJobs
from kebab.interfaces.service import Service
from kebab.wire import schemas


@pytest.fixture(scope="module")
def writable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("writable")
    db = folder / "notes.sqlite"
    with kebab.open(db) as kb:
        kb.ingest_text("An older note.", title="Old")
    with serving(db, "--allow-write", home=folder / "home") as running:
        yield running


@pytest.fixture(scope="module")
def writer(writable: Server) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=writable.url, timeout=60) as made:
        yield made


def finished(client: httpx2.Client, job_id: str) -> dict[str, Any]:
    for _ in range(300):
        job = client.get(f"api/v1/ingest/{job_id}").json()
        jsonschema.validate(job, schemas.schema("ingest_job"))
        if job["state"] not in ("queued", "running"):
            return dict(job)
        time.sleep(0.1)
    raise AssertionError(f"ingest {job_id} does not end")


def test_the_server_finds_text_that_it_ingested(writer: httpx2.Client, tmp_path: Path) -> None:
    (tmp_path / "boats.md").write_text("# Boats\n\nThe ketch has two masts.\n")
    started = writer.post("api/v1/ingest", json={"paths": [str(tmp_path)], "name": "boats"})
    assert started.status_code == 202
    job = finished(writer, started.json()["job_id"])
    assert (job["state"], job["report"]["added"], job["progress"]["event"], job["error"]) == ("done", 1, "done", None)
    assert writer.get("api/v1/search", params={"query": "ketch"}).json()["hits"][0]["doc_path"] == "boats.md"
    assert "boats" in writer.get("api/v1/status").json()["sources"]
    (tmp_path / "boats.md").write_text("# Boats\n\nThe sloop has one mast.\n")
    again = finished(writer, writer.post("api/v1/ingest", json={}).json()["job_id"])
    assert again["report"]["updated"] == 1
    listed = writer.get("api/v1/ingest").json()
    jsonschema.validate(listed, schemas.schema("ingest_jobs"))
    assert [item["job_id"] for item in listed["items"]][:2] == [again["job_id"], job["job_id"]]


def test_progress_comes_as_events_and_ends_with_a_terminal_one(writer: httpx2.Client, tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number}.md").write_text(f"# Note {number}\n\nSome words about the number {number}.\n")
    job_id = writer.post("api/v1/ingest", json={"paths": [str(tmp_path)], "name": "many"}).json()["job_id"]
    events = []
    with writer.stream("GET", f"api/v1/ingest/{job_id}/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        for line in response.iter_lines():
            if line.startswith("data: "):
                event = json.loads(line.removeprefix("data: "))
                jsonschema.validate(event, schemas.schema("ingest_progress"))
                events.append(event["event"])
    assert events[-1] == "done"
    assert events.count("done") == 1


def test_a_folder_that_is_missing_is_a_failed_job_with_the_reason(writer: httpx2.Client, tmp_path: Path) -> None:
    started = writer.post("api/v1/ingest", json={"paths": [str(tmp_path / "nowhere")]})
    job = finished(writer, started.json()["job_id"])
    assert job["state"] == "failed"
    assert job["error"]["code"] == "source_error"
    assert job["error"]["hint"]


def test_a_path_with_an_unpaired_surrogate_fails_without_affecting_other_jobs(writer: httpx2.Client) -> None:
    """Regression: the job was started but could not be shown, and with it neither the list of jobs nor the status page."""
    started = writer.post("api/v1/ingest", content=r'{"paths": ["/nowhere/\ud800"], "name": "\udfff"}')
    assert finished(writer, started.json()["job_id"])["error"]["code"] == "source_error"
    assert writer.get("api/v1/ingest").status_code == 200
    assert writer.get("status", headers={"accept": "text/html"}).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        '{"paths": [""]}',
        '{"paths": [1]}',
        '{"name": ""}',
        '{"embed": "yes"}',
        '{"colour": 1}',
        '{"paths": ["a\\u0000"]}',
    ],
)
def test_an_invalid_body_is_refused(writer: httpx2.Client, body: str) -> None:
    response = writer.post("api/v1/ingest", content=body)
    assert (response.status_code, response.json()["code"]) == (400, "usage")


def test_on_sigterm_the_server_finishes_writing_and_exits_with_0(tmp_path: Path) -> None:
    """Acknowledged documents are stored, none is stored in part, and the next run continues."""
    notes = tmp_path / "notes"
    notes.mkdir()
    for number in range(4000):
        (notes / f"{number}.md").write_text(f"# Note {number}\n\nAbout the number {number}. {'word ' * 200}\n")
    db = tmp_path / "notes.sqlite"
    with kebab.open(db) as kb:
        kb.ingest_text("An older note.", title="Old")
    with serving(db, "--allow-write", home=tmp_path / "home") as running, httpx2.Client(base_url=running.url) as client:
        job_id = client.post("api/v1/ingest", json={"paths": [str(notes)]}).json()["job_id"]
        waiting = client.post("api/v1/ingest", json={"paths": [str(notes)]}).json()["job_id"]
        while client.get("api/v1/status").json()["stats"]["documents"] < 20:
            assert client.get(f"api/v1/ingest/{job_id}").json()["state"] in ("queued", "running")
        with (
            client.stream("GET", f"api/v1/ingest/{job_id}/events") as followed,
            client.stream("GET", f"api/v1/ingest/{waiting}/events") as expected,
        ):
            assert running.stop(9) == 0  # nor does it wait for those who follow the ingest
            for stream in (followed, expected):
                assert [line for line in stream.iter_lines() if line.startswith("event: ")][-1] == "event: interrupted"
        assert running.process.stderr is not None
        assert "Traceback" not in running.process.stderr.read()
    with kebab.open(db) as kb:
        stored = kb.count_documents()
        assert 20 < stored < 4001
        assert kb.verify().whole
        assert all(check.ok for check in kb.health())
        kb.ingest(notes, embed=False)
        assert kb.count_documents() == 4001


def test_an_idle_server_stops_immediately(served_db: Path, tmp_path: Path) -> None:
    with serving(served_db, home=tmp_path) as running:
        httpx2.get(running.url + "api/v1/search?query=git")
        assert running.stop(10) == 0


def test_an_ingest_requested_while_stopping_is_refused(served_db: Path) -> None:
    with kebab.open(served_db) as kb:
        jobs = IngestJobs(Service(kb, allow_write=True))
        jobs.begin_to_stop()
        with pytest.raises(Locked):
            jobs.start((), None, False)
        assert jobs.all().items == []
