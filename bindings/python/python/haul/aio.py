"""``AsyncSession``: a session for asyncio, with the API of :class:`haul.Session`.

Requests run on a thread of the engine; a lone one on an idle connection runs on the thread of the event
loop. One descriptor wakes the loop, whatever the number of requests. Cancelling a task cancels its
request and closes the connection.
"""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ._request_objects import PreparedRequest, Request, hooks_of
from ._async_body import AsyncBody
from ._async_response import AsyncResponse, RequestCall, as_call
from ._events import Observation
from ._request_body import is_awaited, is_stream
from ._haul import EngineError, StopFlag
from ._loop_batch import LoopBatches
from ._redirects import UNREACHABLE_TARGET, _discard_body, origin_of
from .many import check_limits
from ._thread_calls import ThreadCalls
from .exceptions import from_engine_error
from .models import Response, failed_request, response_from
from .sessions import Session, _can_be_repeated, _is_unanswerable

if TYPE_CHECKING:
    from types import TracebackType

    from ._haul import ReceivedResponse, StreamedBody
    from ._mounts import FunctionAdapter
    from ._reply_future import ReplyFuture
    from ._retry_policy import Retry
    from ._types import (
        Auth, Body, Cert, Cookies, Files, Headers, HookFunctions, Params, PostArguments, Proxies, PutArguments, RequestArguments,
        TimeLimits, Unpack, Url, Verify,
    )  # fmt: skip
    from .models import Call

__all__ = ["AsyncResponse", "AsyncSession"]


async def _call_hooks(hooks: Mapping[str, Any] | None, response: Any, settings: dict[str, Any]) -> Any:
    """Calls the hooks like ``dispatch_hook``. A hook may be a coroutine function."""
    for hook in hooks_of(hooks):
        changed = hook(response, **settings)
        if inspect.isawaitable(changed):
            changed = await changed
        if changed is not None:
            response = changed
    return response


