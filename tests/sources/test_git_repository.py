"""The git repository of a folder: repositories made by git, and files that git never writes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kebab.core.documents import Repository
from kebab.sources.git_repository import checked_out, repository_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="makes repositories with git")


def git(folder: Path, *arguments: str) -> str:
    """Runs git without the settings of the user."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    named = [
        "-c",
        "user.name=Tester",
        "-c",
        "user.email=tester@example.org",
        "-c",
        "protocol.file.allow=always",
        *arguments,
    ]
    return subprocess.run(
        ["git", *named], cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit on main."""
    root = tmp_path / "work"
    (root / "docs" / "deep").mkdir(parents=True)
    (root / "docs" / "a.md").write_text("alpha")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


def hand_made(root: Path, **files: str) -> Path:
    """A folder with a `.git` of these files and a HEAD."""
    for name, text in {"HEAD": "ref: refs/heads/main\n", **files}.items():
        path = root / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@needs_git
def test_every_folder_of_a_work_tree_knows_its_branch_and_commit(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    for folder in (repository, repository / "docs", repository / "docs" / "deep"):
        assert repository_of(folder) == Repository("work", "main", commit)


@needs_git
def test_a_commit_and_a_checkout_change_the_state_and_reading_does_not(
    repository: Path,
) -> None:
    seen = [checked_out(repository / "docs")]
    for arguments in (
        ["commit", "-qm", "second", "--allow-empty"],
        ["checkout", "-qb", "other"],
        ["checkout", "-q", "--detach"],
    ):
        git(repository, *arguments)
        assert checked_out(repository / "docs") not in seen
        git(repository, "log")
        seen.append(checked_out(repository / "docs"))
        assert checked_out(repository / "docs") == seen[-1]
    git(repository, "pack-refs", "--all")
    git(repository, "checkout", "-q", "main")
    assert checked_out(repository / "docs") not in seen


def test_outside_of_a_repository_nothing_is_checked_out(tmp_path: Path) -> None:
    assert checked_out(tmp_path) is None


@needs_git
def test_packed_references_are_read(repository: Path) -> None:
    git(repository, "branch", "main-2")
    git(repository, "tag", "-a", "v1", "-m", "annotated")
    git(repository, "pack-refs", "--all", "--prune")
    assert not (repository / ".git" / "refs" / "heads" / "main").exists()
    assert repository_of(repository) == Repository("work", "main", git(repository, "rev-parse", "HEAD"))


@needs_git
def test_a_branch_may_have_slashes_and_other_scripts(repository: Path) -> None:
    git(repository, "switch", "-qc", "feature/검색")
    assert repository_of(repository) == Repository("work", "feature/검색", git(repository, "rev-parse", "HEAD"))


@needs_git
def test_a_detached_head_has_a_commit_and_no_branch(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")
    assert repository_of(repository) == Repository("work", None, git(repository, "rev-parse", "HEAD"))


@needs_git
def test_a_linked_work_tree_has_a_branch_of_its_own_and_the_name_of_the_origin(
    repository: Path, tmp_path: Path
) -> None:
    git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    (tmp_path / "linked" / "b.md").write_text("beta")
    git(tmp_path / "linked", "add", ".")
    git(tmp_path / "linked", "commit", "-qm", "second")
    side = git(tmp_path / "linked", "rev-parse", "HEAD")
    assert repository_of(tmp_path / "linked") == Repository("linked", "side", side)
    git(repository, "remote", "add", "origin", "git@example.org:team/product.git")
    git(repository, "pack-refs", "--all")
    assert repository_of(tmp_path / "linked") == Repository("product", "side", side)
    assert repository_of(repository) == Repository("product", "main", git(repository, "rev-parse", "HEAD"))


@needs_git
def test_a_submodule_is_a_repository_of_its_own(repository: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q", "-b", "trunk")
    git(outer, "submodule", "--quiet", "add", str(repository), "inner")
    found = repository_of(outer / "inner" / "docs")
    assert found == Repository("work", "main", git(repository, "rev-parse", "HEAD"))
    assert repository_of(outer) == Repository("outer", "trunk", None)


@needs_git
def test_an_empty_repository_has_a_branch_and_no_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    assert repository_of(tmp_path) == Repository(tmp_path.name, "main", None)


@needs_git
def test_an_origin_written_by_git_is_read(repository: Path) -> None:
    git(repository, "remote", "add", "upstream", "https://example.org/other.git")
    git(repository, "remote", "add", "origin", "https://example.org/a;b/this#1.git")
    git(repository, "remote", "set-url", "origin", "https://example.org/team/this.git")
    found = repository_of(repository)
    assert found is not None
    assert found.name == "this"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://example.org/team/product.git", "product"),
        ("https://example.org/team/product/", "product"),
        ("https://example.org/team/my.product", "my.product"),
        ("ssh://git@example.org:2222/team/product.git", "product"),
        ("git@example.org:product.git", "product"),
        ("git@example.org:team/product", "product"),
        ("/srv/git/product.git", "product"),
        ("/srv/git/product/.git", "product"),
        ("../product", "product"),
        ("C:\\\\repositories\\\\product", "product"),
        ("file:///srv/git/%ED%95%9C%EA%B8%80.git", "한글"),
        ('"https://example.org/product.git" # a comment', "product"),
        ("https://example.org/product.git ; a comment", "product"),
        ("https://user:s3cret@example.org/product.git", "product"),
        ("https://user:s3/cret@example.org/product.git", "product"),
        ("https://example.org/product.git?token=s3cret", "product"),
        # No valid name: the folder's name is used, and no part of the url.
        ("https://s3cret@example.org", "here"),
        ("https://user:s3cret@example.org/", "here"),
        ("https://user:s3/cret@example.org", "here"),
        ("user:s3cret@example.org", "here"),
        ("https://[s3cret", "here"),
        ("ext::connect --token=s3cret", "here"),
        ("git@example.org:", "here"),
        ("https://example.org/..", "here"),
        ("", "here"),
        ("x" * 5000, "here"),
    ],
)
def test_only_the_name_of_an_origin_is_kept(tmp_path: Path, url: str, name: str) -> None:
    found = repository_of(
        hand_made(tmp_path / "here", config=f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {url}\n')
    )
    assert found == Repository(name, "main", None)


@pytest.mark.parametrize(
    "config",
    [
        '[Remote "origin"] URL=x/name.git',
        '[remote "origin"]\n; url = x/no\n# url = x/no\n  url = x/\\\nname.git\n',
        '[remote "origin"]\r\n\turl = x/name\r\n',
    ],
)
def test_the_config_is_read_as_git_reads_it(tmp_path: Path, config: str) -> None:
    found = repository_of(hand_made(tmp_path, config=config))
    assert found is not None
    assert found.name == "name"


@pytest.mark.parametrize(
    "config",
    ['[remote "Origin"]\nurl = x/no', '[remote "other"]\nurl = x/no', "url = x/no", '[branch "origin"]\nurl = x/no'],
)
def test_other_sections_are_not_the_origin(tmp_path: Path, config: str) -> None:
    found = repository_of(hand_made(tmp_path / "here", config=config))
    assert found == Repository("here", "main", None)


def test_outside_of_any_repository_there_is_none(tmp_path: Path) -> None:
    assert repository_of(tmp_path) is None
    assert repository_of(tmp_path / "not" / "there") is None


def test_the_innermost_valid_repository_counts(tmp_path: Path) -> None:
    outer = hand_made(tmp_path / "outer")
    inner = hand_made(outer / "inner")
    assert repository_of(inner) == Repository("inner", "main", None)
    (inner / ".git" / "HEAD").unlink()
    assert repository_of(inner) == Repository("outer", "main", None)


@pytest.mark.parametrize(
    "pointer", ["", "gitdir:", "gitdir: nowhere", "nonsense", "gitdir: \0", "gitdir: " + "x" * 5000, "\xff\xfe"]
)
def test_a_git_file_that_points_nowhere_is_no_repository(tmp_path: Path, pointer: str) -> None:
    (tmp_path / ".git").write_text(pointer)
    assert repository_of(tmp_path) is None


@pytest.mark.parametrize(
    "head",
    [
        "",
        "nonsense",
        "ref:",
        "ref: ",
        "ref: HEAD",
        "ref: ../../secret",
        "ref: refs/../../secret",
        "ref: refs/heads/.invalid",
        COMMIT[:-1],
    ],
)
def test_a_malformed_head_gives_neither_branch_nor_commit(tmp_path: Path, head: str) -> None:
    (tmp_path / "secret").write_text(COMMIT)
    assert repository_of(hand_made(tmp_path / "here", HEAD=head)) == Repository("here", None, None)


@pytest.mark.parametrize("branch", ["", "nonsense", "ref: refs/heads/main", "ref: refs/heads/lost", COMMIT + "0"])
def test_a_branch_that_leads_nowhere_has_no_commit(tmp_path: Path, branch: str) -> None:
    assert repository_of(hand_made(tmp_path, **{"refs/heads/main": branch})) == Repository(tmp_path.name, "main", None)


def test_a_reference_may_lead_to_another(tmp_path: Path) -> None:
    files = {
        "refs/heads/main": "ref: refs/heads/other\n",
        "packed-refs": f"# pack-refs with: peeled\n{COMMIT} refs/heads/other\n^{COMMIT}\n",
    }
    assert repository_of(hand_made(tmp_path, **files)) == Repository(tmp_path.name, "main", COMMIT)


def test_sha256_commits_are_read(tmp_path: Path) -> None:
    commit = "ab" * 32
    assert repository_of(hand_made(tmp_path, HEAD=commit)) == Repository(tmp_path.name, None, commit)


def test_a_pipe_in_place_of_a_file_does_not_block(tmp_path: Path) -> None:
    hand_made(tmp_path)
    for name in ("config", "packed-refs", "commondir"):
        os.mkfifo(tmp_path / ".git" / name)
    assert repository_of(tmp_path) == Repository(tmp_path.name, "main", None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.dictionaries(
        st.sampled_from(["HEAD", "config", "packed-refs", "commondir", "refs/heads/main"]), st.binary(max_size=200)
    )
)
def test_no_content_of_git_files_raises(tmp_path: Path, files: dict[str, bytes]) -> None:
    hand_made(tmp_path / "here")
    for name, data in files.items():
        path = tmp_path / "here" / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    found = repository_of(tmp_path / "here")
    assert found is None or found.name
    shutil.rmtree(tmp_path / "here")
