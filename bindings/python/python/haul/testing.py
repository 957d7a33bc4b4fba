"""Help for the tests of programs that use haul: responses without a server.

>>> session = haul.Session()
>>> session.mount("https://api.example/", lambda request: response(json={"id": 7}))
>>> session.get("https://api.example/items/7").json()
{'id': 7}

With pytest, the fixture ``haul_mock`` answers the requests of all sessions; see :class:`Mock`.
"""

from __future__ import annotations

import http
import json as json_module
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ._mounts import FunctionAdapter
from ._session_parts import everywhere
from ._request_objects import PreparedRequest
from .exceptions import ConnectionError, RequestException
from .models import Response
from .structures import CaseInsensitiveDict

__all__ = ["Mock", "response"]

#: The answer to a request: a response, an exception to raise, or a function of the request.
Answer = Response | Exception | Callable[[PreparedRequest], Any]


def response(
    status: int = 200,
    content: bytes | str = b"",
    *,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    json: object = None,
    reason: str | None = None,
    url: str | None = None,
) -> Response:
    """Returns a response, as a server would send it.

    >>> response(404, "not here").text
    'not here'
    >>> response(json=[1, 2]).headers["content-type"]
    'application/json'

    :param content: the body. Text is encoded in UTF-8, which the Content-Type says.
    :param headers: the header fields; pairs if a name is repeated.
    :param json: the body as JSON, instead of ``content``.
    :param reason: the reason phrase; default: that of the status.
    :param url: the URL; default: that of the request."""
    made = Response()
    pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
    kind = None
    if json is not None:
        content, kind = json_module.dumps(json), "application/json"
    elif isinstance(content, str):
        kind = "text/plain; charset=utf-8"
    body = content.encode() if isinstance(content, str) else bytes(content)
    fields = CaseInsensitiveDict({} if kind is None else {"Content-Type": kind})
    for name, value in pairs:
        known = fields.get(name) if name.lower() != "content-type" else None
        fields[name] = value if known is None else f"{known}, {value}"
    fields.setdefault("Content-Length", str(len(body)))
    made.status_code = status
    made.headers = fields
    made.reason = _reason_of(status) if reason is None else reason
    made.url = url
    made._content = body
    made._content_consumed = True
    made.__dict__["_set_cookies"] = [pair for pair in pairs if pair[0].lower() == "set-cookie"]
    return made


def _reason_of(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return ""


def _normal_url(url: str) -> str:
    """Returns a URL as a prepared request has it, without its fragment."""
    prepared = PreparedRequest()
    try:
        prepared.prepare_url(url, None)
    except RequestException:
        return url
    return (prepared.url or "").partition("#")[0]


class Mock:
    """Answers the requests of all sessions, of :func:`haul.get` and of :func:`haul.fetch_many`.

    >>> with Mock() as mock:
    ...     mock.get("https://api.example/items", response(json=[1]))
    ...     haul.get("https://api.example/items").json()
    [1]
    >>> [call.url for call in mock.calls]
    ['https://api.example/items']

    A request without an answer fails with a :class:`haul.ConnectionError`, and is not sent. A query is
    compared only if the URL of the answer has one."""

    def __init__(self) -> None:
        #: The requests so far.
        self.calls: list[PreparedRequest] = []
        self._answers: list[tuple[str | None, str, list[Answer]]] = []
        self._before: dict[str, Any] = {}

    def __enter__(self) -> Mock:
        self._before = dict(everywhere)
        everywhere.clear()
        everywhere[""] = FunctionAdapter(self._answer)
        return self

    def __exit__(self, *args: object) -> None:
        everywhere.clear()
        everywhere.update(self._before)

    def add(self, method: str | None, url: str, *answers: Answer) -> None:
        """Answers requests with this method, or with any, to this URL.

        :param answers: the answers in turn; the last one is repeated. Without one, the answer is an empty 200."""
        self._answers.append((None if method is None else method.upper(), _normal_url(url), list(answers) or [response()]))

    def get(self, url: str, *answers: Answer) -> None:
        """Answers GET requests; see :meth:`add`."""
        self.add("GET", url, *answers)

    def post(self, url: str, *answers: Answer) -> None:
        """Answers POST requests; see :meth:`add`."""
        self.add("POST", url, *answers)

    def put(self, url: str, *answers: Answer) -> None:
        """Answers PUT requests; see :meth:`add`."""
        self.add("PUT", url, *answers)

    def patch(self, url: str, *answers: Answer) -> None:
        """Answers PATCH requests; see :meth:`add`."""
        self.add("PATCH", url, *answers)

    def delete(self, url: str, *answers: Answer) -> None:
        """Answers DELETE requests; see :meth:`add`."""
        self.add("DELETE", url, *answers)

    def _answer(self, request: PreparedRequest) -> Any:
        self.calls.append(request)
        sent = (request.url or "").partition("#")[0]
        for method, url, answers in reversed(self._answers):
            if method not in (None, request.method) or url not in (sent, sent.partition("?")[0]):
                continue
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            if isinstance(answer, Exception):
                raise answer
            return answer if isinstance(answer, Response) else answer(request)
        raise ConnectionError(f"the mock has no answer to {request.method} {sent}", request=request)
