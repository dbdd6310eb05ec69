"""A stored chunk → the snippet that people and agents read: its title, where it stands, and code without its fence."""

from __future__ import annotations

import re
from os.path import commonprefix

from kebab.core.citations import Citation
from kebab.core.libraries import LibrarySnippet
from kebab.core.spans import CodeSpan
from kebab.core.text import estimate_tokens
from kebab.library.suspicion import reads_like_orders

_FENCED = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)\n(?P<code>(?:.*\n)*?)[ \t]*(?P=fence)[`~]*[ \t]*$", re.MULTILINE
)
_MYST = re.compile(r"\{[\w:-]+\}")
"""```{code-block} python"""
_OPTION = re.compile(r"[ \t]*:[\w-]+:")
_RST = (".rst", ".rest", ".rst.txt")
_LANGUAGE = re.compile(r"[\w#+.-]+")
_HEADING = re.compile(r"\A(?:[ \t]*#{1,6}[ \t][^\n]*(?:\n|\Z)|[^\n]+\n[ \t]*(?:=+|-+)[ \t]*(?:\n|\Z)|\s*\n)+")


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
    language, description, content = _parts(kind, text, citation)
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
        suspicious=reads_like_orders(text),
    )


def _parts(kind: str, text: str, citation: Citation) -> tuple[str, str, str]:
    """Language, description and content."""
    if citation.path.lower().endswith(_RST):
        return _rst_parts(kind, text)
    if kind != "code":
        return "", "", _HEADING.sub("", text, count=1).strip() or text.strip()
    if isinstance(citation.span, CodeSpan):
        return citation.span.lang or "", "", text.strip("\n")
    fenced = _FENCED.search(text)
    if fenced is None:  # indented code, or a part of what was too long
        return "", "", _dedented(_HEADING.sub("", text, count=1)).strip("\n")
    myst = _MYST.match(fenced["info"].strip())
    info, code = (fenced["info"][myst.end() :], _without_options(fenced["code"])) if myst else (fenced["info"], fenced["code"])
    language = _LANGUAGE.match(info.strip())
    description = _HEADING.sub("", text[: fenced.start()], count=1).strip()
    return language[0] if language else "", description, _dedented(code).strip("\n")


def _rst_parts(kind: str, text: str) -> tuple[str, str, str]:
    """By its blocks: headings and directives are no part of what they introduce."""
    from kebab.parsing.restructured_text import rst_blocks

    blocks = [block for block in rst_blocks(text) if block.kind != "heading"]
    if not blocks:
        return "", "", text.strip()
    code = next((block for block in blocks if block.kind == "code"), None) if kind == "code" else None
    if code is None:
        return "", "", text[blocks[0].start :].strip()
    body = text[code.start : code.end]
    if body.startswith(".. "):
        body = _without_options(_dedented(body.partition("\n")[2]))
    description = text[blocks[0].start : code.start].strip() if blocks[0] is not code else ""
    return code.title, description.removesuffix(":") if description.endswith("::") else description, _dedented(body).strip("\n")


def _without_options(code: str) -> str:
    """:caption: and the like, before the code that a directive shows."""
    lines = code.split("\n")
    while lines and (_OPTION.match(lines[0]) or not lines[0].strip()):
        lines.pop(0)
    return "\n".join(lines)


def _dedented(code: str) -> str:
    """Without the white space that all its lines begin with."""
    lines = [line for line in code.split("\n") if line.strip()]
    margin = commonprefix([line[: len(line) - len(line.lstrip())] for line in lines])  # noqa: RUF071 character by character is what is wanted
    return "\n".join(line[len(margin) :] if line.strip() else "" for line in code.split("\n")) if margin else code


def _without_repetition(names: tuple[str, ...]) -> list[str]:
    kept: list[str] = []
    for name in names:
        if name and (not kept or name.casefold() != kept[-1].casefold()):
            kept.append(name)
    return kept or [""]
