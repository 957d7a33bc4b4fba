//! Tests of `haul apt-method` with messages of apt's protocol. The module `package_managers` runs
//! apt itself.

use crate::common;

use std::fs;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use common::{REFUSED, content, haul, skipped};
use haul_cli::apt::message::AptMessage;
use tempfile::TempDir;
use testkit::faulty::{BodyBreak, FaultPlan, FaultyOrigin};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;
use testkit::test_certificates::TestCertificates;

/// The `Last-Modified` of the content that `testkit::faulty` serves.
const LAST_MODIFIED: &str = "Wed, 01 May 2024 08:00:00 GMT";

/// A running process `haul apt-method`, to which the test speaks as apt does.
struct AptMethodProcess {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    dir: TempDir,
}

impl AptMethodProcess {
    /// Starts `haul apt-method` and sends it a configuration (`601 Configuration`) with these
    /// items.
    fn with(items: &[&str]) -> AptMethodProcess {
        Self::in_environment(items, &[])
    }

    fn in_environment(items: &[&str], variables: &[(&str, &str)]) -> AptMethodProcess {
        let mut command = haul(["apt-method"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).envs(variables.iter().copied());
        let mut child = command.spawn().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let dir = tempfile::tempdir().unwrap();
        let mut method = AptMethodProcess { to: child.stdin.take(), from, child, dir };
        let hello = method.hear().unwrap();
        assert_eq!(
            (hello.number, hello.get("Send-Config"), hello.get("Send-URI-Encoded")),
            (100, Some("true"), Some("true"))
        );
        assert_eq!(hello.get("Single-Instance"), None, "apt asks hosts side by side, by a method each");
        let configuration = AptMessage::new(601, "Configuration");
        method.tell(&items.iter().fold(configuration, |told, item| told.with_field("Config-Item", item)));
        method
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("file")
    }

    fn tell(&mut self, message: &AptMessage) {
        self.to.as_ref().unwrap().write_all(message.to_text().as_bytes()).unwrap();
    }

    fn hear(&mut self) -> Option<AptMessage> {
        AptMessage::read(&mut self.from).unwrap()
    }

    /// Requests a file from the apt method (`600 URI Acquire`), with further message fields.
    /// Returns all messages about the file, of which the last is final.
    fn acquire(&mut self, url: &str, fields: &[(&str, &str)]) -> Vec<AptMessage> {
        let file = self.file();
        let asked =
            AptMessage::new(600, "URI Acquire").with_field("URI", url).with_field("Filename", file.to_str().unwrap());
        self.tell(&fields.iter().fold(asked, |asked, (name, value)| asked.with_field(name, value)));
        let mut said = Vec::new();
        while said.last().is_none_or(|message: &AptMessage| matches!(message.number, 104 | 200)) {
            said.push(self.hear().expect("a fate"));
        }
        assert!(said.iter().all(|message| message.get("URI") == Some(url)), "{said:?}");
        said
    }

    fn end(mut self) {
        drop(self.to.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for AptMethodProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn numbers(said: &[AptMessage]) -> Vec<u16> {
    said.iter().map(|message| message.number).collect()
}

fn last(said: &[AptMessage]) -> &AptMessage {
    said.last().unwrap()
}

fn ok(content: &str) -> Vec<ScriptStep> {
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{content}", content.len());
    vec![ScriptStep::ReadHead, ScriptStep::send(head), ScriptStep::Close]
}

#[test]
fn refused_connection_is_a_transient_failure() {
    let mut method = AptMethodProcess::with(&[]);
    let said = method.acquire(&format!("{REFUSED}/x"), &[]);
    assert_eq!(numbers(&said), [400]);
    assert_eq!(
        (said[0].get("Transient-Failure"), said[0].get("FailReason")),
        (Some("true"), Some("ConnectionRefused"))
    );
    assert!(!method.file().exists());
    method.end();
}

#[test]
fn apt_uri_start_is_sent_only_on_success() {
    let origin = Origin::builder().start().unwrap();
    let mut method = AptMethodProcess::with(&[]);
    let said = method.acquire(&origin.url("/bytes/5000"), &[]);
    assert_eq!(numbers(&said), [200, 201]);
    assert_eq!(said[0].get("Size"), Some("5000"));
    assert_eq!(
        (said[1].get("Checksum-FileSize-Hash"), said[1].get("SHA256-Hash").map(str::len)),
        (Some("5000"), Some(64))
    );
    assert!(fs::read(method.file()).unwrap() == origin.pattern().slice(0, 5000));
    fs::remove_file(method.file()).unwrap();
    for (status, is_transient) in [(404, None), (503, Some("true"))] {
        let said = method.acquire(&origin.url(&format!("/status/{status}")), &[]);
        assert_eq!(numbers(&said), [400], "apt says Get: only of what it gets");
        assert!(said[0].get("Message").unwrap().starts_with(&format!("{status}  ")), "{said:?}");
        assert_eq!(said[0].get("FailReason"), Some(&*format!("HttpError{status}")));
        assert_eq!(said[0].get("Transient-Failure"), is_transient);
        assert!(!method.file().exists());
    }
    method.end();
}

#[test]
fn interrupted_apt_download_is_resumed() {
    let origin = FaultyOrigin::builder().start().unwrap();
    let plan = FaultPlan { size: 300_000, breaks: vec![BodyBreak::close_at(100_000).times(1)], ..FaultPlan::default() };
    let url = origin.url(&origin.serve("deb", plan));
    let mut method = AptMethodProcess::with(&[]);
    let said = method.acquire(&url, &[]);
    assert_eq!((numbers(&said), last(&said).get("Transient-Failure")), (vec![200, 400], Some("true")));
    assert!(fs::read(method.file()).unwrap() == content(100_000), "the beginning stays for another try");
    let said = method.acquire(&url, &[]);
    assert_eq!(numbers(&said), [200, 201]);
    assert_eq!((said[0].get("Resume-Point"), said[0].get("Size")), (Some("100000"), Some("300000")));
    assert!(fs::read(method.file()).unwrap() == content(300_000));
    let asked = origin.seen("deb").requests.pop().unwrap();
    assert_eq!((asked.range.as_deref(), asked.if_range.as_deref()), (Some("bytes=100000-"), Some(LAST_MODIFIED)));
    // The file is complete and apt gives its digest: no request is sent.
    let digest = last(&said).get("SHA256-Hash").unwrap().to_owned();
    let said = method.acquire(&url, &[("Expected-SHA256", &digest), ("Expected-Checksum-FileSize", "300000")]);
    assert_eq!((numbers(&said), origin.seen("deb").requests.len()), (vec![200, 201], 2));
    // Without an expected digest (a list of mirrors), the server is asked and answers that there is
    // no more.
    let said = method.acquire(&url, &[]);
    assert_eq!((numbers(&said), origin.seen("deb").requests.len()), (vec![200, 201], 3));
    assert_eq!(last(&said).get("SHA256-Hash"), Some(&*digest));
    // Another content of that length: its date is another, and it is fetched anew.
    fs::write(method.file(), vec![0; 300_000]).unwrap();
    assert_eq!(numbers(&method.acquire(&url, &[])), [200, 201]);
    assert!(fs::read(method.file()).unwrap() == content(300_000));
    method.end();
}

#[test]
fn redirects_are_reported_to_apt_not_followed() {
    let origin = Origin::builder().start().unwrap();
    let mut method = AptMethodProcess::with(&[]);
    let said = method.acquire(&origin.url("/redirect/302?to=/small"), &[]);
    assert_eq!((numbers(&said), last(&said).get("New-URI")), (vec![103], Some(&*origin.url("/small"))));
    assert!(!method.file().exists());
    let url = origin.url("/redirect/302?to=/small");
    let mut strict = AptMethodProcess::with(&["Acquire::http::AllowRedirect=no"]);
    assert_eq!(last(&strict.acquire(&url, &[])).get("FailReason"), Some("HttpError302"));
    let (_keep, ca) = written("ca.pem", origin.ca_pem());
    let mut secure = AptMethodProcess::with(&[&format!("Acquire::https::CaInfo={}", ca.display())]);
    let said = secure.acquire(&origin.https_url(&format!("/redirect/302?to={}", origin.url("/small"))), &[]);
    let message = last(&said).get("Message").unwrap();
    assert!(
        message.starts_with("Redirection from https to 'http://") && message.ends_with("is forbidden"),
        "{message}"
    );
}

/// Starts a server that answers each request with this status line, these header fields and this
/// content, and then closes the connection.
fn answer(head: &str, content: &str) -> H1Peer {
    let length = content.len();
    let head = format!("HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{content}");
    H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(head), ScriptStep::Close])
}

#[test]
fn apt_file_of_unexpected_size_is_not_fetched() {
    let peer = answer("200 OK", "12345");
    for (field, size) in [("Expected-Checksum-FileSize", "6"), ("Maximum-Size", "4")] {
        let mut method = AptMethodProcess::with(&[]);
        let said = method.acquire(&peer.url("/InRelease"), &[(field, size)]);
        let failed = last(&said);
        assert_eq!((failed.number, failed.get("FailReason")), (400, Some("MaximumSizeExceeded")));
        assert!(failed.get("Message").unwrap().starts_with("File has unexpected size"), "{failed:?}");
        assert_eq!(fs::read(method.file()).unwrap(), b"", "what apt sets aside is there, and empty");
    }
    let mut method = AptMethodProcess::with(&[]);
    let said = method.acquire(&peer.url("/"), &[("Expected-Checksum-FileSize", "5"), ("Maximum-Size", "5")]);
    assert_eq!(numbers(&said), [200, 201]);
}

#[test]
fn apt_gets_the_digests_that_it_expects() {
    let peer = answer("200 OK\r\nLast-Modified: Wed, 01 May 2024 08:00:00 GMT", "foo\n");
    let digests = |asked: &[(&str, &str)]| {
        let mut method = AptMethodProcess::with(&[]);
        let said = method.acquire(&peer.url("/"), asked);
        let done = last(&said);
        assert_eq!(done.get("Last-Modified"), Some("Wed, 01 May 2024 08:00:00 +0000"));
        ["MD5Sum", "SHA1", "SHA256", "SHA512"].map(|name| done.get(&format!("{name}-Hash")).map(str::len))
    };
    assert_eq!(digests(&[]), [Some(32), Some(40), Some(64), Some(128)]);
    assert_eq!(digests(&[("Expected-SHA256", &"0".repeat(64))]), [None, None, Some(64), None]);
    // MD5 can be forged: apt says which other digests exist.
    assert_eq!(digests(&[("Expected-MD5Sum", &"0".repeat(32))])[0], Some(32));
    let mut method = AptMethodProcess::with(&[]);
    let said = method.acquire(&peer.url("/"), &[]);
    assert_eq!(last(&said).get("MD5Sum-Hash"), Some("d3b07384d113edec49eaa6238ad5ff00"));
}

#[test]
fn failure_shows_address_unless_showip_is_false() {
    let peer = answer("404 Not Found", "");
    let message = |items: &[&str]| {
        let said = AptMethodProcess::with(items).acquire(&peer.url("/"), &[]);
        last(&said).get("Message").unwrap().to_owned()
    };
    let port = peer.addr().port();
    assert_eq!(message(&[]), format!("404  Not Found [IP: 127.0.0.1 {port}]"));
    assert_eq!(message(&["Acquire::Failure::ShowIP=false"]), "404  Not Found");
}

#[test]
fn apt_resumes_partial_file_of_same_content_only() {
    let old = |method: &AptMethodProcess| {
        fs::write(method.file(), "abc").unwrap();
        let date = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_714_550_400);
        fs::File::options().write(true).open(method.file()).unwrap().set_modified(date).unwrap();
    };
    let part = |date: &str| {
        let head = format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 3-5/6\r\nLast-Modified: {date}\r\n\
             Connection: close\r\nContent-Length: 3\r\n\r\ndef"
        );
        vec![ScriptStep::ReadHead, ScriptStep::send(head), ScriptStep::Close]
    };
    let mut method = AptMethodProcess::with(&[]);
    old(&method);
    let peer = H1Peer::start(vec![part(LAST_MODIFIED), ok("never")]);
    assert_eq!(numbers(&method.acquire(&peer.url("/"), &[])), [200, 201]);
    assert_eq!(fs::read(method.file()).unwrap(), b"abcdef");
    // A server that does not mind If-Range.
    old(&method);
    let peer = H1Peer::start(vec![part("Thu, 02 May 2024 08:00:00 GMT"), ok("uvwxyz")]);
    assert_eq!(numbers(&method.acquire(&peer.url("/"), &[])), [200, 201]);
    assert_eq!(fs::read(method.file()).unwrap(), b"uvwxyz");
    let mut method = AptMethodProcess::with(&["Acquire::http::127.0.0.1::AllowRanges=false"]);
    old(&method);
    let peer = H1Peer::start(vec![ok("uvwxyz")]);
    assert_eq!(numbers(&method.acquire(&peer.url("/"), &[])), [200, 201]);
    assert!(!String::from_utf8(peer.received(0)).unwrap().contains("Range:"));
    // The server answers 416, and the file matches the expected digest: it is complete.
    let digest = "bef57ec7f53a6d40beb640a780a639c83bc29ac8a9816f1fc6c5c6dcd93c4721";
    let mut method = AptMethodProcess::with(&[]);
    fs::write(method.file(), "abcdef").unwrap();
    let peer = answer("416 Range Not Satisfiable", "");
    let said = method.acquire(&peer.url("/"), &[("Expected-SHA256", digest)]);
    assert_eq!((numbers(&said), last(&said).get("SHA256-Hash")), (vec![200, 201], Some(digest)));
}

