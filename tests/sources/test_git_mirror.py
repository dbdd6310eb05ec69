"""Mirrors of repositories, fetched by the installed git."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kebab.config.settings import Settings
from kebab.core.addresses import shown_address
from kebab.core.errors import SourceError
from kebab.sources.git_mirror import FetchLimits, GitMirror, checked_ref, checked_url
from kebab.sources.origin import check_tags, forget_mirror, library_tree, origin_of

if TYPE_CHECKING:
    from tests.conftest import Upstream

LIMITS = FetchLimits(60, 100)


Mirrors = Callable[..., GitMirror]


@pytest.fixture
def mirror_of(tmp_path: Path) -> Mirrors:
    def make(url: str, limits: FetchLimits = LIMITS) -> GitMirror:
        return GitMirror(tmp_path / "mirror.git", url, limits)

    return make


def contents(mirror: GitMirror, tag: str | None = None, branch: str = "trunk") -> dict[str, bytes]:
    tree = mirror.fetch_tag(tag) if tag else mirror.fetch_branch(branch)
    with tree.reading() as blobs:
        return {file.path: blobs.read(file) for file in tree.files()}


def test_branches_and_tags_are_read_as_they_are_committed(upstream: Upstream, mirror_of: Mirrors) -> None:
    upstream.commit(
        {"README.md": "# One\n", "docs/안내.md": "# 안내\n", "empty.txt": "", "bin.dat": b"\0\1\n"}, tag="v1.0"
    )
    second = upstream.commit({"README.md": "# Two\n"})
    mirror = mirror_of(upstream.url)
    assert mirror.fetch_default().commit == second
    assert mirror.tags() == ["v1.0"]
    assert contents(mirror) == {
        "README.md": b"# Two\n",
        "docs/안내.md": "# 안내\n".encode(),
        "empty.txt": b"",
        "bin.dat": b"\0\1\n",
    }
    assert contents(mirror, "v1.0")["README.md"] == b"# One\n"
    assert mirror.fetch_branch("trunk").commit == second


def test_all_versions_share_one_mirror_and_the_keys_of_equal_files(
    upstream: Upstream, mirror_of: Mirrors, tmp_path: Path
) -> None:
    upstream.commit({"same.md": "same\n", "other.md": "one\n"}, tag="v1")
    upstream.commit({"other.md": "two\n"}, tag="v2")
    mirror = mirror_of(upstream.url)
    first, second = ({file.path: file.key for file in mirror.fetch_tag(tag).files()} for tag in ("v1", "v2"))
    assert first["same.md"] == second["same.md"]
    assert first["other.md"] != second["other.md"]
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".git")] == ["mirror.git"]


def test_a_fetch_gets_the_new_state_of_a_branch_without_its_history(upstream: Upstream, mirror_of: Mirrors) -> None:
    for number in range(5):
        upstream.commit({"a.md": f"{number}\n"})
    mirror = mirror_of(upstream.url)
    assert contents(mirror) == {"a.md": b"4\n"}
    assert mirror.run("rev-list", "--count", "refs/kebab/default").strip() == b"1"
    upstream.commit({"a.md": "5\n"})
    assert contents(mirror) == {"a.md": b"5\n"}


def test_links_and_submodules_are_left_out(upstream: Upstream, mirror_of: Mirrors, tmp_path: Path) -> None:
    inner = type(upstream)(tmp_path / "inner")
    inner.commit({"secret.md": "inner\n"})
    (upstream.folder / "link.md").symlink_to("/etc/passwd")
    upstream.git("submodule", "--quiet", "add", inner.url, "sub")
    upstream.commit({"a.md": "a\n"})
    assert set(contents(mirror_of(upstream.url))) == {"a.md", ".gitmodules"}


def test_hooks_filters_and_aliases_of_the_user_or_the_repository_do_not_run(
    upstream: Upstream, mirror_of: Mirrors, tmp_path: Path, isolated_home: Path
) -> None:
    trap = tmp_path / "trap"
    hook = tmp_path / "hooks" / "reference-transaction"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\ntouch {trap}\n")
    hook.chmod(0o755)
    (isolated_home / ".gitconfig").write_text(
        f'[core]\n  hooksPath = {hook.parent}\n  fsmonitor = "touch {trap}"\n[credential]\n  helper = "!touch {trap}"\n'
        f'[filter "trap"]\n  smudge = touch {trap}\n'
    )
    upstream_home = os.environ.pop("HOME")
    try:
        upstream.commit({".gitattributes": "* filter=trap\n", "a.md": "a\n"})
    finally:
        os.environ["HOME"] = upstream_home
    assert contents(mirror_of(upstream.url))["a.md"] == b"a\n"
    assert not trap.exists()


@pytest.mark.parametrize("url", [
    "ext::sh -c touch% /tmp/x", "-u/tmp/x", "--upload-pack=touch /tmp/x", "fd::3", "ftp://example.org/a", "https://", "javascript:alert(1)",
    "ssh://-oProxyCommand=touch/x", "https://-x@-h/", "http://\nexample.org/", "", "notaurl", "https://[::1",
])  # fmt: skip
def test_addresses_that_git_must_not_be_given_are_refused(url: str) -> None:
    with pytest.raises(SourceError) as caught:
        checked_url(url)
    assert caught.value.hint


@pytest.mark.parametrize("url", [
    "https://github.com/acme/widget", "http://example.org/a.git", "ssh://git@example.org:22/a.git", "git@github.com:acme/widget.git",
    "git://example.org/a", "file:///srv/a",
])  # fmt: skip
def test_addresses_that_people_use_are_taken(url: str) -> None:
    assert checked_url(url) == url


@pytest.mark.parametrize(
    "name", ["-x", "--upload-pack=x", "a..b", "a b", "a:b", "a^", "", "/a", "a/", "a.lock", "@{1}", "a\nb", "x" * 300]
)
def test_names_that_are_no_tags_are_refused(name: str) -> None:
    with pytest.raises(SourceError):
        checked_ref(name)


@pytest.mark.parametrize("name", ["v1.0", "release/2.0", "1.0.0-rc.1", "v1.0+build", "한글"])
def test_names_that_are_tags_are_taken(name: str) -> None:
    assert checked_ref(name) == name


def test_a_missing_tag_or_branch_is_an_error_that_names_it(upstream: Upstream, mirror_of: Mirrors) -> None:
    upstream.commit({"a.md": "a\n"})
    mirror = mirror_of(upstream.url)
    for fetch, name in ((mirror.fetch_tag, "tag v9"), (mirror.fetch_branch, "branch v9")):
        with pytest.raises(SourceError) as caught:
            fetch("v9")
        assert caught.value.message.endswith(f"has no {name}.")


def test_a_missing_repository_is_an_error_without_the_password(mirror_of: Mirrors, tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        mirror_of(f"file://{tmp_path}/nowhere").fetch_default()
    assert "nowhere" in caught.value.message
    with pytest.raises(SourceError) as caught:
        mirror_of("http://user:secret@127.0.0.1:9/x").fetch_default()
    assert "secret" not in caught.value.message


def test_a_tag_that_names_no_commit_is_an_error(upstream: Upstream, mirror_of: Mirrors) -> None:
    upstream.commit({"a.md": "a\n"})
    upstream.git("tag", "folder", "HEAD^{tree}")
    upstream.git("tag", "file", "HEAD:a.md")
    for tag in ("folder", "file"):
        with pytest.raises(SourceError, match=f"has a tag {tag}, but it leads to no commit"):
            mirror_of(upstream.url).fetch_tag(tag)


def test_an_empty_repository_has_no_branch_to_read(upstream: Upstream, mirror_of: Mirrors) -> None:
    with pytest.raises(SourceError) as caught:
        mirror_of(upstream.url).fetch_default()
    assert caught.value.message.endswith("has no branch to read.")


def test_a_fetch_that_brings_too_much_is_stopped(upstream: Upstream, mirror_of: Mirrors) -> None:
    upstream.commit({"big.bin": os.urandom(3 << 20)})
    mirror = mirror_of(upstream.url)
    mirror.fetch_branch("trunk")
    upstream.commit({"bigger.bin": os.urandom(30 << 20)})
    with pytest.raises(SourceError) as caught:
        mirror_of(upstream.url, FetchLimits(60, 1)).fetch_branch("trunk")
    assert "library.fetch_mb" in str(caught.value.hint)


def test_a_fetch_that_takes_too_long_is_stopped(mirror_of: Mirrors) -> None:
    import socket

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(SourceError) as caught:
            mirror_of(f"git://127.0.0.1:{silent.getsockname()[1]}/x", FetchLimits(0.5, 100)).fetch_default()
    assert "took longer than 0.5 seconds" in caught.value.message


# --- what killed runs, other processes and failing disks leave


FETCHING = """
import sys
from pathlib import Path
from kebab.sources.git_mirror import GitMirror
from kebab.sources.git_mirror import FetchLimits
tree = GitMirror(Path(sys.argv[1]), sys.argv[2], FetchLimits(60, 100)).fetch_branch("trunk")
with tree.reading() as blobs:
    print(sorted((file.path, blobs.read(file)) for file in tree.files()))
