"""Makes the command lines of scripts/curl-differential.sh from the options that both programs name in `--help all`."""

import re
import subprocess

# Options that cannot be compared here, with the reason.
LEFT_OUT = {
    "help": "text of its own", "manual": "text of its own", "version": "text of its own", "dump-ca-embed": "text of its own",
    "trace": "lines of its own; the tests of the command have them", "trace-ascii": "the same", "trace-config": "the same",
    "trace-time": "times", "trace-ids": "the same", "libcurl": "code for libcurl", "config": "made of other options, below",
    "interface": "the machine's", "dns-servers": "no name server here", "dns-interface": "the same", "dns-ipv4-addr": "the same",
    "dns-ipv6-addr": "the same", "doh-url": "the same", "doh-insecure": "the same", "doh-cert-status": "the same", "http3": "QUIC",
    "http3-only": "QUIC", "proxy-http3": "QUIC", "abstract-unix-socket": "a name that runs would share", "ech": "DNS",
    "socks4": "no SOCKS server", "socks4a": "the same", "socks5": "the same", "socks5-hostname": "the same", "preproxy": "the same",
    "socks5-gssapi": "the same", "limit-rate": "time", "xattr": "not every file system", "engine": "OpenSSL's", "verbose": "below",
    "capath": "a directory with hashes", "proxy-capath": "the same", "cert": "a client certificate is in the tests of the command",
    "key": "the same", "vlan-priority": "the machine's", "ip-tos": "the machine's", "local-port": "a port that runs would share",
    "write-out": "below", "rate": "time", "skip-existing": "below", "netrc": "below", "ignore-content-length": "waits for the end of the connection", "metalink": "removed from curl", "hsts": "a name",
    "mptcp": "the kernel's", "parallel-immediate": "order", "ntlm-wb": "removed from curl", "form": "below",
}
TEXT = ["a=b", "x y", "", "@body.txt", "a=1&b=2", "{\"a\":1}", "ümlaut", "@none.txt"]
FIELDS = ["X-A: b", "Accept:", "X-Empty;", "Host: other.test", "Content-Type: text/x", "User-Agent:", "X-A:b", "@fields.txt", "Authorization: Bearer t",
          "Cookie: a=b", "Transfer-Encoding: chunked", "Expect:", "Connection: close", "Range: bytes=0-1"]
FORM = ["a=b", "f=@body.txt", "f=<body.txt", "a=b;type=text/x", "f=@body.txt;filename=n", "f=@none.txt", 'a="x;y"', "f=@body.txt,fields.txt",
        "f=@body.txt;encoder=base64", "a=b;headers=X-Part: c", "=x", "noequals"]
