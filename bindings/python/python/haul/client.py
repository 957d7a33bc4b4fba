"""``Client`` and ``AsyncClient``: sessions with the names of httpx, where they mean the same.

>>> with Client(base_url="https://api.example/v1", headers={"X-Key": "abc"}) as client:  # doctest: +SKIP
...     client.get("/items", params={"page": 2}).raise_for_status().json()

Exceptions are those of :mod:`haul.exceptions`, and URLs are ``str``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ._client_responses import AsyncClientResponse, ClientResponse, async_client_response, client_response
from ._client_timeout import ClientTimeout
from ._client_values import joined_headers, typed_files, written_values
from ._request_objects import PreparedRequest, Request
from ._session_parts import default_headers
from .aio import AsyncSession
from .sessions import Session
from .structures import CaseInsensitiveDict

if TYPE_CHECKING:
    from ._events import EventHooks
    from ._retry_policy import Retry
    from ._types import (
        Auth, Cert, ClientArguments, ClientBodyArguments, ClientHeaders, Cookies, Params, TimeLimits, Unpack, Verify,
    )  # fmt: skip
    from .cookies import CookieJar

__all__ = ["AsyncClient", "AsyncClientResponse", "Client", "ClientResponse"]

_DEFAULT_SECONDS = 5.0
_DEFAULT_REDIRECTS = 20
_SEND_SETTINGS = frozenset({"timeout", "allow_redirects"})


def _without_credentials(request: PreparedRequest) -> PreparedRequest:
    """Returns the request unchanged. It is the ``auth`` of a request for which the program gives None."""
    return request


class _ClientSettings:
    """The settings of a client, which are those of its session."""

    def __init__(
        self, session: Session, base_url: str, headers: ClientHeaders, params: Params, cookies: Cookies, auth: Auth,
        follow_redirects: bool, max_redirects: int, trust_env: bool, verify: Verify, cert: Cert, proxy: str | None,
        http2: bool, http3: bool | str,
    ) -> None:  # fmt: skip
        self._session = session
        self._is_closed = False
        self._base_url = ""
        self.base_url = base_url
        #: True if redirects are followed.
        self.follow_redirects = follow_redirects
        session.headers.update(joined_headers(headers) or {})
        self.params = params or {}
        session.auth = auth
        session.max_redirects = max_redirects
        session.trust_env = trust_env
        session.verify, session.cert = verify, cert
        session.http2, session.http3 = http2, http3
        if cookies:
            session.cookies.update(cookies)
        if proxy is not None:
            session.proxies = {"all": proxy}

    @property
    def base_url(self) -> str:
        """The URL to whose path relative URLs are appended.

        :raises ValueError: it has a query or a fragment."""
        return self._base_url

    @base_url.setter
    def base_url(self, url: str) -> None:
        url = str(url)
        if "?" in url or "#" in url:
            raise ValueError(f"a base_url has neither a query nor a fragment: {url!r}")
        self._base_url = url and url.rstrip("/") + "/"

    @property
    def headers(self) -> CaseInsensitiveDict:
        """The headers of all requests. Headers that are assigned are added to the default ones."""
        return self._session.headers  # type: ignore[no-any-return]

    @headers.setter
    def headers(self, headers: ClientHeaders) -> None:
        self._session.headers = default_headers()
        self._session.headers.update(joined_headers(headers) or {})

    @property
    def cookies(self) -> CookieJar:
        """The cookies, which all requests share."""
        return self._session.cookies  # type: ignore[no-any-return]

    @cookies.setter
    def cookies(self, cookies: Cookies) -> None:
        self._session.cookies = cookies

    @property
    def params(self) -> Any:
        """The parameters that are appended to the query of each URL."""
        return self._session.params

    @params.setter
    def params(self, params: Params) -> None:
        self._session.params = written_values(params)

    @property
    def auth(self) -> Any:
        """The credentials: a pair of user and password for Basic, or see :mod:`haul.auth`."""
        return self._session.auth

    @auth.setter
    def auth(self, auth: Auth) -> None:
        self._session.auth = auth

    @property
    def timeout(self) -> Any:
        """The time limits of requests that have none."""
        return self._session.timeout

    @timeout.setter
    def timeout(self, timeout: TimeLimits) -> None:
        self._session.timeout = timeout

    @property
    def trust_env(self) -> bool:
        """True if the proxies, certificates and netrc file of the environment are used."""
        return self._session.trust_env

    @property
    def event_hooks(self) -> EventHooks:
        """The hooks for the steps of a call, as in :attr:`haul.Session.event_hooks`."""
        return self._session.event_hooks

    @event_hooks.setter
    def event_hooks(self, hooks: Mapping[str, Any]) -> None:
        self._session.event_hooks = hooks

    @property
    def is_closed(self) -> bool:
        """True if the client was closed."""
        return self._is_closed

    def build_request(self, method: str, url: str, **kwargs: Unpack[ClientBodyArguments]) -> PreparedRequest:
        """Returns the request that :meth:`request` would send, for :meth:`send`.

        >>> client.build_request("GET", "/items").headers["user-agent"]     # doctest: +SKIP
        """
        where, given = self._arguments(url, dict(kwargs))
        settings = {name: given.pop(name) for name in _SEND_SETTINGS & given.keys()}
        if kwargs.get("follow_redirects") is None:
            del settings["allow_redirects"]
        request = self._session.prepare_request(Request(method, where, **given))
        request._send_settings = settings
        return request

    def _send_arguments(self, request: PreparedRequest, stream: bool, follow_redirects: bool | None) -> dict[str, Any]:
        """Returns the arguments for the session's ``send``."""
        _, given = self._arguments("", {"stream": stream, "follow_redirects": follow_redirects})
        settings = getattr(request, "_send_settings", None) or {}
        if follow_redirects is not None:
            settings = {name: value for name, value in settings.items() if name != "allow_redirects"}
        return {**given, **settings}

    def _arguments(self, url: Any, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Converts arguments of httpx to those of a session.

        :raises RuntimeError: the client is closed.
        :raises TypeError: there is both ``content`` and ``data``."""
        if self._is_closed:
            raise RuntimeError("the client is closed")
        content = given.pop("content", None)
        if content is not None:
            if given.get("data") is not None:
                raise TypeError("content is the whole body, so there cannot be data beside it")
            given["data"] = content
        elif given.get("data") is not None:
            given["data"] = written_values(given["data"])
        if given.get("headers"):
            given["headers"] = joined_headers(given["headers"])
        if given.get("params"):
            given["params"] = written_values(given["params"])
        if given.get("files"):
            given["files"] = typed_files(given["files"])
        if "timeout" in given and given["timeout"] is None:
            # None is no limit. In a session it is the session's limit.
            given["timeout"] = ClientTimeout()
        if "auth" in given and given["auth"] is None:
            given["auth"] = _without_credentials
        follow = given.pop("follow_redirects", None)
        given["allow_redirects"] = self.follow_redirects if follow is None else follow
        where = str(url)
        if self._base_url and "://" not in where.partition("?")[0]:
            where = self._base_url + where.lstrip("/")
        return where, given


class Client(_ClientSettings):
    """A :class:`haul.Session` with the names of ``httpx.Client``.

    >>> with Client(base_url="https://api.example", timeout=10) as client:  # doctest: +SKIP
    ...     client.post("/items", json={"name": "x"}).is_success
    True

    :param base_url: the URL to whose path relative URLs are appended.
    :param timeout: as in :meth:`haul.Session.request`; by default 5 s for connecting and for each wait.
    :param follow_redirects: whether redirects are followed; by default they are not.
    :param proxy: the URL of the proxy for all requests.
    :param retries, http3: as in a session; httpx does not have them.
    :raises ValueError: ``base_url`` has a query or a fragment.
    """

    def __init__(
        self,
        *,
        base_url: str = "",
        headers: ClientHeaders = None,
        params: Params = None,
        cookies: Cookies = None,
        auth: Auth = None,
        timeout: TimeLimits = _DEFAULT_SECONDS,
        follow_redirects: bool = False,
        max_redirects: int = _DEFAULT_REDIRECTS,
        trust_env: bool = True,
        verify: Verify = True,
        cert: Cert = None,
        proxy: str | None = None,
        http2: bool = False,
        http3: bool | str = False,
        retries: Retry | int | None = None,
    ) -> None:
        super().__init__(
            Session(timeout=timeout, retries=retries), base_url, headers, params, cookies, auth, follow_redirects,
            max_redirects, trust_env, verify, cert, proxy, http2, http3,
        )  # fmt: skip

    @property
    def session(self) -> Session:
        """The session that sends the requests, for :func:`haul.fetch_many` and for settings that httpx
        does not have."""
        return self._session

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes idle connections. The client cannot send requests then."""
        self._is_closed = True
        self._session.close()

    def mount(self, prefix: str, function: Callable[[PreparedRequest], Any]) -> None:
        """Answers requests to URLs with this prefix by a function; see :meth:`haul.Session.mount`."""
        self._session.mount(prefix, function)

    def request(self, method: str, url: str, **kwargs: Unpack[ClientBodyArguments]) -> ClientResponse:
        """Sends a request and waits for its response.

        >>> client.request("POST", "/items", content=b"body")               # doctest: +SKIP
        <Response [201]>

        :param content: the body: text, bytes, or an iterable; ``data`` is a form.
        :param follow_redirects: whether redirects are followed; default: :attr:`follow_redirects`.
        :param timeout: default: :attr:`timeout`; None for no limit.
        :param auth: default: :attr:`auth`; None for no credentials.
        """
        where, given = self._arguments(url, dict(kwargs))
        return client_response(self._session.request(method, where, **given))

    def stream(self, method: str, url: str, **kwargs: Unpack[ClientBodyArguments]) -> ClientResponse:
        """Sends a request whose body is read piece by piece, in a ``with`` statement.

        >>> with client.stream("GET", "/big") as response:                  # doctest: +SKIP
        ...     for piece in response.iter_bytes():
        ...         print(len(piece))
        """
        where, given = self._arguments(url, {**kwargs, "stream": True})
        return client_response(self._session.request(method, where, **given))

    def send(
        self, request: PreparedRequest, *, stream: bool = False, follow_redirects: bool | None = None
    ) -> ClientResponse:
        """Sends a request of :meth:`build_request`.

        >>> client.send(client.build_request("GET", "/items"))              # doctest: +SKIP
        <Response [200]>
        """
        given = self._send_arguments(request, stream, follow_redirects)
        return client_response(self._session.send(request, **given))

    def get(self, url: str, **kwargs: Unpack[ClientArguments]) -> ClientResponse:
        """Sends a GET request; see :meth:`request`."""
        return self.request("GET", url, **kwargs)

    def options(self, url: str, **kwargs: Unpack[ClientArguments]) -> ClientResponse:
        """Sends an OPTIONS request; see :meth:`request`."""
        return self.request("OPTIONS", url, **kwargs)

    def head(self, url: str, **kwargs: Unpack[ClientArguments]) -> ClientResponse:
        """Sends a HEAD request; see :meth:`request`."""
        return self.request("HEAD", url, **kwargs)

    def delete(self, url: str, **kwargs: Unpack[ClientArguments]) -> ClientResponse:
        """Sends a DELETE request; see :meth:`request`."""
        return self.request("DELETE", url, **kwargs)

    def post(self, url: str, **kwargs: Unpack[ClientBodyArguments]) -> ClientResponse:
        """Sends a POST request; see :meth:`request`."""
        return self.request("POST", url, **kwargs)

    def put(self, url: str, **kwargs: Unpack[ClientBodyArguments]) -> ClientResponse:
        """Sends a PUT request; see :meth:`request`."""
        return self.request("PUT", url, **kwargs)

    def patch(self, url: str, **kwargs: Unpack[ClientBodyArguments]) -> ClientResponse:
        """Sends a PATCH request; see :meth:`request`."""
        return self.request("PATCH", url, **kwargs)


class AsyncClient(_ClientSettings):
    """A :class:`haul.AsyncSession` with the names of ``httpx.AsyncClient``.

    >>> async with AsyncClient(base_url="https://api.example") as client:   # doctest: +SKIP
    ...     response = await client.get("/items")

    Arguments are those of :class:`Client`, and ``max_parallel`` and ``per_host`` of
    :class:`haul.AsyncSession`."""

    def __init__(
        self,
        *,
        base_url: str = "",
        headers: ClientHeaders = None,
        params: Params = None,
        cookies: Cookies = None,
        auth: Auth = None,
        timeout: TimeLimits = _DEFAULT_SECONDS,
        follow_redirects: bool = False,
        max_redirects: int = _DEFAULT_REDIRECTS,
        trust_env: bool = True,
        verify: Verify = True,
        cert: Cert = None,
        proxy: str | None = None,
        http2: bool = False,
        http3: bool | str = False,
        retries: Retry | int | None = None,
        max_parallel: int = 256,
        per_host: int | None = None,
    ) -> None:
        self._asynchronous = AsyncSession(max_parallel, per_host, timeout=timeout, retries=retries)
        super().__init__(
            self._asynchronous._session, base_url, headers, params, cookies, auth, follow_redirects, max_redirects,
            trust_env, verify, cert, proxy, http2, http3,
        )  # fmt: skip

    @property
    def session(self) -> AsyncSession:
        """The session that sends the requests, for settings that httpx does not have."""
        return self._asynchronous

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *args: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends requests in progress, and closes the connections. The client cannot send requests then."""
        self._is_closed = True
        await self._asynchronous.aclose()

    def mount(self, prefix: str, function: Callable[[PreparedRequest], Any]) -> None:
        """Answers requests to URLs with this prefix by a function; see :meth:`haul.AsyncSession.mount`."""
        self._asynchronous.mount(prefix, function)

    async def request(self, method: str, url: str, **kwargs: Unpack[ClientBodyArguments]) -> AsyncClientResponse:
        """Sends a request and waits for its response; see :meth:`Client.request`.

        ``content`` may also be an asynchronous iterable."""
        where, given = self._arguments(url, dict(kwargs))
        return async_client_response(await self._asynchronous.request(method, where, **given))

    @asynccontextmanager
    async def stream(
        self, method: str, url: str, **kwargs: Unpack[ClientBodyArguments]
    ) -> AsyncIterator[AsyncClientResponse]:
        """Sends a request whose body is read piece by piece, in an ``async with`` statement.

        >>> async with client.stream("GET", "/big") as response:            # doctest: +SKIP
        ...     async for piece in response.aiter_bytes():
        ...         print(len(piece))
        """
        where, given = self._arguments(url, {**kwargs, "stream": True})
        async with self._asynchronous.request(method, where, **given) as response:
            yield async_client_response(response)

    async def send(
        self, request: PreparedRequest, *, stream: bool = False, follow_redirects: bool | None = None
    ) -> AsyncClientResponse:
        """Sends a request of :meth:`build_request`."""
        given = self._send_arguments(request, stream, follow_redirects)
        return async_client_response(await self._asynchronous.send(request, **given))

    async def get(self, url: str, **kwargs: Unpack[ClientArguments]) -> AsyncClientResponse:
        """Sends a GET request; see :meth:`request`."""
        return await self.request("GET", url, **kwargs)

    async def options(self, url: str, **kwargs: Unpack[ClientArguments]) -> AsyncClientResponse:
        """Sends an OPTIONS request; see :meth:`request`."""
        return await self.request("OPTIONS", url, **kwargs)

    async def head(self, url: str, **kwargs: Unpack[ClientArguments]) -> AsyncClientResponse:
        """Sends a HEAD request; see :meth:`request`."""
        return await self.request("HEAD", url, **kwargs)

    async def delete(self, url: str, **kwargs: Unpack[ClientArguments]) -> AsyncClientResponse:
        """Sends a DELETE request; see :meth:`request`."""
        return await self.request("DELETE", url, **kwargs)

    async def post(self, url: str, **kwargs: Unpack[ClientBodyArguments]) -> AsyncClientResponse:
        """Sends a POST request; see :meth:`request`."""
        return await self.request("POST", url, **kwargs)

    async def put(self, url: str, **kwargs: Unpack[ClientBodyArguments]) -> AsyncClientResponse:
        """Sends a PUT request; see :meth:`request`."""
        return await self.request("PUT", url, **kwargs)

    async def patch(self, url: str, **kwargs: Unpack[ClientBodyArguments]) -> AsyncClientResponse:
        """Sends a PATCH request; see :meth:`request`."""
        return await self.request("PATCH", url, **kwargs)
