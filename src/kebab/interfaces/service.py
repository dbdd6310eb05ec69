"""The operations that HTTP and MCP share, and the threads that run them.

Most operations take plain options and return wire objects.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import anyio
from anyio.to_thread import run_sync

from kebab._version import __version__
from kebab.core.checking import by_name, repeated
from kebab.core.deadline import time_limit
from kebab.core.errors import KebabError, Refused, TimedOut, UsageError
from kebab.core.search import DOC_TYPES
from kebab.search.lookup import Opened, open_cited
from kebab.search.options import FILTER_ALIASES, FILTERS, LIST_LIMIT, SearchRequest
from kebab.wire import records, viewed
from kebab.wire.answers import AnswerV1, answer_v1
from kebab.wire.libraries import LibraryListV1, library_list_v1
from kebab.wire.search import SearchResponseV1, search_response_v1
from kebab.wire.serving import HealthV1, StatusV1

if TYPE_CHECKING:
    from kebab.core.ports import Progress
    from kebab.core.records import TagRecord
    from kebab.ingest.report import IngestReport
    from kebab.knowledge_base import KnowledgeBase
    from kebab.library.libraries import LibraryDocs


class FilterChoices(NamedTuple):
    """The values that a search form offers for each filter."""

    types: tuple[str, ...]
    tags: list[TagRecord]
    languages: list[str]
    sources: list[str]


class Service:
    """The operations of one knowledge base. Any number of threads may call them."""

    def __init__(self, kb: KnowledgeBase, *, allow_write: bool = False) -> None:
        self.kb = kb
        self.allow_write = allow_write
        self._counting = Lock()
        self._ingests = 0

    # --- passages

    def search(
        self, options: Mapping[str, Any], *, fitting: Callable[[SearchResponseV1], int] | None = None
    ) -> SearchResponseV1:
        """Returns the hits for a query. `fitting` returns how many hits the caller can show: if that is not all and
        the options have no max_tokens, the other hits follow with the cursor.
        """
        request = SearchRequest.from_options(options)
        response = self.kb.search(request)
        answer = search_response_v1(response)
        if fitting is None or request.max_tokens is not None or (room := fitting(answer)) >= len(answer.hits):
            return answer
        budget = sum(hit.tokens for hit in response.hits[:room])
        return search_response_v1(self.kb.search(request._replace(max_tokens=budget)))

    def fetch(
        self,
        *,
        uri: str | None = None,
        doc_id: str | None = None,
        chunk_id: str | None = None,
        max_tokens: int | None = None,
        offset: int = 0,
    ) -> records.FetchResultV1:
        """The text of a citation, a document (by id or path) or a chunk. Exactly one of them must be named."""
        if sum(key is not None for key in (uri, doc_id, chunk_id)) != 1:
            raise UsageError(
                "Name exactly one of uri, doc_id and chunk_id.", hint='For example uri="notes/git.md#L10-L20".'
            )
        if chunk_id is not None:
            fetched = self.kb.fetch_chunk(chunk_id)
        elif doc_id is not None:
            fetched = self.kb.fetch_document(doc_id)
        else:
            fetched = self.kb.fetch_cited(uri or "")
        return records.fetch_result_v1(fetched, offset=offset, max_tokens=max_tokens)

    def span(self, uri: str) -> records.FetchResultV1:
        """The text of exactly the lines or the page that a citation names."""
        return records.fetch_result_v1(self.kb.fetch_span(uri))

    def open_cited(self, uri: str, chunk_id: str | None = None) -> Opened:
        """The whole cited document and the position of the cited passage in it."""
        with self.kb.catalog() as catalog:
            return open_cited(catalog, uri, chunk_id)

    def paths_beside(self, doc_id: str, paths: Iterable[str]) -> set[str]:
        """Those of these paths that are documents of the same source or library version as this document."""
        with self.kb.catalog() as catalog:
            return catalog.paths_beside(doc_id, paths)

    def document(self, doc_id: str) -> records.DocSummaryV1:
        """A document and its chunks, by the document's id or path."""
        return records.doc_summary_v1(*self.kb.document(doc_id))

    def chunk(self, chunk_id: str) -> records.ChunkInspectionV1:
        return records.chunk_inspection_v1(self.kb.chunk(chunk_id))

    def ask(
        self,
        question: str,
        options: Mapping[str, Any],
        *,
        on_text: Callable[[str], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> AnswerV1:
        """An answer with its citations, or the reason for refusing one. The options are search options."""
        return answer_v1(self.kb.ask(question, on_text=on_text, stop=stop, **options))

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raises an error if search options are wrong, or if the library does not exist. Nothing is searched."""
        if "query" in options:
            raise repeated("query")
        request = SearchRequest.from_options(options)
        (request if request.library is None else self.kb.libraries.resolved(request)).filters()

    # --- lists

    def documents(
        self, options: Mapping[str, Any], *, limit: int = LIST_LIMIT["default"], offset: int = 0
    ) -> records.ListV1:
        """One page of the documents that pass the filters."""
        options = by_name(options, (*FILTERS, "limit", "offset"), FILTER_ALIASES)
        filters = self.kb.filters_of(SearchRequest.from_options(options))
        found = self.kb.documents(filters, limit=limit, offset=offset)
        return records.list_v1("docs", self.kb.count_documents(filters), found, offset=offset)

    def sources(self) -> records.ListV1:
        found = self.kb.sources()
        return records.list_v1("sources", len(found), found)

    def tags(self) -> records.ListV1:
        found = self.kb.tags()
        return records.list_v1("tags", len(found), found)

    def filter_choices(self) -> FilterChoices:
        sources = [source.name for source in self.kb.sources()]
        if not sources:
            return FilterChoices(DOC_TYPES, [], [], [])
        with self.kb.catalog() as catalog:
            return FilterChoices(DOC_TYPES, catalog.tags(), catalog.languages(), sources)

    # --- libraries

    def libraries(self) -> LibraryListV1:
        return library_list_v1(self.kb.libraries.all())

    def library_docs(self, library_id: str, query: str, *, type: str | None = None, **paging: Any) -> LibraryDocs:
        """Snippets of a library that answer a query, as plain records. `paging`: the options tokens and page."""
        return self.kb.libraries.docs(library_id, query, kind=type, **paging)

    # --- the server

    def warm_up(self) -> None:
        """Loads the models, so that the first search does not wait for them. Errors are left for the first search."""
        with suppress(KebabError):
            self.kb.search("warm up", k=1)
        self.kb.close()

    def health(self) -> HealthV1:
        self.kb.count_documents()  # raises if the database cannot be read
        return HealthV1(version=__version__)

    def status(self, *, ingest_running: bool = False) -> StatusV1:
        with self._counting:
            ingest_running = ingest_running or self._ingests > 0
        return StatusV1(
            version=__version__,
            read_only=not self.allow_write,
            stats=viewed(self.kb.stats()),
            sources=[source.name for source in self.kb.sources()],
            libraries=len(self.kb.libraries.all()),
            ingest_running=ingest_running,
        )

    def ingest(
        self, *paths: str, name: str | None = None, embed: bool = True, progress: Progress | None = None
    ) -> IngestReport:
        self.require_write()
        with self._counting:
            self._ingests += 1
        try:
            return self.kb.ingest(*paths, name=name, embed=embed, progress=progress)
        finally:
            with self._counting:
                self._ingests -= 1

    def require_write(self) -> None:
        if not self.allow_write:
            raise Refused("This server only reads.", hint="Start it with --allow-write, or use kb ingest.")


_Result = TypeVar("_Result")
is_long: ContextVar[bool] = ContextVar("is_long", default=False)
"""Whether the current request has much more text than a question, and so takes many times as long."""
SHORT_CPU_S = 0.1
"""The CPU time of a short call. Most searches take a tenth of it."""


class Workers:
    """Runs calls in a few threads, about one per processor: each thread has a connection with its own cache.

    A call that turns out to be long is stopped and begun again among the other long calls, which leave one processor to
    short ones. So a few costly searches do not make everybody wait.
    """

    def __init__(self, timeout_s: float | None, *, waits: bool = False) -> None:
        """`timeout_s`: seconds that a call may take; None means no limit. `waits`: whether the calls wait for a remote
        model and cannot be begun again.
        """
        self._timeout_s = timeout_s
        self._waits = waits
        self._limiters: dict[bool, anyio.CapacityLimiter] = {}

    async def run(self, call: Callable[..., _Result], *args: Any, **options: Any) -> _Result:
        """Returns the result of a call, or raises TimedOut. `kebab.core.deadline` tells the call its time limit."""
        with time_limit(self._timeout_s) as deadline:  # the thread gets a copy of this context
            try:
                with anyio.fail_after(self._timeout_s):
                    work = partial(call, *args, **options)
                    if not self._waits and not is_long.get():
                        done = await run_sync(_if_short, work, limiter=self._places(), abandon_on_cancel=True)
                        if done is not None:
                            return done[0]
                    limiter = self._places(long=not self._waits)
                    return await run_sync(work, limiter=limiter, abandon_on_cancel=True)
            except TimeoutError as error:
                hint = "Ask for less, or raise serve.timeout_s."
                raise TimedOut(f"No answer was ready after {self._timeout_s:g} s.", hint=hint) from error
            finally:
                deadline.give_up()

    async def run_to_end(self, call: Callable[..., _Result], *args: Any) -> _Result:
        """Returns the result of a call that has no time limit and is not abandoned if the caller disconnects. The call
        may check that itself, with anyio.from_thread.check_cancelled.
        """
        return await run_sync(partial(call, *args), limiter=self._places())

    def patient(self, seconds: float) -> Workers:
        """Other workers with more time, for calls that wait for a remote model and must not block searches."""
        return Workers(None if self._timeout_s is None else self._timeout_s + seconds, waits=True)

    def _places(self, *, long: bool = False) -> anyio.CapacityLimiter:
        processors = os.cpu_count() or 2
        if long not in self._limiters:
            self._limiters[long] = anyio.CapacityLimiter(max(1, processors - 1) if long else max(4, processors + 2))
        return self._limiters[long]


def _if_short(work: Callable[[], _Result]) -> tuple[_Result] | None:
    """The result of a short call, in a tuple; None if the call was stopped because it is long."""
    with time_limit(None, cpu_seconds=SHORT_CPU_S) as limit:
        try:
            result = work()
        except TimedOut:
            if not limit.is_given_up:
                raise
            return None
    return None if limit.is_given_up else (result,)
