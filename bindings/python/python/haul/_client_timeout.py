"""``haul.ClientTimeout``: the time limits of a request."""

from __future__ import annotations

__all__ = ["ClientTimeout"]


class ClientTimeout:
    """The time limits of a request in seconds; ``None`` for no limit.

    >>> ClientTimeout(total=60, connect=3)
    ClientTimeout(total=60, connect=3, read=None, write=None)

    :param total: for the whole call: connecting, redirects that the engine follows, the body. Redirects
        of a session and retries begin anew.
    :param connect: for connecting: name, TCP and TLS. Without it, 300 s.
    :param read: between two pieces from the server.
    :param write: for which the server takes nothing of the request; default: ``read``.
    :raises ValueError: a limit is not a positive number.

    There is no limit for the wait for a connection: each request gets one at once. The time for which a
    request of an :class:`haul.AsyncSession` waits for its turn (``max_parallel``) does not count.
    """

    __slots__ = ("total", "connect", "read", "write")

    def __init__(
        self,
        total: float | None = None,
        connect: float | None = None,
        read: float | None = None,
        write: float | None = None,
    ) -> None:
        for name, value in (("total", total), ("connect", connect), ("read", read), ("write", write)):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ValueError(f"Timeout value {name} was {value!r}, but it must be an int, float or None.")
            if not value > 0:
                raise ValueError(f"the {name} timeout has to be positive, not {value}")
        self.total = total
        self.connect = connect
        self.read = read
        self.write = write

    def _key(self) -> tuple[float | None, ...]:
        return self.total, self.connect, self.read, self.write

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClientTimeout) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"ClientTimeout(total={self.total}, connect={self.connect}, read={self.read}, write={self.write})"
