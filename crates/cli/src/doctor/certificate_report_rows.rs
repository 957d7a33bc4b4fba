//! The rows for the certificates of a server in the report of `haul doctor`: names, issuers, and
//! the days until they expire.

use std::time::{SystemTime, UNIX_EPOCH};

use haul::net::tls::certificate_details;
use serde_json::json;

use super::diagnosis_report::{DiagnosisReport, DiagnosisSection};

/// A certificate that expires within this number of days is reported as a problem.
const EXPIRY_WARNING_DAYS: i64 = 14;

/// Adds a row for each certificate of a chain to `section`. Adds a problem to `report` for each
/// that has expired or expires soon.
pub(super) fn add_chain(chain: &[Vec<u8>], section: &mut DiagnosisSection, report: &mut DiagnosisReport) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    for (number, der) in chain.iter().enumerate() {
        let details = certificate_details(der);
        let of = |name: &str| details.iter().find(|(key, _)| *key == name).map(|(_, text)| text.as_str());
        let (subject, issuer) = (of("Subject").unwrap_or("?"), of("Issuer").unwrap_or("?"));
        let expires = of("Expire date").unwrap_or("?");
        let days = crate::date::parse(expires).map(|end| days_between(now, end));
        let label = if number == 0 { "certificate".to_owned() } else { format!("certificate {}", number + 1) };
        let left = days.map(|days| format!(" (in {days} days)")).unwrap_or_default();
        let text = format!(
            "{}, issued by {}, expires {expires}{left}",
            name_or_placeholder(subject),
            name_or_placeholder(issuer)
        );
        let value = json!({"subject": subject, "issuer": issuer, "begins": of("Start date"), "expires": expires, "days_left": days});
        section.add_row("certificates", label, text, value);
        match days {
            Some(days) if days < 0 => {
                report.add_problem(format!("a certificate expired {} days ago: {subject}", -days))
            }
            Some(days) if days < EXPIRY_WARNING_DAYS => {
                report.add_problem(format!(
                    "a certificate expires in {days} days: {subject}; its operator must renew it"
                ));
            }
            _ => {}
        }
    }
}

/// Returns the name of a certificate, or `(no name)` if it is empty.
fn name_or_placeholder(name: &str) -> &str {
    if name.is_empty() { "(no name)" } else { name }
}

fn days_between(now: u64, end: u64) -> i64 {
    let day = 24 * 60 * 60;
    (i64::try_from(end).unwrap_or(i64::MAX)).saturating_sub(i64::try_from(now).unwrap_or(0)).div_euclid(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_until_expiry_are_negative_after_expiry() {
        assert_eq!(days_between(0, 86_400 * 3 + 5), 3);
        assert_eq!(days_between(86_400, 86_399), -1);
    }

    #[test]
    fn undecodable_certificate_has_a_row_of_question_marks() {
        let (mut section, mut report) = (DiagnosisSection::new("tls", "TLS"), DiagnosisReport::default());
        add_chain(&[b"no certificate".to_vec()], &mut section, &mut report);
        report.add(section);
        assert!(report.to_text().contains("?, issued by ?, expires ?"), "{}", report.to_text());
    }
}
