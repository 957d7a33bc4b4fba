//! The options of message signatures (RFC 9421): `--httpsig-key` and similar ones.
//!
//! ```
//! use haul_cli::{file_and_environment_access::SystemFilesAndEnvironment, parse::parse};
//!
//! let args = ["http://h/", "--httpsig-keyid", "mine"].map(Into::into);
//! let parsed = parse(args, &mut SystemFilesAndEnvironment).unwrap();
//! assert_eq!(parsed.groups[0].stages[0].request.httpsig.key_id.as_deref(), Some("mine"));
//! ```

use std::path::PathBuf;

use haul_policy::auth::SignatureAlgorithm;

use crate::plan::Secret;

/// The options of message signatures (RFC 9421), each `None` if it is not given.
#[derive(Clone, Debug, Default)]
pub struct ParsedMessageSignature {
    /// `--httpsig-algo`: the signature algorithm.
    pub algorithm: Option<SignatureAlgorithm>,
    /// `--httpsig-headers`: the parts of the request that are signed, such as header fields.
    pub components: Option<String>,
    /// `--httpsig-key`: the key with which requests are signed.
    pub key: Option<ParsedSignatureKey>,
    /// `--httpsig-keyid`: the name of the key, which the signature contains.
    pub key_id: Option<String>,
}

/// The key of `--httpsig-key`: hexadecimal digits, or a file that contains them.
#[derive(Clone, Debug)]
pub enum ParsedSignatureKey {
    /// The hexadecimal digits of the key, given on the command line.
    Digits(Secret),
    /// The file that contains the hexadecimal digits of the key.
    File(PathBuf),
}
