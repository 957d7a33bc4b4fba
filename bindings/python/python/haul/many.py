"""``fetch_many``: many requests at the same time, with their results one by one.

The engine does all the work on one thread of its own; the program takes the results at its own pace. The memory for bodies is bounded, however
many requests there are and however slowly results are taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from ._asked import PreparedRequest, Request
from ._haul import Batch, Failure
from .exceptions import RequestException, from_failure
from .models import Response, answer
from .sessions import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._haul import Plan
    from .models import Call

__all__ = ["Result", "fetch_many"]


_ABOUT_SENDING = frozenset({"timeout", "verify", "cert"})
#: What a failed request's result raises its error for.
_OF_RESPONSES = frozenset(name for name in dir(Response) if not name.startswith("__"))


class Result:
    """The result of one request: a :attr:`response`, or an :attr:`error`.

    The attributes of the response are also attributes of the result; if the request failed, they raise the error. Names that a
    response does not have raise an ``AttributeError`` in either case.
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

        :raises RequestException: the request failed."""
        if self.error is not None:
            raise self.error
        assert self.response is not None
        return self.response

    def __getattr__(self, name: str) -> Any:
        # Special methods are asked for before a copy has any attribute. They are the result's own or nobody's.
        if name in _OF_RESPONSES or (name[:2] != "__" and name not in Result.__slots__ and self.error is None):
            return getattr(self.unwrap(), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *dir(self.response)} if self.error is None else dir(type(self)))

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
    """Sends all requests of an iterable, and yields their results.

    >>> for result in fetch_many(f"http://127.0.0.1/{i}" for i in range(1000)):  # doctest: +SKIP
    ...     print(result.index, len(result.content))

    :param requests: URLs, requests, or arguments of :meth:`haul.Session.request` (but ``stream`` and ``proxies``) as dicts. They are taken as room comes to be free, so
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
    if isinstance(requests, (str, bytes, Mapping)):
        # Each letter, or key, would be taken for a URL.
        raise TypeError(f"fetch_many takes an iterable of URLs or requests, not one {type(requests).__name__}")
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
    # Results are taken in bunches, but the engine is given more to do before all that it had is gone.
    bunch = max_parallel // 2 + 4
    calls = _Calls(session, timeout, allow_redirects)
    running: dict[int, tuple[int, Any, Call]] = {}
    # What never started; in the order of the input it waits for those before it.
    refused: deque[Result] = deque()
    index = 0
    exhausted = False
    while True:
        calls.look_again()
        while not exhausted and len(running) < ahead and len(refused) < ahead:
            try:
                item = next(requests)
            except StopIteration:
                exhausted = True
                break
            try:
                call = calls.of(item)
                running[batch.submit(*call)] = index, item, call
            except Failure as failure:
                refused.append(Result(index, item, None, from_failure(failure)))
            except RequestException as error:
                refused.append(Result(index, item, None, error))
            index += 1
        while refused and not (ordered and running and next(iter(running.values()))[0] < refused[0].index):
            yield refused.popleft()
        if not running:
            if exhausted:
                return
            continue
        over = batch.next(bunch)
        if not over:
            # In a forked child nothing comes of what the parent began.
            return
        for number, reply, failed in over:
            place, item, call = running.pop(number)
            while refused and ordered and refused[0].index < place:
                yield refused.popleft()
            if reply is not None:
                yield Result(place, item, answer(Response, reply, call), None)
            elif isinstance(failed, Failure):
                yield Result(place, item, None, from_failure(failed, proxied=call[0].proxied))
            else:
                yield Result(place, item, None, failed)


class _Calls:
    """The arguments of the engine's calls, whose plans follow redirects and keep cookies by themselves."""

    def __init__(self, session: Session, timeout: Any, allow_redirects: bool) -> None:
        self.session = session
        self.timeout = timeout
        self.follow = session.max_redirects if allow_redirects else None
        #: Those of a URL, where they are the same for all.
        self.common: tuple[Plan, str | None, Any, str | None] | None = None
        self.proxies: Any = None

    def look_again(self) -> None:
        """The session's settings, or the environment's, may have changed."""
        self.common = None
        self.proxies = None if self.follow is None else self.session._proxies_by_scheme()

    def of(self, item: Any) -> Call:
        """Those of an item of the input."""
        session = self.session
        if type(item) is str:
            common = self.common
            if common is not None:
                plan, query, fields, cookie = common
                return plan, "GET", item, query, fields, None, None, cookie
            call = session._short("GET", item, None, None, None, None, None, self.timeout, None, None, None, None)
            if call is not None:
                plan = session._following(call[0], self.follow, call[6], self.proxies)
                if session._suits_all_urls():
                    self.common = plan, call[3], call[4], call[7]
                return (plan, *call[1:6], None, call[7])
            item = Request("GET", item)
        settings, follow = {"timeout": self.timeout}, self.follow
        if isinstance(item, Mapping):
            asked = {"method": "GET", **item}
            settings.update({name: asked.pop(name) for name in _ABOUT_SENDING & asked.keys()})
            if not asked.pop("allow_redirects", True):
                follow = None
            item = Request(**asked)
        if isinstance(item, Request):
            item = session.prepare_request(item)
        if not isinstance(item, PreparedRequest):
            raise TypeError(f"a URL or a request is wanted, not {type(item)}")
        # Its cookies are among its headers.
        long = session._long(item, settings)
        plan = session._following(long[0], follow, None, self.proxies)
        return (plan, *long[1:])
