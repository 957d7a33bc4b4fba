//! Tests of the error messages of failing command lines: what happened, to which URL, and the
//! remedy.
//!
//! `cargo test -p httphaul-cli --test suite error_messages -- --nocapture` prints all of them.

use crate::common;

use std::fs;
use std::path::Path;

use testkit::h1_peer::{H1Peer, PeerScript, ScriptStep};
use testkit::origin::Origin;
use testkit::test_certificates::TestCertificates;

use common::{HAUL, program, run};

/// A command line that fails.
struct FailingCommand {
    /// The arguments. `SITE`, `TLS`, `OTHER`, `OLD`, `PROXY` and `CA` stand for the servers and
    /// files of [`FailingServers`]. The name after `PEER:` is that of a response in [`REPLIES`].
    args: &'static str,
    code: i32,
    /// The expected lines on standard error, with the same placeholders for the servers.
    message: &'static str,
}

const fn fails(args: &'static str, code: i32, message: &'static str) -> FailingCommand {
    FailingCommand { args, code, message }
}

/// The responses of test servers, by their names.
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
    ("bad-head", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
    ("plain", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    ("reset", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"),
    ("503", "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"),
    ("broken-gzip", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"),
    ("large", "HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n"),
    ("ftp", "HTTP/1.1 302 Found\r\nLocation: ftp://h.example/\r\nContent-Length: 0\r\n\r\n"),
];

const FAILING: &[FailingCommand] = &[
    fails(
        "http://127.0.0.1:1/",
        7,
        "haul: (7) http://127.0.0.1:1/: failed to connect to 127.0.0.1 port 1: Connection refused (os error 111); nothing listens on that port: check port and server",
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
        "haul: (60) OTHER/small: the server's certificate is not acceptable: it is not valid for name \"localhost\"; its names are other.example, www.other.example; use one of its names in the URL, or skip verification with -k",
    ),
    fails(
        "--cacert CA OLD/small",
        60,
        "haul: (60) OLD/small: the server's certificate is not acceptable: it expired on Jan  1 00:00:00 2002 GMT; the server's operator must renew it; -k skips verification, also that of the name",
    ),
    fails(
        "--insecure --tlsv1.3 --tls-max 1.2 TLS/small",
        2,
        "haul: (2) TLS/small: the lowest TLS version is above the highest; raise --tls-max, or lower --tlsv1.3 to --tlsv1.2",
    ),
    fails(
        "--retry 0 https://PLAIN/small",
        35,
        "haul: (35) https://PLAIN/small: the server closed the connection in the TLS handshake: unexpected end of file; haul offered TLS 1.2 and 1.3 with ALPN h2, http/1.1; if the port does not speak TLS, use http://; try --http1.1 or --tls-max 1.2; 'haul doctor URL' shows more",
    ),
    fails(
        "PEER:401",
        22,
        "haul: (22) PEER:401: the server answered 401 Unauthorized; give credentials with -u USER, --oauth2-bearer TOKEN or --netrc",
    ),
    fails(
        "-u me:wrong PEER:401",
        22,
        "haul: (22) PEER:401: the server answered 401 Unauthorized; the server does not accept these credentials: check user and password, or the token",
    ),
    fails(
        "PEER:403",
        22,
        "haul: (22) PEER:403: the server answered 403 Forbidden; it may need credentials (-u), cookies (-b) or another client name (-A)",
    ),
    fails(
        "-X BREW PEER:405",
        22,
        "haul: (22) PEER:405: the server answered 405 Method Not Allowed; the server does not take this method there: leave out -X, or name another method with it",
    ),
    fails(
        "--retry 0 PEER:429",
        22,
        "haul: (22) PEER:429: the server answered 429 Too Many Requests; ask less often with --rate or --rate-host; --retry N tries again after the time that the server names",
    ),
    fails(
        "SITE/status/404",
        22,
        "haul: (22) SITE/status/404: the server answered 404 Not Found; the server has nothing there: check the path of the URL",
    ),
    fails(
        "-x PEER:407 http://h.example/",
        22,
        "haul: (22) http://h.example/: the server answered 407 Proxy Authentication Required; the proxy wants credentials; give them with -U USER:PASSWORD",
    ),
    fails(
        "-x http://127.0.0.1:1 http://h.example/",
        7,
        "haul: (7) http://h.example/: failed to connect to 127.0.0.1 port 1: Connection refused (os error 111); this is the proxy, which comes from -x or a variable such as https_proxy: check its address, or connect without it with --noproxy '*'",
    ),
    fails(
        "-x http://127.0.0.1:1 https://h.example/",
        7,
        "haul: (7) https://h.example/: failed to connect to 127.0.0.1 port 1: Connection refused (os error 111); this is the proxy, which comes from -x or a variable such as https_proxy: check its address, or connect without it with --noproxy '*'",
    ),
    fails(
        "--max-redirs 2 SITE/chain/5",
        47,
        "haul: (47) SITE/chain/5 (redirected to SITE/chain/3): too many redirects: SITE/chain/5 -> SITE/chain/4 -> SITE/chain/3: maximum (2) redirects followed; --max-redirs N sets another limit, --no-location follows no redirect",
    ),
    fails(
        "PEER:ftp",
        1,
        "haul: (1) PEER:ftp: the redirect cannot be followed: redirect to protocol \"ftp\", which is not supported or not allowed; haul has http and https; --no-location -v shows where the redirect leads",
    ),
    fails(
        "-m 0.2 SITE/delay/60000/small",
        28,
        "haul: (28) SITE/delay/60000/small: the operation timed out (while it waited for the reply); raise --max-time, which is 0.2 s",
    ),
    fails(
        "--retry 0 --stall-time 0.2 PEER:large",
        28,
        "haul: (28) PEER:large: the server was silent for 200ms (after 0 bytes of the body); --stall-time SECONDS sets another limit",
    ),
    fails(
        "--retry 0 PEER:short",
        18,
        "haul: (18) PEER:short: server closed the connection after 3 of 10 bytes of the body; try again, or let haul retry with --retry N; -C - continues a file; --ignore-content-length accepts such a body",
    ),
    fails(
        "--retry 0 PEER:empty",
        52,
        "haul: (52) PEER:empty: server closed the connection without a response; if the port speaks TLS, use https://; otherwise try again, or let haul retry with --retry N",
    ),
    fails(
        "--retry 0 https:PEER:plain",
        35,
        "haul: (35) https:PEER:plain: TLS handshake failed: the server does not speak TLS: received corrupt message of type InvalidContentType; try http:// instead of https://",
    ),
    fails(
        "--retry 0 --tlsv1.3 --http1.1 https://PLAIN/small",
        35,
        "haul: (35) https://PLAIN/small: the server closed the connection in the TLS handshake: unexpected end of file; haul offered TLS 1.3 alone with ALPN http/1.1; if the port does not speak TLS, use http://; try without --tlsv1.3; 'haul doctor URL' shows more",
    ),
    fails(
        "--retry 0 http://SECURE/small",
        1,
        "haul: (1) http://SECURE/small: server sent something that is not HTTP/1; if the port speaks TLS, use https://; otherwise it is not a web server; --http0.9 prints the reply",
    ),
    fails(
        "--retry 0 PEER:reset",
        56,
        "haul: (56) PEER:reset: the connection broke: Connection reset by peer (os error 104) (after 3 bytes of the body); the server, or a firewall or proxy on the way, ended it: try again, or let haul retry with --retry N",
    ),
    fails(
        "--retry 0 PEER:503",
        22,
        "haul: (22) PEER:503: the server answered 503 Service Unavailable; the fault is the server's: try later, or let haul retry with --retry N",
    ),
    fails(
        "--retry 0 PEER:bad-head",
        8,
        "haul: (8) PEER:bad-head: server sent two Content-Length that differ; the server breaks HTTP: -v shows its reply; tell the server's operator",
    ),
    fails(
        "PEER:garbage",
        1,
        "haul: (1) PEER:garbage: server sent something that is not HTTP/1; if the port speaks TLS, use https://; otherwise it is not a web server; --http0.9 prints the reply",
    ),
    fails(
        "--compressed PEER:broken-gzip",
        61,
        "haul: (61) PEER:broken-gzip: broken gzip body: deflate decompression error: incorrect header check; the content is not what the server's Content-Encoding says; --raw stores it as it is sent",
    ),
    fails(
        "--max-filesize 1K PEER:large",
        63,
        "haul: (63) PEER:large: the body is larger than the 1024 bytes that are allowed; --max-filesize sets this limit: raise it, for example to 20M",
    ),
    fails(
        "--checksum sha256:0000000000000000000000000000000000000000000000000000000000000000 SITE/small",
        56,
        "haul: (56) SITE/small: the checksum should be 0000000000000000000000000000000000000000000000000000000000000000 and is 4c47b3e816fbe7d40cef9f665ba8f0be1ae68b5e8e7ed70f5b6bab7f70528e8f; the content has changed, or is damaged or forged: do not use it; check the expected checksum at its source",
    ),
    fails(
        "-o none/file SITE/small",
        23,
        "haul: (23) SITE/small: failed to write none/file: No such file or directory (os error 2); the directory does not exist; --create-dirs makes it",
    ),
    fails(
        "-c none/jar SITE/small",
        23,
        "haul: (23) cannot write none/jar: No such file or directory (os error 2); the file or its directory does not exist",
    ),
    fails(
        "-o . SITE/small",
        23,
        "haul: option -o: names a directory; use -O --output-dir DIRECTORY\nhaul: for example: haul 'http://example.com/[1-3]' -o 'page_#1.html'; more by 'haul --help --output'",
    ),
    fails(
        "-d @none SITE/echo",
        26,
        "haul: option --data: cannot read 'none': No such file or directory (os error 2); check the name of the file\nhaul: for example: haul -d name=value -d @more https://example.com/form; more by 'haul --help --data'",
    ),
    fails(
        "--cacert none TLS/small",
        77,
        "haul: (77) TLS/small: cannot use the CA certificates in none: I/O error: No such file or directory (os error 2); check the name after --cacert or --capath",
    ),
    fails(
        "--cacert NOT_PEM TLS/small",
        77,
        "haul: (77) TLS/small: no usable CA certificate in NOT_PEM; --cacert needs a file in PEM, with blocks that begin with -----BEGIN CERTIFICATE-----",
    ),
    fails(
        "--cert none TLS/small",
        58,
        "haul: (58) TLS/small: cannot use the client certificate in none: No such file or directory (os error 2); check the names after --cert and --key",
    ),
    fails(
        "-K none SITE/small",
        26,
        "haul: option -K: cannot read 'none': No such file or directory (os error 2); check the name of the file\nhaul: for example: haul -K urls.txt; more by 'haul --help --config'",
    ),
    fails(
        "http://127.0.0.1:99999/",
        3,
        "haul: (3) http://127.0.0.1:99999/: the URL cannot be used: malformed URL: port number was not a decimal number between 0 and 65535; correct the port, or leave it out",
    ),
    fails(
        "--retry many SITE/small",
        2,
        "haul: option --retry: the value is not a number\nhaul: for example: haul --retry 5 https://example.com/; more by 'haul --help --retry'",
    ),
    fails(
        "--output-directory d SITE/small",
        2,
        "haul: there is no option --output-directory; did you mean --output-dir?\nhaul: 'haul --help all' lists the options",
    ),
    fails(
        "-C",
        2,
        "haul: option -C: needs a value\nhaul: for example: haul -C - -O https://example.com/file.tar.gz; more by 'haul --help --continue-at'",
    ),
    fails(
        "--then x SITE/small",
        2,
        "haul: option --then: the template has no {}\nhaul: for example: haul https://example.com/ --extract 'id=([0-9]+)' --then 'https://example.com/item/{}' --extract 'price: (.*)'; more by 'haul --help --then'",
    ),
    fails(
        "--select a[ SITE/small",
        2,
        "haul: (2) CSS selector \"a[\" cannot be used: a name is expected, at byte 2; for example: --select 'a[href]' or --select-json '$.items[*].id'; more by 'haul --help --select'",
    ),
    fails(
        "--input-file none",
        26,
        "haul: (26) failed to read the list none: No such file or directory (os error 2); check the name of the file; - is standard input",
    ),
    fails(
        "--retires 3 SITE/small",
        2,
        "haul: there is no option --retires; did you mean --retry?\nhaul: 'haul --help all' lists the options",
    ),
    fails(
        "--limit-rate 10X SITE/small",
        2,
        "haul: option --limit-rate: unsupported unit, use B, K, M, G, T or P\nhaul: for example: haul --limit-rate 2M -O https://example.com/file.tar.gz; more by 'haul --help --limit-rate'",
    ),
    fails(
        "-m soon SITE/small",
        2,
        "haul: option -m: the value is not a number\nhaul: for example: haul -m 2.5 https://example.com/; more by 'haul --help --max-time'",
    ),
    fails(
        "htp://h.example/",
        1,
        "haul: (1) htp://h.example/: the URL cannot be used: protocol \"htp\" not supported; did you mean http://?",
    ),
    fails(
        "http://h.example/[5-1]",
        3,
        "haul: (3) http://h.example/[5-1]: the URL is not a valid glob: bad range in position 23; a range goes from the smaller to the larger value, such as [1-5]; -g takes brackets literally",
    ),
    fails(
        "--extract a(b SITE/small",
        2,
        "haul: (2) regular expression \"a(b\" cannot be used: unclosed group, at byte 1; write \\( for the character ( itself",
    ),
    fails(
        "--unique SITE/small",
        2,
        "haul: option --unique: needs --extract or --select in the same stage (a URL or a --then, with its options)\nhaul: for example: haul --extract '[0-9]+' --unique https://example.com/; more by 'haul --help --unique'",
    ),
    fails(
        "-o file",
        2,
        "haul: (2) no URL specified\nhaul: give a URL, such as https://example.com/, or a list of URLs with --input-file",
    ),
];

/// The servers for the failing command lines.
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
        fs::write(dir.join("notes.txt"), "no certificate\n").unwrap();
        FailingServers {
            site,
            other_name: Origin::builder().identity(other).start().unwrap(),
            expired: Origin::builder().identity(expired).start().unwrap(),
        }
    }

    /// Returns the placeholders for servers and files, each with its replacement.
    fn words(&self, dir: &Path) -> Vec<(&'static str, String)> {
        vec![
            ("SITE", self.site.url("")),
            ("TLS", self.site.https_url("")),
            ("OTHER", self.other_name.https_url("")),
            ("OLD", self.expired.https_url("")),
            ("PLAIN", self.site.http_addr().to_string()),
            ("SECURE", self.site.https_addr().to_string()),
            ("NOT_PEM", dir.join("notes.txt").display().to_string()),
            ("CA", dir.join("ca.pem").display().to_string()),
        ]
    }
}

/// Starts a server that sends the response with this name.
fn peer(name: &str) -> H1Peer {
    let (_, reply) = REPLIES.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no reply {name}"));
    let script: PeerScript = match name {
        "large" => vec![ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::Await(1)],
        "reset" => vec![ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::Reset],
        // A TLS client sends no head of a request.
        "plain" => vec![ScriptStep::ReadBytes(5), ScriptStep::send(reply)],
        _ => vec![ScriptStep::ReadHead, ScriptStep::send(reply)],
    };
    H1Peer::always(script)
}

#[test]
fn failing_command_lines_print_cause_and_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let servers = FailingServers::start(dir.path());
    let mut wrong = Vec::new();
    for FailingCommand { args, code, message } in FAILING {
        let mut words = servers.words(dir.path());
        let peer = args.split("PEER:").nth(1).map(|rest| peer(rest.split(' ').next().unwrap()));
        let name = args.split(' ').find(|word| word.contains("PEER:"));
        if let (Some(peer), Some(name)) = (&peer, name) {
            let url = peer.url("/");
            words.push((name, if name.starts_with("https:") { url.replace("http:", "https:") } else { url }));
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
