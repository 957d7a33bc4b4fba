//! The answer to a lookup, as the cache stores it and as a caller receives it.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use super::AddressFamily;
use crate::{Error, ErrorKind, Result};

/// The addresses of a name that a connection may use now.
#[derive(Debug, Clone)]
pub(crate) struct AvailableAddresses {
    pub(crate) addresses: Arc<[IpAddr]>,
    /// False if the lookup continues, so that further addresses may follow.
    pub(crate) is_complete: bool,
}

impl AvailableAddresses {
    /// Makes the addresses of a lookup that has ended.
    pub(crate) fn complete(addresses: Arc<[IpAddr]>) -> Self {
        Self { addresses, is_complete: true }
    }
}

pub(super) type LookupAnswer = std::result::Result<Arc<[IpAddr]>, LookupFailure>;

/// A failed lookup. Unlike [`Error`], it can be cloned, so that it can be cached.
#[derive(Clone)]
pub(super) struct LookupFailure {
    os: Option<i32>,
    /// True if the lookup failed because no name server gave an answer (`EAI_AGAIN`). The name may
    /// exist.
    temporary: bool,
    text: Arc<str>,
}

impl From<&io::Error> for LookupFailure {
    fn from(error: &io::Error) -> Self {
        let text = error.to_string();
        let text = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
        // The resolver's own number is lost in the standard library; these are the words of glibc,
        // BSD and musl for it.
        let lower = text.to_ascii_lowercase();
        let temporary = lower.starts_with("temporary failure") || lower == "try again";
        Self { os: error.raw_os_error(), temporary, text: Arc::from(text) }
    }
}

impl LookupFailure {
    /// Makes the failure of a lookup whose name has no address according to the name servers.
    /// `text` is the error message.
    pub(super) fn about_name(text: &str) -> Self {
        Self { os: None, temporary: false, text: Arc::from(text) }
    }

    /// Makes the failure of a lookup that no name server answered. `text` is the error message.
    pub(super) fn about_servers(text: &str) -> Self {
        Self { os: None, temporary: true, text: Arc::from(text) }
    }

    /// Returns true if this process or the network caused the failure. Such a failure says nothing
    /// about the name.
    pub(super) fn is_local(&self) -> bool {
        self.os.is_some() || self.temporary
    }
}

/// Converts the answer of a lookup for one caller. Keeps only the addresses of `family`. If the
/// lookup failed or no address is left, makes an error that contains `host` as the caller wrote it.
pub(super) fn to_caller_result(answer: LookupAnswer, host: &str, family: AddressFamily) -> Result<Arc<[IpAddr]>> {
    let message = || format!("could not resolve host: {host}");
    match answer {
        Ok(addresses) if addresses.iter().all(|address| family.includes(address)) => Ok(addresses),
        Ok(addresses) => {
            let admitted: Arc<[IpAddr]> =
                addresses.iter().filter(|address| family.includes(address)).copied().collect();
            if admitted.is_empty() {
                let cause =
                    if family == AddressFamily::V4 { "it has no IPv4 address" } else { "it has no IPv6 address" };
                return Err(Error::with_source(ErrorKind::Resolve, message(), cause));
            }
            Ok(admitted)
        }
        Err(LookupFailure { os: Some(os), .. }) => {
            Err(Error::with_source(ErrorKind::Resolve, message(), io::Error::from_raw_os_error(os)))
        }
        // An error of the system, as above: a retry can distinguish it from an answer.
        Err(LookupFailure { temporary: true, text, .. }) => {
            Err(Error::with_source(ErrorKind::Resolve, message(), io::Error::other(text.to_string())))
        }
        Err(LookupFailure { text, .. }) => Err(Error::with_source(ErrorKind::Resolve, message(), text.to_string())),
    }
}
