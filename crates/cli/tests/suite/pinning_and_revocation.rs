//! Tests of `--pinnedpubkey` and `--crlfile`: haul accepts and refuses the same keys and
//! certificates as curl.

use crate::common;
use crate::servers;

use std::fs;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use common::{curl, run_haul};
use servers::compare_with_curl::{both, text};
use tempfile::TempDir;
use testkit::origin::Origin;
use testkit::test_certificates::TestCertificates;

struct TlsSite {
    origin: Origin,
    dir: TempDir,
}

impl TlsSite {
    fn of(identity: &TestCertificates) -> Self {
        let site = Self {
            origin: Origin::builder().identity(identity.clone()).start().unwrap(),
            dir: tempfile::tempdir().unwrap(),
        };
        site.write("ca", identity.ca_pem());
        site
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.dir.path().join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// Runs haul and curl with these options. Asserts that both end with the same exit code, and
    /// returns this code.
    #[track_caller]
    fn ends(&self, args: &[&str]) -> i32 {
        let (ca, url) = (self.dir.path().join("ca").display().to_string(), self.origin.https_url("/small"));
        let ran = both(&[&["--cacert", &ca][..], args, &[&url]].concat());
        if ran.code == 0 {
            assert_eq!(text(&ran), "small\n");
        }
        ran.code
    }
}

fn pin(key: &[u8]) -> String {
    format!("sha256//{}", STANDARD.encode(digest(&SHA256, key)))
}

fn pem(key: &[u8]) -> String {
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(key))
}

#[test]
fn pinned_key_is_checked_in_addition_to_certificate() {
    let (identity, other) = (TestCertificates::generate(), TestCertificates::generate());
    let site = TlsSite::of(&identity);
    let (right, wrong) = (pin(identity.public_key()), pin(other.public_key()));
    let either = format!("{wrong};{right}");
    for (given, code) in [(&right, 0), (&wrong, 90), (&either, 0)] {
        assert_eq!(site.ends(&["--pinnedpubkey", given]), code, "{given}");
        assert_eq!(site.ends(&["-k", "--pinnedpubkey", given]), code, "{given}, unverified");
        assert_eq!(site.ends(&["--tls-max", "1.2", "--pinnedpubkey", given]), code, "{given}, TLS 1.2");
    }
    for (name, content, code) in [
        ("der", identity.public_key().to_vec(), 0),
        ("pem", pem(identity.public_key()).into_bytes(), 0),
        ("other.der", other.public_key().to_vec(), 90),
        ("other.pem", pem(other.public_key()).into_bytes(), 90),
        ("nothing", Vec::new(), 90),
        ("a certificate", identity.chain_pem().into_bytes(), 90),
    ] {
        assert_eq!(site.ends(&["--pinnedpubkey", &site.write(name, content)]), code, "{name}");
    }
    assert_eq!(site.ends(&["--pinnedpubkey", "/nonexistent/key"]), 90);
    // The right key does not replace a trusted certificate.
    let stranger = site.write("stranger", other.ca_pem());
    assert_eq!(site.ends(&["--cacert", &stranger, "--pinnedpubkey", &right]), 60);
}

#[test]
fn invalid_pin_is_an_error_only_for_tls() {
    let site = TlsSite::of(&TestCertificates::generate());
    let url = site.origin.url("/small");
    for pin in ["sha256//AAAA", "/nonexistent/key"] {
        assert_eq!(curl(&["-sS", "--pinnedpubkey", pin, &url]).ok(), b"small\n", "{pin}");
        let ran = curl(&["-sS", "-k", "--pinnedpubkey", pin, &site.origin.https_url("/small")]);
        assert_eq!(ran.failed(90), "curl: (90) SSL: public key does not match pinned public key");
        assert_eq!(run_haul(["--pinnedpubkey", pin, &url]).code, 90, "under haul's own name it is a mistake");
    }
}

#[test]
fn revoked_certificate_is_refused() {
    let (identity, other) = (TestCertificates::generate(), TestCertificates::generate());
    let site = TlsSite::of(&identity);
    let unrevoked = site.write("unrevoked", identity.revocation_list(false));
    let revoked = site.write("revoked", identity.revocation_list(true));
    assert_eq!(site.ends(&["--crlfile", &unrevoked]), 0);
    assert_eq!(site.ends(&["--crlfile", &revoked]), 60);
    assert_eq!(site.ends(&["-k", "--crlfile", &revoked]), 0);
    // A list of the certificate's issuer is required.
    assert_eq!(site.ends(&["--crlfile", &site.write("other", other.revocation_list(false))]), 60);
    let both = identity.revocation_list(true) + &other.revocation_list(false);
    assert_eq!(site.ends(&["--crlfile", &site.write("both", both)]), 60);
    assert_eq!(site.ends(&["--crlfile", "/nonexistent/list"]), 82);
    assert_eq!(site.ends(&["--crlfile", &site.write("garbage", "no list")]), 82);
}