"""


def fetching_process(folder: Path, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", FETCHING, str(folder), url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """A zombie process does not count as running."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return bool(state) and not state.startswith("Z")


@pytest.fixture
def stuck_server(isolated_home: Path, tmp_path: Path) -> Path:
    """A server whose repositories answer, but never send what is fetched. The yielded file exists once a client waits."""
    waiting, hook = tmp_path / "waiting", tmp_path / "pack-objects-hook"
    hook.write_text(f"#!/bin/sh\necho $$ > {waiting}.new && mv {waiting}.new {waiting}\nexec sleep 600\n")
    hook.chmod(0o755)
    (isolated_home / ".gitconfig").write_text(f"[uploadpack]\n  packObjectsHook = {hook}\n")
    return waiting


def server_recovers(isolated_home: Path) -> None:
    (isolated_home / ".gitconfig").unlink()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("had_fetched", [False, True])
def test_after_a_fetch_was_killed_in_the_middle_the_next_one_works(
    upstream: Upstream,
    mirror_of: Mirrors,
    tmp_path: Path,
    stuck_server: Path,
    isolated_home: Path,
    how: signal.Signals,
    had_fetched: bool,
) -> None:
    upstream.commit({"a.md": "one\n"})
    if had_fetched:
        hook = (isolated_home / ".gitconfig").read_text()
        server_recovers(isolated_home)
        mirror_of(upstream.url).fetch_branch("trunk")
        (isolated_home / ".gitconfig").write_text(hook)
        upstream.commit({"a.md": "two\n"})
    process = fetching_process(tmp_path / "mirror.git", upstream.url)
    wait_until(stuck_server.exists)
    assert list((tmp_path / "mirror.git").glob("**/*.lock"))
    process.send_signal(how)
    process.communicate()
    server_recovers(isolated_home)
    assert contents(mirror_of(upstream.url)) == {"a.md": b"two\n" if had_fetched else b"one\n"}
    wait_until(lambda: not is_running(int(stuck_server.read_text())))


