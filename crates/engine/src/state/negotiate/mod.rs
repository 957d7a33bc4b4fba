//! Authentication by Negotiate (RFC 4559) with SPNEGO tokens, which prove that the user has a
//! Kerberos ticket.
//!
//! The Kerberos library (`libgssapi_krb5.so.2`) is loaded when the first token is needed. No build
//! links to it, and programs that never use Negotiate do not load it. Every request gets a new
//! token. A server that sends a token with its response proves its identity by it.
//!
//! ```
//! use haul::RequestOptions;
//! use haul::state::auth::{AllowedAuthSchemes, AuthOptions};
//!
//! let auth = AuthOptions { allowed: AllowedAuthSchemes::NEGOTIATE, ..AuthOptions::default() };
//! let options = RequestOptions { auth, ..RequestOptions::default() };
//! # drop(options);
//! ```
//!
//! | item | role |
//! |---|---|
//! | [`NegotiateOptions`] | the service name, the delegation, and the identity of a connection's user |
//! | [`SecurityLibrary`], [`SecurityContext`] | the functions that a Kerberos library has to have |
//! | `Negotiation` | the rounds with one server or proxy |
//! | `gssapi` | MIT's library by `dlopen`, with the `unsafe` code |

mod exchange;
#[cfg(all(feature = "negotiate", target_os = "linux", not(target_feature = "crt-static")))]
mod gssapi;
#[cfg(test)]
mod tests;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use exchange::{Negotiation, missing_token_error};

/// The settings for Negotiate. A value and its clones stand for one user. Requests of the same user
/// may share a connection if their service and delegation are equal, too. Each call of
/// [`NegotiateOptions::default`] makes a value for a different user.
#[derive(Clone)]
pub struct NegotiateOptions {
    /// The service name in the server's Kerberos principal (`--service-name`). Default: HTTP.
    pub service: String,
    /// The delegation of the user's ticket to the server (`--delegation`). Default: no delegation.
    pub delegation: Delegation,
    library: Option<Arc<dyn SecurityLibrary>>,
    user: u64,
    /// True in the options of a transfer whose server chose Negotiate among several schemes.
    pub(super) is_chosen: bool,
}

/// The rule for whether the server gets a ticket with which it can act as the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Delegation {
    /// The server gets no ticket of the user.
    #[default]
    None,
    /// The server gets a ticket if the Kerberos realm marks it as trusted for delegation
    /// (OK-AS-DELEGATE).
    Policy,
    /// The server always gets a ticket.
    Always,
}

/// A Kerberos library, which makes security contexts (RFC 2743).
pub trait SecurityLibrary: Send + Sync {
    /// Makes a context that authenticates the user of the default credentials to `service` on
    /// `host`. Sends nothing to a server yet.
    ///
    /// # Errors
    /// The name of the server cannot be used.
    fn context(
        &self,
        service: &str,
        host: &str,
        delegation: Delegation,
    ) -> Result<Box<dyn SecurityContext>, NegotiateError>;

    /// Makes a context for a SOCKS proxy (RFC 1961). It uses Kerberos directly, without SPNEGO.
    ///
    /// # Errors
    /// The name of the proxy cannot be used, or the library does not support such contexts.
    fn socks_context(
        &self,
        service: &str,
        host: &str,
        delegation: Delegation,
    ) -> Result<Box<dyn SecurityContext>, NegotiateError> {
        let _ = (service, host, delegation);
        Err(NegotiateError::Library("the Kerberos library has no contexts for SOCKS".to_owned()))
    }
}

/// The security context between the user and one server. It is established in several steps.
pub trait SecurityContext: Send {
    /// Handles the server's token (`None` in the first step), and returns the token to send. The
    /// returned token is empty if the server needs no further token. The library may request a
    /// ticket from the key distribution center, and waits for the answer.
    ///
    /// # Errors
    /// There is no ticket for the server, or the server's token is not genuine.
    fn step(&mut self, token: Option<&[u8]>) -> Result<Vec<u8>, NegotiateError>;

    /// Returns true if the context is established. The server has then proved its identity.
    fn is_established(&self) -> bool;

