//! The credentials for a server or a proxy.
//!
//! ```
//! use haul_cli::plan::Secret;
//!
//! assert_eq!(format!("{:?}", Secret::new("hunter2")), "Secret(..)");
//! ```

use std::sync::Arc;

use haul_policy::auth::{AllowedSchemes, Credentials, SigV4};

/// Bytes that no message and no `Debug` shows: tokens and passphrases.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Returns a secret of these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Secret(bytes.into())
    }

    /// The bytes themselves.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The credentials for the servers of a stage. The next stage does not inherit them. `Debug` shows
/// no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthArgs {
    /// `-u`; bound to the first origin. `None` also where `-H` gives or removes `Authorization`.
    pub user: Option<Credentials>,
    /// `--oauth2-bearer`; bound to the first origin, and sent at once (RFC 6750) where no other
    /// scheme is allowed besides.
    pub bearer: Option<Secret>,
    /// The schemes that may be used with user and password. The default is Basic alone, which is
    /// sent at once. Any other set waits for a challenge.
    pub allowed: AllowedSchemes,
    /// `--aws-sigv4`: requests are signed in the user's name, and no other scheme is used.
    pub signature: Option<Arc<SigV4>>,
    /// `-n` and its like.
    pub netrc: NetrcArg,
}

impl Default for AuthArgs {
    fn default() -> Self {
        AuthArgs { user: None, bearer: None, allowed: AllowedSchemes::BASIC, signature: None, netrc: NetrcArg::Off }
    }
}

/// The text of the netrc file, if it is used. `Debug` does not show the text.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum NetrcArg {
    /// The netrc file is not used.
    #[default]
    Off,
    /// `--netrc-optional`: the URL takes precedence over the file. A missing optional file is
    /// empty.
    Optional(Arc<[u8]>),
    /// `-n`, or `--netrc-file` alone: it takes precedence over the URL.
    Required(Arc<[u8]>),
    /// `-n` without the file, in curl's place: each transfer fails.
    Missing,
}

impl std::fmt::Debug for NetrcArg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NetrcArg::Off => "Off",
            NetrcArg::Optional(_) => "Optional(..)",
            NetrcArg::Required(_) => "Required(..)",
            NetrcArg::Missing => "Missing",
        })
    }
}
