//! The exchange of Negotiate tokens with one server or proxy.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haul_policy::auth::{AuthScheme, parse_challenges};

use crate::{Error, ErrorKind};

use super::{NegotiateError, NegotiateOptions, SecurityContext};

/// The state of the Negotiate exchange with one server or proxy.
///
/// ```text
///  authorization ──▶ request ──▶ 401, token ──▶ on_challenge ──▶ authorization ...
///                           └──▶ other status ──▶ check_proof
/// ```
#[derive(Default)]
pub(crate) struct Negotiation {
    context: Option<Box<dyn SecurityContext>>,
    /// The first token of `context`, made before the connection of the next request is known.
    first_token: Option<Vec<u8>>,
    /// The token for the next request on the same connection; `None` if the last challenge
    /// contained no token.
    next_token: Option<Vec<u8>>,
    /// True if no token can be made, or if the peer has refused a token. No further tokens are then
    /// sent.
    is_over: bool,
}

impl Negotiation {
    /// Returns the Authorization value for the next request. If `is_same_connection` is true,
    /// continues the security context of the last request; otherwise, begins a new one. A context
    /// belongs to one connection (RFC 4559 section 6).
    ///
    /// # Errors
    /// There is no Kerberos library, or no ticket.
    pub(crate) fn authorization(
        &mut self,
        options: &NegotiateOptions,
        host: &str,
        is_same_connection: bool,
    ) -> Result<Vec<u8>, NegotiateError> {
        if let Some(token) = self.next_token.take().filter(|_| is_same_connection) {
            return Ok(authorization_value(&token));
        }
        self.prepare(options, host)?;
        let token = self.first_token.take().unwrap_or_default();
        Ok(authorization_value(&token))
    }

    /// Makes the first token of a new security context, if there is none yet, so that the caller
    /// knows whether a token can be sent.
    ///
    /// # Errors
    /// There is no Kerberos library, or no ticket.
    pub(crate) fn prepare(&mut self, options: &NegotiateOptions, host: &str) -> Result<(), NegotiateError> {
        if self.first_token.is_some() {
            return Ok(());
        }
        let made = options.context(host).and_then(|mut context| Ok((context.step(None)?, context)));
        let (token, context) = made.inspect_err(|_| self.is_over = true)?;
        (self.context, self.first_token) = (Some(context), Some(token));
        Ok(())
    }

    /// Handles the challenge of a 401 or 407. `token` is the server's token in base64. `has_sent`
    /// is true if the refused request contained a token. Returns true if the request should be sent
    /// again.
    ///
    /// # Errors
    /// The server's token is not genuine.
    pub(crate) fn on_challenge(&mut self, token: &[u8], has_sent: bool) -> Result<bool, NegotiateError> {
        let Some(context) = self.context.as_mut().filter(|_| has_sent) else { return Ok(!self.is_over) };
        // Without a token, or after the last round, the peer has refused the user.
        if token.is_empty() || context.is_established() {
            self.is_over = true;
            return Ok(false);
        }
        let stepped = decode_token(token).and_then(|token| context.step(Some(&token)));
        let answer = stepped.inspect_err(|_| self.is_over = true)?;
        self.is_over = answer.is_empty();
        self.next_token = (!answer.is_empty()).then_some(answer);
        Ok(!self.is_over)
    }

    /// Checks the token in a response that is not a challenge. With this token, the server proves
    /// that it knows the key of its Kerberos service. As in curl, a response without a token is
    /// accepted.
    ///
    /// # Errors
    /// The token is not genuine, or does not complete the proof.
    pub(crate) fn check_proof<'f>(&mut self, fields: impl IntoIterator<Item = &'f [u8]>) -> Result<(), NegotiateError> {
        let found = parse_challenges(fields).into_iter().find(|challenge| challenge.scheme == AuthScheme::Negotiate);
        let (Some(found), Some(context)) = (found, self.context.as_mut()) else { return Ok(()) };
        if context.is_established() {
            return Ok(());
        }
        let token = match found.token68 {
            Some(token) => token,
            None if found.parameters.is_empty() => return Ok(()),
            None => return Err(NegotiateError::Token),
        };
        context.step(Some(&decode_token(&token)?))?;
        if context.is_established() {
            return Ok(());
        }
        Err(NegotiateError::Refused("the server's last token does not prove its identity".to_owned()))
    }

    /// Returns true if no further tokens are sent, because no token can be made or the peer has
    /// refused a token.
    pub(crate) fn sends_no_more_tokens(&self) -> bool {
        self.is_over
    }

    /// Returns true if the next request continues the security context of the last request, and
    /// therefore must use the same connection.
    pub(crate) fn awaits_token(&self) -> bool {
        self.next_token.is_some()
    }
}

/// Returns the error to report if no Negotiate token can be made, or if the peer's token is not
/// genuine.
pub(crate) fn missing_token_error(error: NegotiateError, message: &str) -> Error {
    let kind = if matches!(error, NegotiateError::Library(_)) { ErrorKind::Setup } else { ErrorKind::Auth };
    Error::with_source(kind, message, error)
}

fn authorization_value(token: &[u8]) -> Vec<u8> {
    [&b"Negotiate "[..], STANDARD.encode(token).as_bytes()].concat()
}

fn decode_token(token: &[u8]) -> Result<Vec<u8>, NegotiateError> {
    STANDARD.decode(token).map_err(|_| NegotiateError::Token)
}
