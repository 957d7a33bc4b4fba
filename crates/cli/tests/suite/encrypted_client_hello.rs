//! Tests of `--ech` (Encrypted Client Hello) with a server in Go, which knows the key and reports
//! whether the hello was encrypted.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use tempfile::TempDir;
use testkit::dns_server::{DnsReply, DnsServer, HttpsRecordData, ReceivedQuery};
use testkit::origin::Origin;

use crate::common::{CommandOutput, program, run_haul, skipped};

/// A running test server with Encrypted Client Hello (ECH), written in Go. Dropping it stops the
/// server.
struct EchServer {
    child: Child,
    dir: TempDir,
    with_key: u16,
    without_key: u16,
    /// The server's ECH key: an ECHConfigList in base64.
    list: String,
    /// An ECHConfigList in base64 with a key that the server does not have.
    other: String,
}

impl EchServer {
    /// Starts the server. Returns `None` if it has not been built.
    fn start() -> Option<Self> {
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/work/bin/ech-server");
        if !built.exists() {
            skipped("Encrypted Client Hello: ech-server is not built: sh scripts/http3-peers.sh");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut command = program(built);
        command.arg(dir.path().join("ca.pem")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let (with_key, without_key) = (words[0].parse().unwrap(), words[1].parse().unwrap());
        Some(Self { child, dir, with_key, without_key, list: words[2].to_owned(), other: words[3].to_owned() })
    }

    fn ca(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    /// Runs haul with the arguments `persona`, which select a persona, followed by `args`.
    fn run(&self, persona: &[&str], args: &[&str], port: u16) -> CommandOutput {
        let (ca, route) = (self.ca().display().to_string(), format!("secret.example:{port}:127.0.0.1"));
        let url = format!("https://secret.example:{port}/");
        let common = ["-sS", "--retry", "0", "--cacert", &ca];
        let by_dns = args.iter().any(|word| matches!(*word, "--dns-servers" | "--doh-url"));
        let route = if by_dns { vec![] } else { vec!["--resolve", &route] };
        run_haul([persona, &common, &route, args, &[&url]].concat())
    }

    fn get(&self, args: &[&str]) -> CommandOutput {
        self.run(&[], args, self.with_key)
    }

    /// The answers of a DNS server that publishes the key: an HTTPS record, and the address.
    fn dns_answers(&self) -> impl Fn(&ReceivedQuery) -> Vec<DnsReply> + Send + Sync + 'static {
        let ech = haul_cli::base64::decode(&self.list).unwrap();
        move |query| match query.record_type {
            65 => vec![query.https(&[HttpsRecordData { ech: ech.clone(), ..HttpsRecordData::with_alpn("h2") }])],
            _ => vec![query.addresses(&["127.0.0.1".parse().unwrap()])],
        }
    }
}

impl Drop for EchServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the exit code and the body that a run of haul has printed.
fn ended(got: &CommandOutput) -> (i32, &str) {
    (got.code, std::str::from_utf8(&got.stdout).unwrap())
}

const HIDDEN: &str = "true secret.example\n";
const PLAIN: &str = "false secret.example\n";

/// The beginning of the line that `-v` prints about the ECH handshake.
const RESULT: &str = "ECH: result: status is";

#[test]
fn ech_key_option_encrypts_the_server_name() {
    let Some(server) = EchServer::start() else { return };
    let keys = format!("ecl:{}", server.list);
    for version in ["--http1.1", "--http2", "--http3-only"] {
        for words in [&["--ech", &*keys][..], &["--ech", "true", "--ech", &keys], &["--ech", "hard", "--ech", &keys]] {
            let got = server.get(&[words, &["-v", version]].concat());
            assert_eq!(ended(&got), (0, HIDDEN), "{words:?}: {}", got.stderr);
            let result = format!("{RESULT} succeeded, inner is secret.example, outer is public.example");
            assert!(got.stderr.contains(&result), "{}", got.stderr);
            assert!(got.stderr.contains("ECH: ECHConfig from command line"), "{}", got.stderr);
        }
    }
    let file = server.dir.path().join("list");
    std::fs::write(&file, format!("{}\n", server.list)).unwrap();
    assert_eq!(server.get(&["--ech", &format!("ecl:@{}", file.display())]).text(), HIDDEN);
}

#[test]
fn ech_key_comes_from_dns_https_record() {
    let Some(server) = EchServer::start() else { return };
    let dns = DnsServer::start(server.dns_answers()).unwrap();
    let servers = dns.address().to_string();
    for (policy, version) in [("true", "--http2"), ("hard", "--http2"), ("hard", "--http3-only")] {
        let got = server.get(&["--ech", policy, version, "--dns-servers", &servers, "-v"]);
        assert_eq!(ended(&got), (0, HIDDEN), "{policy}: {}", got.stderr);
        assert!(got.stderr.contains("ECH: ECHConfig from HTTPS RR"), "{}", got.stderr);
    }
}

#[test]
fn key_comes_by_dns_over_https() {
    let Some(server) = EchServer::start() else { return };
    let dns = Origin::builder().http2(100).dns(server.dns_answers()).start().unwrap();
    let authorities = server.dir.path().join("both.pem");
    std::fs::write(&authorities, std::fs::read_to_string(server.ca()).unwrap() + dns.ca_pem()).unwrap();
    let (doh, authorities) = (dns.https_url("/dns-query"), authorities.display().to_string());
    let by_doh = ["--doh-url", &doh, "--cacert", &authorities, "-v"];
    for version in ["--http1.1", "--http2", "--http3-only"] {
        for persona in [&[][..], &["curl", "-q"]] {
            let words = [&["--ech", "hard", version][..], &by_doh].concat();
            let got = server.run(persona, &words, server.with_key);
            assert_eq!(ended(&got), (0, HIDDEN), "{persona:?} {version}: {}", got.stderr);
            assert!(got.stderr.contains("ECH: ECHConfig from HTTPS RR"), "{}", got.stderr);
        }
    }
    let got = server.get(&by_doh);
    assert_eq!(ended(&got), (0, PLAIN), "{}", got.stderr);
}

#[test]
fn server_name_is_unencrypted_without_ech_key() {
    let Some(server) = EchServer::start() else { return };
    for (policy, result) in [("false", None), ("grease", Some("sent GREASE")), ("true", Some("not configured"))] {
        let got = server.get(&["--ech", policy, "-v"]);
        assert_eq!(ended(&got), (0, PLAIN), "{policy}: {}", got.stderr);
        let told = got.stderr.contains(RESULT);
        assert_eq!(told, result.is_some(), "{policy}: {}", got.stderr);
        let line = format!("{RESULT} {}, inner is NULL, outer is NULL", result.unwrap_or_default());
        assert!(result.is_none() || got.stderr.contains(&line), "{policy}: {}", got.stderr);
    }
    let got = server.get(&["--ech", "hard"]);
    assert!(got.failed(35).contains("ECHConfigList"), "{}", got.stderr);
}

#[test]
fn ech_retries_with_keys_from_the_rejection() {
    let Some(server) = EchServer::start() else { return };
    let other = format!("ecl:{}", server.other);
    for version in ["--http2", "--http3", "--http3-only"] {
        let got = server.get(&["--ech", &other, version, "-v"]);
        assert_eq!(ended(&got), (0, HIDDEN), "{version}: {}", got.stderr);
        assert!(got.stderr.contains(&format!("ECH: retry_configs {}", server.list)), "{version}: {}", got.stderr);
    }
    // Nobody vouches for keys that come without a verified certificate.
    assert!(server.get(&["--ech", &other, "-k"]).failed(101).contains("Encrypted Client Hello"));
    let got = server.run(&[], &["--ech", &other, "-v"], server.without_key);
    assert_eq!(ended(&got), (101, ""), "{}", got.stderr);
    assert!(got.stderr.contains("ECH: no retry_configs"), "{}", got.stderr);
    assert!(got.stderr.contains("--ech false"), "{}", got.stderr);
}

#[test]
fn curl_mode_reports_keys_of_ech_rejection() {
    let Some(server) = EchServer::start() else { return };
    for words in [&["--ech", "true"][..], &[]] {
        let other = format!("ecl:{}", server.other);
        let got = server.run(&["curl", "-q"], &[words, &["--ech", &other, "-v"]].concat(), server.with_key);
        assert_eq!(ended(&got), (101, ""), "{}", got.stderr);
        assert!(got.stderr.contains(&format!("ECH: retry_configs {}", server.list)), "{}", got.stderr);
    }
}

#[test]
fn many_urls_share_a_connection_with_ech() {
    let Some(server) = EchServer::start() else { return };
    let keys = format!("ecl:{}", server.list);
    let url = format!("https://secret.example:{}/", server.with_key);
    let got = server.get(&["--ech", &keys, &url, &url]);
    assert_eq!(ended(&got), (0, &*HIDDEN.repeat(3)), "{}", got.stderr);
}

#[test]
fn invalid_ech_values_are_refused() {
    for (value, word) in [
        ("pn:public.example", "rustls"),
        ("always", "grease"),
        ("ecl:", "grease"),
        ("ecl:not base64", "base64"),
        ("ecl:@/nonexistent", "cannot read"),
    ] {
        let got = run_haul(["-sS", "--ech", value, "https://127.0.0.1:9/"]);
        assert_eq!(ended(&got), (2, ""), "{value}: {}", got.stderr);
        assert!(got.stderr.contains(word), "{value}: {}", got.stderr);
    }
}
