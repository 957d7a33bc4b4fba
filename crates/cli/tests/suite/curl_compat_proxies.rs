//! The curl persona uses proxies as curl 8.22 does: credentials, header fields and errors.

use crate::common;

use common::{HAUL, answering, curl, curl_quiet, page, program, received, reply_steps, run};
use testkit::h1_peer::{H1Peer, ScriptStep};

#[test]
fn proxy_url_credentials_override_proxy_user() {
    let sent = |proxy_of: fn(&H1Peer) -> String, in_environment: bool| {
        let peer = page("x");
        let proxy = proxy_of(&peer);
        let mut command = program(HAUL);
        command.args(["curl", "-q", "-s", "-U", "a:b", "http://h.test/"]);
        match in_environment {
            true => command.env("http_proxy", proxy),
            false => command.args(["-x", &proxy]),
        };
        run(&mut command).ok();
        received(&peer, 0)
    };
    let with_user = |peer: &H1Peer| peer.url("").replacen("://", "://u:p@", 1);
    for in_environment in [false, true] {
        let said = sent(with_user, in_environment);
        assert!(said.contains("Proxy-Authorization: Basic dTpw\r\n"), "{said}");
        let said = sent(|peer| peer.url(""), in_environment);
        assert!(said.contains("Proxy-Authorization: Basic YTpi\r\n"), "{said}");
    }
}

#[test]
fn proxy_pinnedpubkey_applies_only_to_tls_proxies() {
    let peer = page("x");
    let (url, proxy) = (peer.url("/"), peer.url(""));
    let bad = ["-sS", "--proxy-pinnedpubkey", "sha256//none"];
    curl(&[&bad[..], &[&url]].concat()).ok();
    curl(&[&bad[..], &["-x", &proxy, "http://h.test/"]].concat()).ok();
    // This server has no TLS, and so no key to compare.
    let no_tls = H1Peer::start(vec![
        vec![
            ScriptStep::ReadBytes(5),
            ScriptStep::send("HTTP/1.1 400 Bad Request\r\n\r\n"),
            ScriptStep::Close
        ];
        3
    ]);
    let with_tls = no_tls.url("").replacen("http:", "https:", 1);
    assert_eq!(curl(&[&bad[..], &["-x", &with_tls, "http://h.test/"]].concat()).code, 35);
    for (first, code) in [(&["curl", "-q"][..], 35), (&[], 90)] {
        let mut command = program(HAUL);
        command.args(first).args(bad).arg("http://h.test/").env("http_proxy", &with_tls);
        assert_eq!(run(&mut command).code, code, "{first:?}");
    }
}