def test_after_a_fetch_exceeded_its_time_limit_the_next_one_works(
    upstream: Upstream, mirror_of: Mirrors, stuck_server: Path, isolated_home: Path
) -> None:
    upstream.commit({"a.md": "one\n"})
    with pytest.raises(SourceError, match="took longer"):
        mirror_of(upstream.url, FetchLimits(1, 100)).fetch_branch("trunk")
    server_recovers(isolated_home)
    assert contents(mirror_of(upstream.url)) == {"a.md": b"one\n"}


def _only_head(mirror: Path) -> None:
    for path in sorted(mirror.rglob("*"), reverse=True):
        if path.name != "HEAD":
            path.rmdir() if path.is_dir() else path.unlink()


def _locks(mirror: Path) -> None:
    for name in ("refs/kebab/default.lock", "shallow.lock", "config.lock", "packed-refs.lock"):
        (mirror / name).touch()


def _empty_packs(mirror: Path) -> None:
    for path in (mirror / "objects").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "locks": _locks,
    "only HEAD": _only_head,
    "torn config": lambda mirror: (mirror / "config").write_text("[core"),
    "torn shallow": lambda mirror: (mirror / "shallow").write_text("0123\n"),
    "torn ref": lambda mirror: (mirror / "refs/kebab/default").write_text(""),
    "empty objects": _empty_packs,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("moved", [False, True])
