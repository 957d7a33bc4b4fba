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
