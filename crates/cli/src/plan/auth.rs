//! The credentials for a server or a proxy.
//!
//! ```
//! use haul_cli::plan::Secret;
//!
//! assert_eq!(format!("{:?}", Secret::new("hunter2")), "Secret(..)");
//! ```

use std::sync::Arc;

use haul::state::auth::Delegation;
use haul_policy::auth::{AllowedAuthSchemes, Credentials, MessageSigner, SigV4Parameters};

/// A token or passphrase. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Creates a secret from bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Secret(bytes.into())
    }

    /// Returns the bytes of the secret.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The credentials for the servers of a stage (the URLs of the command line, or of one `--then`).
/// The next stage does not inherit them. `Debug` shows no password or token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthArgs {
    /// `-u`: user and password. They are sent only to the origin of a transfer's first request, not
    /// to other origins after redirects. `None` if the option is not given, or if `-H` sets or
    /// removes `Authorization`.
    pub user: Option<Credentials>,
    /// `--oauth2-bearer`: a token (RFC 6750), which is sent only to the origin of a transfer's
    /// first request. The token is sent in the first request if no other scheme is allowed, and
    /// otherwise only after a challenge. `None` without the option.
    pub bearer: Option<Secret>,
    /// The schemes that may be used. The default is Basic alone: its credentials are sent in the
    /// first request. With any other set of schemes, credentials are sent only after a challenge.
    pub allowed: AllowedAuthSchemes,
    /// `--aws-sigv4`: the parameters for signing the requests with AWS Signature Version 4, in
    /// place of any other scheme. `None` without the option.
    pub signature: Option<Arc<SigV4Parameters>>,
    /// `--httpsig-key` and similar options: signs the requests by RFC 9421, in addition to any
    /// authentication scheme. `None` without these options.
    pub message_signature: Option<Arc<MessageSigner>>,
    /// The settings for Negotiate authentication: `--service-name` and `--delegation`.
    pub negotiate: NegotiateArgs,
    /// The netrc file of `-n`, `--netrc-optional` or `--netrc-file`.
    pub netrc: NetrcFileText,
}

impl Default for AuthArgs {
    fn default() -> Self {
        AuthArgs {
            user: None,
            bearer: None,
            allowed: AllowedAuthSchemes::BASIC,
            signature: None,
            message_signature: None,
            negotiate: NegotiateArgs::default(),
            netrc: NetrcFileText::Off,
        }
    }
}

/// The settings for Negotiate with servers or with a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NegotiateArgs {
    /// `--service-name` or `--proxy-service-name`: the service in the Kerberos name of the peer.
    /// `None` means HTTP.
    pub service: Option<String>,
    /// `--delegation`: the condition under which the peer receives the user's Kerberos ticket.
    pub delegation: Delegation,
}

/// The text of the netrc file, if it is used. `Debug` does not show the text.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum NetrcFileText {
    /// The netrc file is not used.
    #[default]
    Off,
    /// `--netrc-optional`: the text of the netrc file, which is empty if the file is missing.
    /// Credentials in the URL take precedence over the file.
    Optional(Arc<[u8]>),
    /// `-n`, or `--netrc-file` without `--netrc-optional`: the text of the netrc file. The file
    /// takes precedence over credentials in the URL.
    Required(Arc<[u8]>),
    /// `-n` is given, but the netrc file does not exist, so that each transfer fails. Occurs only
    /// if haul acts as curl.
    Missing,
}

impl std::fmt::Debug for NetrcFileText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NetrcFileText::Off => "Off",
            NetrcFileText::Optional(_) => "Optional(..)",
            NetrcFileText::Required(_) => "Required(..)",
            NetrcFileText::Missing => "Missing",
        })
    }
}
