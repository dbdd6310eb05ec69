"""A process that parses one file after another: a crash, or too much time or memory, costs only that file.

Run as `python -m kebab.parsing.worker MEMORY_MB`. Each request and answer is two lengths of 8 bytes, a JSON header and
raw bytes. An answer contains no code: a file that takes over the parser still cannot reach the parent process.
"""

from __future__ import annotations

import json
import resource
import sys
from dataclasses import fields
from typing import IO, Any

from kebab.core.documents import Block, ParsedDocument
from kebab.core.errors import ParseError
from kebab.parsing.registry import parser_for

OUT_OF_MEMORY = 3
"""The exit status when there is no memory left for an answer."""


def send(stream: IO[bytes], header: dict[str, Any], body: bytes = b"") -> None:
    head = json.dumps(header).encode()
    stream.write(len(head).to_bytes(8, "big") + len(body).to_bytes(8, "big") + head)
    stream.write(body)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], bytes]:
    """The next header and body; EOFError when the other side has ended."""
    lengths = _exactly(stream, 16)
    header: dict[str, Any] = json.loads(_exactly(stream, int.from_bytes(lengths[:8], "big")))
    return header, _exactly(stream, int.from_bytes(lengths[8:], "big"))


def _exactly(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data


def from_answer(header: dict[str, Any], body: bytes) -> ParsedDocument:
    document: dict[str, Any] = header["document"]
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in document.items()
    }
    values["blocks"] = tuple(Block(*block) for block in values["blocks"])
    return ParsedDocument(text=body.decode("utf-8", "surrogatepass"), **values)


def too_much_memory(megabytes: int) -> ParseError:
    message = f"Reading it took more than {megabytes} MB of memory."
    return ParseError(message, reason="too_costly", hint="Raise ingest.max_memory_mb.")


def _answer(header: dict[str, Any], data: bytes, megabytes: int) -> tuple[dict[str, Any], bytes]:
    try:
        document = parser_for(header["path"], pdf_password=header["pdf_password"]).parse(data, header["path"])
        values = {field.name: getattr(document, field.name) for field in fields(document) if field.name != "text"}
        return {"document": values}, document.text.encode("utf-8", "surrogatepass")
    except ParseError as error:
        refused = too_much_memory(megabytes) if error.reason == "too_costly" else error
    return {"error": [refused.message, refused.reason, refused.hint]}, b""


def main() -> None:
    megabytes = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # output of a library must not mix with the answers
    try:
        while True:
            header, data = receive(requests)
            send(answers, *_answer(header, data, megabytes))
    except EOFError:
        return
    except MemoryError:  # while reading a file or writing an answer
        sys.exit(OUT_OF_MEMORY)


if __name__ == "__main__":
    main()
