use der::TagNumber;
use der::asn1::OctetString;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, SigningKey};
use rustls::crypto::aws_lc_rs;

use super::*;

/// An OCSP response that OpenSSL's responder made. It is valid for seven days from [`MADE`] on, and
/// confirms the certificate `server.der`, which `ca.der` has issued.
const RESPONSE: &[u8] = include_bytes!("response.der");
const SERVER: &[u8] = include_bytes!("server.der");
const CA: &[u8] = include_bytes!("ca.der");
/// The time when [`RESPONSE`] was made, in seconds since the epoch: 2026-11-27 14:12:20 UTC.
const MADE: u64 = 1_795_788_740;
const DAY: u64 = 86_400;

fn checked(response: &[u8], server: &[u8], now: u64) -> Result<(), StatusFault> {
    let (server, ca) = (CertificateDer::from(server), CertificateDer::from(CA));
    let issuer = webpki::anchor_from_trusted_cert(&ca).unwrap();
    let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now));
    check(response, &EndEntityCert::try_from(&server).unwrap(), &issuer, &algorithms, now)
}

#[test]
fn ocsp_response_is_accepted_only_while_valid() {
    for (now, expected) in [
        (MADE, Ok(())),
        (MADE - CLOCK_SKEW, Ok(())),
        (MADE - CLOCK_SKEW - 1, Err(StatusFault::NotYetValid)),
        (MADE + 7 * DAY + CLOCK_SKEW, Ok(())),
        (MADE + 7 * DAY + CLOCK_SKEW + 1, Err(StatusFault::Expired)),
        (0, Err(StatusFault::NotYetValid)),
        (u64::MAX, Err(StatusFault::Expired)),
    ] {
        assert_eq!(checked(RESPONSE, SERVER, now), expected, "{now}");
    }
}

#[test]
fn ocsp_response_for_another_certificate_is_refused() {
    // The authority has issued its own certificate, too, under another serial number.
    assert_eq!(checked(RESPONSE, CA, MADE), Err(StatusFault::OtherCertificate));
}

#[test]
fn malformed_ocsp_responses_are_refused() {
    assert_eq!(checked(b"", SERVER, MADE), Err(StatusFault::Missing));
    assert_eq!(checked(&vec![0; MAX_RESPONSE + 1], SERVER, MADE), Err(StatusFault::Malformed));
    // `tryLater`, without a response in it.
    assert_eq!(checked(b"\x30\x03\x0a\x01\x03", SERVER, MADE), Err(StatusFault::Unsuccessful));
    assert_eq!(checked(b"\x30\x03\x0a\x01\x00", SERVER, MADE), Err(StatusFault::Malformed));
    for end in 1..RESPONSE.len() {
        assert_eq!(checked(&RESPONSE[..end], SERVER, MADE), Err(StatusFault::Malformed), "{end}");
    }
    assert_eq!(checked(&[RESPONSE, b"\0"].concat(), SERVER, MADE), Err(StatusFault::Malformed));
}

#[test]
fn response_longer_than_allowed_is_malformed() {
    for (length, expected) in [(1000, StatusFault::Unsuccessful), (MAX_RESPONSE, StatusFault::Malformed)] {
        let content = vec![0; length];
        let bytes = ResponseBytes { kind: BASIC_OCSP_RESPONSE, response: OctetStringRef::new(&content).unwrap() };
        let response = OcspResponse { status: ResponderStatus::TryLater, bytes: Some(bytes) }.to_der().unwrap();
        assert_eq!(checked(&response, SERVER, MADE), Err(expected), "{length}");
    }
}

#[test]
fn tampered_ocsp_responses_are_refused() {
    // The certificate at the end of the response is not needed, since the authority itself signed.
    let certificate = RESPONSE.windows(CA.len()).position(|part| part == CA).unwrap();
    for at in 0..certificate {
        for bit in [0x01, 0x20, 0x80] {
            let mut changed = RESPONSE.to_vec();
            changed[at] ^= bit;
            assert!(checked(&changed, SERVER, MADE).is_err(), "{at} {bit}");
        }
    }
}

