"""Checks that the points of documents and chunks are consistent (`kb verify` for a cluster), and repairs them. At the
end: whether the servers answer, know each other, have all replicas, and agree (`kb doctor`).

A server does not know how points relate: which chunks a document has, which words a chunk, which chunks a term. All of
that is computed again and compared, some documents at a time. The next ingest reads lost documents again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from kebab.config.cluster_address import Node
from kebab.core.documents import chunk_id, document_id, embedded_text, stands_there
from kebab.core.errors import Corrupt, KebabError, NotFound, StoreError
from kebab.core.records import NOT_CHECKED, Check
from kebab.core.text import LineTable
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.index_versions import fts_config
from kebab.store.qdrant import codec
from kebab.store.qdrant.client import Client, our_errors
from kebab.store.qdrant.collection import Payload, Point, batches, one_of, where
from kebab.store.qdrant.schema import RESTORE, SCHEMA, WORDS, Schema
from kebab.store.qdrant.state import CorpusSize, State, Stored, StoredVersion, read_state, stored_versions
from kebab.store.qdrant.terms import CORPORA, LIBRARIES, OWN, WITH_COUNTS, Vocabulary, is_far_from, word_fields
from kebab.store.qdrant.writer_lease import live_writer

_BATCH = 20  # documents whose texts and chunks are read at a time
_DOCUMENT = {*codec.DOCUMENT_FIELDS, *codec.RECORD_FIELDS, *"head name aliases fingerprint chunks file_keys".split()}
_CHUNK = {
    *codec.DOCUMENT_FIELDS,
    *"chunk ordinal kind start end headings text spans text_hash columns_hash terms length average".split(),
    *("homes", "spaces"),
}
_HARMLESS = {"source", "versions", "indexed_at", "date", "day"}
"""An interrupted change may leave a chunk with other values of these than its document, and both are as written."""
_WEIGHT_OFF = 0.002  # tolerated error of a weight: it is rounded, and may be converted from another average
_SHOWN = 3
_REBUILD = "kb index --rebuild-fts"
_READ = "kb ingest; documents of a library with: kb lib refresh"
_NAME_SOURCE = "kb ingest FOLDER --name SOURCE; a library with: kb lib add"
_READ_AGAIN = f"{_REBUILD}; then read those documents again with: {_READ}"


class _Whole(NamedTuple):
    """A document and those of its stored chunks that it lists."""

    document: Payload
    chunks: list[Point]
    body: str | None  # None if the text cannot be read
    lines: LineTable

    @property
    def is_complete(self) -> bool:
        return bool(len(self.chunks) == len(self.document["chunks"]) == self.document["chunk_count"])

    def wrote(self, chunk: Payload) -> bool:
        """Whether the chunk's text fits its id, its hash and its place in the document's text (if that can be read)."""
        embedded = embedded_text(chunk["path"], chunk["title"], tuple(chunk["headings"]), chunk["text"])
        identifier = chunk_id(chunk["doc"], chunk["ordinal"], chunk["text"])
        if (chunk["chunk"], chunk["text_hash"]) != (identifier, codec.hash_of(embedded)):
            return False
        try:
            place = chunk["start"], chunk["end"], codec.spans_of(chunk)[0]
            return self.body is None or stands_there(chunk["text"], *place, self.body, self.lines)
        except (Corrupt, ValueError, TypeError, LookupError):  # no place, or an impossible one
            return False


def _read(
    schema: Schema, documents: Iterable[Point], vectors: tuple[str, ...] = ()
) -> tuple[list[_Whole], list[Point]]:
    """Returns these documents with their chunks, and the chunks that say they are of these documents, and are not."""
    whole, spaces = {}, {*schema.spaces(), codec.EVERYWHERE}
    for point in documents:
        try:
            body = codec.body_of(point["payload"])
        except Corrupt:
            body = None
        whole[point["payload"]["doc"]] = _Whole(point["payload"], [], body, LineTable(body or ""))
    others = []
    for point in schema.chunks.scroll(where("doc", *whole), vectors=vectors):
        chunk, found = point["payload"], whole[point["payload"]["doc"]]
        is_chunk = chunk.keys() >= _CHUNK and chunk["chunk"] in found.document["chunks"]
        if (
            is_chunk
            and point["id"] == codec.chunk_point_id(chunk["chunk"])
            and spaces >= {*chunk["spaces"], *chunk["homes"]}
        ):
            found.chunks.append(point)
        else:
            others.append(point)
    return list(whole.values()), others


def _is_document(point: Point) -> bool:
    """Whether the point can be read as a document, and has the id of that document."""
    payload = point["payload"]
    if not payload.keys() >= _DOCUMENT or payload["corpus"] not in CORPORA:
        return False
    try:
        codec.document_record(payload, ())
        _has_right_fields(payload)
    except (Corrupt, TypeError, ValueError, AttributeError):  # a value has another type than was written
        return False
    return codec.document_point_id(payload["doc"]) == point["id"] and isinstance(payload["chunks"], list)


def _has_right_fields(document: Payload) -> bool:
    """Whether the fields that are computed from others, the id among them, have the right values."""
    derived = codec.derived_fields(document["doc"], document["path"], document["tags"], document["date"])
    return (
        all(document[key] == value for key, value in derived.items())
        and sorted(document["versions"]) == sorted(document["file_keys"])
        and (document["corpus"] == LIBRARIES or document["doc"] == document_id(document["source"], document["path"]))
    )


def _differing_fields(chunk: Payload, document: Payload) -> set[str]:
    """The document fields that the chunk repeats with another value."""
    return {key for key in codec.DOCUMENT_FIELDS if chunk[key] != document[key]}


def repair(schema: Schema, only: Collection[str] | None = None) -> None:
    """Makes documents have exactly the chunks they list, with their fields. Deletes what cannot be read or belongs to
    nothing. Documents that are not as they were written become UNREAD. The caller counts everything again. `only`: the
    documents that an interrupted writer was changing.
    """
    versions = {version.key: version for version in stored_versions(schema.catalog)}
    chosen = None if only is None else where("doc", *only)
    known: set[str] = set()
    for some in batches(schema.documents.scroll(chosen, batch=_BATCH), _BATCH):
        kept = [point for point in some if _is_document(point) and _has_owner(schema, point["payload"], versions)]
        schema.documents.delete([point["id"] for point in some if point not in kept])
        known.update(point["payload"]["doc"] for point in kept)
        whole, others = _read(schema, kept)
        schema.chunks.delete([point["id"] for point in others])
        for one in whole:
            _repair(schema, one)
    orphans = schema.chunks.scroll(chosen, payload=["doc"])
    schema.chunks.delete([point["id"] for point in orphans if point["payload"].get("doc") not in known])


def _has_owner(schema: Schema, document: Payload, versions: Mapping[str, StoredVersion]) -> bool:
    """Whether the document is the user's own or of an existing version. Removes deleted versions from it."""
    is_own = document["corpus"] == OWN
    existing = set() if is_own else versions.keys() & set(document["versions"])
    keys = {key: file_key for key, file_key in document["file_keys"].items() if key in existing}
    sources = [versions[key].source for key in keys] or [document["source"]]
    source = document["source"] if document["source"] in sources else sources[0]
    facts = {"versions": sorted(keys), "file_keys": keys, "source": source}
    if any(document[key] != value for key, value in facts.items()):
        document.update(facts)
        schema.documents.set_payload(facts, [codec.document_point_id(document["doc"])])
    return is_own or bool(keys)


