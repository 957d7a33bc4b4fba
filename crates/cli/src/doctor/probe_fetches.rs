//! The probes of `haul doctor`: one fetch for each question about a URL.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use haul::buffer_pool::OfferedBodyBytes;
use haul::request::Http3Policy;
use haul::sink::Sink;
use haul::transfer::TransferOutcome;
use haul::{Client, Error, ErrorKind, ProtocolVersion, RequestOptions, ResponseHead, Result, Target};
use haul_policy::target::{Host, Scheme};
use indicatif::HumanBytes;
use serde_json::json;

use super::diagnosis_report::{DiagnosisReport, DiagnosisSection};
use super::{certificate_report_rows, network_settings_section, probe_requests};
use crate::plan::{RunPlan, StageArgs};
use crate::run::engine_options::url_to_allowed_target::parse_target;
use crate::run::report::remedy;

/// The maximum number of body bytes, 8 MiB, that a probe receives to measure the transfer rate.
const MAX_PROBE_BYTES: u64 = 8 << 20;

/// The maximum time for which a probe receives a body to measure the transfer rate.
const MAX_PROBE_TIME: Duration = Duration::from_secs(5);

/// The maximum number of addresses to which a connection is tried.
const MAX_ADDRESSES: usize = 8;

/// The minimum size of a body, 64 KiB, for which the report shows a transfer rate.
const MIN_BYTES_FOR_RATE: u64 = 64 << 10;

/// The maximum difference between the clocks of server and client. A greater difference is reported
/// as a problem.
const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(300);

/// The response header fields that the report shows.
const SHOWN_FIELDS: [&str; 6] = ["server", "content-type", "content-length", "vary", "alt-svc", "via"];

/// The settings that all probes (test requests) of `haul doctor` share.
struct ProbeSettings<'a> {
    stage: &'a StageArgs,
    /// The request that the command line describes, as the base for the requests of the probes.
    base: RequestOptions,
    /// The proxy without its user name and password. `None` if no proxy is used.
    proxy: Option<String>,
}

/// Runs all probes (test requests) of `haul doctor` for a URL.
///
/// # Errors
/// The URL or the options cannot be used.
pub(super) fn diagnose(plan: &RunPlan, url: &str) -> Result<DiagnosisReport> {
    let stage = &plan.groups[0].stages[0];
    let target = parse_target(stage, url)?;
    let proxy = network_settings_section::proxy(stage, &target);
    let probes = ProbeSettings { stage, base: probe_requests::base_request(plan, stage)?, proxy };
    let mut report = DiagnosisReport::default();
    report.add(network_settings_section::section(stage, &target));
    let addresses = probes.look_up(&target, &mut report)?;
    probes.try_addresses(&target, &addresses, &mut report)?;
    let (outcome, is_stopped) = probes.fetch(target.clone())?;
    // Another origin than the first gets no credentials, as by a redirect.
    let last = &outcome.target;
    let base = match last.shares_origin(&target.origin()) {
        true => probes.base.clone(),
        false => probe_requests::without_secrets(&probes.base),
    };
    probes.tls(&outcome, &mut report)?;
    if outcome.head.is_some() {
        probes.versions(last, &base, &mut report)?;
    }
    redirects(&outcome, &mut report);
    response(&outcome, is_stopped, &mut report);
    if let Some(head) = outcome.head.as_ref().filter(|head| head.status() < 400) {
        probes.compression(last, &base, head, &mut report)?;
        probes.ranges(last, &base, head, &mut report)?;
        probes.validators(last, &base, head, &mut report)?;
        rate(&outcome, &mut report);
    }
    Ok(report)
}

