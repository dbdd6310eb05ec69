"""A stored chunk → the snippet that people and agents read: its title, where it stands, and code without its fence."""

from __future__ import annotations

from kebab.analysis.orders import reads_like_orders
from kebab.core.citations import Citation
from kebab.core.libraries import LibrarySnippet
from kebab.core.text import estimate_tokens, one_line
from kebab.library.snippet_parts import parts_of


def make_snippet(
    *,
    chunk_id: str,
    kind: str,
    text: str,
    library: str,
    page: str,
    headings: tuple[str, ...],
    citation: Citation,
    score: float,
    url: str | None = None,
) -> LibrarySnippet:
    """`library` and `page` are titles."""
    *above, title = _without_repetition((library, page, *headings))
    language, description, content = parts_of(kind, text, citation, headings)
    return LibrarySnippet(
        chunk_id=chunk_id,
        kind="code" if kind == "code" else "info",
        title=title,
        breadcrumb=" > ".join(above),
        description=description,
        language=language,
        content=content,
        citation=citation,
        url=url,
        tokens=estimate_tokens(text, code=kind == "code"),
        score=score,
        suspicious=reads_like_orders("\n\n".join((*above, title, text))),
    )


def _without_repetition(names: tuple[str, ...]) -> list[str]:
    kept: list[str] = []
    for name in map(one_line, names):
        if name and (not kept or name.casefold() != kept[-1].casefold()):
            kept.append(name)
    return kept or [""]