def _repair(schema: Schema, whole: _Whole) -> None:
    document, chunks = whole.document, [point["payload"] for point in whole.chunks]
    differing = {key for chunk in chunks for key in _differing_fields(chunk, document)}
    is_as_written = whole.is_complete and whole.body is not None and all(map(whole.wrote, chunks))
    if differing:
        schema.chunks.set_payload({key: document[key] for key in codec.DOCUMENT_FIELDS}, where("doc", document["doc"]))
    # If document and chunk differ, either may be right.
    if not is_as_written or differing - _HARMLESS or not _has_right_fields(document):
        found = {chunk["chunk"] for chunk in chunks}
        listed = [identifier for identifier in document["chunks"] if identifier in found]
        unread = {"chunks": listed, "chunk_count": len(listed), **codec.UNREAD}
        schema.documents.set_payload(unread, [codec.document_point_id(document["doc"])])


def integrity_checks(client: Client, schema: Schema, korean_analysis: str) -> list[Check]:
    try:
        with our_errors(client.address, missing=schema.missing_error):
            schema.require()
            if missing := schema.missing():
                return [Check("collections", False, f"missing: {', '.join(missing)}", RESTORE)]
            writer = live_writer(schema.catalog)
            checks = [] if writer else _Verification(schema, read_state(schema.catalog), korean_analysis).checks()
            if not all(check.ok for check in checks):
                writer = live_writer(schema.catalog)  # a writer that began meanwhile may have caused the faults
            if writer:
                return [Check("store", True, f"{NOT_CHECKED}: {writer} is writing", "Look again when it is done.")]
            return checks
    except StoreError as error:
        is_gone = isinstance(error, NotFound) and not schema.exists()
        return [Check("database", is_gone, error.message, error.hint)]