/// Passes the only status in [`RESPONSE`] to `work`.
fn with_status<R>(work: impl FnOnce(SingleResponse<'_>) -> R) -> R {
    let bytes = OcspResponse::from_der(RESPONSE).unwrap().bytes.unwrap();
    let data = BasicResponse::from_der(bytes.response.as_bytes()).unwrap().data.to_der().unwrap();
    work(ResponseData::from_der(&data).unwrap().responses.remove(0))
}

fn at(seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds))
}

#[test]
fn only_the_status_good_is_accepted() {
    with_status(|mut single| {
        for (constructed, number, content, expected) in [
            (false, 0, &b""[..], Ok(())),
            (false, 0, b"x", Err(StatusFault::Malformed)),
            (true, 0, b"", Err(StatusFault::Malformed)),
            (true, 1, b"", Err(StatusFault::Revoked)),
            (false, 1, b"", Err(StatusFault::Malformed)),
            (false, 2, b"", Err(StatusFault::Unknown)),
            (true, 2, b"", Err(StatusFault::Malformed)),
            (true, 3, b"", Err(StatusFault::Malformed)),
            (false, 3, b"", Err(StatusFault::Malformed)),
        ] {
            let tag = Tag::ContextSpecific { constructed, number: TagNumber(number) };
            single.status = AnyRef::new(tag, content).unwrap();
            assert_eq!(single.check(at(MADE)), expected, "{constructed} {number}");
        }
    });
}

#[test]
fn status_without_next_update_expires_after_ten_days() {
    with_status(|mut single| {
        single.next_update = None;
        assert_eq!(single.check(at(MADE + MAX_AGE + CLOCK_SKEW)), Ok(()));
        assert_eq!(single.check(at(MADE + MAX_AGE + CLOCK_SKEW + 1)), Err(StatusFault::Expired));
    });
    assert_eq!((MAX_AGE, MAX_RESPONSE), (864_000, 65_536));
}

#[test]
fn critical_extension_makes_a_status_malformed() {
    with_status(|mut single| {
        for (critical, expected) in [(false, Ok(())), (true, Err(StatusFault::Malformed))] {
            let extn_value = OctetString::new(&b""[..]).unwrap();
            single.extensions = Some(vec![Extension { extn_id: BASIC_OCSP_RESPONSE, critical, extn_value }]);
            assert_eq!(single.check(at(MADE)), expected);
        }
    });
}

#[test]
fn certificate_is_identified_by_hashes_of_its_issuer() {
    let (server, ca) = (CertificateDer::from(SERVER), CertificateDer::from(CA));
    let (leaf, issuer) = (EndEntityCert::try_from(&server).unwrap(), webpki::anchor_from_trusted_cert(&ca).unwrap());
    let (name, key) = (sequence(&issuer.subject).unwrap(), public_key(&issuer).unwrap().1);
    let matches = |oid, algorithm, name: &[u8], key: &[u8], serial| {
        let (name, key) = (digest(algorithm, name), digest(algorithm, key));
        let id = CertificateId {
            algorithm: AlgorithmIdentifierRef { oid: ObjectIdentifier::new_unwrap(oid), parameters: None },
            issuer_name_hash: OctetStringRef::new(name.as_ref()).unwrap(),
            issuer_key_hash: OctetStringRef::new(key.as_ref()).unwrap(),
            serial,
        };
        id.matches_certificate(&leaf, &issuer)
    };
    let serial = AnyRef::new(Tag::Integer, leaf.serial()).unwrap();
    for (oid, algorithm) in [
        ("1.3.14.3.2.26", &SHA1_FOR_LEGACY_USE_ONLY),
        ("2.16.840.1.101.3.4.2.1", &SHA256),
        ("2.16.840.1.101.3.4.2.2", &SHA384),
        ("2.16.840.1.101.3.4.2.3", &SHA512),
    ] {
        assert!(matches(oid, algorithm, &name, &key, serial), "{oid}");
        assert!(!matches(oid, algorithm, b"another", &key, serial), "{oid}");
        assert!(!matches(oid, algorithm, &name, b"another", serial), "{oid}");
        assert!(!matches(oid, algorithm, &name, &key, AnyRef::new(Tag::Integer, b"\x01").unwrap()), "{oid}");
        assert!(!matches(oid, algorithm, &name, &key, AnyRef::new(Tag::OctetString, leaf.serial()).unwrap()), "{oid}");
    }
    assert!(!matches("1.2.840.113549.2.5", &SHA256, &name, &key, serial), "an unknown hash function");
}

