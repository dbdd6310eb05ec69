"""Adding or refreshing a library: its files become documents of the store, version by version."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kebab.config.loading import cache_folder
from kebab.core import errors, ports
from kebab.core.addresses import shown_address, without_password
from kebab.core.libraries import Library, VersionDocument
from kebab.core.text import one_line
from kebab.ingest.embedding import embed_missing
from kebab.ingest.report import Failure, IngestReport, quiet
from kebab.ingest.run import chunked, fingerprints, original
from kebab.library.library_file import FROM_FILE, import_vectors, import_version, is_library_file, open_library_file
from kebab.library.ranking import refuse_other_organisations, to_fixed, trust_score
from kebab.library.snippets import SnippetChunker, is_llms_txt
from kebab.library.steering import Steering, documentation_files, steering_of
from kebab.library.version_writer import VersionMaker, WantedFile, library_document_id
from kebab.library.versions import ordered
from kebab.sources.git_repository import on_github, same_repository
from kebab.sources.origin import Origin, check_tags, checked_id, library_tree, origin_of, repository_facts

if TYPE_CHECKING:
    from kebab.core.store_ports import Writing
    from kebab.session import Session

_MOST_STARS = 10**9


class Given(NamedTuple):
    """The options of `add` that describe a library."""

    library_id: str | None
    title: str | None
    description: str | None
    stars: int | None
    trust: float | None
    versions: Sequence[str]
    branch: str | None


def add(
    session: Session, source: str, given: Given, *, fetch_metadata: bool, embed: bool, progress: ports.Progress | None
) -> tuple[Library, IngestReport]:
    _check(source, given)
    origin = _exported(origin_of(source))
    tags = _checked_versions(origin, given)
    library_id = checked_id(given.library_id or origin.library_id)
    refuse_other_organisations(library_id, session.settings)
    known: Library | None = None
    with suppress(errors.NotFound):  # there may be no database yet
        known = _stored(session, library_id)
    is_other = known is not None and not _is_same_origin(known, origin)
    if known and is_other and given.library_id is None and any(version.indexed_at for version in known.versions):
        hint = f"Name this one with --id /owner/project, or say --id {library_id} to put it in its place."
        raise errors.UsageError(f"{library_id} is there already, from {shown_address(known.origin)}.", hint=hint)
    library = _described(library_id, origin, given, known, is_other=is_other)
    has_stars = given.stars is not None
    if fetch_metadata:
        library = _with_facts(session, library, has_stars=has_stars)
    replaces = is_other and origin.kind == "git"
    return _index(session, "kb lib add", library, origin, tags, has_stars, embed, progress, replaces=replaces)


def refresh(
    session: Session, library: Library, *, fetch_metadata: bool, embed: bool, progress: ports.Progress | None
) -> tuple[Library, IngestReport]:
    if fetch_metadata:
        library = _with_facts(session, library, has_stars=False)
    # A named version of a folder or an archive stays as it was when it was added.
    versions = library.versions if library.origin_kind == "git" else ()
    tags = [version.name for version in versions if version.name is not None]
    origin = Origin(library.origin_kind, library.origin, library.library_id, library.title, library.repository)
    return _index(session, "kb lib refresh", library, origin, tags, False, embed, progress)


def upgrade(session: Session, purpose: str, report: IngestReport, progress: ports.Progress | None) -> None:
    """Parses the documents of libraries again that an older version has parsed. Adds to the numbers of `report`."""
    with session.reading() as reading:
        libraries = reading.libraries().libraries() if reading is not None else []
    if libraries:
        with session.writing(purpose) as writing, session.parsers() as parsers:
            run = LibraryIndexing(session, writing, parsers.of, report, progress or quiet)
            for library in libraries:
                run.upgrade(library)


def _check(source: str, given: Given) -> None:
    if not source.strip():
        hint = "For example: kb lib add https://github.com/owner/project"
        raise errors.UsageError("There is nothing to add.", hint=hint)
    if given.trust is not None and not 0 <= given.trust <= 10:
        raise errors.UsageError("A trust score lies between 0 and 10.", hint="For example: --trust 7.5")
    if given.stars is not None and not 0 <= given.stars < _MOST_STARS:
        raise errors.UsageError("That is no number of stars.", hint="For example: --stars 1200")
    if any(not version.strip() for version in given.versions):
        hint = "Leave out the empty --version."
        raise errors.UsageError("A version without a name is the default branch, which is always indexed.", hint=hint)


def _exported(origin: Origin) -> Origin:
    """The origin, of kind `export` if `kb lib export` wrote the file. The content of the file decides, not its name."""
    if "://" in origin.place or origin.kind in ("git", "folder"):
        return origin
    if origin.kind != "export" and not is_library_file(Path(origin.place)):
        return origin
    with open_library_file(Path(origin.place)) as file:
        return origin._replace(kind="export", library_id=file.library_id, name=file.title, repository=file.repository)


def _checked_versions(origin: Origin, given: Given) -> Sequence[str]:
    """The versions to index. Only a repository has several; another origin is one version, which may have a name."""
    if origin.kind == "git":
        return given.versions
    if given.versions and origin.kind == "export":
        hint = "Leave out --version; kb lib docs names one."
        raise errors.UsageError("What was exported brings all its versions along.", hint=hint)
    if given.branch or len(given.versions) > 1:
        message = f"{shown_address(origin.place)} is no git repository, so it has no tags or branches."
        raise errors.UsageError(message, hint="Leave out --branch; --version names one.")
    return given.versions or ([origin.version] if origin.version else [])


def _is_same_origin(known: Library, origin: Origin) -> bool:
    """Whether the library was added from this origin. Other spellings, releases and exports count as the same."""
    if without_password(known.origin) == origin.place or known.origin_kind == origin.kind == "export":
        return True
    if known.origin_kind == origin.kind == "git":
        return same_repository(known.origin, origin.place)
    return origin.version is not None and known.origin.rpartition("/")[0] == origin.place.rpartition("/")[0]


def _described(library_id: str, origin: Origin, given: Given, known: Library | None, *, is_other: bool) -> Library:
    """The library with the given options, else its earlier ones. A new origin resets trust, stars, branch and rules."""
    same = None if is_other else known
    titled, described = known is not None and known.titled, known is not None and known.described
    title = origin.name
    if known is not None and (titled or known.origin == origin.place):
        title = known.title
    description = known.description if known is not None and (described or not is_other) else ""
    return Library(
        library_id=library_id,
        title=one_line(given.title or "") or title,
        description=description if given.description is None else one_line(given.description),
        origin=origin.place,
        origin_kind=origin.kind,
        branch=given.branch or (same.branch if same else None),
        titled=given.title is not None or titled,
        described=given.description is not None or described,
        repository=origin.repository,
        stars=given.stars if given.stars is not None else (same.stars if same else None),
        trust_score=to_fixed(given.trust) if given.trust is not None else (same.trust_score if same else None),
        rules=same.rules if same else (),
        versions=known.versions if known else (),
    )


def _with_facts(session: Session, library: Library, *, has_stars: bool) -> Library:
    """The library with stars and description from GitHub. `has_stars`: the user gave the stars."""
    place = on_github(library.repository)
    if place is None:
        message = f"{library.library_id} does not come from github.com, so its metadata cannot be fetched."
        raise errors.UsageError(message, hint="Leave out --fetch-metadata, and give --stars and --description.")
    settings = session.settings.library
    facts = repository_facts(*place, settings.github_api, settings.fetch_seconds)
    stars = library.stars if has_stars or facts.stars is None else facts.stars
    return library._replace(stars=stars, description=library.description or facts.description or "")


def _index(
    session: Session,
    purpose: str,
    library: Library,
    origin: Origin,
    tags: Sequence[str],
    has_stars: bool,
    embed: bool,
    progress: ports.Progress | None,
    *,
    replaces: bool = False,
) -> tuple[Library, IngestReport]:
    models = session.models if embed else None  # a missing model is reported before the work, not after it
    report = IngestReport(sources=[library.library_id])
    with session.writing(purpose) as writing, session.parsers() as parsers:
        writing.settle_analysis()
        if models is not None:
            with suppress(errors.ModelError):  # words are indexed even if an endpoint cannot be asked now
                writing.expect_vectors(models.embedders)
        run = LibraryIndexing(session, writing, parsers.of, report, progress or quiet)
        if origin.kind == "export":
            run.import_file(library, Path(origin.place), models, has_stars=has_stars)
        else:
            run.index(library, origin, tags, with_previous=purpose == "kb lib add", replaces=replaces)
    if embed:
        embed_missing(session, purpose, report, progress)
    return _stored(session, library.library_id), report


def _stored(session: Session, library_id: str) -> Library:
    with session.existing() as reading:
        return ordered(reading.libraries().find(library_id))


class LibraryIndexing:
    """One run of adding or refreshing a library."""

    def __init__(
        self,
        session: Session,
        writing: Writing,
        parser_for: Callable[[str], ports.Parser],
        report: IngestReport,
        progress: ports.Progress,
    ) -> None:
        self._session = session
        self._settings = session.settings
        self._cache = cache_folder()
        self._writing = writing
        self._store = writing.libraries()
        self._documents = writing.documents(for_libraries=True)
        self._parser_for = parser_for
        self._chunker = SnippetChunker(session.settings.chunking)
        self._fingerprint_of = fingerprints(session.settings, self._chunker.version)
        self._report = report
        self._progress = progress
        self._noted: errors.KebabError | None = None

    def index(
        self, library: Library, origin: Origin, tags: Sequence[str], *, with_previous: bool, replaces: bool
    ) -> None:
        """Indexes the default branch and these tags. If a tag is missing, nothing is done.

        `with_previous`: index the versions that the repository itself names, too. `replaces`: the repository is another
        one than before, so its other indexed tags are removed.
        """
        if with_previous and tags:
            check_tags(origin, tags, self._settings, self._cache)
        if not library.versions:  # a known library changes only after the new files were fetched
            self._store.describe(library)
        steering, snippets = self._version(library, origin, None)
        described = _named(library, steering.title, steering.description)._replace(rules=steering.rules)
        self._store.describe(_scored(described, snippets))
        for version in library.versions if replaces else ():
            if version.name is not None and version.name not in tags:
                self._store.remove(library.library_id, version.name, whole=False)
        failed: errors.SourceError | None = None
        previous = steering.previous_versions if with_previous and origin.kind == "git" else ()
        for tag in dict.fromkeys((*tags, *previous)):
            try:
                self._version(library, origin, tag)
            except errors.SourceError as error:  # the other versions are indexed all the same
                if tag in tags:
                    failed = error
                else:  # the repository's own list may name tags that are gone
                    self._store.forget_attempt(library.library_id, tag)
                    self._report.warnings.append(Failure(tag, "fetch", error.message))
        if failed is not None:
            raise failed

    def import_file(
        self, library: Library, path: Path, models: ports.EmbeddingModels | None, *, has_stars: bool
    ) -> None:
        """Imports an exported library, with the vectors of models in use here. The file's trust score is ignored."""
        with self._noting(library.library_id, None), open_library_file(path) as file:
            is_new = not library.versions
            library = _named(library, file.title, file.description)._replace(
                repository=file.repository, stars=library.stars if has_stars else file.stars, rules=file.rules
            )
            if is_new:
                self._store.describe(library)
            for version in file.versions:
                report = IngestReport()
                maker = VersionMaker(self._store, self._documents, report, self._progress)
                with self._noting(library.library_id, version.tag):
                    snippets = import_version(file, version, library.library_id, maker)
                library = library if version.tag is not None else _scored(library, snippets)
                self._report.include(report)
            self._store.describe(library)
            if models is not None:
                import_vectors(file, models.embedders, self._writing.vectors())

    def _version(self, library: Library, origin: Origin, tag: str | None) -> tuple[Steering, int]:
        """Indexes one version. Returns the content of its steering file and the number of snippets."""
        library_id, report = library.library_id, IngestReport()
        maker = VersionMaker(self._store, self._documents, report, self._progress)
        try:
            with self._noting(library_id, tag):
                tree = library_tree(origin, tag, library.branch, self._settings, self._cache)
                files = tree.files()  # once: listing a folder reads all its files
                steering = steering_of(tree, files, report)
                by_path = {file.path: file for file in documentation_files(files, steering)}
                if not by_path:
                    raise errors.NothingIndexable(
                        f"{library_id} has no documentation and no source code.",
                        hint="Look at folders and excludeFolders in its kebab.json, if it has one; "
                        f"or forget it: kb lib remove {library_id}",
                    )
                started = time.perf_counter()
                wanted = [
                    WantedFile(path, file.key, self._fingerprint_of(self._parser(path).version))
                    for path, file in by_path.items()
                ]
                with tree.reading() as reader:

                    def document_of(file: WantedFile, source: str) -> ports.IndexedDocument | None:
                        try:
                            return self._document(library_id, source, file, self._read(by_path[file.path], reader))
                        except errors.ParseError as error:
                            report.reject(file.path, error)
                            return None

                    snippets = maker.make(library_id, tag, tree.commit, wanted, document_of)
                report.seconds = time.perf_counter() - started
                return steering, snippets
        finally:
            self._report.include(report)

    def upgrade(self, library: Library) -> None:
        """Parses documents again that other versions or settings have parsed, if their whole file is stored."""
        with self._session.existing() as reading:
            documents = reading.content().library_documents(library.library_id)
        for version in library.versions:
            old = {each.path: each for each in documents if each.tag == version.name and version.state == "indexed"}
            wanted = [WantedFile(path, each.file_key, self._wanted_fingerprint(each)) for path, each in old.items()]
            if all(file.fingerprint == old[file.path].fingerprint for file in wanted):
                continue
            report = IngestReport()

            def document_of(
                file: WantedFile,
                source: str,
                old: dict[str, VersionDocument] = old,
                report: IngestReport = report,
            ) -> ports.IndexedDocument | None:
                stored = self._stored(old[file.path])
                try:
                    document = self._document(library.library_id, source, file, original(stored) or b"")
                except errors.ParseError as error:
                    report.reject(file.path, error)
                    return None
                return document._replace(date=document.parsed.date or stored.date)

            maker = VersionMaker(self._store, self._documents, report, self._progress)
            maker.make(library.library_id, version.name, version.commit, wanted, document_of, version.indexed_at)
            self._report.scanned += report.added
            self._report.updated += report.added
            self._report.chunks += report.chunks

    def _wanted_fingerprint(self, document: VersionDocument) -> str:
        """The fingerprint of this version, or that of the document if it must stay as it is."""
        fingerprint = self._fingerprint_of(self._parser(document.path).version)
        if document.fingerprint in (fingerprint, FROM_FILE) or original(self._stored(document)) is None:
            return document.fingerprint
        return fingerprint

    def _stored(self, document: VersionDocument) -> ports.IndexedDocument:
        with self._session.existing() as reading:
            [stored] = reading.content().documents([document.document])
        return stored

    @contextmanager
    def _noting(self, library_id: str, tag: str | None) -> Iterator[None]:
        """Stores an error with its version, for the list of libraries; the same error only once."""
        try:
            yield
        except errors.KebabError as error:
            if error is not self._noted:
                self._store.fail(library_id, tag, error.message)
                self._noted = error
            raise

    def _read(self, file: ports.TreeFile, reader: ports.FileReader) -> bytes:
        if file.size > self._settings.ingest.max_file_mb * 2**20:
            raise errors.ParseError("The file is too large.", reason="too_large")
        return reader.read(file)

    def _document(self, library_id: str, source: str, file: WantedFile, data: bytes) -> ports.IndexedDocument:
        """The document of a file. Raises ParseError if the file is refused."""
        path = f"{library_id}/{file.path}"  # a README is called by its folder
        parsed, chunks = chunked(partial(self._parser(file.path).parse, data, path), self._chunker)
        content = sha256(data).hexdigest()
        state = ports.FileState(len(data), None, content, file.fingerprint)
        date = parsed.date or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")
        doc_id = library_document_id(library_id, file.path, content)
        version = self._chunker.version
        return ports.IndexedDocument(source, file.path, state, parsed, chunks, version, date, "secondary", doc_id)

    def _parser(self, path: str) -> ports.Parser:
        return self._parser_for(f"{path}.md" if is_llms_txt(path) else path)


def _named(library: Library, title: str | None, description: str | None) -> Library:
    """The library with the title and description of its files, unless the user gave them."""
    return library._replace(
        title=library.title if library.titled or title is None else title,
        description=library.description if library.described or description is None else description,
    )


def _scored(library: Library, snippets: int) -> Library:
    """The library with a trust score, which is computed when the library is first indexed and then stays."""
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
