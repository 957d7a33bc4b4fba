//! The requests that the probes of `haul doctor` send: variants of the request that the command
//! line describes.

use std::time::Duration;

use haul::request::{Http3Policy, SplitDownloadOptions};
use haul::{Client, RequestOptions, Result};
use haul_policy::retry::RetryRules;

use crate::plan::{RunPlan, StageArgs};
use crate::run::engine_options;
use crate::run::transfers::state_stores::StateStores;

/// The time limit of a probe if the command line sets none.
const PROBE_TIME: Duration = Duration::from_secs(30);

/// The time limit for connecting if the command line sets none.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Returns the request that the command line describes, changed for a probe: a GET without retries,
/// over a single connection, and without a rate limit.
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

/// Returns a request that receives only the head of the response, and follows no redirect.
pub(super) fn as_head_request(base: &RequestOptions) -> RequestOptions {
    let mut options = RequestOptions { head_only: true, fail: false, ..base.clone() };
    options.redirects.follow = false;
    options
}

/// Returns a copy of `base` without credentials and client certificates. The copy is for a request
/// to another origin, or to a server whose certificate is not valid.
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
    options.tls.remove_identity();
    options
}

/// Returns a client with the addresses and name servers that the command line sets. Each probe
/// (test request) has its own client, so that it opens a new connection.
pub(super) fn client(stage: &StageArgs) -> Result<Client> {
    let client = Client::new();
    engine_options::set_resolver_options(&client, stage)?;
    Ok(client)
}
