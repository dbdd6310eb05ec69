"""The page's own style and script: read once, named by what is in them, so that browsers may keep them for good."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import Response
from starlette.routing import Route

from kebab.core.errors import NotFound

if TYPE_CHECKING:
    from starlette.requests import Request

_MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FOREVER = "public, max-age=31536000, immutable"


class _File(NamedTuple):
    content: bytes
    media_type: str


class StaticFiles:
    """Only what was read at the start is ever served: an address reaches no file system."""

    def __init__(self) -> None:
        self._by_address: dict[str, _File] = {}
        self._addresses: dict[str, str] = {}
        for file in files(__package__).joinpath("static").iterdir():
            stem, dot, ending = file.name.rpartition(".")
            media_type = _MEDIA_TYPES.get(dot + ending)
            if media_type is None:
                continue
            content = file.read_bytes()
            named = f"{stem}.{sha256(content).hexdigest()[:12]}.{ending}"
            self._by_address[named] = _File(content, media_type)
            self._addresses[file.name] = f"/static/{named}"

    def address(self, name: str) -> str:
        return self._addresses[name]

    def route(self) -> Route:
        return Route("/static/{name}", self._serve)

    async def _serve(self, request: Request) -> Response:
        file = self._by_address.get(request.path_params["name"])
        if file is None:
            raise NotFound(f"There is no file {request.url.path}.", hint="Load the page again.")
        return Response(file.content, media_type=file.media_type, headers={"Cache-Control": _FOREVER})
