"""kb watch during many edits ends with an index equal to a new one."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kebab.store.sqlite.writer_lock import writer_lock

if TYPE_CHECKING:
    from tests.end_to_end.conftest import User


@contextmanager
def watching(user: User, *arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    process = user.start("watch", *arguments, "--json", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Waits until a condition holds; for long, because other tests run at the same time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.1)


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=Someone", "-c", "user.email=someone@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def save_by_rename(file: Path, text: str) -> None:
    """Saves a file by renaming another one, as vim and other editors do."""
    beside = file.with_name(f".{file.name}.swp")
    beside.write_text(text)
    beside.replace(file)


def test_an_afternoon_of_edits_ends_with_the_index_of_a_fresh_ingest(user: User, tmp_path: Path) -> None:
    notes = user.notes
    for number in range(8):
        user.write(f"part/{number}.md", f"# Note {number}\n\nfirst words of {number}\n")
    git(notes, "init", "-q", "-b", "main")
    git(notes, "add", ".")
    git(notes, "commit", "-qm", "first")
    git(notes, "checkout", "-qb", "other")
    user.write("part/1.md", "# Other\n\nthe branch says otherwise\n")
    user.write("only-here.md", "branchword\n")
    git(notes, "add", ".")
    git(notes, "commit", "-qm", "second")
    git(notes, "checkout", "-q", "main")
    with watching(user, notes):
        until(lambda: user.database.exists() and "part/0.md" in user.found("first"))
        user.write("new.md", "created afterwards")
        until(lambda: user.found("created") == ["new.md"])
        save_by_rename(notes / "part/0.md", "# Note 0\n\nsaved in another place\n")
        until(lambda: user.found("saved") == ["part/0.md"])
        (notes / "part/2.md").rename(notes / "part/renamed.md")
        (notes / "part/3.md").unlink()
        until(lambda: "part/renamed.md" in user.found("first") and "part/3.md" not in user.found("first"))
        (notes / "part").rename(notes / "moved")
        until(lambda: "moved/5.md" in user.found("first"))
        (notes / "moved").rename(notes / "part")
        git(notes, "checkout", "-qf", "other")
        until(lambda: user.found("branchword") == ["only-here.md"] and user.found("otherwise") == ["part/1.md"])
        git(notes, "checkout", "-q", "main")
        until(lambda: user.found("branchword") == [])
    user.check()
    fresh = tmp_path / "fresh.sqlite"
    user.run("--db", fresh, "ingest", notes)
    assert user.chunks() == user.chunks(fresh)


def test_a_single_file_is_watched_through_saves_by_rename(user: User) -> None:
    file = user.write("lone.md", "before")
    with watching(user, file):
        until(lambda: user.database.exists() and user.found("before") == ["lone.md"])
        for word in ("between", "after"):
            save_by_rename(file, word)
            until(lambda word=word: user.found(word) == ["lone.md"])  # type: ignore[misc]  # mypy cannot infer the default of a lambda


def test_a_database_inside_the_watched_folder_does_not_keep_it_busy(user: User) -> None:
    user.write("a.md", "alpha")
    database = user.notes / "kb.sqlite"
    process = user.start("--db", database, "watch", user.notes, "--json")
    assert process.stdout is not None
    assert process.stdout.readline(), "the report of the first ingest"
    time.sleep(3)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert out == b"", "and nothing after it"


def test_a_missing_path_is_an_immediate_error(user: User) -> None:
    user.fails("watch", user.home / "nowhere", code="source_error")


def test_a_folder_that_was_deleted_and_made_again_is_watched_again(user: User) -> None:
    """Regression: the system went on watching the folder that is gone."""
    user.write("a.md", "# Alpha\n\nokapi\n")
    with watching(user, user.notes):
        until(lambda: user.found("okapi") == ["a.md"])
        shutil.rmtree(user.notes)
        time.sleep(1)
        user.write("b.md", "# Beta\n\nfoxtrot\n")
        until(lambda: user.found("foxtrot") == ["b.md"])
        user.write("c.md", "# Gamma\n\nquokka\n")
        until(lambda: user.found("quokka") == ["c.md"])


def test_changes_during_another_write_are_indexed_afterwards(user: User) -> None:
    """Regression: the change was forgotten with the error."""
    user.write("a.md", "# Alpha\n\nokapi\n")
    user.environment["KEBAB_STORE_LOCK_WAIT_S"] = "0.2"
    with watching(user, user.notes):
        until(lambda: user.found("okapi") == ["a.md"])
        with writer_lock(user.database, wait_s=20, purpose="a test"):
            user.write("b.md", "# Beta\n\ncharlie\n")
            time.sleep(2)
            assert user.found("charlie") == []
        until(lambda: user.found("charlie") == ["b.md"], seconds=60)


def embedded(user: User) -> tuple[int, int]:
    """The number of chunks with a vector, and the number of all chunks."""
    stats = user.ask("schema")["stats"]
    return (stats["embedded_chunks"], stats["chunks"]) if stats else (0, 0)  # the file is there before its tables are


def test_an_edit_is_found_by_its_words_while_vectors_are_still_being_made(user: User, model_cache: Path) -> None:
    """Regression: it waited until all vectors were made."""
    user.environment.pop("KEBAB_EMBEDDING_MODEL")
    user.environment["XDG_CACHE_HOME"] = str(model_cache)
    for number in range(1500):
        user.write(f"{number}.md", f"# Note {number}\n\n" + f"Some words about the number {number}. " * 60)
    with watching(user, user.notes):
        until(lambda: user.database.exists() and embedded(user)[0] > 0, seconds=60)
        for word in ("okapi", "quokka"):
            user.write("edited.md", f"# Edited\n\n{word}\n")
            until(lambda word=word: user.found(word, "--mode", "lexical") == ["edited.md"])  # type: ignore[misc]  # as above
        some, chunks = embedded(user)
        assert 0 < some < chunks
        until(lambda: embedded(user)[0] > some, seconds=60)


def test_another_process_can_ingest_while_vectors_are_being_made_and_what_it_ingests_is_watched_too(
    user: User, model_cache: Path
) -> None:
    user.environment.pop("KEBAB_EMBEDDING_MODEL")
    user.environment["XDG_CACHE_HOME"] = str(model_cache)
    for number in range(1500):
        user.write(f"{number}.md", f"# Note {number}\n\n" + f"Some words about the number {number}. " * 60)
    user.ingest(user.notes, "--no-embed")
    with watching(user):
        until(lambda: embedded(user)[0] > 0, seconds=60)
        other = user.home / "other"
        user.write("first.md", "okapi", other)
        user.ingest(other, "--no-embed")
        user.write("second.md", "quokka", other)
        until(lambda: user.found("quokka", "--mode", "lexical") == ["second.md"])
        some, chunks = embedded(user)
        assert 0 < some < chunks


def test_a_missing_source_is_named_and_watched_once_it_appears(
    user: User,
) -> None:
    """Regression: one missing folder ended it."""
    user.write("a.md", "alpha")
    other = user.home / "other"
    user.write("b.md", "bravo", other)
    user.ingest(user.notes)
    user.ingest(other)
    away = other.rename(user.home / "away")
    process = user.start("watch")
    assert process.stderr is not None
    try:
        user.write("c.md", "charlie")
        until(lambda: user.found("charlie") == ["c.md"])
        assert user.found("bravo") == ["b.md"]
        user.write("d.md", "delta", away)
        away.rename(other)
        until(lambda: user.found("delta") == ["d.md"])
    finally:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert err.decode().count(f"There is no file or folder {other}. It is taken up when it appears.") == 1
    assert "other: added d.md (" in out.decode()


def test_a_source_that_is_forgotten_while_it_is_watched_stays_forgotten(user: User) -> None:
    user.write("a.md", "alpha")
    other = user.home / "other"
    user.write("b.md", "bravo", other)
    user.ingest(user.notes)
    user.ingest(other)
    with watching(user):
        user.write("c.md", "charlie")
        until(lambda: user.found("charlie") == ["c.md"])
        user.ask("source", "remove", "other", "--yes")
        user.write("b.md", "bravo again", other)
        user.write("d.md", "delta")
        until(lambda: user.found("delta") == ["d.md"])
        time.sleep(1)
        assert user.found("bravo") == []


def test_the_branch_and_commit_of_a_source_follow_what_is_checked_out(user: User) -> None:
    """Regression: a commit changes no file, so nobody looked."""

    def repository() -> tuple[str, str]:
        (source,) = user.ask("list", "sources")["items"]
        return source["repository"]["branch"], source["repository"]["commit"]

    user.write("part/a.md", "alpha")
    git(user.notes, "init", "-q", "-b", "main")
    git(user.notes, "add", ".")
    git(user.notes, "commit", "-qm", "first")
    with watching(user, user.notes / "part"):  # the folder of git is above it
        until(lambda: user.database.exists() and user.found("alpha") == ["a.md"])
        branch, first = repository()
        assert branch == "main"
        git(user.notes, "commit", "-qm", "second", "--allow-empty")
        until(lambda: repository()[1] != first)
        git(user.notes, "checkout", "-qb", "other")
        until(lambda: repository()[0] == "other")


def test_people_see_one_line_for_each_round_with_the_names_of_the_files(user: User) -> None:
    user.write("a.md", "alpha")
    process = user.start("watch", user.notes)
    try:
        until(lambda: user.database.exists() and user.found("alpha") == ["a.md"])
        time.sleep(1)  # until it watches
        user.write("a.md", "alpha and bravo")
        until(lambda: user.found("bravo") == ["a.md"])
        beside = user.home / "many"
        for number in range(8):
            user.write(f"{number}.md", f"charlie {number}", beside)
        beside.rename(user.notes / "many")
        until(lambda: len(user.found("charlie")) == 8)
    finally:
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    *report, updated, added = out.decode().splitlines()
    assert report[0].startswith("notes: 1 file, 1 chunk written")
    assert re.fullmatch(r"\d\d:\d\d:\d\d  notes: updated a\.md \(\d+\.\d s\)", updated)
    named = ", ".join(f"added many/{number}.md" for number in range(5))
    assert re.fullmatch(rf"\d\d:\d\d:\d\d  notes: {named} and 3 more \(\d+\.\d s\)", added)


def test_ctrl_c_ends_watch_in_the_middle_of_a_long_ingest(user: User) -> None:
    """Regression: the signal was remembered until all files were read."""
    for number in range(4000):
        user.write(f"{number}.md", f"# Note {number}\n\n" + f"Some words about the number {number}. " * 60)
    with watching(user, user.notes, "--no-embed"):
        until(lambda: user.database.exists() and (user.ask("schema")["stats"] or {"chunks": 0})["chunks"] > 0)
    assert 0 < len({path for _, path, _ in user.chunks()}) < 4000
    user.check()