def test_a_damaged_mirror_is_cloned_again(
    upstream: Upstream, mirror_of: Mirrors, tmp_path: Path, damage: str, moved: bool
) -> None:
    upstream.commit({"a.md": "one\n"}, tag="tmp_1")
    contents(mirror_of(upstream.url), "tmp_1")
    assert contents(mirror_of(upstream.url)) == {"a.md": b"one\n"}
    DAMAGES[damage](tmp_path / "mirror.git")
    if moved:
        upstream.commit({"a.md": "two\n"})
    assert contents(mirror_of(upstream.url)) == {"a.md": b"two\n" if moved else b"one\n"}


def test_a_mirror_with_an_unreadable_file_is_not_used_again(
    upstream: Upstream, mirror_of: Mirrors, tmp_path: Path
) -> None:
    upstream.commit({"a.md": "one\n"})
    tree = mirror_of(upstream.url).fetch_branch("trunk")
    files = tree.files()
    _empty_packs(tmp_path / "mirror.git")
    with tree.reading() as blobs, pytest.raises(SourceError, match="could not read"):
        blobs.read(files[0])
    del tree
    assert contents(mirror_of(upstream.url)) == {"a.md": b"one\n"}


def test_a_mirror_is_kept_when_its_repository_is_gone(upstream: Upstream, mirror_of: Mirrors, tmp_path: Path) -> None:
    upstream.commit({"a.md": "one\n"})
    contents(mirror_of(upstream.url))
    made = (tmp_path / "mirror.git").stat().st_ino
    upstream.folder.rename(tmp_path / "elsewhere")
    with pytest.raises(SourceError, match="git fetch failed"):
        contents(mirror_of(upstream.url))
    assert (tmp_path / "mirror.git").stat().st_ino == made


