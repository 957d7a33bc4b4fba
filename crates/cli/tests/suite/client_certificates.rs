//! Tests of client certificates with nginx: keys of every algorithm, in every format that openssl
//! writes, over HTTP/1.1 and HTTP/2.

use crate::common;
use crate::servers;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{run_haul, skipped};
use servers::compare_with_curl::{both, text};
use servers::start_nginx::NginxServer;
use testkit::test_certificates::TestCertificates;

/// The key algorithms of the client certificates in these tests.
const KINDS: [&str; 4] = ["rsa", "p256", "p384", "ed25519"];

/// The ciphers that encrypt keys in PEM by RFC 1421 in these tests, as openssl names them.
const OLD_CIPHERS: [&str; 4] = ["aes128", "aes192", "aes256", "des3"];

/// Runs openssl in the directory `dir`. `words` are its arguments, separated by blanks.
fn openssl(dir: &Path, words: &str) {
    let status = Command::new("openssl")
        .args(words.split(' '))
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "openssl {words}");
}

/// Creates a certificate of nginx and a CA of client certificates in the directory `dir`. For each
/// algorithm in `kinds`, also creates a client certificate, and its key in many formats.
fn prepare(dir: &Path, kinds: &[&str]) {
    let identity = TestCertificates::generate();
    fs::write(dir.join("ca"), identity.ca_pem()).unwrap();
    fs::write(dir.join("leaf"), identity.chain_pem()).unwrap();
    fs::write(dir.join("key"), identity.key_pem()).unwrap();
    openssl(
        dir,
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout clients.key -out clients -days 30 -subj /CN=authority",
    );
    for (kind, make) in [
        ("rsa", "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out rsa.key"),
        ("p256", "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out p256.key"),
        ("p384", "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384 -out p384.key"),
        ("ed25519", "genpkey -algorithm ED25519 -out ed25519.key"),
    ]
    .iter()
    .filter(|(kind, _)| kinds.contains(kind))
    {
        openssl(dir, make);
        openssl(dir, &format!("req -new -key {kind}.key -out {kind}.csr -subj /CN={kind}"));
        openssl(
            dir,
            &format!(
                "x509 -req -in {kind}.csr -CA clients -CAkey clients.key -CAcreateserial -days 30 -out {kind}.pem"
            ),
        );
        openssl(dir, &format!("x509 -in {kind}.pem -outform DER -out {kind}.der"));
        openssl(dir, &format!("pkcs8 -topk8 -nocrypt -in {kind}.key -outform DER -out {kind}.key.der"));
        for cipher in ["aes-256-cbc", "aes-128-cbc"] {
            openssl(
                dir,
                &format!("pkcs8 -topk8 -v2 {cipher} -in {kind}.key -passout pass:open:sesame -out {kind}.{cipher}"),
            );
        }
        openssl(dir, &format!("pkcs8 -topk8 -scrypt -in {kind}.key -passout pass:open:sesame -out {kind}.scrypt"));
        openssl(
            dir,
            &format!(
                "pkcs8 -topk8 -v2 aes-256-cbc -in {kind}.key -passout pass:open:sesame -outform DER -out {kind}.sealed.der"
            ),
        );
        let both =
            [fs::read(dir.join(format!("{kind}.pem"))).unwrap(), fs::read(dir.join(format!("{kind}.key"))).unwrap()];
        fs::write(dir.join(format!("{kind}.both")), both.concat()).unwrap();
        let sealed = fs::read(dir.join(format!("{kind}.aes-256-cbc"))).unwrap();
        fs::write(dir.join(format!("{kind}.sealed.both")), [&both[0][..], &sealed].concat()).unwrap();
        write_pkcs12(dir, kind);
    }
    openssl(dir, "pkey -in rsa.key -traditional -out rsa.pkcs1");
    openssl(dir, "pkey -in p256.key -traditional -out p256.sec1");
    for cipher in OLD_CIPHERS {
        openssl(dir, &format!("rsa -in rsa.key -traditional -{cipher} -passout pass:open:sesame -out rsa.{cipher}"));
        openssl(dir, &format!("ec -in p256.key -{cipher} -passout pass:open:sesame -out p256.{cipher}"));
    }
}

/// Writes PKCS#12 files with the client certificate for this algorithm: one with current ciphers,
/// and one with the ciphers of openssl 1.
fn write_pkcs12(dir: &Path, kind: &str) {
    let export = format!("pkcs12 -export -inkey {kind}.key -in {kind}.pem -passout pass:open:sesame");
    openssl(dir, &format!("{export} -out {kind}.p12"));
    openssl(dir, &format!("{export} -certpbe PBE-SHA1-3DES -keypbe PBE-SHA1-3DES -macalg sha1 -out {kind}.old.p12"));
}

fn start(kinds: &[&str]) -> Option<NginxServer> {
    if Command::new("openssl").arg("version").stdout(Stdio::null()).status().is_err() {
        skipped("client certificates: openssl is not installed");
        return None;
    }
    NginxServer::start("client certificates", |dir| prepare(dir, kinds))
}

