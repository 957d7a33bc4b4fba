//! Tests of proxies: squid, tinyproxy, Dante and microsocks in front of Apache, over HTTP/1.1 and
//! HTTP/2. Options or the environment select the proxy, and one proxy is reached through another.

use crate::common;
use crate::servers;

use std::fs;

use common::{CommandOutput, HAUL, haul, program, run};
use servers::compare_with_curl::{both, both_with, text};
use servers::proxies::{ProxyServer, SquidAuth};
use servers::start_apache::ApacheServer;

fn with<'a>(way: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    way.iter().map(String::as_str).chain(more.iter().copied()).collect()
}

/// Returns the option `-p` if the options `way` select HTTP/2 without TLS, and nothing for other
/// protocols. HTTP/2 needs a tunnel, because a forwarding proxy speaks only HTTP/1.1.
fn tunnel(way: &[String]) -> &'static [&'static str] {
    if way[0] == "--http2-prior-knowledge" { &["-p"] } else { &[] }
}

#[test]
fn squid_forwards_requests_with_each_auth_scheme() {
    let Some(apache) = ApacheServer::start("squid") else { return };
    for asks in [SquidAuth::Nothing, SquidAuth::Basic, SquidAuth::Digest] {
        let Some(squid) = ProxyServer::squid("an HTTP proxy", asks) else { return };
        let plain = squid.url("http", "");
        let known = squid.url("http", "me:secret@");
        for (port, way) in apache.ways() {
            let url = apache.url(port, "/open/echo");
            let mut welcome: Vec<Vec<&str>> = match asks {
                SquidAuth::Nothing => vec![vec!["-x", &plain]],
                SquidAuth::Basic => vec![
                    vec!["-x", &known],
                    vec!["-x", &plain, "-U", "me:secret"],
                    vec!["-x", &plain, "--proxy-user", "me:secret", "--proxy-basic"],
                    vec!["-x", &plain, "-U", "me:secret", "--proxy-anyauth"],
                    vec!["--proxy", &known, "-p"],
                ],
                SquidAuth::Digest => vec![
                    vec!["-x", &plain, "-U", "me:secret", "--proxy-digest"],
                    vec!["-x", &known, "--proxy-anyauth"],
                    vec!["-x", &known, "--proxy-digest", "-p"],
                ],
            };
            if asks == SquidAuth::Digest {
                // squid does not read the rest of a refused body: a client that sends the whole
                // body at once would wait for ever.
                let content = "0123456789abcdef\n".repeat(20_000);
                let (file, there) = (squid.path("content"), apache.url(port, "/dav/open/content"));
                fs::write(&file, &content).unwrap();
                let file = file.display().to_string();
                for auth in ["--proxy-digest", "--proxy-anyauth"] {
                    let options = ["-x", &plain, "-U", "me:secret", auth, "-T", &file, &*there];
                    both_with(&with(&way, &[&options[..], tunnel(&way)].concat()), |_| String::new());
                    assert!(
                        common::run_haul(with(&way, &["-s", &*there])).ok() == content.as_bytes(),
                        "{way:?} {auth}"
                    );
                }
            }
            for options in &mut welcome {
                options.extend(tunnel(&way));
                let got = text(&both(&with(&way, &[&options[..], &["-d", "a=1", &*url]].concat())));
                assert!(got.ends_with("\n\na=1") && !got.contains("PROXY_AUTHORIZATION"), "{way:?} {options:?} {got}");
            }
            if asks != SquidAuth::Nothing {
                // A refused tunnel delivers no response; the answer of a forwarding proxy is a
                // response.
                for options in [&["-x", &*plain][..], &["-x", &plain, "-U", "me:wrong"]] {
                    let args = with(
                        &way,
                        &[options, tunnel(&way), &["-o", "/dev/null", "-w", "%{http_connect}", &*url]].concat(),
                    );
                    if tunnel(&way).is_empty() && url.starts_with("http:") {
                        let got = both_with(&args, |_| String::new());
                        assert_eq!(got.code, 22, "{asks:?} {way:?} {options:?} {}", got.stderr);
                    } else {
                        // curl makes it 22 with -f: to haul no tunnel is no connection.
                        common::run_haul(["-s", "-S"].into_iter().chain(args.iter().copied())).failed(7);
                    }
                }
            }
        }
    }
}

