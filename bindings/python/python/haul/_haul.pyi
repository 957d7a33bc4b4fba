"""The compiled part of haul. It is private and may change with any version."""

import os
from collections.abc import Iterable, Mapping
from typing import Any, final

__all__ = [
    "ACCEPT_ENCODING",
    "ArrowResults",
    "Batch",
    "Client",
    "EngineError",
    "FailedTransfer",
    "Jar",
    "Listing",
    "PageQuery",
    "SharedOptions",
    "ReceivedResponse",
    "StopFlag",
    "StreamedBody",
    "__version__",
    "body_text",
    "bypasses_proxy",
    "is_secret_field",
    "join",
    "location_text",
    "multipart",
    "netrc_login",
    "prepare_url",
    "requote",
    "shard",
    "split_url",
    "urlencode",
]

__version__: str
ACCEPT_ENCODING: str

class EngineError(Exception):
    #: Kind, message, URL, phase, curl's exit code, and the name of the failure in records.
    args: tuple[Any, ...]
    #: The failed request, if it was one of a batch and was sent.
    transfer: FailedTransfer

@final
class FailedTransfer:
    def record(self) -> str: ...

@final
class SharedOptions:
    def __new__(
        cls,
        fields: Mapping[str, Any] | Iterable[tuple[Any, Any]],
        *,
        verify: bool = True,
        ca_file: str | None = None,
        ca_path: str | None = None,
        ca_pem: bytes | None = None,
        cert: str | None = None,
        key: str | None = None,
        passphrase: bytes | None = None,
        min_tls: str | None = None,
        max_tls: str | None = None,
        proxy: str | None = None,
        proxy_fields: Iterable[tuple[Any, Any]] | None = None,
        connect_timeout: float | None = None,
        read_timeout: float | None = None,
        write_timeout: float | None = None,
        total_timeout: float | None = None,
        pool_timeout: float | None = None,
        max_size: int | None = None,
        digest: tuple[bytes, bytes] | None = None,
        http2: bool = False,
        http3: bool | str | None = None,
    ) -> SharedOptions: ...
    def following(
        self, redirects: int | None, jar: Jar | None, proxies: tuple[str | None, str | None, str | None] | None = None
    ) -> SharedOptions: ...
    @property
    def proxied(self) -> bool: ...
    def fields(self) -> list[tuple[str, str]]: ...

