//! The files in a user's home directory that haul reads where curl does: `.curlrc` and `.netrc`.
//!
//! On Windows, `_` may replace the dot, and `USERPROFILE` and `APPDATA` name the directories, as in curl.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use haul_policy::file_names_by_system::OsFamily;

/// The places of `.curlrc` on Unix, in curl's order: an environment variable that names a directory,
/// and a path below it.
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
/// value of an environment variable.
pub(crate) fn curlrc_paths<V>(family: OsFamily, variable: V) -> impl Iterator<Item = PathBuf>
where
    V: Fn(&str) -> Option<OsString>,
{
    let places = match family {
        OsFamily::Unix => CURLRC_ON_UNIX,
        OsFamily::Windows => CURLRC_ON_WINDOWS,
    };
    paths(places, variable)
}

/// Returns the paths at which `.netrc` may be, in the order of the search. `variable` returns the
/// value of an environment variable.
pub(crate) fn netrc_paths<V>(family: OsFamily, variable: V) -> impl Iterator<Item = PathBuf>
where
    V: Fn(&str) -> Option<OsString>,
{
    let places = match family {
        OsFamily::Unix => NETRC_ON_UNIX,
        OsFamily::Windows if variable("HOME").is_some_and(|home| !home.is_empty()) => NETRC_ON_WINDOWS,
        OsFamily::Windows => NETRC_ON_WINDOWS_WITHOUT_HOME,
    };
    paths(places, variable)
}

/// Returns the paths of files below the directories that environment variables name. A variable that
/// is unset or empty names none.
fn paths<V>(places: &'static [(&str, &str)], variable: V) -> impl Iterator<Item = PathBuf>
where
    V: Fn(&str) -> Option<OsString>,
{
    places.iter().filter_map(move |(name, file)| {
        let directory = variable(name).filter(|directory| !directory.is_empty())?;
        Some(Path::new(&directory).join(file))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Option<OsString> {
        match name {
            "HOME" => Some("/h".into()),
            "USERPROFILE" => Some("/u".into()),
            "APPDATA" => Some("/a".into()),
            "CURL_HOME" => Some("".into()),
            _ => None,
        }
    }

    fn texts(paths: impl Iterator<Item = PathBuf>) -> Vec<String> {
        paths.map(|path| path.to_str().unwrap().replace('\\', "/")).collect()
    }

    #[test]
    fn curlrc_paths_are_those_of_curl() {
        assert_eq!(texts(curlrc_paths(OsFamily::Unix, variable)), ["/h/.curlrc", "/h/.config/curlrc"]);
        assert_eq!(
            texts(curlrc_paths(OsFamily::Windows, variable)),
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
        assert_eq!(texts(netrc_paths(OsFamily::Unix, variable)), ["/h/.netrc"]);
        assert_eq!(texts(netrc_paths(OsFamily::Windows, variable)), ["/h/.netrc", "/h/_netrc"]);
        let without_home = |name: &str| variable(name).filter(|_| name != "HOME");
        assert_eq!(texts(netrc_paths(OsFamily::Windows, without_home)), ["/u/.netrc", "/u/_netrc"]);
    }
}
