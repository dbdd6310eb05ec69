"""A wrong option of any operation is answered with the same words on the command line, in Python, over REST and MCP.

Searches are compared in test_parity.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.interfaces.mcp.sessions import Session, connected
from tests.serving import serving

import kebab
from kebab.interfaces.cli.main import run

Options = dict[str, Any]
Words = tuple[str, str, str]

ASK: Options = {"question": "how do I undo a commit"}
LIBRARIES: Options = {"libraryName": "widget"}
DOCS: Options = {"libraryId": "/acme/widget", "query": "dial"}
WRONG: list[tuple[str, Options, Options]] = [
    *(
        ("ask", ASK, wrong)
        for wrong in (
            {"tga": "x"},
            {"explian": "x"},
            {"nonsense": "1"},
            {"k": 0},
            {"k": 1001},
            {"k": "many"},
            {"k": 2.5},
            {"k": 3, "top": 4},
            {"max_tokens": "1_000"},
            {"max_tokens": 0},
            {"mode": "psychic"},
            {"type": ["pfd"]},
            {"trust_min": "very"},
            {"lang": ""},
            {"source": [" "]},
            {"after": "soon"},
            {"library": "widget"},
        )
    ),
    *(
        ("documents", {}, wrong)
        for wrong in (
            {"limt": 5},
            {"limit": 0},
            {"limit": 1001},
            {"limit": "many"},
            {"limit": 2.5},
            {"type": ["pfd"]},
            {"lang": ""},
            {"source": [" "]},
            {"after": "soon"},
            {"trust_min": "very"},
        )
    ),
    *(
        ("libraries", LIBRARIES, wrong)
        for wrong in ({"limt": 3}, {"limit": 0}, {"limit": 101}, {"limit": "many"}, {"limit": 2.5})
    ),
    *(
        ("docs", DOCS, wrong)
        for wrong in (
            {"typ": "code"},
            {"tokens": 0},
            {"tokens": 1_000_001},
            {"tokens": "many"},
            {"page": 0},
            {"page": 1_000_001},
            {"page": 1.5},
            {"type": "poem"},
            {"type": ""},
            {"libraryId": "widget"},
            {"libraryId": "/acme/widgit"},
        )
    ),
    ("ingest", {"paths": ["/no/such"]}, {"nme": "x"}),
    ("ingest", {"paths": ["/no/such"]}, {"name": ""}),
]
COMMANDS = {
    "ask": (["ask"], ["question"]),
    "documents": (["list", "docs"], []),
    "libraries": (["lib", "search"], ["libraryName"]),
    "docs": (["lib", "docs"], ["libraryId", "query"]),
    "ingest": (["ingest"], ["paths"]),
}
"""Each operation's command, and the options that are arguments there."""
ADDRESSES = {
    "ask": "ask",
    "documents": "documents",
    "libraries": "libraries/search",
    "docs": "libraries/docs",
    "ingest": "ingest",
}
TOOLS = {
    "ask": "ask",
    "documents": "list_documents",
    "libraries": "resolve-library-id",
    "docs": "query-docs",
    "ingest": "ingest",
}


