//! The spelling of a host in the URL, for those who show it or send it as the user wrote it.

use core::hash::{Hash, Hasher};
use std::borrow::Cow;

use super::{Host, Target};

/// The host's name as written, if it differs from the normalised one: in capital letters, or in
/// other letters than those of ASCII. All values are equal, because the spelling makes no
/// difference between two targets.
#[derive(Clone, Debug, Default)]
pub(super) struct WrittenHost(Option<Box<str>>);

impl WrittenHost {
    pub(super) fn new(written: &str, host: &Host) -> WrittenHost {
        let Host::Name(name) = host else { return WrittenHost(None) };
        let differs = written != name && !written.contains('%');
        WrittenHost(differs.then(|| written.into()))
    }
}

impl PartialEq for WrittenHost {
    fn eq(&self, _: &WrittenHost) -> bool {
        true
    }
}

impl Eq for WrittenHost {}

impl Hash for WrittenHost {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Target {
    /// Returns the [`authority`](Target::authority) with the host in the letters that the URL has,
    /// as curl sends it. A name with other letters than those of ASCII is in its encoded form.
    pub fn written_authority(&self) -> Cow<'_, str> {
        match self.written_host().filter(|written| written.is_ascii()) {
            Some(written) => Cow::Owned([written, self.port_suffix()].concat()),
            None => self.authority(),
        }
    }

    /// Returns the host as the URL has it, if that differs from the normalised form. Spellings that
    /// are percent-encoded, and those of addresses, are not kept.
    pub fn written_host(&self) -> Option<&str> {
        self.written.0.as_deref()
    }

    /// Returns the colon and the port of the authority; empty for the default port.
    fn port_suffix(&self) -> &str {
        let host = self.host_text();
        self.origin.after_scheme().strip_prefix(host).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_spelling_is_kept_but_never_compared() {
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
