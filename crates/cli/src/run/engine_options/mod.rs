//! Converts the settings of a stage of the plan to the engine's request options.

mod connect_options;
mod credentials;
mod ech_keys;
pub(crate) mod extraction_options;
pub(crate) mod later_stage_requests;
pub(crate) mod output_options;
mod pinned_keys;
pub(crate) mod request_body;
pub(crate) mod url_to_allowed_target;

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use haul::dns_over_https::DnsOverHttps;
use haul::request::{CurlCompat, H1Deviations, Http3Policy, ResponseHeadPredicate, SplitDownloadOptions};
use haul::trace::TransferObserver;
use haul::{Client, RequestOptions, ResponseHead, Result};
use haul_policy::auth::AllowedAuthSchemes;

use crate::plan::{
    ContinueAt, GlobalArgs, HeaderArg, HttpVersion, RecordOutputArgs, RunSize, StageArgs, StateFileArg, TimeCond,
    TransferArgs,
};
use crate::run::transfers::state_stores::StateStores;
use crate::write_out::WriteOut;

/// The maximum number of bytes, 16 MiB, that a split download keeps in memory while an earlier part
/// of the body is incomplete.
const MAX_SPLIT_MEMORY: u64 = 16 << 20;

/// Converts the settings of a stage (`--then` separates stages) of the plan to the request options
/// of the engine.
pub(crate) fn request_options(
    global: &GlobalArgs,
    stage: &StageArgs,
    trace: Option<Arc<dyn TransferObserver>>,
    stores: &mut StateStores,
) -> Result<RequestOptions> {
    let (request, transfer) = (&stage.request, &stage.transfer);
    let tells = |what: fn(&WriteOut) -> bool| stage.report.write_out.as_ref().is_some_and(what);
    let shared = &transfer.options;
    let mut options = RequestOptions {
        method: request.method.clone(),
        user_agent: request.user_agent.clone(),
        referer: request.referer.clone(),
        auth: credentials::auth_options(&request.auth),
        cookie: request.cookie.clone(),
        range: request.range.clone(),
        decode: stage.requests_compression(),
        include_head: (stage.report.include || request.head) && !stage.report.doubles_heads && stage.records.is_none(),
        head_only: request.head,
        request_target: request.request_target.clone(),
        content_type: request.content_type.clone(),
        curl_compat: curl_compat(global, stage),
        deviations: H1Deviations {
            http10: transfer.http_version == HttpVersion::Http10,
            tolerant: global.persona.is_curl(),
            follows_http10: global.persona.is_curl(),
            verbatim_fields: global.persona.is_curl(),
            ..shared.deviations
        },
        redirects: transfer.redirect_rules(request.custom_method, request.is_post),
        auto_referer: request.auto_referer,
        // As by curl, it is each try's alone; under haul's own name the user gets an answer by
        // then.
        max_time: transfer.max_time.filter(|_| global.persona.is_curl()),
        total_time: transfer.max_time.filter(|_| !global.persona.is_curl()),
        resume_from: match request.continue_at {
            Some(ContinueAt::Offset(offset)) => Some(offset),
            _ => None,
        },
        speed_limit: transfer.min_speed(),
        stall: transfer.stall_limit(global.persona, RunSize::OneUrl),
        split: SplitDownloadOptions {
            connections: transfer.connections(global),
            memory: global.max_memory.min(MAX_SPLIT_MEMORY),
        },
        prior_knowledge: transfer.http_version == HttpVersion::Http2PriorKnowledge,
        http3: http3_policy(global, transfer),
        tls: connect_options::tls_options(&transfer.tls, transfer.http_version, global.persona)?,
        proxy: connect_options::proxy_options(&stage.proxy, global.persona)?,
        wants: request.time_cond.map(|condition| Arc::new(condition) as _),
        trace,
        keep_history: stage.records.is_some() || tells(WriteOut::prints_redirect_fields),
        ..shared.clone()
    };
    options.fail_with_body |= stage.records.is_some_and(RecordOutputArgs::has_all_bodies);
    // To examine a certificate that is accepted anyway, the trusted certificates must be loaded.
    // Only runs that print the result do so.
    options.tls.examine =
        !transfer.tls.options.verify && (options.trace.is_some() || tells(WriteOut::prints_verify_result));
    if global.persona.is_curl() && options.tls.examine {
        // With -k, curl loads no trusted certificates, so that a result says what the peer sent.
        (options.tls.ca_file, options.tls.ca_path) = (None, None);
    }
    if let Some(proxy) = options.proxy.as_mut().filter(|proxy| !proxy.tls.verify) {
        proxy.tls.examine = tells(WriteOut::prints_proxy_verify_result);
        if global.persona.is_curl() && proxy.tls.examine {
            (proxy.tls.ca_file, proxy.tls.ca_path) = (None, None);
        }
    }
    options.tls.keep_certificates = tells(WriteOut::shows_certificates);
    options.decode_limits.max_output = shared.max_size;
    connect_options::set_connect_options(transfer, &mut options.connect)?;
    options.connect.timeout = transfer.connect_limit(global.persona, RunSize::OneUrl);
    stores.set_stores(stage, &mut options)?;
    for field in &request.fields {
        match field {
            HeaderArg::Set { name, value } => options.fields.push((name.clone(), value.clone())),
            HeaderArg::Empty { name } => options.fields.push((name.clone(), Vec::new())),
            HeaderArg::Remove { name } => options.without.push(name.clone()),
        }
    }
    // Bytes after a 101 that the user asked for are the user's.
    options.deviations.upgraded = options.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("upgrade"));
    if let Some(body) = &request.body {
        request_body::set_content(&mut options, body)?;
    }
    Ok(options)
}

