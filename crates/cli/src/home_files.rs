//! The files in a user's home directory that haul reads where curl does: `.curlrc` and `.netrc`.
//!
//! On Windows, `_` may replace the dot, and `USERPROFILE` and `APPDATA` name the directories, as in curl.

use std::ffi::OsString;
use std::path::PathBuf;

use haul_policy::file_names_by_system::OsFamily;

/// The places of `.curlrc` on Unix, in curl's order: an environment variable that names a directory,
/// and a path below it. The first place without the dot whose variable is set is the only such
/// place that is searched.
const CURLRC_ON_UNIX: &[(&str, &str)] = &[
    ("CURL_HOME", ".curlrc"),
    ("XDG_CONFIG_HOME", "curlrc"),
    ("HOME", ".curlrc"),
    ("CURL_HOME", ".config/curlrc"),
    ("HOME", ".config/curlrc"),
];

/// The possible places of `.curlrc` on Windows: the environment variable that names a directory,
/// and the name of the file in that directory.
const CURLRC_ON_WINDOWS: &[(&str, &str)] = &[
    ("CURL_HOME", ".curlrc"),
    ("CURL_HOME", "_curlrc"),
    ("XDG_CONFIG_HOME", "curlrc"),
    ("HOME", ".curlrc"),
    ("HOME", "_curlrc"),
    ("USERPROFILE", ".curlrc"),
    ("USERPROFILE", "_curlrc"),
    ("APPDATA", ".curlrc"),
    ("APPDATA", "_curlrc"),
    ("USERPROFILE", "Application Data/.curlrc"),
    ("USERPROFILE", "Application Data/_curlrc"),
    ("CURL_HOME", ".config/curlrc"),
    ("HOME", ".config/curlrc"),
];

/// The places of `.netrc` on Unix.
const NETRC_ON_UNIX: &[(&str, &str)] = &[("HOME", ".netrc")];

/// The places of `.netrc` on Windows if `HOME` is set.
const NETRC_ON_WINDOWS: &[(&str, &str)] = &[("HOME", ".netrc"), ("HOME", "_netrc")];

/// The places of `.netrc` on Windows if `HOME` is not set.
const NETRC_ON_WINDOWS_WITHOUT_HOME: &[(&str, &str)] = &[("USERPROFILE", ".netrc"), ("USERPROFILE", "_netrc")];

/// Returns the paths at which `.curlrc` may be, in the order of the search. `variable` returns the
/// value of an environment variable, and `account_home` is the result of [`account_home`].
pub(crate) fn curlrc_paths<V>(
    family: OsFamily,
    variable: V,
    account_home: Option<PathBuf>,
) -> impl Iterator<Item = PathBuf>
where
    V: Fn(&str) -> Option<OsString>,
{
    let places = match family {
        OsFamily::Unix => CURLRC_ON_UNIX,
        OsFamily::Windows => CURLRC_ON_WINDOWS,
    };
    let mut has_dotless = false;
    let is_searched = move |(name, file): &(&'static str, &'static str)| {
        let is_dotless = file.ends_with("/curlrc") || *file == "curlrc";
        // After that place, curl no longer tries `_curlrc`, either.
        let is_left_out = has_dotless && (is_dotless || file.ends_with("_curlrc"));
        has_dotless |= is_dotless && directory(&variable, name).is_some();
        (!is_left_out).then(|| Some(directory(&variable, name)?.join(file))).flatten()
    };
    let account = account_home.filter(|_| family == OsFamily::Unix).map(|home| home.join(".curlrc"));
    places.iter().filter_map(is_searched).chain(account)
}

/// Returns the paths at which `.netrc` may be, in the order of the search. `variable` returns the
/// value of an environment variable, and `account_home` is the result of [`account_home`].
pub(crate) fn netrc_paths<V>(
    family: OsFamily,
    variable: V,
    account_home: Option<PathBuf>,
) -> impl Iterator<Item = PathBuf>
where
    V: Fn(&str) -> Option<OsString>,
{
    let places = match family {
        OsFamily::Unix => NETRC_ON_UNIX,
        OsFamily::Windows if variable("HOME").is_some_and(|home| !home.is_empty()) => NETRC_ON_WINDOWS,
        OsFamily::Windows => NETRC_ON_WINDOWS_WITHOUT_HOME,
    };
    let account = account_home.filter(|_| family == OsFamily::Unix).map(|home| home.join(".netrc"));
    paths(places, variable).chain(account)
}

