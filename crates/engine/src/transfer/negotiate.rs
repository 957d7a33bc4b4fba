//! Negotiate authentication (RFC 4559) in a transfer's requests. Makes tokens for the server, and
//! for the proxy that forwards the requests.

use std::sync::Arc;

use haul_policy::auth::{AllowedAuthSchemes, RequestCredentials};
use haul_policy::auth::{AuthScheme, ChosenAuthScheme, choose_scheme, parse_challenges};
use haul_proto::response_head::ResponseHead;

use super::Transfer;
use super::resettable_state::BodyDisposition;
use crate::net::proxy::{ProxyAuthScheme, ProxyHop, ProxyRoute};
use crate::state::auth::{NegotiateError, Negotiation, SentAuthScheme, missing_token_error};
use crate::trace::TraceEvent;
use crate::{Error, ErrorKind, RequestOptions, Result};

/// The state of Negotiate authentication with the current target and with the proxy that forwards
/// the request. It is boxed, because few transfers use Negotiate.
#[derive(Default)]
pub(super) struct TransferNegotiateState {
    /// The state with the current target; `None` before Negotiate is used with it.
    server: Option<PeerNegotiateState>,
    proxy: PeerNegotiateState,
    /// True if the proxy has requested a Negotiate token.
    is_asked_by_proxy: bool,
    /// True if the last request contained a Negotiate token for the proxy.
    has_proxy_token: bool,
}

/// The state of Negotiate authentication with one server or proxy.
#[derive(Default)]
struct PeerNegotiateState {
    negotiation: Negotiation,
    /// The sequence number of the connection on which the last token was sent, since a security
    /// context belongs to one connection. `None` before the first token.
    connection: Option<u64>,
}

impl std::fmt::Debug for TransferNegotiateState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransferNegotiateState").finish_non_exhaustive()
    }
}

impl Transfer {
    /// Returns the schemes by which the transfer may authenticate to the current target. Excludes
    /// Negotiate if no token can be made, or if the server has rejected a token.
    pub(super) fn allowed_schemes(&self, identity: &RequestCredentials) -> AllowedAuthSchemes {
        let allowed = self.options.auth.allowed_for(identity);
        let is_over = self.server_negotiation().is_some_and(|server| server.negotiation.sends_no_more_tokens());
        AllowedAuthSchemes { negotiate: allowed.negotiate && !is_over, ..allowed }
    }

    /// Returns the Authorization value with a Negotiate token. Returns `None` in three cases:
    /// * `allowed` does not include Negotiate.
    /// * The server has not requested a token and may prefer another scheme.
    /// * No token can be made, and the request may be sent without one.
    ///
    /// # Errors
    /// Fails if no token can be made and Negotiate is the only scheme that the user allows. The
    /// error is [`ErrorKind::Setup`] without a Kerberos library, and [`ErrorKind::Auth`] without a
    /// ticket.
    pub(super) fn negotiate_authorization(&mut self, allowed: AllowedAuthSchemes) -> Result<Option<Vec<u8>>> {
        let is_only = self.options.auth.allowed == AllowedAuthSchemes::NEGOTIATE;
        if !allowed.negotiate || !is_only && self.server_negotiation().is_none() {
            return Ok(None);
        }
        let (options, connection) = (&self.options.auth.negotiate, self.facts.connection);
        let server = self.auth.negotiations.get_or_insert_default().server.get_or_insert_default();
        let is_same = server.connection == connection && connection.is_some();
        let host = self.current.target.host_text().trim_matches(['[', ']']);
        let value = match server.negotiation.authorization(options, host, is_same) {
            Ok(value) => {
                server.connection = connection;
                Some(value)
            }
            Err(error) => {
                self.check_missing_token(error, is_only)?;
                None
            }
        };
        let user = self.auth.identity_user();
        self.trace_info(format!("Server auth using Negotiate with user '{user}'"));
        Ok(value)
    }

    /// Decides whether the request may be sent without a Negotiate token, which cannot be made for
    /// the reason `error`. Returns `Ok` in two cases:
    /// - Other schemes are allowed, too (`is_only` is false).
    /// - `curl_compat.accepts_unreliable_responses` is set, and a Kerberos library could be loaded.
    ///
    /// # Errors
    /// The reason `error`, in all other cases.
    fn check_missing_token(&self, error: NegotiateError, is_only: bool) -> Result<()> {
        let has_library = !matches!(error, NegotiateError::Library(_));
        if is_only && !(self.options.curl_compat.accepts_unreliable_responses && has_library) {
            return Err(missing_token_error(error, "cannot authenticate"));
        }
        self.trace_info(error.to_string());
        Ok(())
    }

    /// Handles a Negotiate challenge; `token` is the server's token. Returns true if the request
    /// should be sent again with another token.
    pub(super) fn answers_negotiate(&mut self, token: &[u8]) -> bool {
        let has_sent = self.auth.sent == SentAuthScheme::Negotiate;
        let server = self.auth.negotiations.get_or_insert_default().server.get_or_insert_default();
        let negotiation = &mut server.negotiation;
        let host = self.current.target.host_text().trim_matches(['[', ']']);
        // Without a ticket, the same request would be sent again without credentials.
        let answered = negotiation.on_challenge(token, has_sent).and_then(|answers| {
            if answers && !negotiation.awaits_token() {
                negotiation.prepare(&self.options.auth.negotiate, host)?;
            }
            Ok(answers)
        });
        let answers = answered.unwrap_or_else(|error| {
            self.trace_info(error.to_string());
            false
        });
        if answers && self.options.auth.negotiate_on_connection().is_none() {
            let mut options = RequestOptions::clone(&self.options);
            options.auth.negotiate.choose();
            self.options = Arc::new(options);
        }
        answers
    }

