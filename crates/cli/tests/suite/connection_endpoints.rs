//! Tests of the two ends of a connection with nginx: Unix sockets, `--resolve`, `--connect-to`, and
//! the local address and port.

use crate::common;
use crate::servers;

use std::fs;
use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use common::run_haul;
use servers::compare_with_curl::{both, both_with, text};
use servers::start_nginx::NginxServer;
use testkit::test_certificates::TestCertificates;
use testkit::unused_port::unused_port;

/// Runs haul and curl with these arguments. Asserts that nginx echoes the same request for both,
/// except for the client's port. Returns haul's output.
fn echoed(args: &[&str]) -> common::CommandOutput {
    both_with(args, |ran| {
        String::from_utf8_lossy(&ran.stdout).rsplit_once(':').map_or(String::new(), |(head, _)| head.to_owned())
    })
}

fn start() -> Option<NginxServer> {
    NginxServer::start("addresses", |dir| {
        let identity = TestCertificates::generate();
        fs::write(dir.join("ca"), identity.ca_pem()).unwrap();
        fs::write(dir.join("clients"), identity.ca_pem()).unwrap();
        fs::write(dir.join("leaf"), identity.chain_pem()).unwrap();
        fs::write(dir.join("key"), identity.key_pem()).unwrap();
    })
}

#[test]
fn unix_socket_option_connects_like_curl() {
    let Some(nginx) = start() else { return };
    let socket = nginx.path("socket").display().to_string();
    // nginx creates the socket after it opens the port that was waited for.
    common::eventually("nginx listens there", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    let got = text(&both(&["--unix-socket", &socket, "http://any.test/echo"]));
    assert!(got.starts_with("HTTP/1.1 any.test unix:"), "{got}");
    assert_eq!(both(&["--unix-socket", "/nonexistent/socket", "http://any.test/echo"]).code, 7);
}

#[test]
fn abstract_unix_socket_option_connects_like_curl() {
    let name = format!("haul-test-{}", std::process::id());
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nme\n");
        }
    });
    assert_eq!(text(&both(&["--abstract-unix-socket", &name, "http://any.test/"])), "me\n");
}

#[test]
fn resolve_and_connect_to_choose_the_address() {
    let Some(nginx) = start() else { return };
    let ca = nginx.path("ca").display().to_string();
    for (version, scheme, port) in [
        ("--http1.1", "http", nginx.port),
        ("--http2-prior-knowledge", "http", nginx.h2_port),
        ("--http1.1", "https", nginx.tls_port),
        ("--http2", "https", nginx.tls_port),
    ] {
        // The certificate is one of localhost, so over TLS that is the name.
        let host = if scheme == "https" { "localhost" } else { "any.test" };
        let options = [version, "--cacert", &ca];
        let url = format!("{scheme}://{host}:{port}/echo");
        for resolve in
            [format!("{host}:{port}:127.0.0.1"), format!("*:{port}:127.0.0.1"), format!("+{host}:{port}:127.0.0.1")]
        {
            let got = text(&echoed(&[&options[..], &["--resolve", &resolve, &url]].concat()));
            assert!(got.contains(&format!(" {host}:{port} 127.0.0.1")), "{version} {resolve} {got}");
        }
        let elsewhere = format!("{scheme}://{host}:1/echo");
        for connect_to in
            [format!("{host}:1:127.0.0.1:{port}"), format!("::127.0.0.1:{port}"), format!(":1:localhost:{port}")]
        {
            let got = text(&echoed(&[&options[..], &["--connect-to", &connect_to, &elsewhere]].concat()));
            assert!(got.contains(&format!(" {host}:1 127.0.0.1")), "{version} {connect_to} {got}");
        }
    }
}

#[test]
fn interface_and_local_port_bind_the_socket() {
    let Some(nginx) = start() else { return };
    let url = format!("http://127.0.0.1:{}/echo", nginx.port);
    for interface in ["lo", "if!lo", "127.0.0.9", "host!127.0.0.9"] {
        let got = run_haul(["-sS", "--interface", interface, &url]).text();
        let from = if interface.ends_with("lo") { " 127.0.0.1:" } else { " 127.0.0.9:" };
        assert!(got.contains(from), "{interface} {got}");
    }
    assert_eq!(both(&["--interface", "no-such-device", &url]).code, 45);
    let port = unused_port();
    let got = run_haul(["-sS", "--interface", "127.0.0.9", "--local-port", &port.to_string(), &url]).text();
    assert!(got.contains(&format!(" 127.0.0.9:{port} ")), "{got}");
    let (first, last) = (port, port.saturating_add(20));
    let got = run_haul(["-sS", "--interface", "127.0.0.10", "--local-port", &format!("{first}-{last}"), &url]).text();
    assert!(got.contains(&format!(" 127.0.0.10:{first} ")), "{got}");
}

/// The requests must arrive with `--mptcp` and with `--tcp-fastopen`, whether or not the system
/// supports these options. strace shows whether the socket has them.
#[test]
fn socket_has_multipath_and_fast_open() {
    let traced = common::can_trace("options of sockets");
    for (option, expected) in [("--mptcp", "IPPROTO_MPTCP"), ("--tcp-fastopen", "TCP_FASTOPEN_CONNECT")] {
        let (dir, peer) = (tempfile::tempdir().unwrap(), common::page("x"));
        let url = peer.url("/");
        let report = dir.path().join("report");
        let mut command = common::program(if traced { "strace" } else { common::HAUL });
        if traced {
            command.args(["-f", "-e", "trace=socket,setsockopt", "-o"]).arg(&report).arg(common::HAUL);
        }
        assert_eq!(common::run(command.args(["-q", "-sS", option, &url])).text(), "x", "{option}");
        if traced {
            let calls = fs::read_to_string(&report).unwrap();
            // strace may not know the name of the option, which is 30.
            let is_set = calls.contains(expected) || calls.contains("SOL_TCP, 0x1e") || calls.contains("0x106");
            assert!(is_set, "{option}: {calls}");
        }
    }
}