class Surfaces:
    def __init__(self, kb: kebab.KnowledgeBase, client: httpx2.Client, agent: Session) -> None:
        self.kb = kb
        self.client = client
        self.agent = agent

    def words(self, operation: str, options: Options, printed: Callable[[], str]) -> dict[str, Words]:
        """The error's code, message and hint on each surface. Python itself refuses unknown keywords of functions
        without `**others`, so it is left out then.
        """
        answers = {
            "cli": self._command(operation, options, printed),
            "rest": self._get(operation, options),
            "mcp": self.agent.call(TOOLS[operation], **options).structured_content,
        }
        if operation in ("ask", "ingest"):
            answers["rest, posted"] = self.client.post(f"/api/v1/{ADDRESSES[operation]}", json=options).json()
        if operation == "ingest":
            del answers["rest"]
        words = {surface: (found["code"], found["message"], found["hint"]) for surface, found in answers.items()}
        try:
            self._python(operation, dict(options))
        except kebab.KebabError as error:
            words["python"] = (error.code, error.message, str(error.hint))
        except TypeError as error:
            assert "unexpected keyword argument" in str(error), options
        return words

    def _command(self, operation: str, options: Options, printed: Callable[[], str]) -> Any:
        command, arguments = COMMANDS[operation]
        given = [text for name in arguments for text in _several(options[name])]
        flags = [
            text
            for name, value in options.items()
            if name not in arguments
            for one in _several(value)
            for text in (f"--{name.replace('_', '-')}", str(one))
        ]
        assert run([*command, *given, *flags, "--db", self.kb.address, "--json"]) == 2
        return json.loads(printed())

    def _get(self, operation: str, options: Mapping[str, Any]) -> Any:
        answer = self.client.get(f"/api/v1/{ADDRESSES[operation]}", params=options)
        return answer.json()

    def _python(self, operation: str, options: Options) -> None:
        if operation == "ask":
            self.kb.ask(options.pop("question"), **options)
        elif operation == "documents":
            self.kb.documents(**options)
        elif operation == "libraries":
            self.kb.libraries.search(options.pop("libraryName"), **options)
        elif operation == "docs":
            kind = options.pop("type", None)
            self.kb.libraries.docs(options.pop("libraryId"), options.pop("query"), kind=kind, **options)
        else:
            self.kb.ingest(*options.pop("paths"), **options)


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.fixture(scope="module")
def surfaces(sample_notes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surfaces]:
    folder = tmp_path_factory.mktemp("wrong-options")
    library = folder / "widget"
    library.mkdir()
    (library / "guide.md").write_text("# Guide\n\n## Create a dial\n\n```python\ndial = make_dial(limit=20)\n```\n")
    database = folder / "options.sqlite"
    with kebab.open(database) as kb:
        kb.ingest(sample_notes)
        kb.libraries.add(str(library), library_id="/acme/widget")
        with (
            serving(database, "--allow-write", home=folder) as server,
            httpx2.Client(base_url=server.url, timeout=60, headers={"Accept": "application/json"}) as client,
            connected(f"{server.url}mcp") as agent,
        ):
            yield Surfaces(kb, client, agent)


@pytest.mark.parametrize(("operation", "right", "wrong"), WRONG)
def test_a_wrong_option_gets_the_same_words_on_every_surface(
    surfaces: Surfaces, capsys: pytest.CaptureFixture[str], operation: str, right: Options, wrong: Options
) -> None:
    words = surfaces.words(operation, {**right, **wrong}, lambda: capsys.readouterr().out)
    first = words["cli"]
    assert words == dict.fromkeys(words, first)
    assert first[0] == ("not_found" if wrong.get("libraryId") == "/acme/widgit" else "usage")
    assert all(first)


def test_an_option_of_ask_that_has_another_meaning_there_is_refused(surfaces: Surfaces) -> None:
    with pytest.raises(kebab.KebabError, match="query is given more than once"):
        surfaces.kb.ask("how do I undo a commit", query="rust")


def test_one_path_instead_of_a_list_is_ingested_over_rest_and_mcp(surfaces: Surfaces) -> None:
    path = "/no/such"
    posted = surfaces.client.post("/api/v1/ingest", json={"paths": path})
    assert posted.status_code == 202
    assert "There is no file or folder /no/such." in str(surfaces.agent.fails("ingest", paths=path))


def test_a_wrong_mode_of_snippets_is_refused_like_one_of_search(surfaces: Surfaces) -> None:
    with pytest.raises(kebab.KebabError, match="mode = 'psychic' is not known"):
        surfaces.kb.search("dial", mode="psychic")
    with (
        surfaces.kb.libraries.service() as service,
        pytest.raises(kebab.KebabError, match="mode = 'psychic' is not known"),
    ):
        service.search_snippets("dial", "/acme/widget", mode="psychic")
