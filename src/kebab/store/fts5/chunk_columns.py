"""The columns of the text index for a chunk: headings, text, title, and CJK terms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kebab.analysis.terms import cjk_column
from kebab.core.documents import Chunk
from kebab.core.paths import file_name, file_stem
from kebab.core.ports import IndexedDocument
from kebab.store.tags import folded


class ChunkColumns(NamedTuple):
    heading_path: str
    text: str
    title: str
    cjk: str


class Titles(NamedTuple):
    """The title column of a document's chunks: `first` for the first chunk, `others` for all further chunks."""

    first: str
    others: str


def titles_of(document: IndexedDocument) -> Titles:
    """Returns the title columns of a document's chunks. Only the first chunk has aliases, tags and the file's name in
    it: on every chunk they would outweigh the text.
    """
    title = document.parsed.title
    # The name follows the title, so that `servers.xlsx` is found as a phrase.
    return Titles(
        "\n".join((title, *_name(document.path, title), *document.parsed.aliases, *document.parsed.tags)), title
    )


def _name(path: str, title: str) -> tuple[str, ...]:
    """What the title lacks of the file's name: all of it, or its extension."""
    name, stem = file_name(path), file_stem(path)
    if stem.casefold() not in title.casefold():
        return (name,)
    return () if name.casefold() in title.casefold() or name == stem else (name.removeprefix(f"{stem}."),)


class Names(NamedTuple):
    """The aliases and tags of a document, in the document's order."""

    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


def names_in(first_title: str, path: str, title: str, tags: Iterable[str]) -> Names:
    """Returns aliases and tags in the document's order, read from the title column of its first chunk: the inverse of
    `titles_of`. `tags`: the stored tags; the column may spell them in another case.
    """
    rest = first_title[len(title) + 1 :]
    names = rest.split("\n") if rest else []
    if names and names[0] in _name(path, title):
        del names[0]
    elif names and names[-1] == file_stem(path) and file_stem(path).casefold() not in title.casefold():
        names.pop()  # an older version wrote the stem, and behind the others
    known = set(map(folded, tags))
    first = len(names)
    while first and folded(names[first - 1]) in known:
        first -= 1
    return Names(tuple(names[:first]), tuple(names[first:]))


def columns_of(chunk: Chunk, titles: Titles, korean_analysis: str, note_terms: str) -> ChunkColumns:
    """Returns the columns of a chunk. `note_terms`: the terms of the notes on the document's source and folders."""
    heading_path = " > ".join(chunk.heading_path)
    title = titles.others if chunk.ordinal else titles.first
    cjk = cjk_column(
        korean_analysis, title, heading_path, chunk.text, is_code=chunk.kind == "code", note_terms=note_terms
    )
    return ChunkColumns(heading_path, chunk.text, title, cjk)