#[test]
fn apt_not_modified_removes_the_old_index_file() {
    let peer = answer("304 Not Modified", "");
    let mut method = AptMethodProcess::with(&["Acquire::http::AllowRanges=false"]);
    fs::write(method.file(), "old").unwrap();
    let said = method.acquire(&peer.url("/"), &[("Last-Modified", "Wed, 01 May 2024 08:00:00 +0000")]);
    assert_eq!((numbers(&said), last(&said).get("IMS-Hit")), (vec![201], Some("true")));
    assert!(peer.saw(0, b"If-Modified-Since: Wed, 01 May 2024 08:00:00 GMT\r\n"), "HTTP's own form");
    assert!(!method.file().exists());
}

#[test]
fn scheme_prefix_selects_options_and_tor_needs_proxy() {
    let origin = Origin::builder().start().unwrap();
    let mut method = AptMethodProcess::with(&["Acquire::foo::User-Agent=foo", "Acquire::http::User-Agent=http"]);
    let url = format!("foo+{}", origin.url("/redirect/302?to=/small"));
    let said = method.acquire(&url, &[]);
    assert_eq!(last(&said).get("New-URI"), Some(&*format!("foo+{}", origin.url("/small"))), "it stays the same");
    assert_eq!(origin.log().last().unwrap().header("user-agent"), Some("foo"));
    assert_eq!(numbers(&method.acquire(&format!("foo+{}", origin.url("/small")), &[])), [200, 201]);
    // A tor+ URL needs a Tor proxy: without one nothing is sent.
    let requests = origin.requests();
    let said = method.acquire(&format!("tor+{}", origin.url("/small")), &[]);
    assert_eq!((last(&said).number, origin.requests()), (400, requests));
    let onion = method.acquire("http://abcdefghijklmnop.onion/", &[]);
    assert!(last(&onion).get("Message").unwrap().contains("tor+http"), "{onion:?}");
    assert_eq!(last(&onion).get("Transient-Failure"), None);
    // The environment's proxy may know the way.
    let proxy = answer("200 OK", "x");
    let mut method = AptMethodProcess::in_environment(&[], &[("http_proxy", &proxy.url(""))]);
    assert_eq!(numbers(&method.acquire("http://abcdefghijklmnop.onion/", &[])), [200, 201]);
}

