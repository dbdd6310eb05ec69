"""What a knowledge base takes on a Qdrant server: bytes on disk and in memory per chunk, as it grows.

    python benchmarks/cluster_size.py [--data FOLDER] [--counts 50000,200000] [--quantization none] [--on-disk]

Synthetic chunks with synthetic vectors of 384 dimensions, one server, one replica. Measured when the server has put
everything in order, after a restart and a few searches: what it keeps for itself (anonymous memory), and what of its
files is in memory, which it can do without.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import linear_regression, median
from typing import Any, NamedTuple

import measuring
import synthetic_corpus
from cluster_speed import filled, wait_until_indexed
from synthetic_vectors import SyntheticEmbedder
from tests.qdrant_server import qdrant_node  # cluster_speed has put the repository on the path

import kebab
from kebab.embedding.models import SingleModel
from kebab.store.qdrant.schema import WORDS

COLLECTIONS = ("chunks", "documents", "terms", "catalog")


class Size(NamedTuple):
    chunks: int
    seconds: float
    disk: Counter[str]
    """By collection."""
    parts: Counter[str]
    """Of the collection of chunks, by what is in it."""
    search_ms: float
    """The median of hybrid searches, asked a second time."""
    own_memory: int
    mapped: int


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--counts", default="50000,200000")
    options.add_argument("--quantization", default="none")
    options.add_argument("--on-disk", action="store_true")
    chosen = options.parse_args()
    sizes = []
    with measuring.work_folder() as work:
        real = synthetic_corpus.read(measuring.unpack(chosen.data, "k8s-en", work))
        for count in map(int, chosen.counts.split(",")):
            sizes.append(
                measured(real, count, {"store_quantization": chosen.quantization, "store_on_disk": chosen.on_disk})
            )
            print(sizes[-1], flush=True)
    each = {
        "": [f"{size.chunks:,} chunks" for size in sizes],
        "written, a second": [f"{size.chunks / size.seconds:,.0f}" for size in sizes],
        **{f"disk: {name}": [per_chunk(size.disk[name], size) for size in sizes] for name in COLLECTIONS},
        **{
            f"of chunks: {part}": [per_chunk(size.parts[part], size) for size in sizes]
            for part in sorted(sizes[-1].parts)
        },
        "disk, all": [per_chunk(sum(size.disk.values()), size) for size in sizes],
        "memory of its own": [per_chunk(size.own_memory, size) for size in sizes],
        "files in memory": [per_chunk(size.mapped, size) for size in sizes],
        "one search, ms": [f"{size.search_ms:.1f}" for size in sizes],
    }
    headers, *rows = ([name, *values] for name, values in each.items())
    measuring.table(headers, rows)
    if len(sizes) > 1:
        disk, own, mapped = (
            growth(sizes, of)
            for of in (lambda size: sum(size.disk.values()), lambda size: size.own_memory, lambda size: size.mapped)
        )
        print(
            f"\neach further chunk: {disk:,.0f} bytes on disk, {own:,.0f} of memory of its own, {mapped:,.0f} of files in memory"
        )


def per_chunk(value: int, size: Size) -> str:
    return f"{value / size.chunks:,.0f}"


def growth(sizes: Sequence[Size], of: Callable[[Size], int]) -> float:
    """The slope of the straight line that fits best."""
    return linear_regression([size.chunks for size in sizes], [of(size) for size in sizes]).slope


def measured(real: synthetic_corpus.RealText, count: int, layout: dict[str, Any]) -> Size:
    with qdrant_node(on_disk=True) as node:
        with kebab.open(node.address("size"), search_freshness="off", **layout) as kb:
            with kb.session.store.writing("a benchmark") as writing:
                writing.expect_vectors([SyntheticEmbedder()])
            started = time.perf_counter()
            filled(kb, real, count)
            seconds = time.perf_counter() - started
        wait_until_indexed(node.address(""), "size.chunks")
        time.sleep(10)  # until what was replaced is deleted
        node.stop()
        disk, parts = on_disk(node.folder / "storage" / "collections")
        node.restart()
        with kebab.open(node.address("size"), search_freshness="off") as kb:
            kb.session.models = SingleModel(SyntheticEmbedder())
            questions = synthetic_corpus.questions(real, 20)
            for question in questions:
                kb.search(question)
            searches = [seconds_of(kb, question) for question in questions]
        assert node.process is not None
        return Size(count, seconds, disk, parts, 1000 * median(searches), *memory(node.process.pid))


def seconds_of(kb: kebab.KnowledgeBase, question: str) -> float:
    started = time.perf_counter()
    kb.search(question)
    return time.perf_counter() - started


def on_disk(folder: Path) -> tuple[Counter[str], Counter[str]]:
    """What is allocated: files are made larger than what is in them. By collection, and of the chunks by part."""
    disk: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    for file in filter(Path.is_file, folder.rglob("*")):
        name, *below = file.relative_to(folder).parts
        kind = name.split(".")[1]
        size = 512 * file.stat().st_blocks
        disk[kind] += size
        if kind == "chunks":
            parts[part(below)] += size
    return disk, parts


def part(path: Sequence[str]) -> str:
    """Of a file in a collection: SHARD/wal/…, or SHARD/segments/SEGMENT/PART/…"""
    if "wal" in path:
        return "log of writes"
    if "segments" not in path or len(path) < 5:
        return "ids and the rest"
    name = path[3]
    if name.startswith("vector_"):
        of = "words" if name.endswith(f"-{WORDS}") else "vectors"
        return f"{of}, index" if name.startswith("vector_index") else of
    return {"payload_storage": "payload", "payload_index": "payload, index"}.get(name, "ids and the rest")


def memory(pid: int) -> tuple[int, int]:
    """Its own, and what of files. Files in a file system that is itself memory count as shared."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    own, files, shared = (1024 * int(lines[name].split()[0]) for name in ("RssAnon", "RssFile", "RssShmem"))
    return own, files + shared


if __name__ == "__main__":
    main()
