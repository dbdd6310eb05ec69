"""One writer at a time, on whatever machine, and its name.

A lease is a point that is replaced only if it has run out. Its holder renews it, so that a killed process keeps others
out for some seconds only, and on its own machine not at all. Renewing never creates a lease: if another process had it
meanwhile, what the first one knows is out of date.
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
from kebab.store.qdrant.collection import Collection, Filter, one_of
from kebab.store.qdrant.schema import LEASE

LASTS_S = 45.0
"""Longer than a cluster takes, twice, to notice that a server hangs: until then every request waits ten seconds for it,
and renewing takes two.
"""
_RENEWED_S = 2.0
_POLL_S = 0.1


class WriterLease:
    def __init__(self, catalog: Collection, purpose: str) -> None:
        self._catalog = catalog
        self._owner = str(uuid4())
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        self._name = f"process {os.getpid()} on {socket.gethostname()} ({purpose}, since {since})"
        self._own: Filter = {"must": [{"has_id": [LEASE]}, one_of("owner", [self._owner])]}
        self._valid_until = 0.0

    def take(self, wait_s: float) -> None:
        """Waits until no other process has it; Locked if that takes too long."""
        deadline = time.monotonic() + wait_s
        while not self._try_to_take():
            if time.monotonic() >= deadline:
                holder = _stored(self._catalog).get("name", "an unnamed process")
                message = f"Another process is writing to this knowledge base: {holder}."
                raise Locked(message, hint="Wait for it to finish, or raise store.lock_wait_s.")
            time.sleep(_POLL_S)

    def _try_to_take(self) -> bool:
        """If it has run out, or its holder is dead. The clocks of two machines should agree within some seconds."""
        lease = _stored(self._catalog)
        asked, wall = _clock(), time.time()
        free: list[Filter] = [{"key": "until", "range": {"lt": wall}}]
        if lease and _is_of_dead_process(lease):
            free.append(one_of("owner", [lease["owner"]]))
        elif lease and lease["until"] >= wall:
            return False
        holder = {"owner": self._owner, "name": self._name, "pid": os.getpid(), "place": _place()}
        point = {"id": LEASE, "vector": {}, "payload": {"what": "lease", **holder, "until": wall + LASTS_S}}
        self._catalog.upsert([point], only_where={"should": free})
        return self._is_ours(asked)

    def renew(self) -> bool:
        """Whether it is still ours."""
        asked = _clock()
        self._catalog.set_payload({"until": time.time() + LASTS_S}, self._own)
        return self._is_ours(asked)

    def _is_ours(self, asked: float) -> bool:
        is_ours = bool(_stored(self._catalog).get("owner") == self._owner)
        self._valid_until = asked + LASTS_S if is_ours else 0.0
        return is_ours

    def check(self) -> None:
        """Called before every change: raises if another process may have written meanwhile."""
        if _clock() > self._valid_until:
            message = "The right to write was lost: the server was out of reach for too long."
            raise Locked(message, hint="Run the command again: it continues.")

    def give_back(self) -> None:
        with suppress(Missing):  # the knowledge base was deleted
            self._catalog.delete(self._own)


@contextmanager
def writer_lease(catalog: Collection, client: Client, wait_s: float, purpose: str) -> Iterator[WriterLease]:
    """Holds the lease, and renews it in a thread."""
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
        lease.give_back()


def live_writer(catalog: Collection) -> str | None:
    """The process that is writing now. A killed one leaves a lease behind, until it runs out or is taken over."""
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
    except ProcessLookupError:
        return True
    except OSError:  # it belongs to another user
        pass
    return False


def _clock() -> float:
    """Goes on while the machine sleeps, if there is such a clock, because other machines do not sleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def _place() -> str:
    """Where process ids mean the same: one boot of one system, and one namespace in it. Empty if unknown."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