impl ProbeSettings<'_> {
    fn send(&self, target: Target, options: RequestOptions) -> Result<TransferOutcome> {
        let client = probe_requests::client(self.stage)?;
        Ok(self.send_by(&client, target, options).0)
    }

    /// Sends a request. Returns its outcome, and true if the probe stopped the transfer before the
    /// end of the body.
    fn send_by(&self, client: &Client, target: Target, options: RequestOptions) -> (TransferOutcome, bool) {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let sink = MeasuringSink { bytes: 0, since: Instant::now(), is_stopped: Arc::clone(&is_stopped) };
        let mut outcome = client.fetch(target, Arc::new(options), Box::new(sink));
        let is_stopped = is_stopped.load(Ordering::Relaxed);
        if is_stopped {
            outcome.result = Ok(());
        }
        (outcome, is_stopped)
    }

    fn fetch(&self, target: Target) -> Result<(TransferOutcome, bool)> {
        let client = probe_requests::client(self.stage)?;
        Ok(self.send_by(&client, target, self.base.clone()))
    }

    /// Looks up the addresses of the host, adds them to the report, and returns them.
    fn look_up(&self, target: &Target, report: &mut DiagnosisReport) -> Result<Vec<IpAddr>> {
        let mut section = DiagnosisSection::new("dns", "Name lookup");
        let host = target.host_text();
        section.add_fact("host", host);
        let mut addresses = Vec::new();
        match target.host() {
            _ if self.proxy.is_some() => {
                section.add_fact("answer", "not asked, because the proxy connects to the host")
            }
            Host::V4(address) => addresses.push(IpAddr::from(*address)),
            Host::V6(address, _) => addresses.push(IpAddr::from(*address)),
            Host::Name(_) => {
                let (client, began) = (probe_requests::client(self.stage)?, Instant::now());
                let deadline = began.checked_add(MAX_PROBE_TIME * 2);
                match client.resolver().resolve(host, target.port(), self.base.family, deadline) {
                    Ok(found) => addresses.extend(found.iter()),
                    Err(error) => {
                        section.add_fact("answer", format!("failed: {}", error.cause()));
                        report.add_problem(with_remedy(&error));
                    }
                }
                let (text, value) = network_settings_section::seconds(began.elapsed());
                section.add_fact_with_value("time", text, value);
            }
        }
        let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        if !shown.is_empty() {
            section.add_fact_with_value("addresses", shown.join(", "), shown);
        }
        report.add(section);
        Ok(addresses)
    }

    /// Connects to each address and requests only the head of the response. Adds the results to the
    /// report.
    fn try_addresses(&self, target: &Target, addresses: &[IpAddr], report: &mut DiagnosisReport) -> Result<()> {
        let mut section = DiagnosisSection::new("connections", "Addresses");
        for address in addresses.iter().take(MAX_ADDRESSES) {
            let client = probe_requests::client(self.stage)?;
            if matches!(target.host(), Host::Name(_)) {
                client.resolver().add_override(&format!("{}:{}:{address}", target.host_text(), target.port()))?;
            }
            let (outcome, _) = self.send_by(&client, target.clone(), probe_requests::as_head_request(&self.base));
            let facts = &outcome.facts;
            let error = outcome.result.as_ref().err();
            let tcp = facts.connected.saturating_sub(facts.resolved);
            let tls = facts.secured.saturating_sub(facts.connected);
            let mut parts = Vec::new();
            if !facts.connected.is_zero() {
                parts.push(format!("TCP {}", network_settings_section::seconds(tcp).0));
            }
            if !facts.secured.is_zero() {
                parts.push(format!("TLS {}", network_settings_section::seconds(tls).0));
            }
            if facts.status > 0 {
                parts.push(format!("status {}", facts.status));
            }
            if let Some(error) = error {
                parts.push(format!("failed: {}", error.cause()));
                report.add_problem(format!("{address}: {}", with_remedy(error)));
            }
            let value = json!({
                "address": address.to_string(),
                "port": target.port(),
                "tcp_seconds": (!facts.connected.is_zero()).then(|| network_settings_section::seconds(tcp).1),
                "tls_seconds": (!facts.secured.is_zero()).then(|| network_settings_section::seconds(tls).1),
                "status": (facts.status > 0).then_some(facts.status),
                "error": error.map(Error::cause),
            });
            section.add_row("addresses", address.to_string(), parts.join(", "), value);
        }
        if !addresses.is_empty() {
            report.add(section);
        }
        Ok(())
    }

    /// Adds the TLS session and the certificates to the report. If verification failed, gets the
    /// certificates by another connection without verification. The request on that connection
    /// contains no secrets, and its path is `/`.
    fn tls(&self, outcome: &TransferOutcome, report: &mut DiagnosisReport) -> Result<()> {
        if outcome.target.scheme() != Scheme::Https {
            return Ok(());
        }
        let mut section = DiagnosisSection::new("tls", "TLS");
        let refused = outcome.result.as_ref().err().filter(|error| error.kind() == ErrorKind::PeerCertificate);
        let unverified = match refused {
            None => None,
            Some(error) => {
                section.add_fact("verification", format!("failed: {}", error.cause()));
                let mut options = probe_requests::as_head_request(&probe_requests::without_secrets(&self.base));
                options.tls.verify = false;
                let origin = format!("https://{}/", outcome.target.authority());
                match Target::parse(&origin) {
                    Ok(target) => Some(self.send(target, options)?),
                    Err(_) => None,
                }
            }
        };
        let facts = &unverified.as_ref().unwrap_or(outcome).facts;
        if let Some(tls) = &facts.tls {
            if refused.is_none() {
                section.add_fact("verification", if self.base.tls.verify { "valid" } else { "not verified (-k)" });
            }
            section.add_fact("version", tls.version);
            section.add_fact("cipher", tls.cipher.clone());
            section.add_fact_with_value("alpn", tls.alpn.clone().unwrap_or_else(|| "none".to_owned()), json!(tls.alpn));
        }
        certificate_report_rows::add_chain(facts.certificates.as_deref().unwrap_or_default(), &mut section, report);
        report.add(section);
        Ok(())
    }

    /// Requests only the head of the response with each version of HTTP, and adds the results to
    /// the report.
    fn versions(&self, target: &Target, base: &RequestOptions, report: &mut DiagnosisReport) -> Result<()> {
        let mut section = DiagnosisSection::new("http_versions", "HTTP versions");
        let mut row = |name: &str, wanted: ProtocolVersion, outcome: &TransferOutcome| {
            let is_offered = outcome.facts.version == Some(wanted);
            let why = outcome.result.as_ref().err().map(|error| format!(" ({})", error.cause())).unwrap_or_default();
            let text = if is_offered { "offered".to_owned() } else { format!("not offered{why}") };
            section.add_row("versions", name, text, json!({"version": name, "offered": is_offered}));
            is_offered
        };
        let with_alpn = |alpn: &[&str]| {
            let mut options = probe_requests::as_head_request(base);
            options.prior_knowledge = false;
            options.tls.alpn = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
            self.send(target.clone(), options)
        };
        row("HTTP/1.1", ProtocolVersion::Http11, &with_alpn(&["http/1.1"])?);
        let is_tls = target.scheme() == Scheme::Https;
        if is_tls && !row("HTTP/2", ProtocolVersion::Http2, &with_alpn(&["h2", "http/1.1"])?) {
            report.add_problem("the server has no HTTP/2, with which many requests would share a connection");
        }
        if is_tls && haul::HAS_HTTP3 && self.proxy.is_none() {
            let mut options = probe_requests::as_head_request(base);
            options.http3 = Http3Policy::Only;
            options.connect.timeout = MAX_PROBE_TIME / 2;
            row("HTTP/3", ProtocolVersion::Http3, &self.send(target.clone(), options)?);
        }
        report.add(section);
        Ok(())
    }

    fn compression(
        &self,
        target: &Target,
        base: &RequestOptions,
        plain: &ResponseHead,
        report: &mut DiagnosisReport,
    ) -> Result<()> {
        let options = RequestOptions { decode: true, ..probe_requests::as_head_request(base) };
        let outcome = self.send(target.clone(), options)?;
        let mut section = DiagnosisSection::new("compression", "Compression");
        let head = outcome.head.as_ref();
        let coding = head.and_then(|head| field(head, "content-encoding"));
        section.add_fact_with_value("coding", coding.clone().unwrap_or_else(|| "none".to_owned()), json!(coding));
        let size = |head: &ResponseHead| field(head, "content-length").and_then(|text| text.parse::<u64>().ok());
        if let (Some(_), Some(before), Some(after)) = (&coding, size(plain), head.and_then(size)) {
            let text = format!("{} instead of {}", HumanBytes(after), HumanBytes(before));
            section.add_fact_with_value("size", text, json!({"plain": before, "compressed": after}));
        }
        report.add(section);
        Ok(())
    }

    fn ranges(
        &self,
        target: &Target,
        base: &RequestOptions,
        head: &ResponseHead,
        report: &mut DiagnosisReport,
    ) -> Result<()> {
        // As a field, the range is not compared with that of the response, which may be wrong.
        let mut options = probe_requests::as_head_request(base);
        options.fields.push(("Range".to_owned(), b"bytes=0-0".to_vec()));
        let status = self.send(target.clone(), options)?.facts.status;
        let mut section = DiagnosisSection::new("ranges", "Ranges");
        let is_supported = status == 206;
        let text = match is_supported {
            true => "yes, so that a broken download continues where it stopped".to_owned(),
            false => format!("no (status {status}), so that a broken download begins anew"),
        };
        section.add_fact_with_value("supported", text, is_supported);
        if let Some(unit) = field(head, "accept-ranges") {
            section.add_fact("accept_ranges", unit);
        }
        report.add(section);
        Ok(())
    }

    fn validators(
        &self,
        target: &Target,
        base: &RequestOptions,
        head: &ResponseHead,
        report: &mut DiagnosisReport,
    ) -> Result<()> {
        let mut section = DiagnosisSection::new("validators", "Cache validators");
        let mut options = probe_requests::as_head_request(base);
        for (name, condition) in [("etag", "If-None-Match"), ("last-modified", "If-Modified-Since")] {
            let Some(value) = field(head, name) else { continue };
            section.add_fact(&name.replace('-', "_"), value.clone());
            if options.fields.len() == base.fields.len() {
                options.fields.push((condition.to_owned(), value.into_bytes()));
            }
        }
        if let Some(value) = field(head, "cache-control") {
            section.add_fact("cache_control", value);
        }
        if options.fields.len() == base.fields.len() {
            section.add_fact_with_value(
                "unchanged",
                "the server has no validator, so that each request gets the whole content",
                false,
            );
        } else {
            let status = self.send(target.clone(), options)?.facts.status;
            let is_confirmed = status == 304;
            let text = match is_confirmed {
                true => "confirmed with 304".to_owned(),
                false => format!("not confirmed (status {status})"),
            };
            section.add_fact_with_value("unchanged", text, is_confirmed);
        }
        report.add(section);
        Ok(())
    }
}