#[test]
fn preproxy_alone_is_used_as_proxy() {
    // SOCKS 4: version, CONNECT, port, address, no user.
    let peer = H1Peer::start(vec![vec![ScriptStep::ReadBytes(9)]; 2]);
    let preproxy = peer.addr().to_string();
    for options in [&[][..], &["-x", ""]] {
        let mut haul = program(HAUL);
        haul.args(["curl", "-q", "-s", "--preproxy", &preproxy]).args(options).arg("http://127.0.0.1:80/");
        assert_eq!(run(haul.env("http_proxy", "http://127.0.0.1:9/")).code, 97, "{options:?}");
    }
    for connection in 0..2 {
        assert_eq!(peer.received(connection), b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00");
    }
}

#[test]
fn empty_proxy_header_removes_default_proxy_fields() {
    let peer = H1Peer::start(vec![reply_steps("200 OK", ""), reply_steps("403 No", "")]);
    let proxy = peer.url("");
    let fields = ["-x", &proxy, "--proxy-header", "Proxy-Connection:", "--proxy-header", "Host: proxy.test"];
    curl(&[&["-s"], &fields[..], &["http://origin.test/"]].concat()).ok();
    let expected =
        "GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\nUser-Agent: curl/8.22.0\r\nAccept: */*\r\n\r\n";
    assert_eq!(received(&peer, 0), expected);
    curl(&[&["-s", "-p", "--proxy-header", "User-Agent:"], &fields[..], &["http://origin.test/"]].concat());
    assert_eq!(received(&peer, 1), "CONNECT origin.test:80 HTTP/1.1\r\nHost: proxy.test\r\n\r\n");
}

#[test]
fn haproxy_clientip_is_source_and_destination() {
    for (client, family) in [("192.0.2.1", "TCP4"), ("2001:db8::1", "TCP6")] {
        let peer = page("x");
        curl(&["-s", "--haproxy-clientip", client, &peer.url("/")]).ok();
        let line = format!("PROXY {family} {client} {client} ");
        assert!(received(&peer, 0).starts_with(&line), "{}", received(&peer, 0));
    }
}

#[test]
fn curl_refused_tunnel_error_names_the_status() {
    let proxy = answering("HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n");
    let proxy = proxy.url("");
    let through = ["-p", "-x", &proxy, "http://h.example/"];
    assert_eq!(curl_quiet(&through).failed(7), "curl: (7) CONNECT tunnel failed, response 405");
    // The proxy answered, so --retry-connrefused does not apply.
    let again = [&["--retry", "2", "--retry-connrefused"], &through[..]].concat();
    assert_eq!(curl_quiet(&again).failed(7), "curl: (7) CONNECT tunnel failed, response 405");
    assert_eq!(
        curl_quiet(&[&["-f"], &through[..]].concat()).failed(22),
        "curl: (22) The requested URL returned error: 405"
    );

    let broken = answering("HTTP/1.1 200 OK\r\nX-Evil: he\0llo\r\n\r\n");
    assert_eq!(curl_quiet(&["-p", "-x", &broken.url(""), "http://h.example/"]).code, 8);
}

#[test]
fn verbose_shows_the_connect_request() {
    let challenge = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n";
    let opened = "HTTP/1.1 200 Connected\r\n\r\n";
    let proxy = H1Peer::start(vec![vec![
        ScriptStep::ReadHead,
        ScriptStep::send(challenge),
        ScriptStep::ReadHead,
        ScriptStep::send(opened),
        ScriptStep::ReadHead,
        ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ]]);
    let options = ["-sv", "--proxy-anyauth", "-U", "me:sesame", "-p", "-x", &proxy.url(""), "http://h.test/"];
    let ran = curl(&options);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let heads: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with(['<', '>'])).collect();
    let first = ["> CONNECT h.test:80 HTTP/1.1", "> Host: h.test:80", "> User-Agent: curl/8.22.0"];
    assert_eq!(heads[..3], first, "{}", ran.stderr);
    let at = |line: &str| heads.iter().position(|head| *head == line).unwrap_or_else(|| panic!("{line}: {heads:?}"));
    assert!(at("< HTTP/1.1 407 No") < at("> Proxy-Authorization: [redacted]"), "{}", ran.stderr);
    assert!(at("> Proxy-Authorization: [redacted]") < at("< HTTP/1.1 200 Connected"), "{}", ran.stderr);
    assert!(at("< HTTP/1.1 200 Connected") < at("> GET / HTTP/1.1"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("sesame") && !ran.stderr.contains("bWU6c2VzYW1l"), "{}", ran.stderr);
}

#[test]
fn connect_refusal_with_two_lengths_is_an_error() {
    let both = "HTTP/1.1 407 No\r\nContent-Length: 13\r\nTransfer-Encoding: chunked\r\n\r\nsome content\n";
    let proxy = answering(both);
    let ran = curl_quiet(&["-p", "-x", &proxy.url(""), "http://h.test/"]);
    let said = "curl: (56) the proxy's answer to CONNECT has both Content-Length and Transfer-Encoding";
    assert_eq!(ran.failed(56), said);
}

#[test]
fn noproxy_lists_are_read_as_by_curl() {
    let peer = page("direct");
    let code = |list: &str, in_environment: bool| {
        let mut command = program(HAUL);
        command.args(["curl", "-q", "-s", "-x", "http://127.0.0.1:1", &peer.url("/")]);
        match in_environment {
            true => command.env("no_proxy", list),
            false => command.args(["--noproxy", list]),
        };
        run(&mut command).code
    };
    for in_environment in [false, true] {
        for (list, expected) in
            [("*", 0), ("a, 127.0.0.0/8", 0), ("a 127.0.0.1", 7), ("a,*", 7), ("0.0.0.0/0", 7), ("[127.0.0.1]", 7)]
        {
            assert_eq!(code(list, in_environment), expected, "{list} {in_environment}");
        }
    }
}
