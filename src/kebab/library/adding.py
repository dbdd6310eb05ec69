"""Adding or refreshing a library: each of its versions in turn, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kebab.config.settings import Settings
from kebab.core.errors import KebabError, SourceError
from kebab.core.libraries import Library
from kebab.core.ports import Embedder, Parser, Progress
from kebab.ingest.report import Failure, IngestReport, quiet
from kebab.library.extraction import SnippetChunker
from kebab.library.indexing import LibraryIndexing, steering_of
from kebab.library.library_file import open_library_file
from kebab.library.steering import Steering
from kebab.library.transfer import import_vectors, import_version
from kebab.library.trust_score import trust_score
from kebab.library.version_writer import VersionMaker
from kebab.sources.library_tree import check_tags, library_tree
from kebab.sources.origin import Origin
from kebab.sources.repository_address import on_github

if TYPE_CHECKING:
    from kebab.core.library_ports import LibraryWriter
    from kebab.core.store_ports import DocumentStore, VectorWriter


class Said(NamedTuple):
    """What of a library was given by the user, and is not taken from elsewhere."""

    stars: bool


class IndexingJob(NamedTuple):
    """What files are read with."""

    parser_for: Callable[[str], Parser]
    cache: Path
    """Where copies of repositories lie."""
    with_previous: bool
    """Whether versions that the repository names itself are added."""
    replaces: bool = False
    """Whether this is another repository than before, to which tags that were indexed do not belong."""


class LibraryAdding:
    """One run."""

    def __init__(
        self,
        store: LibraryWriter,
        documents: DocumentStore,
        settings: Settings,
        report: IngestReport,
        progress: Progress | None,
    ) -> None:
        self._store = store
        self._documents = documents
        self._settings = settings
        self._report = report
        self._progress = progress or quiet
        self._noted: KebabError | None = None

    def index(self, library: Library, origin: Origin, tags: Sequence[str], job: IndexingJob) -> None:
        """The default branch, these tags, and with `job.with_previous` those that the repository names itself. When one
        of the tags is not there, nothing is done.
        """
        if job.with_previous and tags:
            check_tags(origin, tags, self._settings, job.cache)
        if not library.versions:  # of one that is known, nothing changes before something came
            self._store.describe(library)
        steering, snippets = self._version(library, origin, None, job)
        self._store.describe(_scored(_described(library, steering), snippets))
        for version in library.versions if job.replaces else ():
            if version.name is not None and version.name not in tags:
                self._store.remove(library.library_id, version.name, whole=False)
        failed: SourceError | None = None
        for tag in dict.fromkeys(tags):
            try:
                self._version(library, origin, tag, job)
            except SourceError as error:  # the others are wanted all the same
                failed = error
        for tag in steering.previous_versions if job.with_previous and origin.kind == "git" else ():
            if tag not in tags:
                self._previous_version(library, origin, tag, job)
        if failed is not None:
            raise failed

    def _previous_version(self, library: Library, origin: Origin, tag: str, job: IndexingJob) -> None:
        """The repository's own list may be older than its tags: what is not there is worth a line, not the whole run."""
        try:
            self._version(library, origin, tag, job)
        except SourceError as error:
            self._store.forget_attempt(library.library_id, tag)
            self._report.warnings.append(Failure(tag, "fetch", error.message))

    def _version(self, library: Library, origin: Origin, tag: str | None, job: IndexingJob) -> tuple[Steering, int]:
        """What the repository says of itself there, and how many snippets there are."""
        chunker = SnippetChunker(self._settings.chunking)
        indexing = LibraryIndexing(
            self._store, self._documents, self._settings, chunker, job.parser_for, self._progress
        )
        try:
            with self._noting(library, tag):
                tree = library_tree(origin, tag, library.branch, self._settings, job.cache)
                files = tree.files()  # once: of a folder it means reading them all
                steering = steering_of(tree, files, indexing.report)
                return steering, indexing.run(library.library_id, tag, tree, files, steering)
        finally:
            self._report.include(indexing.report)

    @contextmanager
    def _noting(self, library: Library, tag: str | None) -> Iterator[None]:
        """What goes wrong is said in the list of libraries, too."""
        try:
            yield
        except KebabError as error:
            if error is not self._noted:
                self._store.fail(library.library_id, tag, error.message)
                self._noted = error
            raise

    def import_file(
        self, library: Library, path: Path, said: Said, embedders: Sequence[Embedder], keeper: VectorWriter | None
    ) -> None:
        """What `kb lib export` wrote, with the vectors of models that are in use here. How far it is trusted is not for
        the file to say.
        """
        with self._noting(library, None), open_library_file(path) as file:
            known, library = (
                library,
                library._replace(
                    title=library.title if library.titled else file.title,
                    description=library.description if library.described else file.description,
                    repository=file.repository,
                    stars=library.stars if said.stars else file.stars,
                    rules=file.rules,
                ),
            )
            if not known.versions:
                self._store.describe(library)
            for version in file.versions:
                report = IngestReport()
                maker = VersionMaker(self._store, self._documents, report, self._progress)
                with self._noting(library, version.tag):
                    snippets = import_version(file, version, library.library_id, maker)
                library = library if version.tag is not None else _scored(library, snippets)
                self._report.include(report)
            self._store.describe(library)
            if keeper is not None:
                import_vectors(file, embedders, keeper)


def _described(library: Library, steering: Steering) -> Library:
    return library._replace(
        title=library.title if library.titled or steering.title is None else steering.title,
        description=library.description if library.described or steering.description is None else steering.description,
        rules=steering.rules,
    )


def _scored(library: Library, snippets: int) -> Library:
    """With a trust score, which is computed when a library is first indexed and stays."""
    if library.trust_score is not None:
        return library
    score = trust_score(
        stars=library.stars,
        total_snippets=snippets,
        is_github=on_github(library.repository) is not None,
        is_indexed=True,
        has_description=bool(library.description),
    )
    return library._replace(trust_score=score)