fn redirects(outcome: &TransferOutcome, report: &mut DiagnosisReport) {
    if outcome.history.is_empty() {
        return;
    }
    let mut section = DiagnosisSection::new("redirects", "Redirects");
    let next = outcome.history.iter().skip(1).map(|hop| &hop.target).chain([&outcome.target]);
    for (hop, to) in outcome.history.iter().zip(next) {
        let (from, to_url) = (shown_url(&hop.target), shown_url(to));
        let status = hop.head.status();
        if hop.target.scheme() == Scheme::Https && to.scheme() == Scheme::Http {
            report.add_problem(format!("a redirect leads from https to {to_url}, which anyone on the path can read"));
        }
        let value = json!({"status": status, "from": from, "to": to_url});
        section.add_row("hops", status.to_string(), format!("{from} -> {to_url}"), value);
    }
    report.add(section);
}

/// Adds a row about the outcome of the request for the URL to the report: the response or the
/// error. `is_stopped` is true if the probe stopped the transfer before the end of the body.
fn response(outcome: &TransferOutcome, is_stopped: bool, report: &mut DiagnosisReport) {
    let mut section = DiagnosisSection::new("response", "Response");
    section.add_fact("url", shown_url(&outcome.target));
    if let Err(error) = &outcome.result {
        report.exit_code = error.exit_code();
        section.add_fact("error", error.cause());
        report.add_problem(with_remedy(error));
    }
    if let Some(head) = &outcome.head {
        section.add_fact_with_value("status", head.status().to_string(), head.status());
        for name in SHOWN_FIELDS {
            if let Some(value) = field(head, name) {
                section.add_fact(&name.replace('-', "_"), value);
            }
        }
        let difference = field(head, "date").and_then(|date| clock_difference(date.as_bytes()));
        if let Some(difference) = difference.filter(|difference| *difference > MAX_CLOCK_DIFFERENCE) {
            let minutes = difference.as_secs() / 60;
            report.add_problem(format!("the clocks of this computer and of the server differ by {minutes} minutes"));
        }
        let (text, value) = network_settings_section::seconds(outcome.facts.first_byte);
        section.add_fact_with_value("first_byte", format!("after {text}"), value);
        if !is_stopped && outcome.result.is_ok() {
            let (text, value) = network_settings_section::seconds(outcome.facts.total);
            section.add_fact_with_value("complete", format!("after {text}"), value);
        }
    }
    report.add(section);
}

