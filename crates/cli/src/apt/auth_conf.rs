//! Users and passwords from apt_auth.conf(5). Its entries have the syntax of netrc, but a `machine`
//! may also contain a scheme, a port and a path.
//!
//! The files are read while the process is still root, because only root can read them.
//!
//! ```
//! use haul_cli::apt::auth_conf::{AuthConfLookupResult, find};
//!
//! let text = "machine deb.example/private login me password secret";
//! let ask = |url: &str| find(text, &haul::Target::parse(url).unwrap());
//! assert_eq!(ask("https://deb.example/private/x.deb"), AuthConfLookupResult::Login("me".into(), "secret".into()));
//! assert_eq!(ask("https://deb.example/x.deb"), AuthConfLookupResult::Nothing);
//! assert_eq!(ask("http://deb.example/private/x.deb"), AuthConfLookupResult::InTheClear("deb.example/private".into()));
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use haul::Target;

use super::config::AptConfig;

/// The paths and texts of apt's files with credentials (`auth.conf` and the files of
/// `auth.conf.d`).
#[derive(Default)]
pub struct AptAuthFiles {
    files: Vec<(PathBuf, String)>,
}

/// The result of a search for the credentials of a URL in apt's `auth.conf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthConfLookupResult {
    /// No entry matches the URL.
    Nothing,
    /// The user and the password, in this order, of the first entry that matches the URL.
    Login(String, String),
    /// An entry without a scheme matches, but the URL is not https. apt uses such an entry only for
    /// https, so that no password is sent in the clear. The value is the entry's machine name.
    InTheClear(String),
}

impl AptAuthFiles {
    /// Reads apt's `auth.conf`, then the files of `auth.conf.d` in alphabetical order. Files that
    /// do not exist or cannot be read are ignored.
    #[must_use]
    pub fn read(config: &AptConfig) -> Self {
        let mut paths: Vec<PathBuf> = config.path("dir::etc::netrc").into_iter().collect();
        if let Some(entries) = config.path("dir::etc::netrcparts").and_then(|dir| fs::read_dir(dir).ok()) {
            let mut parts: Vec<PathBuf> =
                entries.flatten().map(|entry| entry.path()).filter(|path| is_conf_file(path)).collect();
            parts.sort();
            paths.append(&mut parts);
        }
        let text = |path: PathBuf| fs::read_to_string(&path).ok().map(|text| (path, text));
        Self { files: paths.into_iter().filter_map(text).collect() }
    }

    /// Returns the user and password of the first entry that matches the target, or `None` without
    /// such an entry. Also returns warnings for apt's user about entries that match but may not be
    /// used for this target.
    #[must_use]
    pub fn find(&self, target: &Target) -> (Option<(String, String)>, Vec<String>) {
        let mut warnings = Vec::new();
        for (path, text) in &self.files {
            match find(text, target) {
                AuthConfLookupResult::Login(user, password) => return (Some((user, password)), warnings),
                AuthConfLookupResult::InTheClear(machine) => warnings.push(format!(
                    "{}: Credentials for {machine} match, but the protocol is not encrypted. Annotate with {}:// to use.",
                    path.display(),
                    target.scheme().as_str(),
                )),
                AuthConfLookupResult::Nothing => {}
            }
        }
        (None, warnings)
    }
}

/// Returns true if apt reads a file of this name in `auth.conf.d`: it has no extension or ends in
/// `.conf`.
fn is_conf_file(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let extension = path.extension().map(|extension| extension.to_string_lossy());
    is_plain && !name.starts_with('.') && extension.is_none_or(|extension| extension == "conf") && path.is_file()
}

/// Searches the text of one apt_auth.conf(5) file for the first entry that matches the target and
/// may be used for it.
#[must_use]
pub fn find(text: &str, target: &Target) -> AuthConfLookupResult {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let mut words = lines.flat_map(str::split_whitespace).peekable();
    let mut clear = AuthConfLookupResult::Nothing;
    while let Some(word) = words.next() {
        if word != "machine" {
            continue;
        }
        let Some(machine) = words.next() else { break };
        let (mut user, mut password) = (String::new(), String::new());
        while let Some(key) = words.next_if(|word| *word != "machine") {
            match key {
                "login" => user = words.next().unwrap_or_default().to_owned(),
                "password" => password = words.next().unwrap_or_default().to_owned(),
                _ => {}
            }
        }
        let (scheme, place) =
            machine.split_once("://").map_or((None, machine), |(scheme, place)| (Some(scheme), place));
        let is_meant = scheme.is_none_or(|scheme| scheme == target.scheme().as_str()) && matches_target(place, target);
        match scheme {
            _ if !is_meant => {}
            None if target.scheme().as_str() != "https" => clear = AuthConfLookupResult::InTheClear(place.to_owned()),
            _ => return AuthConfLookupResult::Login(user, password),
        }
    }
    clear
}

/// Returns true if a target matches the machine name of an entry: a host, optionally with a port
/// and the beginning of a path.
fn matches_target(place: &str, target: &Target) -> bool {
    let host = target.host_text();
    let with_port = format!("{host}:{}", target.port());
    if !place.contains('/') {
        return place == host || place == with_port;
    }
    // A port of the target's own has to be named.
    let bare = target.explicit_port().is_none().then_some(host);
    let places = [bare, Some(with_port.as_str())];
    places.into_iter().flatten().any(|from| format!("{from}{}", target.path()).starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str, url: &str) -> AuthConfLookupResult {
        find(text, &Target::parse(url).unwrap())
    }

    fn login(user: &str, password: &str) -> AuthConfLookupResult {
        AuthConfLookupResult::Login(user.into(), password.into())
    }

    #[test]
    fn first_matching_auth_conf_entry_is_used() {
        let text =
            "# machine h login no password no\nmachine h/a\n\tlogin u1 password p1\nmachine h login u2 password p2";
        assert_eq!(ask(text, "https://h/a/x"), login("u1", "p1"));
        assert_eq!(ask(text, "https://h/b"), login("u2", "p2"));
        assert_eq!(ask(text, "https://other/a"), AuthConfLookupResult::Nothing);
        assert_eq!(ask("machine h login machine password x", "https://h/"), login("machine", "x"));
    }

    #[test]
    fn auth_conf_entry_requires_its_port_and_scheme() {
        assert_eq!(ask("machine h:8443 login u password p", "https://h:8443/"), login("u", "p"));
        assert_eq!(ask("machine h login u password p", "https://h:8443/"), login("u", "p"));
        assert_eq!(ask("machine h:8443 login u password p", "https://h/"), AuthConfLookupResult::Nothing);
        assert_eq!(ask("machine h/a login u password p", "https://h:8443/a"), AuthConfLookupResult::Nothing);
        assert_eq!(ask("machine h:8443/a login u password p", "https://h:8443/a"), login("u", "p"));
        assert_eq!(ask("machine http://h login u password p", "http://h/"), login("u", "p"));
        assert_eq!(ask("machine http://h login u password p", "https://h/"), AuthConfLookupResult::Nothing);
        assert_eq!(ask("machine h login u password p", "http://h/"), AuthConfLookupResult::InTheClear("h".into()));
        let both = "machine h login u password p\nmachine http://h login v password w";
        assert_eq!(ask(both, "http://h/"), login("v", "w"));
    }
}
