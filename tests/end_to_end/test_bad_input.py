"""Every failure gives one clear sentence with a hint, the documented exit code and error.v1 with --json, and loses
nothing.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kebab.store.sqlite import migrations

if TYPE_CHECKING:
    from tests.end_to_end.conftest import User

READING = [
    ("search", "git"),
    ("list", "docs"),
    ("list", "sources"),
    ("list", "tags"),
    ("inspect", "doc", "git.md"),
    ("inspect", "chunk", "abcdef"),
    ("fetch", "doc", "git.md"),
    ("fetch", "chunk", "abcdef"),
    ("fetch", "span", "git.md#L1-L2"),
    ("verify",),
    ("schema",),
    ("backup", "copy.sqlite"),
]
WRITING = [("ingest", "."), ("index", "--rebuild-fts"), ("index", "--optimize"), ("source", "remove", "notes", "--yes")]


# --- paths


@pytest.mark.parametrize("path", ["nowhere", "nowhere/deep.md", "~nobody-of-that-name/notes", "x" * 300, "a/" * 3000])
def test_a_missing_path_is_an_error_and_becomes_no_source(user: User, path: str) -> None:
    user.write("a.md", "alpha")
    user.ingest()
    user.fails("ingest", path, code="source_error")
    assert [source["name"] for source in user.ask("list", "sources")["items"]] == ["notes"]
    assert user.found("alpha") == ["a.md"]


def test_a_path_that_may_not_be_entered_is_an_error(user: User) -> None:
    user.write("closed/a.md", "alpha")
    (user.notes / "closed").chmod(0)
    try:
        user.fails("ingest", user.notes / "closed" / "a.md", code="source_error")
    finally:
        (user.notes / "closed").chmod(0o755)


def test_one_missing_path_among_several_is_an_error_before_anything_is_indexed(user: User) -> None:
    user.write("a.md", "alpha")
    user.fails("ingest", user.notes, "nowhere", code="source_error")
    assert not user.database.exists() or user.ask("list", "sources")["items"] == []


@pytest.mark.parametrize(
    "text",
    [
        "# Night\n\nLog:\n" + "\n".join(f"2026-03-01T02:12:{i % 60:02} worker INFO request {i * 7919} ok" for i in range(4000)) + "\n---\n\ntapir\n",
        "# " + "x " * 150_000 + "\n\ntapir\n",
        "---\ntitle: " + "word " * 50_000 + "\n---\n# x\n\ntapir\n",
        "---\n" + "a: b\n" * 50_000 + "---\n# tapir\n",
        "---\ntags: [" + ", ".join(f"tag{i}" for i in range(30_000)) + "]\n---\ntapir\n",
    ],
    ids=["a pasted log above a rule", "heading", "title", "repeated keys", "tags"],
)  # fmt: skip
def test_very_long_titles_and_headings_are_stored_once(user: User, text: str) -> None:
    """Regression: a database 500 times as large as the file."""
    file = user.write("long.md", text)
    user.ingest()
    assert user.database.stat().st_size < 8 * file.stat().st_size + 300_000
    (hit,) = user.ask("search", "tapir", "-k", "1")["hits"]
    assert len(json.dumps(hit)) < 12_000


def test_an_unreadable_file_is_one_line_in_the_report(user: User) -> None:
    user.write("a.md", "alpha")
    secret = user.write("secret.md", "hidden treasure")
    secret.chmod(0)
    report = user.ingest()
    assert user.counts(report) == {"added": 1}
    assert [(entry["path"], entry["code"]) for entry in report["failed"]] == [("secret.md", "unreadable")]
    secret.chmod(0o644)
    assert user.counts(user.ingest()) == {"added": 1, "unchanged": 1}


def test_a_file_that_became_unreadable_stays_searchable(user: User) -> None:
    secret = user.write("secret.md", "hidden treasure")
    user.ingest()
    secret.write_text("another treasure")
    secret.chmod(0)
    report = user.ingest()
    assert user.counts(report) == {}
    assert [entry["path"] for entry in report["failed"]] == ["secret.md"]
    assert user.found("hidden") == ["secret.md"]


def test_something_that_is_neither_file_nor_folder_is_an_error_and_no_source(user: User) -> None:
    os.mkfifo(user.notes / "pipe")
    user.fails("ingest", user.notes / "pipe", code="source_error")
    assert user.ask("list", "sources")["items"] == []


UNREADABLE_RULES: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "device": lambda rules: rules.symlink_to("/dev/zero"),
    "long": lambda rules: rules.write_text("*.log\n" * 100_000),
}


@pytest.mark.parametrize("kind", UNREADABLE_RULES)
@pytest.mark.parametrize("name", [".gitignore", ".kebabignore", ".git/info/exclude"])
def test_a_folder_whose_ignore_rules_cannot_be_read_stays_as_it_was_indexed(user: User, name: str, kind: str) -> None:
    """Regression: kb waited for the pipe for ever, and filled the memory with the device until it was aborted."""
    user.write("a.md", "heron")
    folder = "sub [1]{x}"
    user.write(f"{folder}/b.md", "quagga")
    user.ingest()
    rules = user.notes / folder / name
    rules.parent.mkdir(parents=True, exist_ok=True)
    UNREADABLE_RULES[kind](rules)
    user.write(f"{folder}/c.md", "okapi")
    user.write("sub/d.md", "okapi")
    report = user.ingest()
    assert user.counts(report) == {"added": 1, "unchanged": 1}
    assert user.skipped(report) == {"unreadable_rules": [folder]}
    assert user.found("quagga") == [f"{folder}/b.md"]
    assert user.found("okapi", env={"KEBAB_SEARCH_FRESHNESS": "check"}) == ["sub/d.md"]
    rules.unlink()
    assert user.ingest()["added"] == 1
    UNREADABLE_RULES[kind](user.notes / ".gitignore")
    assert "ingest.ignore_files" in user.fails("ingest", user.notes, code="source_error").err


def test_stdin_needs_a_title_and_text(user: User) -> None:
    user.fails("ingest", "-", code="usage", input=b"text")
    user.fails("ingest", "-", "--title", " ", code="usage", input=b"text")
    user.fails("ingest", "-", "other", "--title", "T", code="usage", input=b"text")
    user.fails("ingest", "-", "--title", "T", code="parse_error", input=b"\0\1\2binary")


# --- the database


@pytest.mark.parametrize(
    "command", [("search", "git"), ("list", "docs"), ("backup", "x"), *WRITING, ("reset", "--yes")], ids=" ".join
)
def test_a_folder_as_db_is_refused(user: User, command: tuple[str, ...]) -> None:
    user.fails("--db", user.notes, *command, code="store_error")
    assert list(user.notes.iterdir()) == []


def test_a_folder_as_db_makes_doctor_unhealthy(user: User) -> None:
    done = user.run("--db", user.notes, "doctor", "--json")
    assert done.code == 3
    assert not done.json()["healthy"]


@pytest.mark.parametrize("command", [*READING, ("index", "--rebuild-fts"), ("index", "--optimize")], ids=" ".join)
def test_a_named_db_that_does_not_exist_is_not_found(user: User, command: tuple[str, ...]) -> None:
    user.fails("--db", "none.sqlite", *command, code="not_found")
    assert list(user.folder.iterdir()) == []


def test_a_named_db_that_does_not_exist_makes_doctor_unhealthy(user: User) -> None:
    done = user.run("--db", "none.sqlite", "doctor", "--json")
    assert done.code == 3
    assert list(user.folder.iterdir()) == []


@pytest.mark.parametrize(
    "command", [("search", "x"), ("list", "docs"), ("verify",), ("schema",), ("doctor",)], ids=" ".join
)
def test_a_missing_default_db_is_an_empty_corpus(user: User, command: tuple[str, ...]) -> None:
    answer = user.ask(*command)
    if command[0] == "search":
        assert answer["hits"] == []
        assert "empty_corpus" in [notice["code"] for notice in answer["notices"]]
    assert not user.database.exists()


@pytest.mark.parametrize("command", [("search", "x"), ("list", "docs"), ("doctor",)], ids=" ".join)
@pytest.mark.parametrize("state", ["empty file", "file without tables"])
def test_a_first_ingest_killed_at_its_start_leaves_an_empty_corpus(
    user: User, command: tuple[str, ...], state: str
) -> None:
    user.database.parent.mkdir(parents=True)
    user.database.touch()
    if state == "file without tables":
        with user.open() as connection:
            connection.pragma("journal_mode", "wal")
    user.ask(*command)
    user.write("a.md", "alpha")
    user.ingest()
    assert user.found("alpha") == ["a.md"]


@pytest.fixture
def indexed(user: User) -> User:
    for number in range(30):
        user.write(f"{number}.md", f"# Note {number}\n\n" + f"alpha beta number{number} " * 300)
    user.ingest()
    return user


@pytest.mark.parametrize("command", [("search", "git"), ("list", "docs"), ("backup", "x"), *WRITING], ids=" ".join)
def test_a_db_of_a_newer_version_is_refused_and_left_alone(
    reader: User, tmp_path: Path, command: tuple[str, ...]
) -> None:
    newer = tmp_path / "newer.sqlite"
    shutil.copy(reader.database, newer)
    with reader.open(newer) as connection:
        connection.pragma("user_version", migrations.LATEST + 1)
    before = newer.read_bytes()
    reader.fails("--db", newer, *command, code="too_new")
    assert newer.read_bytes() == before


def test_doctor_names_a_newer_version(reader: User, tmp_path: Path) -> None:
    newer = tmp_path / "newer.sqlite"
    shutil.copy(reader.database, newer)
    with reader.open(newer) as connection:
        connection.pragma("user_version", migrations.LATEST + 1)
    done = reader.run("--db", newer, "doctor", "--json")
    assert done.code == 3
    assert "newer" in done.out


def damaged(user: User, path: Path, *, first_byte: int) -> Path:
    shutil.copy(user.database, path)
    with path.open("r+b") as handle:
        size = handle.seek(0, os.SEEK_END)
        handle.seek(first_byte)
        handle.write(b"\xee" * (size - first_byte))
    return path


@pytest.mark.parametrize("command", [*READING, *WRITING], ids=" ".join)
def test_every_command_reports_a_corrupt_db(reader: User, tmp_path: Path, command: tuple[str, ...]) -> None:
    """The first page of the file is intact, so that only real reads meet the damage."""
    refused_as_corrupt(reader, damaged(reader, tmp_path / "bad.sqlite", first_byte=8192), command)


@pytest.mark.parametrize("command", [("search", "git"), ("ingest", ".")], ids=" ".join)
@pytest.mark.parametrize("first_byte", [0, 200], ids=["from the start", "from the schema on"])
def test_an_overwritten_db_is_reported_as_corrupt(
    reader: User, tmp_path: Path, command: tuple[str, ...], first_byte: int
) -> None:
    refused_as_corrupt(reader, damaged(reader, tmp_path / "bad.sqlite", first_byte=first_byte), command)


def refused_as_corrupt(reader: User, file: Path, command: tuple[str, ...]) -> None:
    before = file.read_bytes()
    done = reader.run("--db", file, *command, "--json")
    assert done.code == 2, done.out + done.err
    assert done.json()["code"] == "corrupt", done.out + done.err
    assert done.json()["hint"]
    assert "Traceback" not in done.err
    assert file.read_bytes() == before


@pytest.mark.parametrize("first_byte", [0, 200, 8192])
def test_doctor_finds_a_corrupt_db(reader: User, tmp_path: Path, first_byte: int) -> None:
    done = reader.run("--db", damaged(reader, tmp_path / "bad.sqlite", first_byte=first_byte), "doctor", "--json")
    assert done.code == 3, done.out + done.err
    answer = done.json()
    assert not answer["healthy"]
    assert all(check["hint"] for check in answer["checks"] if not check["ok"])


def test_a_corrupt_db_can_be_reset_and_filled_again(indexed: User) -> None:
    damaged(indexed, indexed.base / "bad.sqlite", first_byte=0).replace(indexed.database)
    indexed.fails("search", "alpha", code="corrupt")
    indexed.ask("reset", "--yes")
    assert indexed.counts(indexed.ingest()) == {"added": 30}


def test_a_text_index_that_was_dropped_is_named_and_rebuilt(indexed: User) -> None:
    with indexed.open() as connection:
        connection.execute("DROP TABLE chunks_fts")
    done = indexed.fails("search", "alpha", code="schema_altered")
    assert "--rebuild-fts" in done.json()["hint"]
    assert indexed.run("doctor").code == 3
    indexed.ask("index", "--rebuild-fts")
    assert len(indexed.found("alpha")) == 30
    assert indexed.run("doctor").code == 0
    indexed.check()


def test_garbage_in_the_text_index_is_named_and_rebuilt(indexed: User) -> None:
    with indexed.open() as connection:
        connection.execute("UPDATE chunks_fts_data SET block = x'deadbeefdeadbeef'")
    done = indexed.fails("search", "alpha", code="corrupt")
    assert "--rebuild-fts" in done.json()["hint"]
    indexed.ask("index", "--rebuild-fts")
    assert len(indexed.found("alpha")) == 30
    indexed.check()


def test_a_stale_text_index_is_found_by_doctor(indexed: User) -> None:
    with indexed.open() as connection:
        connection.execute("INSERT INTO chunks_fts(chunks_fts) VALUES ('delete-all')")
    done = indexed.run("doctor", "--json")
    assert done.code == 3
    assert [check["name"] for check in done.json()["checks"] if not check["ok"]] == ["text index"]


# --- options


@pytest.mark.parametrize(
    ("arguments", "valid"),
    [
        (("--type", "spreadsheet"), ["pdf", "markdown", "code", "note"]),
        (("--mode", "psychic"), ["lexical", "vector", "hybrid"]),
        (("--match", "most"), ["auto", "all", "any"]),
        (("--sort", "size"), ["relevance", "date"]),
        (("--trust-min", "high"), ["primary", "secondary", "generated"]),
        (("--after", "yesterdayish"), ["2026-01-31"]),
        (("-k", "0"), ["1 to 1000"]),
        (("-k", "many"), []),
        (("--offset", "-1"), ["0 to"]),
        (("--per-doc", "0"), ["1 to"]),
        (("--max-tokens", "0"), ["1 to"]),
        (("--min-score", "much"), []),
        (("--no-such-option",), []),
        (("--bulk",), []),
        (("--fts-only", "--vec-only"), []),
        (("--fts-only", "--mode", "vector"), []),
        (("--cursor", "nonsense"), []),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_unknown_option_value_is_an_error_that_lists_the_valid_ones(
    reader: User, arguments: tuple[str, ...], valid: list[str]
) -> None:
    code = "stale_cursor" if "--cursor" in arguments else "usage"
    done = reader.fails("search", "git", *arguments, code=code)
    assert all(word in done.err for word in valid)


def test_an_unknown_command_is_an_error(reader: User) -> None:
    assert "kb search" in reader.fails("serach", "git", code="usage").err


def test_vectors_that_do_not_exist_are_an_error(reader: User) -> None:
    reader.fails("search", "git", "--vec-only", code="vectors_off")


def test_an_unknown_source_or_document_is_not_an_empty_answer(reader: User) -> None:
    assert "notes" in reader.fails("search", "git", "--source", "elsewhere", code="not_found").err
    reader.fails("search", "git", "--doc", "nowhere.md", code="not_found")


@pytest.mark.parametrize(
    "query",
    ["'git AND'", "'(git'", "'\"git'", "'nocolumn : git'", "'*git'", "'{text title : x'",
     "'" + "(" * 500 + "git" + ")" * 500 + "'", "'" + " OR ".join(f"(a{n} AND b)" for n in range(500)) + "x NOT'"],
)  # fmt: skip
def test_invalid_raw_fts5_is_an_invalid_query(reader: User, query: str) -> None:
    reader.fails("search", query, code="invalid_query")


# --- arguments that are not UTF-8

NOT_UTF8 = b"a\xff\xfeb"


@pytest.mark.parametrize(
    "arguments",
    [(b"search", NOT_UTF8), (b"search", b'"' + NOT_UTF8 + b'"'), (b"search", b"git", b"--tag", NOT_UTF8, b"--tags", NOT_UTF8),
     (b"search", b"git", b"--path", NOT_UTF8, b"--lang", NOT_UTF8), (b"search", b"git", b"--exclude-tag", NOT_UTF8, b"--exclude-path", NOT_UTF8)],
    ids=repr,
)  # fmt: skip
def test_a_search_with_bytes_that_are_no_text_finds_nothing_and_says_so(
    reader: User, arguments: tuple[bytes, ...]
) -> None:
    done = reader.run(*arguments, "--json")
    assert done.code == 0, done.out + done.err
    assert "Traceback" not in done.err
    done.json()


@pytest.mark.parametrize(
    "arguments",
    [(b"search", b"git", b"--source", NOT_UTF8), (b"search", b"git", b"--doc", NOT_UTF8), (b"inspect", b"doc", NOT_UTF8),
     (b"search", b"git", b"--format", NOT_UTF8), (b"fetch", b"doc", NOT_UTF8), (b"fetch", b"span", NOT_UTF8 + b"#L1-L2"), (b"inspect", b"chunk", NOT_UTF8)],
    ids=repr,
)  # fmt: skip
def test_a_key_with_bytes_that_are_no_text_is_not_found(reader: User, arguments: tuple[bytes, ...]) -> None:
    reader.fails(*arguments, code="not_found")


def test_a_db_whose_name_is_no_text_is_a_clear_error(reader: User) -> None:
    done = reader.run("list", "docs", "--db", NOT_UTF8, "--json")
    assert done.code == 2
    assert done.json()["code"] in ("not_found", "store_error")
    assert "Traceback" not in done.err


def test_a_folder_with_a_name_that_is_not_utf8_causes_no_defect(user: User) -> None:
    user.write(NOT_UTF8 + b"/a.md", "alpha")
    done = user.run("ingest", os.fsencode(user.notes) + b"/" + NOT_UTF8, "--json")
    assert "Traceback" not in done.err
    assert done.json()["schema_version"] == "ingest_report.v1" or done.json()["code"] != "internal"


def test_a_title_that_is_not_utf8_causes_no_defect(user: User) -> None:
    done = user.run(b"ingest", b"-", b"--title", NOT_UTF8, b"--json", input=b"some text")
    assert "Traceback" not in done.err
    assert done.json()["schema_version"] == "ingest_report.v1" or done.json()["code"] != "internal"


# --- content


MALFORMED = [
    "---\ntitle: [unclosed\n---\n", "---\n{{ template }}\n---\n", "---\n\ttabs: no\n---\n", "+++\ntitle = unquoted\n+++\n", "---\n- a\n- list\n---\n",
    "---\n*alias\n---\n", "---\ntitle: never closed\n", "---\na: &a [*a]\n---\n", "---\n? [1, 2]\n: x\n---\n",
    "---\ntags: {a: b}\ndate: never\ntrust: much\n---\n", "---\na: " + "[" * 5000 + "\n---\n", "---\na: 2026-99-99\nb: 0x_\nc: .nan\n---\n",
]  # fmt: skip


def test_a_document_with_malformed_front_matter_is_indexed(user: User) -> None:
    for number, matter in enumerate(MALFORMED):
        user.write(f"{number:02}.md", matter + "# Heading\n\nthe body stays searchable\n")
    report = user.ingest()
    assert user.counts(report) == {"added": len(MALFORMED)}
    assert report["failed"] == []
    assert user.found("searchable") == [f"{number:02}.md" for number in range(len(MALFORMED))]


def test_malformed_front_matter_is_reported_with_its_file(user: User) -> None:
    user.write("bad.md", "---\ntitle: [unclosed\n---\nbody\n")
    warning = user.ingest()["warnings"][0]
    assert (warning["path"], warning["code"]) == ("bad.md", "parse")
    assert "front matter" in warning["message"]
    user.write("bad.md", "---\ntitle: [unclosed\n---\nbody two\n")
    assert "bad.md" in user.run("ingest", user.notes).out


# --- the disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk needs root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(user: User, files: int, first: int = 0) -> None:
    for number in range(first, first + files):
        user.write(f"{number:03}.md", f"# Note {number}\n\n" + " ".join(f"word{number}x{i}" for i in range(1000)))


def test_a_full_disk_is_reported_and_nothing_is_lost(user: User, small_disk: Path) -> None:
    fill(user, 3)
    database = small_disk / "kebab.sqlite"
    user.ingest("--db", database, user.notes)
    before = user.chunks(database)
    fill(user, 200, first=3)
    user.fails("ingest", "--db", database, user.notes, code="disk_full")
    after = user.chunks(database)
    assert set(before) <= set(after)
    user.check(database)
    assert user.found("word1x5", "--db", str(database)) == ["001.md"]
    larger = user.base / "larger"
    larger.mkdir()
    for file in small_disk.glob("kebab.sqlite*"):  # the log beside the file is part of it
        shutil.move(file, larger)
    database = larger / "kebab.sqlite"
    assert user.ingest("--db", database, user.notes)["added"] == 203 - len({path for _, path, _ in after})
    user.check(database)


@pytest.mark.parametrize(
    "command",
    [("ingest", "NOTES"), ("index", "--optimize"), ("index", "--rebuild-fts"), ("search", "word1x5")],
    ids=" ".join,
)
def test_an_already_full_disk_is_a_clear_error_or_has_no_effect(
    user: User, small_disk: Path, command: tuple[str, ...]
) -> None:
    fill(user, 3)
    database = small_disk / "kebab.sqlite"
    user.ingest("--db", database, user.notes)
    before = user.chunks(database)
    fill(user, 3, first=3)
    with (small_disk / "ballast").open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(b"\0" * 4096)
        except OSError:
            pass
    arguments = [str(user.notes) if argument == "NOTES" else argument for argument in command]
    if command[0] == "search":
        assert user.found("word1x5", "--db", str(database)) == ["001.md"]
    else:
        user.fails("--db", database, *arguments, code="disk_full")
    (small_disk / "ballast").unlink()
    assert user.chunks(database) == before
    user.check(database)


def test_a_backup_to_a_full_disk_is_a_clear_error_and_leaves_nothing(user: User, small_disk: Path) -> None:
    fill(user, 200)
    user.ingest()
    user.fails("backup", small_disk / "copy.sqlite", code="disk_full")
    assert list(small_disk.iterdir()) == []


def test_a_backup_to_a_read_only_disk_is_a_clear_error(user: User, small_disk: Path) -> None:
    fill(user, 1)
    user.ingest()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    user.fails("backup", small_disk / "copy.sqlite", code="store_error")


def test_a_limit_on_the_size_of_files_is_a_clear_error_and_nothing_is_lost(user: User) -> None:
    fill(user, 3)
    user.ingest()
    before = user.chunks()
    fill(user, 100, first=3)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))

    done = user.run("ingest", user.notes, "--json", before=limit)
    assert done.code == 2, done.out + done.err
    assert done.json()["code"] in ("disk_full", "store_error")
    assert "Traceback" not in done.err
    assert set(before) <= set(user.chunks())
    user.check()
    assert user.ingest()["added"] + len({path for _, path, _ in before}) <= 103
    assert len({path for _, path, _ in user.chunks()}) == 103


# --- permissions


def test_a_config_file_without_permission_is_not_to_be_overwritten(user: User) -> None:
    config = user.home / "config" / "kebab" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[search]\n")
    config.chmod(0)
    done = user.fails("config", "show", code="invalid_config")
    assert "Permission denied" in done.err
    assert "permissions" in done.err
    assert "--force" not in done.err


def test_an_ingest_without_files_creates_no_database(user: User) -> None:
    user.fails("ingest", code="usage")
    assert not user.database.exists()


def test_search_in_a_read_only_folder_works_with_a_notice(indexed: User) -> None:
    folder = indexed.database.parent
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    try:
        answer = indexed.ask("search", "alpha")
        assert answer["returned"] == 10
        assert "read_only" in [notice["code"] for notice in answer["notices"]]
        indexed.ask("list", "docs")
        (about_text,) = [check for check in indexed.ask("doctor")["checks"] if check["name"] == "text index"]
        assert "NOT checked" in about_text["message"]
        indexed.fails("ingest", indexed.notes, code="read_only")
        indexed.fails("index", "--optimize", code="read_only")
        indexed.fails("reset", "--yes", code="read_only")
    finally:
        folder.chmod(0o755)
    assert len(indexed.chunks()) >= 30


def test_a_db_that_may_not_be_read_is_a_clear_error(indexed: User) -> None:
    indexed.database.chmod(0)
    try:
        for command in (("search", "alpha"), ("ingest", str(indexed.notes)), ("list", "docs")):
            done = indexed.run(*command, "--json")
            assert done.code == 2, done.out + done.err
            assert done.json()["code"] in ("store_error", "read_only")
            assert "Traceback" not in done.err
    finally:
        indexed.database.chmod(0o644)


def test_a_db_in_a_folder_that_may_not_be_entered_is_a_clear_error(indexed: User) -> None:
    indexed.database.parent.chmod(0)
    try:
        for command in (("search", "alpha"), ("ingest", str(indexed.notes)), ("list", "docs")):
            done = indexed.run(*command, "--json")
            assert done.code == 2, done.out + done.err
            assert done.json()["code"] in ("store_error", "read_only")
            assert "Traceback" not in done.err
    finally:
        indexed.database.parent.chmod(0o755)


def test_a_backup_overwrites_a_file_only_with_force(indexed: User) -> None:
    copy = indexed.base / "copy.sqlite"
    indexed.ask("backup", copy)
    indexed.fails("backup", copy, code="store_error")
    indexed.ask("backup", copy, "--force")
    indexed.fails("backup", indexed.database, "--force", code="store_error")
    indexed.fails("backup", indexed.notes, code="store_error")
    indexed.fails("backup", indexed.base / "no" / "copy.sqlite", code="store_error")
    assert indexed.found("alpha", "--db", str(copy)) == indexed.found("alpha")


# --- a reader that goes away


@pytest.mark.parametrize("command", ["search alpha -k 30 --full-text", "search alpha --json", "--help"])
def test_a_closed_pipe_gives_no_error_message(indexed: User, command: str) -> None:
    process = indexed.start(*command.split())
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()  # before anything was written
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait() in (0, 141)
    assert err.decode() == ""


def test_head_ends_a_long_output_quietly(indexed: User) -> None:
    import shlex
    import sys

    line = f"{shlex.quote(sys.executable)} -m kebab search alpha -k 30 --full-text | head -1"
    done = subprocess.run(
        ["sh", "-c", line], env=indexed.environment, cwd=indexed.folder, capture_output=True, check=True
    )
    assert done.stdout.startswith(b"1. [")
    assert done.stderr == b""