/// A certificate authority that may certify responders.
struct ResponderIssuer(Issuer<'static, KeyPair>, CertificateDer<'static>);

impl ResponderIssuer {
    fn named(name: &str) -> Self {
        let (mut params, key) = (CertificateParams::new([]).unwrap(), KeyPair::generate().unwrap());
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Self(Issuer::new(params, key), certificate)
    }

    fn certify(&self, responder: &KeyPair, purposes: &[ExtendedKeyUsagePurpose]) -> Vec<u8> {
        let mut params = CertificateParams::new([]).unwrap();
        params.extended_key_usages = purposes.to_vec();
        params.signed_by(responder, &self.0).unwrap().der().to_vec()
    }

    /// Checks a response that `signer` has signed and that contains these certificates.
    fn check(&self, signer: &KeyPair, certificates: &[&[u8]]) -> Result<(), StatusFault> {
        let data = AnyRef::new(Tag::Sequence, b"").unwrap();
        let signed = data.to_der().unwrap();
        let signature = signer.sign(&signed).unwrap();
        let oid = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
        let basic = BasicResponse {
            data,
            algorithm: AlgorithmIdentifierRef { oid, parameters: None },
            signature: BitStringRef::from_bytes(&signature).unwrap(),
            certificates: Some(certificates.iter().map(|der| AnyRef::from_der(der).unwrap()).collect()),
        };
        let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
        let issuer = webpki::anchor_from_trusted_cert(&self.1).unwrap();
        check_signature(&basic, &signed, &issuer, &algorithms, at(MADE))
    }
}

#[test]
fn certified_responder_may_sign_for_the_issuer() {
    let (issuer, other) = (ResponderIssuer::named("issuer"), ResponderIssuer::named("other"));
    let (responder, stranger) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let refused = Err(StatusFault::Signature);
    let certified = issuer.certify(&responder, &[ExtendedKeyUsagePurpose::OcspSigning]);
    assert_eq!(issuer.check(issuer.0.key(), &[]), Ok(()), "the issuer itself");
    assert_eq!(issuer.check(&responder, &[&certified]), Ok(()));
    assert_eq!(issuer.check(&responder, &[]), refused, "no certificate");
    assert_eq!(issuer.check(&stranger, &[&certified]), refused, "another key");
    assert_eq!(other.check(&responder, &[&certified]), refused, "certified by another");
    for purposes in [&[][..], &[ExtendedKeyUsagePurpose::ServerAuth]] {
        let uncertified = issuer.certify(&responder, purposes);
        assert_eq!(issuer.check(&responder, &[&uncertified]), refused, "{purposes:?}");
    }
    let unrelated = issuer.certify(&stranger, &[ExtendedKeyUsagePurpose::OcspSigning]);
    let mut certificates = vec![&*unrelated; MAX_SIGNERS];
    certificates[MAX_SIGNERS - 1] = &certified;
    assert_eq!(issuer.check(&responder, &certificates), Ok(()));
    certificates.insert(0, &unrelated);
    assert_eq!(issuer.check(&responder, &certificates), refused, "too many certificates");
}

#[test]
fn fuzzed_parser_tells_responses_from_other_input() {
    assert!(parses_ocsp_response(RESPONSE));
    assert!(!parses_ocsp_response(&RESPONSE[..RESPONSE.len() - 1]) && !parses_ocsp_response(b""));
}
