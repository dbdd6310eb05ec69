"""What a user may call a document or a chunk, in every store: beginnings of ids, links, paths in libraries."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kebab.core.errors import Ambiguous, NotFound
from kebab.core.ports import ChunkContext
from kebab.core.records import DocumentRecord

_SHORTEST_ID_PREFIX = 4
_WIKI_LINK = re.compile(r"!?\[\[([^\[\]|#]+)(?:[|#][^\[\]]*)?\]\]")
_MOST_NAMED = 5


def is_id_prefix(key: str) -> bool:
    return len(key) >= _SHORTEST_ID_PREFIX and set(key) <= set("0123456789abcdef")


def linked_path(key: str) -> str:
    """The end of the path of the Markdown note that is named `Page` or `[[folder/Page#Heading|label]]`."""
    link = _WIKI_LINK.fullmatch(key.strip())
    return f"/{link[1].strip() if link else key}.md"


def place_in_library(key: str) -> tuple[str, str, str] | None:
    """Library, version and path of `/owner/project:path` or `/owner/project/version:path`; None for other keys."""
    place, colon, path = key.partition(":")
    parts = place.split("/", 3)
    if not colon or len(parts) < 3 or parts[0]:
        return None
    return f"/{parts[1]}/{parts[2]}", parts[3] if len(parts) > 3 else "", path


def no_document(key: str) -> NotFound:
    return NotFound(f"No document {key} is indexed.", hint="See what is there with: kb list docs")


def only_document(found: Sequence[DocumentRecord], key: str) -> DocumentRecord:
    if not found:
        raise no_document(key)
    if len(found) > 1:
        names = [f"{record.source}:{record.path}" for record in found]
        some = ", ".join(names[:_MOST_NAMED]) + (" …" if len(names) > _MOST_NAMED else "")
        message = f"{key} fits {len(found)} documents: {some}."
        raise Ambiguous(message, hint="Name one of them, as SOURCE:path or by its id.")
    return found[0]


def only_chunk(found: Sequence[ChunkContext], key: str) -> ChunkContext:
    if len(found) > 1:
        raise Ambiguous(f"{key} is the beginning of {len(found)} chunk ids.", hint="Give more of it.")
    if not found:
        hint = "It may have changed since: search again for its current id."
        raise NotFound(f"No chunk {key} is indexed.", hint=hint)
    return found[0]
