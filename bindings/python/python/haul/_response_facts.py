"""Facts about a response that the engine knows: its times, and its connection."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._haul import ReceivedResponse

__all__ = ["ConnectionInfo", "Timings"]

_VERSIONS = {10: "HTTP/1.0", 11: "HTTP/1.1", 20: "HTTP/2", 30: "HTTP/3"}


class _Facts:
    """Named values that do not change."""

    __slots__: tuple[str, ...] = ()

    def _asdict(self) -> dict[str, Any]:
        """Returns the names and values."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items() if name != "certificates")
        return f"{type(self).__name__}({values})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._asdict() == other._asdict()

    __hash__ = None  # type: ignore[assignment]


class Timings(_Facts):
    """The times of a request, in seconds from its call; ``None`` for a step that was not made.

    On a connection that was open already, the first three are ``None``. The times of a streamed
    response are those until its head, so :attr:`total` is ``None`` unless the body came with it."""

    __slots__ = ("resolved", "connected", "secured", "sent", "first_byte", "total")

    def __init__(self, reply: ReceivedResponse) -> None:
        resolved, connected, secured, sent, first_byte, total = reply.times()
        is_new = not reply.reused
        #: The time until the address of the host was known.
        self.resolved = resolved if is_new and resolved else None
        #: The time until the TCP connection was made.
        self.connected = connected if is_new and connected else None
        #: The time until the TLS handshake was complete.
        self.secured = secured if is_new and secured else None
        #: The time until the request was sent; 0 if sending did not have to wait.
        self.sent = sent
        #: The time until the first byte of the response arrived.
        self.first_byte = first_byte
        #: The time until the whole response had arrived.
        self.total = total or None


class ConnectionInfo(_Facts):
    """The connection that carried a request."""

    __slots__ = (
        "number", "reused", "remote", "local", "http_version", "tls_version", "cipher", "alpn", "resumed", "certificates",
    )  # fmt: skip

    def __init__(self, reply: ReceivedResponse) -> None:
        tls: Any = reply.tls() or (None, None, None, None)
        #: The number of the connection in this process, from 0.
        self.number = reply.connection
        #: True if the connection was open already.
        self.reused = reply.reused
        #: The address and port of the server, or of the proxy.
        self.remote = reply.peer
        #: The program's own address and port.
        self.local = reply.local
        #: ``HTTP/1.0``, ``HTTP/1.1``, ``HTTP/2`` or ``HTTP/3``.
        self.http_version = _VERSIONS[reply.version]
        #: ``TLSv1.2`` or ``TLSv1.3``; ``None`` without TLS, like the next three.
        self.tls_version: str | None = tls[0]
        #: The cipher suite.
        self.cipher: str | None = tls[1]
        #: The protocol that ALPN selected.
        self.alpn: str | None = tls[2]
        #: True if the handshake resumed an earlier session.
        self.resumed: bool | None = tls[3]
        #: The certificates of the server in DER, its own first.
        self.certificates = reply.certificates()