#[test]
fn tls_proxy_is_verified_with_https_cainfo() {
    let identity = TestCertificates::generate();
    let reply = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx";
    let script = || vec![ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::Close];
    let proxy = H1Peer::start_tls(vec![script(), script()], &identity, &[]);
    let (_keep, ca) = written("ca.pem", identity.ca_pem());
    let by = format!("Acquire::http::Proxy=https://localhost:{}", proxy.addr().port());
    let mut method = AptMethodProcess::with(&[&by]);
    assert_eq!(numbers(&method.acquire("http://deb.test/x", &[])), [400]);
    let mut method = AptMethodProcess::with(&[&by, &format!("Acquire::https::CaInfo={}", ca.display())]);
    assert_eq!(numbers(&method.acquire("http://deb.test/x", &[])), [200, 201]);
    assert!(proxy.saw(1, b"GET http://deb.test/x HTTP/1.1\r\n"));
}

#[test]
fn common_name_certificate_is_accepted_with_cainfo() {
    let origin = Origin::builder().identity(TestCertificates::by_subject("localhost")).start().unwrap();
    let (_keep, ca) = written("ca.pem", origin.ca_pem());
    let mut method = AptMethodProcess::with(&[&format!("Acquire::https::CaInfo={}", ca.display())]);
    assert_eq!(numbers(&method.acquire(&origin.https_url("/small"), &[])), [200, 201]);
    let mut strict = AptMethodProcess::with(&[]);
    assert_eq!(numbers(&strict.acquire(&origin.https_url("/small"), &[])), [400]);
}