#[test]
fn https_proxy_is_verified_before_credentials() {
    let Some(apache) = ApacheServer::start("an https proxy") else { return };
    let Some(squid) = ProxyServer::squid("an https proxy", SquidAuth::Basic) else { return };
    if squid.tls_port == 0 {
        return common::skipped("an https proxy: squid without OpenSSL (squid-openssl has it)");
    }
    let proxy = squid.url("https", "me:secret@");
    let ca = squid.path("ca").display().to_string();
    for (port, way) in apache.ways() {
        let url = apache.url(port, "/open/echo");
        let options = [&["-x", &*proxy, "--proxy-cacert", &ca], tunnel(&way)].concat();
        let got = text(&both(&with(&way, &[&options[..], &[&*url]].concat())));
        assert!(got.starts_with("REQUEST_METHOD=GET\n"), "{way:?} {got}");
        let insecure = [&["-x", &*proxy, "--proxy-insecure"], tunnel(&way)].concat();
        assert_eq!(both(&with(&way, &[&insecure[..], &["-o", "/dev/null", &*url]].concat())).code, 0);
        // A proxy with an untrusted certificate receives no password.
        let untrusted = [&["-x", &*proxy], tunnel(&way)].concat();
        assert_eq!(both(&with(&way, &[&untrusted[..], &["-o", "/dev/null", &*url]].concat())).code, 60, "{way:?}");
    }
}

#[test]
fn proxy_header_is_sent_only_to_the_proxy() {
    let Some(apache) = ApacheServer::start("tinyproxy") else { return };
    let Some(tinyproxy) = ProxyServer::tinyproxy("an HTTP proxy") else { return };
    let (known, plain) = (tinyproxy.url("http", "me:secret@"), tinyproxy.url("http", ""));
    for (port, way) in apache.ways() {
        let url = apache.url(port, "/open/echo");
        let got = text(&both(&with(&way, &[&["-x", &*known], tunnel(&way), &[&*url]].concat())));
        assert!(got.starts_with("REQUEST_METHOD=GET\n"), "{way:?} {got}");
        // With a tunnel, fields for the proxy do not reach the origin; this one authenticates us.
        let field = "Proxy-Authorization: Basic bWU6c2VjcmV0";
        let options =
            ["-x", &*plain, "-p", "--proxy-header", field, "--proxy-header", "X-Own: proxy", "-H", "X-Own: origin"];
        let got = text(&both(&with(&way, &[&options[..], &[&*url]].concat())));
        assert!(got.contains("HTTP_X_OWN=origin\n") && !got.contains("PROXY_AUTHORIZATION"), "{way:?} {got}");
    }
}

#[test]
fn socks4_and_socks5_proxies_reach_the_server() {
    let Some(apache) = ApacheServer::start("SOCKS") else { return };
    let dante = ProxyServer::dante("SOCKS 4, 4a and 5");
    let open = ProxyServer::microsocks("SOCKS 5", false);
    let asking = ProxyServer::microsocks("SOCKS 5 with a password", true);
    for (port, way) in apache.ways() {
        let url = apache.url(port, "/open/echo");
        let ok = |options: &[&str]| {
            let got = text(&both(&with(&way, &[options, &[&*url]].concat())));
            assert!(got.starts_with("REQUEST_METHOD=GET\n"), "{way:?} {options:?} {got}");
        };
        if let Some(dante) = &dante {
            // It takes 4a's address for one to connect to.
            for scheme in ["socks4", "socks5", "socks5h"] {
                ok(&["-x", &dante.url(scheme, "")]);
            }
            let place = format!("localhost:{}", dante.port);
            for option in ["--socks4", "--socks5", "--socks5-hostname"] {
                ok(&[option, &place]);
            }
            ok(&["-x", &dante.url("socks4", "me@")]);
            ok(&["--preproxy", &dante.url("socks5h", "")]);
        }
        if let Some(open) = &open {
            ok(&["-x", &open.url("socks5", "")]);
            ok(&["-x", &open.url("socks5h", "")]);
        }
        if let Some(asking) = &asking {
            ok(&["-x", &asking.url("socks5", "me:secret@")]);
            ok(&["-x", &asking.url("socks5h", ""), "-U", "me:secret"]);
            for userinfo in ["", "me:wrong@"] {
                let got = both(&with(&way, &["-x", &asking.url("socks5h", userinfo), "-o", "/dev/null", &url]));
                assert_eq!(got.code, 97, "{way:?} {userinfo:?} {}", got.stderr);
            }
        }
    }
}

