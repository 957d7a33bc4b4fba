"""Many requests at once, their results one by one: ``fetch_many``.

The engine moves all of them on one thread of its own; the program takes the results in its own time. What bodies hold is bounded, however
many requests there are and however slowly results are taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ._haul import Batch, Failure
from .exceptions import RequestException, from_failure
from .models import PreparedRequest, Request, Response, Sent
from .sessions import Session

__all__ = ["Result", "fetch_many"]


class Result:
    """What came of one request: a :attr:`response`, or an :attr:`error`.

    The response's own attributes can be asked of the result, too; of one that failed they raise the error.
    """

    __slots__ = ("index", "request", "response", "error")

    def __init__(self, index: int, request: Any, response: Response | None, error: Exception | None) -> None:
        #: Its place in the input, from 0.
        self.index = index
        #: What was asked for: the item of the input.
        self.request = request
        #: The response, if one came.
        self.response = response
        #: Why none did.
        self.error = error

    def unwrap(self) -> Response:
        """The response.

        :raises RequestException: why there is none."""
        if self.error is not None:
            raise self.error
        assert self.response is not None
        return self.response

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unwrap(), name)

    def __bool__(self) -> bool:
        return self.error is None

    def __repr__(self) -> str:
        return f"<Result {self.index}: {self.error!r}>" if self.error is not None else f"<Result {self.index}: {self.response!r}>"


def fetch_many(
    requests: Iterable[str | Request | PreparedRequest | Mapping[str, Any]],
    max_parallel: int = 64,
    *,
    per_host: int | None = None,
    ordered: bool = True,
    max_memory: int = 64 << 20,
    session: Session | None = None,
    timeout: Any = None,
    allow_redirects: bool = True,
) -> Iterator[Result]:
    """Sends all requests of an iterable, and gives their results as they come to be wanted.

    >>> for result in fetch_many(f"http://127.0.0.1/{i}" for i in range(1000)):  # doctest: +SKIP
    ...     print(result.index, len(result.content))

    :param requests: URLs, requests, or arguments of :meth:`haul.Session.request` as dicts. They are taken as room comes to be free, so
        the iterable may be endless.
    :param max_parallel: most requests at once, in all.
    :param per_host: most requests at once to one host; default as many as in all.
    :param ordered: results in the order of the requests; else as they come.
    :param max_memory: bytes that bodies may hold, those under way and those that wait to be taken.
    :param session: whose headers, cookies, proxies and certificates are used.
    :param timeout: as of :meth:`haul.Session.request`.
    :param allow_redirects: whether redirects are followed: by the engine, which keeps no ``history`` of them. A method other than POST stays
        as it is behind a 301 or 302.
    :raises ValueError: ``max_parallel`` or ``per_host`` is less than 1.

    Leaving the loop early ends what is under way. A request that fails is a result with an :attr:`~Result.error`.
    """
    if max_parallel < 1 or (per_host is not None and per_host < 1):
        raise ValueError("max_parallel and per_host have to be at least 1")
    return _results(
        iter(requests), max_parallel, per_host or max_parallel, ordered, max_memory, session or Session(), timeout,
        allow_redirects,
    )  # fmt: skip


def _results(
    requests: Iterator[Any], max_parallel: int, per_host: int, ordered: bool, max_memory: int, session: Session, timeout: Any,
    allow_redirects: bool,
) -> Iterator[Result]:  # fmt: skip
    batch = Batch(session._client, max_parallel=max_parallel, per_host=per_host, ordered=ordered, memory=max_memory)
    # A few more than run: the engine has the next one at hand when one is over, and in order some wait for the one at the head.
    ahead = max_parallel * 2 + 8
    running: dict[int, tuple[int, Any, Sent, bool]] = {}
    order: deque[int | Result] = deque()
    index = 0
    exhausted = False
    while True:
        while not exhausted and len(running) < ahead and len(order) < 2 * ahead:
            try:
                item = next(requests)
            except StopIteration:
                exhausted = True
                break
            try:
                call, sent = _call(session, item, timeout, allow_redirects)
                number = batch.submit(*call)
            except Failure as failure:
                order.append(Result(index, item, None, from_failure(failure)))
            except RequestException as refused:
                order.append(Result(index, item, None, refused))
            else:
                running[number] = (index, item, sent, call[0].proxied)
                if ordered:
                    order.append(number)
            index += 1
        if order and isinstance(order[0], Result):
            yield order.popleft()  # type: ignore[misc]
            continue
        if not running:
            return
        over = batch.next()
        if over is None:
            # In a forked child nothing comes of what the parent began.
            return
        number, reply, error = over
        if ordered:
            order.popleft()
        place, item, sent, proxied = running.pop(number)
        if reply is not None:
            yield Result(place, item, Response._of(reply, sent), None)
        elif isinstance(error, Failure):
            yield Result(place, item, None, from_failure(error, proxied=proxied))
        else:
            yield Result(place, item, None, error)


def _call(session: Session, item: Any, timeout: Any, allow_redirects: bool) -> tuple[Any, Sent]:
    """The arguments of the engine's call, whose plan follows redirects and keeps cookies by itself."""
    follow = session.max_redirects if allow_redirects else None
    call: Any = None
    if type(item) is str:
        if session._is_short("GET", item, None, session.auth):
            call = session._short("GET", item, None, None, None, None, session.auth, timeout, None, None, None, None)
        else:
            item = Request("GET", item)
    if isinstance(item, Mapping):
        item = Request(**{"method": "GET", **item})
    if isinstance(item, Request):
        item = session.prepare_request(item)
    if isinstance(item, PreparedRequest):
        call = session._long(item, {"timeout": timeout})
    elif call is None:
        raise TypeError(f"a URL or a request is wanted, not {type(item)}")
    # The cookies of a prepared request are among its headers.
    jar = None if isinstance(item, PreparedRequest) else call[6]
    plan = session._following(call[0], follow, jar)
    return (plan, *call[1:6], None, call[7]), Sent(call[1], plan, call[4], call[5])
