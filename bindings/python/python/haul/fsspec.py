"""A file system of fsspec for http and https URLs, through which pandas, Dask, DuckDB and others read.

>>> fs = HaulFileSystem()                                              # doctest: +SKIP
>>> fs.cat_file("https://example.com/data.bin", start=100, end=200)    # doctest: +SKIP

fsspec finds it by the protocols ``haul+http`` and ``haul+https``; after :func:`register` also by
``http`` and ``https``. This module needs fsspec.
"""

from __future__ import annotations

import inspect
import operator
import os
import re
import weakref
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

try:
    import fsspec  # type: ignore[import-untyped]
except ImportError as error:
    raise ImportError("haul.fsspec needs fsspec: pip install 'httphaul[fsspec]'") from error
from fsspec.asyn import AsyncFileSystem, sync  # type: ignore[import-untyped]
from fsspec.callbacks import DEFAULT_CALLBACK  # type: ignore[import-untyped]
from fsspec.exceptions import FSTimeoutError  # type: ignore[import-untyped]
from fsspec.utils import DEFAULT_BLOCK_SIZE, glob_translate, isfilelike, tokenize  # type: ignore[import-untyped]

from ._fsspec_files import AsyncStreamFile, CountedFile, RangeFile, StreamFile, first_byte, length_of_body
from ._fsspec_urls import leads_up, normalized, wildcard_of
from ._haul import EngineError, join
from .aio import AsyncResponse, AsyncSession
from .exceptions import InvalidURL, RequestException
from .models import Response
from .selection import select
from .sessions import Session

if TYPE_CHECKING:
    import asyncio

__all__ = ["HaulFileSystem", "register"]

_PREFIX = "haul+"
_PIECE = 5 << 20
_TEXT_URL = re.compile(r"""https?://[^\s"'<>\\]+""")
#: True if this version of fsspec can say that a path is not a pattern (``assume_literal``).
_KNOWS_LITERAL = "assume_literal" in inspect.signature(AsyncFileSystem._expand_path).parameters
#: The arguments of `AsyncSession.request` that every request of a file system may have.
_REQUEST_OPTIONS = frozenset({"params", "headers", "cookies", "auth", "timeout", "allow_redirects", "proxies", "verify", "cert"})
#: The options of `AbstractFileSystem` itself.
_BASE_OPTIONS = frozenset({"use_listings_cache", "listings_expiry_time", "max_paths", "skip_instance_cache"})
_SESSION_LIMITS = frozenset({"max_parallel", "per_host", "rate", "rate_host", "limit_rate_total", "stall_time"})
#: The fields by which a change of a file is noticed.
_METADATA = ("ETag", "Content-MD5", "Digest", "Last-Modified")


def register() -> None:
    """Makes fsspec use haul for http and https URLs, in this process.

    >>> register()                                                     # doctest: +SKIP
    >>> fsspec.open("https://example.com/data.csv")                    # doctest: +SKIP
    """
    for protocol in HaulFileSystem.protocol:
        fsspec.register_implementation(protocol, HaulFileSystem, clobber=True)


def open_session(**settings: Any) -> AsyncSession:
    """Returns a session with these attributes of :class:`haul.Session`, and these limits of
    :class:`haul.AsyncSession`.

    :raises TypeError: there is no attribute of such a name."""
    session = AsyncSession(**{name: settings.pop(name) for name in _SESSION_LIMITS & settings.keys()})
    session.headers.update(settings.pop("headers", {}))
    for name, value in settings.items():
        if name not in Session.__attrs__:
            raise TypeError(f"client_kwargs: a session has no attribute {name!r}")
        setattr(session, name, value)
    return session