#[test]
fn apt_files_download_in_parallel_report_in_order() {
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    for (items, at_once) in [
        (&[][..], 4),
        (&["Acquire::http::Pipeline-Depth=2"], 2),
        (&["Acquire::http::Pipeline-Depth=0"], 1),
        (&["Acquire::http::Dl-Limit=1000"], 1),
    ] {
        let peer = H1Peer::always(vec![
            ScriptStep::ReadHead,
            ScriptStep::Await(1),
            ScriptStep::send(reply),
            ScriptStep::ReadToEnd,
        ]);
        let mut method = AptMethodProcess::with(items);
        let names: Vec<String> = (0..4).map(|number| peer.url(&format!("/{number}"))).collect();
        for (number, url) in names.iter().enumerate() {
            let file = method.dir.path().join(number.to_string());
            method.tell(
                &AptMessage::new(600, "URI Acquire")
                    .with_field("URI", url)
                    .with_field("Filename", file.to_str().unwrap()),
            );
        }
        for number in 0..at_once {
            assert!(peer.saw(number, b"\r\n\r\n"), "{items:?} {number}");
        }
        assert_eq!(peer.connections(), at_once, "{items:?}");
        peer.release();
        // The peer serves one request a connection; the next request on it is sent again.
        for url in names.iter().take(at_once) {
            for number in [200, 201] {
                let said = method.hear().unwrap();
                assert_eq!((said.number, said.get("URI")), (number, Some(&**url)), "{items:?}");
            }
        }
    }
}

