"""An HTTP client with the API of requests, built on haul's engine.

>>> import haul
>>> response = haul.get("https://example.com/")                        # doctest: +SKIP
>>> response.status_code, response.headers["content-type"]             # doctest: +SKIP
(200, 'text/html')

Many at once, in order and in bounded memory::

    for url, result in zip(urls, haul.fetch_many(urls, max_parallel=20)):
        print(url, len(result.content))

With asyncio::

    async with haul.AsyncSession() as session:
        response = await session.get("https://example.com/")

In an existing ``requests.Session``::

    session.mount("https://", haul.adapters.HaulAdapter())
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident

# Type checkers treat this name as true. Importing it from `typing` would double the import time.
TYPE_CHECKING = False

from . import exceptions
from ._haul import __version__, shard
from .api import delete, get, head, options, patch, post, put, request
from .exceptions import (
    ConnectionError,
    ConnectTimeout,
    FileModeWarning,
    HTTPError,
    PoolTimeout,
    ReadTimeout,
    RequestException,
    Timeout,
    TooManyRedirects,
    URLRequired,
    WriteTimeout,
)
from .models import PreparedRequest, Request, Response
from .sessions import Session, session

if TYPE_CHECKING:
    from typing import Any

    from . import adapters, arrow, auth, cookies, ray, spark, status_codes, structures, testing
    from ._client_timeout import ClientTimeout
    from ._connect_options import ConnectOptions
    from ._events import Event
    from ._response_facts import ConnectionInfo, Timings
    from ._retry_policy import Retry
    from .aio import AsyncResponse, AsyncSession
    from .client import AsyncClient, Client
    from ._listings import Pagination
    from .exceptions import JSONDecodeError
    from .many import ResultList, fetch_many
    from .selection import select, select_json
    from .status_codes import codes

__all__ = [
    "AsyncClient", "AsyncResponse", "AsyncSession", "Client", "ClientTimeout", "ConnectOptions", "ConnectTimeout", "ConnectionError",
    "ConnectionInfo", "Event",
    "FileModeWarning", "HTTPError", "JSONDecodeError", "Pagination", "PoolTimeout", "PreparedRequest", "ReadTimeout", "Request",
    "RequestException", "Response", "ResultList", "Retry", "Session", "Timeout", "Timings", "TooManyRedirects",
    "URLRequired", "WriteTimeout", "__version__", "adapters", "arrow", "auth", "codes", "cookies", "delete", "exceptions", "fetch_many", "get",
    "head", "options", "patch", "post", "put", "ray", "request", "select", "select_json", "session", "shard", "spark",
    "status_codes", "structures", "testing",
]  # fmt: skip

# Names that many programs do not need are imported at their first use.
_LAZY_NAMES = {
    "AsyncClient": "client",
    "AsyncResponse": "aio",
    "AsyncSession": "aio",
    "Client": "client",
    "ClientTimeout": "_client_timeout",
    "ConnectOptions": "_connect_options",
    "ConnectionInfo": "_response_facts",
    "Event": "_events",
    "JSONDecodeError": "exceptions",
    "Pagination": "_listings",
    "ResultList": "many",
    "Retry": "_retry_policy",
    "Timings": "_response_facts",
    "codes": "status_codes",
    "fetch_many": "many",
    "select": "selection",
    "select_json": "selection",
}
_LAZY_MODULES = (
    "adapters", "aio", "arrow", "auth", "client", "cookies", "fsspec", "httpx", "many", "ray", "selection", "spark",
    "status_codes", "structures", "testing",
)  # fmt: skip

# Replacements for names of requests that this package does not have.
_REPLACEMENTS = {
    "packages": "haul does not use urllib3, so there are no warnings of urllib3 to turn off",
    "utils": "use urllib.parse to quote URLs, haul.cookies.CookieJar for cookies, and the methods of responses",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LAZY_NAMES:
        value = getattr(import_module(f".{_LAZY_NAMES[name]}", __name__), name)
    elif name in _LAZY_MODULES:
        value = import_module(f".{name}", __name__)
    else:
        instead = f": {_REPLACEMENTS[name]}" if name in _REPLACEMENTS else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{instead}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY_NAMES, *_LAZY_MODULES})


#: The modules that requests import at their first use, except those that need other large ones.
_LAZY_PARTS = (
    "_client_timeout", "_connect_options", "_events", "_line_splitter", "_listings", "_mounts", "_raw_body", "_response_facts",
    "_retry_policy", "_retrying_batch", "auth", "many", "selection", "status_codes",
)  # fmt: skip


#: The seconds for which a fork waits for imports in other threads.
_FORK_WAIT = 1.0


def _finish_imports() -> None:
    """Imports the parts of this package that requests need, and waits for imports in other threads.

    A forked child does not have those threads. A module whose import they have begun would stay locked
    there for ever. Such an import may itself wait for a lock that the forking thread holds, such as that
    of ``logging``, so the wait is bounded."""
    # An import in this thread could wait for ever itself.
    threading = sys.modules.get("threading")
    if threading is None or threading.active_count() == 1:
        _import_parts()
        return
    helper = threading.Thread(target=_import_parts, name="haul imports", daemon=True)
    try:
        if _begun_imports() or not all(f"{__name__}.{part}" in sys.modules for part in _LAZY_PARTS):
            helper.start()
            helper.join(_FORK_WAIT)
    except RuntimeError:
        # The interpreter ends, and starts no more threads.
        pass


def _import_parts() -> None:
    from importlib import import_module

    parts = [f"{__name__}.{part}" for part in _LAZY_PARTS]
    seen: set[str] = set()
    while names := [name for name in (*_begun_imports(), *parts) if name not in seen]:
        seen.update(names)
        for name in names:
            try:
                import_module(name)
            except Exception:  # noqa: BLE001 - the import fails in the program, too
                continue


def _begun_imports() -> list[str]:
    """Returns the modules of this package whose import has begun and not ended."""
    return [name for name in list(_module_locks()) if name.startswith("haul.")]


def _module_locks() -> dict[str, Any]:
    """Returns the locks of all modules whose import has begun, each as a weak reference."""
    return getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})


def _drop_imports_of_lost_threads() -> None:
    """Lets a forked child import anew the modules whose import another thread of the parent had begun."""
    me = get_ident()
    locks = _module_locks()
    for name in _begun_imports():
        reference = locks.get(name)
        owner = None if reference is None else getattr(reference(), "owner", None)
        if owner is not None and owner != me:
            locks.pop(name, None)
            sys.modules.pop(name, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_finish_imports, after_in_child=_drop_imports_of_lost_threads)
