"""One writer at a time, on whatever machine, and the name of whoever it is.

A lease is a point that is replaced only where a condition holds: that it has run out. It is renewed while its holder
works, so that a killed process keeps others out for some seconds only; and on its own machine not even that long.
Renewing changes what is one's own and never makes a lease anew: whoever had it meanwhile, and has given it back, has
changed what the first one believes to know.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import uuid4

from kebab.core.errors import KebabError, Locked
from kebab.store.qdrant.client import Answered, Client
from kebab.store.qdrant.collection import Collection, Filter
from kebab.store.qdrant.schema import LEASE

LASTS_S = 45.0
"""Longer than a cluster takes, twice, to notice that one of its servers does not answer any more: until then it waits
ten seconds for that one with every request, and renewing takes two.
"""
_RENEWED_S = 2.0
_ASKED_S = 0.1


class WriterLease:
    def __init__(self, catalog: Collection, client: Client, *, wait_s: float, purpose: str) -> None:
        self._catalog = catalog
        self._client = client
        self._wait_s = wait_s
        self._owner = str(uuid4())
        self._name = (
            f"process {os.getpid()} on {socket.gethostname()} ({purpose}, since {time.strftime('%Y-%m-%d %H:%M:%S')})"
        )
        self._done = threading.Event()
        self._renewing: threading.Thread | None = None
        self._sure_until = 0.0

    def __enter__(self) -> WriterLease:
        deadline = time.monotonic() + self._wait_s
        while not self._take() and not self._take_over():
            if time.monotonic() >= deadline:
                raise Locked(
                    f"Another process is writing to this knowledge base: {self._holder()}.",
                    hint="Wait for it to finish, or raise store.lock_wait_s.",
                )
            time.sleep(_ASKED_S)
        self._renewing = threading.Thread(target=self._renew, name="kebab lease", daemon=True)
        self._renewing.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._renewing is not None:
            self._renewing.join()
        try:
            self._catalog.delete(self._own)
        except Answered as error:
            if error.status != 404:  # all of it was deleted
                raise

    @property
    def _own(self) -> Filter:
        return {"must": [{"has_id": [LEASE]}, _is("owner", self._owner)]}

    def check(self) -> None:
        """Before a change: whoever was cut off for so long that another one may be writing, or may have written, must
        not go on.
        """
        if _clock() > self._sure_until:
            raise Locked(
                "The right to write was lost: the server was out of reach for too long.",
                hint="Run the command again: it continues.",
            )

    def _take(self, *free: dict[str, Any]) -> bool:
        """When it has run out, or is free in another way. Clocks of two machines should agree within some seconds."""
        asked, wall = _clock(), time.time()
        either = {"should": [{"key": "until", "range": {"lt": wall}}, *free]}
        payload = {
            "what": "lease",
            "owner": self._owner,
            "name": self._name,
            "pid": os.getpid(),
            "place": _place(),
            "until": wall + LASTS_S,
        }
        self._catalog.upsert([{"id": LEASE, "vector": {}, "payload": payload}], only_where=either)
        return self._has_it_since(asked)

    def _extend(self) -> bool:
        asked = _clock()
        self._catalog.set_payload({"until": time.time() + LASTS_S}, self._own)
        return self._has_it_since(asked)

    def _has_it_since(self, asked: float) -> bool:
        has_it = bool(self._lease().get("owner") == self._owner)
        self._sure_until = asked + LASTS_S if has_it else 0.0
        return has_it

    def _take_over(self) -> bool:
        """From a process of this very system that is no more."""
        lease = self._lease()
        return bool(lease) and _is_of_the_dead(lease) and self._take(_is("owner", lease["owner"]))

    def _renew(self) -> None:
        try:
            while not self._done.wait(_RENEWED_S):
                try:
                    if not self._extend():
                        return
                except (
                    KebabError,
                    Answered,
                ):  # out of reach for now, or all deleted: whoever writes will notice by itself
                    continue
        finally:
            self._client.close()  # this thread's connection

    def _holder(self) -> str:
        return str(self._lease().get("name", "an unnamed process"))

    def _lease(self) -> dict[str, Any]:
        found = self._catalog.retrieve([LEASE])
        return dict(found[0]["payload"]) if found else {}


def live_writer(catalog: Collection) -> str | None:
    """Who is writing now. One that was killed leaves a lease behind, until it runs out or another one takes it over."""
    found = catalog.retrieve([LEASE])
    lease = found[0]["payload"] if found else {"until": 0.0}
    return None if lease["until"] < time.time() or _is_of_the_dead(lease) else str(lease["name"])


def _is_of_the_dead(lease: dict[str, Any]) -> bool:
    return lease["place"] == _place() != "" and not _is_alive(lease["pid"])


def _clock() -> float:
    """Goes on while the machine sleeps, where there is such a clock: the others do not sleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def _is(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "match": {"value": value}}


def _place() -> str:
    """Where the numbers of processes mean the same: one start of one system, and in it one namespace. Empty where that
    cannot be told.
    """
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True
