"""Fixtures for many tests: an isolated home folder, the indexed sample notes, and `kb` as a real process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from tests.forked_kb import run_kb
from tests.qdrant_server import QdrantNode, qdrant_cluster, qdrant_node

import kebab
from kebab.core.ports import EmbeddingKind, EmbeddingModels, SpaceQuery
from kebab.embedding.models import SingleModel, is_latin

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell starts what it runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # some tests load onnxruntime by themselves, in the home of whoever runs them
settings.register_profile("kebab", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("kebab"), max_examples=1000)  # --hypothesis-profile=thorough
settings.load_profile("kebab")

REPOSITORY = Path(__file__).parent.parent
XDG_VARIABLES = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")

# What --quick leaves out: tests that start servers or other programs, load a model, or take long for another reason.
SLOW_PLACES = """
    answering contracts/test_embedders.py contracts/test_stores.py docs embedding end_to_end ingest/test_hostile_files.py
    interfaces/cli interfaces/http interfaces/mcp interfaces/test_parity.py interfaces/test_suspicious_text.py
    parsing/test_code_contract.py parsing/test_damaged_files.py parsing/test_isolation.py parsing/test_zipped_xml.py
    regressions search/test_folding.py sources/test_git_mirror.py store/qdrant store/sqlite/test_altered_schema.py
    test_golden_queries.py test_layers.py test_libraries.py test_query_cost.py test_http_client.py
""".split()
SLOW_FIXTURES = {"model_cache", "one_node", "sample", "three_nodes"}
SLOW_STORES = {"cluster", "qdrant"}
SLOW_NAMES = ("large_space", "linear_time", "little_time", "with_the_length", "answered_soon")  # tests of time

# What takes longest, longest first: begun last, it would keep one worker busy while the others have nothing left to do.
BEGUN_FIRST = """
    store/qdrant/test_faults.py sources/test_git_mirror.py contracts/test_store_vectors.py docs/test_documentation.py
    store/qdrant/test_interruptions.py end_to_end/test_vectors.py store/qdrant/test_integrity.py docs/test_scripts.py
    end_to_end/test_life_cycle.py end_to_end/test_watch.py interfaces/http/test_safety.py test_http_client.py
    store/qdrant/test_client.py contracts end_to_end interfaces store
""".split()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="without servers, models and other programs (scripts/test)")


def pytest_configure() -> None:
    gone = [place for place in (*SLOW_PLACES, *BEGUN_FIRST) if not (Path(__file__).parent / place).exists()]
    assert not gone, f"tests/conftest.py names what is not there: {gone}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    tests = Path(__file__).parent
    return True if config.getoption("quick") and collection_path in {tests / place for place in SLOW_PLACES} else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("quick"):
        items[:] = [item for item in items if not is_slow(item)]
    items.sort(key=lambda item: place_in_the_queue(item.path))


@cache
def place_in_the_queue(path: Path) -> int:
    name = path.relative_to(Path(__file__).parent).as_posix()
    places = (number for number, place in enumerate(BEGUN_FIRST) if f"{name}/".startswith(f"{place}/"))
    return next(places, len(BEGUN_FIRST))


def is_slow(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function):
        return False
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    stores = {parameter for parameter in parameters if isinstance(parameter, str)} & SLOW_STORES
    return bool(stores or SLOW_FIXTURES & set(item.fixturenames) or any(name in item.name for name in SLOW_NAMES))


@dataclass(frozen=True)
class Ran:
    """The exit code and the output of a `kb` process."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The one JSON object on stdout."""
        return json.loads(self.out)

    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Kb = Callable[..., Ran]


@pytest.fixture(scope="session", autouse=True)
def no_models_unless_asked_for() -> Iterator[None]:
    """Turns models off for shared databases, which are made before a test has its own home folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEBAB_EMBEDDING_MODEL", "none")
        yield


@pytest.fixture(scope="session", autouse=True)
def small_collections() -> Iterator[None]:
    """Makes collections of chunks with few segments, because each takes 30 MB of a server even if it is empty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kebab.store.qdrant.schema.SEGMENTS", 2)
        yield


