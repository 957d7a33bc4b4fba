"""A SOCKS5 proxy that accepts Kerberos tickets alone (RFC 1961), with the GSS-API library of the system.

    socks_server.py PORT SERVICE@HOST [nec] [LEVEL]

Serves on 127.0.0.1 until it is ended. With `nec` it takes and sends the level of protection without protection of its own, as the
first implementation did. LEVEL is the level that it chooses: 0 (none, the default), 1 or 2.
"""

import socket
import sys
import threading

import gssapi

AUTHENTICATION, PROTECTION, ABORT = 1, 2, 255


def exactly(peer, count):
    """Reads so many bytes."""
    data = b""
    while len(data) < count:
        piece = peer.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def message(peer, expected):
    """Reads a message and returns its token."""
    version, kind, high, low = exactly(peer, 4)
    if (version, kind) != (1, expected):
        raise ValueError(f"a message {version}, {kind} instead of 1, {expected}")
    return exactly(peer, high << 8 | low)


def send(peer, kind, token):
    peer.sendall(bytes((1, kind)) + len(token).to_bytes(2, "big") + token)


def authenticate(peer, service, is_nec, level):
    """Accepts the client's ticket and agrees on the level of protection."""
    methods = exactly(peer, exactly(peer, 2)[1])
    if 1 not in methods:
        peer.sendall(b"\x05\xff")
        raise ValueError("the client offers no GSS-API")
    peer.sendall(b"\x05\x01")
    name = gssapi.Name(service, gssapi.NameType.hostbased_service)
    context = gssapi.SecurityContext(creds=gssapi.Credentials(name=name, usage="accept"), usage="accept")
    while not context.complete:
        try:
            answer = context.step(message(peer, AUTHENTICATION))
        except gssapi.exceptions.GSSError:
            peer.sendall(bytes((1, ABORT)))
            raise
        if answer:
            send(peer, AUTHENTICATION, answer)
    asked = message(peer, PROTECTION)
    asked = asked if is_nec else context.unwrap(asked).message
    if len(asked) != 1 or asked[0] > 3:
        raise ValueError(f"not a level of protection: {asked!r}")
    chosen = bytes((level,))
    send(peer, PROTECTION, chosen if is_nec else context.wrap(chosen, False).message)
    print("user", context.initiator_name, "asks for", asked[0], flush=True)


def connect(peer):
    """Reads the request, and returns a connection to its destination."""
    _, command, _, kind = exactly(peer, 4)
    host = socket.inet_ntoa(exactly(peer, 4)) if kind == 1 else exactly(peer, exactly(peer, 1)[0]).decode()
    port = int.from_bytes(exactly(peer, 2), "big")
    if command != 1 or host not in ("127.0.0.1", "localhost"):
        peer.sendall(b"\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00")
        raise ValueError(f"{command} to {host} is not allowed")
    server = socket.create_connection(("127.0.0.1", port))
    peer.sendall(b"\x05\x00\x00\x01\x7f\x00\x00\x01" + port.to_bytes(2, "big"))
    return server


def forward(source, destination):
    while piece := source.recv(65536):
        destination.sendall(piece)
    destination.shutdown(socket.SHUT_WR)


def serve(peer, *settings):
    with peer:
        try:
            authenticate(peer, *settings)
            with connect(peer) as server:
                back = threading.Thread(target=forward, args=(server, peer))
                back.start()
                forward(peer, server)
                back.join()
        except (EOFError, OSError, ValueError, gssapi.exceptions.GSSError) as error:
            print("refused:", error, flush=True)


port, service, *rest = sys.argv[1:]
settings = service, "nec" in rest, next((int(word) for word in rest if word != "nec"), 0)
with socket.create_server(("127.0.0.1", int(port))) as listener:
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0], *settings), daemon=True).start()