# Values of the options that take one. $P is the port, $T that for TLS, $U and $S their URLs, $D the directory.
VALUES = {
    "alt-svc": ["altsvc.txt"], "aws-sigv4": ["aws:amz:us-east-1:s3", "osc", "aws:amz"], "cacert": ["$CA", "none.pem"],
    "ciphers": ["ECDHE-RSA-AES256-GCM-SHA384", "DEFAULT", "none"], "cert-type": ["PEM", "DER"], "connect-timeout": ["5", "0.5", "x", "0"],
    "connect-to": ["::127.0.0.1:$P", "other.test:80:127.0.0.1:$P", "a:1:b:2"], "continue-at": ["0", "3", "-", "9999", "x"],
    "cookie": ["a=b", "cookies.txt", "", "none.txt", "a=b; c=d"], "cookie-jar": ["jar.txt", "-", "none/jar.txt"],
    "create-file-mode": ["0600", "0644", "9"], "crlfile": ["none.pem"], "curves": ["X25519", "P-256:X25519"], "data": TEXT, "data-ascii": TEXT,
    "data-binary": TEXT, "data-raw": TEXT, "data-urlencode": ["a=x y", "=x&y", "x y", "a@body.txt", "@body.txt", "a@none.txt"],
    "delegation": ["none", "always"], "dump-header": ["head.txt", "-", "none/head.txt"], "egd-file": ["x"], "etag-compare": ["etag.txt", "none.txt"],
    "etag-save": ["saved.txt", "-"], "expect100-timeout": ["1", "0.5", "x"], "form-string": ["a=b", "a=@body.txt", "noequals"],
    "ftp-port": ["-"], "happy-eyeballs-timeout-ms": ["100", "x"], "haproxy-clientip": ["192.0.2.1"], "header": FIELDS,
    "hostpubmd5": ["a" * 32], "hostpubsha256": ["x"], "ipfs-gateway": ["$U"], "json": ['{"a":1}', "@body.txt", "[]"], "keepalive-cnt": ["3"],
    "keepalive-time": ["5", "0"], "keepalive-intvl": ["5"], "key-type": ["PEM"], "max-filesize": ["3", "10k", "5000", "x"], "max-redirs": ["0", "1", "-1", "x"],
    "max-time": ["5", "10.5", "x"], "netrc-file": ["netrc.txt", "none.txt"], "noproxy": ["*", "127.0.0.1", "other.test", ""],
    "oauth2-bearer": ["token"], "output": ["out.txt", "-", "none/out.txt", "existing.txt", "#1.txt", "/dev/null"], "output-dir": ["made", "none"],
    "parallel-max": ["2", "1", "0", "x"], "parallel-max-host": ["1", "2"], "pass": ["p"], "pinnedpubkey": ["sha256//AAAA", "none.pem"],
    "proto": ["=http", "-http", "https", "all,-https", "x"], "proto-default": ["http", "https", "x"], "proto-redir": ["=https", "http", "-all"],
    "proxy": ["$U", "127.0.0.1:$P", "", "http://me:secret@127.0.0.1:$P", "http://127.0.0.1:1"], "proxy-cacert": ["$CA"],
    "proxy-header": ["X-P: q", "@fields.txt", "User-Agent: p"], "proxy-pinnedpubkey": ["sha256//AAAA"], "proxy-user": ["me:secret", "me", ":"],
    "proxy1.0": ["127.0.0.1:$P"], "random-file": ["x"], "range": ["0-2", "3-", "-2", "0-1,3-4", "9999-", "x", "5-2"], "referer": ["http://a.test/", ";auto", "x;auto", ""],
    "request": ["PUT", "DELETE", "get", "PATCH", "HEAD", "POST", "GET"], "request-target": ["/other", "*", "/a b"],
    "resolve": ["other.test:$P:127.0.0.1", "+other.test:$P:127.0.0.1", "*:$P:127.0.0.1", "x", "-other.test:$P"], "retry": ["0", "x"],
    "retry-delay": ["1", "x"], "retry-max-time": ["2"], "service-name": ["x"], "speed-limit": ["1"], "speed-time": ["5"], "stderr": ["err.txt"],
    "time-cond": ["Wed, 21 Oct 2015 07:28:00 GMT", "-Wed, 21 Oct 2015 07:28:00 GMT", "body.txt", "never", "20151021"], "tls-max": ["1.2", "1.3", "x"],
    "tls13-ciphers": ["TLS_AES_128_GCM_SHA256", "none"], "unix-socket": ["$X", "none.sock"], "upload-file": ["body.txt", "none.txt", "-", "{body,fields}.txt", ""],
    "url": ["$U/hello", "$U/long", "@urls.txt"], "url-query": ["a=b", "+x", "a=x y", "@body.txt", "=q"], "user": ["me:secret", "me:", ":", "a b:c d", "ü:ä"],
    "user-agent": ["agent/1", "", "a b"], "variable": ["v=text", "v@body.txt", "%HOME", "%NONE", "%NONE=x", "1v=x"], "ftp-method": ["nocwd"],
    "proxy-ciphers": ["DEFAULT"], "proxy-tls13-ciphers": ["TLS_AES_128_GCM_SHA256"], "proxy-cert-type": ["PEM"], "proxy-key-type": ["PEM"],
    "proxy-service-name": ["x"], "socks5-gssapi-service": ["x"], "proxy-pass": ["p"], "proxy-cert": ["none.pem"], "proxy-key": ["none.pem"],
    "proxy-crlfile": ["none.pem"],
}
WRITE_OUT = ["%{http_code}\\n", "%{url_effective} %{num_redirects}\\n", "%{size_download} %{size_header}\\n", "%{content_type}|%{method}|%{scheme}\\n",
             "%{response_code} %{errormsg} %{exitcode}\\n", "%{header_json}", "%{redirect_url}\\n", "%{filename_effective} %{num_headers}\\n",
             "%{stderr}e%{stdout}o\\n", "%header{content-type}\\n", "%{http_version} %{urlnum} %{url}\\n", "@body.txt", "%{num_connects} %{size_upload}\\n",
             "%{urle.host}:%{url.port} %{url.path} %{url.query}\\n", "%{none}%%\\t\\n", "%{onerror}failed\\n", "%output{w.txt}%{http_code}", "%{ssl_verify_result} %{proxy_used}\\n"]
PATHS = ["/hello"] * 6 + ["/long"] * 2 + [
    "/a/b/../c?q=1", "/r?s=404&b=none", "/r?s=500&b=broken", "/r?s=301&h=Location:/hello", "/r?s=302&h=Location:/hello&b=moved", "/r?s=303&h=Location:/hello",
    "/r?s=307&h=Location:/hello", "/r?s=308&h=Location:http://127.0.0.1:PORT/hello?x", "/r?chunked&b=in+chunks", "/r?nolen&b=until+the+end", "/r?b=half&cut",
    "/r?chunked&b=half&cut", "/r?gzip=content", "/r?v=1.0&b=old", "/r?s=204", "/r?s=304", "/empty", "/garbage", "/basic", "/digest",
    "/r?h=Set-Cookie:a%3Db&b=x", "/r?h=Set-Cookie:c%3Dd%3B+path%3D/%3B+expires%3DWed,+21+Oct+2037+07:28:00+GMT&b=x", "/r?h=Content-Disposition:attachment%3Bfilename%3Dnamed.txt&b=x",
    "/r?h=ETag:W/%22two%22&b=x", "/r?s=416", "/r?s=206&b=part", "/r?s=301&h=Location:/r?s%3D301", "/r?s=302", "/r?s=302&h=Location:ftp://a.test/",
    "/r?close&b=closed", "/{one,two}", "/[1-3]", "/[a-c:2]/x", "/{unclosed", "/x y", "/%7Euser/ü", "/r?s=408", "/r?s=300&h=Location:/hello", "/r?h=X:&b=x", "/r?h=Content-Type:text/html&b=x",
]


