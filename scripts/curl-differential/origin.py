"""The server of scripts/curl-differential.sh: one for each worker. The path of a request determines the response; the bytes of all
requests are kept.

    /hello, /long          content with a date and an entity tag; ranges and conditions are respected
    /r?s=301&h=A:b&b=x     this status, these fields (h, several), this body; chunked, nolen, close, cut and gzip=1 as in the tests of the
                           command (crates/cli/tests/suite/differential/origin.rs)
    /basic, /digest        401 without credentials
    /empty, /garbage       no response, and bytes that are not HTTP

It is also a proxy for itself: for whole URLs, and for CONNECT to any host.
"""

import gzip
import os
import re
import socket
import ssl
import threading
import urllib.parse

MODIFIED = "Wed, 21 Oct 2015 07:28:00 GMT"
LONG = b"".join(b"line %d\n" % number for number in range(1000))


class Origin:
    """Listens for HTTP, for HTTPS and at a Unix socket."""

    def __init__(self, certificate, unix_path):
        self.lock = threading.Lock()
        self.requests, self.connections, self.case = [], 0, 0
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate)
        self.context.set_alpn_protocols(["http/1.1"])
        self.port = self.listen(socket.AF_INET, ("127.0.0.1", 0), None)
        self.tls_port = self.listen(socket.AF_INET, ("127.0.0.1", 0), self.context)
        if os.path.exists(unix_path):
            os.unlink(unix_path)
        self.listen(socket.AF_UNIX, unix_path, None)

    def listen(self, family, address, context):
        listener = socket.socket(family)
        listener.bind(address)
        listener.listen(64)
        threading.Thread(target=self.accept, args=(listener, context), daemon=True).start()
        return listener.getsockname()[1] if family == socket.AF_INET else None

    def accept(self, listener, context):
        while True:
            connection, _ = listener.accept()
            connection.settimeout(20)
            threading.Thread(target=self.serve, args=(connection, context), daemon=True).start()

    def take(self):
        """Returns the requests since the last call, each with the number of its connection."""
        with self.lock:
            taken, self.requests, self.connections = self.requests, [], 0
            self.case += 1
        return taken

    def serve(self, connection, context):
        try:
            if context:
                connection = context.wrap_socket(connection, server_side=True)
            last = self.answer_all(connection, connection.makefile("rb"))
            if isinstance(last, ssl.SSLSocket):
                last.settimeout(1)
                last.unwrap()
        except (OSError, ValueError):
            pass
        finally:
            connection.close()

    def answer_all(self, connection, reader):
        """Answers the requests of a connection. Returns the connection, which CONNECT may have made one with TLS."""
        number = None
        while head := self.read_head(reader):
            with self.lock:
                if number is None or number[0] != self.case:
                    self.connections += 1
                    number = (self.case, self.connections)
                entry = [number[1], head]
                self.requests.append(entry)
            lines = head.decode("latin-1").split("\r\n")
            method, target = (lines[0].split(" ") + ["", ""])[:2]
            fields = {}
            for line in lines[1:]:
                name, _, value = line.partition(":")
                fields.setdefault(name.lower(), value.strip())
            if method == "CONNECT":
                if target.startswith("refused"):
                    connection.sendall(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
                    continue
                connection.sendall(b"HTTP/1.1 200 Connected\r\nX-Proxy: yes\r\n\r\n")
                if target.endswith(f":{self.tls_port}"):
                    connection = self.context.wrap_socket(connection, server_side=True)
                    reader = connection.makefile("rb")
                continue
            if "expect" in fields and "refuse-body" in target:
                connection.sendall(b"HTTP/1.1 417 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return connection
            if "expect" in fields:
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            entry[1] = head + self.read_body(reader, fields)
            response, closes = self.response(method, target, fields)
            connection.sendall(response)
            if closes or (lines[0].endswith("/1.0") and fields.get("connection", "").lower() != "keep-alive"):
                return connection
        return connection

    @staticmethod
    def read_head(reader):
        head = b""
        while line := reader.readline(65536):
            head += line
            if line in (b"\r\n", b"\n"):
                return head
        return b""

    @staticmethod
    def read_body(reader, fields):
        if fields.get("transfer-encoding", "").lower() != "chunked":
            return reader.read(int(fields.get("content-length", "0") or 0))
        whole = b""
        while line := reader.readline():
            whole += line
            size = int(line.split(b";")[0], 16)
            whole += reader.read(size + 2)
            if size == 0:
                break
        # How content is divided into chunks is free.
        return b"chunked:" + re.sub(rb"(?:^|\r\n)[0-9a-f]+\r\n", b"", whole)

    def response(self, method, target, fields):
        if "://" in target:
            target = "/" + target.split("://", 1)[1].partition("/")[2]
        path, _, query = target.partition("?")
        first = path.split("/")[1] if path.startswith("/") and len(path) > 1 else ""
        if first == "empty":
            return b"", True
        if first == "garbage":
            return b"this is no HTTP\n", True
        if first == "r":
            return self.scripted(method, query)
        if first == "basic" and "authorization" not in fields:
            return self.plain(method, "401 No", 'WWW-Authenticate: Basic realm="x"\r\n', b"no\n")
        if first == "digest" and "response=" not in fields.get("authorization", ""):
            return self.plain(method, "401 No", 'WWW-Authenticate: Digest realm="x", nonce="abc", qop="auth", algorithm=MD5\r\n', b"no\n")
        if first == "proxy-auth" and "proxy-authorization" not in fields:
            return self.plain(method, "407 No", 'Proxy-Authenticate: Basic realm="x"\r\n', b"no\n")
        return self.content(method, LONG if first == "long" else b"hello\n", fields)

    @staticmethod
    def plain(method, status, fields, content):
        head = f"HTTP/1.1 {status}\r\n{fields}Content-Length: {len(content)}\r\n\r\n".encode()
        return head + (b"" if method == "HEAD" else content), False

    def content(self, method, content, fields):
        own = f'Content-Type: text/plain\r\nLast-Modified: {MODIFIED}\r\nETag: "one"\r\nServer: test\r\n'
        if '"one"' in fields.get("if-none-match", "") or fields.get("if-modified-since") == MODIFIED:
            return f"HTTP/1.1 304 Not Modified\r\n{own}\r\n".encode(), False
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)(?:,.*)?", fields.get("range", ""))
        if asked and (asked[1] or asked[2]):
            size = len(content)
            start = int(asked[1]) if asked[1] else max(0, size - int(asked[2]))
            end = min(size, int(asked[2]) + 1) if asked[1] and asked[2] else size
            if start >= end or start >= size:
                return f"HTTP/1.1 416 No\r\nContent-Range: bytes */{size}\r\nContent-Length: 0\r\n\r\n".encode(), False
            return self.plain(method, "206 Partial Content", f"{own}Content-Range: bytes {start}-{end - 1}/{size}\r\n", content[start:end])
        return self.plain(method, "200 OK", own, content)

    def scripted(self, method, query):
        status, version, fields, body, flags = "200", "1.1", "", b"", set()
        for pair in query.split("&"):
            key, _, value = pair.partition("=")
            value = urllib.parse.unquote_plus(value).replace("PORT", str(self.port))
            if key == "s":
                status = value
            elif key == "v":
                version = value
            elif key == "h":
                fields += f"{value}\r\n"
            elif key == "b":
                body = value.encode()
            elif key == "gzip":
                body, fields = gzip.compress(value.encode(), mtime=0), fields + "Content-Encoding: gzip\r\n"
            else:
                flags.add(key)
        has_body = status not in ("204", "304")
        if "chunked" in flags:
            fields += "Transfer-Encoding: chunked\r\n"
        elif "nolen" not in flags and has_body:
            fields += f"Content-Length: {len(body)}\r\n"
        if "close" in flags:
            fields += "Connection: close\r\n"
        whole = f"HTTP/{version} {status} Scripted\r\n{fields}\r\n".encode()
        if method != "HEAD" and has_body:
            if "chunked" in flags:
                for at in range(0, len(body), 4):
                    whole += b"%x\r\n%s\r\n" % (len(body[at:at + 4]), body[at:at + 4])
                whole += b"" if "cut" in flags else b"0\r\n\r\n"
            else:
                whole += body[: len(body) // 2] if "cut" in flags else body
        return whole, bool(flags & {"nolen", "close", "cut"}) or version == "1.0"