fn written(name: &str, text: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, text).unwrap();
    (dir, path)
}

#[test]
fn apt_credentials_come_from_auth_conf() {
    let peer = H1Peer::always(ok("x"));
    let secret = H1Peer::always(ok("x"));
    let port = peer.addr().port();
    let text = format!("machine http://127.0.0.1:{port}/deb\nlogin user\npassword pass\n");
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("etc/auth.conf.d")).unwrap();
    fs::write(dir.path().join("etc/auth.conf"), "machine 127.0.0.1 login clear password text\n").unwrap();
    fs::write(dir.path().join("etc/auth.conf.d/private.conf"), text).unwrap();
    let top = format!("Dir={}", dir.path().display());
    let names = ["Dir::Etc=etc", "Dir::Etc::netrc=auth.conf", "Dir::Etc::netrcparts=auth.conf.d/"];
    let mut method = AptMethodProcess::with(&[&[&*top], &names[..]].concat());
    let said = method.acquire(&peer.url("/deb/x.deb"), &[]);
    assert_eq!(numbers(&said), [104, 200, 201]);
    assert!(said[0].get("Message").unwrap().contains("Annotate with http:// to use"), "{said:?}");
    assert!(peer.saw(0, b"\r\nAuthorization: Basic dXNlcjpwYXNz\r\n"));
    assert_eq!(numbers(&method.acquire(&secret.url("/other/x.deb"), &[])), [104, 200, 201]);
    assert!(!String::from_utf8(secret.received(0)).unwrap().contains("Authorization"));
}

#[test]
fn apt_https_uses_the_http_proxy() {
    let refuses = || {
        vec![ScriptStep::ReadHead, ScriptStep::send("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"), ScriptStep::Close]
    };
    let proxy = H1Peer::always(refuses());
    let url = proxy.url("");
    let configured = format!("Acquire::http::Proxy={url}");
    let methods = [
        AptMethodProcess::with(&[&configured]),
        AptMethodProcess::in_environment(&[], &[("http_proxy", &url)]),
        // The result of Proxy-Auto-Detect comes with the file.
        AptMethodProcess::with(&[]),
    ];
    for (at, mut method) in methods.into_iter().enumerate() {
        let fields = [("Proxy", &*url)];
        let said = method.acquire("https://deb.invalid/x", if at == 2 { &fields } else { &[] });
        assert_eq!(numbers(&said), [400]);
        assert!(proxy.saw(at, b"CONNECT deb.invalid:443 "), "{at}: {said:?}");
    }
}