    /// Checks the token with which the server proves its identity in a response other than a 401.
    /// Returns the decision to fail if the token is wrong, and `None` if the response may be used.
    pub(super) fn on_server_proof(&mut self, head: &ResponseHead) -> Option<BodyDisposition> {
        if self.auth.sent != SentAuthScheme::Negotiate || head.status() == 401 {
            return None;
        }
        let server = self.auth.negotiations.as_mut()?.server.as_mut()?;
        let error = server.negotiation.check_proof(head.get_all("www-authenticate")).err()?;
        let message = "the server does not prove its identity by Negotiate";
        Some(BodyDisposition::Fail(Error::with_source(ErrorKind::Auth, message, error)))
    }

    /// Returns true if the next request must continue the Negotiate exchange on the connection of
    /// the last request.
    pub(super) fn continues_negotiation(&self) -> bool {
        self.server_negotiation().is_some_and(|server| server.negotiation.awaits_token())
    }

    fn server_negotiation(&self) -> Option<&PeerNegotiateState> {
        self.auth.negotiations.as_ref()?.server.as_ref()
    }

    /// Returns true if the last request contained credentials for the proxy other than a Negotiate
    /// token.
    pub(super) fn has_proxy_credentials(&self) -> bool {
        let has_token = self.auth.negotiations.as_ref().is_some_and(|negotiations| negotiations.has_proxy_token);
        self.proxy_auth.is_answered && !has_token
    }

    /// Returns the Proxy-Authorization value with a token, if Negotiate is used with the proxy that
    /// forwards the request; otherwise `None`.
    ///
    /// # Errors
    /// There is no Kerberos library, or no ticket.
    pub(super) fn negotiated_with_proxy(&mut self, hop: &ProxyHop) -> Result<Option<Vec<u8>>> {
        let Some(options) = &hop.negotiate else { return Ok(None) };
        let connection = self.facts.connection;
        let is_only = hop.auth == ProxyAuthScheme::Negotiate;
        let negotiations = self.auth.negotiations.get_or_insert_default();
        negotiations.has_proxy_token = false;
        let of_proxy = &mut negotiations.proxy;
        if of_proxy.negotiation.sends_no_more_tokens() || !is_only && !negotiations.is_asked_by_proxy {
            return Ok(None);
        }
        let is_same = of_proxy.connection == connection && connection.is_some();
        let value = match of_proxy.negotiation.authorization(options, hop.proxy.host_text(), is_same) {
            Ok(value) => value,
            Err(error) => return self.check_missing_token(error, is_only).map(|()| None),
        };
        of_proxy.connection = connection;
        negotiations.has_proxy_token = true;
        self.trace_info("Proxy auth using Negotiate with user ''".to_owned());
        Ok(Some(value))
    }

    /// Handles a 407 response of the proxy that forwards the request, if Negotiate is used with
    /// that proxy. Returns true if the request should be sent again with another token.
    pub(super) fn answers_proxy_negotiate(&mut self, head: &ResponseHead) -> bool {
        let via = ProxyRoute::for_request(&self.current.target, &self.options);
        if via.forwarding_hop().is_none_or(|hop| hop.negotiate.is_none()) {
            return false;
        }
        let challenges = parse_challenges(head.get_all("proxy-authenticate"));
        let Ok(ChosenAuthScheme::Negotiate(token)) = choose_scheme(&challenges, AllowedAuthSchemes::NEGOTIATE) else {
            return false;
        };
        let negotiations = self.auth.negotiations.get_or_insert_default();
        negotiations.is_asked_by_proxy = true;
        negotiations.proxy.negotiation.on_challenge(&token, negotiations.has_proxy_token).unwrap_or(false)
    }

    /// Returns true if authentication applies to the connection instead of a request: the caller
    /// sets an NTLM or Negotiate field, or the next request continues a Negotiate exchange. All
    /// requests of such an exchange must use the same connection.
    pub(super) fn authenticates_connection(&self) -> bool {
        let is_login =
            |name: &str| ["authorization", "proxy-authorization"].iter().any(|of| name.eq_ignore_ascii_case(of));
        let mut fields = self.options.fields.iter().chain(&self.particulars.fields);
        fields.any(|(name, value)| is_login(name) && AuthScheme::from_credentials(value).authenticates_connection())
            || self.continues_negotiation()
    }

    /// Reports an informational message to the trace.
    fn trace_info(&self, text: String) {
        if let Some(trace) = &self.options.trace {
            trace.event(&TraceEvent::Info(text.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::body::delivery::BodyDelivery;
    use crate::sink::memory::MemorySink;

    #[test]
    fn missing_token_is_an_error_only_without_another_scheme() {
        for (accepts_unreliable, is_only, expected) in
            [(false, true, [false, false]), (true, true, [false, true]), (false, false, [true, true])]
        {
            let mut options = RequestOptions::default();
            options.curl_compat.accepts_unreliable_responses = accepts_unreliable;
            let target = haul_policy::target::Target::parse("http://a.example/").unwrap();
            let body = BodyDelivery::new(Box::new(MemorySink::default()));
            let transfer = Transfer::new(target, Arc::new(options), body, Instant::now(), 0);
            let errors = [NegotiateError::Library("no library".into()), NegotiateError::Refused("no ticket".into())];
            let outcomes = errors.map(|error| transfer.check_missing_token(error, is_only).is_ok());
            assert_eq!(outcomes, expected, "{accepts_unreliable} {is_only}");
        }
    }
}