class AsyncSession:
    """Settings, cookies and open connections for requests, in one or several event loops.

    >>> async def main():
    ...     async with AsyncSession() as session:
    ...         responses = await asyncio.gather(*(session.get(f"http://127.0.0.1/{i}") for i in range(100)))

    ``headers``, ``cookies``, ``auth``, ``proxies``, ``params``, ``verify``, ``cert``, ``hooks``,
    ``max_redirects``, ``trust_env``, ``http2``, ``http3``, ``timeout``, ``retries``, ``max_size``,
    ``connect_options`` and ``event_hooks`` are those of :class:`haul.Session`.

    :param max_parallel: maximum number of requests at once in an event loop; others wait.
    :param per_host: maximum number of requests at once to one host; default: from 6 to 50, as many as help.
    :param rate, rate_host, limit_rate_total, stall_time: as in :func:`haul.fetch_many`, in an event loop.

    None of them counts requests with ``stream=True``.
    """

    def __init__(
        self,
        max_parallel: int = 256,
        per_host: int | None = None,
        *,
        rate: float | None = None,
        rate_host: float | None = None,
        limit_rate_total: int | None = None,
        stall_time: float | None = None,
        timeout: TimeLimits = None,
        retries: Retry | int | None = None,
    ) -> None:
        if max_parallel < 1 or (per_host is not None and per_host < 1):
            raise ValueError("max_parallel and per_host have to be at least 1")
        check_limits(rate, rate_host, limit_rate_total, stall_time)
        self._session = Session(timeout=timeout, retries=retries)
        limits: dict[str, Any] = {
            "max_parallel": max_parallel, "per_host": per_host, "rate": rate, "rate_host": rate_host, "limit_rate_total": limit_rate_total, "stall_time": stall_time,
        }  # fmt: skip
        self._loop_batches = LoopBatches(self._session._client, limits)
        self._calls = ThreadCalls()
        # A subclass may set some of the session's settings before it calls this method.
        for name in [name for name in self.__dict__ if not name.startswith("_") and hasattr(self._session, name)]:
            setattr(self, name, self.__dict__.pop(name))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._session, name)

    def __setattr__(self, name: str, value: Any) -> None:
        session = self.__dict__.get("_session")
        ours = getattr(type(self), name, None)
        # `stream` is a method here, and a property with a setter in a Session.
        is_method = callable(ours) and not hasattr(getattr(type(session), name, None), "__set__")
        # A subclass has private attributes, properties and settings that a Session does not have.
        if name.startswith("_") or session is None or is_method or hasattr(ours, "__set__") or not hasattr(session, name):
            object.__setattr__(self, name, value)
        else:
            setattr(session, name, value)

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        # There are no loop batches if `__init__` has raised.
        loop_batches: LoopBatches | None = self.__dict__.get("_loop_batches")
        if loop_batches is not None and (unclosed := loop_batches.open_batches()):
            warnings.warn(f"unclosed {self!r}: call aclose(), or use async with", ResourceWarning, source=self, stacklevel=2)
            loop_batches.release(unclosed)

    async def aclose(self) -> None:
        """Ends requests in progress with a ConnectionError, and closes the connections."""
        self._loop_batches.release(self._loop_batches.take_all())
        self._calls.end()
        self._session.close()

    close = aclose

    def get(self, url: Url, **kwargs: Unpack[RequestArguments]) -> RequestCall:
        """Sends a GET request; see :meth:`request`.

        >>> response = await session.get("https://example.com/")            # doctest: +SKIP
        """
        return as_call(self.request("GET", url, **kwargs))

    def options(self, url: Url, **kwargs: Unpack[RequestArguments]) -> RequestCall:
        """Sends an OPTIONS request; see :meth:`request`.

        >>> response = await session.options("https://example.com/")        # doctest: +SKIP
        """
        return as_call(self.request("OPTIONS", url, **kwargs))

    def head(self, url: Url, **kwargs: Unpack[RequestArguments]) -> RequestCall:
        """Sends a HEAD request; see :meth:`request`. Redirects need ``allow_redirects=True``.

        >>> response = await session.head("https://example.com/")           # doctest: +SKIP
        """
        kwargs.setdefault("allow_redirects", False)
        return as_call(self.request("HEAD", url, **kwargs))

    def post(self, url: Url, data: Body = None, json: object = None, **kwargs: Unpack[PostArguments]) -> RequestCall:
        """Sends a POST request; see :meth:`request`.

        >>> response = await session.post("https://example.com/", json={})  # doctest: +SKIP
        """
        return as_call(self.request("POST", url, data=data, json=json, **kwargs))

    def put(self, url: Url, data: Body = None, **kwargs: Unpack[PutArguments]) -> RequestCall:
        """Sends a PUT request; see :meth:`request`.

        >>> response = await session.put("https://example.com/x", b"data")  # doctest: +SKIP
        """
        return as_call(self.request("PUT", url, data=data, **kwargs))

    def patch(self, url: Url, data: Body = None, **kwargs: Unpack[PutArguments]) -> RequestCall:
        """Sends a PATCH request; see :meth:`request`.

        >>> response = await session.patch("https://example.com/x", json={})  # doctest: +SKIP
        """
        return as_call(self.request("PATCH", url, data=data, **kwargs))

    def delete(self, url: Url, **kwargs: Unpack[RequestArguments]) -> RequestCall:
        """Sends a DELETE request; see :meth:`request`.

        >>> response = await session.delete("https://example.com/x")        # doctest: +SKIP
        """
        return as_call(self.request("DELETE", url, **kwargs))

    def stream(self, method: str, url: Url, **kwargs: Unpack[RequestArguments]) -> RequestCall:
        """Sends a request whose body is read piece by piece; see :meth:`request`.

        >>> async with session.stream("GET", "https://example.com/") as r:  # doctest: +SKIP
        ...     async for piece in r.aiter_content():
        ...         print(len(piece))
        """
        kwargs["stream"] = True
        return as_call(self.request(method, url, **kwargs))

    def request(
        self,
        method: str,
        url: Url,
        params: Params = None,
        data: Body = None,
        headers: Headers = None,
        cookies: Cookies = None,
        files: Files = None,
        auth: Auth = None,
        timeout: TimeLimits = None,
        allow_redirects: bool = True,
        proxies: Proxies = None,
        hooks: HookFunctions = None,
        stream: bool | None = None,
        verify: Verify = None,
        cert: Cert = None,
        json: object = None,
    ) -> RequestCall:
        """Sends a request and waits for its response. Arguments: see :meth:`haul.Session.request`.

        >>> response = await session.request("GET", "https://example.com/")   # doctest: +SKIP
        >>> async with session.request("GET", "https://example.com/", stream=True) as response: ...

        With ``stream=True``, :meth:`AsyncResponse.aiter_content` reads the body. ``data`` may also be an
        asynchronous iterable, which runs in the event loop. A request whose ``data`` is a file or a
        generator occupies a thread while it is sent."""
        return RequestCall(self._request(
            method, url, params, data, headers, cookies, files, auth, timeout, allow_redirects, proxies, hooks, stream,
            verify, cert, json,
        ))  # fmt: skip

    async def _request(
        self, method: str, url: Any, params: Any, data: Any, headers: Any, cookies: Any, files: Any, auth: Any, timeout: Any,
        allow_redirects: bool, proxies: Any, hooks: Any, stream: bool | None, verify: Any, cert: Any, json: Any,
    ) -> AsyncResponse:  # fmt: skip
        session = self._session
        call = session._cached_call(
            method, url, params, data, headers, cookies, files, auth, timeout, proxies, hooks, stream, verify, cert, json
        )
        is_streamed: bool | None = False
        if call is None:
            if session.trust_env and session._netrc.is_due():
                await self._loop_batches.current().run_once(session._netrc.refresh)
            if is_awaited(data):
                data = AsyncBody(data, asyncio.get_running_loop())
            is_streamed = session._streams if stream is None else stream
            if not (files or hooks or is_streamed):
                call = session._direct_call(method, url, params, data, headers, cookies, auth, timeout, proxies, verify, cert, json)
        if call is not None:
            try:
                if session._retries is None:
                    reply = await self._loop_batches.current().submit(call)
                else:
                    reply = await self._exchange_repeatedly(call)
            except EngineError as failure:
                raise from_engine_error(failure, failed_request(call), call[0].proxied) from None
            response: Response = response_from(AsyncResponse, reply, call)
            reply.cookies_into(session._cookies._jar)
            if not 300 < response.status_code < 400 or reply.location() is None:
                return response  # type: ignore[return-value]
            settings = {"timeout": timeout, "verify": verify, "cert": cert, "proxies": proxies}
        else:
            settings = {"timeout": timeout, "verify": verify, "cert": cert, "proxies": proxies}
            request = Request(method, url, headers, files, data or {}, params or {}, auth, cookies, hooks, json)
            # The files of a form are read into memory.
            prepared = await asyncio.to_thread(session.prepare_request, request) if files else session.prepare_request(request)
            return await self._send_observed(prepared, allow_redirects, cookies, bool(is_streamed), settings)
        return await self._follow(response, allow_redirects, cookies, False, settings)

    async def send(
        self,
        request: PreparedRequest,
        *,
        stream: bool | None = None,
        timeout: TimeLimits = None,
        verify: Verify = None,
        cert: Cert = None,
        proxies: Proxies = None,
        allow_redirects: bool = True,
    ) -> AsyncResponse:
        """Sends a prepared request. The other arguments are those of :meth:`request`.

        :raises ValueError: the request is not prepared."""
        if not isinstance(request, PreparedRequest):
            raise ValueError("You can only send PreparedRequests.")
        settings = {"timeout": timeout, "verify": verify, "cert": cert, "proxies": proxies}
        is_streamed = bool(self._session._streams if stream is None else stream)
        return await self._send_observed(request, allow_redirects, None, is_streamed, settings)

    async def _send_observed(
        self, request: PreparedRequest, follow: bool, first_cookies: Any, stream: bool, settings: dict[str, Any]
    ) -> AsyncResponse:
        """Sends a request and follows its redirects, and tells the hooks about the steps."""
        session = self._session
        observation = request._observation = Observation(session._event_hooks) if session._is_observed() else None
        if observation is None:
            response = await self._send_once(request, stream, settings)
            return await self._follow(response, follow, first_cookies, stream, settings)
        try:
            response = await self._send_once(request, stream, settings)
            last = await self._follow(response, follow, first_cookies, stream, settings)
        except BaseException as error:
            failed = getattr(error, "request", None)
            await observation.atell("done", failed if isinstance(failed, PreparedRequest) else request, None, error)
            raise
        if last._stream is not None and not last._content_consumed:
            last._observation = observation
        else:
            await observation.atell("done", last.request, last)
        return last

    def mount(self, prefix: str, adapter: Callable[[PreparedRequest], Any]) -> None:
        """Answers requests to URLs with this prefix by a function, which may be a coroutine function;
        see :meth:`haul.Session.mount`.

        >>> session.mount("https://api.example/", lambda request: haul.testing.response(json={"id": 1}))

        :raises TypeError: it is a transport adapter, which would block the event loop."""
        if hasattr(adapter, "send") or not callable(adapter):
            raise TypeError("an AsyncSession takes functions, no adapters: they would block the event loop")
        self._session.mount(prefix, adapter)

    async def _follow(
        self, response: Response, follow: bool, first_cookies: Any, stream: bool, settings: dict[str, Any]
    ) -> AsyncResponse:
        session = self._session
        if session.get_redirect_target(response) is None:
            return response  # type: ignore[return-value]
        request = response.request
        origin = origin_of(request.url or "")
        history: list[Response] = []
        while (url := session.get_redirect_target(response)) is not None:
            if follow:
                if isinstance(response, AsyncResponse):
                    await response._adiscard_body()
                _discard_body(response)
            try:
                request = session._redirected_request(response, url, request, history, origin, first_cookies)
            except UNREACHABLE_TARGET as error:
                if follow:
                    raise
                response._next_error = error
                break
            if not follow:
                response._next = request
                break
            if request._observation is not None:
                await request._observation.atell("redirect", request, response)
            response = await self._send_once(request, stream, settings)
            response.history = list(history)
        return response  # type: ignore[return-value]

    async def _send_once(self, request: PreparedRequest, stream: bool, settings: dict[str, Any]) -> Response:
        session, observation = self._session, request._observation
        state = session._retry_state()
        while True:
            if state is not None and session._holds is not None:
                await asyncio.sleep(session._holds.wait(request.url or ""))
            if observation is not None:
                await observation.atell("request", request)
            function = session._adapter_for(request.url or "")
            if function is not None:
                answer: AsyncResponse = await self._call_function(function, request)
                break
            call = session._prepared_call(request, settings)
            try:
                reply, source = await self._exchange_prepared(call, request, stream)
                error = None
            except EngineError as failure:
                if not stream and _is_unanswerable(failure, request):
                    continue
                error = from_engine_error(failure, request, call[0].proxied)
                wait = state.after_failure(failure, request.method or "") if state is not None else None
                if wait is None or not _can_be_repeated(request, failure.args[3] == "connect"):
                    raise error from None
            else:
                answer = response_from(AsyncResponse, reply, None, source)
                answer._loop_batches = self._loop_batches
                answer.request = request
                if observation is not None:
                    await observation.atell("head", request, answer)
                wait = state.after_response(reply, request.method or "") if state is not None else None
                if wait is None or not _can_be_repeated(request):
                    break
                answer.close()
            if observation is not None:
                await observation.atell("retry", request, None if error is not None else answer, error, wait)
            await asyncio.sleep(wait)
        session._store_cookies(answer)
        if not hooks_of(request.hooks):
            return answer
        changed = await _call_hooks(request.hooks, answer, session._complete_settings(request.url, stream, settings))
        if changed is not answer:
            session._store_cookies(changed)
        return changed  # type: ignore[no-any-return]

    async def _call_function(self, function: FunctionAdapter, request: PreparedRequest) -> AsyncResponse:
        """Returns the response of a mounted function."""
        given = function.call(request)
        response = AsyncResponse()
        response.__dict__.update(function.answer(request, await given if inspect.isawaitable(given) else given).__dict__)
        if request._observation is not None:
            await request._observation.atell("head", request, response)
        return response

    async def _exchange_prepared(self, call: Call, request: PreparedRequest, stream: bool) -> tuple[ReceivedResponse, StreamedBody | None]:
        """Sends a prepared request, in a thread if a file or a generator produces its body."""
        client = self._session._client
        if stream or isinstance(request.body, AsyncBody):
            return await self._loop_batches.current().open(call, stream)
        if is_stream(request.body) or hasattr(request.body, "read"):
            # The program's own code produces the body, in a thread that the interpreter joins at
            # exit.
            stop = StopFlag()
            return await self._calls.run(stop.set, client.send, *call, stop, True), None
        return await self._loop_batches.current().submit(call, True), None

    async def _exchange_repeatedly(self, call: Call) -> ReceivedResponse:
        """Sends a direct call until it succeeds, or no retry is left."""
        state, holds, method = self._session._retry_state(), self._session._holds, call[1]
        assert state is not None and holds is not None
        while True:
            await asyncio.sleep(holds.wait(call[2]))
            try:
                reply = await self._exchange(call)
            except EngineError as failure:
                wait = state.after_failure(failure, method)
                if wait is None:
                    raise
            else:
                wait = state.after_response(reply, method)
                if wait is None:
                    return reply
            await asyncio.sleep(wait)

    def _exchange(self, call: Any) -> ReplyFuture:
        """Sends one request on the thread of the engine."""
        return self._loop_batches.current().submit(call)
