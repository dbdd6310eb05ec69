"""The same questions to both stores: does a Qdrant cluster find what SQLite finds?

    python benchmarks/cluster_parity.py [--data FOLDER] [--keep FOLDER] [--nodes 1,3] [--vectors] [SET …]

The documents of each judged set are ingested once into a SQLite file and once into a real cluster on loopback
(scripts/qdrant-server installs the server), and every question is put to both. By words alone unless --vectors: then
the file's vectors are carried over.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import measuring

import kebab
from kebab.evaluation.files import GoldenSet, load_golden_set, write_documents
from kebab.evaluation.runner import RunOptions, run

sys.path.insert(0, str(measuring.REPOSITORY))
from tests.qdrant_server import cluster_address, qdrant_cluster, qdrant_node

SETS = ("scifact-train", "anthropic-docs", "anthropic-codebase", "cosqa-dev", "silver-k8s-ko")
LEAST_OVERLAP, MOST_APART, K = 0.95, 0.01, 10


class Found(NamedTuple):
    ndcg: float
    hits: list[list[str]]
    """The chunks of each question, in their order."""


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--keep", type=Path, help="keep the SQLite files here and use them again")
    options.add_argument("--nodes", default="1,3")
    options.add_argument(
        "--vectors", action="store_true", help="hybrid search too; making the vectors takes minutes to hours"
    )
    options.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}; all of them by default")
    chosen = options.parse_args()
    modes = ("lexical", "vector", "hybrid") if chosen.vectors else ("lexical",)
    rows: list[list[object]] = []
    with measuring.work_folder() as work:
        for nodes in map(int, chosen.nodes.split(",")):
            with cluster(nodes) as address:
                for name in chosen.sets or SETS:
                    rows += compared(chosen.data / name, chosen.keep or work, f"{address}{name}", nodes, modes)
    measuring.table(
        ["set", "nodes", "mode", "questions", "SQLite nDCG@10", "cluster", "apart", "", "the same of ten", ""], rows
    )


@contextmanager
def cluster(nodes: int) -> Iterator[str]:
    """Its address, up to the name of a knowledge base."""
    if nodes == 1:
        with qdrant_node() as node:
            yield node.address("")
    else:
        with qdrant_cluster(nodes) as several:
            yield cluster_address(several, "")


def compared(folder: Path, work: Path, address: str, nodes: int, modes: Sequence[str]) -> Iterator[list[object]]:
    golden = load_golden_set(folder)
    place = work / golden.name
    place.mkdir(parents=True, exist_ok=True)
    file = place / "kb.sqlite"
    with_vectors = len(modes) > 1
    settings: dict[str, Any] = {} if with_vectors else {"embedding_model": "none"}
    documents = write_documents(folder, place / golden.name)
    with kebab.open(file, **settings) as alone:
        alone.ingest(documents, name=golden.name, embed=with_vectors)
    layout = {"store_replicas": min(2, nodes), "store_shards": 2 * nodes if nodes > 1 else 1}
    cluster_settings = {**settings, **layout}
    if with_vectors:
        own = {**measuring.environment(), **{f"KEBAB_{name.upper()}": str(value) for name, value in layout.items()}}
        subprocess.run(
            [measuring.kb(), "migrate", "--from", str(file), "--to", address, "--quiet"], check=True, env=own
        )
    with kebab.open(address, **cluster_settings) as together, kebab.open(file, **settings) as alone:
        if not with_vectors:
            together.ingest(documents, name=golden.name, embed=False)
        for mode in modes:
            yield row(golden, nodes, mode, found(alone, golden, mode), found(together, golden, mode))


def found(kb: kebab.KnowledgeBase, golden: GoldenSet, mode: str) -> Found:
    report = run(kb, golden, RunOptions(k=K, search={"mode": mode}))
    return Found(report.metrics[f"ndcg@{K}"], [[hit.chunk_id for hit in query.hits] for query in report.queries])


def row(golden: GoldenSet, nodes: int, mode: str, alone: Found, together: Found) -> list[object]:
    shares = [overlap(one, other) for one, other in zip(alone.hits, together.hits, strict=True)]
    same, apart = sum(shares) / len(shares), abs(alone.ndcg - together.ndcg)
    return [
        *(golden.name, nodes, mode, len(golden.queries), f"{alone.ndcg:.4f}", f"{together.ndcg:.4f}"),
        *(
            f"{apart:.4f}",
            measuring.verdict(apart, MOST_APART),
            f"{same:.3f}",
            "ok" if same >= LEAST_OVERLAP else "MISSED",
        ),
    ]


def overlap(one: Sequence[str], other: Sequence[str]) -> float:
    return len(set(one) & set(other)) / max(len(one), len(other)) if one or other else 1.0


if __name__ == "__main__":
    main()
