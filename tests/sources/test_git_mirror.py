"""Fetching states of a repository with real git: what is read, what is refused, and that git is never led astray."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kebab.core.errors import SourceError
from kebab.sources.git_mirror import GitMirror, checked_ref, checked_url
from kebab.sources.web import FetchLimits

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
    upstream.commit({"README.md": "# One\n", "docs/안내.md": "# 안내\n", "empty.txt": "", "bin.dat": b"\0\1\n"}, tag="v1.0")
    second = upstream.commit({"README.md": "# Two\n"})
    mirror = mirror_of(upstream.url)
    assert mirror.default_branch() == "trunk"
    assert mirror.tags() == ["v1.0"]
    assert contents(mirror) == {"README.md": b"# Two\n", "docs/안내.md": "# 안내\n".encode(), "empty.txt": b"", "bin.dat": b"\0\1\n"}
    assert contents(mirror, "v1.0")["README.md"] == b"# One\n"
    assert mirror.fetch_branch("trunk").commit == second


def test_all_versions_share_one_mirror_and_the_keys_of_equal_files(upstream: Upstream, mirror_of: Mirrors, tmp_path: Path) -> None:
    upstream.commit({"same.md": "same\n", "other.md": "one\n"}, tag="v1")
    upstream.commit({"other.md": "two\n"}, tag="v2")
    mirror = mirror_of(upstream.url)
    first, second = ({file.path: file.key for file in mirror.fetch_tag(tag).files()} for tag in ("v1", "v2"))
    assert first["same.md"] == second["same.md"]
    assert first["other.md"] != second["other.md"]
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".git")] == ["mirror.git"]


def test_a_moved_branch_is_followed_and_history_is_left_behind(upstream: Upstream, mirror_of: Mirrors) -> None:
    for number in range(5):
        upstream.commit({"a.md": f"{number}\n"})
    mirror = mirror_of(upstream.url)
    assert contents(mirror) == {"a.md": b"4\n"}
    assert mirror.run("rev-list", "--count", "refs/kebab/default").strip() == b"1"
    upstream.commit({"a.md": "5\n"})
    assert contents(mirror) == {"a.md": b"5\n"}


def test_links_and_submodules_lead_elsewhere_and_are_left_out(upstream: Upstream, mirror_of: Mirrors, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("name", ["-x", "--upload-pack=x", "a..b", "a b", "a:b", "a^", "", "/a", "a/", "a.lock", "@{1}", "a\nb", "x" * 300])
def test_names_that_are_no_tags_are_refused(name: str) -> None:
    with pytest.raises(SourceError):
        checked_ref(name)


@pytest.mark.parametrize("name", ["v1.0", "release/2.0", "1.0.0-rc.1", "v1.0+build", "한글"])
def test_names_that_are_tags_are_taken(name: str) -> None:
    assert checked_ref(name) == name


def test_a_tag_or_branch_that_is_not_there_is_named(upstream: Upstream, mirror_of: Mirrors) -> None:
    upstream.commit({"a.md": "a\n"})
    mirror = mirror_of(upstream.url)
    for fetch, name in ((mirror.fetch_tag, "tag v9"), (mirror.fetch_branch, "branch v9")):
        with pytest.raises(SourceError) as caught:
            fetch("v9")
        assert caught.value.message.endswith(f"has no {name}.")


def test_a_repository_that_is_not_there_is_a_clear_error_without_a_password(mirror_of: Mirrors, tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        mirror_of(f"file://{tmp_path}/nowhere").default_branch()
    assert "nowhere" in caught.value.message
    with pytest.raises(SourceError) as caught:
        mirror_of("http://user:secret@127.0.0.1:9/x").default_branch()
    assert "secret" not in caught.value.message


def test_an_empty_repository_has_no_branch_to_read(upstream: Upstream, mirror_of: Mirrors) -> None:
    with pytest.raises(SourceError) as caught:
        mirror_of(upstream.url).default_branch()
    assert caught.value.message.endswith("has no branch to read.")


def test_what_brings_too_much_is_stopped(upstream: Upstream, mirror_of: Mirrors) -> None:
    upstream.commit({"big.bin": os.urandom(3 << 20)})
    mirror = mirror_of(upstream.url)
    mirror.fetch_branch("trunk")
    upstream.commit({"bigger.bin": os.urandom(30 << 20)})
    with pytest.raises(SourceError) as caught:
        mirror_of(upstream.url, FetchLimits(60, 1)).fetch_branch("trunk")
    assert "library.fetch_mb" in str(caught.value.hint)


def test_what_takes_too_long_is_stopped(mirror_of: Mirrors) -> None:
    import socket

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(SourceError) as caught:
            mirror_of(f"git://127.0.0.1:{silent.getsockname()[1]}/x", FetchLimits(0.5, 100)).default_branch()
    assert "took longer than 0.5 seconds" in caught.value.message
