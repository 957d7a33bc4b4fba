//! The schemes that URLs and redirects may have.
//!
//! ```
//! use haul_cli::plan::ProtocolArgs;
//!
//! assert!(ProtocolArgs::default().default_scheme == haul_policy::Scheme::Http);
//! ```

use haul_policy::Scheme;
use haul_policy::protocols::ProtocolSet;

/// The schemes that URLs and redirects may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolArgs {
    /// `--proto`: the schemes of all URLs. Default all.
    pub protocols: ProtocolSet,
    /// `--proto-redir`: a further restriction for redirects. Default all.
    pub redirected: ProtocolSet,
    /// `--proto-default`: the scheme of URLs without one. Default http.
    pub default_scheme: Scheme,
    /// `--proto-default file`: URLs without a scheme are local paths.
    pub default_file: bool,
}

impl Default for ProtocolArgs {
    fn default() -> Self {
        ProtocolArgs {
            protocols: ProtocolSet::default(),
            redirected: ProtocolSet::default(),
            default_scheme: Scheme::Http,
            default_file: false,
        }
    }
}
