"""`kb serve` as a real process, for whoever wants to call it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.forked_kb import start_kb


class Server(NamedTuple):
    url: str
    """With a slash at the end."""
    process: subprocess.Popen[str]

    def stop(self, seconds: float = 30) -> int:
        """Tells it to stop and waits; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)


@contextmanager
def serving(db: Path | str, *options: str, home: Path, env: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Until the end of the block; `home` is where its settings and caches are."""
    places = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "CACHE")}
    process = start_kb(
        ["--db", str(db), "serve", "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "HOME": str(home), **places, "KEBAB_EMBEDDING_MODEL": "none", **(env or {})},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        url = process.stdout.readline().strip()
        if not url:
            raise AssertionError(f"kb serve did not start: {process.stderr.read()}")
        yield Server(url, process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
