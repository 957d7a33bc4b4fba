//! Tests of client certificates: they are sent on request, are part of the pool key, and are named
//! in errors if unusable.

use crate::common;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use common::{DRIVERS, DriverKind};
use haul::net::pool::ConnectionKey;
use haul::net::tls::{ClientCertificateFiles, Pem};
use haul::{Client, ErrorKind, RequestOptions, Target};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

struct ClientAuthServer {
    place: tempfile::TempDir,
    url: String,
}

fn self_signed(name: &str) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

impl ClientAuthServer {
    /// Starts a server that accepts only the client certificate with the name `client`.
    fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        let ((server, server_key), (client, client_key)) = (self_signed("localhost"), self_signed("client"));
        for (name, text) in [("ca", &server), ("cert", &client), ("key", &client_key)] {
            fs::write(place.path().join(name), text).unwrap();
        }
        fs::write(place.path().join("both"), [client.as_str(), &client_key].concat()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(client.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(server.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(server_key.as_bytes()).unwrap(),
            )
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
        let config = Arc::new(config);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                thread::spawn(move || {
                    let mut stream = StreamOwned::new(connection, stream.unwrap());
                    let mut buffer = [0; 4096];
                    if stream.read(&mut buffer).is_ok_and(|n| n > 0) {
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nme");
                        let _ = stream.read(&mut buffer);
                    }
                });
            }
        });
        Self { place, url }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn options(&self, certificate: Option<&Path>, key: Option<&Path>) -> RequestOptions {
        let mut options = RequestOptions::default();
        options.tls.ca_file = Some(self.path("ca"));
        let key = key.map(Path::to_owned);
        options.tls.identity =
            certificate.map(|certificate| ClientCertificateFiles { certificate: certificate.to_owned(), key });
        options
    }
}

#[test]
fn client_certificate_is_sent_when_requested() {
    let rig = ClientAuthServer::start();
    for driver in DRIVERS {
        let client = Client::new();
        let apart = rig.options(Some(&rig.path("cert")), Some(&rig.path("key")));
        let together = rig.options(Some(&rig.path("both")), None);
        let mut in_memory = RequestOptions::default();
        in_memory.tls.ca_pem = Some(Pem::new(fs::read(rig.path("ca")).unwrap()));
        in_memory.tls.identity_pem = Some(Pem::new(fs::read(rig.path("both")).unwrap()));
        assert!(!format!("{in_memory:?}").contains("BEGIN"), "{in_memory:?}");
        for options in [&apart, &together, &in_memory] {
            assert_eq!(driver.get(&client, &rig.url, options).ok(), b"me", "{driver:?}");
        }
        // A request without a certificate does not use that connection.
        let nobody = rig.options(None, None);
        assert_ne!(driver.get(&client, &rig.url, &nobody).exit, 0, "{driver:?}");
    }
}

/// Checks that a request is not retried if the server refuses the client certificate. In TLS 1.3,
/// the refusal arrives only after the handshake, and a retry would be refused, too.
#[test]
fn refused_client_certificate_is_not_retried() {
    let rig = ClientAuthServer::start();
    for driver in DRIVERS {
        let mut options = rig.options(None, None);
        options.retry = common::retrying(3).retry;
        let got = driver.get(&Client::new(), &rig.url, &options);
        assert_eq!((got.exit, got.facts.connects), (56, 1), "{driver:?}: {}", got.message);
        assert!(got.message.contains("client certificate"), "{}", got.message);
    }
}

#[test]
fn certificate_refusal_after_the_handshake_is_a_tls_error() {
    let rig = ClientAuthServer::start();
    let client = Client::builder().options(|options| *options = rig.options(None, None)).build();
    let error = client.get(&rig.url).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Receive);
    assert!(error.is_tls() && !error.is_connect(), "the request was sent: {error}");
}

#[test]
fn client_certificate_is_part_of_the_pool_key() {
    let rig = ClientAuthServer::start();
    let target = Target::parse(&rig.url).unwrap();
    let (me, nobody) = (rig.options(Some(&rig.path("both")), None), rig.options(None, None));
    let key = ConnectionKey::new(&target, &me);
    assert!(
        key != ConnectionKey::new(&target, &nobody)
            && key.matches_request(&target, &me)
            && !key.matches_request(&target, &nobody)
    );
}

#[test]
fn unusable_client_certificate_error_names_the_cause() {
    let rig = ClientAuthServer::start();
    let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    fs::write(rig.path("locked"), locked).unwrap();
    fs::write(rig.path("empty"), "").unwrap();
    fs::write(rig.path("other"), self_signed("x").1).unwrap();
    for (certificate, key, why) in [
        ("cert", "locked", "passphrase"),
        ("cert", "missing", "No such file"),
        ("cert", "empty", "key"),
        ("empty", "key", "there is none"),
        ("cert", "other", "cert"),
    ] {
        let options = rig.options(Some(&rig.path(certificate)), Some(&rig.path(key)));
        let got = DriverKind::Blocking.get(&Client::new(), &rig.url, &options);
        assert_eq!((got.kind, got.exit), (Some(ErrorKind::ClientCertificate), 58), "{certificate} {key}");
        assert!(got.message.contains(why), "{certificate} {key}: {}", got.message);
    }
}

#[test]
fn options_without_secrets_have_no_client_certificate() {
    let mut options = RequestOptions::default();
    options.tls.identity_pem = Some(Pem::new(&b"me"[..]));
    options.tls.identity = Some(ClientCertificateFiles { certificate: "me".into(), key: None });
    let secretless = options.without_secrets();
    assert!(secretless.tls.identity.is_none() && secretless.tls.identity_pem.is_none());
}
