"""``haul.ClientTimeout``: the time limits of a request."""

from __future__ import annotations

__all__ = ["ClientTimeout"]


class ClientTimeout:
    """The time limits of a request in seconds; ``None`` for no limit.

    >>> ClientTimeout(total=60, connect=3)
    ClientTimeout(total=60, connect=3, read=None, write=None, pool=None)

    :param total: for the whole call: connecting, redirects that the engine follows, the body. Redirects
        of a session and retries begin anew.
    :param connect: for connecting: name, TCP and TLS. Without it, 300 s.
    :param read: between two pieces from the server.
    :param write: for which the server takes nothing of the request; default: ``read``.
    :param pool: for which a request of an :class:`haul.AsyncSession` or :func:`haul.fetch_many` waits
        until it may begin: for a free connection (``max_parallel``, ``per_host``), for ``rate``, or for
        a host that asked for a pause. After this time it fails with a :class:`haul.PoolTimeout`. A
        request of a :class:`haul.Session` does not wait.
    :raises ValueError: a limit is not a positive number.

    Only ``pool`` counts the time before a request begins.
    """

    __slots__ = ("total", "connect", "read", "write", "pool")

    def __init__(
        self,
        total: float | None = None,
        connect: float | None = None,
        read: float | None = None,
        write: float | None = None,
        pool: float | None = None,
    ) -> None:
        for name, value in (("total", total), ("connect", connect), ("read", read), ("write", write), ("pool", pool)):
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
        self.pool = pool

    def _key(self) -> tuple[float | None, ...]:
        return self.total, self.connect, self.read, self.write, self.pool

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClientTimeout) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        limits = ", ".join(f"{name}={getattr(self, name)}" for name in self.__slots__)
        return f"ClientTimeout({limits})"
