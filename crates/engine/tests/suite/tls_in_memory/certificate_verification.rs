//! Tests of the verification of certificates, and of the replacement of certificate files while in
//! use.

use std::time::{Duration, Instant};

use haul::ErrorKind;
use haul::net::tls::{TlsContexts, TlsOptions};
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose, SerialNumber,
    date_time_ymd,
};

use super::tls_pair::{self, CertificateAuthority, ServerIdentity, ServerSetup, TlsPair, options};

type CertificateParamsChange = fn(&mut CertificateParams);

/// Returns the error with which a client refuses a server with this certificate. Returns `None` if
/// it accepts the server.
fn refusal(identity: ServerIdentity, options: &TlsOptions) -> Option<String> {
    let error = TlsPair::new(&ServerSetup::new(identity), options, "localhost").complete_handshake().err()?;
    assert_eq!(error.kind(), ErrorKind::PeerCertificate, "{error}");
    Some(error.to_string())
}

#[test]
fn unsuitable_certificate_authorities_are_refused() {
    let changes: [(&str, CertificateParamsChange); 8] = [
        ("expired", |ca| ca.not_after = date_time_ymd(2002, 1, 1)),
        ("not valid yet", |ca| (ca.not_before, ca.not_after) = (date_time_ymd(3000, 1, 1), date_time_ymd(3001, 1, 1))),
        ("no CA's", |ca| ca.is_ca = IsCa::ExplicitNoCa),
        ("no CA's", |ca| ca.is_ca = IsCa::NoCa),
        ("may not sign", |ca| ca.key_usages = vec![KeyUsagePurpose::CrlSign]),
        ("not for servers", |ca| ca.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]),
        ("unknown critical extension", |ca| {
            let mut extension = CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0]);
            extension.set_criticality(true);
            ca.custom_extensions.push(extension);
        }),
        ("cannot be read", |ca| {
            // Name constraints without a name.
            ca.custom_extensions.push(CustomExtension::from_oid_content(&[2, 5, 29, 30], vec![0x30, 0]));
        }),
    ];
    for (why, change) in changes {
        let authority = CertificateAuthority::with("test authority", change);
        let refused = refusal(authority.issue("localhost"), &options(&authority)).expect(why);
        assert!(refused.contains(why), "{why}: {refused}");
    }
}

#[test]
fn suitable_certificate_authorities_are_accepted() {
    let changes: [CertificateParamsChange; 5] = [
        |ca| ca.key_usages = vec![KeyUsagePurpose::KeyCertSign],
        |ca| ca.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth],
        |ca| ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0)),
        // Longer than RFC 5280 section 4.1.2.2 allows, but in use.
        |ca| ca.serial_number = Some(SerialNumber::from(vec![1; 40])),
        |ca| ca.custom_extensions.push(CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0])),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let authority = CertificateAuthority::with("test authority", change);
        assert_eq!(refusal(authority.issue("localhost"), &options(&authority)), None, "{number}");
    }
}

#[test]
fn path_length_of_trusted_authority_is_enforced() {
    for (most, is_good) in [(1, true), (0, false)] {
        let root = CertificateAuthority::with("root", |ca| ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(most)));
        let between = root.below("between", |_| {});
        let refused = refusal(between.issue("localhost").shown_with(&between), &options(&root));
        assert_eq!(refused.is_none(), is_good, "{refused:?}");
    }
}

#[test]
fn intermediate_without_the_right_to_sign_is_refused() {
    let root = CertificateAuthority::new();
    let between = root.below("between", |ca| ca.key_usages = vec![KeyUsagePurpose::DigitalSignature]);
    let refused = refusal(between.issue("localhost").shown_with(&between), &options(&root)).expect("refused");
    assert!(refused.contains("may not sign"), "{refused}");
}

