"""Ingesting a folder again and again by the real command: new, changed, moved, deleted, unreadable and strange files."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.end_to_end.conftest import User


# --- edit, rename, delete, re-add, duplicate


def test_a_second_ingest_of_an_unchanged_folder_changes_nothing(user: User) -> None:
    user.write("a.md", "alpha")
    assert user.counts(user.ingest()) == {"added": 1}
    before = user.chunks()
    assert user.counts(user.ingest()) == {"unchanged": 1}
    assert user.counts(user.ask("ingest")) == {"unchanged": 1}  # without a path: every known source
    assert user.chunks() == before


def test_an_edit_is_found_and_the_old_text_is_not(user: User) -> None:
    file = user.write("a.md", "# Title\n\nthe old wording\n")
    user.write("b.md", "untouched")
    user.ingest()
    file.write_text("# Title\n\nthe new wording\n")
    assert user.counts(user.ingest()) == {"updated": 1, "unchanged": 1}
    assert user.found("old") == []
    assert user.found("new") == ["a.md"]


def test_an_edit_that_keeps_size_and_time_of_a_recent_file_is_noticed(user: User) -> None:
    file = user.write("a.md", "aaaa")
    user.ingest()
    status = file.stat()
    file.write_text("bbbb")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert user.counts(user.ingest()) == {"updated": 1}


def test_a_file_with_only_a_new_time_counts_as_unchanged(user: User) -> None:
    file = user.write("a.md", "alpha")
    os.utime(file, (1_600_000_000, 1_600_000_000))
    user.ingest()
    os.utime(file, (1_700_000_000, 1_700_000_000))
    assert user.counts(user.ingest()) == {"unchanged": 1}


def test_a_renamed_file_is_found_under_its_new_name_only(user: User) -> None:
    file = user.write("old.md", "alpha")
    user.ingest()
    file.rename(user.notes / "new.md")
    assert user.counts(user.ingest()) == {"added": 1, "removed": 1}
    assert user.found("alpha") == ["new.md"]


def test_a_deleted_file_is_gone_and_comes_back_with_its_old_ids(user: User) -> None:
    file = user.write("a.md", "alpha")
    user.ingest()
    before = user.ask("inspect", "doc", "a.md")
    file.unlink()
    assert user.counts(user.ingest()) == {"removed": 1}
    assert user.found("alpha") == []
    user.write("a.md", "alpha")
    assert user.counts(user.ingest()) == {"added": 1}
    after = user.ask("inspect", "doc", "a.md")
    assert after["doc_id"] == before["doc_id"]
    assert [chunk["chunk_id"] for chunk in after["chunks"]] == [chunk["chunk_id"] for chunk in before["chunks"]]


def test_a_duplicate_file_is_a_document_of_its_own(user: User) -> None:
    user.write("a.md", "alpha")
    copy = user.write("copy/a.md", "alpha")
    user.ingest()
    assert user.found("alpha") == ["a.md", "copy/a.md"]
    copy.unlink()
    user.ingest()
    assert user.found("alpha") == ["a.md"]


def test_a_file_that_becomes_a_folder_and_a_file_again_is_indexed_as_what_it_is(user: User) -> None:
    file = user.write("thing", "alpha")
    user.ingest()
    file.unlink()
    user.write("thing/inside.md", "beta")
    assert user.counts(user.ingest()) == {"added": 1, "removed": 1}
    (user.notes / "thing" / "inside.md").unlink()
    (user.notes / "thing").rmdir()
    user.write("thing", "gamma")
    user.ingest()
    assert [path for _, path, _ in user.chunks()] == ["thing"]


def test_ingesting_a_folder_below_a_source_updates_only_that_folder(user: User) -> None:
    user.write("a/one.md", "alpha")
    user.write("b/two.md", "beta")
    user.ingest()
    (user.notes / "a" / "one.md").unlink()
    (user.notes / "b" / "two.md").unlink()
    assert user.counts(user.ingest(user.notes / "a")) == {"removed": 1}
    assert user.found("beta") == ["b/two.md"]
    assert [source["name"] for source in user.ask("list", "sources")["items"]] == ["notes"]


# --- several sources


def test_equal_paths_in_two_sources_are_separate_documents(user: User) -> None:
    one, two = user.home / "one" / "docs", user.home / "two" / "docs"
    user.write("a.md", "alpha from one", folder=one)
    user.write("a.md", "alpha from two", folder=two)
    user.ingest(one)
    user.ingest(two)
    assert [source["name"] for source in user.ask("list", "sources")["items"]] == ["docs", "docs-2"]
    hits = user.ask("search", "alpha")["hits"]
    assert sorted((hit["source"], hit["doc_path"]) for hit in hits) == [("docs", "a.md"), ("docs-2", "a.md")]
    (one / "a.md").write_text("alpha edited")
    assert user.counts(user.ask("ingest")) == {"updated": 1, "unchanged": 1}
    (one / "a.md").unlink()
    assert user.counts(user.ask("ingest")) == {"unchanged": 1, "removed": 1}
    assert user.chunks() == [("docs-2", "a.md", "alpha from two")]


@pytest.mark.parametrize(
    "command", [("fetch", "doc", "a.md"), ("fetch", "span", "a.md#L1-L1"), ("inspect", "doc", "a.md")], ids=" ".join
)
def test_an_ambiguous_path_is_an_error_that_lists_both(user: User, command: tuple[str, ...]) -> None:
    for name in ("one", "two"):
        user.write("a.md", f"alpha from {name}", folder=user.home / name)
        user.ingest(user.home / name)
    done = user.fails(*command, code="ambiguous")
    assert "one:a.md" in done.err
    assert "two:a.md" in done.err
    assert user.run(*command[:2], f"two:{command[2]}").out.count("alpha from two") == (
        1 if command[0] == "fetch" else 0
    )


def test_the_filter_doc_accepts_every_name_that_inspect_accepts(user: User) -> None:
    user.write("a.md", "alpha")
    user.write("b.md", "alpha")
    user.ingest()
    doc_id = user.ask("inspect", "doc", "a.md")["doc_id"]
    for key in (doc_id, doc_id[:8], "a.md", "notes:a.md"):
        assert user.found("alpha", "--doc", key) == ["a.md"], key


def test_a_source_keeps_the_name_of_its_first_ingest(user: User) -> None:
    user.write("a.md", "alpha")
    user.ingest(user.notes, "--name", "My notes")
    assert user.ask("search", "alpha")["hits"][0]["source"] == "My notes"
    user.fails("ingest", user.notes, "--name", "Other", code="source_error")


def test_a_single_file_source_becomes_part_of_its_folder_when_that_is_ingested(user: User) -> None:
    file = user.write("deep/a.md", "alpha")
    user.ingest(file)
    assert user.found("alpha") == ["a.md"]
    report = user.ingest()
    assert report["absorbed"] == ["a.md"]
    assert user.found("alpha") == ["deep/a.md"]


def test_a_single_file_source_that_its_folder_ignores_is_kept(user: User) -> None:
    file = user.write(".private.md", "alpha")
    user.write("b.md", "beta")
    user.ingest(file)
    user.ingest()
    assert user.found("alpha") == [".private.md"]


def test_a_folder_inside_a_folder_can_be_a_source_of_its_own(user: User) -> None:
    user.write("sub/a.md", "alpha")
    user.write("b.md", "alpha")
    user.ingest(user.notes / "sub")
    report = user.ingest()
    assert user.skipped(report) == {"other_source": ["sub"]}
    assert sorted((source, path) for source, path, _ in user.chunks()) == [("notes", "b.md"), ("sub", "a.md")]


def test_a_source_can_be_forgotten_and_its_files_stay(user: User) -> None:
    other = user.home / "other"
    user.write("a.md", "alpha")
    user.write("a.md", "alpha", folder=other)
    user.ingest(user.notes)
    user.ingest(other)
    user.fails("source", "remove", "nowhere", "--yes", code="not_found")
    user.ask("source", "remove", "notes", "--yes")
    assert [source for source, _, _ in user.chunks()] == ["other"]
    assert (user.notes / "a.md").read_text() == "alpha"
    assert user.counts(user.ask("ingest")) == {"unchanged": 1}
    user.check()


# --- what must never be taken for deleted


def test_documents_stay_while_the_root_of_their_source_is_missing(user: User) -> None:
    user.write("a.md", "alpha")
    user.ingest()
    user.notes.rename(user.home / "moved")
    user.fails("ingest", code="source_error")
    user.fails("ingest", user.notes, code="source_error")
    assert user.found("alpha") == ["a.md"]
    assert user.run("doctor").code == 3
    (user.home / "moved").rename(user.notes)
    assert user.counts(user.ask("ingest")) == {"unchanged": 1}


def test_a_missing_root_does_not_keep_other_sources_from_being_read(user: User) -> None:
    user.write("a.md", "alpha")
    other = user.home / "zzz"
    user.write("b.md", "beta", folder=other)
    user.ingest(user.notes)
    user.ingest(other)
    user.notes.rename(user.home / "moved")
    user.write("c.md", "gamma", folder=other)
    assert user.run("ingest").code == 2
    assert user.found("gamma") == ["c.md"]
    assert user.found("alpha") == ["a.md"]


@pytest.mark.parametrize("mode", [0o000, 0o444, 0o111], ids=oct)
@pytest.mark.parametrize("folder", ["sub", "."])
def test_documents_of_an_unreadable_folder_stay(user: User, mode: int, folder: str) -> None:
    user.write("sub/a.md", "alpha")
    user.write("sub/deeper/b.md", "alpha")
    user.ingest()
    place = user.notes / folder
    place.chmod(mode)
    try:
        done = user.run("ingest", user.notes, "--json")
    finally:
        place.chmod(0o755)
    assert done.code in (0, 2)
    assert "Traceback" not in done.err
    if done.code == 0:
        report = done.json()
        assert report["removed"] == 0
        assert "unreadable" in user.skipped(report) or report["failed"]
    assert user.found("alpha") == ["sub/a.md", "sub/deeper/b.md"]


def test_a_file_that_is_now_ignored_is_removed_and_reported(user: User) -> None:
    user.write("a.md", "alpha")
    user.write("build/b.md", "alpha")
    user.ingest()
    user.write(".gitignore", "build/\n")
    report = user.ingest()
    assert user.counts(report) == {"unchanged": 1, "removed": 1}
    assert user.skipped(report)["ignored"] == ["build"]
    user.write(".gitignore", "")
    user.write(".kebabignore", "a.md\n")
    report = user.ingest()
    assert user.counts(report) == {"added": 1, "removed": 1}
    assert user.found("alpha") == ["build/b.md"]


def test_hidden_files_are_indexed_with_the_setting(user: User) -> None:
    user.write(".hidden/a.md", "alpha")
    user.write(".b.md", "alpha")
    report = user.ingest()
    assert user.skipped(report) == {"hidden": [".b.md", ".hidden"]}
    report = user.ingest(env={"KEBAB_INGEST_HIDDEN": "true"})
    assert user.counts(report) == {"added": 2}


# --- settings


def set_config(user: User, text: str) -> None:
    user.write("kebab/config.toml", text, folder=user.home / "config")


def test_files_are_indexed_again_after_a_change_of_a_chunking_setting_and_not_after_others(user: User) -> None:
    user.write("a.md", "\n\n".join(f"## Part {number}\n\n" + "\n\n".join(["word " * 30] * 4) for number in range(6)))
    user.ingest()
    chunks = len(user.chunks())
    set_config(user, "[search]\ndefault_k = 3\nsnippet_chars = 50\ntitle_weight = 2\n[store]\nlock_wait_s = 1\n")
    assert user.counts(user.ingest()) == {"unchanged": 1}
    set_config(user, "[chunking]\ntarget_tokens = 100\nmin_tokens = 10\n")
    assert user.counts(user.ingest()) == {"updated": 1}
    assert len(user.chunks()) > chunks
    assert user.counts(user.ingest()) == {"unchanged": 1}
    set_config(user, "")
    assert user.counts(user.ingest()) == {"updated": 1}
    assert len(user.chunks()) == chunks
    user.check()


def test_changing_the_korean_analysis_indexes_again_and_changes_the_index_version(user: User) -> None:
    user.write("ko.md", "# 안내\n\n문서를 검색했습니다. 형태소 분석.\n")
    user.ingest()
    before = user.ask("search", "검색")
    set_config(user, '[analysis]\nkorean = "morphemes"\n')
    stale = user.ask("search", "검색")
    assert "stale_index" in [notice["code"] for notice in stale["notices"]]
    assert stale["returned"] == 1
    assert stale["index_version"] == before["index_version"]
    report = user.ingest()
    assert user.counts(report) == {"unchanged": 1}
    assert report["reanalysed"] == 1
    after = user.ask("search", "검색하다")
    assert after["returned"] == 1
    assert after["index_version"] != before["index_version"]
    assert after["notices"] == [notice for notice in after["notices"] if notice["code"] == "vectors_off"]
    user.check()


# --- files that change, and files of every kind


def test_a_file_that_is_rewritten_during_ingest_is_indexed_as_one_version(user: User) -> None:
    """Every version repeats one marker, so a chunk with two markers would be a mixture."""
    code = """
