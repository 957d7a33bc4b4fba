//! The schemes that URLs and redirects may have.
//!
//! ```
//! use haul_cli::plan::AllowedProtocols;
//!
//! assert!(AllowedProtocols::default().default_scheme == haul_policy::Scheme::Http);
//! ```

use haul_policy::Scheme;
use haul_policy::protocols::ProtocolSet;

/// The schemes that are allowed for URLs and redirects, and the default scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedProtocols {
    /// `--proto`: the allowed schemes of all URLs, including the targets of redirects. Default: all
    /// schemes.
    pub protocols: ProtocolSet,
    /// `--proto-redir`: the allowed schemes of redirects, which `--proto` must allow as well.
    /// Default all.
    pub redirected: ProtocolSet,
    /// `--proto-default`: the scheme of URLs without one. Default http.
    pub default_scheme: Scheme,
    /// `--proto-default file`: URLs without a scheme are local paths.
    pub default_file: bool,
}

impl Default for AllowedProtocols {
    fn default() -> Self {
        AllowedProtocols {
            protocols: ProtocolSet::default(),
            redirected: ProtocolSet::default(),
            default_scheme: Scheme::Http,
            default_file: false,
        }
    }
}
