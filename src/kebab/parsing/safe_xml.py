"""XML from strangers, as events: no document type, no entities, no endless depth, nothing fetched.

Names come without their namespaces: the formats read here use each name for one thing only. The one exception, `r:id`
beside `id`, keeps its prefix.
"""

from __future__ import annotations

from typing import Protocol

from kebab.parsing.zip_container import damaged, unsafe

_DEEPEST = 1000


class XmlHandler(Protocol):
    def start(self, name: str, attributes: dict[str, str]) -> None: ...

    def end(self, name: str) -> None: ...

    def text(self, data: str) -> None: ...


def read_xml(data: bytes, handler: XmlHandler) -> None:
    """Call the handler for everything in order; ParseError if this is no XML, or XML of the kind that harms."""
    from xml.parsers.expat import ExpatError, ParserCreate

    names: dict[str, str] = {}
    depth = 0

    def local(name: str) -> str:
        known = names.get(name)
        if known is None:
            space, _, known = name.rpartition(" ")
            if known == "id" and space.endswith("/relationships"):
                known = "r:id"
            names[name] = known
        return known

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise unsafe("The XML inside is nested too deeply.")
        handler.start(local(name), {local(key): value for key, value in attributes.items()})

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        handler.end(local(name))

    def refuse(*_: object) -> None:
        raise unsafe("The XML inside declares a document type, which these formats never do.")

    parser = ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = handler.text
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        # All at once: an old expat looks at an unfinished token again with every further piece.
        parser.Parse(data, True)
    except (ExpatError, ValueError, LookupError) as error:
        raise damaged(f"The XML inside is not well-formed: {error}.") from error