import sys, itertools
for n in itertools.count():
    with open(sys.argv[1], "w") as f:
        for _ in range(40):
            f.write(f"marker{n % 97} " * 50 + "\\n\\n")
"""
    file = user.write("busy.md", "marker0 start")
    user.write("calm.md", "calm")
    writer = subprocess.Popen([sys.executable, "-c", code, str(file)])
    try:
        for _ in range(4):
            report = user.ingest()
            assert all(entry["code"] == "changing" for entry in report["failed"])
            markers = {
                word
                for _, path, text in user.chunks()
                if path == "busy.md"
                for word in text.split()
                if word.startswith("marker")
            }
            assert len(markers) <= 1, markers
            assert ("notes", "calm.md", "calm") in user.chunks()
    finally:
        writer.kill()
        writer.wait()
    file.write_text("marker42 the end")
    user.ingest()
    assert [text for _, path, text in user.chunks() if path == "busy.md"] == ["marker42 the end"]
    user.check()


def test_a_file_that_is_replaced_during_ingest_is_indexed_as_one_version(user: User) -> None:
    code = """
import sys, os, itertools
for n in itertools.count():
    with open(sys.argv[1] + ".new~", "w") as f:
        f.write(f"marker{n % 97} " * 2000)
    os.replace(sys.argv[1] + ".new~", sys.argv[1])
