"""Makes one version of a library, which replaces the searched version when it is complete.

The next run continues an interrupted one. Files that another version has are neither read nor stored again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kebab.core.documents import document_id
from kebab.core.errors import NothingIndexable
from kebab.core.libraries import Making
from kebab.core.ports import IndexedDocument, Progress
from kebab.ingest.report import Failure, IngestReport

if TYPE_CHECKING:
    from kebab.core.store_ports import DocumentStore, LibraryWriter

_GROUP_CHARACTERS = 500_000
"""Documents are collected up to this many characters and then written in one transaction."""


class WantedFile(NamedTuple):
    path: str
    key: str
    """Files with the same bytes have the same key."""
    fingerprint: str
    """Stands for the parser and the settings: a file is parsed again when it changes."""


def library_document_id(library_id: str, path: str, content: str) -> str:
    """The id of a document, which is the same in every version that has the same content at this path."""
    return document_id(library_id, f"{path}\0{content}")


@dataclass
class VersionMaker:
    _libraries: LibraryWriter
    _documents: DocumentStore
    _report: IngestReport
    _progress: Progress
    _waiting: list[tuple[IndexedDocument, str]] = field(default_factory=list)

    def make(
        self,
        library_id: str,
        tag: str | None,
        commit: str | None,
        files: Sequence[WantedFile],
        document_of: Callable[[WantedFile, str], IndexedDocument | None],
        indexed_at: str | None = None,
    ) -> int:
        """Makes a version and returns the number of its snippets. `document_of` makes a document from a file and the
        name of its source. `indexed_at`: None for now.
        """
        making = self._libraries.begin(library_id, tag, commit)
        new = self._not_known(library_id, making, files)
        self._report.scanned = len(files)
        self._report.unchanged = len(files) - len(new)
        characters = 0
        for number, file in enumerate(new):
            self._progress("file", source=library_id, path=file.path, done=number, total=len(new))
            document = document_of(file, making.source)
            if document is not None:
                self._waiting.append((document, file.key))
                characters += len(document.parsed.text)
                if characters > _GROUP_CHARACTERS:
                    self._write(making)
                    characters = 0
        self._write(making)
        if not self._report.added and not self._report.unchanged:
            hint = "Its files are empty, or cannot be read."
            raise NothingIndexable(f"{library_id} has no text to index.", hint=hint)
        return self._libraries.finish(making, indexed_at)

    def _not_known(self, library_id: str, making: Making, files: Sequence[WantedFile]) -> list[WantedFile]:
        """Returns the files that must be read. Documents of other versions are shared, outdated files are dropped."""
        wanted = {file.path: (file.key, file.fingerprint) for file in files}
        done = {path for path, file in making.done.items() if wanted.get(path) == (file.key, file.fingerprint)}
        self._libraries.drop(making, [file for path, file in making.done.items() if path not in done])
        known = self._libraries.known(library_id, sorted({file.fingerprint for file in files}))
        left = [file for file in files if file.path not in done]
        self._libraries.share(
            making, [(known[file.path, file.key], file.key) for file in left if (file.path, file.key) in known]
        )
        return [file for file in left if (file.path, file.key) not in known]

    def _write(self, making: Making) -> None:
        if not self._waiting:
            return
        documents = [document for document, _ in self._waiting]
        self._report.chunks += self._documents.write(*documents)
        self._libraries.link(making, [(document.doc_id or "", key) for document, key in self._waiting])
        self._report.added += len(documents)
        self._report.warnings += [
            Failure(each.path, "parse", warning) for each in documents for warning in each.parsed.warnings
        ]
        self._waiting = []
