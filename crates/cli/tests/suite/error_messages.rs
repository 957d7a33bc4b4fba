//! The messages of failing command lines: what happened, to which URL, and the remedy.
//!
//! `cargo test -p httphaul-cli --test suite error_messages -- --nocapture` prints all of them.

use crate::common;

use std::fs;
use std::path::Path;

use testkit::h1_peer::{PeerScript, RawPeer, ScriptStep};
use testkit::origin::Origin;
use testkit::test_certificates::TestCertificates;

use common::{HAUL, program, run};

/// A command line that fails.
struct FailingCommand {
    /// The arguments. `SITE`, `TLS`, `OTHER`, `OLD`, `PROXY` and `CA` stand for the servers and the
    /// file of [`FailingServers`]; a name after `PEER:` is that of a reply in [`REPLIES`].
    args: &'static str,
    code: i32,
    /// The lines on standard error, with the same words for the servers.
    message: &'static str,
}

const fn fails(args: &'static str, code: i32, message: &'static str) -> FailingCommand {
    FailingCommand { args, code, message }
}

/// The replies of servers by their names.
const REPLIES: &[(&str, &str)] = &[
    ("401", "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n"),
    ("403", "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"),
    ("405", "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"),
    ("429", "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"),
    (
        "407",
        "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n",
    ),
    ("short", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nabc"),
    ("empty", ""),
    ("garbage", "220 mail.example ESMTP\r\n"),
    ("broken-gzip", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"),
    ("large", "HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n"),
    ("ftp", "HTTP/1.1 302 Found\r\nLocation: ftp://h.example/\r\nContent-Length: 0\r\n\r\n"),
];

const FAILING: &[FailingCommand] = &[
    fails(
        "http://127.0.0.1:1/",
        7,
        "haul: (7) http://127.0.0.1:1/: failed to connect to 127.0.0.1 port 1: Connection refused (os error 111); nothing listens on that port",
    ),
    fails(
        "http://h.onion/",
        6,
        "haul: (6) http://h.onion/: could not resolve host: h.onion: .onion names are not looked up (RFC 7686); use a SOCKS proxy that resolves it, with -x socks5h://",
    ),
    fails(
        "TLS/small",
        60,
        "haul: (60) TLS/small: the server's certificate is not acceptable: no trusted certificate has signed it; if it is self-signed, trust it with --cacert FILE, or skip verification with -k",
    ),
    fails(
        "--cacert CA OTHER/small",
        60,
        "haul: (60) OTHER/small: the server's certificate is not acceptable: certificate not valid for name \"localhost\"; certificate is only valid for DnsName(\"other.example\") or DnsName(\"www.other.example\"); use one of its names in the URL, or skip verification with -k",
    ),
    fails(
        "--cacert CA OLD/small",
        60,
        "haul: (60) OLD/small: the server's certificate is not acceptable: it expired on Jan  1 00:00:00 2002 GMT; the server's operator must renew it; -k skips verification, also that of the name",
    ),
    fails(
        "--insecure --tlsv1.3 --tls-max 1.2 TLS/small",
        2,
        "haul: (2) TLS/small: the lowest TLS version is above the highest",
    ),
    fails(
        "--retry 0 https://PLAIN/small",
        35,
        "haul: (35) https://PLAIN/small: the server closed the connection in the TLS handshake: unexpected end of file",
    ),
    fails(
        "PEER:401",
        22,
        "haul: (22) PEER:401: the server answered 401 Unauthorized; give credentials with -u USER, --oauth2-bearer TOKEN or --netrc",
    ),
    fails(
        "-u me:wrong PEER:401",
        22,
        "haul: (22) PEER:401: the server answered 401 Unauthorized; the server does not accept these credentials",
    ),
    fails(
        "PEER:403",
        22,
        "haul: (22) PEER:403: the server answered 403 Forbidden; it may need credentials (-u), cookies (-b) or another client name (-A)",
    ),
    fails(
        "-X BREW PEER:405",
        22,
        "haul: (22) PEER:405: the server answered 405 Method Not Allowed; -X METHOD sends another method",
    ),
    fails(
        "--retry 0 PEER:429",
        22,
        "haul: (22) PEER:429: the server answered 429 Too Many Requests; ask less often with --rate or --rate-host, or wait longer with --retry",
    ),
    fails("SITE/status/404", 22, "haul: (22) SITE/status/404: the server answered 404 Not Found"),
    fails(
        "-x PEER:407 http://h.example/",
        22,
        "haul: (22) http://h.example/: the server answered 407 Proxy Authentication Required; the proxy wants credentials; give them with -U USER:PASSWORD",
    ),
    fails(
        "-x http://127.0.0.1:1 http://h.example/",
        7,
        "haul: (7) http://h.example/: failed to connect to 127.0.0.1 port 1: Connection refused (os error 111); the proxy comes from -x or a variable such as https_proxy; --noproxy '*' connects without one",
    ),
    fails(
        "-x http://127.0.0.1:1 https://h.example/",
        7,
        "haul: (7) https://h.example/: failed to connect to 127.0.0.1 port 1: Connection refused (os error 111); the proxy comes from -x or a variable such as https_proxy; --noproxy '*' connects without one",
    ),
    fails(
        "--max-redirs 2 SITE/chain/5",
        47,
        "haul: (47) SITE/chain/5 (redirected to SITE/chain/3): the redirects do not end: SITE/chain/5 -> SITE/chain/4 -> SITE/chain/3: maximum (2) redirects followed; --max-redirs N sets another limit, --no-location follows none",
    ),
    fails(
        "PEER:ftp",
        1,
        "haul: (1) PEER:ftp: the redirect cannot be followed: redirect to protocol \"ftp\", which is not supported or not allowed; haul has http and https",
    ),
    fails(
        "-m 0.2 SITE/delay/60000/small",
        28,
        "haul: (28) SITE/delay/60000/small: the operation timed out; --max-time is 0.2 s",
    ),
    fails(
        "--retry 0 --stall-time 0.2 PEER:large",
        28,
        "haul: (28) PEER:large: the server was silent for 200ms; --stall-time SECONDS sets another limit",
    ),
    fails(
        "--retry 0 PEER:short",
        18,
        "haul: (18) PEER:short: server closed the connection after 3 of 10 bytes of the body",
    ),
    fails("--retry 0 PEER:empty", 52, "haul: (52) PEER:empty: server closed the connection without a response"),
    fails("PEER:garbage", 1, "haul: (1) PEER:garbage: server sent something that is not HTTP/1"),
    fails(
        "--compressed PEER:broken-gzip",
        61,
        "haul: (61) PEER:broken-gzip: broken gzip body: deflate decompression error: incorrect header check",
    ),
    fails(
        "--max-filesize 1K PEER:large",
        63,
        "haul: (63) PEER:large: the body is larger than the 1024 bytes that are allowed",
    ),
    fails(
        "--checksum sha256:0000000000000000000000000000000000000000000000000000000000000000 SITE/small",
        56,
        "haul: (56) SITE/small: the checksum should be 0000000000000000000000000000000000000000000000000000000000000000 and is 4c47b3e816fbe7d40cef9f665ba8f0be1ae68b5e8e7ed70f5b6bab7f70528e8f: this is another content",
    ),
    fails(
        "-o none/file SITE/small",
        23,
        "haul: (23) SITE/small: failed to write none/file: No such file or directory (os error 2); the directory does not exist; --create-dirs makes it",
    ),
    fails(
        "-o . SITE/small",
        23,
        "haul: option -o: names a directory; use -O --output-dir DIRECTORY\nhaul: for example: haul 'http://example.com/[1-3]' -o 'page_#1.html'; more by 'haul --help --output'",
    ),
    fails(
        "-d @none SITE/echo",
        26,
        "haul: option --data: cannot read 'none': No such file or directory (os error 2)\nhaul: for example: haul -d name=value -d @more https://example.com/form; more by 'haul --help --data'",
    ),
    fails(
        "--cacert none TLS/small",
        77,
        "haul: (77) TLS/small: cannot use the CA certificates in none: I/O error: No such file or directory (os error 2)",
    ),
    fails("--input-file none", 26, "haul: (26) failed to read the list none: No such file or directory (os error 2)"),
    fails("--retires 3 SITE/small", 2, "haul: there is no option --retires\nhaul: 'haul --help all' lists the options"),
    fails(
        "--limit-rate 10X SITE/small",
        2,
        "haul: option --limit-rate: unsupported unit, use B, K, M, G, T or P\nhaul: for example: haul --limit-rate 2M -O https://example.com/file.tar.gz; more by 'haul --help --limit-rate'",
    ),
    fails(
        "-m soon SITE/small",
        2,
        "haul: option -m: the value is no number\nhaul: for example: haul -m 2.5 https://example.com/; more by 'haul --help --max-time'",
    ),
    fails(
        "htp://h.example/",
        1,
        "haul: (1) htp://h.example/: the URL cannot be used: protocol \"htp\" not supported; did you mean http://?",
    ),
    fails(
        "http://h.example/[5-1]",
        3,
        "haul: (3) http://h.example/[5-1]: the URL is not a valid glob; use -g to take it literally: bad range in position 23",
    ),
    fails(
        "--extract a(b SITE/small",
        2,
        "haul: (2) regular expression \"a(b\" cannot be used: unclosed group, at byte 1; write \\( for the character ( itself",
    ),
    fails(
        "--unique SITE/small",
        2,
        "haul: option --unique: there is no --extract or --select in its stage\nhaul: for example: haul --extract '[0-9]+' --unique https://example.com/; more by 'haul --help --unique'",
    ),
    fails("-o file", 2, "haul: (2) no URL specified\nhaul: try 'haul --help' for more information"),
];

/// The servers of the command lines.
struct FailingServers {
    site: Origin,
    other_name: Origin,
    expired: Origin,
}

impl FailingServers {
    fn start(dir: &Path) -> FailingServers {
        let site = Origin::builder().start().unwrap();
        let other = TestCertificates::for_names(&["other.example", "www.other.example"]);
        let expired = TestCertificates::expired();
        fs::write(dir.join("ca.pem"), format!("{}{}", other.ca_pem(), expired.ca_pem())).unwrap();
        FailingServers {
            site,
            other_name: Origin::builder().identity(other).start().unwrap(),
            expired: Origin::builder().identity(expired).start().unwrap(),
        }
    }

    /// Returns the words that stand for servers, and what they stand for.
    fn words(&self, dir: &Path) -> Vec<(&'static str, String)> {
        vec![
            ("SITE", self.site.url("")),
            ("TLS", self.site.https_url("")),
            ("OTHER", self.other_name.https_url("")),
            ("OLD", self.expired.https_url("")),
            ("PLAIN", self.site.http_addr().to_string()),
            ("CA", dir.join("ca.pem").display().to_string()),
        ]
    }
}

/// Starts the server whose reply has this name.
fn peer(name: &str) -> RawPeer {
    let (_, reply) = REPLIES.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no reply {name}"));
    let script: PeerScript = match name {
        "large" => vec![ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::Await(1)],
        _ => vec![ScriptStep::ReadHead, ScriptStep::send(reply)],
    };
    RawPeer::always(script)
}

#[test]
fn failing_command_lines_say_cause_and_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let servers = FailingServers::start(dir.path());
    let mut wrong = Vec::new();
    for FailingCommand { args, code, message } in FAILING {
        let mut words = servers.words(dir.path());
        let peer = args.split("PEER:").nth(1).map(|rest| peer(rest.split(' ').next().unwrap()));
        let name = args.split(' ').find(|word| word.starts_with("PEER:"));
        if let (Some(peer), Some(name)) = (&peer, name) {
            words.push((name, peer.url("/")));
        }
        let given: Vec<String> = args
            .split(' ')
            .map(|word| words.iter().fold(word.to_owned(), |word, (name, url)| word.replace(name, url)))
            .collect();
        let ran = run(program(HAUL).args(&given).current_dir(dir.path()));
        // The longest first, since one address may begin with another.
        words.sort_by_key(|(_, url)| std::cmp::Reverse(url.len()));
        let shown =
            words.iter().fold(ran.stderr.trim_end().to_owned(), |text, (name, url)| text.replace(url.as_str(), name));
        println!("haul {args}\n{shown}\n");
        if (ran.code, shown.as_str()) != (*code, *message) {
            wrong.push(format!("    fails({args:?}, {}, {shown:?}),", ran.code));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