@final
class ReceivedResponse:
    @property
    def status(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def url(self) -> str: ...
    @property
    def body(self) -> bytes | None: ...
    @property
    def sent_cookie(self) -> str | None: ...
    @property
    def elapsed(self) -> float: ...
    @property
    def total(self) -> float: ...
    @property
    def reused(self) -> bool: ...
    @property
    def peer(self) -> tuple[str, int] | None: ...
    @property
    def local(self) -> tuple[str, int] | None: ...
    @property
    def connection(self) -> int | None: ...
    def times(self) -> tuple[float, float, float, float, float, float]: ...
    def tls(self) -> tuple[str, str, str | None, bool] | None: ...
    def certificates(self) -> list[bytes]: ...
    def fields(self) -> list[tuple[str, str]]: ...
    def get(self, name: str) -> str | None: ...
    def joined(self, name: str) -> str | None: ...
    def has(self, name: str) -> bool: ...
    def location(self) -> str | None: ...
    def record(self) -> str | None: ...
    def cookies_into(self, jar: Jar) -> None: ...

@final
class StopFlag:
    def __new__(cls) -> StopFlag: ...
    def set(self) -> None: ...

@final
class StreamedBody:
    def read(self, size: int | None = None, decode: bool = True) -> bytes: ...
    def read_some(self, size: int | None = None, decode: bool = True) -> bytes: ...
    def piece(self, size: int | None = None, decode: bool = True) -> bytes: ...
    def close(self) -> None: ...
    @property
    def ended(self) -> bool: ...

@final
class Client:
    def __new__(cls) -> Client: ...
    def send(
        self,
        options: SharedOptions,
        method: str,
        url: str,
        query: str | None = None,
        fields: Iterable[tuple[Any, Any]] | None = None,
        body: Any = None,
        jar: Jar | None = None,
        cookie: str | None = None,
        stop: StopFlag | None = None,
        as_is: bool = False,
    ) -> ReceivedResponse: ...
    def open(
        self,
        options: SharedOptions,
        method: str,
        url: str,
        fields: Iterable[tuple[Any, Any]] | None = None,
        body: Any = None,
        stop: StopFlag | None = None,
        as_is: bool = False,
    ) -> tuple[ReceivedResponse, StreamedBody]: ...
    def close(self) -> None: ...

@final
class ArrowResults:
    def __new__(
        cls, body: str | None, text: bool, query: PageQuery | None = None, names: list[str] | None = None
    ) -> ArrowResults: ...
    def names(self) -> list[str]: ...
    def push_failure(self, method: str, code: int, name: str, message: str, bytes: int) -> None: ...
    def collect(self, batch: Batch, most: int, bytes: int, ahead: int) -> int: ...
    def size(self) -> tuple[int, bool]: ...
    def finish(self) -> tuple[object, object]: ...

@final
class Batch:
    def __new__(
        cls,
        client: Client,
        *,
        max_parallel: int = 64,
        per_host: int | None = None,
        ordered: bool = True,
        memory: int = ...,
        rate: float | None = None,
        rate_host: float | None = None,
        limit_rate_total: int | None = None,
        stall_time: float | None = None,
    ) -> Batch: ...
    def submit(
        self,
        options: SharedOptions,
        method: str,
        url: str,
        query: str | None = None,
        fields: Iterable[tuple[Any, Any]] | None = None,
        body: Any = None,
        jar: Jar | None = None,
        cookie: str | None = None,
    ) -> int: ...
    def cancel(self, id: int) -> bool: ...
    def next(self, most: int = 64, timeout: float | None = None) -> list[tuple[int, ReceivedResponse | None, Exception | None]]: ...
    def try_next(self, most: int = 64) -> list[tuple[int, ReceivedResponse | None, Exception | None]]: ...
    def fileno(self) -> int: ...
    def __len__(self) -> int: ...

@final
class Listing:
    def __new__(
        cls,
        url: str,
        *,
        link: bool = False,
        css: str | None = None,
        json: str | None = None,
        query: str | None = None,
        any_origin: bool = False,
        max_pages: int | None = None,
    ) -> Listing: ...
    @property
    def page(self) -> int: ...
    def ends_at(self, status: int) -> bool: ...
    def next(self, response: ReceivedResponse, has_values: bool | None = None) -> tuple[str | None, str | None]: ...

@final
class PageQuery:
    def __new__(cls, css: list[str], json: list[str], extract: list[str], quoted: bool = False) -> PageQuery: ...
    def values(self, page: bytes, url: str | None = None, content_type: str | None = None) -> list[tuple[int, str]]: ...

@final
class Jar:
    def __new__(cls) -> Jar: ...
    def __len__(self) -> int: ...
    def header(self, url: str) -> str | None: ...
    def take(self, url: str, fields: list[str]) -> int: ...
    def set(
        self,
        name: str,
        value: str,
        domain: str,
        path: str = "/",
        secure: bool = False,
        http_only: bool = False,
        expires: int | None = None,
    ) -> None: ...
    def remove(self, name: str | None = None, domain: str | None = None, path: str | None = None) -> int: ...
    def load(self, file: str | os.PathLike[str]) -> None: ...
    def save(self, file: str | os.PathLike[str]) -> None: ...
    def remove_session(self) -> None: ...
    def all(self) -> list[tuple[str, str, str, str, bool, bool, bool, int | None]]: ...

def body_text(body: bytes, content_type: str | None = None) -> str | None: ...
def bypasses_proxy(no_proxy: str, url: str) -> bool: ...
def is_secret_field(name: str) -> bool: ...
def join(base: str, location: str) -> str: ...
def location_text(value: str) -> str | None: ...
def multipart(
    parts: list[tuple[str, str | None, str | None, list[tuple[str, str]], bytes | str]],
) -> tuple[bytes, str]: ...
def netrc_login(text: bytes, url: str) -> tuple[bytes, bytes] | None: ...
def prepare_url(url: str, query: str | None = None) -> str: ...
def requote(text: str) -> str: ...
def shard(url: str, count: int) -> int:
    """Returns the shard of a URL, from 0 to ``count`` - 1, as ``haul --shard`` does."""
def split_url(url: str) -> tuple[str, str, int, tuple[str, str] | None]: ...
def urlencode(data: Any) -> str: ...
