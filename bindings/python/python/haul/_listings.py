"""Listings of many pages: ``fetch_many(..., paginate=...)``.

The pages of one listing come one after the other, those of several listings side by side. The engine
finds the next page; this module sends the requests and orders the results.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator, Mapping

from ._haul import EngineError, Listing
from ._redirects import origin_of, rewind
from ._request_objects import PreparedRequest
from .exceptions import PaginationError, PaginationWarning, RequestException, from_engine_error
from .models import Response, response_from
from .sessions import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._haul import Batch, ReceivedResponse
    from ._retrying_batch import RetryingBatch
    from .many import Result, _CallBuilder
    from .models import Call
    from .selection import ValueQuery

_KEYS = frozenset({"link", "css", "json", "query", "any_origin", "max_pages"})


class Pagination:
    """The rule by which the next page of a listing is found.

    >>> haul.Pagination(query="page", max_pages=10)
    Pagination(query='page', max_pages=10)

    :param link: follow the link with the relation ``next`` in the Link header field (RFC 8288).
    :param css: the CSS selector, with its attribute, of the URL of the next page in HTML or XML
        (``"a[rel=next]@href"``); with ``query`` that of the value of a query parameter.
    :param json: the JSONPath (RFC 9535) of the URL of the next page; with ``query`` that of the value
        of a query parameter.
    :param query: the name of a query parameter that is counted up, or ``"NAME:STEP"``.
    :param any_origin: whether pages may lead to other servers. They get no credentials.
    :param max_pages: the number of pages after which a listing ends. Without it, a listing of more
        than 1,000 pages fails.
    :raises ValueError: the arguments contradict each other, or one is invalid.
    """

    __slots__ = ("link", "css", "json", "query", "any_origin", "max_pages")

    def __init__(
        self,
        *,
        link: bool = False,
        css: str | None = None,
        json: str | None = None,
        query: str | None = None,
        any_origin: bool = False,
        max_pages: int | None = None,
    ) -> None:
        if max_pages is not None and max_pages < 1:
            raise ValueError("max_pages has to be at least 1")
        self.link = link
        self.css = css
        self.json = json
        self.query = query
        self.any_origin = any_origin
        self.max_pages = max_pages
        self._begin("http://localhost/")

    def __repr__(self) -> str:
        given = (f"{name}={getattr(self, name)!r}" for name in self.__slots__ if getattr(self, name))
        return f"Pagination({', '.join(given)})"

    def _counts(self) -> bool:
        """Returns whether the pages are counted."""
        return self.css is None and self.json is None and self.query is not None

    def _begin(self, url: str) -> Listing:
        return Listing(
            url,
            link=self.link,
            css=self.css,
            json=self.json,
            query=self.query,
            any_origin=self.any_origin,
            max_pages=self.max_pages,
        )


def pagination_of(given: Any) -> Pagination:
    """Returns the pagination that a program has given: ``"link"``, a JSONPath, a CSS selector, a dict
    or an object.

    :raises ValueError: it is invalid."""
    if isinstance(given, Pagination):
        return given
    if isinstance(given, str):
        if given.startswith("$"):
            return Pagination(json=given)
        return Pagination(link=True) if given == "link" else Pagination(css=given)
    if isinstance(given, Mapping):
        unknown = given.keys() - _KEYS
        if unknown:
            raise ValueError(f"paginate has no key {min(map(str, unknown))!r}")
        return Pagination(**given)
    raise TypeError(f"paginate has to be a text, a dict or a Pagination, not {type(given).__name__}")


class _Chain:
    """A listing in progress, with the results that wait for their turn."""

    __slots__ = ("index", "item", "request", "settings", "follow", "listing", "origin", "page", "results", "next_url", "ended")

    def __init__(self, index: int, item: Any) -> None:
        self.index = index
        self.item = item
        #: The request for the first page.
        self.request: PreparedRequest
        self.settings: dict[str, Any] = {}
        self.follow: int | None = None
        self.listing: Listing
        self.origin: tuple[str, str, int]
        self.page = 1
        self.results: deque[Result] = deque()
        #: The URL of the next page, while its request waits.
        self.next_url: str | None = None
        self.ended = False


class Listings:
    """The listings of a call of ``fetch_many``."""

    def __init__(
        self,
        pagination: Pagination,
        settings: dict[str, Any],
        batch: Batch | RetryingBatch,
        session: Session,
        calls: _CallBuilder,
        query: ValueQuery | None,
        result: type[Result],
    ) -> None:
        self.pagination = pagination
        self.session = session
        self.calls = calls
        self.query = query
        self.result = result
        self.ordered = settings["ordered"]
        self.memory = settings["memory"]
        self.batch = batch
        self.bunch = settings["max_parallel"] // 2 + 4
        self.ahead = settings["max_parallel"] * 2 + 8
        #: The listings that have not ended, or whose results wait, in the order of the input.
        self.chains: dict[int, _Chain] = {}
        self.running: dict[int, tuple[_Chain, PreparedRequest, Call]] = {}
        #: The listings whose next request waits for memory.
        self.paused: deque[_Chain] = deque()
        #: The number of body bytes of results that wait for their turn.
        self.held = 0

    def results(self, items: Iterator[Any]) -> Iterator[Result]:
        """Yields the results of all pages."""
        index, exhausted = 0, False
        while True:
            self.calls.reset()
            while not exhausted and len(self.chains) < self.ahead and self.held < self.memory:
                try:
                    item = next(items)
                except StopIteration:
                    exhausted = True
                    break
                self._begin(_Chain(index, item))
                index += 1
            yield from self._ready()
            if exhausted and not self.chains:
                return
            self._resume()
            if not self.running:
                continue
            finished = self.batch.next(self.bunch)
            if not finished:
                # In a forked child, the requests of the parent never finish.
                return
            for number, reply, failed in finished:
                self._finish(*self.running.pop(number), reply, failed)

    def _begin(self, chain: _Chain) -> None:
        """Sends the request for the first page of a listing."""
        self.chains[chain.index] = chain
        try:
            chain.request, chain.settings, chain.follow = self.calls.prepared(chain.item)
            url = chain.request.url or ""
            chain.origin, chain.listing = origin_of(url), self.pagination._begin(url)
            self._submit(chain, chain.request)
        except EngineError as failure:
            self._add(chain, None, from_engine_error(failure), failure)
        except (RequestException, UnicodeError) as error:
            self._add(chain, None, error)

    def _submit(self, chain: _Chain, request: PreparedRequest) -> None:
        self.calls.refuse_mount(request.url or "")
        call = self.calls.prepared_call(request, chain.settings, chain.follow)
        self.running[self.batch.submit(*call, isinstance(chain.item, PreparedRequest))] = chain, request, call

    def _resume(self) -> None:
        """Sends the requests that waited for memory. The listing whose results come next never waits."""
        first = next(iter(self.chains), None)
        for _ in range(len(self.paused)):
            chain = self.paused.popleft()
            if self.held >= self.memory and self.ordered and chain.index != first:
                self.paused.append(chain)
                continue
            url, chain.next_url = chain.next_url or "", None
            try:
                self._submit(chain, self._page_request(chain, url))
            except EngineError as failure:
                self._add(chain, None, from_engine_error(failure), failure)
            except (RequestException, UnicodeError) as error:
                self._add(chain, None, error)

    def _page_request(self, chain: _Chain, url: str) -> PreparedRequest:
        """Returns the request for a page after the first.

        Credentials go to the origin of the first page only."""
        request = chain.request.copy()
        request.url = url
        request._jar_header = None
        is_first = origin_of(url) == chain.origin
        headers = request.headers
        headers.pop("Cookie", None)
        if not is_first:
            self.session._strip_credentials(request, chain.origin)
        cookie = self.session._cookies_for_redirect(url, is_first, chain.request._first_cookies)
        if cookie:
            headers["Cookie"] = cookie
        if request.body is not None:
            rewind(request)
        return request

    def _finish(
        self, chain: _Chain, request: PreparedRequest, call: Call, reply: ReceivedResponse | None, failed: Exception | None
    ) -> None:
        """Stores the result of a page, and the URL of the next one."""
        if reply is None:
            error = from_engine_error(failed, request, call[0].proxied) if isinstance(failed, EngineError) else failed
            self._add(chain, None, error, failed)
            return
        if chain.listing.ends_at(reply.status):
            chain.ended = True
            return
        problem, fault = None, None
        response = response_from(Response, reply, call)
        self.session._store_cookies(response)
        changed, raised = self.calls.after_hooks(response, self.calls.hooks_for(request, chain.settings))
        if changed is None:
            self._add(chain, None, raised, reply.record())
            return
        response = changed
        values = self._values(response)
        has_values = None if values is None else any(values.values() if isinstance(values, dict) else [values])
        try:
            chain.next_url, warning = chain.listing.next(reply, has_values)
        except EngineError as failure:
            _kind, message, url = failure.args[:3]
            problem, warning, fault = PaginationError(f"{url}: {message}", request=request), None, failure
        self._add(chain, response, None, reply.record() if response._reply is not reply else None)
        chain.results[-1]._values = values
        if warning is not None:
            warnings.warn(f"{reply.url}: {warning}", PaginationWarning, stacklevel=4)
        if problem is not None:
            self._add(chain, None, problem, fault)
        elif chain.next_url is None:
            chain.ended = True
        else:
            self.paused.append(chain)

    def _values(self, response: Response) -> list[Any] | dict[str, list[Any]] | None:
        """Returns the selected values of a page if the pages are counted, because a page without
        values ends such a listing."""
        if self.query is None or not self.pagination._counts():
            return None
        try:
            return self.query.values(response, None)
        except ValueError:
            # Result.values raises it again.
            return None

    def _add(self, chain: _Chain, response: Response | None, error: Exception | None, facts: Any = None) -> None:
        """Adds a result to a listing. An error ends the listing."""
        chain.results.append(self.result(chain.index, chain.item, response, error, self.query, chain.page, facts))
        chain.page += 1
        if response is None:
            chain.ended = True
        else:
            self.held += len(response.content)

    def _ready(self) -> Iterator[Result]:
        """Yields the results whose turn has come."""
        for index in list(self.chains):
            chain = self.chains[index]
            while chain.results:
                result = chain.results.popleft()
                if result.response is not None:
                    self.held -= len(result.response.content)
                yield result
            if chain.ended:
                del self.chains[index]
            elif self.ordered:
                return