class _Faults(Counter[str]):
    """Counts faults of one kind by the name of the document, source or word."""

    def __str__(self) -> str:
        return ", ".join(list(self)[:_SHOWN]) + (" …" if len(self) > _SHOWN else "")


def _name(document: Mapping[str, Any]) -> str:
    return f"{document.get('source', '?')}:{document.get('path', '?')}"


_DAMAGED = "are damaged"
_INCOMPLETE = "lack chunks, or have others than they say"
_WITHOUT_BODY = "have a text that cannot be read"
_UNREAD = "were not written to their end"
_LOST_SOURCE = "documents are of sources that are not there"
_UNLISTED = "are not named by their documents"
_OTHER_FIELDS = "say something else of their documents than those"
_OTHER_WORDS = "chunks have other words than their texts"
_UNKNOWN_WORDS = "words of the texts are not known"
_LOST_VERSION = "documents are of versions that are not there"


class _Verification(Stored):
    def __init__(self, schema: Schema, state: State, korean_analysis: str) -> None:
        super().__init__(schema, state)
        self._korean_analysis = state.korean_analysis or korean_analysis
        self._tokenizer = SqliteTokenizer()
        self._vocabulary = Vocabulary(schema.terms)
        self._versions = {version.key: version for version in stored_versions(schema.catalog)}
        self._readable = 0  # the number of documents that can be read
        self._count = 0  # the number of chunks of these documents
        self._sizes = {corpus: CorpusSize() for corpus in CORPORA}
        self._terms: Counter[int] = Counter()
        self._faults: defaultdict[str, _Faults] = defaultdict(_Faults)
        self._other_average = 0

    def checks(self) -> list[Check]:
        for some in batches(self._documents.scroll(batch=_BATCH), _BATCH):
            readable = list(filter(_is_document, some))
            self._faults[_DAMAGED].update(_name(point["payload"]) for point in some if point not in readable)
            whole, others = _read(self._schema, readable, vectors=(WORDS,))
            names = {one.document["doc"]: _name(one.document) for one in whole}
            self._readable += len(names)
            self._faults[_UNLISTED].update(names[point["payload"]["doc"]] for point in others)
            self._count += len(others) + sum(len(one.chunks) for one in whole)
            for one in whole:
                self._verify_document(one)
            chunks = [point["payload"] for one in whole for point in one.chunks]
            texts = [text for chunk in chunks for text in (codec.title_of(chunk), chunk["text"])]
            self._faults[_UNKNOWN_WORDS].update(sorted(self._vocabulary.missing(texts)))
        texts = [note.text for source in self._state.sources.values() for note in source.notes]
        self._faults[_UNKNOWN_WORDS].update(sorted(self._vocabulary.missing(texts)))
        left = self._catalog.count(where("what", "unfinished"))
        changes = [f"{left:,} were interrupted"] if left else []
        lost, documents = self._told(_DAMAGED, _INCOMPLETE, _WITHOUT_BODY), f"{self._readable:,} documents"
        right, hint = f"{documents}, each with its text and all its chunks", _READ_AGAIN if lost else _READ
        return [
            _check("documents", lost + self._told(_UNREAD), right, hint),
            _check("sources", self._told(_LOST_SOURCE), "every document has its source", _NAME_SOURCE),
            self._chunk_check(),
            self._word_check(),
            self._count_check(),
            _check("vocabulary", self._told(_UNKNOWN_WORDS), "every word of the texts is known", _REBUILD),
            self._vector_check(),
            self._library_check(),
            _check("changes", changes, "none was left unfinished", "The next kb ingest puts that in order."),
        ]

    def _verify_document(self, whole: _Whole) -> None:
        document = whole.document
        name, versions, faults = _name(document), document["versions"], self._faults
        if not whole.is_complete:
            faults[_INCOMPLETE][name] += 1
        elif not document["content_hash"]:
            faults[_UNREAD][name] += 1
        if whole.body is None:
            faults[_WITHOUT_BODY][name] += 1
        if not _has_right_fields(document):
            faults[_DAMAGED][name] += 1
        if document["source"] not in self._state.sources:
            faults[_LOST_SOURCE][document["source"]] += 1
        if document["corpus"] == LIBRARIES and not (versions and self._versions.keys() >= set(versions)):
            faults[_LOST_VERSION][name] += 1
        for point in whole.chunks:
            chunk = point["payload"]
            if _differing_fields(chunk, document):
                faults[_OTHER_FIELDS][name] += 1
            if not whole.wrote(chunk):
                faults[_INCOMPLETE][name] += 1
            if not self._has_right_words(chunk, document["corpus"], point["vector"].get(WORDS) or {}):
                faults[_OTHER_WORDS][name] += 1

    def _has_right_words(self, chunk: Payload, corpus: str, stored: Mapping[str, Any]) -> bool:
        size = self._sizes[corpus]
        self._sizes[corpus] = size._replace(chunks=size.chunks + 1, tokens=size.tokens + chunk["length"])
        self._terms.update(chunk["terms"])
        self._other_average += is_far_from(chunk["average"], self._state.sizes[corpus].average)
        columns = self._state.columns(chunk, self._korean_analysis)
        fields, words = word_fields(columns, chunk, self._tokenizer)
        wanted, has = (
            dict(zip(vector.get("indices") or (), vector.get("values") or (), strict=True))
            for vector in (words.vector(chunk["average"]), stored)
        )
        return (
            all(set(chunk[key]) == set(fields[key]) for key in ("terms", "homes"))
            and all(chunk[key] == fields[key] for key in ("length", "columns_hash"))
            and has.keys() == wanted.keys()
            and all(abs(has[term] - weight) <= _WEIGHT_OFF for term, weight in wanted.items())
        )

    def _told(self, *kinds: str) -> list[str]:
        return [f"{faults.total():,} {kind} ({faults})" for kind in kinds if (faults := self._faults[kind])]

    def _chunk_check(self) -> Check:
        orphans = self._chunks.count() - self._count
        parts = [f"{orphans:,} belong to no document"] if orphans else []
        parts += self._told(_UNLISTED, _OTHER_FIELDS)
        return _check("chunks", parts, f"{self._count:,} chunks, each of a document", _READ_AGAIN)

    def _word_check(self) -> Check:
        wrong = self._faults[_OTHER_WORDS]
        parts = [f"the words of {wrong.total():,} chunks are not those of their texts ({wrong})"] if wrong else []
        if self._count and self._state.fts_config is None:
            parts.append("how they were analysed is not known any more")
        if self._other_average and not parts:  # an interrupted writer left these: ranks are slightly off
            message = f"as in the texts; {self._other_average:,} chunks are weighed for another average length"
            return Check("words", True, message, "The next kb ingest weighs them again.")
        return _check("words", parts, "as in the texts", _REBUILD)

    def _count_check(self) -> Check:
        parts = []
        for corpus, size in self._sizes.items():
            known = self._state.sizes[corpus]
            if known[:2] != size[:2] or (size.chunks and not known.average):
                stored = f"{known.chunks:,} chunks with {known.tokens:,} words are counted"
                parts.append(f"{stored}, and there are {size.chunks:,} with {size.tokens:,}")
        if self._sizes[LIBRARIES].chunks and not self._state.has_libraries:
            parts.append("there are chunks of libraries, and searches of other documents do not know that")
        points = self._schema.terms.scroll(WITH_COUNTS, payload=["chunks"])
        counts = {point["id"]: point["payload"]["chunks"] for point in points}
        wrong = sum(counts.get(term, 0) != self._terms[term] for term in counts.keys() | self._terms.keys())
        if wrong:
            parts.append(f"{wrong:,} terms are in more or fewer chunks than is counted")
        return _check("word counts", parts, f"{len(counts):,} terms, counted right", _REBUILD)

    def _vector_check(self) -> Check:
        """Checks that chunks have the vectors they list. Servers themselves ensure the right size of every vector."""
        count, parts = self._chunks.count, []
        room = self._schema.spaces()
        for name in room.keys() - {space.fingerprint for space in self._state.spaces}:
            if unknown := count({"must": [{"has_vector": name}]}):
                parts.append(f"{unknown:,} chunks have a vector of {name}, an unknown model")
        for space in self._state.spaces:
            name, has_vector = space.fingerprint, {"has_vector": space.fingerprint}
            if name not in room or room[name]["size"] != space.dimension:
                parts.append(f"there is no room for vectors of {name}")
                continue
            claims = {"should": [one_of("spaces", [name]), one_of("homes", [name])]}
            if lost := count({"must": [claims], "must_not": [has_vector]}):
                parts.append(f"{lost:,} chunks should have a vector of {space.model} and have none")
            if unsaid := count({"must": [has_vector], "must_not": [one_of("spaces", [name])]}):
                parts.append(f"{unsaid:,} chunks have a vector of {space.model} that they do not list")
        return _check("vectors", parts, "where they should be", "kb index --rebuild-vectors")

    def _library_check(self) -> Check:
        parts, homeless = self._told(_LOST_VERSION), []
        hint = f"{_REBUILD}; then: " if parts else ""
        payloads = self._catalog.payloads(where("what", "library"))
        libraries = {str(payload.get("library_id")) for payload in payloads}
        for version in self._versions.values():
            if version.library not in libraries:
                homeless.append(f"{version.name} is of a library that is not there")
            elif not version.in_making:
                snippets = self._chunks.count(where("versions", version.key))
                if snippets != version.snippets:
                    of = f"{version.snippets:,}" if isinstance(version.snippets, int) else "an unknown number"
                    parts.append(f"{version.name} has {snippets:,} snippets of {of}")
        hint += "kb lib add" if homeless else "kb lib refresh, or of one that was imported: kb lib add"
        complete = sum(not version.in_making for version in self._versions.values())
        return _check("libraries", parts + homeless, f"{complete:,} versions with all their snippets", hint)