#[test]
fn cache_headers_and_path_encoding_match_apt() {
    let peer = H1Peer::always(ok("x"));
    let asked = |items: &[&str], path: &str, fields: &[(&str, &str)]| {
        let mut method = AptMethodProcess::with(items);
        method.acquire(&peer.url(path), fields);
        String::from_utf8(peer.received(peer.connections() - 1)).unwrap()
    };
    let index = [("Index-File", "true")];
    let head = asked(&[], "/InRelease", &index);
    assert!(head.contains("\r\nCache-Control: max-age=0\r\n") && head.contains("\r\nAccept: text/*\r\n"), "{head}");
    let head = asked(&["Acquire::http::Max-Age=9"], "/Packages.xz", &index);
    assert!(head.contains("\r\nCache-Control: max-age=9\r\n") && !head.contains("text/*"), "{head}");
    assert!(asked(&["Acquire::http::No-Cache=true"], "/x.deb", &[]).contains("\r\nCache-Control: no-cache\r\n"));
    // Some object stores read `+` as a space, so apt encodes it.
    assert!(asked(&[], "/a_1+b~c.deb", &[]).starts_with("GET /a_1%2bb%7ec.deb HTTP/1.1\r\n"));
    assert!(asked(&[], "/a_1%2bb.deb", &[]).starts_with("GET /a_1%2bb.deb HTTP/1.1\r\n"));
}

#[test]
fn untrusted_certificate_is_a_transient_failure() {
    let peer = H1Peer::start_tls(vec![ok("x")], &TestCertificates::generate(), &[b"http/1.1"]);
    let url = peer.url("/x").replace("http://", "https://");
    let said = AptMethodProcess::with(&[]).acquire(&url, &[]);
    assert_eq!((numbers(&said), last(&said).get("Transient-Failure")), (vec![400], Some("true")));
}

#[test]
fn apt_method_exits_when_stdin_is_closed() {
    let beginning = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx";
    let peer = H1Peer::always(vec![ScriptStep::ReadHead, ScriptStep::send(beginning), ScriptStep::ReadToEnd]);
    let mut method = AptMethodProcess::with(&[]);
    let file = method.file();
    let asked = AptMessage::new(600, "URI Acquire")
        .with_field("URI", peer.url("/x"))
        .with_field("Filename", file.to_str().unwrap());
    method.tell(&asked);
    assert_eq!(method.hear().map(|message| message.number), Some(200));
    drop(method.to.take());
    // Not because the server took too long: the next apt starts a method that writes the same file.
    let said = method.hear().unwrap();
    assert_eq!((said.number, said.get("FailReason")), (400, None));
    method.end();
}

#[test]
fn apt_method_as_root_becomes_sandbox_user() {
    if !rustix::process::geteuid().is_root() || !Path::new("/proc/self/status").exists() {
        return skipped("the rights that a method gives up: only root has them");
    }
    let mut method = AptMethodProcess::with(&["APT::Sandbox::User=nobody"]);
    method.acquire(REFUSED, &[]);
    let status = fs::read_to_string(format!("/proc/{}/status", method.child.id())).unwrap();
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let (user, group) = haul_cli::apt::drop_privileges::parse_ids(&users, "nobody").unwrap();
    assert!(status.contains(&format!("\nUid:\t{user}\t{user}\t{user}\t{user}\n")), "{status}");
    assert!(status.contains(&format!("\nGid:\t{group}\t{group}\t{group}\t{group}\n")), "{status}");
    assert!(status.contains(&format!("\nGroups:\t{group}")), "{status}");
    method.end();
    // If the sandbox user does not exist, nothing is fetched.
    let mut method = AptMethodProcess::with(&["APT::Sandbox::User=nobody-of-this-name"]);
    assert_eq!(method.hear().map(|message| message.number), Some(401));
    assert_eq!(method.child.wait().unwrap().code(), Some(100));
}
