"""Kebab on a Qdrant server against the bare client with the same points.

    python benchmarks/cluster_speed.py [--data FOLDER] [--rounds 3] [--queries 100] [--nodes 1] [--chunks 50000]

Ingest: the Kubernetes docs, without vectors, as a folder of files; then the very points that made are written by
qdrant-client alone, into collections of the same kind, waiting for each batch as Kebab does. Hybrid: questions to
synthetic chunks with synthetic vectors. The opponents are Qdrant's own hybrid query, which fuses two lists on the
server and reads ten passages, and the very requests that a search sends for its passages (the ranked queries, in one
request, and the reading), each by qdrant-client, and by httpx alone. Which vector a question has is known beforehand
on all sides. `pip install qdrant-client` first.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import measuring
import synthetic_corpus
from cluster_parity import cluster
from synthetic_vectors import SyntheticEmbedder

import kebab
from kebab.core.documents import Source
from kebab.embedding.models import SingleModel
from kebab.ingest.embedding import embed_missing
from kebab.ingest.report import IngestReport

LEAST_INGEST, MOST_QUERY = 0.4, 2.0
_BATCH = 500
_DOCUMENTS_AT_ONCE = 50
_DOCUMENTS_EMBEDDED = 1000
_CHUNKS = "/collections/hybrid.chunks"


def main() -> None:
    options = measuring.parser(__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--queries", type=int, default=100)
    options.add_argument("--nodes", type=int, default=1)
    options.add_argument("--chunks", type=int, default=50_000)
    chosen = options.parse_args()
    with measuring.work_folder() as work, cluster(chosen.nodes) as address:
        corpus = measuring.unpack(chosen.data, "k8s-en", work)
        ingest(address, corpus, chosen.rounds)
        hybrid(address, corpus, chosen.chunks, chosen.queries, chosen.rounds)


# --- ingest


def ingest(address: str, corpus: Path, rounds: int) -> None:
    with ingested(address, corpus) as (kb, _):
        points = read_back(address, kb)
        layout = collections_of(address)
    costs = measuring.interleaved(
        rounds,
        {"kb ingest": partial(ours, address, corpus), "the bare client": partial(theirs, address, points, layout)},
    )
    rows = [[name, f"{min(taken):.1f}", f"{len(points['chunks']) / min(taken):,.0f}"] for name, taken in costs.items()]
    measuring.table(["ingest without vectors, best", "wall s", "chunks a second"], rows)
    share = min(costs["the bare client"]) / min(costs["kb ingest"])
    count = sum(map(len, points.values()))
    print(
        f"{len(points['chunks']):,} chunks, {count:,} points; {share:.0%} of the bare client, bar {LEAST_INGEST:.0%}\n",
        flush=True,
    )


@contextmanager
def ingested(address: str, corpus: Path) -> Iterator[tuple[kebab.KnowledgeBase, float]]:
    with kebab.open(f"{address}speed", embedding_model="none") as kb:
        kb.reset()
        started = time.perf_counter()
        kb.ingest(corpus, embed=False)
        yield kb, time.perf_counter() - started
        kb.reset()


def ours(address: str, corpus: Path) -> float:
    with ingested(address, corpus) as (_, taken):
        return taken


def client_of(address: str) -> Any:
    from qdrant_client import QdrantClient

    host = address.removeprefix("qdrant://").split(",")[0].rstrip("/")
    return QdrantClient(url=f"http://{host}", check_compatibility=False, timeout=60)


def collections_of(address: str) -> dict[str, Any]:
    """The server's description of each collection."""
    client = client_of(address)
    return {kind: client.get_collection(f"speed.{kind}") for kind in ("chunks", "documents", "terms")}


def read_back(address: str, kb: kebab.KnowledgeBase) -> dict[str, list[Any]]:
    """All points of the server."""
    from qdrant_client import models

    client = client_of(address)
    points: dict[str, list[Any]] = {}
    for kind in ("chunks", "documents", "terms"):
        points[kind], after = [], None
        while True:
            page, after = client.scroll(f"speed.{kind}", limit=1000, offset=after, with_payload=True, with_vectors=True)
            points[kind] += [
                models.PointStruct(id=one.id, vector=one.vector or {}, payload=one.payload) for one in page
            ]
            if after is None:
                break
    return points