def _check(name: str, faults: list[str], right: str, hint: str) -> Check:
    return Check.judged(name, not faults, "; ".join(faults) or right, hint)


# --- kb doctor


_RECENT = timedelta(seconds=10)
_LEFT = "The next ingest or migration puts that in order."
_WAIT = "Wait until the servers have caught up, and look again."


def health_checks(client: Client, schema: Schema, korean_analysis: str) -> list[Check]:
    """Returns all checks, or those up to the first failure that makes the others pointless."""
    checks: list[Check] = []
    versions: set[str] = set()
    for node, answer in client.get_from_each("/telemetry?details_level=0").items():
        name = f"server {node}"
        if isinstance(answer, KebabError):
            checks.append(Check(name, False, answer.message, answer.hint))
        elif isinstance(answer, Exception):
            checks.append(Check(name, False, f"it answered with {answer}", "Check the address."))
        else:
            versions.add(str(answer["app"]["version"]))
            checks.append(Check(name, True, f"answers, version {answer['app']['version']}"))
    if not versions:
        return checks
    name = "version"
    try:
        with our_errors(client.address, missing=schema.missing_error):
            for version in sorted(versions):
                schema.check_version(version)
            checks += [Check(name, True, f"Qdrant {', '.join(sorted(versions))}"), _cluster_check(client)]
            name = "database"
            schema.require()
            checks.append(Check(name, True, f"schema {SCHEMA} at {schema.address}"))
            collections = [each.name for each in (schema.documents, schema.terms, schema.catalog)]
            for collection in (schema.current_chunks() or schema.chunks.name, *collections):
                checks += _shard_checks(client, schema, collection)
            checks += _content_checks(schema, korean_analysis)
    except StoreError as error:
        checks.append(Check(name, False, error.message, error.hint))
    return checks


