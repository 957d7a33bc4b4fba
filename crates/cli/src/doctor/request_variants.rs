//! The requests of the probes: variants of the request that the options describe.

use std::time::Duration;

use haul::request::{Http3Policy, SplitDownloadOptions};
use haul::{Client, RequestOptions, Result};
use haul_policy::retry::RetryRules;

use crate::plan::{RunPlan, StageArgs};
use crate::run::engine_options;
use crate::run::transfers::state_stores::StateStores;

/// The time limit of a probe, unless the options set one.
const PROBE_TIME: Duration = Duration::from_secs(30);

/// The time limit for a connection, unless the options set one.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Returns the request of the options, for a probe: a GET with one try over one connection, without
/// limits of rates.
pub(super) fn base_request(plan: &RunPlan, stage: &StageArgs) -> Result<RequestOptions> {
    let options = engine_options::request_options(&plan.global, stage, None, &mut StateStores::default())?;
    let mut connect = options.connect.clone();
    if stage.transfer.connect_timeout.is_none() {
        connect.timeout = CONNECT_TIME;
    }
    let mut tls = options.tls.clone();
    tls.keep_certificates = true;
    tls.resume = false;
    Ok(RequestOptions {
        retry: RetryRules { max: 0, ..options.retry.clone() },
        split: SplitDownloadOptions { connections: 1, ..options.split },
        total_time: options.total_time.or(Some(PROBE_TIME)),
        keep_history: true,
        include_head: false,
        decode: false,
        fail: true,
        fail_with_body: false,
        method: "GET".to_owned(),
        body: None,
        limit_rate: None,
        http3: Http3Policy::Off,
        connect,
        tls,
        ..options
    })
}

/// Returns a request that receives the head of the response only, and follows no redirect.
pub(super) fn as_head_request(base: &RequestOptions) -> RequestOptions {
    let mut options = RequestOptions { head_only: true, fail: false, ..base.clone() };
    options.redirects.follow = false;
    options
}

/// Returns request options without credentials and client certificates, for a request to another
/// origin than that of `base` or to a server whose certificate is not valid.
pub(super) fn without_secrets(base: &RequestOptions) -> RequestOptions {
    let mut options = RequestOptions {
        fields: Vec::new(),
        authorization: None,
        cookie: None,
        jar: None,
        referer: None,
        ..base.clone()
    };
    options.auth = RequestOptions::default().auth;
    options.tls.identity = None;
    options.tls.identity_pem = None;
    options
}

/// Returns a client with the addresses and name servers of the options. Each probe has its own, so
/// that it opens a connection.
pub(super) fn client(stage: &StageArgs) -> Result<Client> {
    let client = Client::new();
    engine_options::set_resolver_options(&client, stage)?;
    Ok(client)
}
