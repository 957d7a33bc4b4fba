//! Runs the test vectors of C2SP's x509-limbo if a copy of `limbo.json` is available:
//! `scripts/x509-limbo.sh` starts this test.
//!
//! Each chain that must be rejected is rejected, or is listed with a reason in
//! `scripts/x509-limbo/accepted`. Chains that are rejected although they should be accepted are
//! only printed, because strictness is no risk.

use std::collections::BTreeSet;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, ServerName, UnixTime};
use serde_json::Value;
use webpki::{CertRevocationList, OwnedCertRevocationList};
use x509_cert::der::DateTime;

use super::certificate_check_trait::{CertificateCheck, PresentedChain};
use super::webpki_chain_check::ChainCheck;

/// The expected result of a test case, and haul's actual result.
struct X509LimboVerdict {
    id: String,
    is_good: bool,
    answer: Result<(), String>,
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn certificates(value: &Value) -> Result<Vec<CertificateDer<'static>>, String> {
    texts(value).map(|pem| CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())).collect()
}

fn answer(case: &Value) -> Result<(), String> {
    let name = case["expected_peer_name"]["value"].as_str().ok_or("no name")?;
    let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
    let time = match case["validation_time"].as_str() {
        // In seconds, whatever the time zone in the text.
        Some(text) => {
            let time = format!("{}Z", text.get(..19).unwrap_or_default());
            time.parse::<DateTime>().map_err(|error| error.to_string())?.unix_duration()
        }
        None => Duration::from_secs(UnixTime::now().as_secs()),
    };
    let lists = texts(&case["crls"]).map(|pem| {
        let der = CertificateRevocationListDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())?;
        OwnedCertRevocationList::from_der(&der).map(CertRevocationList::from).map_err(|error| error.to_string())
    });
    let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
    let verifier = ChainCheck::new(certificates(&case["trusted_certs"])?, lists.collect::<Result<_, _>>()?, algorithms);
    let verifier = verifier.ok_or("no trusted certificate can be read")?.with_common_name(true);
    let end_entity = CertificateDer::from_pem_slice(case["peer_certificate"].as_str().unwrap_or_default().as_bytes());
    let end_entity = end_entity.map_err(|error| error.to_string())?;
    let intermediates = certificates(&case["untrusted_intermediates"])?;
    let judged = verifier.check(&PresentedChain {
        end_entity: &end_entity,
        intermediates: &intermediates,
        server_name: &name,
        now: UnixTime::since_unix_epoch(time),
        status: None,
    });
    judged.map_err(|error| error.to_string())
}

/// Returns true if this test runs the test case. The case must check the certificate of a server
/// with a DNS name or an IP address. It must not limit the path length, the signature algorithms or
/// the key usage, since haul has no such settings. Cases of BetterTLS are left out, because
/// `scripts/bettertls.sh` runs them with real servers.
fn is_supported(case: &Value) -> bool {
    case["validation_kind"] == "SERVER"
        && !case["id"].as_str().unwrap_or_default().starts_with("bettertls::")
        && matches!(case["expected_peer_name"]["kind"].as_str(), Some("DNS" | "IP"))
        && case["max_chain_depth"].is_null()
        && texts(&case["signature_algorithms"]).next().is_none()
        && texts(&case["key_usage"]).next().is_none()
        && texts(&case["extended_key_usage"]).all(|purpose| purpose == "serverAuth")
}

#[test]
#[ignore = "needs limbo.json of x509-limbo: LIMBO=FILE sh scripts/x509-limbo.sh"]
fn x509_limbo_chains_are_rejected_as_required() {
    let read = |variable: &str| {
        let path = std::env::var(variable).unwrap_or_else(|_| panic!("{variable} names no file"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let suite: Value = serde_json::from_str(&read("LIMBO")).expect("JSON");
    let documented = read("LIMBO_ACCEPTED");
    let documented: BTreeSet<_> = documented.lines().filter(|line| !line.starts_with('#')).collect();
    let cases = suite["testcases"].as_array().expect("cases");
    let judged = cases.iter().filter(|case| is_supported(case)).map(|case| X509LimboVerdict {
        id: case["id"].as_str().unwrap_or_default().to_owned(),
        is_good: case["expected_result"] == "SUCCESS",
        answer: answer(case),
    });
    let judged: Vec<_> = judged.collect();
    assert!(judged.len() > 100, "{} cases", judged.len());
    for each in judged.iter().filter(|each| each.is_good && each.answer.is_err()) {
        println!("rejected, to be accepted: {} ({})", each.id, each.answer.as_ref().unwrap_err());
    }
    let accepted: Vec<_> = judged.iter().filter(|each| !each.is_good && each.answer.is_ok()).collect();
    let (known, unknown): (Vec<_>, Vec<_>) =
        accepted.into_iter().partition(|each| documented.contains(each.id.as_str()));
    unknown.iter().for_each(|each| println!("accepted, to be rejected: {}", each.id));
    println!("{} of {} cases run; {} accepted as documented", judged.len(), cases.len(), known.len());
    assert!(unknown.is_empty(), "{} chains are accepted that are to be rejected", unknown.len());
}