#[test]
fn authority_without_crl_sign_usage_is_refused() {
    let usages = [KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    for count in [1, 2] {
        let authority = CertificateAuthority::with("issuer of lists", |ca| ca.key_usages = usages[..count].to_vec());
        let list = authority.revocation_list("issuer of lists");
        let mut options = options(&authority);
        options.crl_file = Some(list.path().to_owned());
        let refused = refusal(authority.issue("localhost"), &options);
        assert_eq!(refused.is_none(), count == 2, "{refused:?}");
        assert!(refused.is_none_or(|refused| refused.contains("revocation lists")));
        // A list of another issuer has no effect.
        let other = CertificateAuthority::named("another").revocation_list("another");
        options.crl_file = Some(other.path().to_owned());
        assert_eq!(refusal(authority.issue("localhost"), &options), None);
    }
}

#[test]
fn renewed_authority_is_used_beside_expired_one() {
    let authority = CertificateAuthority::with("test authority", |ca| ca.not_after = date_time_ymd(2002, 1, 1));
    let server = authority.issue("localhost");
    assert!(refusal(server.clone(), &options(&authority)).is_some());
    authority.renew(|_| {});
    assert_eq!(refusal(server, &options(&authority)), None);
}

#[test]
fn issued_server_certificate_needs_key_usage_of_tls() {
    let authority = CertificateAuthority::new();
    for (is_good, usages) in [
        (true, vec![KeyUsagePurpose::DigitalSignature]),
        (true, vec![KeyUsagePurpose::KeyEncipherment]),
        (false, vec![KeyUsagePurpose::KeyCertSign]),
        (false, vec![KeyUsagePurpose::DataEncipherment]),
    ] {
        let server = authority.issue_with("localhost", |own| own.key_usages.clone_from(&usages));
        assert_eq!(refusal(server, &options(&authority)).is_none(), is_good, "{usages:?}");
    }
}

#[test]
fn issued_ca_certificate_of_server_is_named_as_such() {
    let authority = CertificateAuthority::new();
    let server = authority.issue_with("localhost", |own| {
        own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        own.distinguished_name.push(rcgen::DnType::CommonName, "server");
    });
    let refused = refusal(server, &options(&authority)).unwrap();
    assert!(refused.contains("it is a CA's, and a server may use one only"), "{refused}");
}

#[test]
fn listed_server_certificate_needs_server_usage() {
    let changes: [(bool, CertificateParamsChange); 6] = [
        (true, |own| own.key_usages = vec![KeyUsagePurpose::DigitalSignature]),
        (true, |own| own.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]),
        (true, |own| own.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::KeyEncipherment]),
        (false, |own| own.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign]),
        (false, |own| own.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]),
        (false, |own| own.extended_key_usages = vec![ExtendedKeyUsagePurpose::Any]),
    ];
    for is_ca in [true, false] {
        for (number, (is_good, change)) in changes.into_iter().enumerate() {
            let own = tls_pair::self_signed_with("localhost", |own| {
                own.is_ca = if is_ca { IsCa::Ca(BasicConstraints::Unconstrained) } else { IsCa::ExplicitNoCa };
                change(own);
            });
            let refused = refusal(own.identity(), &own.trusted());
            assert_eq!(refused.is_none(), is_good, "{number}, a CA: {is_ca}: {refused:?}");
        }
    }
}

#[test]
fn name_constraints_apply_despite_long_serial_number() {
    let bound = CertificateAuthority::with("bound", |ca| {
        ca.serial_number = Some(SerialNumber::from(vec![1; 40]));
        ca.name_constraints = Some(tls_pair::permitting("example.test"));
    });
    let mut options = options(&bound);
    options.common_name = true;
    assert!(refusal(bound.issue_by_subject("localhost", &[]), &options).is_some());
    let free = CertificateAuthority::with("free", |ca| ca.serial_number = Some(SerialNumber::from(vec![1; 40])));
    let mut options = tls_pair::options(&free);
    options.common_name = true;
    assert_eq!(refusal(free.issue_by_subject("localhost", &[]), &options), None);
}

