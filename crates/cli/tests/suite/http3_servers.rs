//! Tests of HTTP/3 with servers of other projects: quic-go (bench/go-http3) and Caddy. Bodies in
//! both directions must have the hash of their source, and the server must see one connection.
//! Servers that are not installed are skipped.
//!
//! With `HAUL_HTTP3_FULL=1` (`make h3-interop`) the bodies are larger and more: 1 GiB on one
//! stream, 50 bodies of 100 MB, and 20,000 of 300 bytes, each set over one connection. The origin
//! of testkit is then tested as well.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use testkit::byte_pattern::BytePattern;
use testkit::http3::Http3Settings;
use testkit::origin::Origin;
use testkit::test_certificates::TestCertificates;
use testkit::unused_port::unused_port;

use crate::common::third_party_servers::{ExternalServer, found};
use crate::common::{CommandOutput, HAUL, RunningCommand, WAIT_TIMEOUT, list, program, skipped};

/// The seed of the byte pattern for all bodies. The origin of testkit serves the same pattern.
const SEED: u64 = 1;
/// The size, in bytes, of the pieces in which a file is written.
const PIECE: usize = 1 << 20;

/// The lengths and numbers of the bodies that the tests transfer.
struct InteropBodySizes {
    /// The lengths of the bodies that are each fetched in a separate run.
    alone: &'static [usize],
    /// The number and the length of the large bodies that are fetched over one connection.
    streams: (usize, usize),
    /// The number and the length of the small bodies that are fetched over one connection.
    small: (usize, usize),
    /// The length of the content that is sent and returned by the server.
    echoed: usize,
    /// The length of the content that is sent and whose hash the server returns.
    digested: usize,
    limit: Duration,
}

const SLICE: InteropBodySizes = InteropBodySizes {
    alone: &[0, 1, 300, 100_000, 4_000_000],
    streams: (50, 100_000),
    small: (1_000, 300),
    echoed: 2_000_000,
    digested: 3_000_000,
    limit: WAIT_TIMEOUT,
};
const FULL: InteropBodySizes = InteropBodySizes {
    alone: &[0, 1, 300, 100_000, 4_000_000, 1 << 30],
    streams: (50, 100_000_000),
    small: (20_000, 300),
    echoed: 100_000_000,
    digested: 1 << 30,
    limit: Duration::from_secs(600),
};

/// Returns the lengths and numbers of the bodies to transfer: larger ones if the environment
/// variable `HAUL_HTTP3_FULL` is set.
fn body_sizes() -> &'static InteropBodySizes {
    if is_full() { &FULL } else { &SLICE }
}

fn is_full() -> bool {
    std::env::var_os("HAUL_HTTP3_FULL").is_some()
}

/// A directory with the bodies in the subdirectory `bytes`, each named after its length, and with a
/// certificate for localhost.
struct BodyFiles {
    dir: tempfile::TempDir,
}

