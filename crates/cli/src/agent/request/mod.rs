//! The request that a caller sends to the agent: a URL and the engine's options, encoded as bytes.
//!
//! ```
//! use haul::RequestOptions;
//! use haul_cli::agent::request::AgentRequest;
//!
//! let mut options = RequestOptions { fail: true, ..RequestOptions::default() };
//! options.tls.verify = false;
//! let request = AgentRequest { url: "https://example.test/".into(), options };
//! let bytes = request.to_bytes().expect("it can go by the agent");
//! let again = AgentRequest::from_bytes(&bytes)?;
//! assert!(again.options.fail && !again.options.tls.verify);
//! # Ok::<(), haul_cli::agent::message_encoding::MalformedAgentValue>(())
//! ```
//!
//! [`AgentRequest::to_bytes`] returns `None` for a request that the agent does not support (with
//! content, a cookie jar, or an observer). The caller then fetches without the agent. The same
//! happens if an option is set that the tables of `encoded_options.rs` do not list. No option is
//! ever dropped silently: a new field of a struct fails to compile until a table lists it, and if
//! the engine's type is `non_exhaustive`, the written value is decoded again and compared.

mod encoded_options;

use haul::RequestOptions;
use haul::net::happy_eyeballs::ConnectOptions;
use haul::request::H1Deviations;
use haul::state::auth::NetrcFileUse;
use haul_policy::redirect::SecretHandling;
use haul_policy::secret_fields::{may_send, may_send_as_curl};

use super::message_encoding::{AgentValue, AgentValueDecoder, AgentValueEncoder, MalformedAgentValue, frame_fields};

/// A request that a caller can send to the agent.
#[derive(Debug, Clone)]
pub struct AgentRequest {
    /// The absolute URL to fetch. It may contain a user and a password.
    pub url: String,
    /// The request options of the engine with which the agent fetches the URL.
    pub options: RequestOptions,
}

frame_fields!(AgentRequest { url, options });

impl AgentRequest {
    /// Encodes the request. Returns `None` if an option is set that the agent does not support.
    #[must_use]
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        if !can_be_sent(&self.options) {
            return None;
        }
        let mut writer = AgentValueEncoder::default();
        self.encode(&mut writer);
        let bytes = writer.into_bytes();
        let again = Self::from_bytes(&bytes).ok()?.options;
        let ours = &self.options;
        let same = again.tls == ours.tls
            && again.connect == ours.connect
            && again.redirects == ours.redirects
            && again.retry == ours.retry
            && again.decode_limits == ours.decode_limits
            && again.proxy.as_ref().map(|proxy| &proxy.tls) == ours.proxy.as_ref().map(|proxy| &proxy.tls);
        same.then_some(bytes)
    }

    /// Reads the bytes that [`AgentRequest::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`MalformedAgentValue`] for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MalformedAgentValue> {
        let mut reader = AgentValueDecoder::new(bytes);
        let request = Self::decode(&mut reader)?;
        reader.check_end()?;
        Ok(request)
    }
}

/// Returns true if the agent supports all request options that are set.
fn can_be_sent(options: &RequestOptions) -> bool {
    let has_objects = options.jar.is_some()
        || options.hsts.is_some()
        || options.alt_svc.is_some()
        || options.body.is_some()
        || options.wants.is_some()
        || options.trace.is_some()
        || options.recorder.is_some()
        || options.limit_rate_total.is_some()
        || options.interrupt.is_some();
    let has_own_connection = options.fresh_connection || options.closes_connection;
    // The agent binds all credentials to their origin.
    let is_handed_on =
        |name: &str| may_send_as_curl(name, SecretHandling::Drop) && !may_send(name, SecretHandling::Drop);
    let keeps_secret_fields = options.curl_compat.keeps_secret_fields_across_origins
        && options.fields.iter().any(|(name, _)| is_handed_on(name));
    let H1Deviations { tolerant, follows_http10, verbatim_fields, .. } = options.deviations;
    let is_local = options.include_head
        || options.keep_history
        || options.resume_from.is_some()
        || options.curl_compat.retries_whole && options.retry.max > 0
        || options.deviations != H1Deviations { tolerant, follows_http10, verbatim_fields, ..H1Deviations::default() }
        || options.auth.signature.is_some()
        || options.auth.message_signature.is_some()
        || options.auth.allowed.negotiate
        || !matches!(options.auth.netrc, NetrcFileUse::Off);
    // The settings of connections that the agent takes over.
    let ConnectOptions { attempt_delay, timeout, keepalive, .. } = options.connect;
    let connects_otherwise =
        options.connect != ConnectOptions { attempt_delay, timeout, keepalive, ..ConnectOptions::default() };
    let has_special_proxy = options.proxy.as_ref().is_some_and(|options| {
        let is_socket = options.proxy.as_ref().is_some_and(|proxy| proxy.socket_path().is_some());
        options.http10
            || options.preproxy.is_some()
            || !options.fields.is_empty()
            || !options.without.is_empty()
            || options.auth.may_negotiate()
            || options.socks_gssapi.is_some()
            || is_socket
    });
    !(has_objects || has_own_connection || keeps_secret_fields || is_local || connects_otherwise || has_special_proxy)
}

#[cfg(test)]
mod encoding_tests;