/// Waits until `holds` returns true. Tests need this because changed certificate files are read
/// again only after a second.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn replaced_ca_file_is_used_by_new_connections() {
    let directory = tempfile::tempdir().unwrap();
    let (file, next) = (directory.path().join("ca.pem"), directory.path().join("next"));
    let (old, new) = (CertificateAuthority::named("old"), CertificateAuthority::named("new"));
    std::fs::write(&file, old.pem()).unwrap();
    let contexts = TlsContexts::default();
    let mut options = TlsOptions::default();
    options.ca_file = Some(file.clone());
    let is_trusted = |authority: &CertificateAuthority| {
        let setup = ServerSetup::new(authority.issue("localhost"));
        TlsPair::within(&setup, &contexts, &options, "localhost")
            .is_ok_and(|mut pair| pair.complete_handshake().is_ok())
    };
    assert!(is_trusted(&old) && !is_trusted(&new));
    std::fs::write(&next, new.pem()).unwrap();
    std::fs::rename(&next, &file).unwrap();
    eventually("the new file is read", || is_trusted(&new));
    assert!(!is_trusted(&old));
    // The file is overwritten in place.
    std::fs::write(&file, old.pem() + &new.pem()).unwrap();
    eventually("the file is read again", || is_trusted(&old));
    // An invalid file is an error, and does not leave the old certificates in force.
    std::fs::write(&file, "gone").unwrap();
    eventually("the file is an error", || contexts.context(&options).is_err());
    std::fs::write(&file, new.pem()).unwrap();
    assert!(is_trusted(&new), "an error is not remembered");
}

#[test]
fn replaced_ca_directory_and_revocation_list_are_used() {
    let directory = tempfile::tempdir().unwrap();
    let [authorities, list, next] = ["authorities", "list", "next"].map(|name| directory.path().join(name));
    let contexts = TlsContexts::default();
    let accepts = |options: &TlsOptions, authority: &CertificateAuthority| {
        let setup = ServerSetup::new(authority.issue("localhost"));
        TlsPair::within(&setup, &contexts, options, "localhost").is_ok_and(|mut pair| pair.complete_handshake().is_ok())
    };
    let (old, new) = (CertificateAuthority::named("old"), CertificateAuthority::named("new"));
    std::fs::create_dir(&authorities).unwrap();
    std::fs::write(authorities.join("ca.pem"), old.pem()).unwrap();
    let mut of_directory = TlsOptions::default();
    of_directory.ca_path = Some(authorities.clone());
    assert!(accepts(&of_directory, &old) && !accepts(&of_directory, &new));
    std::fs::write(&next, new.pem()).unwrap();
    std::fs::rename(&next, authorities.join("ca.pem")).unwrap();
    eventually("the directory is read again", || accepts(&of_directory, &new));
    // A list of another issuer has no effect. The issuer's own list is refused, since the issuer
    // may not sign lists.
    let issuer = CertificateAuthority::with("issuer", |ca| ca.key_usages = vec![KeyUsagePurpose::KeyCertSign]);
    let mut with_list = options(&issuer);
    with_list.crl_file = Some(list.clone());
    std::fs::copy(CertificateAuthority::named("another").revocation_list("another").path(), &list).unwrap();
    assert!(accepts(&with_list, &issuer));
    std::fs::copy(issuer.revocation_list("issuer").path(), &next).unwrap();
    std::fs::rename(&next, &list).unwrap();
    eventually("the list is read again", || !accepts(&with_list, &issuer));
}

#[test]
fn replaced_client_certificate_is_used_once_key_matches() {
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = (directory.path().join("me.pem"), directory.path().join("me.key"));
    let authority = CertificateAuthority::new();
    let (old, new) = (authority.issue("old"), authority.issue("new"));
    let contexts = TlsContexts::default();
    let mut options = options(&authority);
    options.identity =
        Some(haul::net::tls::ClientCertificateFiles { certificate: certificate.clone(), key: Some(key.clone()) });
    old.write(&certificate, &key);
    let setup = ServerSetup { asks: Some(authority.der()), ..ServerSetup::new(authority.issue("localhost")) };
    let shown = || {
        let mut pair = TlsPair::within(&setup, &contexts, &options, "localhost").unwrap();
        pair.complete_handshake().unwrap();
        pair.shown_by_client()
    };
    assert!(shown() == old.der());
    // Between the two writes, certificate and key do not match.
    std::fs::write(&certificate, new.pem()).unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    assert!(shown() == old.der(), "the last good one is used meanwhile");
    new.write(&certificate, &key);
    eventually("the new one is shown", || shown() == new.der());
}