@pytest.fixture(autouse=True)
def isolated_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without files, settings or database of the user; subprocesses inherit it."""
    home = tmp_path / "home"
    home.mkdir()
    for variable in [name for name in os.environ if name.startswith("KEBAB_")] + [
        "EDITOR",
        "VISUAL",
        "NO_COLOR",
        "FORCE_COLOR",
    ]:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(home))
    for variable in XDG_VARIABLES:
        monkeypatch.setenv(variable, str(home / variable.split("_")[1].lower()))
    monkeypatch.setenv("KEBAB_EMBEDDING_MODEL", "none")  # see bundled_models
    return home


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the unpacked bundled models, for all workers of a run."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "model-cache"


@pytest.fixture
def bundled_models(isolated_home: Path, model_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns on the bundled models, which are the default for users. Most tests do without them to be fast."""
    monkeypatch.delenv("KEBAB_EMBEDDING_MODEL")
    monkeypatch.setenv("XDG_CACHE_HOME", str(model_cache))


class WordEmbedder:
    """A small model in earnest: every word is a direction of its own, a text is the sum of its words, so texts that
    share words are close. `synonyms` are words that point where another one does. What it was asked is written down in
    `batches`.
    """

    def __init__(
        self, name: str = "words", version: str = "1", dimension: int = 32, synonyms: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.version = version
        self.dimension = dimension
        self.synonyms = synonyms or {}
        self.batches: list[tuple[EmbeddingKind, list[str]]] = []

    @property
    def fingerprint(self) -> str:
        return f"{self.name}@{self.version}:{self.dimension}"

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Any:
        self.batches.append((kind, list(texts)))
        return np.stack([self._vector(text) for text in texts])

    def texts(self, kind: EmbeddingKind = "passage") -> list[str]:
        """All embedded texts, in order."""
        return [text for asked, batch in self.batches if asked == kind for text in batch]

    def _vector(self, text: str) -> Any:
        words = "".join(letter if letter.isalnum() else " " for letter in text.casefold()).split()
        total = np.sum(
            [self._direction(self.synonyms.get(word, word)) for word in words or [""]], axis=0, dtype=np.float64
        )
        return (total / np.linalg.norm(total)).astype(np.float32)

    def _direction(self, word: str) -> Any:
        data = b"".join(
            sha256(f"{self.name} {part} {word}".encode()).digest() for part in range(-(-self.dimension // 32))
        )
        return np.frombuffer(data, np.uint8)[: self.dimension].astype(np.float64) - 127.5


class TwoScripts:
    """Two models that divide the work as the bundled ones do: one for Latin script, one for all others."""

    def __init__(self, latin: WordEmbedder, everything: WordEmbedder, *, cross_language: str = "auto") -> None:
        self.latin = latin
        self.everything = everything
        self.embedders = (latin, everything)
        self.earlier: EmbeddingModels | None = None
        self._cross_language = cross_language
        self.latin_floor = -1.0

    def primary_of(self, text: str) -> WordEmbedder:
        return self.latin if is_latin(text) else self.everything

    def secondary_of(self, _text: str) -> WordEmbedder | None:
        return None

    def secondary_for_all(self, *, other_scripts: bool) -> WordEmbedder | None:
        return (
            self.everything
            if self._cross_language == "on" or (self._cross_language == "auto" and other_scripts)
            else None
        )

    def for_query(self, text: str) -> list[SpaceQuery]:
        if not is_latin(text):
            own, foreign = (
                SpaceQuery(self.everything, primary=True, trust=0.1),
                SpaceQuery(self.everything, primary=False, bonus=0.1),
            )
            return [own] if self._cross_language == "off" else [foreign, own]
        foreign = SpaceQuery(self.everything, primary=True, instead=self._cross_language == "auto")
        return [SpaceQuery(self.latin, floor=self.latin_floor), *([] if self._cross_language == "off" else [foreign])]


class Toy:
    """Fast models, and knowledge bases that use them."""

    @staticmethod
    def embedder(name: str = "words", **details: Any) -> WordEmbedder:
        return WordEmbedder(name, **details)

    @staticmethod
    def models(embedder: WordEmbedder | None = None) -> EmbeddingModels:
        return SingleModel(embedder or WordEmbedder())

    @staticmethod
    def two_scripts(synonyms: Mapping[str, str] | None = None, **details: Any) -> TwoScripts:
        return TwoScripts(
            WordEmbedder("latin", synonyms=synonyms),
            WordEmbedder("everything", dimension=48, synonyms=synonyms),
            **details,
        )

    @staticmethod
    def open(path: Path | str, models: EmbeddingModels | None = None, **settings: Any) -> kebab.KnowledgeBase:
        knowledge_base = kebab.open(path, **settings)
        knowledge_base.session.models = models or SingleModel(WordEmbedder())
        return knowledge_base


@pytest.fixture(scope="session")
def toy() -> type[Toy]:
    return Toy


@pytest.fixture(scope="session")
def sample_notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of samples/notes, which no test may change."""
    target = tmp_path_factory.mktemp("samples") / "notes"
    shutil.copytree(REPOSITORY / "samples" / "notes", target)
    return target


@pytest.fixture(scope="session")
def sample_db(sample_notes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with samples/notes, which no test may change."""
    path = tmp_path_factory.mktemp("sample-db") / "samples.sqlite"
    with kebab.open(path) as knowledge_base:
        knowledge_base.ingest(sample_notes)
    return path


@pytest.fixture
def sample_kb(sample_db: Path) -> Iterator[kebab.KnowledgeBase]:
    with kebab.open(sample_db) as knowledge_base:
        yield knowledge_base


@pytest.fixture
def kb(tmp_path: Path) -> Kb:
    """Runs `python -m kebab …` as a process in its own folder, as a user's shell does."""
    folder = tmp_path / "cwd"
    folder.mkdir()

    def run(
        *arguments: str | Path,
        input: str | bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Ran:
        data = input.encode() if isinstance(input, str) else input
        done = run_kb(arguments, input=data or b"", cwd=cwd or folder, env={**os.environ, **(env or {})})
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def sample(kb: Kb, sample_db: Path) -> Kb:
    """Runs `kb --db SAMPLES …`."""

    def run(*arguments: str | Path, **options: Any) -> Ran:
        return kb("--db", sample_db, *arguments, **options)

    return run


@pytest.fixture
def write_notes(tmp_path: Path) -> Callable[[Mapping[str, str]], Path]:
    """A folder with these files, by relative path."""

    def write(files: Mapping[str, str]) -> Path:
        root = tmp_path / "notes"
        for path, text in files.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
        return root

    return write


class Upstream:
    """A git repository on a server of somebody else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"file://{folder}"
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=trunk")

    def git(self, *arguments: str) -> str:
        who = [
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.org",
            "-c",
            "commit.gpgsign=false",
            "-c",
            "protocol.file.allow=always",
        ]
        done = subprocess.run(["git", *who, *arguments], cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str | bytes], tag: str | None = None) -> str:
        for path, text in files.items():
            target = self.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", "change")
        if tag:
            self.git("tag", "-a", tag, "-m", tag)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path / "upstream")


@pytest.fixture(scope="session")
def one_node() -> Iterator[QdrantNode]:
    """A Qdrant server that all tests share. Each test uses its own knowledge base on it, and none stops it."""
    with qdrant_node() as node:
        yield node


@pytest.fixture(scope="session")
def three_nodes() -> Iterator[Sequence[QdrantNode]]:
    """A cluster of three servers. A test that stops a server starts it again."""
    with qdrant_cluster(3) as nodes:
        yield nodes