def _cluster_check(client: Client) -> Check:
    cluster = client.ask("GET", "/cluster")
    if cluster.get("status") != "enabled":
        return Check("cluster", True, "one server, without others")
    # Only the leader talks to all servers, so each one is asked for the failures it knows of.
    known = [answer for answer in client.get_from_each("/cluster").values() if not isinstance(answer, Exception)]
    told = [failure for answer in known for failure in (answer.get("message_send_failures") or {}).items()]
    failures = {server for server, failure in told if _is_recent(failure)}
    consensus = cluster.get("consensus_thread_status", {}).get("consensus_thread_status", "working")
    wrong = [f"{server} does not answer the others" for server in sorted(failures)]
    wrong += [f"they do not agree ({consensus})"] if consensus != "working" else []
    count = len(cluster["peers"])
    message = f"of {count} servers {', '.join(wrong)}" if wrong else f"{count} servers know each other"
    hint = "Start the missing servers; with fewer than half of them nothing can be changed."
    return Check.judged("cluster", not wrong, message, hint)


def _is_recent(failure: dict[str, Any]) -> bool:
    """Whether a failure is recent. A server keeps reporting its last failure until it has something to send again."""
    try:
        then = datetime.fromisoformat(str(failure["latest_error_timestamp"]))
    except (KeyError, ValueError):
        return True
    return datetime.now(UTC) - then.astimezone(UTC) < _RECENT


