"""Types of arguments. Type checkers import this module; programs need not, and haul never does."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from http.cookiejar import CookieJar as StandardCookieJar
from typing import Any, Protocol, TypedDict

from typing_extensions import Unpack

from ._client_timeout import ClientTimeout
from ._request_objects import PreparedRequest
from .cookies import CookieJar

__all__ = [
    "Auth", "Body", "Cert", "ClientArguments", "ClientBodyArguments", "ClientHeaders", "Cookies", "Files", "GetArguments", "Headers", "HookFunctions", "Params", "PostArguments",
    "Proxies", "PutArguments", "RequestArguments", "TimeLimits", "Unpack", "Url", "Verify",
]  # fmt: skip


class Readable(Protocol):
    """A file, opened for reading bytes or text."""

    def read(self, size: int = ..., /) -> bytes | str: ...


class _ForeignTimeout(Protocol):
    """A ``urllib3.Timeout``."""

    @property
    def connect_timeout(self) -> Any: ...


Url = str | bytes
_Scalar = str | bytes | int | float | None
_Pairs = Iterable[tuple[str | bytes, _Scalar | Iterable[_Scalar]]]
Params = Mapping[str, _Scalar | Iterable[_Scalar]] | Mapping[bytes, _Scalar | Iterable[_Scalar]] | _Pairs | str | bytes | None
Body = (
    Mapping[str, _Scalar | Iterable[_Scalar]] | _Pairs | str | bytes | bytearray | memoryview | Readable | Iterable[bytes]
    | Iterable[str] | AsyncIterable[bytes] | None
)  # fmt: skip
Headers = Mapping[str, str | bytes | None] | Mapping[bytes, str | bytes | None] | None
ClientHeaders = Headers | Iterable[tuple[str, str]] | Iterable[tuple[bytes, bytes]]
Cookies = Mapping[str, str] | StandardCookieJar | CookieJar | None
_FileContent = Readable | str | bytes | bytearray
_File = (
    _FileContent | tuple[str | None, _FileContent] | tuple[str | None, _FileContent, str | None]
    | tuple[str | None, _FileContent, str | None, Mapping[str, str]]
)  # fmt: skip
Files = Mapping[str, _File] | Iterable[tuple[str, _File]] | None
Auth = tuple[str | bytes, str | bytes] | Callable[[PreparedRequest], PreparedRequest] | None
TimeLimits = float | tuple[float | None, float | None] | ClientTimeout | _ForeignTimeout | None
Proxies = Mapping[str, str | None] | None
_Hook = Callable[..., Any]
HookFunctions = Mapping[str, _Hook | Iterable[_Hook]] | None
_Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Verify = bool | _Path | ssl.SSLContext | None
Cert = _Path | tuple[_Path, _Path] | list[_Path] | None


class _CommonArguments(TypedDict, total=False):
    headers: Headers
    cookies: Cookies
    files: Files
    auth: Auth
    timeout: TimeLimits
    allow_redirects: bool
    proxies: Proxies
    hooks: HookFunctions
    stream: bool | None
    verify: Verify
    cert: Cert


class PostArguments(_CommonArguments, total=False):
    """The arguments of a request beside its ``data`` and ``json``."""

    params: Params


class PutArguments(PostArguments, total=False):
    """The arguments of a request beside its ``data``."""

    json: object


class GetArguments(_CommonArguments, total=False):
    """The arguments of a request beside its ``params``."""

    data: Body
    json: object


class RequestArguments(GetArguments, total=False):
    """The arguments of a request beside its method and URL."""

    params: Params


class ClientArguments(TypedDict, total=False):
    """The arguments of a client's request without a body, beside its URL."""

    params: Params
    headers: ClientHeaders
    cookies: Cookies
    auth: Auth
    follow_redirects: bool | None
    timeout: TimeLimits


class ClientBodyArguments(ClientArguments, total=False):
    """The arguments of a client's request, beside its method and URL."""

    content: str | bytes | bytearray | memoryview | Readable | Iterable[bytes] | AsyncIterable[bytes] | None
    data: Mapping[str, _Scalar | Iterable[_Scalar]] | None
    files: Files
    json: object
