title="pollinate: seeds the random device from a server"
source="deb pollinate"
hosts="entropy.test"
serve() {
    cat >"$site/handler.py" <<'P'
def handle(request):
    import hashlib, urllib.parse
    challenge = urllib.parse.parse_qs(request["body"]).get("challenge", [""])[0]
    return 200, [], (hashlib.sha512(challenge.encode()).hexdigest() + "\n" + "5" * 128 + "\n").encode()
P
}
run() {
    touch /var/tmp/device
    id pollinate >/dev/null 2>&1 || echo "pollinate:x:990:1::/var/cache/pollinate:/bin/false" >>/etc/passwd; mkdir -p /var/cache/pollinate
    pollinate -r -s https://entropy.test -d /var/tmp/device 2>&1
    id pollinate >/dev/null 2>&1 || echo "pollinate:x:990:1::/var/cache/pollinate:/bin/false" >>/etc/passwd; mkdir -p /var/cache/pollinate
    pollinate -r -s https://localhost -d /var/tmp/device -w 2 2>&1
    grep -c . /var/tmp/device
}
mask='challenge=\w+|uptime/\S+|[0-9a-f]{64,}|cloud-init/\S*|\w{3}\s+\d+ \d\d:\d\d:\d\d|\d\d:\d\d:\d\d[.\d]*|pollinate\[\d+\]'