def _shard_checks(client: Client, schema: Schema, name: str) -> list[Check]:
    """Checks that each shard (a part of the collection) has enough active replicas (copies on one server each), and
    that those of one shard have the same number of points.
    """
    info = client.ask("GET", f"/collections/{name}")
    answers = client.get_from_each(f"/collections/{name}/cluster")
    known = {node: answer for node, answer in answers.items() if not isinstance(answer, Exception)}
    if not known:  # a single server has no cluster to describe
        return [Check(name, info["status"] != "red", f"status {info['status']}", "Look into the server's log.")]
    wanted = int(info["config"]["params"].get("replication_factor") or 1)
    cluster = next(iter(known.values()))  # every server lists all replicas
    replicas = [{**shard, "peer_id": cluster["peer_id"]} for shard in cluster["local_shards"]]
    replicas += cluster["remote_shards"]
    shards = {replica["shard_id"] for replica in replicas}
    active = Counter(replica["shard_id"] for replica in replicas if replica["state"] == "Active")
    lacking = [shard for shard in shards if active[shard] < wanted]
    if lacking or cluster["shard_transfers"] or info["status"] == "red":
        peers = client.ask("GET", "/cluster").get("peers") or {}
        names = {int(peer): str(facts["uri"]) for peer, facts in peers.items()}
        names |= {answer["peer_id"]: str(node) for node, answer in known.items()}
        inactive = [replica for replica in replicas if replica["state"] != "Active"]
        broken = [f"{one['state'].lower()} on {names.get(one['peer_id'], one['peer_id'])}" for one in inactive]
        why = ", ".join(broken) or f"status {info['status']}"
        message = f"{len(lacking)} of {len(shards)} shards have fewer than {wanted} active replicas ({why})"
        return [Check(name, False, message, _WAIT)]
    points = {node: sum(shard["points_count"] for shard in one["local_shards"]) for node, one in known.items()}
    counts = ", ".join(f"{count:,} on {node}" for node, count in points.items())
    copies = f"{len(shards)} shard{'s' * (len(shards) > 1)} with {wanted} active replica{'s' * (wanted > 1)}"
    checks = [Check(name, True, f"{copies}; points: {counts}")]
    differing = _differing_shards(known)
    if differing and live_writer(schema.catalog) is None:
        message = f"servers count differently in shard {', '.join(map(str, differing))}"
        checks.append(Check(f"{name} copies", False, message, _WAIT))
    return checks