def theirs(address: str, points: dict[str, list[Any]], layout: dict[str, Any]) -> float:
    from qdrant_client import models

    client = client_of(address)
    started = time.perf_counter()
    for kind, own in points.items():
        params = layout[kind].config.params
        segments = models.OptimizersConfigDiff(
            default_segment_number=layout[kind].config.optimizer_config.default_segment_number
        )
        client.create_collection(
            f"bare.{kind}",
            vectors_config={},
            sparse_vectors_config=params.sparse_vectors,
            optimizers_config=segments,
            on_disk_payload=True,
        )
        for field, index in layout[kind].payload_schema.items():
            client.create_payload_index(f"bare.{kind}", field, field_schema=index.params or index.data_type, wait=True)
        for start in range(0, len(own), _BATCH):
            client.upsert(f"bare.{kind}", own[start : start + _BATCH], wait=True)
    taken = time.perf_counter() - started
    for kind in points:
        client.delete_collection(f"bare.{kind}")
    return taken


# --- hybrid search


def hybrid(address: str, corpus: Path, chunks: int, count: int, rounds: int) -> None:
    real = synthetic_corpus.read(corpus)
    questions = synthetic_corpus.questions(real, count)
    with kebab.open(f"{address}hybrid", search_freshness="off") as kb:
        filled(kb, real, chunks)
    wait_until_indexed(address, "hybrid.chunks")
    gc.collect()
    gc.freeze()  # a process that searches has not just written everything
    with kebab.open(f"{address}hybrid", search_freshness="off") as kb:
        kb.session.models = SingleModel(SyntheticEmbedder())
        sent = [captured(kb, question) for question in questions]
        for question in questions[:10]:
            kb.search(question)
        taken = measuring.interleaved(
            rounds,
            {
                "kb search": partial(searches, kb, questions),
                "Qdrant's hybrid query, qdrant-client": partial(fused_by_the_client, address, sent),
                "Qdrant's hybrid query, httpx alone": partial(fused_by_the_server, kb, sent),
                "the requests of kb search, qdrant-client": partial(by_the_client, address, sent),
                "the requests of kb search, httpx alone": partial(replayed, kb, sent),
            },
        )
    best = {name: min(runs, key=sum) for name, runs in taken.items()}
    ours = measuring.percentile(best["kb search"], 0.5)
    rows = [
        [
            name,
            *(f"{1000 * measuring.percentile(times, share):.2f}" for share in (0.5, 0.95)),
            "" if name == "kb search" else f"{ours / measuring.percentile(times, 0.5):.2f}×",
        ]
        for name, times in best.items()
    ]
    measuring.table(
        [f"hybrid, {chunks:,} chunks, ten hits", "p50 ms", "p95 ms", f"kb search against it, bar {MOST_QUERY}×"], rows
    )


def filled(kb: kebab.KnowledgeBase, real: synthetic_corpus.RealText, chunks: int) -> None:
    """With synthetic documents and their vectors, which come soon after them: a passage that the server has put in
    order is written anew with its vector, which takes as long again.
    """
    kb.session.models = SingleModel(SyntheticEmbedder())
    with kb.session.writing("a benchmark") as writing:
        writing.settle_analysis()
        writing.documents().add_source(Source(synthetic_corpus.SOURCE, "folder", None, "primary"))
    documents = synthetic_corpus.documents(real, chunks)
    while some := list(islice(documents, _DOCUMENTS_EMBEDDED)):
        with kb.session.writing("a benchmark") as writing:
            store = writing.documents()
            for start in range(0, len(some), _DOCUMENTS_AT_ONCE):
                store.write(*some[start : start + _DOCUMENTS_AT_ONCE])
        embed_missing(kb.session, "a benchmark", IngestReport())


def wait_until_indexed(address: str, collection: str) -> None:
    """What was written in haste is put in order in the background; a search of an unordered collection says nothing
    about one.
    """
    client = client_of(address)
    while client.get_collection(collection).status != "green":
        time.sleep(0.5)