    /// Protects a message against modification, and returns it in the library's format.
    ///
    /// # Errors
    /// The context is not established, or cannot protect messages.
    fn wrap(&mut self, message: &[u8]) -> Result<Vec<u8>, NegotiateError> {
        let _ = message;
        Err(NegotiateError::Library("the Kerberos library does not protect messages".to_owned()))
    }

    /// Checks a message that the peer's [`wrap`](Self::wrap) has protected, and returns the
    /// original message.
    ///
    /// # Errors
    /// The message was modified, or the context cannot check it.
    fn unwrap(&mut self, wrapped: &[u8]) -> Result<Vec<u8>, NegotiateError> {
        let _ = wrapped;
        Err(NegotiateError::Library("the Kerberos library does not protect messages".to_owned()))
    }
}

/// The reason why a request cannot be authenticated by Negotiate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NegotiateError {
    /// No Kerberos library is installed, or this build cannot load one. The text contains the
    /// reason and the remedy.
    Library(String),
    /// The library returned an error, for example because there is no ticket. The text is the
    /// library's message.
    Refused(String),
    /// The token in the server's challenge is not valid base64.
    Token,
}

impl fmt::Display for NegotiateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(why) | Self::Refused(why) => f.write_str(why),
            Self::Token => f.write_str("the token of Negotiate is not base64"),
        }
    }
}

impl std::error::Error for NegotiateError {}

impl NegotiateOptions {
    /// Makes options that use this library instead of the system's library.
    #[must_use]
    pub fn with_library(library: Arc<dyn SecurityLibrary>) -> Self {
        Self { library: Some(library), ..Self::default() }
    }

    /// Makes options for a program that has only one user. All options made by this function stand
    /// for the same user.
    #[must_use]
    pub fn with_system_library() -> Self {
        Self { user: 0, ..Self::default() }
    }

    /// Notes that the server has chosen Negotiate.
    pub(crate) fn choose(&mut self) {
        self.is_chosen = true;
    }

    /// Makes a security context for the SOCKS proxy on this host.
    pub(crate) fn socks_context(&self, host: &str) -> Result<Box<dyn SecurityContext>, NegotiateError> {
        match &self.library {
            Some(library) => library.socks_context(&self.service, host, self.delegation),
            None => system_library()?.socks_context(&self.service, host, self.delegation),
        }
    }

    /// Makes a security context for the server on this host.
    fn context(&self, host: &str) -> Result<Box<dyn SecurityContext>, NegotiateError> {
        match &self.library {
            Some(library) => library.context(&self.service, host, self.delegation),
            None => system_library()?.context(&self.service, host, self.delegation),
        }
    }
}

#[cfg(all(feature = "negotiate", target_os = "linux", not(target_feature = "crt-static")))]
fn system_library() -> Result<&'static dyn SecurityLibrary, NegotiateError> {
    gssapi::library().map(|library| library as &dyn SecurityLibrary)
}

/// Fails, because this build cannot load a Kerberos library.
#[cfg(not(all(feature = "negotiate", target_os = "linux", not(target_feature = "crt-static"))))]
fn system_library() -> Result<&'static dyn SecurityLibrary, NegotiateError> {
    let why = if cfg!(target_feature = "crt-static") {
        "this haul is linked statically and cannot open a Kerberos library; use a dynamically linked one"
    } else if cfg!(feature = "negotiate") {
        "Negotiate is supported on Linux only"
    } else {
        "this haul was built without the feature \"negotiate\""
    };
    Err(NegotiateError::Library(why.to_owned()))
}

impl Default for NegotiateOptions {
    fn default() -> Self {
        static NEXT_USER: AtomicU64 = AtomicU64::new(1);
        Self {
            service: "HTTP".to_owned(),
            delegation: Delegation::None,
            library: None,
            user: NEXT_USER.fetch_add(1, Ordering::Relaxed),
            is_chosen: false,
        }
    }
}

impl PartialEq for NegotiateOptions {
    fn eq(&self, other: &Self) -> bool {
        (self.user, &self.service, self.delegation) == (other.user, &other.service, other.delegation)
    }
}

impl Eq for NegotiateOptions {}

impl Hash for NegotiateOptions {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.user.hash(state);
    }
}

impl fmt::Debug for NegotiateOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NegotiateOptions")
            .field("service", &self.service)
            .field("delegation", &self.delegation)
            .finish_non_exhaustive()
    }
}
