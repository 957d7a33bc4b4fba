//! The spelling of a host in the URL, for callers that show the host or send it as the user wrote
//! it.

use core::hash::{Hash, Hasher};
use std::borrow::Cow;

use super::{Host, Target};

/// The spelling of the host's name in the URL, if it has upper-case or non-ASCII letters that the
/// normalised name does not have; otherwise `None`. All values compare equal, so that the spelling
/// makes no difference between two targets.
#[derive(Clone, Debug, Default)]
pub(super) struct HostAsWritten(Option<Box<str>>);

impl HostAsWritten {
    pub(super) fn new(written: &str, host: &Host) -> HostAsWritten {
        let Host::Name(name) = host else { return HostAsWritten(None) };
        let differs = written != name && !written.contains('%');
        HostAsWritten(differs.then(|| written.into()))
    }
}

impl PartialEq for HostAsWritten {
    fn eq(&self, _: &HostAsWritten) -> bool {
        true
    }
}

impl Eq for HostAsWritten {}

impl Hash for HostAsWritten {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Target {
    /// Returns the [`authority`](Target::authority) with the host in the spelling of the URL, as
    /// curl sends it. A name with non-ASCII letters is encoded by IDNA.
    pub fn written_authority(&self) -> Cow<'_, str> {
        match self.written_host().filter(|written| written.is_ascii()) {
            Some(written) => Cow::Owned([written, self.port_suffix()].concat()),
            None => self.authority(),
        }
    }

    /// Returns the host as spelled in the URL, or `None` if that does not differ from the
    /// normalised name. Percent-encoded spellings, and spellings of addresses, are not kept.
    pub fn written_host(&self) -> Option<&str> {
        self.written.0.as_deref()
    }

    /// Returns the colon and the port of the authority; empty for the default port.
    fn port_suffix(&self) -> &str {
        let host = self.host_text();
        self.origin.authority_text().strip_prefix(host).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_spelling_is_kept_but_not_compared() {
        let target = |url: &str| Target::parse(url).unwrap();
        let mixed = target("http://MiXeD.Example:8080/a");
        assert_eq!(mixed.written_authority(), "MiXeD.Example:8080");
        assert_eq!(mixed.join("b").unwrap().written_host(), Some("MiXeD.Example"));
        assert_eq!(mixed, target("http://mixed.example:8080/a"));
        assert_eq!(mixed.join("http://mixed.example:8080/b").unwrap().written_authority(), "mixed.example:8080");
        let international = target("http://b\u{fc}cher.example:80/");
        assert_eq!(international.written_authority(), "xn--bcher-kva.example");
        assert_eq!(international.written_host(), Some("b\u{fc}cher.example"));
        for plain in ["http://h/", "http://[::1]:1/", "http://127.1/", "http://a%41/"] {
            assert_eq!(target(plain).written_authority(), target(plain).authority(), "{plain}");
        }
    }
}
