"""Whether one store holds what another one does: counted one by one, and documents compared word by word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from kebab.core.addresses import without_password
from kebab.core.errors import CopyDiffers
from kebab.core.ports import Progress
from kebab.core.records import SpaceCount

if TYPE_CHECKING:
    from kebab.core.store_ports import Reading

_COMPARED = 200
"""Documents of which every word, span and vector is compared, spread over all."""


class MigrationCounts(NamedTuple):
    sources: int
    notes: int
    documents: int
    chunks: int
    tags: int
    libraries: int
    versions: int
    library_documents: int
    snippets: int
    spaces: tuple[SpaceCount, ...]


def compare(origin: Reading, target: Reading, place: str, progress: Progress) -> tuple[MigrationCounts, int]:
    """What both have and how many documents were compared; CopyDiffers, with the first difference that was found."""
    for difference in _differences(origin, target, progress):
        raise CopyDiffers(
            f"Not everything is the same in {place}: {difference}.",
            hint=f"Run the command again, which carries what is missing; or begin anew after: kb --db {place} reset",
            path=place,
        )
    counts = _counted(origin)
    return counts, min(_COMPARED, counts.documents + counts.library_documents)


def _differences(origin: Reading, target: Reading, progress: Progress) -> Iterator[str]:
    """The coarse before the fine."""
    progress("verifying", path="counts", done=0, total=None)
    yield from _between("the number of", *(_numbers(_counted(reading)) for reading in (origin, target)))
    analysis = (target.korean_analysis(), origin.korean_analysis())
    if analysis[1] not in (None, analysis[0]):
        yield f"the Korean analysis is {analysis[0]} and was {analysis[1]}"
    yield from _between(
        "the vectors that are complete", *({"": reading.content().complete_vectors()} for reading in (origin, target))
    )
    yield from _between(
        "the source", *({source.name: source for source in reading.catalog.sources()} for reading in (origin, target))
    )
    yield from _between("the tag", *({tag.tag: tag for tag in reading.catalog.tags()} for reading in (origin, target)))
    ids: set[str] = set()
    for source in origin.catalog.sources():
        before, after = (
            {
                f"{source.name}:{path}": (stored.doc_id, stored.state)
                for path, stored in reading.content().stored(source.name).items()
            }
            for reading in (origin, target)
        )
        yield from _between("the document", before, after)
        ids |= {doc_id for doc_id, _ in before.values()}
    own = frozenset(ids)
    yield from _between("the library", *map(_libraries, (origin, target)))
    for library in origin.libraries().libraries():
        wanted, there = (_version_documents(reading, library.library_id) for reading in (origin, target))
        yield from _between(f"the document of {library.library_id}", wanted, there)
        ids |= set(wanted.values())
    chosen = _spread(sorted(ids))
    for number, doc_id in enumerate(chosen):
        progress("verifying", path=doc_id, done=number, total=len(chosen))
        yield from _in_document(origin, target, doc_id, is_own=doc_id in own)


def _counted(reading: Reading) -> MigrationCounts:
    sources, libraries, counts = reading.catalog.sources(), reading.libraries().libraries(), reading.content().counts()
    return MigrationCounts(
        sources=len(sources),
        notes=sum(len(source.notes) for source in sources),
        documents=counts.documents,
        chunks=counts.chunks,
        tags=len(reading.catalog.tags()),
        libraries=len(libraries),
        versions=sum(len(library.versions) for library in libraries),
        library_documents=counts.library_documents,
        snippets=counts.snippets,
        spaces=counts.spaces,
    )


def _numbers(counts: MigrationCounts) -> dict[str, int]:
    numbers = {name: value for name, value in counts._asdict().items() if name != "spaces"}
    for space in counts.spaces:
        numbers |= {
            f"vectors of {space.fingerprint}": space.vectors,
            f"chunks at home in {space.fingerprint}": space.homes,
        }
    return numbers


def _libraries(reading: Reading) -> dict[str, Any]:
    """Versions by name: stores list them in orders of their own. A password that an older Kebab stored is not copied."""
    return {
        library.library_id: library._replace(
            origin=without_password(library.origin),
            versions=tuple(sorted(library.versions, key=lambda version: version.name or "")),
        )
        for library in reading.libraries().libraries()
    }


def _version_documents(reading: Reading, library_id: str) -> dict[tuple[Any, ...], str]:
    entries = reading.library_reader(library_id).version_documents()
    return {(entry.tag or "", entry.path, entry.file_key, entry.fingerprint): entry.doc_id for entry in entries}


def _in_document(origin: Reading, target: Reading, doc_id: str, *, is_own: bool) -> Iterator[str]:
    before, after = (_document(reading, doc_id, is_own=is_own) for reading in (origin, target))
    name = f"{before['source']}:{before['path']}"
    yield from _between(f"of {name} the", before, after)
    ids = [chunk.chunk_id for chunk in before["chunks"]]
    for space in origin.content().spaces():
        vectors = [reading.content().vectors_of(space, ids) for reading in (origin, target)]
        for chunk_id in ids:
            if vectors[0].get(chunk_id) != vectors[1].get(chunk_id):
                yield f"of {name} the vector of {space.model} for chunk {chunk_id}"


def _document(reading: Reading, doc_id: str, *, is_own: bool) -> dict[str, Any]:
    """A document that versions of a library share belongs to the source of any of them."""
    record, chunks = reading.catalog.find_document(doc_id), reading.catalog.chunks_of(doc_id)
    if not is_own:
        record = record._replace(source="library")
        chunks = [chunk._replace(source="library") for chunk in chunks]
    body = sha256(reading.catalog.body(doc_id).encode("utf-8", "surrogatepass")).hexdigest()
    return {**record._asdict(), "text": body, "chunks": chunks}


def _between(what: str, before: Mapping[Any, Any], after: Mapping[Any, Any]) -> Iterator[str]:
    for key in (*before, *(key for key in after if key not in before)):
        if key not in after:
            yield f"{what} {_shown(key)} is missing"
        elif key not in before:
            yield f"{what} {_shown(key)} is there, and was not"
        elif before[key] != after[key]:
            yield f"{what} {_shown(key)}: {_contrast(before[key], after[key])}"


def _contrast(before: Any, after: Any) -> str:
    """Of two records or lists only what differs."""
    if hasattr(before, "_asdict"):
        parts = [
            (name, value, getattr(after, name))
            for name, value in before._asdict().items()
            if value != getattr(after, name)
        ]
        return f"{parts[0][0]}: {_contrast(*parts[0][1:])}"
    if isinstance(before, list | tuple) and len(before) == len(after):
        return next(_contrast(*pair) for pair in zip(before, after, strict=True) if pair[0] != pair[1])
    return f"{_shown(after)} instead of {_shown(before)}"


def _shown(value: Any) -> str:
    text = " ".join(str(part) for part in value) if type(value) is tuple else str(value)
    return text if len(text) <= 200 else f"{text[:199]}…"


def _spread(ids: Sequence[str]) -> list[str]:
    """Always the same ones: ids are hashes, so this is a fair sample."""
    most = min(_COMPARED, len(ids))
    return [ids[number * len(ids) // most] for number in range(most)]
