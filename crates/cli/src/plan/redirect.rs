//! The redirect settings: the redirects that are followed, and their method and limit.
//!
//! ```
//! use haul_cli::plan::RedirectArgs;
//!
//! let args = RedirectArgs { post302: true, ..RedirectArgs::default() };
//! let rules = args.rules(true);
//! assert!(rules.follow && rules.keep_method && rules.post302 && rules.max == 50);
//! ```

use haul_policy::Scheme;
use haul_policy::protocols::Protocols;
use haul_policy::redirect::RedirectRules;

/// Redirects, and which schemes a URL may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectArgs {
    /// Follow redirects. Default on.
    pub follow: bool,
    /// Most redirects of one transfer; `None` is no limit. Default 50.
    pub max: Option<u64>,
    /// A POST stays one on a 301.
    pub post301: bool,
    /// A POST stays one on a 302.
    pub post302: bool,
    /// A POST stays one on a 303.
    pub post303: bool,
    /// `--location-trusted`: secrets go to other origins too. Not inherited by the stage after.
    pub trusted: bool,
    /// `--proto`: for all URLs. Default all.
    pub protocols: Protocols,
    /// `--proto-redir`: for redirects, besides `protocols`. Default all.
    pub redirected: Protocols,
    /// `--proto-default`: for URLs without a scheme. Default http.
    pub default_scheme: Scheme,
    /// `--proto-default file`: URLs without a scheme are paths.
    pub default_file: bool,
}

impl Default for RedirectArgs {
    fn default() -> Self {
        RedirectArgs {
            follow: true,
            max: Some(50),
            post301: false,
            post302: false,
            post303: false,
            trusted: false,
            protocols: Protocols::default(),
            redirected: Protocols::default(),
            default_scheme: Scheme::Http,
            default_file: false,
        }
    }
}

impl RedirectArgs {
    /// The rules that follow from it; `keep_method` where the method came from `-X`.
    pub fn rules(&self, keep_method: bool) -> RedirectRules {
        RedirectRules {
            follow: self.follow,
            max: self.max.map_or(u32::MAX, |max| u32::try_from(max).unwrap_or(u32::MAX)),
            post301: self.post301,
            post302: self.post302,
            post303: self.post303,
            keep_method,
            location_trusted: self.trusted,
            ..RedirectRules::default()
        }
        .with_protocols(self.protocols.and(self.redirected))
    }
}
