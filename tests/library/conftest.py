"""Libraries and snippets to start from, changed where a test needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kebab.core.citations import Citation, LineSpan
from kebab.core.libraries import Library, LibrarySnippet, LibraryVersion

MakeLibrary = Callable[..., Library]
MakeSnippet = Callable[..., LibrarySnippet]


@pytest.fixture(scope="session")
def library() -> MakeLibrary:
    def make(
        title: str = "Widget", *, snippets: int = 42, tags: tuple[str, ...] = ("v2.0.0", "v1.0.0"), **changes: Any
    ) -> Library:
        versions = [LibraryVersion(None, "indexed", "c0ffee", snippets, "2026-11-17T00:00:00Z")]
        versions += [LibraryVersion(tag, "indexed", "c0ffee", snippets, "2026-11-17T00:00:00Z") for tag in tags]
        found = Library(
            library_id=f"/acme/{title.lower()}",
            title=title,
            description="Gauges for dashboards",
            titled=False,
            described=False,
            origin="https://github.com/acme/widget",
            origin_kind="git",
            branch=None,
            repository="https://github.com/acme/widget",
            stars=None,
            trust_score=6.0,
            rules=(),
            versions=tuple(versions),
        )
        return found._replace(**changes)

    return make


@pytest.fixture(scope="session")
def snippet() -> MakeSnippet:
    def make(content: str, kind: str = "code", **changes: Any) -> LibrarySnippet:
        found = LibrarySnippet(
            chunk_id="0123456789abcdef0123",
            kind="code" if kind == "code" else "info",
            title="Create a dial",
            breadcrumb="Widget > Guide",
            description="",
            language="python" if kind == "code" else "",
            content=content,
            citation=Citation("docs/guide.md", LineSpan(3, 9)),
            url=None,
            tokens=10,
            score=0.5,
            suspicious=False,
        )
        return found._replace(**changes)

    return make
