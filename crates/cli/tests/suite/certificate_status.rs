//! Tests of `--cert-status`: OpenSSL's responder creates OCSP responses, and OpenSSL's server
//! staples them. haul must exit with the same code as curl.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use tempfile::TempDir;

use crate::common::{eventually, installed, program, run};
use crate::servers::compare_with_curl::both;

/// The sections of OpenSSL's configuration for the certificates of the tests.
const CONFIG: &str = "[req]\ndistinguished_name = name\n[name]\n[ca]\nbasicConstraints = critical, CA:TRUE\nkeyUsage = \
                      keyCertSign\n[server]\nsubjectAltName = DNS:localhost\n[responder]\nextendedKeyUsage = \
                      OCSPSigning\n[other]\nextendedKeyUsage = serverAuth\n";

/// A certificate authority, with a server certificate that it has signed and an OCSP responder.
struct OcspAuthority {
    dir: TempDir,
}

impl OcspAuthority {
    fn new() -> Self {
        let authority = Self { dir: tempfile::tempdir().unwrap() };
        fs::write(authority.path("config"), CONFIG).unwrap();
        for name in ["ca", "stranger"] {
            authority.openssl(&format!(
                "req -x509 {KEY} -keyout {name}.key -out {name}.pem -days 30 -subj /CN={name} -config config -extensions ca"
            ));
        }
        for (serial, name, section) in
            [(16, "server", "server"), (17, "responder", "responder"), (18, "other", "other")]
        {
            authority.openssl(&format!("req {KEY} -keyout {name}.key -out {name}.csr -subj /CN={name} -config config"));
            authority.openssl(&format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -set_serial {serial} -days 30 -out {name}.pem -extfile \
                 config -extensions {section}"
            ));
        }
        authority
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn openssl(&self, words: &str) {
        let ran = run(program("openssl").args(words.split_whitespace()).current_dir(self.dir.path()));
        assert_eq!(ran.code, 0, "openssl {words}: {}", ran.stderr);
    }

    /// Writes an OCSP response about the certificate with the serial number 16 to the file `name`.
    /// `line` is the certificate's line in OpenSSL's database, `signer` is the name of the
    /// certificate and the key that sign the response, and `more` are further options of `openssl
    /// ocsp`.
    fn response(&self, name: &str, line: &str, signer: &str, more: &str) {
        fs::write(self.path("index"), format!("{line}\n")).unwrap();
        self.openssl(&format!(
            "ocsp -index index -CA ca.pem -issuer ca.pem -serial 16 -rsigner {signer}.pem -rkey {signer}.key -respout \
             {name} -no_nonce {more}"
        ));
    }

    /// Starts OpenSSL's server, which staples the OCSP response in this file; `None` staples no
    /// response.
    fn serve(&self, response: Option<&str>) -> StaplingServer {
        let socket = self.path("socket");
        let _ = fs::remove_file(&socket);
        let mut server = program("openssl");
        server.args(["s_server", "-quiet", "-www", "-unix", "socket", "-key", "server.key", "-cert", "server.pem"]);
        // curl looks for the issuer in the chain only.
        server.args(["-cert_chain", "ca.pem"]);
        server.args(response.map(|response| ["-status_file", response]).into_iter().flatten());
        let server =
            server.current_dir(self.dir.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = StaplingServer(server.spawn().unwrap());
        // The file exists before the server listens.
        eventually("the server listens", || UnixStream::connect(&socket).is_ok());
        server
    }
}

const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
const GOOD: &str = "V\t491231235959Z\t\t10\tunknown\t/CN=server";
const REVOKED: &str = "R\t491231235959Z\t200101000000Z\t10\tunknown\t/CN=server";
const OTHER_SERIAL: &str = "V\t491231235959Z\t\t11\tunknown\t/CN=other";

/// A running server of OpenSSL. Dropping it stops the server.
struct StaplingServer(Child);

impl Drop for StaplingServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs haul and curl with these options. Asserts that both end with the same exit code, and
/// returns this code.
#[track_caller]
fn ends(dir: &Path, args: &[&str]) -> i32 {
    let (socket, ca) = (dir.join("socket").display().to_string(), dir.join("ca.pem").display().to_string());
    let url = ["-s", "-o", "/dev/null", "--unix-socket", &socket, "--cacert", &ca, "https://localhost/"];
    both(&[args, &url].concat()).code
}

#[test]
fn ocsp_response_gives_the_exit_code_of_curl() {
    if installed("openssl", "OCSP responses").is_none() {
        return;
    }
    let authority = OcspAuthority::new();
    authority.response("good", GOOD, "ca", "-ndays 7");
    authority.response("delegated", GOOD, "responder", "-ndays 7");
    authority.response("revoked", REVOKED, "ca", "-ndays 7");
    authority.response("unknown", OTHER_SERIAL, "ca", "-ndays 7");
    authority.response("usage", GOOD, "other", "-ndays 7");
    authority.response("forged", GOOD, "stranger", "-ndays 7");
    for (response, code) in [
        (Some("good"), 0),
        (Some("delegated"), 0),
        (Some("revoked"), 91),
        (Some("unknown"), 91),
        (Some("usage"), 91),
        (Some("forged"), 91),
        (None, 91),
    ] {
        let _server = authority.serve(response);
        assert_eq!(ends(authority.dir.path(), &["--cert-status"]), code, "{response:?}");
        assert_eq!(ends(authority.dir.path(), &["--cert-status", "--tls-max", "1.2"]), code, "{response:?}, TLS 1.2");
        assert_eq!(ends(authority.dir.path(), &[]), 0, "{response:?}, without the option");
    }
}