fn rate(outcome: &TransferOutcome, report: &mut DiagnosisReport) {
    let mut section = DiagnosisSection::new("rate", "Rate of one connection");
    let facts = &outcome.facts;
    let time = facts.total.saturating_sub(facts.first_byte);
    section.add_fact_with_value("received", HumanBytes(facts.body_bytes).to_string(), facts.body_bytes);
    if facts.body_bytes < MIN_BYTES_FOR_RATE || time.is_zero() {
        section.add_fact_with_value("rate", "not measured, because the body is small or arrived at once", json!(null));
    } else {
        let rate = (facts.body_bytes as f64 / time.as_secs_f64()) as u64;
        section.add_fact_with_value("rate", format!("{}/s", HumanBytes(rate)), rate);
    }
    report.add(section);
}

/// Returns the cause of an error, followed by the remedy if there is one.
fn with_remedy(error: &Error) -> String {
    let remedy = remedy::remedy(error, None);
    let separator = if remedy.is_empty() { "" } else { "; " };
    format!("{}{separator}{remedy}", error.cause())
}

/// Returns the value of a header field as text; `None` if the response does not have the field.
fn field(head: &ResponseHead, name: &str) -> Option<String> {
    head.get(name).map(|value| String::from_utf8_lossy(value).into_owned())
}

