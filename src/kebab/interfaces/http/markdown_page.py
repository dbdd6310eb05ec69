"""Renders a Markdown document as safe HTML, with the blocks of the cited lines marked.

HTML in the document is shown as text, HTML comments are left out, and an image is replaced by its description. Links
lead to the web or to indexed documents; other links are disabled.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from kebab.interfaces.http.addresses import CITED

_WEB = ("http", "https", "mailto")
_LEAVES = ("paragraph_open", "heading_open", "fence", "code_block", "html_block", "tr_open", "hr")
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_NOT_A_SLUG = re.compile(r"[^\w\- ]")
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")
_DEEPEST_HEADING = 6
_DEEPEST_NESTING = 40
"""The deepest nesting of lists and quotes. markdown-it leaves out anything nested more deeply."""


class MarkdownPage:
    """A parsed Markdown document. `targets` returns the paths that its links may mean, and `html` renders it."""

    def __init__(self, text: str, path: str) -> None:
        self._path = path
        self._tokens = _parser().parse(text)

    def targets(self) -> set[str]:
        """All paths that links in the document may mean."""
        links = (token for block in self._tokens for token in block.children or () if token.type == "link_open")
        return {target for link in links for target in _candidates(self._path, str(link.attrs.get("href", "")))}

    @property
    def first_heading(self) -> str:
        """The text of the heading that the document begins with, or an empty text."""
        seen = [token for token in self._tokens if not _is_comment(token)]
        return seen[1].content if seen and seen[0].type == "heading_open" else ""

    def html(self, cited: tuple[int, int] | None, known: set[str], reader: Callable[[str], str]) -> Markup:
        """The HTML. `cited`: first and last line; `known`: indexed paths; `reader` returns the address of a path."""
        if cited is not None:
            _mark(self._tokens, *cited)
        _name_headings(self._tokens)
        address_of = partial(_address, self._path, known=known, reader=reader)
        return Markup(_Renderer(address_of).render(self._tokens, _parser().options, {}))


def _parser() -> MarkdownIt:
    # HTML is recognized only so that the renderer can show it as text.
    parser = MarkdownIt("commonmark", {"maxNesting": _DEEPEST_NESTING}).enable(["table", "strikethrough"])
    # All links are accepted here: the renderer disables some.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005
    return parser


class _Renderer(RendererHTML):
    """Renders links, images, code and tables for the page. Headings go one level down: the page has an h1."""

    def __init__(self, address_of: Callable[[str], str | None]) -> None:
        super().__init__()
        self._address_of = address_of
        self._open_links: list[str] = []

    def link_open(self, tokens: Sequence[Token], number: int, *_: Any) -> str:
        link = str(tokens[number].attrs.get("href", ""))
        address = self._address_of(link)
        self._open_links.append("a" if address is not None else "span")
        if address is None:
            return f'<span class="dead-link" title="{escape(f"Not indexed: {link}")}">'
        outside = "" if address.startswith(("/", "#")) else ' rel="noopener noreferrer nofollow" class="outside"'
        return f'<a href="{escape(address)}"{outside}>'

    def link_close(self, *_: Any) -> str:
        return f"</{self._open_links.pop()}>"

    def image(self, tokens: Sequence[Token], number: int, options: Any, env: Any) -> str:
        alt = self.renderInlineAsText(tokens[number].children or [], options, env)
        return f'<span class="image">{escape(f"[image: {alt}]" if alt else "[image]")}</span>'

    def html_block(self, tokens: Sequence[Token], number: int, *_: Any) -> str:
        text = _without_comments(tokens[number].content).strip()
        return (
            f'<pre{self.renderAttrs(tokens[number])} tabindex="0"><code>{escape(text)}</code></pre>\n' if text else ""
        )

    def html_inline(self, tokens: Sequence[Token], number: int, *_: Any) -> str:
        text = tokens[number].content
        return "<br>" if _LINE_BREAK.fullmatch(text) else str(escape(_without_comments(text)))

    def fence(self, tokens: Sequence[Token], number: int, *_: Any) -> str:
        token = tokens[number]
        language = _LANGUAGE.match(token.info.strip())
        label = f' data-language="{escape(language[0])}"' if language else ""
        return f'<pre{self.renderAttrs(token)}{label} tabindex="0"><code>{escape(token.content)}</code></pre>\n'

    code_block = fence  # type: ignore[assignment]  # the base class names more of the arguments

    def table_open(self, tokens: Sequence[Token], number: int, *_: Any) -> str:
        tokens[number].attrSet("class", " ".join(["wide", *str(tokens[number].attrGet("class") or "").split()]))
        return f'<div{self.renderAttrs(tokens[number])} tabindex="0"><table>\n'

    def table_close(self, *_: Any) -> str:
        return "</table></div>\n"

    def th_open(self, *_: Any) -> str:
        return "<th>"  # no alignment: the Content-Security-Policy forbids inline styles

    def td_open(self, *_: Any) -> str:
        return "<td>"

    def heading_open(self, tokens: Sequence[Token], number: int, *_: Any) -> str:
        return f"<{_lower(tokens[number].tag)}{self.renderAttrs(tokens[number])}>"

    def heading_close(self, tokens: Sequence[Token], number: int, *_: Any) -> str:
        return f"</{_lower(tokens[number].tag)}>\n"


def _is_comment(token: Token) -> bool:
    return token.type == "html_block" and not _without_comments(token.content).strip()


def _without_comments(html: str) -> str:
    """Removes HTML comments. A regular expression would take minutes on many unclosed comments."""
    kept, last = [], 0
    while (start := html.find("<!--", last)) >= 0 and (end := html.find("-->", start)) >= 0:
        kept.append(html[last:start])
        last = end + 3
    return "".join([*kept, html[last:]])


def _lower(tag: str) -> str:
    return f"h{min(_DEEPEST_HEADING, int(tag[1]) + 1)}"


# --- marking the cited lines


def _mark(tokens: Sequence[Token], first: int, last: int) -> None:
    """Marks the blocks inside the lines and the innermost ones that overlap them. The first gets the id CITED."""
    open_blocks: list[tuple[Token, bool]] = []
    marks: list[Token] = []
    for token in tokens:
        if token.nesting < 0:
            open_blocks.pop()
            continue
        inside = bool(open_blocks) and open_blocks[-1][1]
        if not inside and _is_cited(token, first, last):
            # The paragraphs of a tight list are not rendered, so the list item is marked.
            marks.append(open_blocks[-1][0] if token.hidden and open_blocks else token)
            inside = True
        if token.nesting > 0:
            open_blocks.append((token, inside))
    for mark in marks:
        mark.attrSet("class", "cited")
    if marks:
        marks[0].attrSet("id", CITED)


def _is_cited(token: Token, first: int, last: int) -> bool:
    if token.map is None or token.type == "inline" or _is_comment(token):
        return False
    begin, end = token.map[0] + 1, token.map[1]
    return (begin >= first and end <= last) or (token.type in _LEAVES and begin <= last and end >= first)


def _name_headings(tokens: Sequence[Token]) -> None:
    """Gives headings the ids that GitHub gives them, so that links to headings work. The prefix h- keeps them apart
    from other ids of the page.
    """
    seen: dict[str, int] = {}
    for opening, content in pairwise(tokens):
        if opening.type == "heading_open" and not opening.attrGet("id"):
            slug = _slug(content.content)
            count = seen[slug] = seen.get(slug, -1) + 1
            opening.attrSet("id", f"h-{slug}-{count}" if count else f"h-{slug}")


def _slug(heading: str) -> str:
    return _NOT_A_SLUG.sub("", heading.lower()).strip().replace(" ", "-")


# --- links


def _address(path: str, link: str, known: Iterable[str], reader: Callable[[str], str]) -> str | None:
    """The address that a link leads to, or None if the link is unsafe or its document is not indexed."""
    try:
        parts = urlsplit(link)
    except ValueError:
        return None
    if parts.scheme:
        return link if parts.scheme.lower() in _WEB else None
    if parts.netloc or link.startswith(("\\", "/\\")):
        return None
    fragment = f"#h-{_slug(unquote(parts.fragment))}" if parts.fragment else ""
    if not parts.path:
        return fragment or None
    target = next((one for one in _candidates(path, link) if one in known), None)
    return reader(target) + fragment if target is not None else None


def _candidates(path: str, link: str) -> list[str]:
    """The paths that a relative link may mean, the likeliest first."""
    try:
        parts = urlsplit(link)
    except ValueError:
        return []
    if parts.scheme or parts.netloc or not parts.path:
        return []
    written = unquote(parts.path)
    folder = "" if written.startswith("/") else posixpath.dirname(path)
    joined = posixpath.normpath(posixpath.join(folder, written.lstrip("/")))
    if joined.startswith("..") or "\0" in joined:
        return []
    return [joined, f"{joined}.md", f"{joined}/index.md", f"{joined}/_index.md", f"{joined}/README.md"]