impl BodyFiles {
    fn new(load: &InteropBodySizes) -> BodyFiles {
        let files = BodyFiles { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(files.path("bytes")).unwrap();
        let lengths = [load.streams.1, load.small.1, load.echoed, load.digested];
        for length in load.alone.iter().chain(&lengths) {
            let path = files.path(&format!("bytes/{length}"));
            if !path.exists() {
                write_body(&path, *length);
            }
        }
        let identity = TestCertificates::generate();
        for (name, pem) in
            [("ca", identity.ca_pem().to_owned()), ("leaf", identity.chain_pem()), ("key", identity.key_pem())]
        {
            fs::write(files.path(name), pem).unwrap();
        }
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs a bash script in the directory. `$GET` is haul with the options for HTTP/3 and the
    /// certificate of the server.
    fn bash(&self, script: &str) -> CommandOutput {
        let mut command = program("bash");
        let script = format!("set -o pipefail; GET='{HAUL} -sS --http3-only --cacert ca'; {script}");
        command.args(["-c", &script]).current_dir(self.dir.path());
        RunningCommand::start(&mut command).wait_within(body_sizes().limit)
    }

    /// Fetches `count` bodies of `length` bytes over one connection, and compares the hash of their
    /// concatenation.
    fn check_many(&self, what: &str, base: &str, (count, length): (usize, usize)) {
        list(self.dir.path(), "list", (0..count).map(|n| format!("{base}/bytes/{length}?{n}")));
        let expected = self.bash(&format!("for n in {{1..{count}}}; do cat bytes/{length}; done | sha256sum"));
        let say = "'%{stderr}%{http_version} %header{connection-number}\\n'";
        let got = self.bash(&format!("$GET --parallel-max 50 -w {say} --input-file list | sha256sum"));
        assert_eq!((got.code, &got.stdout), (0, &expected.stdout), "{what}, {count} of {length}: {}", got.stderr);
        let mut lines: Vec<&str> = got.stderr.lines().collect();
        assert_eq!(lines.len(), count, "{what}: {}", got.stderr);
        lines.dedup();
        assert_eq!(lines.len(), 1, "{what}: all requests by HTTP/3 over one connection: {lines:?}");
        assert!(lines[0].starts_with("3 "), "{what}: {}", lines[0]);
    }

    /// Fetches all bodies from the server at `base`.
    fn check(&self, what: &str, base: &str, load: &InteropBodySizes) {
        for length in load.alone {
            let say = "'%{stderr}%{http_version} %{size_download}'";
            let got = self.bash(&format!("$GET -w {say} {base}/bytes/{length} | cmp - bytes/{length}"));
            assert_eq!((got.code, got.stderr), (0, format!("3 {length}")), "{what}, {length}");
        }
        self.check_many(what, base, load.streams);
        self.check_many(what, base, load.small);
        let missing = self.bash(&format!("$GET {base}/bytes/missing"));
        assert_eq!(missing.code, 22, "{what}: {}", missing.stderr);
    }

    /// Sends a body to the path `/echo` below `base`, once with each of these options. `arrived`
    /// returns the content that the server has received, given haul's output.
    fn check_uploads(&self, what: &str, base: &str, options: &[String], arrived: impl Fn(CommandOutput) -> Vec<u8>) {
        for option in options {
            let got = self.bash(&format!("$GET {base}/echo {option}"));
            assert_eq!((got.code, got.stderr.as_str()), (0, ""), "{what}, {option}");
            assert!(arrived(got) == BytePattern::new(SEED).slice(0, body_sizes().echoed), "{what}, {option}");
        }
    }
}

/// Returns two alternative options, each of which uploads a file of [`InteropBodySizes::echoed`]
/// bytes.
fn uploads() -> Vec<String> {
    let file = format!("bytes/{}", body_sizes().echoed);
    vec![format!("-T {file}"), format!("--data-binary @{file}")]
}

/// Writes a file with the first `length` bytes of the pattern that the origin of testkit serves.
fn write_body(path: &Path, length: usize) {
    let pattern = BytePattern::new(SEED);
    let mut file = fs::File::create(path).unwrap();
    for offset in (0..length).step_by(PIECE) {
        file.write_all(&pattern.slice(offset as u64, PIECE.min(length - offset))).unwrap();
    }
}

/// Starts quic-go's server with these options, and returns its base URL. Returns `None` if the
/// server has not been built.
fn start_quicgo(files: &BodyFiles, options: &[&str]) -> Option<(ExternalServer, String)> {
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/work/bin/quicgo-server");
    if !server.is_file() {
        skipped("HTTP/3: quicgo-server is not built: sh scripts/http3-peers.sh");
        return None;
    }
    let address = files.path("address");
    let _ = fs::remove_file(&address);
    let mut command = Command::new(server);
    command.args(["-cert", "leaf", "-key", "key", "-address-file", "address"]).args(options);
    command.current_dir(files.dir.path());
    let server = ExternalServer::start_until(&mut command, || address.exists());
    let address = fs::read_to_string(address).unwrap();
    Some((server, format!("https://{address}")))
}

#[test]
fn http3_with_quicgo_keeps_bodies_and_connection() {
    let files = BodyFiles::new(body_sizes());
    let Some((_server, base)) = start_quicgo(&files, &[]) else { return };
    files.check("quic-go", &base, body_sizes());
    let unknown_length = format!("-T - <bytes/{}", body_sizes().echoed);
    files.check_uploads("quic-go", &base, &[uploads(), vec![unknown_length]].concat(), |got| got.stdout);
    let content = format!("bytes/{}", body_sizes().digested);
    for option in [format!("-T {content}"), format!("--data-binary @{content}")] {
        let got = files.bash(&format!("$GET {option} {base}/digest && sha256sum <{content}"));
        let lines: Vec<String> = got.text().lines().map(|line| line.trim_end_matches(" -").trim().to_owned()).collect();
        assert!(lines.len() == 2 && lines[0] == lines[1], "{option}: {lines:?}");
    }
}

#[test]
fn http3_with_quicgo_shows_trailers() {
    let files = BodyFiles::new(&SLICE);
    let Some((_server, base)) = start_quicgo(&files, &[]) else { return };
    let got = files.bash(&format!("$GET -v {base}/trailers"));
    assert_eq!((got.code, &*got.stdout), (0, &b"text before trailers\n"[..]), "{}", got.stderr);
    let has = |line: &str| got.stderr.lines().any(|shown| shown.to_ascii_lowercase().starts_with(line));
    assert!(has("< end: yes") && has("< sha256: "), "{}", got.stderr);
}

#[test]
fn http3_with_quicgo_completes_after_retry_packet() {
    let files = BodyFiles::new(&SLICE);
    let Some((_server, base)) = start_quicgo(&files, &["-retry"]) else { return };
    let say = "'%{stderr}%{http_version} %header{connection-number} %header{retry-count}'";
    let got = files.bash(&format!("$GET -w {say} {base}/bytes/100000 | cmp - bytes/100000"));
    assert_eq!((got.code, got.stderr.as_str()), (0, "3 1 1"));
    files.check_many("quic-go after Retry", &base, SLICE.streams);
}

#[test]
fn http3_with_quicgo_respects_the_stream_limit() {
    let files = BodyFiles::new(&SLICE);
    let Some((_server, base)) = start_quicgo(&files, &["-streams", "3"]) else { return };
    files.check_many("quic-go with 3 streams", &base, SLICE.small);
}

#[test]
fn http3_with_caddy_keeps_bodies_and_connection() {
    let Some(caddy) = found("caddy", "HTTP/3") else { return };
    let files = BodyFiles::new(body_sizes());
    // Uploads go on to an origin of ours, by HTTP/1.1.
    let origin = Origin::builder().start().unwrap();
    let port = unused_port();
    let dir = files.dir.path().display();
    let conf = format!(
        "{{\nadmin off\nauto_https off\nstorage file_system {dir}/caddy\nservers {{\nprotocols h1 h2 h3\n}}\n}}\n\
         https://localhost:{port} {{\nbind 127.0.0.1\ntls {dir}/leaf {dir}/key\nroot * {dir}\n\
         header Connection-Number {{remote_port}}\nhandle /echo {{\nreverse_proxy {}\n}}\nhandle {{\nfile_server\n}}\n}}\n",
        origin.http_addr()
    );
    fs::write(files.path("Caddyfile"), conf).unwrap();
    let mut command = Command::new(caddy);
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(files.path("Caddyfile"));
    // The TCP port listens after the UDP port.
    let _server = ExternalServer::start(command.env("HOME", files.dir.path()), port);
    let base = format!("https://localhost:{port}");
    files.check("caddy", &base, body_sizes());
    // Caddy 2.6 takes content without Content-Length over HTTP/3 for empty, and its proxy drops it.
    files.check_uploads("caddy", &base, &uploads(), |_| {
        let body = origin.log()[0].body.clone();
        origin.forget();
        body.to_vec()
    });
}

#[test]
fn http3_with_testkit_origin_keeps_large_bodies() {
    if !is_full() {
        return;
    }
    let files = BodyFiles::new(body_sizes());
    let origin = Origin::builder().http3(Http3Settings::new()).record(false).start().unwrap();
    fs::write(files.path("ca"), origin.ca_pem()).unwrap();
    let base = origin.https_url("");
    let alone = body_sizes().alone.last().unwrap();
    let got = files.bash(&format!("$GET {base}/bytes/{alone} | cmp - bytes/{alone}"));
    assert_eq!((got.code, got.stderr.as_str()), (0, ""));
    for load in [body_sizes().streams, body_sizes().small] {
        let before = origin.quic_connections();
        files.check_many("testkit's origin", &base, load);
        assert_eq!(origin.quic_connections(), before + 1);
    }
}
