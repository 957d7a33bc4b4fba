"""Sends requests that haul signs to a server on loopback, which verifies them with the package http-message-signatures
(RFC 9421), and changed ones that must not verify.

    python verify.py HAUL

Prints a line for each case, and the counts."""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
from types import SimpleNamespace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver, InvalidSignature, algorithms
from http_message_signatures.exceptions import HTTPMessageSignaturesException

#: A private key of Ed25519 (RFC 8032 section 7.1, test 1), and a secret of any length.
SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
SECRET = "00112233445566778899aabbccddeeff" * 3
ALGORITHMS = {"ed25519": (algorithms.ED25519, SEED), "hmac-sha256": (algorithms.HMAC_SHA256, SECRET)}

#: Arguments of haul, the path and query of the URL, and the parts that must be signed. As in curl, a query is not signed
#: where there is none.
NO_QUERY = ["@method", "@authority", "@path"]
DEFAULT = [*NO_QUERY, "@query"]
CASES = [
    ([], "/", NO_QUERY),
    ([], "/a/b?x=1&y=%20z", DEFAULT),
    ([], "/a?", DEFAULT),
    ([], "/%C3%BC/%2f;p=1?a=b?c", DEFAULT),
    (["-X", "DELETE"], "/a", NO_QUERY),
    (["-d", "text"], "/a?b", DEFAULT),
    (["-H", "Host: Example.COM"], "/a", NO_QUERY),
    (["-H", "Host: example.com:80"], "/a", NO_QUERY),
    (["--httpsig-headers", "method path"], "/a?b=c", ["@method", "@path"]),
    (
        ["--httpsig-headers", "query content-type:", "-H", "Content-Type:  text/plain ", "-d", "x"],
        "/a?b",
        ["@query", "content-type"],
    ),
    (["--httpsig-headers", "x-a: x-b:", "-H", "X-A: 1", "-H", "X-B: a,b", "-H", "X-A: 2"], "/", ["x-a", "x-b"]),
    (["--httpsig-headers", "method x-empty:", "-H", "X-Empty;"], "/", ["@method", "x-empty"]),
]


class Keys(HTTPSignatureKeyResolver):
    def resolve_public_key(self, key_id: str) -> object:
        if key_id != "ed25519":
            return bytes.fromhex(SECRET)
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(SEED)).public_key()


class Recorder(http.server.BaseHTTPRequestHandler):
    """Keeps the last request."""

    last = SimpleNamespace()

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        authority = self.headers["Host"]
        Recorder.last = SimpleNamespace(
            method=self.command, url=f"http://{authority}{self.path}", headers=self.headers, request_target=self.path
        )
        self.send_response(204)
        self.end_headers()

    do_GET = do_POST = do_DELETE = answer

    def log_message(self, *arguments: object) -> None:
        pass


def signed_parts(request: SimpleNamespace, algorithm: type) -> list[str]:
    """Returns the parts that the signature of a request covers, if it is right.

    :raises InvalidSignature: it is not."""
    verifier = HTTPMessageVerifier(signature_algorithm=algorithm, key_resolver=Keys())
    names = [name.split(";")[0].strip('"') for result in verifier.verify(request) for name in result.covered_components]
    return [name for name in names if name != "@signature-params"]


def main(haul: str) -> int:
    server = http.server.HTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    passed = failed = 0
    for name, (algorithm, key) in ALGORITHMS.items():
        for arguments, path, parts in CASES:
            words = [haul, "-sS", "--path-as-is", "--httpsig-algo", name, "--httpsig-key", key, "--httpsig-keyid", name]
            subprocess.run([*words, *arguments, f"http://127.0.0.1:{server.server_port}{path}"], check=True, timeout=60)
            request = Recorder.last
            try:
                found = signed_parts(request, algorithm)
                outcome = "" if found == parts else f"signs {found}, not {parts}"
            except HTTPMessageSignaturesException as error:
                outcome = f"{type(error).__name__}: {error}"
            if not outcome and "@path" in parts:
                changed = SimpleNamespace(**vars(request))
                changed.url = request.url.replace(path, "/other", 1)
                changed.request_target = "/other"
                try:
                    signed_parts(changed, algorithm)
                    outcome = "a changed path verifies as well"
                except InvalidSignature:
                    pass
            passed, failed = passed + (not outcome), failed + bool(outcome)
            print(name, *arguments, path, outcome or "ok")
    server.shutdown()
    print(f"httpsig: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
