"""``haul.ConnectOptions``: where and how a session connects."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

__all__ = ["ConnectOptions"]

_VERSIONS = ("TLSv1.2", "TLSv1.3")


class ConnectOptions:
    """The settings for the connections of a session. They cannot be changed; give the session another
    object.

    >>> session = haul.Session()
    >>> session.connect_options = ConnectOptions(resolve={"api.example": "127.0.0.1"})

    :param unix_socket: the path of a Unix socket to which all requests go, whatever host a URL names. A
        name that begins with NUL is one of Linux's abstract namespace.
    :param resolve: the addresses to use for hosts: ``host`` or ``host:port`` as key, and an address or
        ``address:port`` as value. The request, cookies and TLS keep the host of the URL.
    :param source_address: the local address, or a pair of address and port; port 0 is any.
    :param interface: the network interface.
    :param dns_servers: the name servers to ask: addresses, with or without a port.
    :param pins: the public keys that a server may have: ``sha256//`` and the hash in Base64, as in curl.
    :param min_tls: the lowest version of TLS, ``TLSv1.2`` (the default) or ``TLSv1.3``.
    :param max_tls: the highest version.
    :param ca_pem: the trusted CA certificates as PEM text, in place of the system's.
    :param cert_pem: the client certificate and its key as PEM text, in place of ``cert``.
    :param passphrase: the passphrase of the key.
    :raises ValueError: a value is malformed.
    """

    __slots__ = (
        "unix_socket", "resolve", "source_address", "interface", "dns_servers", "pins", "min_tls", "max_tls", "ca_pem",
        "cert_pem", "passphrase",
    )  # fmt: skip

    def __init__(
        self,
        *,
        unix_socket: str | os.PathLike[str] | None = None,
        resolve: Mapping[str, str] | None = None,
        source_address: str | tuple[str, int] | None = None,
        interface: str | None = None,
        dns_servers: Iterable[str] | None = None,
        pins: Iterable[str] | None = None,
        min_tls: str | None = None,
        max_tls: str | None = None,
        ca_pem: str | bytes | None = None,
        cert_pem: str | bytes | None = None,
        passphrase: str | bytes | None = None,
    ) -> None:
        for name, version in (("min_tls", min_tls), ("max_tls", max_tls)):
            if version not in (None, *_VERSIONS):
                raise ValueError(f"{name} has to be TLSv1.2 or TLSv1.3, not {version!r}")
        for name, given in (("dns_servers", dns_servers), ("pins", pins)):
            if isinstance(given, str):
                raise ValueError(f"{name} is a list, not one text")
        self.pins = tuple(pins or ())
        for pin in self.pins:
            _hash_of(pin)
        self.unix_socket = None if unix_socket is None else os.fspath(unix_socket)
        self.resolve = tuple((resolve or {}).items())
        self.source_address = (source_address, 0) if isinstance(source_address, str) else source_address
        self.interface = interface
        self.dns_servers = tuple(dns_servers or ())
        self.min_tls = min_tls
        self.max_tls = max_tls
        self.ca_pem = _bytes(ca_pem)
        self.cert_pem = _bytes(cert_pem)
        self.passphrase = _bytes(passphrase)
        for where, to in self.resolve:
            _split(where), _split(to)

    def _key(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConnectOptions) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        secret = ("cert_pem", "passphrase", "ca_pem")
        given = ((name, getattr(self, name)) for name in self.__slots__)
        shown = (f"{name}={'...' if name in secret else repr(value)}" for name, value in given if value not in (None, ()))
        return f"ConnectOptions({', '.join(shown)})"

    def settings(self) -> dict[str, Any]:
        """Returns the keyword arguments of ``SharedOptions``."""
        settings: dict[str, Any] = {
            "unix_socket": self.unix_socket, "min_tls": self.min_tls, "max_tls": self.max_tls, "ca_pem": self.ca_pem,
            "cert_pem": self.cert_pem, "passphrase": self.passphrase,
        }  # fmt: skip
        if self.resolve:
            settings["connect_to"] = [(*_split(where), *_split(to)) for where, to in self.resolve]
        address, port = self.source_address or (None, 0)
        if self.interface is not None and address is not None:
            settings["interface"] = f"ifhost!{self.interface}!{address}"
        elif self.interface is not None or address is not None:
            settings["interface"] = f"host!{address}" if self.interface is None else f"if!{self.interface}"
        if port:
            settings["local_port"] = port
        if self.pins:
            settings["pins"] = [_hash_of(pin) for pin in self.pins]
        return {name: value for name, value in settings.items() if value is not None}


def _bytes(text: str | bytes | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


def _hash_of(pin: str) -> bytes:
    import base64
    import binascii

    try:
        digest = base64.b64decode(pin.removeprefix("sha256//"), validate=True)
    except binascii.Error:
        digest = b""
    if not pin.startswith("sha256//") or len(digest) != 32:
        raise ValueError(f"a pin is sha256// and the Base64 of a SHA-256 hash, not {pin!r}")
    return digest


def _split(text: str) -> tuple[str, int | None]:
    """Returns the host or address of a text, and the port behind it."""
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]") or (":" in host and not host.endswith("]")):
        host, port = text, ""
    if not host or (port and not (port.isdecimal() and 0 < int(port) < 65536)):
        raise ValueError(f"not a host or a host and a port: {text!r}")
    return host.strip("[]"), int(port) if port else None