#[test]
fn preproxy_reaches_the_proxy_over_socks() {
    let Some(apache) = ApacheServer::start("a proxy before a proxy") else { return };
    let Some(squid) = ProxyServer::squid("a proxy before a proxy", SquidAuth::Basic) else { return };
    let Some(socks) = ProxyServer::microsocks("a proxy before a proxy", true) else { return };
    let (pre, proxy) = (socks.url("socks5h", "me:secret@"), squid.url("http", "me:secret@"));
    for (port, way) in apache.ways() {
        let options = [&["--preproxy", &*pre, "-x", &proxy], tunnel(&way)].concat();
        let got = text(&both(&with(&way, &[&options[..], &[&*apache.url(port, "/open/echo")]].concat())));
        assert!(got.starts_with("REQUEST_METHOD=GET\n") && !got.contains("PROXY_AUTH"), "{way:?} {got}");
    }
}

/// Runs haul and curl with these environment variables and arguments. Asserts that exit code and
/// output are equal, and returns haul's output.
fn in_environment(variables: &[(&str, &str)], args: &[&str]) -> CommandOutput {
    let args: Vec<&str> = ["-s", "-S", "-f", "-L"].iter().chain(args).copied().collect();
    let ours = run(program(HAUL).envs(variables.iter().copied()).args(&args));
    if let Some(curl) = common::installed("curl", "the comparison with curl") {
        let theirs = run(program(curl).envs(variables.iter().copied()).args(&args));
        assert_eq!(
            (ours.code, &ours.stdout),
            (theirs.code, &theirs.stdout),
            "{variables:?} {args:?} {}",
            theirs.stderr
        );
    }
    ours
}

#[test]
fn proxy_variables_and_no_proxy_match_curl() {
    let Some(apache) = ApacheServer::start("proxies of the environment") else { return };
    let Some(squid) = ProxyServer::squid("proxies of the environment", SquidAuth::Nothing) else { return };
    let proxy = squid.url("http", "");
    // No proxy listens there: a success proves that haul connected directly.
    let nobody = "http://127.0.0.1:1";
    let ca = apache.path("ca").display().to_string();
    for (port, own) in [(apache.port, "http_proxy"), (apache.tls_port, "https_proxy")] {
        let by_name = apache.url(port, "/open/echo");
        let by_address = by_name.replace("localhost", "127.0.0.1");
        for (variables, url, code) in [
            (&[(own, &*proxy)][..], &by_name, 0),
            (&[("all_proxy", &*proxy)], &by_name, 0),
            (&[(own, nobody)], &by_name, 7),
            (&[("ALL_PROXY", nobody)], &by_name, 7),
            (&[("HTTP_PROXY", nobody), ("https_proxy", "")], &by_name, 0),
            (&[(own, nobody), ("no_proxy", "localhost")], &by_name, 0),
            (&[(own, nobody), ("NO_PROXY", "other.test, .localhost")], &by_name, 0),
            (&[(own, nobody), ("no_proxy", "host")], &by_name, 7),
            (&[(own, nobody), ("no_proxy", "*")], &by_name, 0),
            (&[(own, nobody), ("no_proxy", "127.0.0.0/8")], &by_address, 0),
            (&[(own, nobody), ("no_proxy", "127.0.0.0/8")], &by_name, 7),
            (&[(own, nobody), ("no_proxy", "10.0.0.0/8,127.0.0.1")], &by_address, 0),
            (&[(own, nobody), ("no_proxy", "128.0.0.0/8")], &by_address, 7),
        ] {
            let got = in_environment(variables, &["--http1.1", "--cacert", &ca, url]);
            assert_eq!(got.code, code, "{variables:?} {url}: {}", got.stderr);
        }
        for (list, url, code) in
            [("localhost", &by_name, 0), ("", &by_name, 7), ("127.0.0.0/8", &by_address, 0), ("*", &by_name, 0)]
        {
            let variables = [(own, nobody), ("no_proxy", "localhost,127.0.0.1")];
            let args = ["--http1.1", "--cacert", &ca, "--noproxy", list, url];
            assert_eq!(in_environment(&variables, &args).code, code, "{list} {url}");
            assert_eq!(in_environment(&[], &[&["-x", nobody], &args[..]].concat()).code, code, "-x, {list} {url}");
        }
        // Upper case alone does not count for http: CGI makes it from a request's field.
        let command = run(haul(["-sS", "--cacert", &ca, &by_name]).env("HTTP_PROXY", nobody));
        assert_eq!(command.code, 0, "{}", command.stderr);
    }
}
