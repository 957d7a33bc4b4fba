"""Functions of the program that answer requests in the place of servers."""

from __future__ import annotations

from collections.abc import Callable

from ._request_objects import PreparedRequest
from .exceptions import RequestException
from .models import Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["FunctionAdapter"]


class FunctionAdapter:
    """An adapter whose responses are those of a function.

    :param function: returns a :class:`Response` for a request, or raises an exception."""

    def __init__(self, function: Callable[[PreparedRequest], Any]) -> None:
        self._function = function

    def call(self, request: PreparedRequest) -> Any:
        """Calls the function. If it raises an exception of haul, stores the request in the exception."""
        try:
            return self._function(request)
        except RequestException as error:
            error.request = error.request or request
            raise

    def answer(self, request: PreparedRequest, given: Any) -> Response:
        """Completes the response that the function has returned.

        :raises TypeError: it is no response."""
        if not isinstance(given, Response):
            wanted = "a haul.Response (haul.testing.response)"
            raise TypeError(f"a mounted function has to return {wanted}, not {type(given).__name__}")
        response = type(given).__new__(type(given))
        response.__dict__.update(given.__dict__)
        response.headers = given.headers.copy()
        if request.method == "HEAD":
            response._content = b""
        response.request = request
        if not response.url:
            response.url = request.url or ""
        fields = [value for _, value in given.__dict__.get("_set_cookies", ())]
        if fields:
            response.cookies._jar.take(response.url, fields)
        return response

    def send(self, request: PreparedRequest, **settings: Any) -> Response:
        """Returns the response to a request."""
        return self.answer(request, self.call(request))

    def close(self) -> None:
        """Does nothing."""
