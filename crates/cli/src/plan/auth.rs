//! The credentials for a server or a proxy.
//!
//! ```
//! use haul_cli::plan::Secret;
//!
//! assert_eq!(format!("{:?}", Secret::new("hunter2")), "Secret(..)");
//! ```

use std::sync::Arc;

use haul_policy::auth::{AllowedAuthSchemes, Credentials, SigV4};

/// A token or passphrase. Neither messages nor `Debug` show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Creates a secret from bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Secret(bytes.into())
    }

    /// Returns the bytes.
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
    /// `-u`: sent only to the first origin. Also `None` if `-H` sets or removes `Authorization`.
    pub user: Option<Credentials>,
    /// `--oauth2-bearer`: sent only to the first origin; without waiting for a challenge (RFC 6750)
    /// if no other scheme is allowed.
    pub bearer: Option<Secret>,
    /// The schemes that may be used with user and password. The default is only Basic, which is
    /// sent without waiting for a challenge. Any other set waits for one.
    pub allowed: AllowedAuthSchemes,
    /// `--aws-sigv4`: requests are signed in the user's name, and no other scheme is used.
    pub signature: Option<Arc<SigV4>>,
    /// `-n` and similar options.
    pub netrc: NetrcArg,
}

impl Default for AuthArgs {
    fn default() -> Self {
        AuthArgs { user: None, bearer: None, allowed: AllowedAuthSchemes::BASIC, signature: None, netrc: NetrcArg::Off }
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
    /// `-n`, but there is no file. Only for the curl persona, whose transfers then fail.
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
