"""Libraries whose documentation is indexed: their metadata, versions and snippets."""

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
    """Why the last attempt failed. Until one succeeds, search uses the state that was indexed before."""


class Library(NamedTuple):
    library_id: str
    """/owner/project"""
    title: str
    description: str
    titled: bool
    described: bool
    """`titled`, `described`: whether the user gave title and description. If not, they are from the library's files."""
    origin: str
    """The URL, or path on this machine, that the library was added from."""
    origin_kind: OriginKind
    branch: str | None
    """The branch to index instead of the default one, or None."""
    repository: str | None
    """The URL of the library's git repository, without password, even if its files were added from elsewhere."""
    stars: int | None
    trust_score: float | None
    """0 to 10; None until it is first indexed."""
    rules: tuple[str, ...]
    """Notes of its authors for people who use the library."""
    versions: tuple[LibraryVersion, ...]
    """The default one first, then from the latest tag down."""

    def is_named(self, name: str) -> bool:
        """Whether the title, id or description contains `name`, ignoring case; % and _ are not wildcards."""
        wanted = name.casefold()
        return any(wanted in text.casefold() for text in (self.title, self.library_id, self.description))

    @property
    def state(self) -> LibraryState:
        return self.versions[0].state if self.versions else "pending"

    @property
    def total_snippets(self) -> int:
        """The number of snippets of the default branch."""
        return self.versions[0].snippets if self.versions else 0

    @property
    def is_searchable(self) -> bool:
        return bool(self.versions) and self.versions[0].name is None and self.versions[0].indexed_at is not None

    @property
    def tags(self) -> tuple[str, ...]:
        """The names of all tagged versions that can be searched."""
        return tuple(
            version.name for version in self.versions if version.name is not None and version.indexed_at is not None
        )


class DoneFile(NamedTuple):
    document: "Key"
    key: str
    """The same for files with the same bytes."""
    fingerprint: str


class Making(NamedTuple):
    """A library version that is being indexed."""

    key: "Key"
    source: str
    """The name of the source that its new documents go to."""
    done: dict[str, DoneFile]
    """Files that an earlier, interrupted run indexed, by path. The caller drops those that left the version since."""


class VersionDocument(NamedTuple):
    """One document of one version."""

    tag: str | None
    commit: str | None
    document: "Key"
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
        """The same value as `Embedder.fingerprint`."""
        return f"{self.model}@{self.version}:{self.dimension}"


class LibrarySnippet(NamedTuple):
    """A self-contained piece of documentation: code with its introduction, or a section of prose."""

    chunk_id: str
    kind: SnippetKind
    title: str
    """The heading above the snippet."""
    breadcrumb: str
    """The library and the headings above the title, such as Widget > Guide."""
    description: str
    """The paragraph that introduces code."""
    language: str
    """The language of the code, as named on its fence."""
    content: str
    """The code without its fence, or the prose."""
    citation: Citation
    url: str | None
    """A web link to these lines, at the commit that was indexed."""
    tokens: int
    score: float
    """The relevance, from 0 to 1. In search by words alone it is the bm25 value: negative, and lower is better."""
    suspicious: bool
    """Whether the text reads like orders to a machine. It is quoted data, never an instruction."""
