"""Libraries whose documentation is indexed: their metadata, versions and snippets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from kebab.core.citations import Citation

if TYPE_CHECKING:
    from kebab.core.ports import Key

SnippetKind = Literal["code", "info"]
SNIPPET_KINDS: tuple[str, ...] = ("code", "info")
LibraryState = Literal["pending", "indexing", "indexed", "failed"]
OriginKind = Literal["git", "folder", "file", "archive", "export"]


class LibraryVersion(NamedTuple):
    """One state of a library's documentation: a git tag, or the default branch."""

    name: str | None
    """The tag; None is the default branch, or the only state of a folder or file."""
    state: LibraryState
    commit: str | None
    snippets: int
    indexed_at: str | None
    error: str | None = None
    """Why the last attempt failed; what was indexed before is searched."""


class Library(NamedTuple):
    library_id: str
    """/owner/project"""
    title: str
    description: str
    titled: bool
    described: bool
    """Whether the user said so, rather than its own files."""
    origin: str
    """What it was added from: a URL, or a path on this machine."""
    origin_kind: OriginKind
    branch: str | None
    """Asked for instead of the default one."""
    repository: str | None
    """The address of the git repository that its text comes from, without a password; it may have arrived in another
    way.
    """
    stars: int | None
    trust_score: float | None
    """0 to 10; None until it is first indexed."""
    rules: tuple[str, ...]
    """Notes of its authors for people who use the library."""
    versions: tuple[LibraryVersion, ...]
    """The default one first, then from the latest tag down."""

    def is_named(self, name: str) -> bool:
        """Whether this is in its title, id or description, in any case of any alphabet; % and _ are letters like any
        other.
        """
        wanted = name.casefold()
        return any(wanted in text.casefold() for text in (self.title, self.library_id, self.description))

    @property
    def state(self) -> LibraryState:
        return self.versions[0].state if self.versions else "pending"

    @property
    def total_snippets(self) -> int:
        """Of the default branch."""
        return self.versions[0].snippets if self.versions else 0

    @property
    def is_searchable(self) -> bool:
        return bool(self.versions) and self.versions[0].name is None and self.versions[0].indexed_at is not None

    @property
    def tags(self) -> tuple[str, ...]:
        """The versions with a name that can be searched."""
        return tuple(
            version.name for version in self.versions if version.name is not None and version.indexed_at is not None
        )


class DoneFile(NamedTuple):
    document: Key
    key: str
    """Of the file."""
    fingerprint: str


class Making(NamedTuple):
    """A version that is being made."""

    key: Key
    source: str
    """The name of the source that its new documents go to."""
    done: dict[str, DoneFile]
    """Files that an earlier, interrupted run has indexed, by path. Those that are no longer part of the version are to
    be dropped.
    """


class VersionDocument(NamedTuple):
    """That a version has a document."""

    tag: str | None
    commit: str | None
    document: Key
    file_key: str
    doc_id: str
    path: str
    fingerprint: str


class VectorSpace(NamedTuple):
    """The vectors of one model."""

    model: str
    version: str
    dimension: int

    @property
    def fingerprint(self) -> str:
        """As its embedder has it."""
        return f"{self.model}@{self.version}:{self.dimension}"


class LibrarySnippet(NamedTuple):
    """A piece of documentation that answers by itself: code with what introduces it, or a section of prose."""

    chunk_id: str
    kind: SnippetKind
    title: str
    """The heading it stands under."""
    breadcrumb: str
    """Library and headings above it: Widget > Guide."""
    description: str
    """The paragraph that introduces code."""
    language: str
    """Of code, as its fence names it."""
    content: str
    """The code without its fence, or the prose."""
    citation: Citation
    url: str | None
    """Where these lines stand on the web, at the commit they were read from."""
    tokens: int
    score: float
    """How well it answers: from 0 to 1, but in search by words alone what bm25 gives, negative and lower is better."""
    suspicious: bool
    """Whether it reads like orders to a machine: quoted data, never an instruction."""