def test_several_processes_fetch_one_repository_one_after_the_other(upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit({f"{number}.bin": os.urandom(1 << 18) for number in range(8)})
    processes = [fetching_process(tmp_path / "cache" / "mirror.git", upstream.url) for _ in range(4)]
    said = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, said
    assert len({output for output, _ in said}) == 1


def test_waiting_too_long_for_another_fetch_is_an_error(upstream: Upstream, mirror_of: Mirrors, tmp_path: Path) -> None:
    upstream.commit({"a.md": "one\n"})
    with (tmp_path / "mirror.git.fetching").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(SourceError, match="Another process") as caught:
            mirror_of(upstream.url, FetchLimits(0.3, 100)).fetch_branch("trunk")
        assert "library.fetch_seconds" in str(caught.value.hint)


# --- room


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


def test_a_repository_within_the_size_limit_can_be_fetched_again(
    upstream: Upstream, mirror_of: Mirrors, tmp_path: Path
) -> None:
    """Two states together exceed the limit, so only the newest one may count."""
    limits = FetchLimits(60, 5)
    for _ in range(4):
        data = os.urandom(3 << 20)
        upstream.commit({"big.bin": data})
        assert contents(mirror_of(upstream.url, limits)) == {"big.bin": data}
        assert megabytes(tmp_path / "mirror.git") < 5


def test_old_states_of_branches_are_dropped(upstream: Upstream, mirror_of: Mirrors, tmp_path: Path) -> None:
    for _ in range(4):
        upstream.commit({"big.bin": os.urandom(1 << 20)})
        contents(mirror_of(upstream.url, FetchLimits(60, 4)))
    assert megabytes(tmp_path / "mirror.git") < 2.5


def test_files_that_are_being_read_are_neither_dropped_nor_deleted(
    upstream: Upstream, mirror_of: Mirrors, tmp_path: Path
) -> None:
    url = upstream.url
    place = library_cache(tmp_path)
    data = os.urandom(1 << 20)
    upstream.commit({"big.bin": data})
    tree = library_tree(origin_of(url), None, None, Settings(), place)
    mirror = next((place / "repositories").glob("*.git"))
    upstream.commit({"big.bin": os.urandom(1 << 20)})
    GitMirror(mirror, url, FetchLimits(60, 3)).fetch_default()
    assert forget_mirror(url, place) is False
    with tree.reading() as blobs:
        assert [blobs.read(file) for file in tree.files()] == [data]
    del tree, blobs
    assert forget_mirror(url, place) is True
    assert list((place / "repositories").iterdir()) == []
    assert forget_mirror(url, place) is True


# --- whatever git can clone


def test_a_commit_of_no_branch_is_read_where_it_is_checked_out(upstream: Upstream, mirror_of: Mirrors) -> None:
    first = upstream.commit({"a.md": "one\n"})
    upstream.commit({"a.md": "two\n"})
    upstream.git("checkout", "--quiet", "--detach", first)
    assert mirror_of(upstream.url).fetch_default().commit == first


def test_repositories_with_longer_ids_are_read(mirror_of: Mirrors, tmp_path: Path, upstream: Upstream) -> None:
    upstream.commit({"a.md": "short\n"})
    mirror_of(upstream.url).fetch_default()
    (upstream.folder / ".git").rename(tmp_path / "old")
    upstream.git("init", "--quiet", "--initial-branch=trunk", "--object-format=sha256")
    long = upstream.commit({"a.md": "long\n"}, tag="v1")
    assert len(long) == 64
    for _ in range(2):
        assert contents(mirror_of(upstream.url)) == {"a.md": b"long\n"}
    assert mirror_of(upstream.url).tags() == ["v1"]
    assert contents(mirror_of(upstream.url), "v1") == {"a.md": b"long\n"}


# --- passwords


@pytest.mark.parametrize(("url", "shown"), [
    ("https://user:secret@host/x", "https://host/x"),
    ("https://user:p@secret@host/x", "https://host/x"),
    ("https://user:p/secret@host/x", "https://…"),
    ("https://user:p@/secret@host/x", "https://…"),
    ("https://user:12/secret@host/x", "https://…"),
    ("https://user:p?secret@host/x", "https://…"),
    ("https://user:p#secret@host/x", "https://…"),
    ("https://secret@host:80/x", "https://host:80/x"),
    ("ftp://user:secret@host", "ftp://host"),
    ("https://host/@scope/x", "https://host/@scope/x"),
    ("https://host/llms.txt?v=2&access_token=secret#top", "https://host/llms.txt?v=2&access_token=…#top"),
    ("https://user:secret@host/x?api-key=secret", "https://host/x?api-key=…"),
    ("git@github.com:acme/widget.git", "git@github.com:acme/widget.git"),
])  # fmt: skip
def test_an_address_is_shown_without_name_and_password(url: str, shown: str) -> None:
    assert shown_address(url) == shown


@pytest.mark.parametrize("url", [
    "ftp://user:secret@host/x", "https://user:p@secret@", "https://user:p/secret@host/x", "https://user:secret@/x", "https://user:secret@[::1",
    "https://user:secret@host:port/x", "https://user:secret\x01@host/x", "https://user:secret@127.0.0.1:9/x", "http://a:p@secret@127.0.0.1:9/x",
    "https://user:secret@127.0.0.1:9/llms.txt", "https://user:p@secret@127.0.0.1:9/x.zip", "https://user:secret@host/",
])  # fmt: skip
def test_no_error_shows_a_password(url: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        library_tree(origin_of(url), None, None, Settings(), library_cache(tmp_path))
    assert "secret" not in f"{caught.value.message} {caught.value.hint} {caught.value.path}"


def test_no_error_about_tags_shows_a_password(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        check_tags(origin_of("http://user:p@secret@127.0.0.1:9/x"), ["v1"], Settings(), library_cache(tmp_path))
    assert "secret" not in caught.value.message


def library_cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"