"""
    file = user.write("busy.md", "marker0 " * 2000)
    user.write(".gitignore", "*~")
    writer = subprocess.Popen([sys.executable, "-c", code, str(file)])
    try:
        for _ in range(3):
            user.ingest()
            words = [word for _, path, text in user.chunks() if path == "busy.md" for word in text.split()]
            assert len(words) in (0, 2000)
            assert len(set(words)) <= 1
    finally:
        writer.kill()
        writer.wait()


ENCODINGS: list[tuple[str, bytes, str]] = [
    ("crlf.md", "# 제목\r\n\r\n본문 alpha\r\n".encode(), "utf-8"),
    ("bom.md", b"\xef\xbb\xbf" + "# 제목\n\n본문 alpha\n".encode(), "utf-8"),
    ("utf16le.md", b"\xff\xfe" + "# 제목\n\n본문 alpha\n".encode("utf-16-le"), "utf-16"),
    ("utf16be.md", b"\xfe\xff" + "# 제목\n\n본문 alpha\n".encode("utf-16-be"), "utf-16"),
    ("cp949.md", "# 제목\n\n본문은 한국어로 쓴 alpha 문서입니다.\n".encode("cp949"), "cp949"),
    ("no-final-newline.txt", "본문 alpha".encode(), "utf-8"),
]


def test_files_of_every_encoding_are_cited_by_their_own_lines(user: User) -> None:
    for name, data, _ in ENCODINGS:
        user.write(name, data)
    user.ingest()
    assert user.found("본문 alpha") == sorted(name for name, _, _ in ENCODINGS)
    assert {item["doc_path"]: item["encoding"] for item in user.ask("list", "docs")["items"]} == {
        name: known for name, _, known in ENCODINGS
    }
    for hit in user.ask("search", "alpha", "--full-text", "--duplicates", "show")["hits"]:
        name, data, encoding = next(entry for entry in ENCODINGS if entry[0] == hit["doc_path"])
        text = data.decode({"utf-8": "utf-8-sig"}.get(encoding, encoding))
        lines = text.split("\n")
        citation = hit["citation"]
        cited = "\n".join(lines[citation["start"] - 1 : citation["end"]])
        assert hit["text"] in cited + "\n", name
        fetched = user.ask("fetch", "span", citation["uri"])["text"]
        assert fetched.rstrip("\n") == cited.rstrip("\n"), name


def test_a_file_with_one_line_of_fifty_megabytes_is_indexed(user: User) -> None:
    line = "".join(f"word{number % 5000} " for number in range(1000)) * 5600
    user.write("long.txt", line[: 50 * 1024 * 1024])
    report = user.ingest(timeout=300)
    assert user.counts(report) == {"added": 1}
    hit = user.ask("search", "word77", "-k", "1", "--full-text")["hits"][0]
    assert hit["citation"]["text"] == "long.txt:L1-L1"
    assert len(hit["text"]) < 5000


def test_strange_files_are_listed_in_the_report(user: User) -> None:
    user.write("good.md", "alpha")
    user.write("binary.dat", bytes(range(256)) * 40)
    user.write("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(200))
    user.write("latin1.txt", "Grüße aus Köln, çà et là, señor".encode("latin-1"))
    user.write("empty.md", "")
    user.write("blank.md", " \n\t\n")
    user.write("large.txt", "alpha " * 300_000)
    os.mkfifo(user.notes / "pipe")
    (user.notes / "loop").symlink_to(user.notes)
    (user.notes / "link.md").symlink_to(user.notes / "good.md")
    (user.notes / "dangling.md").symlink_to(user.notes / "nowhere")
    user.write(b"bad\xff\xfe.md", "alpha")
    user.write(b"dir\xff/inside.md", "alpha")
    user.write("\u0435\u0301/" + unicodedata.normalize("NFD", "한글 é.md"), "alpha")
    report = user.ingest(env={"KEBAB_INGEST_MAX_FILE_MB": "1"})
    assert user.counts(report) == {"added": 2}
    assert report["failed"] == []
    skipped = user.skipped(report)
    assert sorted(skipped) == ["bad_name", "binary", "empty", "encoding", "link", "special", "too_large"]
    assert skipped["binary"] == ["binary.dat", "picture.png"]
    assert skipped["empty"] == ["blank.md", "empty.md"]
    assert skipped["encoding"] == ["latin1.txt"]
    assert skipped["link"] == ["dangling.md", "link.md", "loop"]
    assert skipped["special"] == ["pipe"]
    assert skipped["too_large"] == ["large.txt"]
    assert len(skipped["bad_name"]) == 2
    assert all(entry["meaning"] and entry["count"] for entry in report["skipped"])
    name = unicodedata.normalize("NFC", "\u0435\u0301/한글 é.md")
    assert user.found("alpha") == sorted(["good.md", name])
    assert user.ask("fetch", "doc", name)["text"] == "alpha"
    assert user.ask("verify")["ok"] == 2
    again = user.ingest(env={"KEBAB_INGEST_MAX_FILE_MB": "1"})
    assert user.counts(again) == {"unchanged": 2}
    assert user.skipped(again) == skipped


def test_links_are_followed_on_request_and_loops_end(user: User) -> None:
    user.write("good.md", "alpha")
    (user.notes / "loop").symlink_to(user.notes)
    (user.notes / "link.md").symlink_to(user.notes / "good.md")
    (user.notes / "dangling.md").symlink_to(user.notes / "nowhere")
    report = user.ingest(env={"KEBAB_INGEST_FOLLOW_LINKS": "true"})
    assert user.counts(report) == {"added": 2}
    assert user.found("alpha") == ["good.md", "link.md"]


def test_a_file_that_became_binary_leaves_the_index(user: User) -> None:
    file = user.write("a.md", "alpha")
    user.ingest()
    file.write_bytes(b"\0\1\2")
    report = user.ingest()
    assert user.counts(report) == {"removed": 1}
    assert user.found("alpha") == []


def test_a_file_that_became_too_large_is_removed_from_the_index_and_reported(user: User) -> None:
    file = user.write("a.md", "alpha")
    user.ingest()
    file.write_text("alpha " * 300_000)
    report = user.ingest(env={"KEBAB_INGEST_MAX_FILE_MB": "1"})
    assert user.skipped(report) == {"too_large": ["a.md"]}
    assert user.counts(report) == {"removed": 1}


def test_the_size_limit_holds_for_a_single_file_too(user: User) -> None:
    file = user.write("large.txt", "alpha " * 300_000)
    report = user.ingest(file, env={"KEBAB_INGEST_MAX_FILE_MB": "1"})
    assert user.skipped(report) == {"too_large": ["large.txt"]}


def test_two_names_that_differ_only_in_unicode_form_are_one_document_and_one_skip(user: User) -> None:
    user.write(unicodedata.normalize("NFC", "é.md"), "alpha one")
    user.write(unicodedata.normalize("NFD", "é.md"), "alpha two")
    report = user.ingest()
    assert user.counts(report) == {"added": 1}
    assert list(user.skipped(report)) == ["same_name"]


def test_the_database_inside_the_folder_is_not_ingested(user: User) -> None:
    user.write("a.md", "alpha")
    report = user.ingest("--db", user.notes / "kebab.sqlite", user.notes)
    assert user.counts(report) == {"added": 1}
    assert user.skipped(report) == {}


def test_text_from_stdin_is_a_document(user: User) -> None:
    report = user.ingest("-", "--title", "Shopping", input="# List\n\nmilk and 우유\n".encode())
    assert user.counts(report) == {"added": 1}
    assert user.counts(user.ingest("-", "--title", "Shopping", input="# List\n\nmilk and 우유\n".encode())) == {
        "unchanged": 1
    }
    assert user.counts(user.ingest("-", "--title", "Shopping", input=b"# List\n\nbread\n")) == {"updated": 1}
    assert user.found("milk") == []
    hit = user.ask("search", "bread")["hits"][0]
    assert (hit["source"], hit["doc_path"], hit["doc_type"]) == ("stdin", "Shopping", "note")
    assert user.ask("verify")["ok"] == 1


# --- places and options


def test_a_folder_can_have_an_index_of_its_own(user: User) -> None:
    user.write("a.md", "alpha")
    user.write("sub/b.md", "beta")
    user.ask("init", "--here", cwd=user.notes)
    user.ingest(user.notes, cwd=user.notes)
    assert (user.notes / ".kebab" / "kebab.sqlite").is_file()
    assert not user.database.exists()
    assert user.found("beta", cwd=user.notes / "sub") == ["sub/b.md"]
    assert user.ask("search", "beta", cwd=user.home)["hits"] == []
    assert user.counts(user.ask("ingest", cwd=user.notes / "sub")) == {"unchanged": 2}


COMMANDS: list[tuple[str, ...]] = [
    ("search", "alpha"), ("list", "docs"), ("list", "sources"), ("list", "tags"), ("inspect", "doc", "a.md"), ("inspect", "chunk", "CHUNK"),
    ("fetch", "doc", "a.md"), ("fetch", "chunk", "CHUNK"), ("fetch", "span", "a.md#L1-L1"), ("verify",), ("schema",), ("doctor",), ("config", "show"),
    ("index", "--optimize"), ("index", "--rebuild-fts"), ("backup", "COPY"), ("ingest", "NOTES"), ("ingest",), ("init", "--force"), ("reset", "--yes"),
    ("migrate", "--to", "COPY"),
    ("similar", "a.md"), ("source", "describe", "notes", "letters"), ("source", "remove", "notes", "--yes"),
    ("list", "libraries"), ("lib", "list"), ("lib", "search", "widget"), ("lib", "docs", "/local/widget", "alpha"), ("lib", "refresh"),
    ("ask", "alpha here?"), ("eval", "suggest"), ("mcp", "install"),
    ("lib", "export", "/local/widget", "COPY"), ("lib", "add", "NOTES", "--id", "/a/b"), ("lib", "remove", "/local/widget", "--yes"),
]  # fmt: skip


def test_the_table_of_this_file_has_every_command(user: User) -> None:
    help_text = user.run("--help").out
    listed = help_text[help_text.index("Commands") : help_text.index("Example")]
    names = {line.split()[0] for line in listed.splitlines()[1:] if line.strip() and not line.startswith("   ")}
    assert names == {command[0] for command in COMMANDS} | {"watch", "serve"}, (
        "these never end; test_watch.py and tests/serving.py try them"
    )


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory, reader: User) -> Path:
    """A folder with its own database, which only an option names."""
    folder = tmp_path_factory.mktemp("elsewhere")
    reader.write("a.md", "---\ntags: [t]\n---\nalpha here\n", folder=folder / "notes")
    reader.ingest(folder / "notes", "--db", folder / "named.sqlite")
    reader.ask("lib", "add", folder / "notes", "--id", "/local/widget", "--db", folder / "named.sqlite")
    return folder


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_global_options_work_before_and_after_every_command(
    reader: User, elsewhere: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """The options --db, --config, --json and --quiet before the command, after it, and between group and subcommand."""
    database = tmp_path / "named.sqlite"
    config = tmp_path / "other.toml"
    config.write_text("[search]\ndefault_k = 7\n")
    shutil.copy(elsewhere / "named.sqlite", database)
    with reader.open(database) as connection:
        chunk = str(connection.execute("SELECT chunk_id FROM chunks WHERE id > 0").fetchall()[0][0])
    spelled = {"CHUNK": chunk, "COPY": str(tmp_path / "copy.sqlite"), "NOTES": str(elsewhere / "notes")}
    words = [spelled.get(word, word) for word in command]
    options = ["--db", str(database), "--config", str(config), "--json", "--quiet"]
    places = [[*options, *words], [*words, *options]]
    if command[0] in ("list", "inspect", "fetch", "config", "source", "lib", "eval", "mcp"):
        places.append([words[0], *options, *words[1:]])
    answers = []
    for arguments in places:
        (tmp_path / "copy.sqlite").unlink(missing_ok=True)
        if command[0] in ("reset", "source", "lib"):
            shutil.copy(elsewhere / "named.sqlite", database)
        if command[0] == "init":
            config.unlink()
        done = reader.run(*arguments)
        assert done.code == 0, done.out + done.err
        assert done.err == ""
        answers.append(done.json())
    assert len({answer["schema_version"] for answer in answers}) == 1
    for answer in answers:
        assert_it_used(command, answer, database, config)


def assert_it_used(command: tuple[str, ...], answer: Any, database: Path, config: Path) -> None:
    """Checks that the answer comes from the named database or config."""
    match command:
        case ("search", _):
            assert [hit["doc_path"] for hit in answer["hits"]] == ["a.md"]
        case ("ask", _):
            assert [cited["citation"]["path"] for cited in answer["citations"]] == ["a.md"]
        case ("mcp", "install"):
            assert str(database) in json.dumps(answer)
        case ("eval", "suggest"):
            assert answer["schema_version"] == "eval_suggestions.v1"
        case ("list", "docs"):
            assert [item["doc_path"] for item in answer["items"]] == ["a.md"]
        case ("list", "libraries") | ("lib", "list"):
            assert [item["library_id"] for item in answer["items"]] == ["/local/widget"]
        case ("lib", "search", _):
            assert [library["library_id"] for library in answer["libraries"]] == ["/local/widget"]
        case ("lib", "docs", *_):
            assert [snippet["content"] for snippet in answer["snippets"]] == ["alpha here"]
        case ("lib", "refresh"):
            assert answer["sources"] == ["/local/widget"]
        case ("lib", "add", *_):
            assert answer["sources"] == ["/a/b"]
        case ("list", kind):
            assert [item["name" if kind == "sources" else "tag"] for item in answer["items"]] == [
                "notes" if kind == "sources" else "t"
            ]
        case ("config", "show"):
            values = {item["key"]: item["value"] for item in answer["settings"]}
            assert (answer["config_file"], answer["database"], values["search.default_k"]) == (
                str(config),
                str(database),
                7,
            )
        case ("schema",):
            assert answer["stats"]["path"] == str(database)
        case ("doctor",):
            assert str(database) in json.dumps(answer)
        case ("verify",):
            assert (answer["documents"], answer["ok"]) == (1, 1)
        case ("init", _):
            assert config.is_file()
        case ("reset", _):
            assert not database.exists()
        case ("migrate", *_):
            assert answer["counts"]["documents"] == 1
        case ("ingest", *_):
            assert (answer["sources"], answer["unchanged"]) == (["notes"], 1)
        case ("inspect" | "fetch", *_):
            assert answer["doc_path"] == "a.md"
        case ("backup" | "index", *_):
            assert answer["paths"]
        case ("source", *_):
            assert "notes" in answer["message"]


@pytest.mark.parametrize(
    "command",
    [command for command in COMMANDS if command[0] not in ("init", "reset", "inspect", "fetch", "source")],
    ids=" ".join,
)
def test_a_broken_config_named_by_config_stops_every_command(
    reader: User, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """--config was ignored by one command after another in the past."""
    config = tmp_path / "broken.toml"
    config.write_text("[search]\ndefault_k = 0\n")
    done = reader.fails(*command, "--config", config, code="invalid_config")
    assert "search.default_k" in done.err
    assert str(config) in done.err


def test_quiet_prints_only_results_and_errors(reader: User) -> None:
    assert reader.run("search", "zzzz", "--quiet").err == ""
    assert reader.run("search", "zzzz").err != ""
    assert "Error" in reader.run("fetch", "doc", "nowhere", "--quiet").err


# --- Ctrl-C


@contextmanager
def held(file: Path) -> Iterator[Callable[[], bool]]:
    """Makes every reader of this file wait until the end of the block, and yields a function that tells whether one
    waits.
    """
    descriptor = os.open(file, os.O_RDONLY)
    fcntl.fcntl(
        descriptor, fcntl.F_SETSIG, signal.SIGURG
    )  # the one that nobody minds, instead of one that ends this process
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    try:
        yield lambda: fcntl.fcntl(descriptor, fcntl.F_GETLEASE) != fcntl.F_WRLCK
    finally:
        os.close(descriptor)


def test_ctrl_c_is_safe_and_the_next_run_goes_on(user: User) -> None:
    """The interrupt comes while the 71st file is read, on machines of any speed: one group of files is written, the
    next is not.
    """
    for number in range(100):
        user.write(
            f"{number:02}.md", f"# Note {number}\n\nalpha " + " ".join(f"w{number * i % 4999}" for i in range(1, 2000))
        )
    with held(user.notes / "70.md") as is_awaited:
        process = user.start("ingest", user.notes, "--json", "--progress", "json")
        while not is_awaited():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    report = json.loads(out)
    assert report["interrupted"] is True
    assert report["added"] == 71
    assert json.loads(err.splitlines()[-1])["event"] == "interrupted"
    assert b"Traceback" not in err
    user.check()
    assert len({path for _, path, _ in user.chunks()}) == report["added"]
    rest = user.ingest()
    assert rest["added"] == 29
    assert len({path for _, path, _ in user.chunks()}) == 100