/// Returns the home directory of the user's account if `HOME` is not set. `None` if it is set, or
/// if the account has no home directory.
pub(crate) fn account_home() -> Option<PathBuf> {
    if std::env::var_os("HOME").is_some() {
        return None;
    }
    std::env::home_dir().filter(|home| !home.as_os_str().is_empty())
}

/// Returns the directory that an environment variable names; `None` if it is unset or empty.
fn directory(variable: &impl Fn(&str) -> Option<OsString>, name: &str) -> Option<PathBuf> {
    variable(name).filter(|directory| !directory.is_empty()).map(PathBuf::from)
}

/// Returns the paths of files below the directories that environment variables name. A variable that
/// is unset or empty names none.
fn paths<V>(places: &'static [(&str, &str)], variable: V) -> impl Iterator<Item = PathBuf>
where
    V: Fn(&str) -> Option<OsString>,
{
    places.iter().filter_map(move |(name, file)| Some(directory(&variable, name)?.join(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Option<OsString> {
        match name {
            "HOME" => Some("/h".into()),
            "USERPROFILE" => Some("/u".into()),
            "APPDATA" => Some("/a".into()),
            "CURL_HOME" => Some(".".into()),
            _ => None,
        }
    }

    fn texts(paths: impl Iterator<Item = PathBuf>) -> Vec<String> {
        paths.map(|path| path.to_str().unwrap().replace('\\', "/")).collect()
    }

    /// Returns the values of [`variable`] without `CURL_HOME`.
    fn without_curl_home(name: &str) -> Option<OsString> {
        variable(name).filter(|_| name != "CURL_HOME")
    }

    #[test]
    fn curlrc_search_ends_at_first_dotless_place() {
        let unix = |variable: &dyn Fn(&str) -> Option<OsString>| texts(curlrc_paths(OsFamily::Unix, variable, None));
        assert_eq!(unix(&without_curl_home), ["/h/.curlrc", "/h/.config/curlrc"]);
        let with_xdg = |name: &str| if name == "XDG_CONFIG_HOME" { Some("/x".into()) } else { without_curl_home(name) };
        assert_eq!(unix(&with_xdg), ["/x/curlrc", "/h/.curlrc"]);
        assert_eq!(unix(&variable), ["./.curlrc", "/h/.curlrc", "./.config/curlrc"]);
        let account = texts(curlrc_paths(OsFamily::Unix, |_| None, Some("/a".into())));
        assert_eq!(account, ["/a/.curlrc"], "HOME is not set");
        assert_eq!(texts(netrc_paths(OsFamily::Unix, |_| None, Some("/a".into()))), ["/a/.netrc"]);
    }

    #[test]
    fn curlrc_paths_are_those_of_curl() {
        assert_eq!(
            texts(curlrc_paths(OsFamily::Windows, without_curl_home, None)),
            [
                "/h/.curlrc",
                "/h/_curlrc",
                "/u/.curlrc",
                "/u/_curlrc",
                "/a/.curlrc",
                "/a/_curlrc",
                "/u/Application Data/.curlrc",
                "/u/Application Data/_curlrc",
                "/h/.config/curlrc",
            ]
        );
    }

    #[test]
    fn netrc_begins_with_underscore_on_windows() {
        assert_eq!(texts(netrc_paths(OsFamily::Unix, variable, None)), ["/h/.netrc"]);
        assert_eq!(texts(netrc_paths(OsFamily::Windows, variable, None)), ["/h/.netrc", "/h/_netrc"]);
        let without_home = |name: &str| variable(name).filter(|_| name != "HOME");
        assert_eq!(texts(netrc_paths(OsFamily::Windows, without_home, None)), ["/u/.netrc", "/u/_netrc"]);
    }
}
