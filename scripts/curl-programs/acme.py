"""A stand-in certificate authority (RFC 8555) for scripts/curl-programs/server.py. Checks no signature."""

import base64
import json
import subprocess
import tempfile

AUTHORITY = None  # set by the program's serve()
state = {"nonce": 0, "order": "pending", "certificate": b"", "names": []}


def nonce():
    state["nonce"] += 1
    return f"nonce-{state['nonce']:08}"


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def issue(csr):
    with tempfile.TemporaryDirectory() as directory:
        with open(f"{directory}/csr", "wb") as file:
            file.write(csr)
        with open(f"{directory}/ext", "w", encoding="utf-8") as file:
            file.write("subjectAltName=" + ",".join(f"DNS:{name}" for name in state["names"]))
        done = subprocess.run(
            ["openssl", "x509", "-req", "-inform", "DER", "-in", f"{directory}/csr", "-CA", f"{AUTHORITY}/ca.pem", "-CAkey",
             f"{AUTHORITY}/ca.key", "-set_serial", "1", "-days", "80", "-extfile", f"{directory}/ext"], capture_output=True, check=True)
    with open(f"{AUTHORITY}/ca.pem", "rb") as file:
        return done.stdout + file.read()


def handle(request):
    base = request["url"]
    common = [("Replay-Nonce", nonce()), ("Cache-Control", "no-store"), ("Link", f'<{base}/directory>;rel="index"')]
    reply = lambda status, value, *fields: (
        status, [("Content-Type", "application/json"), *common, *fields], json.dumps(value, indent=2).encode() + b"\n")
    target = request["target"]
    payload = {}
    if request["method"] == "POST" and request["body"].startswith("{"):
        text = json.loads(request["body"])["payload"]
        payload = json.loads(decoded(text)) if text else {}
    order = lambda: {
        "status": state["order"], "expires": "2099-01-01T00:00:00Z",
        "identifiers": [{"type": "dns", "value": name} for name in state["names"]],
        "authorizations": [f"{base}/authz/{index}" for index in range(len(state["names"]))], "finalize": f"{base}/finalize",
        **({"certificate": f"{base}/certificate"} if state["order"] == "valid" else {}),
    }
    challenge = {"type": "http-01", "url": f"{base}/challenge", "token": "a-token", "status": "valid" if state["order"] != "pending" else "pending"}
    if target == "/directory":
        return reply(200, {
            "newNonce": f"{base}/nonce", "newAccount": f"{base}/account", "newOrder": f"{base}/order", "revokeCert": f"{base}/revoke",
            "keyChange": f"{base}/key", "meta": {"termsOfService": f"{base}/terms"}})
    if target == "/nonce":
        return 200 if request["method"] == "HEAD" else 204, common, b""
    if target.startswith("/account"):
        return reply(201, {"status": "valid", "contact": payload.get("contact", [])}, ("Location", f"{base}/account/1"))
    if target == "/order":
        state["order"], state["names"] = "pending", [name["value"] for name in payload["identifiers"]]
        return reply(201, order(), ("Location", f"{base}/order/1"))
    if target == "/order/1":
        return reply(200, order())
    if target.startswith("/authz/"):
        name = state["names"][int(target.rsplit("/", 1)[1])]
        return reply(200, {"status": challenge["status"], "identifier": {"type": "dns", "value": name}, "challenges": [challenge]})
    if target == "/challenge":
        state["order"] = "ready"
        return reply(200, {**challenge, "status": "valid"}, ("Link", f'<{base}/authz/0>;rel="up"'))
    if target == "/finalize":
        state["certificate"] = issue(decoded(payload["csr"]))
        state["order"] = "valid"
        return reply(200, order(), ("Location", f"{base}/order/1"))
    if target == "/certificate":
        return 200, [("Content-Type", "application/pem-certificate-chain"), *common], state["certificate"]
    if target == "/revoke":
        return reply(200, {})
    return None
