"""The same commands on a file and on a Qdrant server, as a user runs them: what they print is the same."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from tests.end_to_end.conftest import User
from tests.qdrant_server import QdrantNode
from tests.serving import serving

SAMPLES = Path(__file__).parents[2] / "samples"
OF_A_RUN = {
    "took_ms",
    "seconds",
    "indexed_at",
    "ingested_at",
    "created_at",
    "index_version",
    "next_cursor",
    "started_at",
    "ms",
    "database",
    "date",
    "vector_rank",
}
"""Fields that differ between runs or stores: times, versions of an index, and ranks in the lists of a store, where near
ties swap.
"""


class Near(float):
    """Equals any number that differs by at most .02, because SQLite stores vectors with 16 bits and a cluster with 32."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and abs(self - other) <= 0.02

    __hash__ = float.__hash__


class Both(NamedTuple):
    user: User
    file: str
    cluster: str

    def asked(self, *command: str | Path) -> Any:
        """The answer of both stores, which must be the same."""
        told = [self.user.run(*command, "--json", "--db", place) for place in (self.file, self.cluster)]
        answers = [
            (done.code, comparable(done.json(), place))
            for done, place in zip(told, (self.file, self.cluster), strict=True)
        ]
        assert answers[0] == answers[1], command
        return answers[1][1]


def comparable(value: Any, place: str) -> Any:
    """The value without fields that belong to one run or one store."""
    if isinstance(value, dict):
        return {key: comparable(part, place) for key, part in value.items() if key not in OF_A_RUN}
    if isinstance(value, list):
        return [comparable(part, place) for part in value]
    if isinstance(value, float):
        return Near(value)
    return value.replace(place, "PLACE") if isinstance(value, str) else value


INGEST_IN_ONE_GROUP = """
from kebab.interfaces.cli.main import main
from kebab.ingest import run

run._GROUP_SECONDS = 3600
main()
"""
"""`kb`, except that time does not cut an ingest into groups: on a busy machine it would, and each group of a cluster is
weighed for the average length at its time, which changes scores by some percent.
"""


@pytest.fixture(scope="module")
def both(one_node: QdrantNode, tmp_path_factory: pytest.TempPathFactory, model_cache: Path) -> Both:
    """A user of each store, with the bundled models, after `kb ingest` and `kb lib add`."""
    user = User(tmp_path_factory.mktemp("both"))
    del user.environment["KEBAB_EMBEDDING_MODEL"]
    user.environment["XDG_CACHE_HOME"] = str(model_cache)
    shutil.copytree(SAMPLES / "notes", user.notes, dirs_exist_ok=True)
    user.write(
        "widget/README.md",
        "# Widget\n\nRun it:\n\n```sh\nwidget --run\n```\n\n## Stopping\n\n```sh\nwidget --stop\n```\n",
        user.home,
    )
    places = (str(user.home / "file.sqlite"), one_node.address(f"both-{uuid4().hex[:8]}"))
    for place in places:
        command = [sys.executable, "-c", INGEST_IN_ONE_GROUP, "ingest", str(user.notes), "--db", place]
        subprocess.run(command, check=True, env=user.environment, cwd=user.folder, capture_output=True)
    for place in places:
        user.ask("lib", "add", user.home / "widget", "--id", "/acme/widget", "--db", place)
    return Both(user, *places)


COMMANDS = [
    ("search", "undo the last commit"),
    ("search", "undo the last commit", "--mode", "lexical", "--full-text", "-k", "3"),
    ("ask", "How do I undo the last commit?"),
    ("list", "docs"),
    ("list", "tags"),
    ("list", "sources"),
    ("lib", "list"),
    ("lib", "docs", "/acme/widget", "stop"),
    ("inspect", "doc", "git/undo.md"),
    ("fetch", "span", "git/undo.md#L23-L30"),
]


def test_every_command_prints_the_same_on_a_file_and_on_a_cluster(both: Both) -> None:
    for command in COMMANDS:
        assert both.asked(*command), command


def test_an_evaluation_gives_the_same_metrics_on_a_file_and_on_a_cluster(both: Both) -> None:
    run = both.asked("eval", "run", SAMPLES / "golden.yaml")
    assert run["queries"]


ASKED = [
    ("search", {"query": "undo the last commit"}),
    ("search", {"query": "undo the last commit", "mode": "vector"}),
    ("search", {"query": '"cherry pick" OR installat*'}),
    ("search", {"query": "git 설치"}),
    ("search", {"query": "git", "path": "git/*", "per_doc": "1"}),
    ("search", {"query": "nothing has thisword"}),
    ("search", {"query": "stop the widget", "library": "/acme/widget"}),
    ("ask", {"question": "How do I undo a commit?"}),
    ("ask", {"question": "Who won the world cup?"}),
    ("documents", {}),
    ("tags", {}),
]


def test_kb_serve_answers_the_same_on_a_file_and_on_a_cluster(both: Both, model_cache: Path) -> None:
    environment = {"KEBAB_EMBEDDING_MODEL": "bundled", "XDG_CACHE_HOME": str(model_cache)}
    told = []
    for place in (both.file, both.cluster):
        with serving(place, home=both.user.home, env=environment) as server:
            told.append(
                [comparable(got(f"{server.url}api/v1/{path}?{urlencode(query)}"), place) for path, query in ASKED]
            )
    for question, *answers in zip(ASKED, *told, strict=True):
        assert answers[0] == answers[1], question
        assert answers[0], question


def got(url: str) -> Any:
    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)
