"""``haul.Retry``: when a request is sent again, and after which wait."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic, time

from ._haul import EngineError, split_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._haul import ReceivedResponse

__all__ = ["HostHolds", "Retry", "RetryState"]

#: The methods that a server may carry out twice (RFC 9110 section 9.2.2).
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
#: Failures that may not recur, by their kind.
_TRANSIENT = frozenset({
    "Connect", "Resolve", "ProxyResolve", "Proxy", "Timeout", "EmptyReply", "Receive", "Send", "PartialBody", "TlsHandshake",
    "QuicConnect", "Http2Stream", "Http3",
})  # fmt: skip


class Retry:
    """The failures and statuses after which a session sends a request again.

    >>> retry = Retry(5, backoff=0.2, status_forcelist={429, 503})
    >>> retry.total
    5

    :param total: how often to send a request again at most.
    :param connect: how often after a failure to connect.
    :param read: how often after a failure to receive the response.
    :param status: how often after a status of ``status_forcelist``.
    :param backoff: the wait in seconds before the first retry, which doubles with each further one.
    :param max_backoff: the longest of these waits.
    :param jitter: the part of a wait that is random, from 0 to 1: clients that failed together do not
        return together.
    :param respect_retry_after: whether a longer Retry-After of the server replaces the wait. Other
        requests to the same host wait for it, too.
    :param max_retry_after: the longest Retry-After. The response with a longer one is returned.
    :param allowed_methods: the methods that are sent again though the server may have carried them out;
        ``None`` for all. A request that was not sent is sent again in any case.
    :param status_forcelist: the statuses.
    :raises ValueError: a number is negative, ``jitter`` is greater than 1, or ``allowed_methods`` is a text.

    If no retry is left, the last error is raised, or the last response returned.
    """

    __slots__ = (
        "total", "connect", "read", "status", "backoff", "max_backoff", "jitter", "respect_retry_after", "max_retry_after",
        "allowed_methods", "status_forcelist",
    )  # fmt: skip

    def __init__(
        self,
        total: int = 3,
        *,
        connect: int | None = None,
        read: int | None = None,
        status: int | None = None,
        backoff: float = 0.5,
        max_backoff: float = 120.0,
        jitter: float = 0.5,
        respect_retry_after: bool = True,
        max_retry_after: float = 3600.0,
        allowed_methods: Iterable[str] | None = _IDEMPOTENT,
        status_forcelist: Iterable[int] = _STATUSES,
    ) -> None:
        numbers = (total, connect or 0, read or 0, status or 0, backoff, max_backoff, jitter, max_retry_after)
        if any(number < 0 for number in numbers) or jitter > 1:
            raise ValueError("the numbers of a Retry have to be 0 or more, and jitter at most 1")
        if isinstance(allowed_methods, str):
            raise ValueError("allowed_methods is a list, not one text")
        self.total = total
        self.connect = connect
        self.read = read
        self.status = status
        self.backoff = backoff
        self.max_backoff = max_backoff
        self.jitter = jitter
        self.respect_retry_after = respect_retry_after
        self.max_retry_after = max_retry_after
        self.allowed_methods = None if allowed_methods is None else frozenset(method.upper() for method in allowed_methods)
        self.status_forcelist = frozenset(status_forcelist)

    def __repr__(self) -> str:
        return f"Retry({self.total}, backoff={self.backoff}, status_forcelist={sorted(self.status_forcelist)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Retry) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]


def retry_of(given: Retry | int | None) -> Retry | None:
    """Returns the value of a ``retries=``; a number is the total.

    :raises TypeError: it is neither a Retry nor a number."""
    if given is None or isinstance(given, Retry):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        return Retry(given) if given else None
    raise TypeError(f"retries has to be a haul.Retry or a number, not {type(given).__name__}")


class HostHolds:
    """The hosts that have asked for a pause (Retry-After)."""

    def __init__(self) -> None:
        self._until: dict[tuple[str, str, int], float] = {}

    def hold(self, url: str, seconds: float) -> None:
        """Begins a pause for the host of a URL, in which it gets no requests."""
        origin = split_url(url)[:3]
        self._until[origin] = max(monotonic() + seconds, self._until.get(origin, 0.0))

    def wait(self, url: str) -> float:
        """Returns the seconds until the pause of a URL's host ends; 0 without a pause."""
        if not self._until:
            return 0.0
        try:
            origin = split_url(url)[:3]
        except EngineError:
            return 0.0
        left = self._until.get(origin, 0.0) - monotonic()
        if left <= 0.0:
            self._until.pop(origin, None)
        return max(left, 0.0)


class RetryState:
    """The retries of one request so far."""

    __slots__ = ("_rules", "_holds", "_used")

    def __init__(self, rules: Retry, holds: HostHolds) -> None:
        self._rules = rules
        self._holds = holds
        self._used = {"connect": 0, "read": 0, "status": 0}

    def after_failure(self, failure: Exception, method: str) -> float | None:
        """Returns the wait before another try; ``None`` to give up."""
        if not isinstance(failure, EngineError):
            return None
        kind, message, _, phase = failure.args[:4]
        if kind not in _TRANSIENT or "NXDOMAIN" in message or "no connection became free" in message:
            return None
        if phase == "connect":
            return self._next("connect", 0.0)
        return self._next("read", 0.0) if self._may_repeat(method) else None

    def after_response(self, reply: ReceivedResponse, method: str) -> float | None:
        """Returns the wait before another try; ``None`` to take the response."""
        rules = self._rules
        if reply.status not in rules.status_forcelist:
            return None
        asked = _seconds_of(reply.get("retry-after")) if rules.respect_retry_after else 0.0
        if asked > rules.max_retry_after:
            return None
        if asked:
            self._holds.hold(reply.url, asked)
        if not self._may_repeat(method):
            return None
        return self._next("status", asked)

    def _may_repeat(self, method: str) -> bool:
        methods = self._rules.allowed_methods
        return methods is None or method.upper() in methods

    def _next(self, cause: str, asked: float) -> float | None:
        rules, used = self._rules, self._used
        limit: int | None = getattr(rules, cause)
        number = sum(used.values())
        if number >= rules.total or (limit is not None and used[cause] >= limit):
            return None
        used[cause] += 1
        wait = min(rules.backoff * 2.0**min(number, 64), rules.max_backoff)
        if rules.jitter:
            from random import random

            wait *= 1 - rules.jitter * random()
        return max(wait, asked)


def _seconds_of(value: Any) -> float:
    """Returns the seconds of a Retry-After: a number or a date (RFC 9110 section 10.2.3)."""
    if not value:
        return 0.0
    text = value.strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    from datetime import timezone
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(text)
        if date.tzinfo is None:
            # The form of asctime has no zone. All forms are in GMT (RFC 9110 section 5.6.7).
            date = date.replace(tzinfo=timezone.utc)
        return max(date.timestamp() - time(), 0.0)
    except (ValueError, OverflowError, OSError):
        return 0.0