class HaulFileSystem(AsyncFileSystem):  # type: ignore[misc]
    """Files of http and https servers, by their URLs, with the interface of ``HTTPFileSystem``.

    :param simple_links: whether a listing has the URLs in the text of a page, too, not only those of
        its links.
    :param block_size: the number of bytes that a file reads ahead; 0 reads each file as one stream.
    :param same_scheme: whether a listing of an http URL leaves out https links, and vice versa.
    :param size_policy: ignored, as in fsspec.
    :param cache_type, cache_options: the cache of open files (:mod:`fsspec.caching`).
    :param client_kwargs: settings of the session: attributes of :class:`haul.Session`, such as
        ``headers``, ``http2`` and ``verify``, and limits of :class:`haul.AsyncSession`.
    :param get_client: the function that makes the :class:`haul.AsyncSession` of ``client_kwargs``.
    :param encoded: whether URLs are encoded already. Otherwise haul encodes them.
    :param storage_options: arguments of each request: ``params``, ``headers``, ``cookies``, ``auth``,
        ``timeout``, ``allow_redirects``, ``proxies``, ``verify``, ``cert``.
    :raises TypeError: an option is unknown.
    """

    protocol = ("http", "https", "haul+http", "haul+https")
    sep = "/"

    def __init__(
        self,
        simple_links: bool = True,
        block_size: int | None = None,
        same_scheme: bool = True,
        size_policy: str | None = None,
        cache_type: str = "bytes",
        cache_options: Mapping[str, Any] | None = None,
        asynchronous: bool = False,
        loop: asyncio.AbstractEventLoop | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        get_client: Callable[..., AsyncSession] = open_session,
        encoded: bool = False,
        batch_size: int | None = None,
        **storage_options: Any,
    ) -> None:
        unknown = storage_options.keys() - _REQUEST_OPTIONS - _BASE_OPTIONS
        if unknown:
            raise TypeError(f"HaulFileSystem has no option {min(unknown)!r}")
        super().__init__(asynchronous=asynchronous, loop=loop, batch_size=batch_size, **storage_options)
        self.block_size = DEFAULT_BLOCK_SIZE if block_size is None else block_size
        self.simple_links = simple_links
        self.same_scheme = same_scheme
        self.cache_type = cache_type
        self.cache_options = cache_options
        self.encoded = encoded
        self.use_listings_cache = storage_options.get("use_listings_cache", False)
        #: The arguments of each request.
        self.kwargs = {name: value for name, value in storage_options.items() if name in _REQUEST_OPTIONS}
        self._session = get_client(**(client_kwargs or {}))
        if not asynchronous:
            weakref.finalize(self, self.close_session, self.loop, self._session)

    @property
    def fsid(self) -> str:
        """The name of the file system: ``http``."""
        return "http"

    async def set_session(self) -> AsyncSession:
        """Returns the session, which the program closes if the file system is ``asynchronous``."""
        return self._session

    @staticmethod
    def close_session(loop: asyncio.AbstractEventLoop | None, session: Any) -> None:
        """Closes a session, in the loop if that still runs."""
        if not isinstance(session, AsyncSession):
            return
        if loop is not None and loop.is_running():
            try:
                sync(loop, session.aclose, timeout=1)
                return
            except (TimeoutError, FSTimeoutError, NotImplementedError):
                pass
        session._calls.end()
        session._session.close()

    def close(self) -> None:
        """Closes the connections. Further requests open new ones."""
        self.close_session(self.loop, self._session)

    # URLs and options.

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        """Returns the URL without ``haul+``."""
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        path = os.fspath(path)
        return path[len(_PREFIX) :] if path.startswith(_PREFIX) else path

    def unstrip_protocol(self, name: str) -> str:
        """Returns the URL."""
        return str(self._strip_protocol(name))

    @classmethod
    def _parent(cls, path: str) -> str:
        """Returns the URL of the directory; an empty text for a host."""
        url = cls._strip_protocol(path).rstrip("/")
        parent = url.rpartition("/")[0]
        return parent if "://" in parent else ""

    def ukey(self, path: str) -> str:
        """Returns a key of a file. Files do not change, as in fsspec's own file system."""
        return tokenize(self._strip_protocol(path), self.kwargs, "http")  # type: ignore[no-any-return]

    def _arguments(self, url: str, options: Mapping[str, Any], **headers: str) -> tuple[str, dict[str, Any]]:
        """Returns the URL of a request and its arguments.

        :raises InvalidURL: the URL is not encoded, though ``encoded`` is set."""
        url = self._strip_protocol(url)
        if self.encoded and not (url.isascii() and url.isprintable() and " " not in url):
            raise InvalidURL(f"the URL is not encoded: {url!r}")
        arguments = {**self.kwargs, **options}
        own = {name.replace("_", "-"): value for name, value in headers.items()}
        merged = {**(self.kwargs.get("headers") or {}), **(options.get("headers") or {}), **own}
        if merged:
            arguments["headers"] = merged
        return url, arguments

    def _raise_for_status(self, response: Response, url: str) -> None:
        """:raises FileNotFoundError: the status is 404 or 410.
        :raises HTTPError: the status is another error."""
        if response.status_code in (404, 410):
            raise FileNotFoundError(url)
        response.raise_for_status()

    # Calls of open files, which block the thread of the program and not that of the loop.

    def _open_stream(self, url: str, options: Mapping[str, Any]) -> Response:
        where, arguments = self._arguments(url, options)
        response = self._session._session.get(where, stream=True, **arguments)
        try:
            self._raise_for_status(response, url)
        except OSError:
            response.close()
            raise
        return response

    def _open_range(self, url: str, start: int, end: int, options: Mapping[str, Any]) -> Response:
        where, arguments = self._arguments(url, options, Range=f"bytes={start}-{end - 1}", Accept_Encoding="identity")
        return self._session._session.get(where, stream=True, **arguments)

    def _cat_whole(self, url: str, options: Mapping[str, Any]) -> bytes:
        where, arguments = self._arguments(url, options)
        response = self._session._session.get(where, **arguments)
        self._raise_for_status(response, url)
        return response.content or b""

    # Reading.

    async def _stream(self, url: str, options: Mapping[str, Any], **headers: str) -> AsyncResponse:
        where, arguments = self._arguments(url, options, **headers)
        response = await self._session.get(where, stream=True, **arguments)
        try:
            self._raise_for_status(response, url)
        except OSError:
            response.close()
            raise
        return response

    async def _cat_file(self, url: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        """Returns the content of a file, or the part from ``start`` up to ``end``, which count from
        the end of the file if they are negative."""
        if start is None and end is None:
            where, arguments = self._arguments(url, kwargs)
            response = await self._session.get(where, **arguments)
            self._raise_for_status(response, url)
            return response.content or b""
        start = 0 if start is None else operator.index(start)
        end = None if end is None else operator.index(end)
        if (start < 0 or (end is not None and end < 0)) and (start >= 0 or end is not None):
            size = await self._known_size(url, kwargs)
            start, end, _ = slice(start, end).indices(size)
        if end is not None and end <= start:
            return b""
        text = f"bytes={start}" if start < 0 else f"bytes={start}-{'' if end is None else end - 1}"
        where, arguments = self._arguments(url, kwargs, Range=text, Accept_Encoding="identity")
        response = await self._session.get(where, **arguments)
        if response.status_code == 416:
            return b""
        self._raise_for_status(response, url)
        return await self._part(response, url, start, end, kwargs)

    async def _part(self, response: Response, url: str, start: int, end: int | None, options: Mapping[str, Any]) -> bytes:
        """Returns the part of the file that was asked for; the server may have sent all of it."""
        content: bytes = response.content or b""
        first = first_byte(response, start)
        if first is None:
            size = (await self._info(url, **options))["size"]
            if size is None:
                # Nothing tells whether this is the range or the whole file.
                return (await self._cat_file(url, **options))[start:end]
            first = 0 if len(content) == size else start
        if start < 0:
            return content[start:]
        if first > start:
            raise ValueError(f"{url}: the server has sent another range, which begins at {first}")
        return content[start - first : None if end is None else end - first]

    async def _known_size(self, url: str, options: Mapping[str, Any]) -> int:
        size = (await self._info(url, **options))["size"]
        if size is None:
            raise ValueError(f"{url}: positions from the end need the size of the file, and the server does not send it")
        return int(size)

    async def _get_file(
        self, rpath: str, lpath: Any, chunk_size: int = _PIECE, callback: Any = DEFAULT_CALLBACK, **kwargs: Any
    ) -> None:
        """Stores a file in a local one: a path, or an open file. Does nothing if a recursive ``get`` has
        made the local path a directory."""
        if not isfilelike(lpath) and os.path.isdir(lpath) and (rpath.endswith("/") or await self._isdir(rpath)):
            return
        response = await self._stream(rpath, kwargs)
        callback.set_size(length_of_body(response))

        def copy(file: Any) -> None:
            while piece := response.raw.read(chunk_size, True):
                file.write(piece)
                callback.relative_update(len(piece))

        def store() -> None:
            if isfilelike(lpath):
                copy(lpath)
            else:
                with open(lpath, "wb") as file:
                    copy(file)

        try:
            await self._session._calls.run(response.close, store)
        finally:
            response.close()

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: Any = None,
        cache_type: str | None = None,
        cache_options: Mapping[str, Any] | None = None,
        size: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Opens a file for reading.

        :param block_size: the number of bytes to read ahead; 0 reads the file as one stream.
        :param size: the size of the file, if it is known; otherwise the server is asked.
        :raises NotImplementedError: the mode is not ``rb``."""
        if mode != "rb":
            raise NotImplementedError("files of http servers are opened for reading; put_file and pipe_file write them")
        block_size = self.block_size if block_size is None else block_size
        info: Mapping[str, Any] = {"size": size}
        if not size and block_size:
            info = self.info(path, **kwargs)
        if block_size and info["size"] and info.get("partial", True):
            return RangeFile(
                self, path, info["size"], kwargs, block_size=block_size, cache_type=cache_type or self.cache_type,
                cache_options=cache_options or self.cache_options,
            )  # fmt: skip
        return StreamFile(self, path, kwargs)

    async def open_async(self, path: str, mode: str = "rb", size: int | None = None, **kwargs: Any) -> AsyncStreamFile:
        """Opens a file as a stream, whose ``read`` is a coroutine."""
        if mode != "rb":
            raise NotImplementedError("files of http servers are opened for reading")
        if size is None:
            try:
                size = (await self._info(path, **kwargs))["size"]
            except OSError:
                # Reading reports it.
                pass
        return AsyncStreamFile(self, path, size, kwargs)

    # Facts about files.

    async def _info(self, url: str, **kwargs: Any) -> dict[str, Any]:
        """Returns the facts about a file, by a HEAD, and by a GET if that does not give the size.

        :raises FileNotFoundError: the status is 404 or 410.
        :raises RequestException: for any other failure."""
        info: dict[str, Any] = {"name": self._strip_protocol(url), "size": None, "type": "file"}
        where, arguments = self._arguments(url, kwargs, Accept_Encoding="identity")
        try:
            response = await self._session.head(where, **{"allow_redirects": True, **arguments})
            self._raise_for_status(response, url)
            info.update(_facts(response))
        except OSError:
            # Many servers refuse HEAD. The GET fails, too, if that is not the reason.
            pass
        if info["size"] is None:
            response = await self._stream(url, kwargs, Accept_Encoding="identity")
            try:
                info.update(_facts(response))
            finally:
                response.close()
        return info

    def modified(self, path: str) -> datetime:
        """Returns the time of the last change, or the current time if the server does not say it: the
        file may just have changed."""
        try:
            return parsedate_to_datetime(self.info(path)["Last-Modified"])
        except (KeyError, ValueError):
            return datetime.now(timezone.utc)

    async def _exists(self, path: str, strict: bool = False, **kwargs: Any) -> bool:
        """Returns whether a request for the URL succeeds.

        :param strict: whether failures other than the status 404 and 410 are raised."""
        where, arguments = self._arguments(path, kwargs)
        try:
            response = await self._session.head(where, **{"allow_redirects": True, **arguments})
            if response.ok:
                return True
        except RequestException:
            pass
        try:
            (await self._stream(path, kwargs)).close()
        except FileNotFoundError:
            return False
        except RequestException:
            if strict:
                raise
            return False
        return True

    async def _isfile(self, path: str, **kwargs: Any) -> bool:
        """Returns whether a request for the URL succeeds: a directory is a file, too."""
        return await self._exists(path, **kwargs)

    async def _isdir(self, path: str) -> bool:
        """Returns whether the URL is that of a page with links to files below it."""
        try:
            return bool(await self._ls(path))
        except (FileNotFoundError, ValueError):
            return False

    # Listings.

    async def _ls(self, url: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        """Returns the links of a page that lead to URLs below it. A link that ends with a slash is a
        directory."""
        url = self._strip_protocol(url)
        entries = self.dircache.get(url) if self.use_listings_cache else None
        if entries is None:
            names = await self._links(url, kwargs)
            if not names and url.endswith("/"):
                names = await self._links(url.rstrip("/"), kwargs)
            entries = [{"name": name, "size": None, "type": "directory" if name.endswith("/") else "file"} for name in names]
            if self.use_listings_cache:
                self.dircache[url] = entries
        return entries if detail else [entry["name"] for entry in entries]

    async def _links(self, url: str, options: Mapping[str, Any]) -> list[str]:
        response = await self._stream(url, options)
        try:
            kind = response.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
            if kind not in ("text/html", "application/xhtml+xml"):
                return []
            page = await response.aread()
        finally:
            response.close()
        # A server may send a file without a type.
        if b"\0" in page[:_PIECE]:
            return []
        directory = url.rstrip("/") + "/"
        links = select(page, "a@href", url=directory)
        if self.simple_links:
            links += map(normalized, _TEXT_URL.findall(page.decode(response.encoding or "utf-8", "replace")))
        return sorted(set(self._below(directory, links)))

    def _below(self, directory: str, links: list[str]) -> Iterator[str]:
        """Yields the links that lead to URLs below a directory, in the spelling of the directory."""
        try:
            prefix = join(directory, ".")
        except EngineError:
            prefix = directory
        scheme, _, rest = prefix.partition("://")
        other = ("http" if scheme == "https" else "https") + "://" + rest
        for link in links:
            link = link.partition("#")[0]
            if leads_up(link):
                continue
            # `?C=M;O=A` and the like sort the directory itself.
            name = link.removeprefix(prefix)
            if name != link and name and name[0] != "?":
                yield directory + name
            elif not self.same_scheme and link.startswith(other) and link != other and link[len(other)] != "?":
                yield link

    async def _glob(self, path: str, maxdepth: int | None = None, **kwargs: Any) -> Any:
        """Returns the URLs that match a pattern. ``?`` begins a query and stands for itself."""
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        pattern: str = self._strip_protocol(path)
        detail = kwargs.pop("detail", False)
        wildcard = wildcard_of(pattern)
        if wildcard < 0:
            exists = await self._exists(pattern, **kwargs)
            if detail:
                return {pattern: await self._info(pattern, **kwargs)} if exists else {}
            return [pattern] if exists else []
        begin = pattern.rindex("/", 0, wildcard) + 1
        depth: int | None = pattern.count("/", begin) + 1
        if "**" in pattern:
            depth = None if maxdepth is None else pattern.count("/", begin, pattern.index("**")) + maxdepth
        entries = await self._find(pattern[:begin], maxdepth=depth, withdirs=True, detail=True, **kwargs)
        host_end = pattern.index("/", pattern.index("://") + 3)
        tail = glob_translate(pattern[host_end:].replace("?", "[?]"))
        matches = re.compile(re.escape(pattern[:host_end]) + tail).match
        keeps_slash = pattern.endswith(("/", "/*", "/**"))
        wants_directories = pattern.endswith("/")
        found = {}
        for name in sorted(entries):
            plain = name.rstrip("/")
            if wants_directories and entries[name]["type"] != "directory":
                continue
            if matches(plain + "/" if wants_directories else plain):
                found[name if keeps_slash else plain] = entries[name]
        return found if detail else list(found)

    async def _expand_path(
        self, path: Any, recursive: bool = False, maxdepth: int | None = None, assume_literal: bool = False
    ) -> list[str]:
        """Returns the URLs of a pattern, or of a list of patterns. URLs with a query are no patterns."""
        urls: list[str] = self._strip_protocol([path] if isinstance(path, str) else list(path))
        if not recursive and maxdepth is None and all(assume_literal or wildcard_of(url) < 0 for url in urls):
            return sorted(set(urls))
        literal = {"assume_literal": assume_literal} if _KNOWS_LITERAL else {}
        return await super()._expand_path(urls, recursive, maxdepth, **literal)  # type: ignore[no-any-return]

    # Writing.

    async def _put_file(
        self,
        lpath: Any,
        rpath: str,
        chunk_size: int = _PIECE,
        callback: Any = DEFAULT_CALLBACK,
        method: str = "post",
        mode: str = "overwrite",
        **kwargs: Any,
    ) -> None:
        """Sends a local file, a path or an open file, by POST or PUT.

        :param mode: ``create`` sends ``If-None-Match: *``, so that the server refuses to overwrite.
        :raises FileExistsError: the server has refused to overwrite the file.
        :raises ValueError: the method is neither ``post`` nor ``put``."""
        method = method.lower()
        if method not in ("post", "put"):
            raise ValueError(f"method has to be either 'post' or 'put', not: {method!r}")
        if isfilelike(lpath):
            body = CountedFile(lpath, callback)
            callback.set_size(body.size())
            await self._upload(method, rpath, body, mode, kwargs)
            return
        with open(lpath, "rb") as file:
            callback.set_size(os.fstat(file.fileno()).st_size)
            await self._upload(method, rpath, CountedFile(file, callback), mode, kwargs)

    async def _pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        """Sends bytes by PUT. ``mode`` is that of :meth:`put_file`."""
        await self._upload("put", path, bytes(value), mode, kwargs)

    async def _upload(self, method: str, url: str, body: Any, mode: str, options: Mapping[str, Any]) -> None:
        if mode not in ("overwrite", "create"):
            raise ValueError(f"mode has to be either 'overwrite' or 'create', not: {mode!r}")
        conditions = {"If_None_Match": "*"} if mode == "create" else {}
        where, arguments = self._arguments(url, options, **conditions)
        response = await self._session.request(method.upper(), where, data=body, **arguments)
        if mode == "create" and response.status_code == 412:
            raise FileExistsError(url)
        self._raise_for_status(response, url)
        self.invalidate_cache(url)

    def invalidate_cache(self, path: str | None = None) -> None:
        """Forgets the listing of a URL and that of its directory; without a URL, all listings."""
        if path is None:
            self.dircache.clear()
            return
        for url in (self._strip_protocol(path).rstrip("/"), self._parent(path)):
            self.dircache.pop(url, None)
            self.dircache.pop(url + "/", None)


def _facts(response: Response) -> Iterator[tuple[str, Any]]:
    """Yields the names and values that a head says about its file."""
    headers = response.headers
    size = length_of_body(response)
    if size is None and "content-encoding" not in headers:
        total = headers.get("content-range", "").rpartition("/")[2]
        size = int(total) if total.isdecimal() else None
    if size is not None:
        yield "size", size
    if "content-type" in headers:
        yield "mimetype", headers["content-type"].partition(";")[0].strip()
    if headers.get("accept-ranges", "").lower() == "none":
        yield "partial", False
    yield "url", response.url
    for name in _METADATA:
        if headers.get(name):
            yield name, headers[name]
