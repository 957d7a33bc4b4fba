//! Tests of HTTP/2 with nginx, nghttpd, Apache and Caddy, over TLS and with prior knowledge.
//! Bodies, the output of `-w` and uploads must be the same with haul and with curl. Servers that
//! are not installed are skipped.

use crate::common;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use common::third_party_servers::{ExternalServer, found, is_root, make_open};
use common::{CommandOutput, haul, installed, list, program, run, run_haul, skipped};
use testkit::byte_pattern::BytePattern;
use testkit::origin::Origin;
use testkit::test_certificates::TestCertificates;
use testkit::unused_port::unused_port;

const KNOWING: &str = "--http2-prior-knowledge";
/// The format of `-w` whose output must be the same for haul and curl. It has no values that depend
/// on time, local ports, the header fields of an implementation, or curl's version.
const FIGURES: &str = "\n%{http_version} %{response_code} %{size_download} %{size_upload} %{size_header} \
                       %{num_connects} %{num_redirects} %{method} %{url_effective} %{urlnum} %{exitcode} \
                       %{errormsg} %{ssl_verify_result} %{remote_ip} %{remote_port} %{content_type} %{redirect_url} \
                       %header{content-length} %header{etag} %header{last-modified}\n";

/// A directory with the files that a server serves, and with its certificate for localhost.
struct ServedFiles {
    dir: tempfile::TempDir,
    sizes: [usize; 6],
}

