"""Every query has a bounded cost, and a search that is given up stops."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serving import serving

import kebab
from kebab.core.deadline import time_limit
from kebab.core.errors import QueryError, TimedOut
from kebab.core.ports import EmbeddingKind
from kebab.core.query_tree import is_raw
from kebab.core.search import MAX_QUERY_CHARS
from kebab.embedding.models import SingleModel
from kebab.knowledge_base import KnowledgeBase
from kebab.store.sqlite import bit_codes

PASSAGES = 30_000
MOST_CPU_SECONDS = 2.0
MOST_MEGABYTES = 100
CHANCE = random.Random(1)
SYLLABLES = ["".join(CHANCE.choices("bcdfghklmnprst", k=1) + CHANCE.choices("aeiou", k=1)) for _ in range(60)]
WORDS = ["a", "the", *("".join(CHANCE.choices(SYLLABLES, k=CHANCE.randrange(1, 5))) for _ in range(4000))]
KOREAN = ["".join(chr(CHANCE.randrange(0xAC00, 0xAF00)) for _ in range(CHANCE.randrange(2, 5))) for _ in range(500)]
HEAVY = " ".join(WORDS[2:98])
"""Nearly the largest query: frequent words, of which any may match."""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of 30,000 passages in which few words are frequent and many are rare; made once for all workers of a
    run.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "many"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        db = folder / "many.sqlite"
        if not db.exists():
            make_database(folder, folder / "unfinished.sqlite")
            (folder / "unfinished.sqlite").rename(db)
    return db


def make_database(folder: Path, db: Path) -> None:
    weights = list(accumulate(1 / rank for rank in range(1, len(WORDS) + 1)))
    for number in range(100):
        sections = []
        for section in range(PASSAGES // 100):
            words = [*CHANCE.choices(WORDS, cum_weights=weights, k=40), *CHANCE.choices(KOREAN, k=3)]
            sections.append(f"## Section {section}\n\n{' '.join(words)}\n")
        (folder / f"{number}.md").write_text("\n".join(sections), encoding="utf-8")
    with kebab.open(db, chunking_min_tokens=0) as kb:
        kb.ingest(folder, embed=False)
        stats = kb.stats()
    assert stats is not None
    assert stats.chunks == PASSAGES


@pytest.fixture(scope="module")
def opened(many: Path) -> Iterator[KnowledgeBase]:
    with kebab.open(many, embedding_model="none") as kb:
        kb.search("warm")
        yield kb


PIECES = {
    "common words": " ".join(WORDS[:400]) + " ",
    "rare words": " ".join(WORDS[2000:2400]) + " ",
    "alternatives": " OR ".join(WORDS[:200]) + " OR ",
    "prefixes": " ".join(f"{syllable}*" for syllable in SYLLABLES) + " ",
    "phrases": " ".join(f'"{one} {other}"' for one, other in pairwise(WORDS[:100])) + " ",
    "Korean words": " ".join(KOREAN) + " ",
    "a Korean word": "".join(KOREAN),
    "a few Korean syllables": "".join(KOREAN[:9]),
    "one word, spelt in many ways": " ".join(f"{left}the{right}" for left in "([{<-+" for right in ".,;:!?)]}>-+"),
    "groups of common words": " AND ".join(f"({one} OR {other})" for one, other in pairwise(WORDS[:100])) + " AND ",
    "near": f"NEAR({'a ' * 15}, 1000000) ",
} | {
    piece: piece
    for piece in (
        *(
            "a_",
            "a-b.",
            "the ",
            "bado_",
            '"',
            "(",
            "a* ",
            "b* OR ",
            " AND ",
            " OR ",
            " NOT ",
            "'",
            "\0",
            "x",
            "NEAR(a ",
            "^a + ",
        ),
        *("가나다", "가 ", "한글_", '"가나 the" ', "é", "\u200b", "*", "cjk : a OR "),
    )
}


def memory_mb(field: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


@settings(derandomize=True)
@given(
    pieces=st.lists(st.sampled_from(sorted(PIECES)), min_size=1, max_size=4),
    size=st.sampled_from([100, 2_000, 20_000, 1_000_000]),
    raw=st.booleans(),
    match=st.sampled_from(["auto", "all", "any"]),
    k=st.sampled_from([10, 100, 1000]),
    offset=st.sampled_from([0, 1000, 20_000]),
    explain=st.booleans(),
)
def test_any_query_costs_at_most_2_cpu_seconds_and_100_mb(
    opened: KnowledgeBase, pieces: list[str], size: int, raw: bool, match: str, k: int, offset: int, explain: bool
) -> None:
    once = "".join(PIECES[piece] for piece in pieces)
    query = (once * (size // len(once) + 1))[:size]
    query = f"'{query}'" if raw else query
    with bounded_cost():
        try:
            response = opened.search(query, match=match, k=k, offset=offset, explain=explain)
        except QueryError:
            assert query.startswith("'")  # only raw FTS5 can be invalid or too long
        else:
            assert response.query == query
            cut = len(query) > MAX_QUERY_CHARS and not is_raw(query)
            assert not cut or "long_query" in [notice.code for notice in response.notices]


@contextmanager
def bounded_cost() -> Iterator[None]:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak is measured from here
    before, started = memory_mb("VmRSS"), time.process_time()
    yield
    assert time.process_time() - started <= MOST_CPU_SECONDS
    assert memory_mb("VmHWM") - before <= MOST_MEGABYTES


class DrawnVectors:
    """An embedder whose vectors are derived from a checksum of the text, because real ones take many minutes."""

    name, version, dimension, fingerprint = "drawn", "1", 384, "drawn@1:384"

    def __init__(self) -> None:
        self._parts = np.random.default_rng(1).standard_normal((2, 256, self.dimension), np.float32)

    def embed(self, texts: Sequence[str], _kind: EmbeddingKind) -> Any:
        drawn = [crc32(text.encode()) for text in texts]
        both = self._parts[0][[number % 256 for number in drawn]] + self._parts[1][[number >> 24 for number in drawn]]
        return both / np.linalg.norm(both, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def with_vectors(many: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    db = tmp_path_factory.mktemp("vectors") / "many.sqlite"
    with kebab.open(many) as kb:
        kb.backup(db)
    with kebab.open(db, search_freshness="off") as kb:
        kb.session.models = SingleModel(DrawnVectors())
        kb.rebuild_vectors()
        yield kb


@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_a_deep_page_of_vectors_costs_at_most_2_cpu_seconds_and_100_mb(
    with_vectors: KnowledgeBase, mode: str, explain: bool
) -> None:
    """Regression: 2.2 CPU s and 146 MB, for all vectors of the ranking and all passages before the page."""
    with bounded_cost():
        hits = with_vectors.search(HEAVY, mode=mode, match="any", k=1000, offset=8000, explain=explain).hits
    assert len(hits) == 1000


def test_a_deep_page_does_not_hold_the_passages_before_it(opened: KnowledgeBase) -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = memory_mb("VmRSS")
    assert opened.search(HEAVY, match="any", offset=20_000).hits
    assert memory_mb("VmHWM") - before <= 30


def test_a_search_stops_at_its_time_limit_with_a_typed_error(many: Path) -> None:
    with kebab.open(many, embedding_model="none", search_timeout_s=0.1) as kb:
        kb.search("bado")
        with pytest.raises(TimedOut, match="took too long"):
            kb.search(HEAVY, match="any", k=1000)


def test_a_search_that_is_given_up_stops_using_the_cpu_within_100_ms(opened: KnowledgeBase) -> None:
    running = threading.Event()
    outcome: list[BaseException | None] = []

    def search() -> None:
        try:
            with time_limit(None) as deadline:
                limits.append(deadline)
                running.set()
                while True:
                    opened.search(HEAVY, match="any")
        except TimedOut as error:
            outcome.append(error)
            left.append(time.thread_time())

    limits: list[kebab.core.deadline.Deadline] = []
    left: list[float] = []
    thread = threading.Thread(target=search)
    thread.start()
    running.wait()
    clock = time.pthread_getcpuclockid(thread.ident or 0)
    time.sleep(0.3)
    used = time.clock_gettime(clock)
    limits[0].give_up()
    thread.join(30)
    assert isinstance(outcome[0], TimedOut)
    assert left[0] - used <= 0.1


def test_a_scan_of_vectors_stops_between_blocks() -> None:
    planes = np.zeros((6, 200_000), np.uint64)
    with time_limit(None) as deadline:
        bit_codes.distances(planes, planes[:, 0])
        deadline.give_up()
        with pytest.raises(TimedOut):
            bit_codes.distances(planes, planes[:, 0])


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_the_server_stops_searching_for_a_client_that_has_gone(many: Path, tmp_path: Path) -> None:
    with serving(many, home=tmp_path) as server:
        address = urlsplit(server.url)
        for _ in range(6):
            with socket.create_connection((address.hostname or "", address.port or 0)) as client:
                path = f"/api/v1/search?query={quote(HEAVY)}&match=any&k=1000"
                client.sendall(f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
                time.sleep(0.05)
        time.sleep(0.5)
        before = cpu_seconds(server.process.pid)
        time.sleep(1.0)
        assert cpu_seconds(server.process.pid) - before <= 0.1
