"""Events of requests: the program's hooks for them, and the lines of the logger ``haul``.

::

    session.event_hooks["done"].append(lambda event: print(event.request.url, event.seconds))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from time import monotonic

from ._session_parts import wanted_logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from ._request_objects import PreparedRequest
    from .models import Response

    EventName = Literal["request", "connect", "tls", "head", "retry", "redirect", "done"]

__all__ = ["Event", "Observation", "hooks_from", "shown_url"]

EVENTS = ("request", "connect", "tls", "head", "retry", "redirect", "done")

_calls = count(1)


class Event:
    """A step of a call, for the hooks of :attr:`haul.Session.event_hooks`.

    A call is one call of a session's method, with its retries and redirects."""

    __slots__ = ("name", "request", "response", "error", "wait", "attempt", "seconds", "call", "state")

    def __init__(
        self,
        name: EventName,
        request: PreparedRequest,
        response: Response | None,
        error: BaseException | None,
        wait: float | None,
        observation: Observation,
        seconds: float | None = None,
    ) -> None:
        #: ``request``: a request is sent. ``connect``: a connection was made for it. ``tls``: the
        #: TLS handshake was complete. ``head``: the head of its response has arrived. ``retry``: it
        #: will be sent again. ``redirect``: the response leads elsewhere. ``done``: the call is over.
        self.name = name
        #: The request. For ``redirect``, it is the request to the new URL.
        self.request = request
        #: The response, if there is one.
        self.response = response
        #: The exception, if the request failed.
        self.error = error
        #: The seconds until a retry.
        self.wait = wait
        #: The number of requests of this call so far.
        self.attempt = observation.attempt
        #: The seconds from the beginning of the call to the step.
        self.seconds = monotonic() - observation.begun if seconds is None else seconds
        #: The number of the call in this process, from 1.
        self.call = observation.number
        #: A dict for the program, which all events of a call share.
        self.state = observation.state

    def __repr__(self) -> str:
        return f"<Event {self.name} of call {self.call}: {self.request.method} {shown_url(self.request.url)}>"


EventHooks = dict[str, list[Callable[[Event], object]]]


def hooks_from(given: Mapping[str, Iterable[Callable[[Event], object]]] | None) -> EventHooks:
    """Returns a list of hooks for each event.

    :raises ValueError: there is no such event."""
    hooks: EventHooks = {name: [] for name in EVENTS}
    for name, functions in (given or {}).items():
        if name not in hooks:
            raise ValueError(f"there is no event {name!r}; the events are {', '.join(EVENTS)}")
        hooks[name].extend(functions)
    return hooks


class Observation:
    """The data that the events of one call share."""

    __slots__ = ("hooks", "number", "begun", "sent", "attempt", "state")

    def __init__(self, hooks: EventHooks | None) -> None:
        self.hooks = hooks or {}
        self.number = next(_calls)
        self.begun = self.sent = monotonic()
        self.attempt = 0
        self.state: dict[Any, Any] = {}

    def event(
        self,
        name: EventName,
        request: PreparedRequest,
        response: Response | None = None,
        error: BaseException | None = None,
        wait: float | None = None,
    ) -> Event:
        """Returns an event after its line is logged."""
        if name == "request":
            self.attempt += 1
            self.sent = monotonic()
        event = Event(name, request, response, error, wait, self)
        logger = wanted_logger()
        if logger is not None:
            logger.debug("%s", _Line(event))
        return event

    def _connection_events(self, request: PreparedRequest, response: Any) -> list[Event]:
        """Returns the steps by which the connection of a response was made, if hooks want them.

        The engine reports their times together with the head."""
        if not (self.hooks.get("connect") or self.hooks.get("tls")):
            return []
        times = getattr(response, "timings", None)
        if times is None:
            return []
        before = self.sent - self.begun
        steps: list[tuple[EventName, float | None]] = [("connect", times.connected), ("tls", times.secured)]
        return [Event(name, request, response, None, None, self, before + at) for name, at in steps if at is not None]

    def tell(
        self, name: EventName, request: PreparedRequest, response: Any = None, error: Any = None, wait: float | None = None
    ) -> None:
        """Logs an event and calls its hooks."""
        if name == "head":
            for step in self._connection_events(request, response):
                for hook in self.hooks[step.name]:
                    _run_soon(hook(step))
        event = self.event(name, request, response, error, wait)
        for hook in self.hooks.get(name, ()):
            _run_soon(hook(event))

    async def atell(
        self, name: EventName, request: PreparedRequest, response: Any = None, error: Any = None, wait: float | None = None
    ) -> None:
        """Logs an event and calls its hooks, some of which may be coroutine functions."""
        from inspect import isawaitable

        if name == "head":
            for step in self._connection_events(request, response):
                for hook in self.hooks[step.name]:
                    result = hook(step)
                    if isawaitable(result):
                        await result
        event = self.event(name, request, response, error, wait)
        for hook in self.hooks.get(name, ()):
            result = hook(event)
            if isawaitable(result):
                await result


#: The coroutines of hooks that run in event loops, which keep no references to them.
_tasks: set[Any] = set()


def _run_soon(result: object) -> None:
    """Runs the coroutine of a hook in the event loop, if a plain method of an asynchronous response has
    called the hook."""
    if result is None:
        return
    from inspect import iscoroutine

    if not iscoroutine(result):
        return
    from asyncio import get_running_loop

    try:
        loop = get_running_loop()
    except RuntimeError:
        # Python warns of a coroutine that was never awaited.
        return
    task = loop.create_task(result)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


class _Line:
    """The log line of an event. Its text is made only if a handler writes it."""

    def __init__(self, event: Event) -> None:
        self._event = event

    def __str__(self) -> str:
        event = self._event
        what = f"[{event.call}] {event.request.method} {shown_url(event.request.url)}"
        response, seconds = event.response, f"{event.seconds:.3f} s"
        if event.name == "request":
            return what
        if event.name == "retry":
            reason = type(event.error).__name__ if event.error is not None else getattr(response, "status_code", None)
            return f"{what}: {reason}; again in {event.wait:.3g} s"
        if event.error is not None:
            return f"{what}: {type(event.error).__name__} after {seconds}"
        status = getattr(response, "status_code", None)
        if event.name == "redirect":
            return f"{what}: redirected by a {status}"
        if event.name == "head":
            return f"{what}: {status}{_connection_text(response)}"
        content = getattr(response, "_content", None)
        size = f", {len(content)} bytes" if isinstance(content, bytes) else ""
        return f"{what}: done with {status}{size} in {seconds}"


def _connection_text(response: Any) -> str:
    info = getattr(response, "connection_info", None)
    if info is None:
        return ""
    peer = "" if info.remote is None else f" to {info.remote[0]} port {info.remote[1]}"
    tls = "" if info.tls_version is None else f", {info.tls_version}, {info.cipher}"
    return f", {info.http_version}, {'reused' if info.reused else 'new'} connection {info.number}{peer}{tls}"


def shown_url(url: Any) -> str:
    """Returns a URL for a log: without user and password, and without the values of its query."""
    text = str(url or "").partition("#")[0]
    where, question, query = text.partition("?")
    scheme, separator, rest = where.partition("://")
    authority, slash, path = rest.partition("/")
    names = "&".join(part.partition("=")[0] + ("=..." if "=" in part else "") for part in query.split("&"))
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}{question}{names}"
