"""A process of its own that parses one file after another: what goes wrong in it, or takes too much, costs that file
and no more.

Run as `python -m kebab.parsing.worker MEMORY_MB`. It reads requests and writes answers, each as a length in 8 bytes, a
JSON header and raw bytes. Nothing in an answer is code: a file that takes over the parser still cannot reach its
parent.
"""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from typing import IO, Any

from kebab.core.documents import Block, ParsedDocument
from kebab.core.errors import ParseError

OUT_OF_MEMORY = 3
"""How the process ends when there is not even memory for an answer."""


def send(stream: IO[bytes], header: dict[str, Any], body: bytes = b"") -> None:
    head = json.dumps(header).encode()
    stream.write(len(head).to_bytes(8, "big") + len(body).to_bytes(8, "big") + head)
    stream.write(body)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], bytes]:
    """EOFError when the other side is gone."""
    lengths = _exactly(stream, 16)
    header: dict[str, Any] = json.loads(_exactly(stream, int.from_bytes(lengths[:8], "big")))
    return header, _exactly(stream, int.from_bytes(lengths[8:], "big"))


def _exactly(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data


def as_answer(document: ParsedDocument) -> tuple[dict[str, Any], bytes]:
    values = {field.name: getattr(document, field.name) for field in fields(document) if field.name != "text"}
    return {"document": values}, document.text.encode("utf-8", "surrogatepass")


def from_answer(header: dict[str, Any], body: bytes) -> ParsedDocument:
    values = dict(header["document"])
    values["blocks"] = tuple(Block(*block) for block in values["blocks"])
    for name in ("tags", "aliases", "warnings", "page_labels", "chapters"):
        values[name] = tuple(values[name])
    return ParsedDocument(text=body.decode("utf-8", "surrogatepass"), **values)


def too_much_memory(megabytes: int) -> ParseError:
    message = f"Reading it took more than {megabytes} MB of memory."
    return ParseError(message, reason="too_costly", hint="Raise ingest.max_memory_mb.")


def _answer(header: dict[str, Any], data: bytes, megabytes: int) -> tuple[dict[str, Any], bytes]:
    from kebab.parsing.registry import parser_for

    try:
        return as_answer(parser_for(header["path"], pdf_password=header["pdf_password"]).parse(data, header["path"]))
    except ParseError as error:
        refused = too_much_memory(megabytes) if error.reason == "too_costly" else error
    return {"error": [refused.message, refused.reason, refused.hint]}, b""


def _limit_memory(megabytes: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows; the time limit still holds
        return
    resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


def main() -> None:
    megabytes = int(sys.argv[1])
    _limit_memory(megabytes)
    try:
        _serve(megabytes)
    except MemoryError:  # over the bytes of a file, or those of an answer
        sys.exit(OUT_OF_MEMORY)


def _serve(megabytes: int) -> None:
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever a library prints must not get between the answers
    while True:
        try:
            header, data = receive(requests)
        except EOFError:
            return
        send(answers, *_answer(header, data, megabytes))


if __name__ == "__main__":
    main()