#[test]
fn client_keys_of_every_format_are_accepted() {
    let Some(nginx) = start(&KINDS) else { return };
    let at = |name: &str| nginx.path(name).display().to_string();
    let url = format!("https://localhost:{}/mine", nginx.tls_port);
    let ca = at("ca");
    let check = |kind: &str, options: &[&str]| {
        for (version, said) in [("--http1.1", "HTTP/1.1"), ("--http2", "HTTP/2.0")] {
            let args = [&["--cacert", &*ca, version], options, &[&*url]].concat();
            assert_eq!(text(&both(&args)), format!("{said} CN={kind}\n"), "{options:?}");
        }
    };
    for kind in KINDS {
        let (pem, key, der, key_der) = (
            at(&format!("{kind}.pem")),
            at(&format!("{kind}.key")),
            at(&format!("{kind}.der")),
            at(&format!("{kind}.key.der")),
        );
        check(kind, &["--cert", &pem, "--key", &key]);
        check(kind, &["-E", &at(&format!("{kind}.both"))]);
        check(kind, &["--cert", &der, "--cert-type", "DER", "--key", &key_der, "--key-type", "DER"]);
        check(kind, &["--cert", &pem, "--key", &key_der, "--key-type", "DER"]);
        for sealed in ["aes-256-cbc", "aes-128-cbc", "scrypt"] {
            check(kind, &["--cert", &pem, "--key", &at(&format!("{kind}.{sealed}")), "--pass", "open:sesame"]);
        }
        check(kind, &["--cert", &format!("{}:open:sesame", at(&format!("{kind}.sealed.both")))]);
        for name in ["p12", "old.p12"] {
            let file = at(&format!("{kind}.{name}"));
            check(kind, &["--cert", &file, "--cert-type", "P12", "--pass", "open:sesame"]);
            check(kind, &["--cert", &format!("{file}:open:sesame"), "--cert-type", "P12"]);
        }
    }
    for (kind, cipher) in OLD_CIPHERS.iter().flat_map(|cipher| [("rsa", cipher), ("p256", cipher)]) {
        let (pem, key) = (at(&format!("{kind}.pem")), at(&format!("{kind}.{cipher}")));
        check(kind, &["--cert", &pem, "--key", &key, "--pass", "open:sesame"]);
    }
    check("rsa", &["--cert", &at("rsa.pem"), "--key", &at("rsa.pkcs1")]);
    check("p256", &["--cert", &at("p256.pem"), "--key", &at("p256.sec1")]);
    // Debian's curl does not decrypt keys in DER; haul does, with the passphrase that works for
    // PEM.
    let args =
        ["-sS", "--cacert", &ca, "--cert", &at("p256.pem"), "--key", &at("p256.sealed.der"), "--key-type", "DER"];
    let got = run_haul(args.iter().copied().chain(["--pass", "open:sesame", &url])).text();
    assert_eq!(got, "HTTP/2.0 CN=p256\n");
}

#[test]
fn missing_or_unusable_client_certificate_is_reported() {
    let Some(nginx) = start(&["rsa", "p256"]) else { return };
    let at = |name: &str| nginx.path(name).display().to_string();
    let url = format!("https://localhost:{}/mine", nginx.tls_port);
    let ca = at("ca");
    let ran = |options: &[&str]| run_haul([&["-sS", "--cacert", &*ca], options, &[&*url]].concat());
    assert_eq!(ran(&[]).code, 22, "403 without one");
    let (pem, sealed, old) = (at("p256.pem"), at("p256.aes-256-cbc"), at("rsa.aes256"));
    for (options, says) in [
        (&["--cert", &*pem, "--key", &sealed][..], "passphrase"),
        (&["--cert", &pem, "--key", &sealed, "--pass", "wrong"], "passphrase"),
        (&["--cert", &at("rsa.pem"), "--key", &old], "passphrase"),
        (&["--cert", &at("rsa.pem"), "--key", &old, "--pass", "wrong"], "passphrase"),
        (&["--cert", &at("rsa.p12"), "--cert-type", "P12"], "passphrase"),
        (&["--cert", &at("rsa.old.p12"), "--pass", "wrong"], "passphrase"),
        (&["--cert", &pem, "--key", &at("rsa.key")], "client certificate"),
        (&["--cert", &pem], "client key"),
        (&["--cert", &at("nobody")], "nobody"),
    ] {
        let got = ran(options);
        let line = got.failed(58);
        assert!(line.contains(says) && !line.contains("sesame") && !line.contains("wrong"), "{options:?}: {line}");
    }
    // A connection with a certificate is not another request's: the first is let in, the second is
    // not.
    let args = [
        "-sS",
        "--cacert",
        &ca,
        "--cert",
        &pem,
        "--key",
        &at("p256.key"),
        &url,
        "--next",
        "-sS",
        "--cacert",
        &ca,
        &url,
    ];
    let got = run_haul(args);
    assert_eq!((got.code, String::from_utf8_lossy(&got.stdout).lines().count()), (22, 1), "{}", got.stderr);
}
