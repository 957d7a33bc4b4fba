"""``HaulAdapter(max_retries=…)``: what a ``urllib3.Retry`` says to a request that failed, or to a status.

::

    retries = Attempts(Retry(3, status_forcelist=[503]), request)
    while True:
        try: reply = …
        except Failure as failure: retries.after_failure(failure, proxied); continue
        if not retries.wants_another(raw): break
"""

from __future__ import annotations

from typing import Any

import requests
from urllib3 import Retry
from urllib3 import exceptions as urllib3
from urllib3.util.request import rewind_body, set_file_position

from ._haul import Failure
from ._raw import RawBody
from .exceptions import ConnectionError, ReadTimeout, Timeout, from_failure

__all__ = ["Attempts", "as_requests", "as_urllib3"]

# urllib3's exceptions name a pool, and there is none.
_NO_POOL: Any = None


class Attempts:
    """The attempts of one request."""

    def __init__(self, retries: Retry, request: requests.PreparedRequest) -> None:
        #: What is left of it.
        self.retries = retries
        self._request = request
        self._method = request.method or "GET"
        self._url = request.url or ""
        self._position: Any = set_file_position(request.body, None)

    def after_failure(self, failure: Failure, proxied: bool) -> None:
        """Returns when it is time to try again.

        :raises requests.RequestException: it is not to be tried again."""
        if not _is_of_network(failure):
            raise as_requests(failure, self._request, proxied) from None
        cause = as_urllib3(failure, self._url, proxied)
        try:
            self.retries = self.retries.increment(self._method, self._url, error=cause)
        except urllib3.MaxRetryError as exhausted:
            error = as_requests(failure, self._request, proxied)
            if isinstance(error, requests.exceptions.ReadTimeout):
                # As by requests: of several that all came too late, that they did is not what is told.
                error = requests.exceptions.ConnectionError(exhausted, request=self._request)
            raise error from None
        except urllib3.HTTPError:
            raise as_requests(failure, self._request, proxied) from None
        self._rewind()
        self.retries.sleep()

    def wants_another(self, raw: RawBody) -> bool:
        """Whether the status of a reply wants the request to be tried again, for which it is time now.

        :raises requests.exceptions.RetryError: it does, and has for too often."""
        retries = self.retries
        if not retries.is_retry(self._method, raw.status, raw.reply.has("retry-after")):
            return False
        try:
            self.retries = retries.increment(self._method, self._url, response=raw)  # type: ignore[arg-type]
        except urllib3.MaxRetryError as exhausted:
            if retries.raise_on_status:
                raw.close()
                raise requests.exceptions.RetryError(exhausted, request=self._request) from None
            return False
        raw.drain_conn()
        self._rewind()
        self.retries.sleep(raw)  # type: ignore[arg-type]
        return True

    def _rewind(self) -> None:
        if self._position is not None:
            rewind_body(self._request.body, self._position)  # type: ignore[arg-type]


def _is_of_network(failure: Failure) -> bool:
    """Whether it may be better the next time: no fault of the request's, nor of what was answered to it."""
    return failure.args[3] != "body" and isinstance(from_failure(failure), (ConnectionError, Timeout))


def as_requests(failure: Failure, request: requests.PreparedRequest, proxied: bool = False) -> BaseException:
    """requests' exception of the same name."""
    error = from_failure(failure, proxied=proxied)
    if isinstance(error, ReadTimeout):
        # Programs look for the words of urllib3's, which requests' holds.
        return requests.exceptions.ReadTimeout(as_urllib3(failure, request.url), request=request)
    cls = getattr(requests.exceptions, type(error).__name__, None)
    if cls is None or not issubclass(cls, requests.exceptions.RequestException):
        return error
    return cls(*error.args, request=request)  # type: ignore[no-any-return]


def as_urllib3(failure: Failure, url: str | None, proxied: bool = False) -> Exception:
    """urllib3's exception: what requests waits for while it reads a body, and a ``Retry`` counts by."""
    kind, message, _, phase = failure.args
    if phase == "connect":
        error: Exception = urllib3.ConnectTimeoutError(message) if kind != "TlsHandshake" else urllib3.SSLError(message)
        return urllib3.ProxyError(message, error) if proxied else error
    if kind == "Timeout":
        return urllib3.ReadTimeoutError(_NO_POOL, url or "", f"Read timed out: {message}")
    if kind in ("ContentCoding", "TooLarge"):
        return urllib3.DecodeError(message)
    return urllib3.ProtocolError(message)