impl ServedFiles {
    fn new() -> ServedFiles {
        // 147,456 is the size of haul's initial windows, so that body uses all of them.
        let files = ServedFiles { dir: tempfile::tempdir().unwrap(), sizes: [0, 1, 300, 100_000, 147_456, 30_000_000] };
        let identity = TestCertificates::generate();
        for name in ["root", "dav"] {
            fs::create_dir(files.path().join(name)).unwrap();
        }
        for size in files.sizes {
            let path = files.path().join(format!("root/{size}"));
            fs::write(&path, BytePattern::new(1).slice(0, size)).unwrap();
            // Apache calls the validator of a file of this second weak, and a second later strong.
            let old = SystemTime::now() - Duration::from_secs(60);
            fs::File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
        }
        for (name, pem) in
            [("ca", identity.ca_pem().to_owned()), ("leaf", identity.chain_pem()), ("key", identity.key_pem())]
        {
            fs::write(files.path().join(name), pem).unwrap();
        }
        files
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Uploads content to `url`, with and without a known length, and checks that it arrives
    /// unchanged. `arrived` gets haul's output, and returns the bytes that the server received.
    fn check_uploads(&self, what: &str, url: &str, args: &[&str], arrived: impl Fn(&[u8]) -> Vec<u8>) {
        let content = BytePattern::new(2).slice(0, upload_size());
        let file = self.path().join("upload");
        fs::write(&file, &content).unwrap();
        let (ca, file) = (self.path().join("ca"), file.to_str().unwrap());
        for (given, from) in [(file, None), ("-", Some(file))] {
            let said = "%{stderr}%{http_version} %{exitcode}";
            let all = [args, &["-s", "--cacert", ca.to_str().unwrap(), "-T", given, "-w", said, url]].concat();
            let mut command = haul(&all);
            if let Some(from) = from {
                command.stdin(fs::File::open(from).unwrap());
            }
            let ran = run(&mut command);
            assert_eq!((ran.code, ran.stderr.as_str()), (0, "2 0"), "{what}, {given}");
            assert!(arrived(&ran.stdout) == content, "{what}, {given}");
        }
        // Uploads once more over the existing file: the `-w` values are curl's.
        let Some(curl) = installed("curl", what) else { return };
        let all = [args, &["-s", "--cacert", ca.to_str().unwrap(), "-T", file, "-o", "/dev/null", "-w", FIGURES, url]];
        let (got, expected) = (as_curl(&all.concat()), run(program(curl).args(all.concat())));
        assert_eq!(got.text(), expected.text(), "{what}");
    }

    /// Fetches all files of the server, in separate runs and in one run. Checks that haul and curl
    /// print the same bodies and the same output of `-w`.
    fn check(&self, what: &str, port: u16, args: &[&str], scheme: &str) {
        let curl = installed("curl", what);
        let ca = self.path().join("ca");
        let base = format!("{scheme}://localhost:{port}");
        let common = [&["-s", "--cacert", ca.to_str().unwrap()], args].concat();
        for size in self.sizes {
            let url = format!("{base}/{size}");
            for more in [&[][..], &["-I"]] {
                let args = [&common[..], more, &["-w", FIGURES, &url]].concat();
                let got = as_curl(&args).ok();
                let (body, figures) = if more.is_empty() { got.split_at(size) } else { (&[][..], &got[..]) };
                if more.is_empty() {
                    assert!(body == BytePattern::new(1).slice(0, size), "{what}, {size}");
                    let begin = format!("\n2 200 {size} 0 ");
                    assert!(figures.starts_with(begin.as_bytes()), "{what}: {}", String::from_utf8_lossy(figures));
                }
                if let Some(curl) = curl {
                    let expected = run(program(curl).args(&args)).ok();
                    let expected = String::from_utf8_lossy(&expected[body.len()..]);
                    assert_eq!(
                        without_date(&String::from_utf8_lossy(figures)),
                        without_date(&expected),
                        "{what}, {size}"
                    );
                }
            }
        }
        // Ten times as many as the servers take at once.
        let many = list(self.path(), "many", (0..1_000).map(|n| format!("{base}/{}", self.sizes[n % 4])));
        let expected: Vec<u8> = (0..1_000).flat_map(|n| BytePattern::new(1).slice(0, self.sizes[n % 4])).collect();
        let all = ["--parallel-max", "1000", "--input-file", many.to_str().unwrap()];
        assert!(run_haul([&common[..], &all].concat()).ok() == expected, "{what}: many");
        let missing = format!("{base}/missing");
        let ran = run_haul(common.iter().copied().chain([&*missing]));
        assert_eq!(ran.code, 22, "{what}: {}", ran.stderr);
    }
}

#[test]
fn http2_with_nginx_matches_curl() {
    let Some(nginx) = found("nginx", "HTTP/2") else { return };
    let files = ServedFiles::new();
    let (port, plain) = (unused_port(), unused_port());
    let dir = files.path().display();
    let user = if is_root() { "user root;" } else { "" };
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {dir}/{name};"))
        .concat();
    let conf = format!(
        "{user} daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/log; events {{}} http {{ access_log off; \
         {temporary} server {{ listen 127.0.0.1:{port} ssl http2; listen 127.0.0.1:{plain} http2; root {dir}/root; \
         http2_max_concurrent_streams 100; client_max_body_size 0; dav_methods PUT; ssl_certificate {dir}/leaf; ssl_certificate_key {dir}/key; }} }}"
    );
    let file = files.path().join("conf");
    fs::write(&file, conf).unwrap();
    let mut command = Command::new(nginx);
    command.arg("-c").arg(&file).arg("-e").arg(files.path().join("log"));
    let _server = ExternalServer::start(&mut command, port);
    for (what, port, args, scheme) in
        [("nginx over TLS", port, ["--http2"], "https"), ("nginx", plain, [KNOWING], "http")]
    {
        files.check(what, port, &args, scheme);
        let put = files.path().join("root/put");
        let arrived = |_: &[u8]| fs::read(&put).unwrap();
        files.check_uploads(what, &format!("{scheme}://localhost:{port}/put"), &args, arrived);
    }
}

#[test]
fn http2_with_nghttpd_matches_curl() {
    let Some(nghttpd) = found("nghttpd", "HTTP/2") else { return };
    let files = ServedFiles::new();
    for (scheme, knows) in [("https", false), ("http", true)] {
        let port = unused_port();
        let mut command = Command::new(&nghttpd);
        command.args(["-a", "127.0.0.1", "-m", "100", "--echo-upload", "--trailer", "x-end: yes", "-d"]);
        command.arg(files.path().join("root"));
        command.arg(port.to_string());
        if knows {
            command.arg("--no-tls");
        } else {
            command.args([files.path().join("key"), files.path().join("leaf")]);
        }
        let _server = ExternalServer::start(&mut command, port);
        let args = [if knows { KNOWING } else { "--http2" }];
        files.check("nghttpd", port, &args, scheme);
        files.check_uploads("nghttpd", &format!("{scheme}://localhost:{port}/echo"), &args, <[u8]>::to_vec);
    }
}

#[test]
fn http2_with_apache2_matches_curl() {
    let Some(apache) = found("apache2", "HTTP/2") else { return };
    let modules = Path::new("/usr/lib/apache2/modules");
    if !modules.join("mod_http2.so").exists() {
        return skipped("apache2: it has no mod_http2");
    }
    let files = ServedFiles::new();
    let (port, plain) = (unused_port(), unused_port());
    let dir = files.path().display();
    let load: String =
        ["mpm_event", "authz_core", "http2", "ssl", "socache_shmcb", "unixd", "dav", "dav_fs", "setenvif"]
            .iter()
            .filter(|name| modules.join(format!("mod_{name}.so")).exists())
            .map(|name| format!("LoadModule {name}_module {}/mod_{name}.so\n", modules.display()))
            .collect();
    let conf = format!(
        "{load}ServerRoot {dir}\nPidFile {dir}/pid\nErrorLog {dir}/log\nServerName localhost\nListen 127.0.0.1:{port}\n\
         Listen 127.0.0.1:{plain}\nDefaultRuntimeDir {dir}\nDocumentRoot {dir}/root\nProtocols h2 h2c\n\
         H2MaxSessionStreams 100\nDavLockDB {dir}/dav/lock\n<VirtualHost *:{port}>\nSSLEngine on\n\
         SSLCertificateFile {dir}/leaf\nSSLCertificateKeyFile {dir}/key\n</VirtualHost>\n<Directory {dir}/root>\n\
         Require all granted\nDav On\n</Directory>\n"
    );
    let file = files.path().join("conf");
    fs::write(&file, conf).unwrap();
    make_open(files.path());
    let mut command = Command::new(apache);
    command.arg("-f").arg(&file).args(["-X"]);
    let _server = ExternalServer::start(&mut command, port);
    for (what, port, args, scheme) in
        [("apache2 over TLS", port, ["--http2"], "https"), ("apache2", plain, [KNOWING], "http")]
    {
        files.check(what, port, &args, scheme);
        let put = files.path().join("root/put");
        let arrived = |_: &[u8]| fs::read(&put).unwrap();
        files.check_uploads(what, &format!("{scheme}://localhost:{port}/put"), &args, arrived);
    }
}

#[test]
fn http2_with_caddy_matches_curl() {
    let Some(caddy) = found("caddy", "HTTP/2") else { return };
    let files = ServedFiles::new();
    let (port, plain) = (unused_port(), unused_port());
    // Uploads go on to an origin of ours, by HTTP/1.1.
    let origin = Origin::builder().start().unwrap();
    let dir = files.path().display();
    let site = format!(
        "root * {dir}/root\nhandle /echo {{\nreverse_proxy {}\n}}\nhandle {{\nfile_server\n}}\n",
        origin.http_addr()
    );
    let conf = format!(
        "{{\nadmin off\nauto_https off\nstorage file_system {dir}/caddy\nservers {{\nprotocols h1 h2 h2c\n}}\n}}\n\
         https://localhost:{port} {{\nbind 127.0.0.1\ntls {dir}/leaf {dir}/key\n{site}}}\n\
         http://localhost:{plain} {{\nbind 127.0.0.1\n{site}}}\n"
    );
    let file = files.path().join("Caddyfile");
    fs::write(&file, conf).unwrap();
    let mut command = Command::new(caddy);
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file).env("HOME", files.path());
    let _server = ExternalServer::start(&mut command, port);
    for (what, port, args, scheme) in
        [("caddy over TLS", port, ["--http2"], "https"), ("caddy", plain, [KNOWING], "http")]
    {
        files.check(what, port, &args, scheme);
        let arrived = |_: &[u8]| {
            let body = origin.log()[0].body.clone();
            origin.forget();
            body.to_vec()
        };
        files.check_uploads(what, &format!("{scheme}://localhost:{port}/echo"), &args, arrived);
    }
}

/// The number of bytes that the tests upload: 10 MB, or the value of the environment variable
/// `HAUL_TEST_UPLOAD`. (100 MB take long in a debug build.)
fn upload_size() -> usize {
    std::env::var("HAUL_TEST_UPLOAD").map_or(10_000_000, |size| size.parse().expect("a number of bytes"))
}

/// Returns the text of a response head without its field `Date`, which differs in each run.
fn without_date(head: &str) -> String {
    head.lines().filter(|line| !line.starts_with("date:")).collect::<Vec<_>>().join("\n")
}

/// Runs haul with the curl persona, which does not split large bodies into parts.
fn as_curl(args: &[&str]) -> CommandOutput {
    run_haul(["curl"].iter().chain(args))
}
