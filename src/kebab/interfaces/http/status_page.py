"""What this server serves, and what it is doing; with leave to write, also a button that brings the sources up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import RedirectResponse

from kebab.interfaces.http import addresses
from kebab.interfaces.http.reading import form_body, only

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from kebab.interfaces.http.ingest_jobs import IngestJobs
    from kebab.interfaces.http.templating import Templates
    from kebab.interfaces.service import Service
    from kebab.interfaces.workers import Workers


class StatusPage:
    def __init__(self, service: Service, jobs: IngestJobs, workers: Workers, templates: Templates) -> None:
        self._service = service
        self._jobs = jobs
        self._workers = workers
        self._templates = templates

    async def page(self, request: Request) -> Response:
        only(request, set())
        shown = await self._workers.run(self._shown)
        return self._templates.page("status.html", jobs=self._jobs.all().items, running=self._jobs.is_running, **shown)

    def _shown(self) -> dict[str, Any]:
        return {
            "status": self._service.status(),
            "sources": self._service.sources().items,
            "libraries": self._service.libraries().items,
        }

    async def ingest(self, request: Request) -> Response:
        """All known sources; other folders are for those who can type a path."""
        self._service.require_write()
        sent = await form_body(request)
        self._jobs.start((), None, "embed" in sent)
        return RedirectResponse(addresses.STATUS, 303)
