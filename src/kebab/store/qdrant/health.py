"""`kb doctor` for a cluster: whether servers answer, know each other, have what they should have, and agree."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kebab.config.cluster_address import Node
from kebab.core.errors import KebabError, StoreError
from kebab.core.records import Check
from kebab.store.fts5.index_config import fts_config
from kebab.store.qdrant.client import Client, our_errors
from kebab.store.qdrant.schema import SCHEMA, Schema
from kebab.store.qdrant.state import State, read_state, what
from kebab.store.qdrant.writer_lease import live_writer

_RECENT = timedelta(seconds=10)
_LEFT = "The next ingest or migration puts that in order."
_WAIT = "Wait until the servers have caught up, and look again."


def health_checks(client: Client, schema: Schema, korean_analysis: str) -> list[Check]:
    """Ends with the first thing without which the rest makes no sense."""
    checks, versions = _server_checks(client)
    if not versions:
        return checks
    try:
        with our_errors(client.address, missing=schema.lacks_parts):
            checks += [_version_check(schema, versions), _peer_check(client), _schema_check(schema)]
            if not checks[-1].ok:
                return checks
            state = read_state(schema.catalog)
            shards = [check for name in schema.collections() for check in _shard_checks(client, schema, name)]
            return [
                *checks,
                *shards,
                *_leftovers(schema),
                _writer_check(schema),
                *_index_checks(schema, state, korean_analysis),
            ]
    except StoreError as error:
        return [*checks, Check("database", False, error.message, error.hint)]


def _server_checks(client: Client) -> tuple[list[Check], dict[Node, str]]:
    """And the versions of those that answer."""
    checks = []
    versions: dict[Node, str] = {}
    for node, answer in client.ask_each("/telemetry?details_level=0").items():
        name = f"server {node}"
        if isinstance(answer, KebabError):
            checks.append(Check(name, False, answer.message, answer.hint))
        elif isinstance(answer, Exception):
            checks.append(Check(name, False, f"it answered with {answer}", "Check the address."))
        else:
            versions[node] = str(answer["app"]["version"])
            checks.append(Check(name, True, f"answers, version {versions[node]}"))
    return checks, versions


def _version_check(schema: Schema, versions: Mapping[Node, str]) -> Check:
    for version in versions.values():
        try:
            schema.check_version(version)
        except StoreError as error:
            return Check("version", False, error.message, error.hint)
    return Check("version", True, f"Qdrant {', '.join(sorted(set(versions.values())))}")


def _peer_check(client: Client) -> Check:
    cluster = client.get("/cluster")
    if cluster.get("status") != "enabled":
        return Check("cluster", True, "one server, without others")
    count = len(cluster["peers"])
    told = [
        answer for answer in client.ask_each("/cluster").values() if not isinstance(answer, Exception)
    ]  # only who leads talks to all
    failures = [failure for answer in told for failure in (answer.get("message_send_failures") or {}).items()]
    failing = {server for server, failure in failures if _is_recent(failure)}
    consensus = cluster.get("consensus_thread_status", {}).get("consensus_thread_status", "working")
    wrong = [f"{server} does not answer the others" for server in sorted(failing)]
    wrong += [f"they do not agree ({consensus})"] if consensus != "working" else []
    message = f"of {count} servers {', '.join(wrong)}" if wrong else f"{count} servers know each other"
    return Check.judged(
        "cluster", not wrong, message, "Start the missing servers; with fewer than half of them nothing can be changed."
    )


def _is_recent(failure: dict[str, Any]) -> bool:
    """A server remembers that it could not reach another one until it has something to tell it again."""
    try:
        then = datetime.fromisoformat(str(failure["latest_error_timestamp"]))
    except (KeyError, ValueError):
        return True
    return datetime.now(UTC) - then.astimezone(UTC) < _RECENT


def _schema_check(schema: Schema) -> Check:
    try:
        schema.require()
    except StoreError as error:
        return Check("database", False, error.message, error.hint)
    return Check("database", True, f"schema {SCHEMA} at {schema.address}")


def _shard_checks(client: Client, schema: Schema, name: str) -> list[Check]:
    """Of one collection: that all copies are there, and that servers count the same in each."""
    facts = client.get(f"/collections/{name}")
    told = client.ask_each(f"/collections/{name}/cluster")
    known = {node: answer for node, answer in told.items() if not isinstance(answer, Exception)}
    if not known:  # a server that runs alone does not tell
        return [Check(name, facts["status"] != "red", f"status {facts['status']}", "Look into the server's log.")]
    wanted = int(facts["config"]["params"].get("replication_factor") or 1)
    checks = [_replica_check(name, known, wanted, facts["status"], _peer_names(client, known))]
    differing = _differing_shards(known)
    if differing and checks[0].ok and live_writer(schema.catalog) is None:
        checks.append(
            Check(
                f"{name} copies", False, f"servers count differently in shard {', '.join(map(str, differing))}", _WAIT
            )
        )
    return checks


def _peer_names(client: Client, told: Mapping[Node, dict[str, Any]]) -> dict[int, str]:
    """As people know them: by their addresses, or where one does not answer, by the address that the others know it by."""
    peers = {int(peer): str(facts["uri"]) for peer, facts in (client.get("/cluster").get("peers") or {}).items()}
    return {**peers, **{one["peer_id"]: str(node) for node, one in told.items()}}


def _replica_check(
    name: str, told: Mapping[Node, dict[str, Any]], wanted: int, status: str, peers: Mapping[int, str]
) -> Check:
    """A shard is a part of the collection, and a replica a copy of it on one server. What one server knows of the
    others, all know.
    """
    cluster = next(iter(told.values()))
    replicas = [(shard["shard_id"], cluster["peer_id"], shard["state"]) for shard in cluster["local_shards"]]
    replicas += [(shard["shard_id"], shard["peer_id"], shard["state"]) for shard in cluster["remote_shards"]]
    active: dict[int, int] = {}
    for shard, _, state in replicas:
        active[shard] = active.get(shard, 0) + (state == "Active")
    lacking = sorted(shard for shard, count in active.items() if count < wanted)
    if lacking or cluster["shard_transfers"] or status == "red":
        broken = (
            ", ".join(f"{state.lower()} on {peers.get(peer, peer)}" for _, peer, state in replicas if state != "Active")
            or f"status {status}"
        )
        return Check(
            name,
            False,
            f"{len(lacking)} of {len(active)} shards have fewer than {wanted} active replicas ({broken})",
            _WAIT,
        )
    points = {node: sum(shard["points_count"] for shard in one["local_shards"]) for node, one in told.items()}
    counts = ", ".join(f"{count:,} on {node}" for node, count in points.items())
    shards = f"{len(active)} shard{'s' * (len(active) > 1)} with {wanted} active replica{'s' * (wanted > 1)}"
    return Check(name, True, f"{shards}; points: {counts}")


def _differing_shards(told: Mapping[Node, dict[str, Any]]) -> list[int]:
    """Of which two servers have copies with different numbers of points."""
    counts: dict[int, set[int]] = {}
    for one in told.values():
        for shard in one["local_shards"]:
            counts.setdefault(shard["shard_id"], set()).add(shard["points_count"])
    return sorted(shard for shard, found in counts.items() if len(found) > 1)


def _leftovers(schema: Schema) -> list[Check]:
    """Of moving chunks to another collection, when somebody was interrupted. While one is writing it is at work."""
    unused = [name for name in schema.chunks_collections() if name != schema.chunks_collection()]
    if not unused or live_writer(schema.catalog) is not None:
        return []
    hint = "The next ingest or migration deletes it."
    return [Check("leftovers", False, f"{', '.join(unused)} is not used by anything", hint)]


def _writer_check(schema: Schema) -> Check:
    unfinished = len(list(schema.catalog.scroll(what("unfinished"), payload=False)))
    if writer := live_writer(schema.catalog):
        return Check("writer", True, f"{writer} is writing")
    message = f"{unfinished} changes were interrupted" if unfinished else "nothing was left unfinished"
    return Check.judged("writer", not unfinished, message, _LEFT)


def _index_checks(schema: Schema, state: State, korean_analysis: str) -> list[Check]:
    counted = sum(size.chunks for size in state.sizes.values())
    chunks = schema.chunks.count()
    named = sum(point["payload"]["chunk_count"] for point in schema.documents.scroll(payload=["chunk_count"]))
    whole = counted == chunks == named
    message = (
        f"{chunks:,} chunks, as many as the documents have"
        if whole
        else f"{chunks:,} chunks, {counted:,} counted, {named:,} expected"
    )
    stored = state.fts_config
    right = stored in (None, fts_config(korean_analysis))
    built = (
        "the current settings"
        if right or stored is None
        else f"korean = {stored.get('korean')}, analysis {stored.get('analysis')}"
    )
    hint = "kb index --rebuild-fts"
    if not whole and live_writer(schema.catalog) is not None:  # whose changes are counted some at a time
        whole, message = True, f"{chunks:,} chunks, {counted:,} counted so far"
    elif any(schema.catalog.scroll(what("unfinished"), payload=False, at_once=1)):
        hint = _LEFT
    return [
        Check.judged("text index", whole, message, hint),
        Check.judged("analysis", right, f"the text index was built with {built}", "kb index --rebuild-fts"),
    ]
