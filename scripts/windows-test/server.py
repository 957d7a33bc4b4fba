"""Servers for windows-test.sh on loopback: server.py PORTS CERTIFICATE KEY.

Writes three ports to the file PORTS: that of http, that of https, and one on which nobody listens. Beside PORTS, writes the file
bytes, with the content of /bytes. Ends when its parent kills it, or after ten minutes.
"""

import base64
import http.server
import os
import socket
import ssl
import sys
import threading

BYTES = bytes(range(256)) * 2000 + b"\r\n\n\r\x1a\r\n"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args):
        pass

    def answer(self, body, status=200, **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path = self.path.split("?")[0]
        if path == "/bytes":
            self.answer(BYTES)
        elif path == "/missing":
            self.answer(b"missing", status=404)
        elif path.startswith("/number/"):
            self.answer(path.rsplit("/", 1)[1].encode() + b"\n")
        elif path == "/slow":
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            self.wfile.write(b"x" * 1000)
            self.server.slow.wait(60)
        elif path == "/disposition":
            self.answer(b"small", Content_Disposition='attachment; filename="d/CON.a:b"')
        elif path == "/cookie":
            self.answer(b"cookie", Set_Cookie="token=%d; Max-Age=1000" % threading.get_native_id())
        elif path == "/agent":
            self.answer(self.headers["User-Agent"].encode())
        elif path == "/dots":
            self.answer(b"v=.. v=.npmrc")
        elif path == "/auth":
            given = self.headers.get("Authorization", "Basic ").split(" ", 1)[1]
            self.answer(base64.b64decode(given))
        else:
            self.answer(b"small")

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    do_PUT = do_POST


def serve(context=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    # Never set: a body that does not go on.
    server.slow = threading.Event()
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def main():
    ports, certificate, key = sys.argv[1:]
    with open(os.path.join(os.path.dirname(ports), "bytes"), "wb") as file:
        file.write(BYTES)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))
    with open(ports + ".new", "w") as file:
        print(serve(), serve(context), closed.getsockname()[1], file=file)
    os.rename(ports + ".new", ports)
    threading.Event().wait(600)


main()
