"""What other users of the machine can read (files, passwords, words of deleted documents), and what reading leaves
behind.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from kebab.config.writing import set_values
from kebab.store.sqlite.database import Database

if TYPE_CHECKING:
    from tests.conftest import Upstream
    from tests.end_to_end.conftest import Done, User

SECRET = "Sesame-9137"
GUIDE = {"docs/guide.md": "# Widget\n\n## Create\n\nCall `create()` to make a widget.\n\n```python\ncreate()\n```\n"}
GOLDEN = "- id: renewal\n  query: renew the certificate\n  expected_docs: [tls.md]\n"


# --- files


def everything_in(folder: Path) -> Iterator[Path]:
    yield folder
    yield from folder.rglob("*")


def open_to_others(*paths: Path) -> dict[str, str]:
    return {str(path): oct(path.stat().st_mode & 0o777) for path in paths if path.stat().st_mode & 0o077}


def test_every_file_is_readable_by_its_owner_only_under_any_umask(user: User, upstream: Upstream) -> None:
    def run(*arguments: str | Path) -> None:
        done = user.run(*arguments, before=lambda: os.umask(0))
        assert done.code == 0, done.out + done.err

    user.write("tls.md", "# TLS\n\nRenew the certificate.\n")
    golden = user.write("golden.yaml", GOLDEN, user.home)
    upstream.commit(GUIDE)
    made = user.home / "made"
    made.mkdir(mode=0o755)
    run("init")
    run("ingest", user.notes)
    run("search", "certificate")
    run("--db", made / "new" / "own.sqlite", "ingest", user.notes)
    run("backup", made / "backup.sqlite")
    run("lib", "add", upstream.url, "--id", "/acme/widget")
    run("lib", "export", "/acme/widget", made / "widget.kebab")
    run("eval", "run", golden, "--out", made / "run.json")
    run("eval", "report", made / "run.json", "--out", made / "run.html")
    run("init", "--here")
    before = os.umask(0)
    try:
        set_values(made / "other" / "config.toml", {"search.rrf_k": 50})
        writer = Database(made / "busy" / "kebab.sqlite").writer()
        writer.execute("INSERT INTO meta VALUES ('a', 'b')")
    finally:
        os.umask(before)
    roots = [user.home / "data", user.home / "config", user.home / "cache", user.folder / ".kebab"]
    written = [path for root in [*roots, made] for path in everything_in(root) if path != made]
    too_open = open_to_others(*written)
    writer.close()
    names = {path.name for path in written}
    assert names >= {
        "kebab.sqlite",
        "kebab.sqlite-wal",
        "kebab.sqlite-shm",
        "kebab.sqlite.lock",
        "config.toml",
        "backup.sqlite",
    }
    assert names >= {"widget.kebab", "run.json", "run.html", "own.sqlite", "repositories", ".gitignore", "HEAD"}
    assert too_open == {}
    assert made.stat().st_mode & 0o777 == 0o755, "a folder that exists is not changed"


def test_doctor_names_the_command_that_protects_its_files_but_not_for_a_folder_of_the_user(
    user: User, tmp_path: Path
) -> None:
    def privacy(*options: str) -> dict[str, Any]:
        (check,) = [check for check in user.ask(*options, "doctor")["checks"] if check["name"] == "privacy"]
        return dict(check)

    user.write("a.md", "# A\n\nalpha\n")
    user.run("init")
    user.ingest()
    assert privacy()["hint"] is None
    config = user.home / "config" / "kebab" / "config.toml"
    too_open = [config, user.database.parent, user.database, user.database.with_name("kebab.sqlite.lock")]
    for path in too_open:
        path.chmod(0o755)
    told = privacy()
    assert told["ok"], "an older installation is not broken"
    assert told["hint"] == f"chmod go-rwx {' '.join(map(str, sorted(too_open)))}"
    subprocess.run(told["hint"], shell=True, check=True)
    assert open_to_others(*too_open) == {}
    assert privacy()["hint"] is None
    shared = tmp_path / "our share"
    shared.mkdir(mode=0o755)
    database = shared / "team.sqlite"
    user.ingest(user.notes, "--db", database)
    database.chmod(0o644)
    assert privacy("--db", str(database))["hint"] == f"chmod go-rwx '{database}'"


# --- passwords


class PrivateServer(ThreadingHTTPServer):
    """A server with a git repository and a text file, both with a password."""

    daemon_threads = True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), _PrivateHandler)
        self.root = root
        self.seen_in_arguments: set[str] = set()

    def address(self, path: str, user: str = "") -> str:
        return f"http://{user}127.0.0.1:{self.server_port}{path}"


class _PrivateHandler(BaseHTTPRequestHandler):
    server: PrivateServer

    def do_GET(self) -> None:
        self._note_arguments()
        expected = base64.b64encode(f"me:{SECRET}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {expected}":
            self._answer("401 Unauthorized", [("WWW-Authenticate", 'Basic realm="x"')], b"")
        elif self.path == "/llms.txt":
            self._answer("200 OK", [("Content-Type", "text/plain")], GUIDE["docs/guide.md"].encode())
        else:
            self._run_git()

    do_POST = do_GET  # noqa: N815

    def _note_arguments(self) -> None:
        """Records the arguments of processes, which every user can read. What the user typed is not hidden."""
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if SECRET in line and "-m kebab" not in line:
                self.server.seen_in_arguments.add(line)

    def _run_git(self) -> None:
        path, _, query = self.path.partition("?")
        length = int(self.headers.get("Content-Length") or 0)
        done = subprocess.run(
            ["git", "http-backend"],
            input=self.rfile.read(length),
            capture_output=True,
            check=True,
            env={
                **os.environ,
                "GIT_PROJECT_ROOT": str(self.server.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(length),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            },
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = [
            (name, value.strip()) for name, _, value in (line.partition(":") for line in head.decode().splitlines())
        ]
        status = next((value for name, value in headers if name == "Status"), "200 OK")
        self._answer(status, [pair for pair in headers if pair[0] != "Status"], body)

    def _answer(self, status: str, headers: list[tuple[str, str]], body: bytes) -> None:
        code, _, words = status.partition(" ")
        self.send_response(int(code), words)
        for name, value in [*headers, ("Content-Length", str(len(body)))]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def private_server(upstream: Upstream) -> Iterator[PrivateServer]:
    upstream.commit(GUIDE)
    server = PrivateServer(upstream.folder.parent)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("kind", ["git", "file"])
def test_the_password_of_a_library_is_used_once_and_kept_nowhere(
    kind: str, user: User, upstream: Upstream, private_server: PrivateServer
) -> None:
    path = f"/{upstream.folder.name}/.git" if kind == "git" else "/llms.txt"
    address = private_server.address(path, f"me:{SECRET}@")
    said: list[Done] = [user.run("lib", "add", address, "--id", "/acme/widget")]
    assert said[0].code == 0, said[0].err
    refused = user.fails("lib", "refresh", "/acme/widget", code="source_error", exit_code=2)
    assert "~/.netrc" in refused.json()["hint"]
    assert user.ask("lib", "docs", "/acme/widget", "create a widget")["snippets"], (
        "what was fetched before is still there"
    )
    said += [refused, user.run("lib", "list", "--json"), user.run("doctor")]
    assert user.run("lib", "export", "/acme/widget", user.home / "widget.kebab").code == 0
    assert user.run("lib", "add", address, "--id", "/acme/widget").code == 0, "the address can be given again"
    assert not any(SECRET in done.out + done.err for done in said)
    (user.home / ".netrc").write_text(f"machine 127.0.0.1 login me password {SECRET}\n")
    (user.home / ".netrc").chmod(0o600)
    assert user.run("lib", "refresh", "/acme/widget").code == 0
    holding = [file for file in user.home.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]
    assert holding == [user.home / ".netrc"]
    assert private_server.seen_in_arguments == set()


def test_a_password_that_an_older_kebab_stored_is_reported_and_gone_after_a_refresh(
    user: User, upstream: Upstream, private_server: PrivateServer
) -> None:
    address = private_server.address(f"/{upstream.folder.name}/.git", f"me:{SECRET}@")
    user.run("lib", "add", address, "--id", "/acme/widget")
    with user.open() as connection:
        connection.execute("UPDATE libraries SET origin = ?", (address,))
    hints = [check["hint"] for check in user.ask("doctor")["checks"] if check["name"] == "password"]
    assert hints == ["kb lib refresh /acme/widget"]
    assert user.run("lib", "refresh", "/acme/widget").code == 0
    with user.open() as connection:
        assert SECRET not in str(connection.execute("SELECT origin FROM libraries").fetchall())
    assert not [check for check in user.ask("doctor")["checks"] if check["name"] == "password"]


@pytest.mark.parametrize(
    ("setting", "address"),
    [
        ("KEBAB_EMBEDDING_ENDPOINT", f"https://me:{SECRET}@host:8080/v1"),
        ("KEBAB_ASK_ENDPOINT", f"https://{SECRET}@host/v1"),
        ("KEBAB_LIBRARY_GITHUB_API", f"https://me:{SECRET}/with-slash@host/v1"),
    ],
)
def test_no_output_shows_a_password_in_an_address_of_the_settings(user: User, setting: str, address: str) -> None:
    user.write("a.md", "# A\n\nalpha\n")
    environment = {setting: address, "KEBAB_EMBEDDING_MODEL": "openai:x", "KEBAB_ASK_MODEL": "openai:x"}
    commands = [
        ("config", "show"),
        ("config", "show", "--json"),
        ("ingest", str(user.notes)),
        ("ask", "alpha?"),
        ("doctor",),
    ]
    done = [user.run(*command, env=environment) for command in commands]
    assert "://…@" in done[0].out
    assert "://…@" in done[1].out
    assert not any("Sesame" in each.out + each.err or "Traceback" in each.err for each in done)


def test_an_address_of_a_cluster_is_not_taken_for_a_file(user: User) -> None:
    """Regression: kb ingest made the folder "qdrant:", and every command showed the password."""
    user.write("a.md", "# A\n\nalpha\n")
    environment = {"KEBAB_STORE_PATH": f"qdrant://me:{SECRET}@127.0.0.1:9/notes"}
    for command in (("config", "show"), ("ingest", str(user.notes)), ("doctor",)):
        done = user.run(*command, env=environment)
        assert (done.code, "no user name or key" in done.err) == (2, True)
        assert "Sesame" not in done.out + done.err


@pytest.mark.parametrize("section", ["EMBEDDING", "ASK"])
def test_no_output_shows_a_key_in_the_query_of_an_endpoint(user: User, section: str) -> None:
    """Regression: it was shown, and the path of the request was appended to the key."""
    user.write("a.md", "# A\n\nalpha\n")
    endpoint = {f"KEBAB_{section}_ENDPOINT": f"http://127.0.0.1:9/v1?api_key={SECRET}"}
    environment = {**endpoint, f"KEBAB_{section}_MODEL": "openai:x"}
    done = [
        user.run(*command.split(), env=environment)
        for command in ("config show", "config show --json", f"ingest {user.notes}", "ask alpha?", "doctor")
    ]
    assert "api_key=…" in done[0].out
    assert "no name, password or query" in "".join(each.err for each in done)
    assert not any("Sesame" in each.out + each.err for each in done)


# --- words of deleted documents


def test_after_optimize_no_file_holds_a_word_of_a_deleted_document(user: User) -> None:
    user.write("kept.md", "# Kept\n\nalpha beta\n")
    note = user.write("note.md", "# Plan\n\nThe project is called Quetzalcoatlus.\n")
    edited = user.write("edited.md", "# Edited\n\nThe password was Archaeopteryx.\n")
    user.ingest()
    note.unlink()
    edited.write_text("# Edited\n\nNothing to see.\n")
    user.ingest()
    assert user.found("Quetzalcoatlus") == []
    assert user.run("search", "Quetzalcoatlas", "--json").json().get("suggestions", []) == []
    assert user.run("index", "--optimize").code == 0
    beside = [path for path in user.database.parent.iterdir() if path.is_file()]
    for word in (b"quetzalcoatl", b"archaeopteryx"):
        assert not [path.name for path in beside if word in path.read_bytes().lower()]
    assert user.found("alpha") == ["kept.md"]
    user.check()


# --- reading


def test_reading_leaves_no_file_beside_the_database(user: User) -> None:
    user.write("a.md", "# A\n\nalpha\n")
    user.ingest()
    before = user.database.read_bytes()
    for command in (("search", "alpha"), ("list", "docs"), ("verify",), ("doctor",)):
        assert user.run(*command).code == 0
        assert sorted(path.name for path in user.database.parent.iterdir()) == ["kebab.sqlite", "kebab.sqlite.lock"], (
            command
        )
    assert user.database.read_bytes() == before


READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


def mounted_read_only(folder: Path) -> list[str]:
    """A command prefix under which the folder is on a read-only medium, even for root."""
    command = [
        "unshare",
        "--mount",
        *([] if os.geteuid() == 0 else ["--map-root-user"]),
        "sh",
        "-c",
        READ_ONLY,
        str(folder),
    ]
    tried = subprocess.run(
        [*command, "sh", "-c", f"! touch {folder}/probe 2>/dev/null"], capture_output=True, check=False
    )
    if tried.returncode != 0:
        pytest.skip(f"this machine allows no mounts: {tried.stderr.decode().strip()}")
    return command


def run_on_read_only_medium(user: User, medium: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kb = [sys.executable, "-m", "kebab", "--db", str(medium / "kebab.sqlite"), *arguments]
    command = [*mounted_read_only(medium), *kb]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=user.environment, cwd=user.folder)


@pytest.mark.parametrize("beside", ["nothing", "what a killed reader left", "a log that is not in the file yet"])
def test_on_a_read_only_medium_search_works_and_checks_find_no_damage(user: User, tmp_path: Path, beside: str) -> None:
    user.write("a.md", "# A\n\nalpha\n")
    user.ingest()
    medium = tmp_path / "medium"
    if beside == "nothing":
        shutil.copytree(user.database.parent, medium)
    else:
        with user.open() as connection:  # -wal and -shm are there while it is open
            connection.pragma("schema_version")
            if beside != "what a killed reader left":
                connection.execute("INSERT INTO meta VALUES ('only', 'in the log')")
            shutil.copytree(user.database.parent, medium)
    held = sorted(path.name for path in medium.iterdir())
    run = partial(run_on_read_only_medium, user, medium)
    found = run("search", "alpha")
    assert (found.returncode, "a.md" in found.stdout) == (0, True), found.stderr
    for name in ("doctor", "verify"):
        done = run(name)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "NOT checked" in done.stdout + done.stderr
        assert not re.search("damaged|FAIL", done.stdout + done.stderr)
    refused = run("ingest", str(user.notes))
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr
    assert sorted(path.name for path in medium.iterdir()) == held


def test_a_log_that_a_read_only_medium_hides_is_reported(user: User, tmp_path: Path) -> None:
    user.write("a.md", "# A\n\nalpha\n")
    user.ingest()
    medium = tmp_path / "medium"
    with user.open() as connection:
        connection.execute("INSERT INTO meta VALUES ('only', 'in the log')")
        shutil.copytree(user.database.parent, medium)
    (medium / "kebab.sqlite-shm").unlink()
    for command, code in ((("search", "alpha"), 2), (("doctor",), 3)):
        done = run_on_read_only_medium(user, medium, *command)
        assert done.returncode == code
        assert "are in kebab.sqlite-wal, which cannot be read in a read-only place" in done.stdout + done.stderr


def test_a_reader_of_a_deleted_database_does_not_touch_the_log_of_the_next_one(tmp_path: Path) -> None:
    """SQLite deletes the log by its name when a connection closes, and that name may by now belong to another database."""
    folder = tmp_path / "data"
    path = folder / "kebab.sqlite"
    Database(path).writer().close()
    reader = Database(path).reader()
    for file in folder.iterdir():
        file.unlink()
    writer = Database(path).writer()
    writer.execute("INSERT INTO meta VALUES ('kept', 'yes')")
    reader.close()
    assert path.with_name("kebab.sqlite-wal").stat().st_size > 0
    copy = apsw.Connection(str(path))
    assert copy.execute("SELECT value FROM meta WHERE key = 'kept'").fetchall() == [("yes",)]
    copy.close()
    writer.close()
