"""The servers of scripts/curl-programs.sh: `server.py SITE CERTIFICATES LOG PORT...`. Port 443 has TLS.

A response is the file SITE/HOST/PATH?QUERY or SITE/HOST/PATH; of a directory, the file `index`. A file NAME.http is a whole response. A
method other than GET and HEAD takes NAME.METHOD, if that exists. SITE/handler.py may have a function handle(request), which returns
(status, fields, body), or None for the files. Each request becomes a line of JSON in LOG.
"""

import json
import os
import socket
import ssl
import sys
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

site, certificates, log_path = sys.argv[1:4]
TYPES = {".json": "application/json", ".html": "text/html", ".xml": "text/xml", ".gz": "application/gzip"}
lock = threading.Lock()
handler = {}
if os.path.exists(f"{site}/handler.py"):
    with open(f"{site}/handler.py", encoding="utf-8") as file:
        exec(compile(file.read(), "handler.py", "exec"), handler)  # noqa: S102


class Origin(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def version_string(self):
        return "origin"

    def date_time_string(self, timestamp=None):
        return "Sun, 06 Nov 1994 08:49:37 GMT"

    def log_message(self, *_):
        pass

    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            whole = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                whole += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return whole
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def find(self, host, target):
        # The target of a request to a proxy is a whole URL.
        if "://" in target:
            host, _, target = target.split("://", 1)[1].partition("/")
            host, target = host.split(":")[0], "/" + target
        path, _, query = target.partition("?")
        path = urllib.parse.unquote(path)
        for name in ([f"{path}?{query}"] if query else []) + [path, path.rstrip("/") + "/index"]:
            for suffix in (f".{self.command}", ".http", ""):
                found = os.path.normpath(f"{site}/{host}/{name}") + suffix
                if found.startswith(site) and os.path.isfile(found):
                    with open(found, "rb") as file:
                        return found, file.read()
        return None, b""

    def answer(self):
        body = self.body()
        host = self.headers.get("Host", "").rsplit(":", 1)[0]
        scheme = "https" if isinstance(self.connection, ssl.SSLSocket) else "http"
        request = {
            "url": f"{scheme}://{self.headers.get('Host')}", "method": self.command, "target": self.path,
            "version": self.request_version, "fields": self.headers.items(), "body": body.decode("latin-1"),
        }
        with lock, open(log_path, "a", encoding="utf-8") as file:
            file.write(json.dumps(request) + "\n")
        made = handler["handle"]({**request, "host": host}) if "handle" in handler else None
        if made:
            status, fields, content = made
            return self.reply(status, fields, content)
        found, content = self.find(host, self.path)
        if found is None:
            return self.reply(404, [("Content-Type", "text/plain")], b"not found\n")
        if found.endswith(".http"):
            head, _, content = content.replace(b"\r\n", b"\n").partition(b"\n\n")
            lines = head.decode().split("\n")
            return self.reply(int(lines[0].split()[1]), [tuple(line.split(": ", 1)) for line in lines[1:]], content)
        extension = os.path.splitext(found.removesuffix(f".{self.command}"))[1]
        fields = [("Content-Type", TYPES.get(extension, "text/plain")), ("Last-Modified", "Sat, 05 Nov 1994 08:49:37 GMT"), ("ETag", '"v1"')]
        if self.headers.get("If-None-Match") == '"v1"' or "If-Modified-Since" in self.headers:
            return self.reply(304, fields, b"")
        span = self.headers.get("Range", "")
        if span.startswith("bytes=") and span.endswith("-"):
            start = int(span[6:-1])
            if start >= len(content):
                return self.reply(416, [("Content-Range", f"bytes */{len(content)}")], b"")
            fields.append(("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}"))
            return self.reply(206, fields, content[start:])
        return self.reply(200, fields, content)

    def reply(self, status, fields, content):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        if status not in (204, 304) and not any(name.lower() == "content-length" for name, _ in fields):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD" and status not in (204, 304):
            self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_PROPFIND = do_MKCOL = answer


class Server(ThreadingHTTPServer):
    address_family = socket.AF_INET
    request_queue_size = 64
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


class TlsServer(Server):
    def finish_request(self, request, client_address):
        # The handshake belongs to the connection's thread.
        with context.wrap_socket(request, server_side=True) as connection:
            super().finish_request(connection, client_address)


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(f"{certificates}/server.pem", f"{certificates}/server.key")
context.set_alpn_protocols(["http/1.1"])
servers = [(TlsServer if port == "443" else Server)(("127.0.0.1", int(port)), Origin) for port in sys.argv[4:]]
open(log_path, "w", encoding="utf-8").close()
for server in servers[1:]:
    threading.Thread(target=server.serve_forever, daemon=True).start()
servers[0].serve_forever()
