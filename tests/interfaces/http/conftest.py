"""A server that only reads, its database, and a client, shared by many tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.answering.conftest import _chat_server, chat_server  # noqa: F401 - fixtures
from tests.serving import Server, serving

import kebab


@pytest.fixture(scope="session")
def served_db(tmp_path_factory: pytest.TempPathFactory, sample_notes: Path) -> Path:
    """A database with the sample notes and a small library."""
    folder = tmp_path_factory.mktemp("served")
    docs = folder / "widget"
    docs.mkdir()
    (docs / "guide.md").write_text(
        "# Guide\n\n## Create a dial\n\nA dial shows one number.\n\n```python\ndial = make_dial(limit=20)\n```\n\n## Colours\n\nAny CSS colour is accepted.\n"
    )
    (docs / "kebab.json").write_text(
        '{"projectTitle": "Widget", "description": "Gauges for dashboards", "rules": ["Always close a gauge"]}'
    )
    path = folder / "served.sqlite"
    with kebab.open(path) as kb:
        kb.ingest(sample_notes)
        kb.libraries.add(str(docs), library_id="/acme/widget")
    return path


@pytest.fixture(scope="session")
def server(served_db: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that only reads; one for each worker."""
    with serving(served_db, home=tmp_path_factory.mktemp("server-home")) as running:
        yield running


@pytest.fixture(scope="session")
def client(server: Server) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=60) as made:
        yield made
