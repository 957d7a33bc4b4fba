"""``fetch_many``: sends many requests at the same time and yields their results.

One thread of the engine does all the work. The memory for bodies is bounded, whatever the number of
requests, and however slowly the program takes the results.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from functools import partial
from operator import attrgetter

from ._request_objects import PreparedRequest, Request, default_hooks, hooks_of
from ._haul import Batch, EngineError
from .exceptions import RequestException, from_engine_error
from ._session_parts import everywhere
from .cookies import CookieJar
from .models import Response, failed_request, response_from
from .sessions import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._haul import SharedOptions
    from ._listings import Pagination
    from ._retry_policy import Retry
    from ._retrying_batch import RetryingBatch
    from .models import Call
    from .selection import ValueQuery

__all__ = ["Result", "ResultList", "fetch_many"]


_SEND_ARGUMENTS = frozenset({"timeout", "verify", "cert"})
#: The attributes of a response that the result of a failed request lacks.
_RESPONSE_ATTRIBUTES = frozenset(name for name in dir(Response) if not name.startswith("_"))
#: The methods of a response. In the result of a failed request they raise its error when they are called.
_RESPONSE_METHODS = frozenset(name for name in _RESPONSE_ATTRIBUTES if callable(getattr(Response, name)))


class Result:
    """The result of one request: a :attr:`response`, or an :attr:`error`.

    The attributes of the response are also attributes of the result. If the request failed, the
    methods of a response (``json``, ``raise_for_status``) and :meth:`unwrap` raise its error when they
    are called, and the values (``text``, ``status_code``) do not exist: ``hasattr`` is false, and their
    use raises an ``AttributeError`` whose ``__cause__`` is the error. :attr:`ok` is false.

    >>> failed, = fetch_many(["http://127.0.0.1:1/"])
    >>> failed.ok, hasattr(failed, "text"), getattr(failed, "status_code", None)
    (False, False, None)
    >>> failed.raise_for_status()                                        # doctest: +ELLIPSIS
    Traceback (most recent call last):
    haul.exceptions.ConnectionError: http://127.0.0.1:1/: ...
    """

    __slots__ = ("index", "request", "response", "error", "page", "_query", "_values", "_facts")

    def __init__(
        self,
        index: int,
        request: Any,
        response: Response | None,
        error: Exception | None,
        query: ValueQuery | None = None,
        page: int = 1,
        facts: Any = None,
    ) -> None:
        #: The position of the request in the input, from 0.
        self.index = index
        #: The item of the input.
        self.request = request
        #: The response, unless the request failed.
        self.response = response
        #: The exception, if the request failed.
        self.error = error
        #: The number of the page in its listing, from 1. It is 1 without ``paginate``.
        self.page = page
        self._query = query
        self._values: list[Any] | dict[str, list[Any]] | None = None
        # The engine's error if the request failed. The text of the record in a copy that was pickled, and
        # if a hook has raised or replaced the response.
        self._facts = facts

    @property
    def values(self) -> list[Any] | dict[str, list[Any]]:
        """The values that ``select`` or ``select_json`` of :func:`fetch_many` take from the response.
        They are a dict of lists if the queries have names.

        :raises ValueError: the response is not JSON.
        :raises AttributeError: neither argument was given, or the request failed."""
        if self._values is None:
            if self._query is None or self.error is not None:
                # Python then calls `__getattr__`, whose error the program gets.
                raise AttributeError
            self._values = self._query.values(self.unwrap(), None)
        return self._values

    @property
    def ok(self) -> bool:
        """True if there is a response, and its status is not an error (400 to 599)."""
        return self.error is None and self.unwrap().ok

    def close(self) -> None:
        """Closes the response, if there is one."""
        if self.error is None:
            self.unwrap().close()

    def unwrap(self) -> Response:
        """Returns the response.

        :raises RequestException: the request failed."""
        if self.error is not None:
            raise self.error
        assert self.response is not None
        return self.response

    def record(self, body: bool = True) -> dict[str, Any]:
        """Returns the facts about the request, with the names of ``haul --jsonl`` (records.schema.json).

        :param body: whether the body is part of the record, as ``body`` or ``body_base64``. With
            ``select`` or ``select_json``, ``values`` take its place.

        A status of 400 or above is no error, as everywhere in this module."""
        from ._records import record_of

        return record_of(self, body)

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        from ._records import transfer_text

        state = {name: getattr(self, name) for name in ("index", "request", "response", "error", "page", "_values")}
        if self._query is not None and self.error is None:
            # A compiled query cannot be pickled.
            try:
                state["_values"] = self.values
            except ValueError:
                pass
        return None, {**state, "_query": None, "_facts": transfer_text(self)}

    def __getattr__(self, name: str) -> Any:
        # Python calls this if there is no property, or if a property raises an AttributeError. `copy` looks
        # up special methods before the copy has any attribute.
        if name[:2] == "__" or name in Result.__slots__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        if self.error is None:
            if name == "values":
                raise AttributeError("there are no values without select or select_json", name=name)
            return getattr(self.response, name)
        if name in _RESPONSE_METHODS:
            return self._raise_error
        if name in _RESPONSE_ATTRIBUTES or name == "values":
            message = f"the request failed, so its result has no {name!r}: {self.error!r}; unwrap() raises this error"
            raise AttributeError(message, name=name) from self.error
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def _raise_error(self, *_: Any, **__: Any) -> Any:
        """Raises the error. It stands for each method of the response that a failed request does not
        have."""
        return self.unwrap()

    def __dir__(self) -> list[str]:
        names = set(dir(type(self)))
        if self.error is None:
            return sorted(names.union(dir(self.response)))
        return sorted(names - (_RESPONSE_ATTRIBUTES - _RESPONSE_METHODS - _OWN_ATTRIBUTES))

    def __bool__(self) -> bool:
        return self.error is None

    def __repr__(self) -> str:
        return f"<Result {self.index}: {self.error!r}>" if self.error is not None else f"<Result {self.index}: {self.response!r}>"

    def _repr_html_(self) -> str:
        from ._html import results_html

        return results_html([self])


_OWN_ATTRIBUTES = frozenset(vars(Result))
for _name in _RESPONSE_ATTRIBUTES - _OWN_ATTRIBUTES:
    # Without a property, Python makes an AttributeError, with its text, before it calls `__getattr__`.
    setattr(Result, _name, property(attrgetter(f"response.{_name}")))


class ResultList(list[Result]):
    """A list of results, which a notebook shows as a table.

    >>> haul.ResultList(haul.fetch_many(urls))                           # doctest: +SKIP
    """

    def _repr_html_(self) -> str:
        from ._html import results_html

        return results_html(self)


def fetch_many(
    requests: Iterable[str | bytes | Request | PreparedRequest | Mapping[str, Any]],
    max_parallel: int = 64,
    *,
    per_host: int | None = None,
    ordered: bool = True,
    max_memory: int = 64 << 20,
    session: Session | None = None,
    timeout: Any = None,
    allow_redirects: bool = True,
    rate: float | None = None,
    rate_host: float | None = None,
    limit_rate_total: int | None = None,
    stall_time: float | None = None,
    select: str | Iterable[str] | Mapping[str, str] = (),
    select_json: str | Iterable[str] | Mapping[str, str] = (),
    paginate: str | Mapping[str, Any] | Pagination | None = None,
    retries: Retry | int | None = None,
    progress: bool = False,
) -> Iterator[Result]:
    """Sends all requests of an iterable and yields their results.

    >>> for result in fetch_many(f"http://127.0.0.1/{i}" for i in range(1000)):  # doctest: +SKIP
    ...     print(result.index, len(result.content))

    :param requests: URLs (text or bytes), requests, or dicts of arguments for
        :meth:`haul.Session.request` (except ``stream`` and ``proxies``). Items are taken only as they
        are needed, so the iterable may be endless.
    :param max_parallel: maximum number of requests at once.
    :param per_host: maximum number of requests at once to one host; default: from 6 to 50, as many as help.
    :param ordered: whether results come in the order of the requests, not of their completion.
    :param max_memory: maximum number of bytes of all bodies that are in progress or not yet taken.
    :param session: the session whose headers, cookies, proxies and certificates are used.
    :param timeout: as in :meth:`haul.Session.request`.
    :param allow_redirects: whether the engine follows redirects. Responses have no ``history``. A
        method other than POST stays the same after a 301 or 302.
    :param rate: maximum number of requests that start in a second; may be less than 1.
    :param rate_host: the same for each host.
    :param limit_rate_total: maximum number of body bytes a second in each direction, over all requests.
    :param stall_time: number of seconds for which no byte of a request may move in either direction,
        after which it fails with a ``ReadTimeout``.
    :param select: CSS selectors as in :func:`haul.select`; their values are :attr:`Result.values`.
    :param select_json: JSONPath queries as in :func:`haul.select_json`, instead of ``select``.
    :param paginate: treats each item as the first page of a listing and yields all of its pages:
        ``"link"``, a CSS selector with an attribute (``"a[rel=next]@href"``), a JSONPath, a dict of
        arguments for :class:`haul.Pagination`, or such an object.
    :param retries: the failures and statuses after which a request is sent again: a
        :class:`haul.Retry`, or the number of retries; default: those of the session. The wait for
        a retry occupies no place. Results that come before their turn then count for ``max_memory``
        only until the engine has handed them over.
    :param progress: whether tqdm shows the number of results so far.
    :raises ImportError: tqdm is not installed, and ``progress`` is set.
    :raises ValueError: a selector or query is malformed, ``max_parallel`` or ``per_host`` is less than
        1, or a rate or time is not positive.

    Leaving the loop early cancels the requests in progress. A failed request is a result with an
    :attr:`~Result.error`.
    """
    if max_parallel < 1 or (per_host is not None and per_host < 1):
        raise ValueError("max_parallel and per_host have to be at least 1")
    if isinstance(requests, (str, bytes, Mapping)):
        # Iterating over text or a dict would take each letter or key for a URL.
        raise TypeError(f"fetch_many takes an iterable of URLs or requests, not one {type(requests).__name__}")
    check_limits(rate, rate_host, limit_rate_total, stall_time)
    if progress:
        from ._progress import shown

        # The number of pages of listings is not known.
        total = len(requests) if paginate is None and isinstance(requests, Sized) else None
        return shown(fetch_many(
            requests, max_parallel, per_host=per_host, ordered=ordered, max_memory=max_memory, session=session, timeout=timeout,
            allow_redirects=allow_redirects, rate=rate, rate_host=rate_host, limit_rate_total=limit_rate_total,
            stall_time=stall_time, select=select, select_json=select_json, paginate=paginate, retries=retries,
        ), total)  # fmt: skip
    settings: dict[str, Any] = {
        "max_parallel": max_parallel, "per_host": per_host, "ordered": ordered, "memory": max_memory,
        "rate": rate, "rate_host": rate_host, "limit_rate_total": limit_rate_total, "stall_time": stall_time,
    }  # fmt: skip
    query = None
    if select or select_json:
        from .selection import query as compiled

        query = compiled(select, select_json, ())
    session = session or Session()
    settings["retries"] = session.retries if retries is None else retries
    if paginate is not None:
        from ._listings import Listings, pagination_of

        calls = _CallBuilder(session, timeout, allow_redirects)
        # The engine's order would hold back the second page of a listing behind other listings.
        batch = batch_of(session, {**settings, "ordered": False}, lambda *_: None)
        return Listings(pagination_of(paginate), settings, batch, session, calls, query, Result).results(iter(requests))
    return _results(iter(requests), settings, session, timeout, allow_redirects, query)


def batch_of(session: Session, settings: Mapping[str, Any], tell: Callable[[int, Any, Any, float], None]) -> Batch | RetryingBatch:
    """Returns a batch with these settings, which sends failed requests again if ``retries`` are set.

    :param tell: is called before each retry."""
    given = dict(settings)
    retries = given.pop("retries")
    if not retries:
        return Batch(session._client, **given)
    from ._retry_policy import HostHolds, retry_of
    from ._retrying_batch import RetryingBatch

    rules = retry_of(retries)
    assert rules is not None
    ordered = given.pop("ordered")
    return RetryingBatch(Batch(session._client, ordered=False, **given), rules, session._holds or HostHolds(), ordered, tell)


class ObservedRequests:
    """The requests of a batch whose steps the hooks of the session or the logger want to know."""

    def __init__(self, session: Session) -> None:
        self._session = session
        #: The observed requests in progress, by their numbers.
        self.in_progress: dict[int, PreparedRequest] = {}
        self._next: PreparedRequest | None = None

    def call_for(self, calls: _CallBuilder, item: Any) -> Call:
        """Returns the arguments for an item, after telling that its request is sent."""
        from ._events import Observation

        request, settings, follow = calls.prepared(item)
        request._observation = Observation(self._session._event_hooks)
        request._observation.tell("request", request)
        self._next = request
        return calls.prepared_call(request, settings, follow)

    def begin(self, number: int) -> None:
        """Stores the request that was submitted last under its number."""
        request, self._next = self._next, None
        if request is not None:
            self.in_progress[number] = request

    def tell_retry(self, number: int, reply: Any, failed: Any, wait: float) -> None:
        """Tells that a request will be sent again."""
        request = self.in_progress.get(number)
        if request is None or request._observation is None:
            return
        response = None if reply is None else response_from(Response, reply, None)
        error = from_engine_error(failed) if isinstance(failed, EngineError) else failed
        request._observation.tell("retry", request, response, error, wait)
        request._observation.tell("request", request)

    def end(self, number: int, result: Result) -> None:
        """Tells that a request is done."""
        request = self.in_progress.pop(number, None)
        if request is None or request._observation is None:
            return
        if result.response is not None:
            request._observation.tell("head", request, result.response)
        request._observation.tell("done", request, result.response, result.error)


def check_limits(*limits: float | None) -> None:
    """Refuses limits that are not positive."""
    if any(limit is not None and not limit > 0 for limit in limits):
        raise ValueError("rate, rate_host, limit_rate_total and stall_time have to be positive")


def _results(
    requests: Iterator[Any],
    settings: dict[str, Any],
    session: Session,
    timeout: Any,
    allow_redirects: bool,
    query: ValueQuery | None,
) -> Iterator[Result]:
    observed = ObservedRequests(session)
    batch = batch_of(session, settings, observed.tell_retry)
    max_parallel, ordered = settings["max_parallel"], settings["ordered"]
    # More requests are submitted than run, so that the engine can start the next one at once, and
    # so that results that wait for their turn do not stop it.
    ahead = max_parallel * 2 + 8
    # Several results are taken at once, but not so many that the engine runs out of requests.
    bunch = max_parallel // 2 + 4
    calls = _CallBuilder(session, timeout, allow_redirects)
    running: dict[int, tuple[int, Any, Call, Any]] = {}
    # Requests that could not be started, or that the program's own functions have answered. With
    # `ordered` they wait for the results before them.
    refused: deque[Result] = deque()
    index = 0
    exhausted = False
    while True:
        calls.reset()
        is_observed = session._is_observed()
        while not exhausted and len(running) < ahead and len(refused) < ahead:
            try:
                item = next(requests)
            except StopIteration:
                exhausted = True
                break
            try:
                if session.adapters or everywhere:
                    mounted = calls.answer_of_mount(item)
                    if mounted is not None:
                        refused.append(Result(index, item, *mounted, query))
                        index += 1
                        continue
                call = observed.call_for(calls, item) if is_observed else calls.call_for(item)
                number = batch.submit(*call, isinstance(item, PreparedRequest))
                running[number] = index, item, call, calls.hooks
                if is_observed:
                    observed.begin(number)
            except EngineError as failure:
                refused.append(Result(index, item, None, from_engine_error(failure), query, facts=failure))
            except (RequestException, UnicodeError) as error:
                # A part of the request, such as a name of os.fsdecode or bytes, may be no text.
                refused.append(Result(index, item, None, error, query))
            index += 1
        while refused and not (ordered and running and next(iter(running.values()))[0] < refused[0].index):
            yield refused.popleft()
        if not running:
            if exhausted:
                return
            continue
        finished = batch.next(bunch)
        if not finished:
            # In a forked child, the requests of the parent never finish.
            return
        # Each result is dropped before the next body is copied, which then takes the same memory.
        finished.reverse()
        while finished:
            number, reply, failed = finished.pop()
            index_of, item, call, hooks = running.pop(number)
            while refused and ordered and refused[0].index < index_of:
                yield refused.popleft()
            if reply is not None:
                response, raised = calls.after_hooks(response_from(Response, reply, call), hooks)
                is_changed = getattr(response, "_reply", None) is not reply
                result = Result(index_of, item, response, raised, query, facts=reply.record() if is_changed else None)
            elif isinstance(failed, EngineError):
                # The jar is part of the options, from which it cannot be read.
                request = item if isinstance(item, PreparedRequest) else failed_request((*call[:6], session.cookies._jar, call[7]))
                raised = from_engine_error(failed, request, call[0].proxied)
                result = Result(index_of, item, None, raised, query, facts=failed)
            else:
                result = Result(index_of, item, None, failed, query)
            if observed.in_progress:
                observed.end(number, result)
            yield result


class _CallBuilder:
    """Builds the arguments of the engine's calls, with options that follow redirects and store
    cookies."""

    def __init__(self, session: Session, timeout: Any, allow_redirects: bool) -> None:
        self.session = session
        self.timeout = timeout
        self.follow = session.max_redirects if allow_redirects else None
        #: The arguments for a URL, if they are the same for all URLs.
        self.common: tuple[SharedOptions, str | None, Any, str | None] | None = None
        #: The version of the session's headers that these arguments have.
        self.headers_version = -1
        self.proxies: Any = None
        #: The functions to call with the response of the request that was built last.
        self.hooks: Any = ()

    def reset(self) -> None:
        """Forgets shared arguments, since settings of the session or the environment may have
        changed."""
        self.common = None
        self.proxies = None if self.follow is None else self.session._proxies_by_scheme()

    def call_for(self, item: Any) -> Call:
        """Returns the arguments for an item of the input."""
        session, self.hooks = self.session, ()
        if type(item) is str:
            common = self.common
            # The iterator of the program may change the headers before each item.
            if common is not None and self.headers_version == session._headers._version:
                options, query, fields, cookie = common
                return options, "GET", item, query, fields, None, None, cookie
            version = session._headers._version
            call = session._direct_call("GET", item, None, None, None, None, None, self.timeout, None, None, None, None)
            if call is not None:
                options = session._following_options(call[0], self.follow, call[6], self.proxies)
                if session._suits_all_urls():
                    self.headers_version = version
                    self.common = options, call[3], call[4], call[7]
                return (options, *call[1:6], None, call[7])
        return self.prepared_call(*self.prepared(item))

    def prepared(self, item: Any) -> tuple[PreparedRequest, dict[str, Any], int | None]:
        """Returns the prepared request for an item of the input, the settings for sending it, and
        the number of redirects to follow."""
        session = self.session
        if isinstance(item, (str, bytes)):
            item = Request("GET", item.decode() if isinstance(item, bytes) else item)
        settings: dict[str, Any] = {"timeout": self.timeout}
        follow = self.follow
        if isinstance(item, Mapping):
            arguments = {"method": "GET", **item}
            settings.update({name: arguments.pop(name) for name in _SEND_ARGUMENTS & arguments.keys()})
            if not arguments.pop("allow_redirects", True):
                follow = None
            item = Request(**arguments)
        if isinstance(item, Request):
            first_cookies = item.cookies
            item = session.prepare_request(item)
            item._first_cookies = first_cookies
            item._stores_cookies = True
            item._jar_header = item._cookies.get_cookie_header(item.url)
        if not isinstance(item, PreparedRequest):
            raise TypeError(f"an item has to be a URL, a request or a dict, not {type(item).__name__}")
        return item, settings, follow

    def after_hooks(self, response: Response, hooks: Any) -> tuple[Response | None, Exception | None]:
        """Calls the hooks of :meth:`hooks_for` with a response. Returns what they make of it: a response,
        or the exception that one of them has raised."""
        try:
            for hook in hooks:
                changed = hook(response)
                if changed is not None:
                    response = changed
        except Exception as error:  # noqa: BLE001 - the exception is the result of this request
            return None, error
        return response, None

    def hooks_for(self, request: PreparedRequest, settings: Mapping[str, Any]) -> Any:
        """Returns the hooks of a request, with the settings that they are called with."""
        hooks = hooks_of(request.hooks)
        if not hooks:
            return ()
        complete = self.session._complete_settings(request.url, False, settings)
        return [partial(hook, **complete) for hook in hooks]

    def answer_of_mount(self, item: Any) -> tuple[Response | None, Exception | None] | None:
        """Returns the response of a function or adapter that is mounted for an item, or the exception of
        a response hook; ``None`` if nothing is mounted.

        :raises RequestException: the request has failed."""
        request, settings, follow = self.prepared(item)
        if self.session._adapter_for(request.url or "") is None:
            return None
        hooks = request.hooks
        try:
            request.hooks = default_hooks()
            response = self.session.send(request, allow_redirects=follow is not None, **settings)
        finally:
            request.hooks = hooks
        return self.after_hooks(response, self.hooks_for(request, settings))

    def refuse_mount(self, url: str) -> None:
        """Raises an error if a function or adapter is mounted for the URL, for callers that cannot ask
        it. So no test sends a request that a mock should answer.

        :raises RequestException: something is mounted for the URL."""
        if self.session._adapter_for(url) is not None:
            raise RequestException(
                f"{url}: something is mounted for this URL, which only fetch_many without paginate= and sessions call; unmount it"
            )

    def prepared_call(self, request: PreparedRequest, settings: dict[str, Any], follow: int | None) -> Call:
        """Returns the arguments for a prepared request."""
        session, self.hooks = self.session, self.hooks_for(request, settings)
        options, method, url, query, fields, body, _, _ = session._prepared_call(request, settings)
        jar = cookie = None
        if request._stores_cookies:
            jar = session.cookies._jar
            own = CookieJar(request._first_cookies)
            is_unchanged = request._jar_header is not None and request.headers.get("Cookie") == request._jar_header
            if is_unchanged and not _replaces_any(own, session.cookies):
                # The engine adds those of its jar, also after a redirect.
                fields = [field for field in fields if field[0].lower() != "cookie"]
                own._domainless = {**session.cookies._domainless, **own._domainless}
                cookie = own.get_cookie_header(request.url or "")
        return session._following_options(options, follow, jar, self.proxies), method, url, query, fields, body, None, cookie


def _replaces_any(own: CookieJar, jar: CookieJar) -> bool:
    """Returns whether a cookie of a request replaces one of the engine's jar, which would be sent, too."""
    named = {(cookie.name, cookie.domain, cookie.path) for cookie in own if cookie.domain}
    return bool(named) and any((cookie.name, cookie.domain, cookie.path) in named for cookie in jar)
