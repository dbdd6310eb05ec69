"""`kb doctor` for a cluster: whether the servers answer, know each other, have all replicas, and agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kebab.config.cluster_address import Node
from kebab.core.errors import KebabError, StoreError
from kebab.core.records import Check
from kebab.store.index_versions import fts_config
from kebab.store.qdrant.client import Client, our_errors
from kebab.store.qdrant.collection import where
from kebab.store.qdrant.schema import SCHEMA, Schema
from kebab.store.qdrant.state import read_state
from kebab.store.qdrant.writer_lease import live_writer

_RECENT = timedelta(seconds=10)
_LEFT = "The next ingest or migration puts that in order."
_WAIT = "Wait until the servers have caught up, and look again."
_REBUILD = "kb index --rebuild-fts"


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