def _differing_shards(answers: Mapping[Node, dict[str, Any]]) -> list[int]:
    """The shards whose replicas have different numbers of points."""
    counts: defaultdict[int, set[int]] = defaultdict(set)
    for answer in answers.values():
        for shard in answer["local_shards"]:
            counts[shard["shard_id"]].add(shard["points_count"])
    return sorted(shard for shard, found in counts.items() if len(found) > 1)


def _content_checks(schema: Schema, korean_analysis: str) -> list[Check]:
    checks = []
    unused = schema.unused_chunks()
    unfinished = schema.catalog.count(where("what", "unfinished"))
    writer = live_writer(schema.catalog)  # asked after the counts, because a writer may begin at any time
    if unused and writer is None:  # a writer may be moving the chunks
        hint = "The next ingest or migration deletes it."
        checks.append(Check("leftovers", False, f"{', '.join(unused)} is not used by anything", hint))
    message = f"{unfinished} changes were interrupted" if unfinished else "nothing was left unfinished"
    message = f"{writer} is writing" if writer else message
    checks.append(Check.judged("writer", bool(writer or not unfinished), message, _LEFT))
    state = read_state(schema.catalog)
    counted = sum(size.chunks for size in state.sizes.values())
    chunks = schema.chunks.count()
    expected = sum(payload["chunk_count"] for payload in schema.documents.payloads(None, ["chunk_count"]))
    is_right, message = counted == chunks == expected, f"{chunks:,} chunks, as many as the documents have"
    if not is_right and live_writer(schema.catalog):  # a writer stores its counts only from time to time
        is_right, message = True, f"{chunks:,} chunks, {counted:,} counted so far"
    elif not is_right:
        message = f"{chunks:,} chunks, {counted:,} counted, {expected:,} expected"
    checks.append(Check.judged("text index", is_right, message, _LEFT if unfinished else _REBUILD))
    wanted, built = fts_config(korean_analysis), "the current settings"
    stored = state.fts_config or wanted
    if stored != wanted:
        built = f"korean = {stored.get('korean')}, analysis {stored.get('analysis')}"
    checks.append(Check.judged("analysis", stored == wanted, f"the text index was built with {built}", _REBUILD))
    return checks