/// Returns the URL of a target for the report: without user and password, and with `...` in place
/// of the query, whose values may be secrets.
fn shown_url(target: &Target) -> String {
    let query = if target.query().is_some() { "?..." } else { "" };
    format!("{}://{}{}{query}", target.scheme().as_str(), target.authority(), target.path())
}

/// Returns the difference between a `Date` field and the clock of this computer; `None` if the
/// field is not a date.
fn clock_difference(date: &[u8]) -> Option<Duration> {
    let (there, here) = (crate::date::parse_http_date(date)?, SystemTime::now());
    there.duration_since(here).or_else(|_| here.duration_since(there)).ok()
}

/// A sink that counts the bytes of a body, and ends the transfer after [`MAX_PROBE_BYTES`] or
/// [`MAX_PROBE_TIME`].
struct MeasuringSink {
    bytes: u64,
    since: Instant,
    is_stopped: Arc<AtomicBool>,
}

impl Sink for MeasuringSink {
    fn begin(&mut self, _begin: &haul::sink::ResponseForSink<'_>) -> Result<()> {
        (self.bytes, self.since) = (0, Instant::now());
        Ok(())
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> Result<()> {
        self.bytes += offered.bytes().len() as u64;
        if self.bytes < MAX_PROBE_BYTES && self.since.elapsed() < MAX_PROBE_TIME {
            return Ok(());
        }
        self.is_stopped.store(true, Ordering::Relaxed);
        Err(Error::new(ErrorKind::Write, "enough bytes have been received"))
    }

    fn restart(&mut self) -> bool {
        true
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
