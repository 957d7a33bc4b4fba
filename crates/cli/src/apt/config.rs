//! The configuration that apt sends (`601 Configuration`), with the item names of apt.conf(5).
//!
//! ```
//! use haul_cli::apt::{config::AptConfig, message::AptMessage};
//!
//! let items = AptMessage::new(601, "Configuration")
//!     .with_field("Config-Item", "Acquire::http::Timeout=20")
//!     .with_field("Config-Item", "Acquire::http::Timeout::slow.example=90");
//! let config = AptConfig::from_message(&items);
//! assert_eq!(config.get("https", "timeout", "slow.example"), Some("90"));
//! assert_eq!(config.get("https", "timeout", "deb.example"), Some("20"));
//! ```

use std::path::{Path, PathBuf};

use super::message::AptMessage;

/// apt's configuration: the names of its items, in lower case, with their values.
#[derive(Debug, Default)]
pub struct AptConfig {
    items: Vec<(String, String)>,
}

impl AptConfig {
    /// Reads the configuration items of a `601 Configuration` message.
    #[must_use]
    pub fn from_message(message: &AptMessage) -> Self {
        let pair = |item: &str| {
            let (name, value) = item.split_once('=')?;
            Some((unquoted(name).to_ascii_lowercase(), unquoted(value)))
        };
        Self { items: message.all_values("Config-Item").filter_map(pair).collect() }
    }

    /// Returns the value of the configuration item with this full name, in lower case, such as
    /// `acquire::http::proxy`. Returns `None` if the item is missing or empty.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        let found = self.items.iter().rev().find(|(item, _)| item == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns the value of a configuration item of an apt method, such as `timeout` of `https`. An
    /// item for this host takes precedence over an item for all hosts. For `tor+https`, the items
    /// of `tor+https`, `tor`, `https` and `http` are tried in this order. Returns `None` if none of
    /// them is set.
    #[must_use]
    pub fn get(&self, method: &str, name: &str, host: &str) -> Option<&str> {
        let ways: [fn(&str, &str, &str) -> String; 3] = [
            |method, name, host| format!("acquire::{method}::{name}::{host}"),
            |method, name, host| format!("acquire::{method}::{host}::{name}"),
            |method, name, _| format!("acquire::{method}::{name}"),
        ];
        let (implementer, scheme) = method.split_once('+').unwrap_or((method, method));
        let names = [method, implementer, scheme, "http"];
        ways.iter().find_map(|way| names.iter().find_map(|method| self.value(&way(method, name, host))))
    }

    /// Returns the boolean value of a configuration item of an apt method, as [`AptConfig::get`]
    /// finds it: an item for this host takes precedence over an item for all hosts. Returns
    /// `default` if there is no such item.
    #[must_use]
    pub fn is_enabled(&self, method: &str, name: &str, host: &str, default: bool) -> bool {
        parse_bool(self.get(method, name, host), default)
    }

    /// Returns the boolean value of the configuration item with this full name in lower case.
    /// Returns `default` if there is no such item.
    #[must_use]
    pub fn bool_value(&self, name: &str, default: bool) -> bool {
        parse_bool(self.value(name), default)
    }

    /// Returns the path in an item of apt's section `Dir`, such as `dir::etc::netrc`. A relative
    /// path is appended to the values of the enclosing items (`dir::etc`, then `dir`) until it is
    /// absolute. An absolute path is placed below `RootDir`, if that is set. A path that begins
    /// with `./` stays relative. Returns `None` if the item is not set, or if no enclosing item
    /// makes the path absolute.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        let mut path = PathBuf::from(self.value(name)?);
        let mut above = name;
        while !path.is_absolute() && !path.starts_with(".") {
            above = above.rsplit_once("::")?.0;
            path = self.value(above).map_or(path.clone(), |dir| Path::new(dir).join(&path));
        }
        match self.value("rootdir") {
            Some(root) if path.is_absolute() => Some(Path::new(root).join(path.strip_prefix("/").ok()?)),
            _ => Some(path),
        }
    }
}

/// Parses a boolean with the words that apt accepts. Returns `default` for any other text
/// or none.
fn parse_bool(text: Option<&str>, default: bool) -> bool {
    match text.map(str::to_ascii_lowercase).as_deref() {
        Some("no" | "false" | "without" | "off" | "disable" | "0") => false,
        Some("yes" | "true" | "with" | "on" | "enable" | "1") => true,
        _ => default,
    }
}

/// Decodes a percent-encoded text, in which apt sends line feeds and other special characters.
fn unquoted(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        plain.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(items: &[&str]) -> AptConfig {
        let message = AptMessage::new(601, "Configuration");
        AptConfig::from_message(&items.iter().fold(message, |message, item| message.with_field("Config-Item", item)))
    }

    #[test]
    fn https_options_fall_back_to_http_options() {
        let config =
            config(&["Acquire::http::Proxy=http://p:1", "Acquire::http::Proxy::h=DIRECT", "Acquire::https::Timeout=3"]);
        assert_eq!(config.get("https", "proxy", "other"), Some("http://p:1"));
        assert_eq!(config.get("https", "proxy", "h"), Some("DIRECT"));
        assert_eq!((config.get("https", "timeout", "h"), config.get("http", "timeout", "h")), (Some("3"), None));
        assert!(
            config.is_enabled("https", "allowredirect", "h", true) && !config.bool_value("acquire::forceipv4", false)
        );
    }

    #[test]
    fn combined_method_options_precede_scheme_options() {
        let config = config(&["Acquire::http::Timeout=1", "Acquire::tor::Timeout=2"]);
        assert_eq!(["tor+https", "https"].map(|method| config.get(method, "timeout", "h")), [Some("2"), Some("1")]);
    }

    #[test]
    fn relative_config_paths_start_at_the_parent_item() {
        let items = ["Dir=/", "Dir::Etc=etc/apt", "Dir::Etc::netrc=auth.conf", "Dir::Etc::parts=/x"];
        assert_eq!(config(&items).path("dir::etc::netrc").unwrap(), Path::new("/etc/apt/auth.conf"));
        assert_eq!(config(&items).path("dir::etc::parts").unwrap(), Path::new("/x"));
        assert_eq!(config(&items).path("dir::etc::none"), None);
        let rooted = config(&[&items[..], &["RootDir=/chroot"]].concat());
        assert_eq!(rooted.path("dir::etc::netrc").unwrap(), Path::new("/chroot/etc/apt/auth.conf"));
    }
}