/// Returns the policy for HTTP/3 that the options set. If haul acts as curl, and no option names
/// HTTP/3, HTTP/3 is used only with `--alt-svc`, as in curl.
fn http3_policy(global: &GlobalArgs, transfer: &TransferArgs) -> Http3Policy {
    let learns = !global.persona.is_curl() || transfer.alt_svc != StateFileArg::Off;
    match transfer.http_version {
        HttpVersion::Http3 => Http3Policy::Race,
        HttpVersion::Http3Only => Http3Policy::Only,
        HttpVersion::Any if haul::HAS_HTTP3 && transfer.tls.alpn && learns => Http3Policy::Learned,
        _ => Http3Policy::Off,
    }
}

/// Returns the settings for the behaviours of curl that the engine has off by default. Most are on
/// only if haul acts as curl. A few are always on, or depend on options.
fn curl_compat(global: &GlobalArgs, stage: &StageArgs) -> CurlCompat {
    let is_curl = global.persona.is_curl();
    CurlCompat {
        cookies_by_host: stage.transfer.cookies.as_curl,
        omits_zero_content_length: true,
        // A page that --extract or --select asks for compressed need not be so.
        strict_content_coding: stage.transfer.compressed.is_some() || !stage.takes_values(),
        connect_heads: is_curl && !stage.proxy.suppress_connect_headers,
        retries_whole: is_curl,
        // With Digest alone, curl sends no content before it has been challenged, whether by the
        // server or by a proxy.
        withholds_content_before_challenge: is_curl
            && [stage.request.auth.allowed, stage.proxy.allowed].contains(&AllowedAuthSchemes::DIGEST),
        expect_for_one_shot_content: true,
        accepts_unreliable_responses: is_curl,
        refused_tunnel_is_status_error: is_curl,
        keeps_secret_fields_across_origins: is_curl,
        partial_heads: is_curl,
        head_limits: is_curl,
        spells_as_curl: is_curl,
        redirect_logins: is_curl,
    }
}

/// Checks the condition of `-z` against the response's `Last-Modified`. A response without this
/// header field always meets the condition.
impl ResponseHeadPredicate for TimeCond {
    fn wants(&self, head: &ResponseHead) -> bool {
        let date = head.get("last-modified").and_then(crate::date::parse_http_date);
        let Some(since) = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok()) else { return true };
        match *self {
            Self::NewerThan(seconds) => since.as_secs() > seconds,
            Self::OlderThan(seconds) => since.as_secs() < seconds,
        }
    }
}

/// Sets the addresses of `--resolve` and the DNS servers of `--dns-servers` or `--doh-url` in the
/// resolver of the client.
pub(crate) fn set_resolver_options(client: &Client, stage: &StageArgs) -> Result<()> {
    client.resolver().use_servers(&stage.transfer.dns);
    for entry in &stage.transfer.resolve {
        let host = if entry.host.contains(':') { format!("[{}]", entry.host) } else { entry.host.clone() };
        let spec = if entry.addresses.is_empty() {
            format!("-{host}:{}", entry.port)
        } else {
            let addresses: Vec<String> = entry.addresses.iter().map(ToString::to_string).collect();
            format!("{host}:{}:{}", entry.port, addresses.join(","))
        };
        client.resolver().add_override(&spec)?;
    }
    if let Some(url) = &stage.transfer.doh_url {
        let tls = connect_options::doh_tls_options(&stage.transfer)?;
        DnsOverHttps::new(url, tls)?.use_for(client.resolver());
    }
    Ok(())
}