def options_of(program):
    """Returns the long names that the program's help lists: {name: (letter, takes a value)}."""
    text = subprocess.run([program, "--help", "all"], capture_output=True, check=True).stdout.decode()
    found = {}
    for letter, name, value in re.findall(r"(?m)^ *(?:-(\S), )?--([\w.-]+)( <[^ ]| \[)?", text):
        found[name] = (letter, bool(value))
    return found


def quoted(value):
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'


class Generator:
    """Makes command lines. Equal seeds give equal lines, if both programs have the same options."""

    def __init__(self, random, known):
        self.random = random
        self.known = known
        self.first = sorted(name for name in known if name not in LEFT_OUT)
        # In most lines one option is drawn from the whole table, the others from those that are used most.
        self.common = [name for name in (
            "silent show-error fail location include output remote-name data header user head request get upload-file cookie cookie-jar range continue-at "
            "dump-header compressed fail-with-body max-redirs user-agent referer create-dirs output-dir json data-urlencode form-string max-time "
            "remote-header-name remote-time location-trusted etag-save etag-compare time-cond parallel next no-progress-meter insecure http1.0 http1.1 "
            "max-filesize proxy digest basic anyauth post301 post302 post303 globoff path-as-is url-query raw remove-on-error no-clobber fail-early out-null"
        ).replace("include", "show-headers").split() if name in known]

    def option(self, name):
        letter, takes_value = self.known[name]
        word = f"-{letter}" if letter and self.random.random() < 0.5 else f"--{name}"
        if not takes_value:
            if self.random.random() < 0.04 and not name.startswith("no-"):
                return [f"--no-{name}"]
            return [word]
        value = self.random.choice(VALUES.get(name, ["x"]))
        if word.startswith("--") is False and value and self.random.random() < 0.3:
            return [word + value]
        return [word, value]

    def extra(self):
        draw = self.random.random()
        if draw < 0.10:
            return ["-w", self.random.choice(WRITE_OUT)]
        if draw < 0.15:
            return ["-F", self.random.choice(FORM)]
        if draw < 0.17:
            return ["-sv"]
        if draw < 0.19:
            return ["--skip-existing"]
        if draw < 0.21:
            return ["-n"]
        return self.option(self.random.choice(self.common))

    def url(self):
        origin = self.random.choices(["$U", "$S", "127.0.0.1:$P", "http://me:pw@127.0.0.1:$P", "http://other.test:$P", "http://127.0.0.1:1", "ftp://127.0.0.1:1"],
                                     [70, 12, 6, 3, 3, 2, 1])[0]
        return origin + self.random.choice(PATHS)

    def case(self, number):
        """Returns the words of a command line."""
        options = [self.option(self.first[number % len(self.first)])]
        options += [self.extra() for _ in range(self.random.choice([0, 1, 1, 2, 2, 3, 4]))]
        options = [option for at, option in enumerate(options) if option != ["-sv"] or option not in options[:at]]
        urls = [[self.url()] for _ in range(self.random.choices([1, 2, 3], [80, 15, 5])[0])]
        if any("$S" in url[0] for url in urls) and self.random.random() < 0.9:
            options.append(self.random.choice([["-k"], ["--cacert", "$CA"]]))
        if any("other.test" in url[0] for url in urls) and self.random.random() < 0.9:
            options.append(["--resolve", "other.test:$P:127.0.0.1"])
        if self.random.random() < 0.3:
            options.append(["-sS"])
        pieces = options + urls
        if self.random.random() < 0.4:
            self.random.shuffle(pieces)
        words = [word for piece in pieces for word in piece]
        if self.random.random() < 0.08:
            return self.as_config(pieces)
        return words

    def as_config(self, pieces):
        """Returns the same line as a config file: `-K config.txt`, and the text of the file as the last word, after `CONFIG`."""
        lines = []
        for piece in pieces:
            if len(piece) == 1 and not piece[0].startswith("-"):
                lines.append(f"url = {quoted(piece[0])}")
            elif len(piece) == 1 or not piece[0].startswith("--"):
                lines.append(" ".join([piece[0]] + [quoted(value) for value in piece[1:]]))
            else:
                lines.append(f"{piece[0][2:]} {self.random.choice(['=', ':', ''])} {quoted(piece[1])}")
        return ["-K", "config.txt", "CONFIG", "\n".join(lines) + "\n"]