class Sent(NamedTuple):
    """The payload fields that a search reads."""

    rankings: list[dict[str, Any]]
    passages: list[dict[str, Any]]

    @property
    def fused(self) -> dict[str, Any]:
        """The same for Qdrant's own hybrid search: less than is needed to fold copies, to leave out what is far away
        and to weigh what all words are in.
        """
        words = [one for one in self.rankings if isinstance(one["query"], dict)][-1]
        meaning = [one for one in self.rankings if isinstance(one["query"], list)][-1]
        both = [
            {key: one[key] for key in ("query", "using", "filter", "limit", "params") if key in one}
            for one in (words, meaning)
        ]
        return {
            "prefetch": both,
            "query": {"fusion": "rrf"},
            "limit": 10,
            "with_payload": self.passages[0]["with_payload"],
        }


def captured(kb: kebab.KnowledgeBase, question: str) -> Sent:
    sent = Sent([], [])
    client: Any = kb.session.store._client  # type: ignore[attr-defined]  # it is a cluster
    ask = client.ask

    def seen(method: str, path: str, body: Any = None, *options: Any, **more: Any) -> Any:
        if path.endswith("chunks/points/query/batch"):
            sent.rankings.extend(body["searches"])
        elif path.endswith("chunks/points"):
            sent.passages.append(body)
        return ask(method, path, body, *options, **more)

    client.ask = seen
    try:
        kb.search(question)
    finally:
        client.ask = ask
    return sent


def searches(kb: kebab.KnowledgeBase, questions: list[str]) -> list[float]:
    return [timed(partial(kb.search, question)) for question in questions]


def replayed(kb: kebab.KnowledgeBase, sent: list[Sent]) -> list[float]:
    client: Any = kb.session.store._client  # type: ignore[attr-defined]  # it is a cluster

    def ask(one: Sent) -> None:
        client.ask("POST", f"{_CHUNKS}/points/query/batch", {"searches": one.rankings})
        for body in one.passages:
            client.ask("POST", f"{_CHUNKS}/points", body)

    return [timed(partial(ask, one)) for one in sent]


def fused_by_the_server(kb: kebab.KnowledgeBase, sent: list[Sent]) -> list[float]:
    client: Any = kb.session.store._client  # type: ignore[attr-defined]  # it is a cluster
    bodies = [one.fused for one in sent]
    return [timed(partial(client.ask, "POST", f"{_CHUNKS}/points/query", body)) for body in bodies]


def by_the_client(address: str, sent: list[Sent]) -> list[float]:
    client = client_of(address)

    def ask(rankings: list[Any], passages: list[dict[str, Any]]) -> None:
        client.query_batch_points("hybrid.chunks", rankings)
        for body in passages:
            client.retrieve("hybrid.chunks", body["ids"], with_payload=body["with_payload"])

    asked = [([request_of(ranking) for ranking in one.rankings], one.passages) for one in sent]
    ask(*asked[0])
    return [timed(partial(ask, *one)) for one in asked]


def fused_by_the_client(address: str, sent: list[Sent]) -> list[float]:
    from qdrant_client import models

    client = client_of(address)
    asked = []
    for one in sent:
        both = [
            models.Prefetch(
                **{
                    name: value
                    for name, value in request_of(part).model_dump().items()
                    if name in models.Prefetch.model_fields
                }
            )
            for part in one.fused["prefetch"]
        ]
        fusion = models.FusionQuery(fusion=models.Fusion.RRF)
        asked.append(
            partial(
                client.query_points,
                "hybrid.chunks",
                fusion,
                prefetch=both,
                limit=10,
                with_payload=one.fused["with_payload"],
            )
        )
    asked[0]()
    return [timed(ask) for ask in asked]


def request_of(search: dict[str, Any]) -> Any:
    from qdrant_client import models

    query = models.SparseVector(**search["query"]) if isinstance(search["query"], dict) else search["query"]
    conditions = {kind: conditions for kind, conditions in search["filter"].items() if conditions}
    return models.QueryRequest(
        query=query,
        using=search["using"],
        filter=models.Filter(**conditions) if conditions else None,
        limit=search["limit"],
        with_payload=search.get("with_payload", False),
        params=models.SearchParams(**search["params"]) if "params" in search else None,
    )


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
