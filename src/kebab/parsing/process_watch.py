"""An eye on a process at work: it is killed when its time is over, and how much memory it has been seen with is
remembered.

A library in C that gets no more memory crashes like one that meets a damaged file, and the system does not keep what a
process had when it died. So it is looked at while it lives. Where there is no /proc, nothing is seen.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType

_FIRST_LOOK = 0.03
"""Most files are read sooner, and cost no look at all."""
_NEXT_LOOK = 0.01
_NEAR_THE_LIMIT = 0.4
"""Of what was left when the work began. What grows by doubling fails when half is in use, and the last look was a
moment before.
"""


class ProcessWatch:
    def __init__(self, process: subprocess.Popen[bytes], max_seconds: float, max_memory_mb: int) -> None:
        self.was_too_late = False
        self._process = process
        self._latest = time.monotonic() + max_seconds
        self._limit = max_memory_mb << 20
        self._before = self._most = _memory_of(process.pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True, name="kebab-watch")

    def __enter__(self) -> ProcessWatch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()

    @property
    def saw_memory_run_out(self) -> bool:
        return self._most - self._before >= _NEAR_THE_LIMIT * (self._limit - self._before) > 0

    def _look(self) -> None:
        pause = _FIRST_LOOK
        while not self._over.wait(max(0.0, min(pause, self._latest - time.monotonic()))):
            if time.monotonic() >= self._latest:
                self.was_too_late = True
                self._process.kill()
                return
            self._most = max(self._most, _memory_of(self._process.pid))
            pause = _NEXT_LOOK


def _memory_of(pid: int) -> int:
    """As the limit counts it: addresses in use, whether written to or not. 0 where it cannot be told."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
