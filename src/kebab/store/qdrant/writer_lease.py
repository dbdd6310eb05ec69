"""Lets one process write at a time, on any machine, and names that process to the others.

The lease is a point that is replaced only after it has expired. Its holder renews it, so a killed process keeps others
out for less than a minute, and on its own machine not at all. Renewing never creates a lease: if another process held
it meanwhile, the state that the first one has read is outdated.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from kebab.core.errors import KebabError, Locked
from kebab.store.qdrant.client import Client, Missing, StatusError
from kebab.store.qdrant.collection import Collection, Filter, bare_point, one_of
from kebab.store.qdrant.schema import LEASE

LASTS_S = 45.0  # longer than two renewals while a server hangs: each has two requests, each of which waits 10 s for it
_RENEWED_S = 2.0
_POLL_S = 0.1


class WriterLease:
    def __init__(self, catalog: Collection, purpose: str) -> None:
        self._catalog = catalog
        self._owner = str(uuid4())
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        self._name = f"process {os.getpid()} on {socket.gethostname()} ({purpose}, since {since})"
        self.own: Filter = {"must": [{"has_id": [LEASE]}, one_of("owner", [self._owner])]}
        self._valid_until = 0.0

    def take(self, wait_s: float) -> None:
        """Takes the lease as soon as no other process holds it. Raises Locked if that takes longer than `wait_s`."""
        deadline = time.monotonic() + wait_s
        while not self._try_to_take():
            if time.monotonic() >= deadline:
                holder = _stored(self._catalog).get("name", "an unnamed process")
                message = f"Another process is writing to this knowledge base: {holder}."
                raise Locked(message, hint="Wait for it to finish, or raise store.lock_wait_s.")
            time.sleep(_POLL_S)

    def _try_to_take(self) -> bool:
        """Takes the lease if it has expired or its holder is dead, and returns whether this writer holds it now."""
        lease = _stored(self._catalog)
        asked, wall = _clock(), time.time()
        free: list[Filter] = [{"key": "until", "range": {"lt": wall}}]
        if lease and _is_of_dead_process(lease):
            free.append(one_of("owner", [lease["owner"]]))
        elif lease and lease["until"] >= wall:
            return False
        holder = {"owner": self._owner, "name": self._name, "pid": os.getpid(), "place": _place()}
        point = bare_point(LEASE, what="lease", **holder, until=wall + LASTS_S)
        self._catalog.upsert([point], only_where={"should": free})
        return self._is_ours(asked)

    def renew(self) -> bool:
        """Extends the lease, and returns whether this writer still holds it."""
        asked = _clock()
        self._catalog.set_payload({"until": time.time() + LASTS_S}, self.own)
        return self._is_ours(asked)

    def _is_ours(self, asked: float) -> bool:
        is_ours = bool(_stored(self._catalog).get("owner") == self._owner)
        self._valid_until = asked + LASTS_S if is_ours else 0.0
        return is_ours

    def check(self) -> None:
        """Raises if another process may have written meanwhile. Called before every change."""
        if _clock() > self._valid_until:
            message = "The right to write was lost: the server was out of reach for too long."
            raise Locked(message, hint="Run the command again: it continues.")


@contextmanager
def writer_lease(catalog: Collection, client: Client, wait_s: float, purpose: str) -> Iterator[WriterLease]:
    """Holds the lease during the block. A thread renews it."""
    lease = WriterLease(catalog, purpose)
    done = threading.Event()

    def keep_renewing() -> None:
        while not done.wait(_RENEWED_S):
            with suppress(KebabError, StatusError):  # out of reach, or deleted: the writer notices by itself
                if not lease.renew():
                    break
        client.close()  # the connections of this thread

    lease.take(wait_s)
    renewing = threading.Thread(target=keep_renewing, name="kebab lease", daemon=True)
    renewing.start()
    try:
        yield lease
    finally:
        done.set()
        renewing.join()
        with suppress(Missing):  # the knowledge base was deleted
            catalog.delete(lease.own)


def live_writer(catalog: Collection) -> str | None:
    """The name of the process that is writing now, or None. Ignores the lease of a dead process on this machine."""
    lease = _stored(catalog)
    return None if not lease or lease["until"] < time.time() or _is_of_dead_process(lease) else str(lease["name"])


def _stored(catalog: Collection) -> dict[str, Any]:
    found = catalog.retrieve([LEASE])
    return found[0]["payload"] if found else {}


def _is_of_dead_process(lease: dict[str, Any]) -> bool:
    if not lease["place"] or lease["place"] != _place():
        return False
    try:
        os.kill(lease["pid"], 0)
    except OSError as error:  # with other errors it exists, and belongs to another user
        return isinstance(error, ProcessLookupError)
    return False


def _clock() -> float:
    """Seconds of a clock that, if possible, also counts while the machine sleeps: the lease expires meanwhile."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def _place() -> str:
    """The boot and the namespace in which a process id is unique, as text. Empty if unknown."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
