"""A file that crashes its parser or exceeds a limit fails alone."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import termios
import time
import zlib
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path

import pytest
from tests.parsing.pdf_bytes import make_pdf

import kebab
from kebab.core.errors import ParseError
from kebab.core.ports import BackgroundParser
from kebab.parsing.isolation import Limits, Parsers, Worker
from kebab.parsing.registry import parser_for

PDF = make_pdf([["Hello okapi"], ["Second page"]])


def parsers(**limits: float | str) -> Parsers:
    return Parsers(Limits(**{"max_seconds": 60.0, "max_memory_mb": 1024, **limits}), workers=1)  # type: ignore[arg-type]  # as named above


def only_worker(elsewhere: Parsers) -> Worker:
    (worker,) = elsewhere._all
    return worker


def test_an_isolated_parser_gives_the_same_document() -> None:
    with parsers() as elsewhere:
        parser = elsewhere.of("a.pdf")
        assert parser is not parser_for("a.pdf")
        assert parser.version == parser_for("a.pdf").version
        assert [parser.parse(PDF, "a.pdf") for _ in range(2)] == [parser_for("a.pdf").parse(PDF, "a.pdf")] * 2


def test_markdown_and_plain_text_are_parsed_in_the_main_process() -> None:
    with parsers() as elsewhere:
        assert elsewhere.of("a.md") is parser_for("a.md")
        assert not elsewhere._all


def test_a_parse_error_of_a_worker_keeps_its_message_reason_and_hint() -> None:
    with parsers() as elsewhere, pytest.raises(ParseError) as there:
        elsewhere.of("a.pdf").parse(b"%PDF-1.7 nothing", "a.pdf")
    with pytest.raises(ParseError) as here:
        parser_for("a.pdf").parse(b"%PDF-1.7 nothing", "a.pdf")
    assert (there.value.message, there.value.reason, there.value.hint) == (
        here.value.message,
        here.value.reason,
        here.value.hint,
    )


def test_a_file_that_takes_too_long_is_stopped_and_the_next_one_is_parsed() -> None:
    with parsers(max_seconds=0.001) as elsewhere:
        with pytest.raises(ParseError) as caught:
            elsewhere.of("a.pdf").parse(PDF, "a.pdf")
        assert (caught.value.reason, caught.value.hint) == ("too_costly", "Raise ingest.max_seconds.")
        only_worker(elsewhere).limits = Limits(60.0, 1024)
        assert elsewhere.of("a.pdf").parse(PDF, "a.pdf").paged


def test_a_crash_of_a_parser_fails_one_file_only() -> None:
    with parsers() as elsewhere:
        elsewhere.of("a.pdf").parse(PDF, "a.pdf")
        worker = only_worker(elsewhere)
        assert worker.process is not None
        os.kill(worker.process.pid, signal.SIGSEGV)
        worker.process.wait(10)
        assert elsewhere.of("a.pdf").parse(PDF, "a.pdf").paged, "a new one is started"
        stopped = worker.process
        os.kill(stopped.pid, signal.SIGSTOP)
        worker.limits = Limits(0.3, 1024)
        with pytest.raises(ParseError):
            elsewhere.of("a.pdf").parse(PDF, "a.pdf")
        assert stopped.wait(10) == -signal.SIGKILL


def wide_pdf(content: bytes) -> bytes:
    """A page whose content, unpacked, is far larger than the file."""
    packed = zlib.compress(content, 9)
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 4 0 R >>"
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page]
    objects.append(b"<< /Length %d /Filter /FlateDecode >> stream\n%b\nendstream" % (len(packed), packed))
    body = b"".join(b"%d 0 obj\n%b\nendobj\n" % numbered for numbered in enumerate(objects, 1))
    return b"%PDF-1.4\n" + body + b"trailer << /Size 5 /Root 1 0 R >>\n%%EOF\n"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is seen in /proc only")
@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("grammar.py", b"x = [1, 2]\n" * 200_000),
        ("page.pdf", wide_pdf(b"0 0 m 1 1 l S\n" * 2_000_000)),
        ("received.py", b"#" * 130_000_000),
    ],
    ids=["grammar", "page", "received"],
)
def test_a_file_that_takes_too_much_memory_is_reported_as_too_costly(path: str, data: bytes) -> None:
    """Regression: a C library without memory crashes in the same way as on a damaged file."""
    with parsers(max_memory_mb=128) as elsewhere:
        with pytest.raises(ParseError) as caught:
            elsewhere.of(path).parse(data, path)
        assert (caught.value.reason, caught.value.hint) == ("too_costly", "Raise ingest.max_memory_mb.")
        assert "128 MB" in caught.value.message
        assert elsewhere.of("a.py").parse(b"def f():\n    pass\n", "a.py").code_lang == "python"


def test_any_other_crash_is_reported_as_a_damaged_file() -> None:
    with parsers() as elsewhere:
        elsewhere.of("a.pdf").parse(PDF, "a.pdf")
        process = only_worker(elsewhere).process
        assert process is not None
        assert process.stdin is not None
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        begun = elsewhere.begin(PDF, "a.pdf")
        while not int.from_bytes(fcntl.ioctl(process.stdin, termios.FIONREAD, b"\0" * 4), sys.byteorder):
            time.sleep(0.01)  # until the worker has the file
        os.kill(process.pid, signal.SIGSEGV)
        os.kill(process.pid, signal.SIGCONT)
        with pytest.raises(ParseError) as caught:
            begun()
        assert caught.value.reason == "damaged"


@pytest.mark.parametrize(("path", "text"), [("k.kt", "<a" * 50_000), ("b.sh", "a|" * 50_000), ("c.cs", "a<" * 20_000)])
def test_code_that_crashes_its_grammar_fails_one_file_only(path: str, text: str) -> None:
    """Regression: this crashed the ingest."""
    with parsers(max_seconds=30.0) as elsewhere:
        with suppress(ParseError):
            assert elsewhere.of(path).parse(text.encode(), path).text == text
        assert elsewhere.of("a.py").parse(b"def f():\n    pass\n", "a.py").code_lang == "python"


def test_several_files_are_parsed_at_once_and_each_answer_is_that_of_its_file() -> None:
    files = {f"{number}.py": f"def f{number}():\n    return {number}\n".encode() for number in range(40)}
    with Parsers(Limits(60.0, 1024), workers=3) as elsewhere:
        parser = elsewhere.of("0.py")
        assert isinstance(parser, BackgroundParser)
        begun = {path: parser.begin(data, path) for path, data in files.items()}
        begun["bad.pdf"] = elsewhere.begin(b"no pdf", "bad.pdf")
        assert {path: begun[path]() for path in files} == {
            path: parser_for(path).parse(data, path) for path, data in files.items()
        }
        with pytest.raises(ParseError):
            begun["bad.pdf"]()
        processes = [worker.process for worker in elsewhere._all]
        assert 1 <= len(processes) <= 3
    assert all(process is not None and process.poll() is not None for process in processes), "none is left behind"


def test_leaving_the_block_kills_parsers_that_still_run() -> None:
    with parsers() as elsewhere:
        elsewhere.of("a.pdf").parse(PDF, "a.pdf")
        process = only_worker(elsewhere).process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        begun = [elsewhere.begin(PDF, "a.pdf") for _ in range(3)]
        started = time.monotonic()
    assert time.monotonic() - started < 10
    assert process.poll() is not None
    with pytest.raises((ParseError, CancelledError)):
        begun[-1]()


def test_a_worker_imports_nothing_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kebab").mkdir()
    (tmp_path / "kebab" / "__init__.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')")
    (tmp_path / "json.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    with parsers() as elsewhere:
        assert elsewhere.of("a.pdf").parse(PDF, "a.pdf").paged
    assert not (tmp_path / "run").exists()


def test_pages_are_cited_fetched_and_verified(tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "two.pdf").write_bytes(PDF)
    (folder / "broken.pdf").write_bytes(PDF[:100])
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        report = kb.ingest(folder)
        assert (report.added, list(report.skipped)) == (1, ["damaged"])
        (hit,) = kb.search("second")
        assert (hit.citation.uri, hit.citation.kind, hit.doc_type) == ("two.pdf#page=2", "page", "pdf")
        assert kb.fetch_span(hit.citation.uri).text.strip() == "Second page"
        assert kb.verify().ok == 2
        with pytest.raises(kebab.KebabError, match="has pages 1 to 2"):
            kb.fetch_span("two.pdf#page=3")
        (folder / "two.pdf").write_bytes(make_pdf([["New first"], ["Hello okapi"], ["Second page"]]))
        verified = kb.verify()
        assert verified.moved == 2
        assert {difference.now_at for difference in verified.differences} == {"two.pdf#page=2", "two.pdf#page=3"}


def test_a_password_opens_an_encrypted_pdf(tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "secret.pdf").write_bytes(make_pdf([["Hidden okapi"]], password="open sesame"))
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        assert list(kb.ingest(folder).skipped) == ["encrypted"]
        assert list(kb.ingest(folder, password="wrong").skipped) == ["encrypted"]
        assert kb.ingest(folder, password="open sesame").added == 1
        assert kb.search("okapi").hits[0].citation.uri == "secret.pdf#page=1"
    with kebab.open(tmp_path / "other.sqlite", ingest_pdf_password="open sesame") as kb:
        assert kb.ingest(folder).added == 1
